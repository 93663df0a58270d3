"""The interpreter's side of a box: reads cells from the control socket, runs them in one namespace, and sends what they
print, show and raise. Between cells it has shell commands (shell.py) and JavaScript (node.py) run.

It shares its process with the user's code, so nothing here is a boundary and nothing that it sends is trusted: the
gateway believes of it only that the box said so. What it has to be is hard to break by accident.

A packet is KIND, FLAGS, NONCE (8 bytes), BODY; the nonce is the current cell's (see frames.h for all kinds).

It runs without site (-S) and imports only what is built into the interpreter and quick, since the time until a first
output is mostly that of imports. What else is needed comes with its first use, or while there is nothing to do (see
Lines here, and Site in packages.py). The texts of the other files stand in front of this one.
"""
import _signal
import _thread
import builtins
import fcntl
import posix
import select
import sys

CONTROL_FD = 3
PACKET_BODY = 32768
PACKET_MAX = 65536
RESERVE = 1 << 21  # memory kept back, so that a cell can free some when earlier ones have left none
MORE = 1
REQUESTS = (b"R", b"B", b"J")  # code, a command, JavaScript
NO_SHELL, NO_NODE = range(2)  # as in frames.h
TEXT_MAX = 1 << 20  # of one repr or other representation
TRACEBACK_MAX = 20000
ERROR_NAME_MAX = 256  # bytes: the gateway takes no more
FIONREAD = 0x541B
COROUTINE = 0x80  # in co_flags of a cell with a top-level await
ONLY_AST = 0x400
TOP_LEVEL_AWAIT = 0x2000
PACKAGES = None  # the folders of packages, where they were known when this was compiled
IDLE_MS = 20  # without a cell, after which what is late is made up for

# Bound now, so that a cell that replaces one of these in its module does not take the driver along.
_compile, _eval, _getpid, _exit = compile, eval, posix.getpid, posix._exit
_readv, _read, _write = posix.readv, posix.read, posix.write
_open, _close, _dup, _stat, _listdir = posix.open, posix.close, posix.dup, posix.stat, posix.listdir
_posix_spawn, _waitpid, _kill, _chdir, _fchdir = posix.posix_spawn, posix.waitpid, posix.kill, posix.chdir, posix.fchdir
_ioctl, _poll, _lock_new, _ident = fcntl.ioctl, select.poll, _thread.RLock, _thread.get_ident
_isinstance, _len, _str, _type, _getattr = isinstance, len, str, type, getattr


def as_bytes(text):
    return text.encode("utf-8", "backslashreplace")


def kind_of(mode):
    return mode & 0o170000


def as_base64(data):
    import binascii

    return binascii.b2a_base64(data, newline=False)


