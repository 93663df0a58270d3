# What plugins outside the tree are built with: the header, find_package(sandgate) and pkg-config's sandgate.pc. Installed by
# itself with cmake --install BUILD --component development.
include(CMakePackageConfigHelpers)

file(STRINGS core/include/sandgate/plugin.h abi_lines REGEX "^#define SG_ABI_(MAJOR|MINOR) [0-9]+")
string(REGEX REPLACE "^.*MAJOR ([0-9]+).*MINOR ([0-9]+).*$" "\\1.\\2" SANDGATE_ABI "${abi_lines}")
set(SANDGATE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sandgate)

add_library(sandgate_plugin INTERFACE)
add_library(sandgate::plugin ALIAS sandgate_plugin)
set_target_properties(sandgate_plugin PROPERTIES EXPORT_NAME plugin)
target_include_directories(sandgate_plugin INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/core/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

configure_package_config_file(cmake/sandgate-config.cmake.in ${CMAKE_BINARY_DIR}/cmake/sandgate-config.cmake
    INSTALL_DESTINATION ${SANDGATE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/sandgate-config-version.cmake
    VERSION ${SANDGATE_ABI} COMPATIBILITY SameMajorVersion)

install(TARGETS sandgate_plugin EXPORT sandgate)
install(EXPORT sandgate NAMESPACE sandgate:: FILE sandgate-targets.cmake
    DESTINATION ${SANDGATE_PACKAGE_DIR} COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/cmake/sandgate-config.cmake ${CMAKE_BINARY_DIR}/cmake/sandgate-config-version.cmake
    DESTINATION ${SANDGATE_PACKAGE_DIR} COMPONENT development)
install(DIRECTORY core/include/sandgate DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# The prefix as seen from the folder of sandgate.pc, so that the installed tree can be moved.
set(SANDGATE_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH SANDGATE_PC_TO_PREFIX /${SANDGATE_PC_DIR} /)
string(REGEX REPLACE "/$" "" SANDGATE_PC_TO_PREFIX "${SANDGATE_PC_TO_PREFIX}")
configure_file(cmake/sandgate.pc.in ${CMAKE_BINARY_DIR}/cmake/sandgate.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cmake/sandgate.pc DESTINATION ${SANDGATE_PC_DIR} COMPONENT development)
