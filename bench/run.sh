#!/usr/bin/env bash
# The benchmark: what a request costs here, beside nginx and portkey; bench/README.md says what is measured and how to read it.
#   bench/run.sh [SECONDS [ROUNDS]] [--only NAME] [--json FILE] [--page]
# 4 seconds a measurement and 3 rounds without them, which takes about 12 minutes. --page writes docs/performance.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
build=$project/build-bench

# The gateway from npm. Without a registry it is left out, and the table says so.
install_portkey() {
    local folder=$build/portkey
    [[ -d $folder/node_modules/@portkey-ai/gateway ]] && cmp -s "$project/bench/portkey.json" "$folder/package.json" && return
    say "Installing @portkey-ai/gateway with npm …"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$project/bench/portkey.json" "$folder/package.json"
    if ! (cd "$folder" && npm install --fetch-retries 1 --no-package-lock --no-audit --no-fund --ignore-scripts) >"$build/portkey.log" 2>&1; then
        tail -n 5 "$build/portkey.log" >&2
        rm -rf "$folder"
        say "NO REGISTRY CAN BE REACHED BY npm: PORTKEY IS LEFT OUT."
    fi
}

case " $* " in *" --help "* | *" -h "*) exec python3 -B "$project/bench/bench.py" --help ;; esac
install_missing build run bench
say "Building (release) …"
run_quietly "configuring the build" cmake -S "$project" -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DSANDGATE_BENCH=ON
run_quietly "building" cmake --build "$build" --target bench
install_portkey
exec python3 -B "$project/bench/bench.py" --build "$build" "$@" # it ends all that it starts
