# What the scripts share: messages, installing what is missing, commands whose output matters only when they fail.
# To be sourced by a script in this folder after `set -euo pipefail`.
# shellcheck shell=bash

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

say() { printf '%s\n' "$*"; }
fail() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

# packages_missing GROUP… prints the Debian packages of the groups that are not installed.
packages_missing() {
    local group names name status
    declare -A seen=()
    while read -r group names; do
        [[ $group == \#* || " $wanted_groups " != *" $group "* ]] && continue
        for name in $names; do
            [[ $name == */* ]] && command -v "${name#*/}" >/dev/null && continue
            name=${name%/*}
            [[ -n ${seen[$name]-} ]] && continue
            seen[$name]=1
            status=$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)
            [[ $status == installed ]] || printf '%s\n' "$name"
        done
    done <"$project/scripts/packages.txt"
}

# install_missing GROUP… installs what is not there, with apt-get as root or through sudo, and says what.
install_missing() {
    local wanted_groups=$* missing as_root=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "This is no Debian: nothing is installed here; scripts/packages.txt names what is needed."
        return
    fi
    mapfile -t missing < <(packages_missing)
    ((${#missing[@]} == 0)) && return
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null ||
            fail "these packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "Installing what is missing: ${missing[*]}"
    run_quietly 'apt-get update' "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update
    run_quietly 'apt-get install' "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${missing[@]}"
}

# run_quietly TITLE COMMAND… shows the command's output only if it fails, and then its end.
run_quietly() {
    local title=$1 log
    shift
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1 </dev/null; then
        printf '\n%s failed; the end of what it said:\n\n' "$title" >&2
        tail -n 40 "$log" | sed 's/^/    /' >&2
        rm -f "$log"
        fail "$title"
    fi
    rm -f "$log"
}

# build_preset PRESET [CMAKE OPTION…]; target=NAME before it builds that one only
build_preset() {
    local preset=$1
    shift
    (
        cd "$project"
        run_quietly "configuring the $preset build" cmake -G Ninja --preset "$preset" "$@"
        run_quietly "building ($preset)" cmake --build --preset "$preset" ${target:+--target "$target"}
    )
}