class Control:
    """The socket to the gateway. A forked copy of the process has none: its output goes to the pipes."""

    def __init__(self, fd):
        self.fd = fd  # of a socket that keeps packets apart: a read or write is one
        self.pid = self.thread = -1
        self.lock = _lock_new()  # held over all packets of one value
        self.buffer = memoryview(bytearray(PACKET_MAX))  # there also when memory is short
        self.nonce = b"\0" * 8
        self.running = False  # a cell runs: output is wanted, an interrupt means it
        self.sending = 0  # within send() in the main thread: an interrupt has to wait
        self.interrupted = False
        self.threads = Threads(self)

    def attach(self):
        """From here on there is a connection."""
        posix.set_inheritable(self.fd, False)
        self.pid, self.thread = _getpid(), _ident()
        posix.register_at_fork(after_in_child=self.forget)

    def forget(self):
        self.pid = -1
        try:
            posix.close(self.fd)
        except OSError:
            pass

    def is_mine(self):
        return self.pid == _getpid()

    def patiently(self, function, argument, event):
        """The user may have made the socket non-blocking: it is shared."""
        while True:
            try:
                return function(self.fd, argument)
            except BlockingIOError:
                poll = _poll()
                poll.register(self.fd, event)
                poll.poll()

    @staticmethod
    def is_empty(fd):
        try:
            return _ioctl(fd, FIONREAD, b"\0\0\0\0") == b"\0\0\0\0"
        except OSError:  # the user has closed it, or put something else in its place
            return True

    def sync(self):
        """What subprocesses wrote to the pipes comes before what is sent next: asks the gateway to read them first, and
        waits until it has. With the lock held, and only while a cell runs: nobody else waits for packets then."""
        if self.is_empty(1) and self.is_empty(2):
            return
        self.patiently(_write, b"S\0" + self.nonce, select.POLLOUT)
        answer = None
        while answer != b"S\0" + self.nonce:
            answer = self.receive()
            if not answer:
                _exit(0)  # the gateway is gone

    def hold(self):
        """From here to release() an interrupt waits, so that no value is sent in part."""
        if _ident() == self.thread:
            self.sending += 1

    def release(self):
        if _ident() == self.thread:
            self.sending -= 1
            self.raise_interrupt()

    def hello(self):
        _write(self.fd, b"H\0" + self.nonce + sys.version.split()[0].encode())

    def send(self, kind, body=b"", flags=0):
        if not self.running or not self.is_mine() or self.threads.is_left_over():
            return
        self.hold()
        try:
            with self.lock:
                if not self.running:  # it has ended while this thread waited for the lock
                    return
                self.sync()
                head = kind + bytes((flags,)) + self.nonce
                self.patiently(_write, head + body, select.POLLOUT)
        finally:
            self.release()

    def send_long(self, kind, prefix, data):
        """One value in several packets, each with the prefix."""
        self.hold()
        try:
            with self.lock:
                for start in range(0, _len(data) or 1, PACKET_BODY):
                    more = MORE if start + PACKET_BODY < _len(data) else 0
                    self.send(kind, prefix + data[start : start + PACKET_BODY], more)
        finally:
            self.release()

    def send_error(self, parts):
        """Name, value and traceback."""
        self.sending += 1  # an interrupt now would be one too many
        with self.lock:
            for field, text in enumerate(parts):
                self.send_long(b"X", bytes((field,)), as_bytes(text))
        self.interrupted = False
        self.sending -= 1

    def raise_interrupt(self):
        if self.interrupted and self.sending == 0 and self.running:
            self.interrupted = False
            raise KeyboardInterrupt

    def on_interrupt(self, *_):
        if not self.running or not self.is_mine():
            return
        if self.sending:
            self.interrupted = True
            return
        raise KeyboardInterrupt

    def run_begins(self):
        """From here on a signal means this run. One that came before is lost, but not the packet that came before it."""
        self.running = True
        poll = _poll()
        poll.register(self.fd, select.POLLIN)
        while poll.poll(0):
            packet = self.receive()
            if not packet:
                _exit(0)  # the gateway is gone
            if packet == b"I\0" + self.nonce:
                raise KeyboardInterrupt

    def is_idle(self):
        """No packet comes for a moment."""
        poll = _poll()
        poll.register(self.fd, select.POLLIN)
        return not poll.poll(IDLE_MS)

    def receive(self):
        """One packet; empty once the gateway is gone."""
        return bytes(self.buffer[: self.patiently(_readv, [self.buffer], select.POLLIN)])

    def receive_request(self):
        """The next request's kind, nonce and text: code or a command. None once the gateway is gone."""
        parts, begun = [], None
        while True:
            packet = self.receive()
            if not packet:
                return None
            if packet[:1] not in REQUESTS:  # what is left of an earlier one
                continue
            if packet[:1] + packet[2:10] != begun:  # another one was given up in the middle
                parts, begun = [], packet[:1] + packet[2:10]
            parts.append(packet[10:])
            if not packet[1] & MORE:
                return packet[:1], packet[2:10], b"".join(parts)


def make_stream_class():
    # io is imported by the interpreter's start already; its classes are made here to keep the names together.
    import io

    class Bytes(io.RawIOBase):
        """sys.stdout.buffer"""

        def __init__(self, stream):
            self.stream = stream

        def writable(self):
            return True

        def fileno(self):
            return self.stream.fileno()

        def write(self, data):
            data = bytes(data)
            self.stream.put(data)
            return _len(data)

    class Stream(io.TextIOBase):
        """sys.stdout and sys.stderr: every write is a packet, in order with results and with each other."""

        encoding = "utf-8"
        errors = "backslashreplace"
        line_buffering = False

        def __init__(self, control, name, kind, fd):
            self.control, self.kind, self.fd = control, kind, fd
            self.name = name
            self.buffer = Bytes(self)

        def writable(self):
            return True

        def isatty(self):
            return False

        def fileno(self):
            return self.fd

        def reconfigure(self, **_):
            pass

        def close(self):
            pass

        def put(self, data):
            if not self.control.is_mine():
                while data:
                    data = data[_write(self.fd, data) :]
                return
            for start in range(0, _len(data), PACKET_BODY):
                self.control.send(self.kind, data[start : start + PACKET_BODY])

        def write(self, text):
            if not _isinstance(text, _str):
                raise TypeError(f"write() argument must be str, not {_type(text).__name__}")
            self.put(as_bytes(text))
            return _len(text)

    return Stream


