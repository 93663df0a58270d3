"""Runs a command where no further user namespace can be made (user.max_user_namespaces is 0), all ids being as outside.
As root: no_user_namespaces.py COMMAND [ARG …]"""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000


def main():
    entered_read, entered_write = os.pipe()
    pid = os.getpid()
    child = os.fork()
    if child == 0:  # stays outside, where it may map all ids
        os.read(entered_read, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write("0 0 4294967295")
        os._exit(0)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        sys.exit(f"no user namespace at all: {os.strerror(ctypes.get_errno())}")
    os.write(entered_write, b"x")
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the ids cannot be mapped")
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")
    os.close(entered_read)
    os.close(entered_write)
    os.execvp(sys.argv[1], sys.argv[1:])


main()
