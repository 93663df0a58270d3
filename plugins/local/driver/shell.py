# Shell commands. This text is put in front of driver.py's, which has the imports and constants.
#
# One shell carries out all commands of a box, so that directory, variables, functions and jobs last. It reads a command
# from a socket that commands do not have (it is closed while one runs), and says there that it has ended, so nothing that
# is printed can be taken for an end. A watcher, its parent, says how the shell itself has ended. Neither is a child of
# this process: Python code that waits for its children must not find others.

HOME = b"/home/user"  # where a shell starts, wherever Python code has gone meanwhile
SHELLS = ("/usr/bin/bash", "/bin/bash", "/usr/bin/sh", "/bin/sh")
EXITED, KILLED = range(2)  # why a shell is a new one, as in frames.h
INTERRUPTED = 130  # as a shell says it: 128 and the signal
CANNOT_RUN = 126
START_MS = 10000
LOOK_MS = 200  # between two looks at whether the watcher lives
ROUND_MS = 5
INSIST_S = 0.05
GENTLY_S = 0.05  # then what the command has started is killed
SHELL_S = 0.45  # then the shell too
PATIENCE_S = 0.75  # less than the gateway's

# Starts the watcher in the background, whence a shell would ignore interrupts, were it not for the trap.
STARTER = """umask 022
{ trap : INT QUIT TERM HUP; exec @COPY@>&2 2>/dev/null
"$0" -c "$1" bash "$2" "$3" 2>&@COPY@ @COPY@>&-; printf 'ended 0 %d\\n' $? >&@SOCKET@; } &
printf 'watcher 0 %d\\n' $! >&@SOCKET@
"""

# What follows is the shell's own, amid commands of a user: @CALL@ leads past functions that have the names of what is used,
# and no trace of it is seen, nor is the output of a trap on DEBUG.
SILENT = ">/dev/null 2>&1"

# The signal breaks off what runs, up to the loop; out of a function there is no way but to end.
BREAKING = (
    "trap '{ [[ -z $_sg_runs ]] || { [[ -z ${FUNCNAME-} ]] || @CALL@ kill -9 $$; @CALL@ break 1000; }; } @SILENT@' @SIGNAL@; "
)
BEGIN = (
    "_sg_loop=$1 _sg_line=$2 _sg_runs= _sg_again= _sg_status=0; set --; printf 'shell 0 %d\\n' $$ >&@SOCKET@; "
    'eval "$_sg_loop"'
)

# Between two commands nothing is traced and there is no trap on DEBUG: the next command begins by what has them again. Only
# into what is closed can it be seen without a process whether there is a trap.
PUT_TRAP_ASIDE = (
    '@CALL@ trap -p DEBUG >&- || { _sg_again="${_sg_again}@CALL@ $(@CALL@ trap -p DEBUG); "; @CALL@ trap - DEBUG; }; '
)
PUT_TRACE_ASIDE = "case $- in *x*) _sg_again=\"@CALL@ set -x; $_sg_again\"; @CALL@ set +x;; esac; "
DONE = "@ASIDE@@CALL@ printf 'done %s %d\\n' \"$_sg_id\" \"$_sg_status\" >&@SOCKET@; _sg_runs=; "

