# Warnings are errors, symbols are hidden, hardening is on, in every build.
add_compile_options(
    -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings
    -Wformat=2 -Wundef -Wvla -Wimplicit-fallthrough -Wno-unused-command-line-argument
    -fvisibility=hidden -fno-strict-aliasing -fno-omit-frame-pointer -fstack-protector-strong -g)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fstack-clash-protection -fcf-protection)
endif()
if(NOT SANDGATE_SANITIZE)
    add_compile_options(-Wframe-larger-than=16384)
endif()
add_compile_definitions(_GNU_SOURCE)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_link_options(-Wl,-z,relro,-z,now -Wl,-z,noexecstack)
set(CMAKE_C_FLAGS_RELEASE "-O2 -D_FORTIFY_SOURCE=2")
set(CMAKE_C_FLAGS_DEBUG "-O1")

if(SANDGATE_SANITIZE)
    add_compile_options(-fsanitize=${SANDGATE_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${SANDGATE_SANITIZE})
endif()

# A mistake in a plugin's symbols fails its build; clang's sanitizer run-time lives in the executable, so not there.
if(NOT (SANDGATE_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "Clang"))
    set(SANDGATE_NO_UNDEFINED -Wl,-z,defs)
endif()
