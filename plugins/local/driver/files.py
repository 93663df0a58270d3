# Files for the gateway, read and written by the box's own rights. This text is put in front of driver.py's, which has the
# imports and constants.

FILE_MAX = 10 << 20  # as in files.c
ENTRIES_MAX = 10000  # likewise
(NOT_FOUND, IS_FOLDER, NO_FOLDER, NO_FILE, TOO_LARGE, DENIED, DISK_FULL, OTHER, NO_SHELL) = range(9)  # as in frames.h
FILE, FOLDER, ELSE = range(3)


class Refused(Exception):
    pass


def reason_of(error):
    import errno

    if _isinstance(error, Refused):
        return error.args[0]
    return {errno.ENOENT: NOT_FOUND, errno.EISDIR: IS_FOLDER, errno.ENOTDIR: NO_FOLDER, errno.ENXIO: NO_FILE,
            errno.EACCES: DENIED, errno.EPERM: DENIED, errno.EROFS: DENIED, errno.ENOSPC: DISK_FULL,
            errno.EFBIG: TOO_LARGE}.get(_getattr(error, "errno", None), OTHER)


def kind_of(mode):
    kind = mode & 0o170000
    return FILE if kind == 0o100000 else FOLDER if kind == 0o040000 else ELSE


def must_be_file(mode):
    if kind_of(mode) != FILE:
        raise Refused(IS_FOLDER if kind_of(mode) == FOLDER else NO_FILE)


def write_all(fd, data):
    while data:
        data = data[_write(fd, data) :]


class Files:
    def __init__(self, control):
        self.control = control
        self.count = 0

    @staticmethod
    def path_of(name):
        return name if name[:1] == b"/" else HOME + b"/" + name

    def get(self, name):
        flags = posix.O_RDONLY | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_CLOEXEC
        fd = _open(self.path_of(name), flags)
        try:
            state = _fstat(fd)
            must_be_file(state.st_mode)
            left = FILE_MAX
            while True:
                data = _read(fd, PACKET_BODY)
                left -= _len(data)
                if left < 0 or state.st_size > FILE_MAX:
                    raise Refused(TOO_LARGE)
                if not data:
                    return
                self.control.send(b"D", data)
        finally:
            _close(fd)

    def list(self, name):
        path = self.path_of(name)
        names = _listdir(path)
        if _len(names) > ENTRIES_MAX:
            raise Refused(TOO_LARGE)
        for entry in sorted(names):
            whole = path + b"/" + entry
            try:
                state = _stat(whole)
            except OSError:  # a link that leads nowhere
                kind, size = ELSE, 0
            else:
                kind = kind_of(state.st_mode)
                size = state.st_size if kind == FILE else 0
            self.control.send(b"N", bytes((kind,)) + size.to_bytes(8, sys.byteorder) + entry)

    def pieces(self, nonce):
        """The content, as it comes; to the last piece."""
        while True:
            packet = self.control.receive()
            if not packet:
                _exit(0)  # the gateway is gone
            if packet[:1] == b"W" and packet[2:10] == nonce:
                yield packet[10:]
                if not packet[1] & MORE:
                    return

    def write(self, fd, target, temporary, mode, pieces):
        try:
            for piece in pieces:
                write_all(fd, piece)
            if mode is not None:
                posix.fchmod(fd, mode)
            posix.rename(temporary, target)
        except BaseException:
            posix.unlink(temporary)
            raise
        finally:
            _close(fd)

    def put(self, name, pieces):
        """Whole or not at all: into a file of its own, which then takes the place of the old one."""
        import os

        if name[-1:] == b"/":
            raise Refused(IS_FOLDER)
        target = os.path.realpath(self.path_of(name))
        folder = os.path.dirname(target)
        try:
            state = _stat(target)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            mode = None
        else:
            must_be_file(state.st_mode)
            if not os.access(target, os.W_OK):
                raise Refused(DENIED)
            mode = state.st_mode & 0o7777
        self.count += 1
        temporary = folder + b"/.put-%d-%d" % (_getpid(), self.count)
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC
        self.write(_open(temporary, flags, 0o666), target, temporary, mode, pieces)

    def serve_put(self, name, nonce):
        pieces = self.pieces(nonce)
        try:
            self.put(name, pieces)
        except (OSError, Refused):
            for _ in pieces:  # they come all the same
                pass
            raise

    def serve(self, kind, nonce, name):
        """Why it was refused, or None."""
        try:
            if kind == b"G":
                self.get(name)
            elif kind == b"L":
                self.list(name)
            else:
                self.serve_put(name, nonce)
        except BaseException as error:
            return reason_of(error)
