#!/usr/bin/env bash
# The tests against a system whose calls come late, are done by half or are interrupted (tests/support/disturbed.c): what a busy
# machine shows once in a thousand runs, an order that nobody promised or a call whose end was not looked at, shows here in
# minutes. It has a build of its own.
#   scripts/disturbed.sh [REGEX]      only tests whose names in ctest match
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
install_missing build run test
build_preset valgrind -DSANDGATE_BENCH=ON # as it is built for that: without sanitizers, whose memory comes first
cd "$project"

# Their upstream reads byte by byte, with a limit of time.
left_out='^test_fetch(_upload|_memory)?$'
patterns=(--tests-regex "${1:-.}" --exclude-regex "$left_out")

disturbed() { # disturbed TITLE LATE SHORT [CTEST OPTION…]
    local title=$1 late=$2 short=$3
    shift 3
    say "$title …"
    # The sandbox's processes have an environment of their own: it ends at the broker.
    DISTURBED_LATE=$late DISTURBED_SHORT=$short LD_PRELOAD=$project/build-valgrind/tests/disturbed.so \
        ctest --test-dir build-valgrind --output-on-failure --parallel "$((2 * $(nproc)))" --timeout 600 "${patterns[@]}" "$@" || failed+=("$title")
}

failed=()
disturbed "Late now and then" 10 0
disturbed "Late often" 30 0 -L e2e
disturbed "Short, interrupted and late" 5 50 -L e2e
((${#failed[@]} == 0)) || fail "${failed[*]}"
