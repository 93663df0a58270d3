#!/usr/bin/env bash
# One pass of the tests under Valgrind: every unit test program, the parsers on their corpora, and the gateway in
# end-to-end tests that cover its whole way (turns, streams, sessions, relay, life). Any error or lost block fails. It takes most of an hour.
#   scripts/valgrind.sh [NAME …]      only these tests, by their names in ctest
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
install_missing build run test valgrind
build_preset valgrind
cd "$project"

# Threads take turns: some tests wait for another thread in a loop, and one thread runs at a time here.
options=(--quiet --error-exitcode=86 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
    --child-silent-after-fork=yes --max-stackframe=16777216 --fair-sched=try
    "--suppressions=$project/tests/data/valgrind.supp")
under=(valgrind "${options[@]}")
calls=build-valgrind/tests/valgrind_calls.so # what Valgrind lacks; tests/support/valgrind_calls.c
[[ -e $calls ]] && under=(env "LD_PRELOAD=$project/$calls" "${under[@]}")

# What cannot run here: TEST and the reason.
left_out() {
    case $1 in
    test_admission) say "Valgrind keeps RLIMIT_NOFILE to itself, and this test is about that limit" ;;
    test_load_elf) say "Valgrind reads the damaged files that it loads by itself, and ends" ;;
    esac
}

names=("$@")
if ((${#names[@]} == 0)); then
    for program in build-valgrind/tests/test_* build-valgrind/fuzz/fuzz_*; do
        names+=("${program##*/}")
    done
    names+=(e2e_test_chat e2e_test_mixed e2e_test_stream e2e_test_sessions e2e_test_relay e2e_test_lifecycle e2e_test_hooks)
fi
failed=() clean=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in "${names[@]}"; do
    reason=$(left_out "$name")
    if [[ -n $reason ]]; then
        say "$name: left out: $reason"
        continue
    fi
    case $name in
    e2e_*)
        command=(env BUILD_DIR=build-valgrind SANDGATE_TEST_PATIENCE=600 SANDGATE_TEST_PREFIX="${under[*]}"
            python3 -B "tests/e2e/${name#e2e_}.py")
        ;;
    fuzz_*) command=("${under[@]}" "build-valgrind/fuzz/$name" "tests/data/corpus/${name#fuzz_}") ;;
    *) command=("${under[@]}" "build-valgrind/tests/$name") ;;
    esac
    begun=$SECONDS status=0
    timeout --kill-after=10 1800 "${command[@]}" >"$log" 2>&1 </dev/null || status=$?
    if ((status == 0)) && ! grep -q '^==[0-9]*== ' "$log"; then
        clean=$((clean + 1))
        say "$name: clean, $((SECONDS - begun)) s"
        sed -n 's/.*  Test: \(.*\) \.\.\.left out: /    \1 left out: /p' "$log"
    else
        failed+=("$name")
        say "$name: FAILED ($status)"
        { grep -m 40 -E '^==|FAIL|Error' "$log" || tail -n 20 "$log"; } | sed 's/^/    /'
    fi
done
((${#failed[@]} == 0)) || fail "${failed[*]}"
say "Valgrind found nothing in $clean tests."