def is_cell(name):
    return name.startswith("<cell-")


def is_own(error):
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename == is_own.__code__.co_filename


def trim(traceback):
    """The frames from the first of a cell to the last before the driver's own (its signal handler, its streams)."""
    while traceback is not None and not is_cell(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    while frames and frames[-1].tb_frame.f_code.co_filename == trim.__code__.co_filename:
        frames.pop()
    trimmed = None
    for frame in reversed(frames):
        trimmed = _type(frame)(trimmed, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return trimmed


def trim_all(error, seen=None):
    """The same for the errors that this one came from."""
    seen = seen if seen is not None else set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = trim(error.__traceback__)
        trim_all(error.__cause__, seen)
        error = error.__context__


def cut_middle(text, limit):
    if _len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {_len(text) - 2 * half} characters left out …\n{text[-half:]}"


def describe(error):
    """Name, value and traceback of an error; whatever its own methods do."""
    name = as_bytes(_type(error).__name__)[:ERROR_NAME_MAX].decode("utf-8", "ignore")
    try:
        value = _str(error)
    except BaseException:
        value = "<its text cannot be made>"
    try:
        import traceback

        trim_all(error)
        lines = traceback.format_exception(_type(error), error, error.__traceback__)
        text = "".join(lines)
    except BaseException:
        text = f"{name}: {cut_middle(value, 1000)}\n"
    return name, cut_middle(value, 4000), cut_middle(text, TRACEBACK_MAX)


class Lines:
    """The source of cells, for tracebacks. It belongs into linecache, which is imported (with re and tokenize) only when
    somebody wants it."""

    def __init__(self):
        self.entries = {}
        self.loader = None
        sys.meta_path.insert(0, self)

    def add(self, name, code):
        cache = _getattr(sys.modules.get("linecache"), "cache", self.entries)
        cache[name] = (_len(code), None, code.splitlines(True), name)

    def find_spec(self, name, path=None, target=None):
        if name != "linecache" or not leave(self):
            return None
        spec = find_elsewhere(name, path, target)
        if spec is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        module.cache.update(self.entries)
        self.entries = {}


class Driver:
    def __init__(self):
        self.control = Control(CONTROL_FD)
        self.shows = Shows(self.control)
        self.count = 0
        self.loop = None
        self.handlers = Handlers()
        self.commands = Commands(self.control, Shell)
        self.scripts = Scripts(self.control, Node)
        self.control.shows = self.shows
        self.site = Site()
        self.lines = Lines()
        self.ast = None
        self.is_warm = False
        self.reserve = None
        main = _type(sys)("__main__")
        main.__builtins__ = builtins
        main.display = self.shows.display
        sys.modules["__main__"] = main
        self.names = main.__dict__
        stream = make_stream_class()
        self.stdout = stream(self.control, "<stdout>", b"O", 1)
        self.stderr = stream(self.control, "<stderr>", b"E", 2)

    def reset(self):
        """What an earlier cell may have left in another state."""
        sys.stdout, sys.stderr = self.stdout, self.stderr
        _signal.signal(_signal.SIGINT, self.control.on_interrupt)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGINT,))

    def run_await(self, coroutine):
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # interrupted: it must not go on in a later cell
                task.cancel()
                try:
                    self.loop.run_until_complete(task)
                except BaseException:
                    pass
            raise

    async def run_in_loop(self, codes):
        for code in codes:
            value = _eval(code, self.names)
            if code.co_flags & COROUTINE:
                value = await value
        return value

    def run_codes(self, codes):
        """The value of the last. Where one awaits, all have a running loop: tasks are made before they are awaited."""
        for code in codes:
            if code.co_flags & COROUTINE:
                return self.run_await(self.run_in_loop(codes))
        return [_eval(code, self.names) for code in codes][-1]

    def run_cell(self, code, name):
        flags = ONLY_AST | TOP_LEVEL_AWAIT
        tree = self.with_reserve(_compile, code, name, "exec", flags, True)
        parts = [(tree, "exec")]
        if tree.body and _isinstance(tree.body[-1], self.ast.Expr):
            parts.append((self.ast.Expression(tree.body.pop().value), "eval"))
        value = self.run_codes(
            [self.with_reserve(_compile, part, name, mode, TOP_LEVEL_AWAIT, True) for part, mode in parts]
        )
        if _len(parts) > 1 and value is not None and not code.rstrip().endswith(";"):
            self.names["_"] = value
            self.shows.send(self.shows.forms(value), True)
        self.shows.figures()

    def send_error(self, error):
        if not self.control.is_mine():
            # A forked copy of the cell: it has nobody to tell but the pipe.
            _write(2, as_bytes(describe(error)[2]))
            _exit(1)
        self.control.send_error(describe(error))

    def begin(self, nonce):
        self.control.nonce = nonce
        self.control.interrupted = False
        self.control.sending = 0

    def answer(self, kind, body):
        """What a command has come to; an interrupt is too late for it."""
        self.control.sending += 1
        self.control.send(kind, body)
        self.finish(b"\0")

    def execute_command(self, nonce, command):
        self.begin(nonce)
        try:
            self.reset()
            self.control.run_begins()
            status = self.commands.run(command)
            self.answer(*((b"Q", bytes((NO_SHELL,))) if status is None else (b"C", bytes((status,)))))
        except (KeyboardInterrupt, MemoryError):
            self.answer(b"C", bytes((INTERRUPTED,)))

    def execute_script(self, nonce, code):
        self.begin(nonce)
        try:
            self.reset()
            self.control.run_begins()
            if self.scripts.run(code):
                self.finish(b"\0")
            else:
                self.answer(b"Q", bytes((NO_NODE,)))
        except (KeyboardInterrupt, MemoryError):
            self.finish(b"\1")

    def execute(self, nonce, code):
        self.count += 1
        self.begin(nonce)
        failed = b"\0"
        try:
            try:
                self.reset()
                self.control.run_begins()
                name = f"<cell-{self.count}>"
                self.with_reserve(self.lines.add, name, code)
                self.run_cell(code, name)
            except BaseException as error:
                failed = b"\1"
                self.send_error(error)
            self.finish(failed)
        except BaseException:  # after the last line of the cell; also what a handler of the user's raises
            self.finish(b"\1")

    def finish(self, failed):
        if not self.control.is_mine():
            _exit(0)  # a forked copy of the cell ends here
        self.control.sending += 1
        for stream in (sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except Exception:
                pass
        with self.control.lock:
            self.control.send(b"F", failed)
            self.control.running = False
        self.control.sending -= 1

    def warm_up(self):
        """What a later cell is likely to need; nobody waits for this one."""
        self.is_warm = True
        self.site.finish()
        try:
            import os  # noqa: F401
            import traceback  # noqa: F401, with linecache
        except BaseException:
            pass

    def with_reserve(self, function, *arguments):
        """Does it again with what was kept back, if memory was too short."""
        try:
            return function(*arguments)
        except MemoryError:
            if self.reserve is None:
                raise
            self.reserve = None
            return function(*arguments)

    def keep_reserve(self):
        if self.reserve is None:
            try:
                self.reserve = bytearray(RESERVE)
            except MemoryError:
                pass

    def next_request(self):
        self.keep_reserve()
        if not self.is_warm and self.control.is_idle():
            self.warm_up()
        return self.handlers.receive(self.control.receive_request)

    def load_ast(self):
        import _ast

        self.ast = _ast

    def prepare(self):
        """What would be done with time, or with the first cell."""
        self.warm_up()
        self.load_ast()
        self.keep_reserve()

    def serve(self):
        sys.stdin = open(0, closefd=False)
        builtins.input = no_input
        sys.argv = [""]
        sys.path.insert(0, "")
        self.control.attach()
        self.reset()
        self.control.hello()
        # Every cell needs it, and it takes long: while the gateway takes the hello and sends the first cell.
        self.load_ast()
        while True:
            try:
                request = self.next_request()
            except (KeyboardInterrupt, MemoryError):  # the run's time will end it
                continue
            except BaseException as error:
                if is_own(error):
                    raise
                continue  # it is of a handler of the user's, whose cell has ended
            if request is None:
                _exit(0)
            kind, nonce, text = request
            if kind == b"R":
                self.execute(nonce, text.decode("utf-8", "replace"))
            elif kind == b"B":
                self.execute_command(nonce, text)
            else:
                self.execute_script(nonce, text)


if __name__ == "__main__":
    (run_template(sys.argv[2].split()) if sys.argv[1:2] == ["template"] else Driver()).serve()
