#!/bin/sh
# on_cgroup_v2.sh PROGRAM…: runs test programs of this folder where control groups of v2 have all controllers, whatever the
# machine's own kernel does: on a kernel of User Mode Linux, which is a program and needs no rights. Each program has a group of
# its own there, as a service manager makes one, once as root and once as an ordinary user to whom it is delegated. Its files are
# the machine's, read-only but for /tmp.
#
# 77: there is no linux.uml. Debian: apt-get install user-mode-linux; or LINUX_UML=/path/of/linux.uml
uml=${LINUX_UML:-$(command -v linux.uml)} || { echo "no linux.uml here"; exit 77; }
work=$(mktemp -d) || exit 1
# What is that machine's memory lies in a file: where a disk is behind it, all would wait for that.
memory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p "$work") || exit 1
trap 'rm -rf "$work" "$memory"' EXIT
cat >"$work/init" <<'END'
#!/bin/sh
# The first process of that machine; the folder with its work comes as an argument of the kernel.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmp /dev/shm 2>/dev/null
mount -t devpts devpts /dev/pts 2>/dev/null
mkdir /sys/fs/cgroup/first
echo $$ >/sys/fs/cgroup/first/cgroup.procs
echo "+memory +pids +cpu" >/sys/fs/cgroup/cgroup.subtree_control
mount --bind "$WORK" /mnt # /tmp, where it is, goes
mount -t tmpfs tmp /tmp
chmod 1777 /tmp
run() { # run USER PROGRAM: with its parent, as a gateway has one, in one group
    group=/sys/fs/cgroup/$1-$(basename "$2")
    mkdir "$group"
    chown -R "$1" "$group"
    echo "== as $1, with $(cat "$group/cgroup.controllers"): $2"
    as="setpriv --reuid $1 --regid $1 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs"
    [ "$1" = 0 ] && as=
    sh -c 'echo $$ >"$0/cgroup.procs"; exec $1 sh -c "\"\$0\"; exit \$?" "$2"' "$group" "$as" "$2" 2>&1
    [ $? = 0 ] || failed=1
}
exec </dev/null >/mnt/out 2>&1
failed=0
while read -r program; do
    run 0 "$program"
    run 54321 "$program"
done </mnt/programs
echo $failed >/mnt/result
exec 1>&- 2>&-
sync
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
END
chmod 755 "$work" "$work/init"
printf '%s\n' "$@" >"$work/programs"
HOME=$memory TMPDIR=$memory "$uml" mem=2000M root=/dev/root rootfstype=hostfs rootflags=/ rw init="$work/init" \
    WORK="$work" uml_dir="$memory" con=null con0=null ssl=null </dev/null >"$work/kernel" 2>&1
cat "$work/out" 2>/dev/null
[ -f "$work/result" ] || { tail -n 20 "$work/kernel"; echo "it ended before its tests had"; exit 1; }
exit "$(cat "$work/result")"
