#!/usr/bin/env bash
# One pass of the tests under Valgrind: every unit test program, and the gateway in end-to-end tests that cover its whole
# way (turns, streams, sessions, relay, life). Any error or lost block fails. It takes most of an hour.
#   scripts/valgrind.sh [NAME …]      only these tests, by their names in ctest
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
install_missing build run test valgrind
build_preset valgrind
cd "$project"

options=(--quiet --error-exitcode=86 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
    --child-silent-after-fork=yes --max-stackframe=16777216)
names=("$@")
if ((${#names[@]} == 0)); then
    for program in build-valgrind/tests/test_*; do names+=("${program##*/}"); done
    names+=(e2e_test_chat e2e_test_mixed e2e_test_stream e2e_test_sessions e2e_test_relay e2e_test_lifecycle e2e_test_hooks)
fi
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in "${names[@]}"; do
    if [[ $name == e2e_* ]]; then
        command=(env BUILD_DIR=build-valgrind SANDGATE_TEST_PATIENCE=600 SANDGATE_TEST_PREFIX="valgrind ${options[*]}"
            python3 -B "tests/e2e/${name#e2e_}.py")
    else
        command=(valgrind "${options[@]}" "build-valgrind/tests/$name")
    fi
    begun=$SECONDS status=0
    "${command[@]}" >"$log" 2>&1 </dev/null || status=$?
    if ((status == 0)) && ! grep -q '^==[0-9]*== ' "$log"; then
        say "$name: clean, $((SECONDS - begun)) s"
    else
        failed+=("$name")
        say "$name: FAILED ($status)"
        grep -E '^==|FAIL|Error' "$log" | head -n 40 | sed 's/^/    /'
    fi
done
((${#failed[@]} == 0)) || fail "${failed[*]}"
say "Valgrind found nothing in ${#names[@]} tests."
