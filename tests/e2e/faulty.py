"""A model server that fails as it is told to: at which turn, how, and where in its answer stands in the user's message.

    FAULT fault=reset at=mid turn=2 say=Look. code=x

The model calls the code tool in its first turn (`say`: text before the call, `code`: what is run) and answers "Done: "
and the tool's result in the second. It keeps no state between requests, so whoever asks again meets the same fault.

Places in an answer (`at`): first (nothing is sent), head (half of the head), begun (the whole head), mid (half of the
body), last (all but the end of its framing), end (everything). An answer is framed by its length, a stream by chunks;
with `framing=close` either by the end of the connection. With `sse=1` it streams although it was not asked to."""
import json
import socket
import struct
import threading
import time

from upstream import Upstream, answer, streamed

NOISE = b"\x00\xff{]nonsense\r\n\r\n\xc3("
PLACES = ("first", "head", "begun", "mid", "last", "end")


def wish(**words):
    """The user's message that asks for a fault."""
    return "FAULT " + " ".join(f"{key}={value}" for key, value in words.items())


def wish_of(body):
    """What the last message of a user asks for, as a dict; empty if it asks for nothing."""
    texts = [m["content"] for m in body.get("messages", []) if m.get("role") == "user" and isinstance(m["content"], str)]
    if not texts or not texts[-1].startswith("FAULT"):
        return {}
    return dict(word.split("=", 1) for word in texts[-1].split()[1:])


def turn_of(body):
    """1 behind the user's message, 2 behind the results of a call."""
    return 2 if body["messages"] and body["messages"][-1].get("role") == "tool" else 1


def results_of(body):
    return [m["content"] for m in body["messages"] if m.get("role") == "tool"]


class Model:
    """What the model would say if nothing failed."""

    def __init__(self, body, wished):
        self.turn = turn_of(body)
        self.is_stream = bool(body.get("stream")) or "sse" in wished
        can_call = any(tool.get("function", {}).get("name") == "code_interpreter" for tool in body.get("tools", []))
        say = wished.get("say") or None
        if self.turn == 2:
            self.text, self.calls = "Done: " + results_of(body)[-1].strip(), []
        elif can_call:
            source = wished.get("code", "print(42)")
            self.text, self.calls = say, [("call_1", "code_interpreter", {"code": source})]
        else:
            self.text, self.calls = say or "Words of a model.", []

    def pieces(self):
        """The body in pieces: the events of a stream, or one JSON text."""
        if not self.is_stream:
            return [json.dumps(answer(self.text, self.calls)).encode()]
        whole = streamed(self.text, self.calls, usage=(10, 5)).pieces[0]
        return [event + b"\n\n" for event in whole.split(b"\n\n") if event]


