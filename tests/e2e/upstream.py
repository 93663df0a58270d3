"""A model server under the test's control: it answers each request by the next turn of a script, byte by byte as told,
and keeps what it was sent. Connections live on between requests as HTTP/1.1 has it."""
import json
import queue
import socket
import threading

CHAT = {"id": "chatcmpl-up", "object": "chat.completion", "created": 1764400000, "model": "up-model"}


def answer(content=None, calls=(), finish=None, usage=(10, 5), **message):
    """A chat completion. A call is (id, name, arguments); arguments that are no text are written as JSON text."""
    body = {"role": "assistant", "content": content, **message}
    if calls:
        body["tool_calls"] = [{"id": i, "type": "function",
                               "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)}}
                              for i, n, a in calls]
    whole = {**CHAT, "choices": [{"index": 0, "message": body,
                                  "finish_reason": finish or ("tool_calls" if calls else "stop")}]}
    if usage:
        whole["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return whole


def always(turn):
    """A turn and what the gateway's own second try of it gets."""
    return [turn, turn]


def code(source, call_id="call_1", name="code_interpreter"):
    """A turn that calls the code tool."""
    return answer(calls=[(call_id, name, {"code": source})])


def calls_of(body):
    """(id, name, arguments) of the calls in a request's history."""
    return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for message in body["messages"]
            for call in message.get("tool_calls") or []]


def results_of(body):
    """(id, text) of the results in a request's history."""
    return [(message["tool_call_id"], message["content"].strip()) for message in body["messages"] if message["role"] == "tool"]


def text_of(content):
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def chunk(delta=None, finish=None, **extra):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {**CHAT, "object": "chat.completion.chunk", "choices": choices, **extra}


def events(*chunks, end=True):
    """Server-sent events as bytes: dicts as JSON, text and bytes as they are."""
    out = []
    for one in chunks:
        if isinstance(one, bytes):
            out.append(one)
        else:
            out.append(b"data: " + (one if isinstance(one, str) else json.dumps(one)).encode() + b"\n\n")
    if end:
        out.append(b"data: [DONE]\n\n")
    return b"".join(out)


def streamed(content=None, calls=(), finish=None, usage=None, role=True):
    """A streamed turn: the text in pieces of three characters, each call's arguments in pieces of four."""
    chunks = [chunk({"role": "assistant", "content": ""})] if role else []
    for at in range(0, len(content or ""), 3):
        chunks.append(chunk({"content": content[at:at + 3]}))
    for index, (call_id, name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        chunks.append(chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function",
                                             "function": {"name": name, "arguments": ""}}]}))
        for at in range(0, len(text), 4):
            chunks.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": text[at:at + 4]}}]}))
    chunks.append(chunk({}, finish or ("tool_calls" if calls else "stop")))
    if usage:
        chunks.append(chunk(usage={"prompt_tokens": usage[0], "completion_tokens": usage[1],
                                   "total_tokens": sum(usage)}))
    return Stream(events(*chunks))


class Stream:
    """An answer of server-sent events, in one write or in `pieces`."""

    def __init__(self, data, pieces=None, chunked=True, content_type="text/event-stream"):
        self.pieces = pieces or [data]
        self.chunked = chunked
        self.content_type = content_type


class Status:
    """An answer with another status."""

    def __init__(self, status, body=b'{"error":{"message":"no","type":"x","param":null,"code":null}}', headers=()):
        self.status, self.headers = status, list(headers)
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()


class Bytes:
    """Whatever is to be written after the request was read, head and all; the connection closes."""

    def __init__(self, data):
        self.data = data


class Request:
    def __init__(self, method, target, fields, body):
        self.method, self.target, self.fields, self.body = method, target, fields, body
        self.peer_port = None  # of the connection that it came on
        self.certificate = None  # the name in the one that was shown with it

    def get(self, name):
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return None

    @property
    def json(self):
        return json.loads(self.body)


