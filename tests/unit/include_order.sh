#!/usr/bin/env bash
# A folder of core/ includes only what stands to its left: base ← conf ← loop ← http ← plugin ← session ← surface ← translate ←
# gateway; plugins include the public header and their own files alone. Prints each include that breaks it.
#   tests/unit/include_order.sh PROJECT
set -euo pipefail
cd "$1"
order=(base conf loop http plugin session surface translate gateway)
failures=0

complain() {
    printf '%s\n' "$1"
    failures=$((failures + 1))
}

# includes_of FILE… prints FILE:LINE:FOLDER for each include of a core header by its folder.
includes_of() {
    grep -nHoE '^#include "[a-z]+/' "$@" | sed -E 's/#include "([a-z]+)\/$/\1/' || true
}

known=" "
for folder in "${order[@]}"; do
    known+="$folder "
    compgen -G "core/$folder/*.[ch]" >/dev/null || { complain "core/$folder has no files"; continue; }
    while IFS=: read -r file line included; do
        [[ $included == sandgate || $known == *" $included "* ]] ||
            complain "$file:$line: $folder may not include $included/"
    done < <(includes_of core/"$folder"/*.[ch])
done

while IFS=: read -r file line included; do
    [[ $included == sandgate ]] && continue
    for folder in "${order[@]}"; do
        [[ $included != "$folder" ]] || complain "$file:$line: a plugin may not include the core's $included/"
    done
done < <(find plugins -name '*.[ch]' -print0 | xargs -0 -r grep -nHoE '^#include "[a-z]+/' | sed -E 's/#include "([a-z]+)\/$/\1/' || true)

while IFS= read -r hit; do
    complain "$hit: the public header includes only the C library's"
done < <(grep -nHE '^#include "' core/include/sandgate/*.h || true)

if ((failures > 0)); then
    printf '%d includes break the order\n' "$failures"
    exit 1
fi
echo 'the order holds'
