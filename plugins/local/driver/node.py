# JavaScript. This text is put in front of driver.py's, which has the imports and constants; behind shell.py's, whose ways of
# starting and ending it shares. What runs in node is driver.js, DRIVER_JS here.

NODES = ("/usr/bin/node", "/usr/local/bin/node", "/usr/bin/nodejs")
# Its own openings of the pipes: node makes those that it is given non-blocking, for all who share them.
BEGIN_NODE = 'exec "$1" --no-warnings -e "$2" @SOCKET@ @TOKEN@ @CUTS@ >/dev/stdout 2>/dev/stderr'


def is_file(path):
    try:
        return kind_of(_stat(path).st_mode) == 0o100000
    except OSError:
        return False


class Node(Shell):
    """A node that runs."""

    told = (b"out", b"err", b"text", b"error")
    has_low_numbers = True  # node hands none below 16 down to its children
    token = cuts = None

    def hand_more(self, handed):
        """A pipe with a byte in it while a signal would break off the cell: whoever reads it decides whether one is sent, this
        side by doing so, or node by going on without. Without the byte a signal could end node, or be seen in the next cell.
        And a socket for what keeps node busy without a byte."""
        import _socket

        self.token, theirs = posix.pipe()
        _close(theirs)  # node opens one anew
        posix.set_blocking(self.token, False)
        handed["@TOKEN@"] = _dup(self.token)
        self.cuts, theirs = _socket.socketpair()
        self.cuts.setblocking(False)  # nobody may read there
        handed["@CUTS@"] = theirs.detach()

    def texts(self, is_bash):
        for path in NODES:
            if is_file(path):
                return BEGIN_NODE, path, DRIVER_JS
        raise FileNotFoundError

    def interrupt(self):
        """For a cell that waits; it is answered with the end in any case."""
        from time import monotonic as now

        self.insist_at = now() + INSIST_S
        try:
            self.socket.sendall(b"-%d\n1\n\n" % self.count, self.flags)
        except OSError:
            pass  # its end is about to be told

    def insist(self):
        """For one that keeps node busy: by its first part, or so that what was sent is not read."""
        from time import monotonic as now

        try:
            if _read(self.token, 1):
                kill_quietly(self.pid, _signal.SIGINT)
        except OSError:
            pass  # it does not, or not yet
        if now() >= self.insist_at:
            self.insist_at = now() + INSIST_S
            try:
                self.cuts.send(b"%d\n" % self.count, self.flags)
            except OSError:
                pass  # its end is about to be told

    def has_settled(self):
        return True  # a signal that was sent has been waited for

    def end(self):
        super().end()
        if self.cuts is not None:
            self.cuts.close()
        if self.token is not None:
            _close(self.token)
            self.token = None

    def tell(self, kind, count, data):
        import binascii

        if count != self.count:
            return
        parts = [binascii.a2b_base64(part) for part in data.split(b",")]
        data = parts[0]
        if kind in (b"out", b"err"):
            self.control.send(b"O" if kind == b"out" else b"E", data)
        elif kind == b"text":
            self.control.shows.send([("text/plain", data)], True)
        else:
            self.control.send_error([part.decode("utf-8", "replace") for part in parts])


class Scripts(Lasting):
    def fail(self, name, value):
        self.control.send_error((name, value, f"{name}: {value}\n"))

    def run(self, code):
        """False if there is no node."""
        try:
            self.run_and_wait(code)
        except ShellGone as gone:
            self.fail("ProcessExit", f"node ended with status {gone.args[0]}; its variables are gone")
        except KeyboardInterrupt:
            if self.lost == KILLED:  # else node has said so
                self.control.send(b"L")
                self.fail("Interrupted", "node did not react to the interrupt and was killed; its variables are gone")
        except FileNotFoundError:
            return False
        except OSError as error:
            self.fail("StartError", f"node cannot be started: {error.strerror}")
        return True