class Faulty:
    """One answer being sent."""

    def __init__(self, connection, wished):
        self.connection, self.wished = connection, wished
        self.model = Model(connection.request.json, wished)
        self.body = self.model.pieces()
        self.closes = wished.get("framing") == "close"
        kind = "text/event-stream" if self.model.is_stream else "application/json"
        size = sum(map(len, self.body))
        framing = ("Connection: close" if self.closes else "Transfer-Encoding: chunked" if self.model.is_stream
                   else f"Content-Length: {size}")
        self.head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n".encode()

    @property
    def is_chunked(self):
        return self.model.is_stream and not self.closes

    def framed(self, piece):
        return b"%x\r\n%s\r\n" % (len(piece), piece) if self.is_chunked else piece

    def until(self, place):
        """The bytes of a good answer up to there."""
        if place in ("first", "head"):
            return self.head[:len(self.head) // 2] if place == "head" else b""
        body = self.body
        if place == "begun":
            body = []
        elif place == "mid":
            body = body[:len(body) // 2] if len(body) > 1 else [body[0][:len(body[0]) // 2]]
        elif place == "last" and not self.model.is_stream:
            body = [body[0][:-1]]
        end = b"0\r\n\r\n" if self.is_chunked and place == "end" else b""
        return self.head + b"".join(map(self.framed, body)) + end

    def send(self, place="end"):
        """Returns whether the connection may be used again."""
        self.connection.send(self.until(place))
        return not self.closes

    # ---- faults ----

    def cut(self, place):
        self.send(place)
        return False

    def reset(self, place):
        self.send(place)
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def hang(self, place):
        self.send(place)
        self.connection.wait_closed(120)
        return False

    def slow(self, place):
        """The rest comes in a few pieces, each a while after the one before."""
        whole, begun = self.until("end"), self.until(place)
        self.connection.send(begun)
        step = max(1, (len(whole) - len(begun)) // 6)
        for at in range(len(begun), len(whole), step):
            time.sleep(0.02)
            self.connection.send(whole[at:at + step])
        return not self.closes

    def before_noise(self, place):
        """Noise behind a whole answer would hit whichever row takes up the connection, were it kept: libcurl drops what it
        has read of it, and what comes later looks like the next answer."""
        begun = self.until(place)
        return begun.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1) if place == "end" else begun

    def garbage(self, place):
        """Bytes that are no part of an answer: of a head, of the framing, or framed well and without meaning."""
        noise = NOISE * 8
        if place in ("begun", "mid") and self.is_chunked:
            noise = self.framed(b"data: " + NOISE.replace(b"\r\n", b"") + b"\n\n") + b"0\r\n\r\n"
        elif place in ("begun", "mid"):
            rest = len(self.until("end")) - len(self.until(place))
            noise = (NOISE * (rest // len(NOISE) + 1))[:rest]
        self.connection.send(self.before_noise(place) + noise)
        return False

    def flood(self, place):
        """Without end: fields of a head, text of a body, one event that never ends."""
        if place in ("first", "head"):
            piece = b"X-More: " + b"a" * 1000 + b"\r\n"
            self.connection.send(b"HTTP/1.1 200 OK\r\n" if place == "first" else self.until(place) + piece)
        else:
            piece = self.framed(b"a" * 65536)
            self.connection.send(self.before_noise(place) + piece)
        while True:  # until the gateway closes
            self.connection.send(piece)

    def words(self, size):
        """One more good event, with that many bytes of text."""
        event = json.loads(self.body[1][6:])
        event["choices"] = [{"index": 0, "delta": {"content": "chatter " * (size // 8)}, "finish_reason": None}]
        return self.framed(b"data: " + json.dumps(event).encode() + b"\n\n")

    def chatter(self, place):
        """Good events without end."""
        self.send(place)
        piece = self.words(1 << 18)
        while True:
            self.connection.send(piece)

    def drip(self, place):
        """Good events without end, one after the other, so that nobody waits for long."""
        self.send(place)
        self.connection.sock.settimeout(0.02)
        while True:
            try:
                if self.connection.sock.recv(1) == b"":
                    return False
            except TimeoutError:
                self.connection.send(self.words(8))

    def nothings(self, place):
        """Comments without end."""
        self.send(place)
        piece = self.framed(b": nothing\n\n" * 8192)
        while True:
            self.connection.send(piece)

    def long(self, place):
        """A whole answer with some MiB of text in the middle."""
        self.send(place)
        for _ in range(64):
            self.connection.send(self.words(1 << 16))
        self.connection.send(self.until("end")[len(self.until(place)):])
        return True

    def status(self, _):
        """An answer with another status, and an error body of the asked form."""
        number = int(self.wished["status"])
        fields = [("Retry-After", self.wished["after"])] if "after" in self.wished else []
        message = {"error": {"message": f"the model says {number}", "type": "x", "param": None, "code": "its_code"}}
        body = {"json": json.dumps(message).encode(), "html": b"<html>no</html>", "none": b"",
                "huge": b'{"error":{"message":"' + b"a" * (1 << 20) + b'"}}'}[self.wished.get("form", "json")]
        if number in (204, 304):
            body = b""
        self.connection.head(number, [("Content-Length", len(body)), ("Location", "http://127.0.0.1:1/"), *fields])
        self.connection.send(body)
        return True

    def error_hangs(self, _):
        """An error whose body does not end."""
        self.connection.head(500, [("Content-Length", 1000)])
        self.connection.send(b'{"error":')
        self.connection.wait_closed(120)
        return False

    def error_event(self, place):
        """A stream that says in an event that it failed."""
        self.send(place)
        self.connection.send(self.framed(b'data: {"error":{"message":"the model fell over","code":503}}\n\n') + b"0\r\n\r\n")
        return True

    def continues(self, _):
        """Heads that say "wait", without end."""
        while True:
            self.connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def upgrade(self, _):
        self.connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + NOISE)
        return False


class FaultyUpstream(Upstream):
    """An upstream that answers every request by its own wish."""

    def __init__(self):
        super().__init__(forever=self.serve_turn)
        self.busy = 0  # answers under way

    def serve_turn(self, connection):
        if connection.request.method != "POST":
            connection.head(404, [("Content-Length", 0)])
            return True
        wished = wish_of(connection.request.json)
        faulty = Faulty(connection, wished)
        fault = wished.get("fault")
        if fault is None or int(wished.get("turn", 1)) != faulty.model.turn:
            return faulty.send()
        self.count(1)
        try:
            return getattr(faulty, fault)(wished.get("at", "first"))
        finally:
            self.count(-1)

    def count(self, change):
        with self.lock:
            self.busy += change


class Closed:
    """A port at which nobody listens, and nobody else will."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]

    def close(self):
        self.sock.close()


class Other:
    """A server of another protocol: it says the same to whoever connects, and closes."""

    def __init__(self, words=b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"):
        self.words = words
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
                with sock:
                    sock.recv(65536)
                    sock.sendall(self.words)
            except OSError:
                if self.listener.fileno() < 0:
                    return

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # nobody listens any more
        self.listener.close()


class Full:
    """A port whose queue is full: the kernel drops what asks for a connection, which is never refused nor made."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(filler)

    def close(self):
        for sock in (*self.fillers, self.listener):
            sock.close()
