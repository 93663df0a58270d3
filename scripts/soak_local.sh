#!/usr/bin/env bash
# Many sessions of the sandbox 'local' that come and go, crash and are killed, behind the real gateway (tests/soak/soak_local.py
# says what is done and what must hold): a release build, then ten minutes. Prints figures every 5 s and the seed, with which the
# same is tried again. Exit 0: nothing is left and nothing grows.
#   scripts/soak_local.sh [--minutes N] [--sessions N] [--seed N] [--as-user]
# --as-user: as root, everything as an ordinary user without capabilities.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
prefix=() arguments=()
for argument in "$@"; do
    if [[ $argument == --as-user ]]; then
        prefix=("$project/tests/plugin_local/as_user.sh")
    else
        arguments+=("$argument")
    fi
done

install_missing build run
say "Building (release) …"
build_preset release
ulimit -n "$(ulimit -Hn)" # eight for each box
exec "${prefix[@]}" "$(command -v python3)" -B "$project/tests/soak/soak_local.py" "${arguments[@]}" "$project/build/bin/sandgate"
