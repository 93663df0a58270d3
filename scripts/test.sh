#!/usr/bin/env bash
# All tests: installs what is missing (and says what), then builds and runs
#   clang, release, its warnings as errors     fast tests
#   gcc, ThreadSanitizer                       what crosses threads
#   gcc, AddressSanitizer and UBSan            everything
# A test that failed beside others is run once more, alone, and named at the end as unsteady if it passes then: it met a slow
# machine, or an order that nobody promised (scripts/disturbed.sh shows which). More than two are a failure like any other.
# The first part that fails ends the script with its exit code; what is printed last are ctest's closing lines.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
jobs=$((3 * $(nproc))) # tests wait more than they compute

check_format() {
    local wrong
    cd "$project"
    mapfile -t wrong < <(find core plugins tests examples bench -name '*.[ch]' -print0 |
        xargs -0 clang-format --dry-run 2>&1 | sed -n 's/^\([^:]*\):.*clang-format-violations.*/\1/p' | sort -u)
    ((${#wrong[@]} == 0)) || fail "not formatted; do: clang-format -i ${wrong[*]}"
}

# The official clients, at the versions that tests/e2e/clients/package.json names. Without a registry their tests are left
# out, and say so.
install_clients() {
    local folder=$project/build-debug/npm wanted=$project/tests/e2e/clients/package.json
    [[ -d $folder/node_modules ]] && cmp --silent "$wanted" "$folder/package.json" && return
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$wanted" "$folder/"
    if ! (cd "$folder" && npm install --no-package-lock --no-audit --no-fund) >"$folder/log" 2>&1; then
        tail -n 5 "$folder/log" >&2
        rm -rf "$folder/node_modules"
        say "NO REGISTRY CAN BE REACHED BY npm: THE TESTS WITH THE OFFICIAL CLIENTS ARE LEFT OUT."
    fi
}

run_tests() { # run_tests FOLDER [CTEST OPTION…]
    local folder=$project/$1 names=() status=0
    shift
    rm -f "$folder/Testing/Temporary/LastTestsFailed.log"
    ctest --test-dir "$folder" --output-on-failure --parallel "$jobs" --no-tests=error "$@" || status=$?
    ((status == 0)) && return
    mapfile -t names < <(cut -d: -f2 "$folder/Testing/Temporary/LastTestsFailed.log")
    ((${#names[@]} > 0 && ${#names[@]} <= 2)) || return "$status"
    printf '\nOnce more, alone: %s\n\n' "${names[*]}"
    ctest --test-dir "$folder" --output-on-failure --no-tests=error --rerun-failed || return
    printf '%s\n' "${names[@]}" >>"$unsteady"
}

# ThreadSanitizer wants its addresses where they were of old; kernels with much randomness put them elsewhere.
without_randomness() {
    if setarch "$(uname -m)" -R true 2>/dev/null; then
        setarch "$(uname -m)" -R "$@"
    else
        "$@"
    fi
}

unsteady=$(mktemp)
trap 'rm -f "$unsteady"' EXIT
install_missing build run test
say "Checking the format …"
check_format
say "Building with clang (release) …"
build_preset clang
run_tests build-clang -L fast
say "Building with ThreadSanitizer …"
target=tsan_tests build_preset tsan
export -f run_tests
export project jobs unsteady
without_randomness bash -c 'run_tests build-tsan -L tsan'
say "Building with AddressSanitizer and UBSan …"
build_preset debug -DSANDGATE_BENCH=ON # its two ends are tested too
install_clients
run_tests build-debug
if [[ -s $unsteady ]]; then
    say "UNSTEADY, as they failed beside others and passed alone (what they said is above): $(tr '\n' ' ' <"$unsteady")"
fi