class Connection:
    """What a scripted turn that is a function gets: the socket, and the ways to answer."""

    def __init__(self, upstream, sock, request):
        self.upstream, self.sock, self.request = upstream, sock, request

    def send(self, data):
        self.sock.sendall(data)

    def head(self, status=200, fields=(), content_type="application/json"):
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", *(f"{k}: {v}" for k, v in fields)]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def begin_stream(self):
        self.head(fields=[("Transfer-Encoding", "chunked")], content_type="text/event-stream")

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self):
        self.send(b"0\r\n\r\n")

    def wait_closed(self, patience=60):
        """True when the other side has closed the connection."""
        self.sock.settimeout(patience)
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


class Upstream:
    def __init__(self, turns=(), forever=None, tls=None):
        self.turns = list(turns)
        self.forever = forever  # answers when the script is over
        self.tls = tls  # an ssl.SSLContext; None: plain HTTP
        self.requests = []
        self.arrived = queue.Queue()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.sockets = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread, which would keep it open
        except OSError:
            pass  # closed already
        self.listener.close()
        with self.lock:
            for sock in self.sockets:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def next_request(self, patience=60):
        return self.arrived.get(timeout=patience)

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.sockets.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _secure(self, sock):
        """The connection as it is spoken on, and the name in the certificate that came with it."""
        if self.tls is None:
            return sock, None
        with self.lock:
            self.sockets.discard(sock)
        secure = self.tls.wrap_socket(sock, server_side=True)
        with self.lock:
            self.sockets.add(secure)
        shown = secure.getpeercert() or {}
        return secure, next((value for part in shown.get("subject", ()) for name, value in part if name == "commonName"), None)

    def _serve(self, sock):
        try:
            peer_port = sock.getpeername()[1]
            sock, certificate = self._secure(sock)
            with sock, sock.makefile("rb") as reader:
                while (request := read_request(reader)) is not None:
                    request.peer_port, request.certificate = peer_port, certificate
                    with self.lock:
                        self.requests.append(request)
                        turn = self.turns.pop(0) if self.turns else self.forever
                    self.arrived.put(request)
                    if not self._answer(sock, request, turn):
                        return
        except OSError:
            pass  # the gateway has left, as tests make it do
        finally:
            with self.lock:
                self.sockets.discard(sock)

    def _answer(self, sock, request, turn):
        """Writes the turn; False ends the connection."""
        connection = Connection(self, sock, request)
        if turn is None:
            turn = Status(500, b'{"error":{"message":"the script of the test has no turn for this"}}')
        if isinstance(turn, dict):
            turn = Status(200, turn)
        if isinstance(turn, Status):
            body = turn.body
            connection.head(turn.status, [("Content-Length", len(body)), *turn.headers])
            connection.send(body)
            return True
        if isinstance(turn, Stream):
            if not turn.chunked:
                connection.head(fields=[("Connection", "close")], content_type=turn.content_type)
                for piece in turn.pieces:
                    connection.send(piece)
                return False
            connection.head(fields=[("Transfer-Encoding", "chunked")], content_type=turn.content_type)
            for piece in turn.pieces:
                connection.chunk(piece)
            connection.end()
            return True
        if isinstance(turn, Bytes):
            connection.send(turn.data)
            return False
        made = turn(connection)  # True, False, or a turn made to the measure of the request
        return self._answer(sock, request, made) if isinstance(made, (dict, Stream, Status, Bytes)) else bool(made)


def read_request(reader):
    line = reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    fields = []
    while (line := reader.readline()) not in (b"\r\n", b""):
        key, value = line.decode("latin-1").rstrip("\r\n").split(":", 1)
        fields.append((key, value.strip()))
    request = Request(method, target, fields, b"")
    length = request.get("content-length")
    if length is not None:
        request.body = reader.read(int(length))
    elif (request.get("transfer-encoding") or "").lower() == "chunked":
        body = b""
        while (size := int(reader.readline().split(b";")[0], 16)) > 0:
            body += reader.read(size)
            reader.readline()
        reader.readline()
        request.body = body
    return request
