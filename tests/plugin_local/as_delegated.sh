#!/bin/sh
# Runs a test program as an ordinary user (as_user.sh) in a control group of v2 that was made for him, as a service manager
# delegates one. 77: none can be made, which takes root and a tree of v2.
point=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group="$point$(sed -n 's/^0:://p' /proc/self/cgroup)/sandgate-test-$$"
[ "$(id -u)" = 0 ] && [ -n "$point" ] && mkdir "$group" 2>/dev/null || exit 77
chown -R 54321:54321 "$group"
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$(dirname "$0")/as_user.sh" "$@"
result=$?
rmdir "$group"/sandgate-main "$group" 2>/dev/null
[ -d "$group" ] && echo "$group is left, with: $(ls "$group")" >&2 && exit 1
exit $result
