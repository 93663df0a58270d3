# Shell commands. This text is put in front of driver.py's, which has the imports and constants.

HOME = b"/home/user"  # where commands start and relative paths begin, wherever Python code has gone meanwhile
SHELLS = ("/usr/bin/bash", "/bin/bash", "/usr/bin/sh", "/bin/sh")
INTERRUPTED = 130  # as a shell says it: 128 and the signal
CANNOT_RUN = 126
KILL_ROUNDS = 100  # of KILL_MS each: less than the gateway's patience
KILL_MS = 5


def processes():
    """All processes of the box but those that have ended: number and time of start."""
    found = set()
    for name in _listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if _stat(f"/proc/{name}").st_uid != posix.getuid():  # pid 1's: it cannot be looked into
                continue
            fd = _open(f"/proc/{name}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:  # it has ended
            continue
        try:
            fields = _read(fd, 4096).rpartition(b")")[2].split()
        except OSError:
            continue
        finally:
            _close(fd)
        if _len(fields) > 19 and fields[0] not in (b"Z", b"X"):
            found.add((int(name), fields[19]))
    return found


class Commands:
    """Each is run by a shell of its own, in a process group of its own, with the surroundings that the box began with.
    What it leaves running in the background goes on, as what Python code starts does."""

    def __init__(self, control):
        self.control = control
        self.environment = dict(posix.environ)

    def spawn(self, command):
        """None if there is no shell."""
        files = [(posix.POSIX_SPAWN_OPEN, 0, "/dev/null", posix.O_RDONLY, 0)]
        signals = [number for number in range(1, 32) if number not in (_signal.SIGKILL, _signal.SIGSTOP)]
        for shell in SHELLS:
            try:
                return _posix_spawn(shell, [shell.rpartition("/")[2], "-c", command], self.environment,
                                    file_actions=files, setpgroup=0, setsigmask=(), setsigdef=signals)
            except FileNotFoundError:
                continue
        return None

    def spawn_at_home(self, command):
        """The directory is the process's: it changes for a moment, and back."""
        try:
            back = _open(".", posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
        except OSError:
            back = -1
        try:
            _chdir(HOME)
            return self.spawn(command)
        finally:
            if back >= 0:
                _fchdir(back)
                _close(back)

    def kill(self, pid, before):
        """All that the command has started, wherever it has gone: what was there before is another's."""
        try:
            _kill(-pid, _signal.SIGKILL)
        except OSError:
            pass
        for _ in range(KILL_ROUNDS):
            left = processes() - before
            if not left:
                break
            for number, _ in left:
                try:
                    _kill(number, _signal.SIGKILL)
                except OSError:
                    pass
            _poll().poll(KILL_MS)
        try:
            _waitpid(pid, posix.WNOHANG)
        except OSError:
            pass

    def wait(self, pid):
        try:
            status = _waitpid(pid, 0)[1]
        except ChildProcessError:  # a thread of Python code has waited for it
            return 0
        return 128 + posix.WTERMSIG(status) if posix.WIFSIGNALED(status) else posix.WEXITSTATUS(status)

    def run_and_wait(self, command):
        pid, before = None, processes()
        try:
            self.control.hold()
            try:
                pid = self.spawn_at_home(command)
            finally:
                self.control.release()  # an interrupt comes now, when it is known what to kill
            return None if pid is None else self.wait(pid)
        except BaseException:
            self.control.sending += 1  # a second one would leave half of it alive
            if pid is not None:
                self.kill(pid, before)
            self.control.interrupted = False
            self.control.sending -= 1
            raise

    def run(self, command):
        """Its exit status; None if there is no shell."""
        handler = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, ends could not be waited for
        try:
            return self.run_and_wait(command)
        except KeyboardInterrupt:
            return INTERRUPTED
        except (OSError, ValueError) as error:  # too long, with a NUL; no process to be had
            reason = _getattr(error, "strerror", None) or "the command holds a NUL"
            self.control.send(b"E", as_bytes(f"the command cannot be run: {reason}\n"))
            return CANNOT_RUN
        finally:
            if handler is not None:  # of C code
                _signal.signal(_signal.SIGCHLD, handler)
