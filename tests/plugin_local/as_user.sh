#!/bin/sh
# Runs a test program as an ordinary user without capabilities and with no_new_privs, as a service manager would. As root
# by changing to a uid that nobody has; else as it is. 77: that user cannot reach the program.
if [ "$(id -u)" != 0 ]; then
    exec "$@"
fi
drop="setpriv --reuid 54321 --regid 54321 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs"
$drop test -x "$1" || exit 77
exec $drop "$@"
