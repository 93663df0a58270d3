#!/bin/sh
# filter_arm64.sh SOURCES: builds test_local_filter.c for arm64, so that every call of the tables must exist there, and runs it
# in an emulator if there is one. (The emulator carries out our code; a loaded filter it could not.) 77: no compiler for arm64.
# Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
command -v aarch64-linux-gnu-gcc >/dev/null || { echo "no aarch64-linux-gnu-gcc here"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -static -I"$1/plugins/local" \
    "$1/tests/plugin_local/test_local_filter.c" "$1/plugins/local/box/filter.c" -o "$work/test" || exit 1
touch "$work/built" # in place of built programs, which are taken in as they are
programs="-DEPOLL_LIBRARY=\"$work/built\" -DINIT_PROGRAM=\"$work/built\" -DTEMPLATE_LIBRARY=\"$work/built\""
for source in "$1"/plugins/local/box/*.c; do
    # shellcheck disable=SC2086 # one word each
    aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $programs -include "$1/core/base/banned.h" -c "$source" -o "$work/object" || exit 1
done
command -v qemu-aarch64 >/dev/null || { echo "built; not run: no qemu-aarch64 here"; exit 0; }
qemu-aarch64 "$work/test"
