"""What the open descriptors of another process are, its sockets above all.

A socket is asked itself, through a copy of its descriptor: the kernel's tables of all connections cost milliseconds to walk.
Where no copy may be made (a container engine's filter, an older kernel), the tables are read.
"""
import ctypes
import errno
import os
import pathlib
import socket

PIDFD_GETFD = 438  # the number of the call on all architectures
TCP_CLOSE = 7  # state of tcp(7)'s TCP_INFO: neither connecting, connected nor listening
RESET_MAX = 8

_library = ctypes.CDLL(None, use_errno=True)


def targets(pid):
    """Number → what it is open on, as /proc tells: "socket:[INODE]", "pipe:[INODE]", a path."""
    found = {}
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found  # the process has ended meanwhile
    for name in names:
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue  # closed meanwhile
    return found


class NoCopies(Exception):
    """Descriptors of the process cannot be copied here."""


def _copy(pidfd, number):
    """A socket object of another process's socket; None if that was closed meanwhile."""
    copy = _library.syscall(PIDFD_GETFD, pidfd, number, 0)
    if copy >= 0:
        return socket.socket(fileno=copy)
    if ctypes.get_errno() in (errno.EBADF, errno.ESRCH):
        return None
    raise NoCopies


def _kind(sock, ports):
    """"pair", "towards", "reset", or "" for any other."""
    if sock.family == socket.AF_UNIX:
        return "" if sock.getsockname() else "pair"
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or sock.type != socket.SOCK_STREAM:
        return ""
    try:
        return "towards" if sock.getpeername()[1] in ports else ""
    except OSError:
        state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return "reset" if state == TCP_CLOSE else ""


def _kinds_asked(pid, numbers, ports):
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return []
    kinds = []
    try:
        for number in numbers:
            sock = _copy(pidfd, number)
            if sock is not None:
                with sock:
                    kinds.append(_kind(sock, ports))
    finally:
        os.close(pidfd)
    return kinds


def _table(pid, name):
    try:
        lines = pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    except OSError:
        return []  # it has ended meanwhile
    return [line.split() for line in lines]


def _kinds_read(pid, inodes, ports):
    rows = {name: _table(pid, name) for name in ("tcp", "tcp6", "unix", "udp", "netlink")}
    pairs = {fields[6] for fields in rows["unix"] if len(fields) == 7}
    upstream = {fields[9] for name in ("tcp", "tcp6") for fields in rows[name]
                if int(fields[2].rsplit(":", 1)[1], 16) in ports}
    known = {field for table in rows.values() for fields in table for field in fields}
    return ["pair" if inode in pairs else "towards" if inode in upstream else "" if inode in known else "reset"
            for inode in inodes]


def socket_kinds(pid, ports=frozenset()):
    """For each socket of the process: "pair" (a unix socket without a name), "towards" (its other end is one of these
    local ports), "reset" (TCP that the other end has reset), or ""."""
    sockets = {number: target[8:-1] for number, target in targets(pid).items() if target.startswith("socket:[")}
    try:
        return _kinds_asked(pid, sockets, ports)
    except NoCopies:
        return _kinds_read(pid, sockets.values(), ports)


def count(pid, ports):
    """Open descriptors. Connections kept to upstreams do not count, also where the other end has reset them: those go when
    libcurl looks for one that it may use again; a loop has some for each upstream, and more than RESET_MAX are a leak. Nor
    do socket pairs: each loop makes some for its transfers, in its own time."""
    kinds = socket_kinds(pid, ports)
    others = sum(not target.startswith("socket:[") for target in targets(pid).values())
    reset = kinds.count("reset")
    return others + kinds.count("") + (reset if reset > RESET_MAX else 0)
