# Packages for Debian: `cpack` in the folder of a release build makes sandgate_….deb (what is run, the service, manual pages) and
# sandgate-dev_….deb (what plugins are built with). docs/deployment.md says how they are used.
set(SANDGATE_PACKAGE_CONTACT "unknown <root@localhost>" CACHE STRING "Who makes the packages: a name and an address")

find_program(GZIP gzip REQUIRED)
set(man_pages)
foreach(page sandgate.1 sandgate.yaml.5)
    set(source ${CMAKE_SOURCE_DIR}/docs/man/${page})
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/${page}.gz DEPENDS ${source} VERBATIM
        COMMAND sh -c "mkdir -p man && exec ${GZIP} -9nc '${source}' >man/${page}.gz" WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    list(APPEND man_pages ${CMAKE_BINARY_DIR}/man/${page}.gz)
endforeach()
add_custom_target(man ALL DEPENDS ${man_pages})
install(FILES ${CMAKE_BINARY_DIR}/man/sandgate.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/man/sandgate.yaml.5.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES packaging/sandgate.bash-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sandgate)

# What only the package installs, outside a prefix.
foreach(unit sandgate.service sandgate.socket)
    file(READ packaging/${unit} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/${unit})
    string(REPLACE "/usr/local/bin/" "/usr/bin/" text "${text}")
    file(WRITE ${CMAKE_BINARY_DIR}/packaging/${unit} "${text}")
    install(FILES ${CMAKE_BINARY_DIR}/packaging/${unit} DESTINATION lib/systemd/system COMPONENT debian EXCLUDE_FROM_ALL)
endforeach()
install(FILES packaging/config.yaml DESTINATION /etc/sandgate COMPONENT debian EXCLUDE_FROM_ALL
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
install(FILES config.yaml.example README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sandgate COMPONENT debian EXCLUDE_FROM_ALL)
file(GLOB docs CONFIGURE_DEPENDS docs/*.md)
install(FILES ${docs} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sandgate/docs COMPONENT debian EXCLUDE_FROM_ALL) # where README.md says
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sandgate RENAME copyright COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sandgate-dev RENAME copyright COMPONENT development EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${SANDGATE_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime debian development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_GATEWAY_PACKAGE_NAME sandgate)
set(CPACK_DEBIAN_GATEWAY_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_GATEWAY_DESCRIPTION "gateway that gives every language model hosted tools
Stands between programs that use the client libraries of OpenAI or Anthropic
and any model server, and gives every model a code interpreter and web search.
Sandboxes, search services and interceptors are plugins named in one file.")
set(CPACK_DEBIAN_GATEWAY_PACKAGE_DEPENDS "adduser, ca-certificates, init-system-helpers")
set(CPACK_DEBIAN_GATEWAY_PACKAGE_RECOMMENDS "python3")
set(CPACK_DEBIAN_GATEWAY_PACKAGE_SUGGESTS "python3-numpy, python3-pandas, python3-matplotlib, nodejs")
set(CPACK_DEBIAN_GATEWAY_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/packaging/debian/conffiles ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
    ${CMAKE_SOURCE_DIR}/packaging/debian/prerm ${CMAKE_SOURCE_DIR}/packaging/debian/postrm)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME sandgate-dev)
set(CPACK_DEBIAN_DEVELOPMENT_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "gateway for language models: header for plugins
What plugins of sandgate are built with: the header, a CMake package and a
file for pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)

include(CPack)
cpack_add_component(runtime GROUP gateway)
cpack_add_component(debian GROUP gateway)
cpack_add_component(development GROUP development)
cpack_add_component_group(gateway)
cpack_add_component_group(development)