# Number of the command, number of its lines, the lines. Jobs that have died since are told to nobody. What breaks off a
# command breaks off the loop, and a new one begins; or only the inner one, since bash counts a loop of the command too few
# where the signal comes as that is entered. The end is a command's that has lost the socket, or the driver's.
LOOP = (
    "while { IFS= @CALL@ read -r _sg_id <&@SOCKET@ && IFS= @CALL@ read -r _sg_n <&@SOCKET@; } @SILENT@; do "
    '{ _sg_c=; while @CALL@ [ "$_sg_n" -gt 0 ]; do IFS= @CALL@ read -r _sg_l <&@SOCKET@; _sg_c=$_sg_c$_sg_l$_sg_line; '
    '_sg_n=$((_sg_n-1)); done; @CALL@ [ -z "$_sg_again" ] || _sg_c="{ _sg_again=; $_sg_again} 2>/dev/null; $_sg_c"; '
    "@CALL@ jobs; _sg_i=1 _sg_runs=1; } @SILENT@; "
    'while { @CALL@ [ "$_sg_i" ] && _sg_i=; } @SILENT@; do @CALL@ eval "$_sg_c" @SOCKET@<&-; done; '
    "{ _sg_status=$?; @DONE@} @SILENT@; done; "
    '{ @CALL@ [ "$_sg_runs" ] && { _sg_status=130; @DONE@}; } @SILENT@ && @CALL@ eval "$_sg_loop"; '
    '@CALL@ exit "$_sg_status"'
)


def own_text(text, is_bash):
    aside = PUT_TRAP_ASIDE + PUT_TRACE_ASIDE if is_bash else PUT_TRACE_ASIDE
    calling = "builtin" if is_bash else "command"
    for name, part in (("@DONE@", DONE), ("@ASIDE@", aside), ("@SILENT@", SILENT), ("@CALL@", calling)):
        text = text.replace(name, part)
    return text


def processes():
    """All processes of the box but those that have ended, and pid 1's: number and time of start."""
    found = set()
    for name in _listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if _stat(f"/proc/{name}").st_uid != posix.getuid():  # it cannot be looked into
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


def kill_quietly(pid, signal):
    try:
        _kill(pid, signal)
    except OSError:
        pass


class Handlers:
    """What the user's handlers of signals do is for Python's cells: in another run they wait until it has been answered."""

    mask = None  # of signals, while some are held

    def hold(self):
        held = []
        for number in range(1, _signal.NSIG):
            handler = _signal.getsignal(number)
            if number != _signal.SIGINT and handler is not None and not _isinstance(handler, int):
                held.append(number)
        if held:
            self.mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, held)

    def receive(self, receive):
        """The next request; what was held is heard before it comes."""
        if self.mask is not None:
            mask, self.mask = self.mask, None
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        request = receive()
        if request is not None and request[0] != b"R":
            self.hold()
        return request


class ShellGone(Exception):
    """With its exit status."""


