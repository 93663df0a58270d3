#!/usr/bin/env bash
# Fuzzes the parsers with libFuzzer (clang): every tests/fuzz/fuzz_*.c, or those named.
#   scripts/fuzz.sh [SECONDS [NAME …]]     60 seconds each by default; NAME as in fuzz_NAME.c
# New inputs that reach new code are kept in build-fuzz/corpus/NAME; a failure leaves its input in build-fuzz/NAME-… and
# belongs into tests/data/corpus/NAME, where the normal test run replays it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || fail "the time is a number of seconds, not '$seconds'"
shift || true

install_missing build fuzz
cd "$project"
run_quietly 'configuring the fuzzers' cmake -G Ninja -S . -B build-fuzz -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_COMPILER=clang -DSANDGATE_FUZZ=ON -DSANDGATE_SANITIZE=address,undefined,fuzzer-no-link
run_quietly 'building the fuzzers' cmake --build build-fuzz --target fuzzers

names=("$@")
if ((${#names[@]} == 0)); then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        names+=("${name%.c}")
    done
fi
failed=()
for name in "${names[@]}"; do
    program=build-fuzz/fuzz/fuzz_$name
    [[ -x $program ]] || fail "there is no fuzz target '$name'"
    mkdir -p "build-fuzz/corpus/$name"
    folders=("build-fuzz/corpus/$name")
    [[ -d tests/data/corpus/$name ]] && folders+=("tests/data/corpus/$name")
    say "fuzz_$name for $seconds s …"
    "$program" -max_total_time="$seconds" -print_final_stats=1 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="build-fuzz/$name-" "${folders[@]}" 2>&1 |
        grep -E '^(stat::(number_of_executed_units|new_units_added|peak_rss_mb)|==|SUMMARY|Test unit|artifact)' |
        sed 's/^/    /' || failed+=("$name")
done
((${#failed[@]} == 0)) || fail "${failed[*]}"
say "no fuzz target failed"