class Shell:
    """A shell that runs."""

    told = ()  # kinds of lines beside those of all
    has_low_numbers = False  # of descriptors; high ones are in nobody's way
    is_settling = False  # an empty command runs, which takes what signals come late

    def __init__(self, environment, control):
        """FileNotFoundError if there is none."""
        import _socket

        self.control = control
        self.flags = _socket.MSG_NOSIGNAL
        self.received = b""
        self.pid = self.watcher = 0
        self.count = 0
        self.socket, theirs = _socket.socketpair()
        handed = {"@SOCKET@": theirs.detach()}
        try:
            try:
                self.hand_more(handed)
                _waitpid(self.spawn(handed, environment), 0)
            finally:
                for fd in handed.values():
                    _close(fd)
            self.await_start()
        except BaseException:
            self.end()
            raise

    def hand_more(self, handed):
        """What it gets beside its socket: name in the texts → descriptor, closed here afterwards."""

    def spawn(self, handed, environment):
        signals = [number for number in range(1, 32) if number not in (_signal.SIGKILL, _signal.SIGSTOP)]
        for path in SHELLS:
            is_bash = path.endswith("bash")
            # Other shells know numbers of one digit only. In bash it stands above what commands open as they like, and
            # within the limit of descriptors that one may set: behind it the socket is put back onto its number.
            last = 30 if is_bash and not self.has_low_numbers else 9
            numbers = {name: last - i for i, name in enumerate(("@COPY@", *handed))}
            texts = [STARTER, *self.texts(is_bash)]
            for name, number in numbers.items():
                texts = [text.replace(name, _str(number)) for text in texts]
            files = [(posix.POSIX_SPAWN_OPEN, 0, "/dev/null", posix.O_RDONLY, 0)]
            copies = []
            try:
                for name, fd in handed.items():
                    while fd in numbers.values():  # it would be overwritten before it is put in its place
                        fd = _dup(fd)
                        copies.append(fd)
                    files.append((posix.POSIX_SPAWN_DUP2, fd, numbers[name]))
                return _posix_spawn(path, [path.rpartition("/")[2], "-c", texts[0], path, *texts[1:]],
                                    environment, file_actions=files, setpgroup=0, setsigmask=(), setsigdef=signals)
            except FileNotFoundError:
                continue
            finally:
                for copy in copies:
                    _close(copy)
        raise FileNotFoundError

    def texts(self, is_bash):
        """What the watcher's shell carries out, and two arguments of that."""
        self.signal = _signal.SIGRTMIN + 9 if is_bash else _signal.SIGKILL
        breaking = BREAKING.replace("@SIGNAL@", _str(int(self.signal))) if is_bash else ""
        return own_text(breaking + BEGIN, is_bash), own_text(LOOP, is_bash), "\n"

    def numbers(self):
        return {self.pid, self.watcher}

    def line(self, wait_ms):
        """None if none came; ShellGone at the end."""
        while b"\n" not in self.received:
            poll = _poll()
            poll.register(self.socket.fileno(), select.POLLIN)
            if not poll.poll(wait_ms):
                return None
            try:
                data = self.socket.recv(PACKET_MAX)
            except OSError:
                data = b""
            if not data:
                raise ShellGone(128 + _signal.SIGKILL)
            self.received += data
        line, _, self.received = self.received.partition(b"\n")
        return line

    def word(self, wait_ms):
        """What a line says: kind, number of the command, number; None if none came, or one that is none. ShellGone if it
        is the shell's end."""
        line = self.line(wait_ms)
        if line is None:
            return None
        try:
            kind, count, number = line.split()
            if kind in self.told:
                self.tell(kind, int(count), number)
                return None
            word = kind, int(count), int(number)
        except ValueError:
            return None
        if kind == b"ended":
            raise ShellGone(word[2] & 255)
        return word

    def await_start(self):
        """The two say their numbers, whoever comes first."""
        for _ in range(START_MS // LOOK_MS):
            kind, _, number = self.word(LOOK_MS) or (None, 0, 0)
            if kind == b"watcher":
                self.watcher = number
            elif kind == b"shell":
                self.pid = number
            if self.pid > 1 and self.watcher > 1:
                return
        raise ShellGone(CANNOT_RUN)

    def begin(self, command):
        """Whole, or not at all: half of a command would never be answered."""
        self.control.hold()
        self.count += 1
        lines = command.count(b"\n") + 1
        try:
            self.socket.sendall(b"%d\n%d\n%s\n" % (self.count, lines, command), self.flags)
        except OSError:
            pass  # its end is about to be told
        self.control.release()

    def status(self, wait_ms):
        kind, count, number = self.word(wait_ms) or (None, 0, 0)
        return number & 255 if kind == b"done" and count == self.count else None

    def has_ended(self):
        """Looks once, without waiting, and at all lines that came with it: the end stands behind what was printed."""
        done = self.status(0) is not None
        while not done and b"\n" in self.received:
            done = self.status(0) is not None
        return done

    def wait(self):
        while True:
            status = self.status(LOOK_MS)
            if status is not None:
                return status
            try:
                _kill(self.watcher, 0)
            except OSError:
                raise ShellGone(128 + _signal.SIGKILL)

    def is_there(self):
        """Between two commands."""
        try:
            self.word(0)
            _kill(self.watcher, 0)
            return True
        except (ShellGone, OSError):
            return False

    def interrupt(self):
        """What is waited for from here on is an empty command: its own may not have begun, or have ended already."""
        self.is_settling = False
        self.insist_at = 0
        self.begin(b"")

    def insist(self):
        """The first signal may come before the command has begun."""
        from time import monotonic as now

        if not self.is_settling and now() >= self.insist_at:
            self.insist_at = now() + INSIST_S
            kill_quietly(self.pid, self.signal)

    def has_settled(self):
        """All signals have been sent, but the shell may have yet to see the last: another empty command comes behind it."""
        if not self.is_settling:
            self.is_settling = True
            self.begin(b"")
            return False
        return True

    def end(self):
        for pid in self.numbers():
            if pid > 1:
                kill_quietly(pid, _signal.SIGKILL)
        self.socket.close()


class Lasting:
    """Runs what it is given in a shell (or what is like one) that lasts; when it has ended, in a new one."""

    def __init__(self, control, kind):
        self.control = control
        self.kind = kind
        self.environment = dict(posix.environ)
        self.shell = None
        self.lost = None  # why there is none any more

    def start(self):
        """The directory is the process's: it changes for a moment, and back."""
        try:
            back = _open(".", posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
        except OSError:
            back = -1
        handler = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, ends could not be waited for
        try:
            _chdir(HOME)
            self.shell = self.kind(self.environment, self.control)
        except ShellGone:
            raise OSError(0, "it did not start")
        finally:
            if handler is not None:  # of C code
                _signal.signal(_signal.SIGCHLD, handler)
            if back >= 0:
                _fchdir(back)
                _close(back)

    def lose(self, why):
        if self.shell is not None:
            self.shell.end()
            self.shell = None
        self.lost = why

    def have_shell(self):
        if self.shell is not None and not self.shell.is_there():
            self.lose(EXITED)
        if self.shell is None:
            self.start()
        if self.lost is not None:
            self.control.send(b"T", bytes((self.lost,)))
            self.lost = None

    def break_off(self, before):
        """Ends what the command has started, wherever it has gone; what was there before is another's. The shell lives
        on if it leaves the command in time."""
        from time import monotonic as now

        begun, shell = now(), self.shell
        done = shell is None
        if not done:
            shell.interrupt()
        while now() < begun + PATIENCE_S:
            try:
                if not done:
                    shell.insist()
                    done = shell.has_ended() and shell.has_settled()
                if not done and now() > begun + SHELL_S:
                    raise ShellGone
            except ShellGone:
                self.lose(KILLED)
                done, shell = True, None
            left = {pid for pid, _ in processes() - before} - (set() if shell is None else shell.numbers())
            if done and not left:
                break
            # Of this signal a shell does not tell.
            signal = _signal.SIGPIPE if not done and now() < begun + GENTLY_S else _signal.SIGKILL
            for pid in left:
                kill_quietly(pid, signal)
            _poll().poll(ROUND_MS)

    def run_and_wait(self, command):
        """Its status. FileNotFoundError if there is nothing to run it in, ShellGone if that has ended."""
        before = processes()
        try:
            self.have_shell()
            before = processes()
            self.shell.begin(command)
            return self.shell.wait()
        except ShellGone:
            self.lose(EXITED)
            raise
        except BaseException as error:
            self.control.sending += 1  # a second interrupt would leave half of it alive
            if not _isinstance(error, FileNotFoundError):
                self.break_off(before)
            self.control.interrupted = False
            self.control.sending -= 1
            raise


class Commands(Lasting):
    def run(self, command):
        """Its exit status; None if there is no shell."""
        try:
            if b"\0" in command:
                raise ValueError
            return self.run_and_wait(command)
        except ShellGone as gone:
            return gone.args[0]
        except KeyboardInterrupt:
            return INTERRUPTED
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # with a NUL; no process to be had
            reason = _getattr(error, "strerror", None) or "the command holds a NUL"
            self.control.send(b"E", as_bytes(f"the command cannot be run: {reason}\n"))
            return CANNOT_RUN
