"""Clients of the gateway: whole answers, event streams read as they come, and bare sockets for what no library sends."""
import http.client
import json
import socket
import ssl

TOOL = {"type": "code_interpreter"}


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.fields = response.getheaders()
        self.body = body

    def get(self, name):
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def text(self):
        return self.json["choices"][0]["message"]["content"]

    @property
    def finish(self):
        return self.json["choices"][0]["finish_reason"]

    @property
    def events(self):
        return parse_events(self.body)

    @property
    def stream_text(self):
        return text_of(self.events)


def text_of(events):
    return "".join((choice["delta"].get("content") or "") for event in events if isinstance(event, dict)
                   for choice in event.get("choices", []))


def parse_events(body):
    """The data of each event: JSON as dicts, the end mark as text. Comments are left out."""
    found = []
    for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = [line[5:].lstrip(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        if data:
            text = b"\n".join(data).decode()
            found.append(text if text == "[DONE]" else json.loads(text))
    return found


def encode(body):
    return body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()


def connection_to(gateway, patience=120):
    if getattr(gateway, "tls", None):
        return http.client.HTTPSConnection("127.0.0.1", gateway.port, timeout=patience, context=gateway.tls)
    return http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=patience)


def request(gateway, method, path, body=None, headers=None, key=None, patience=120):
    connection = connection_to(gateway, patience)
    try:
        return request_on(connection, method, path, body, headers, key)
    finally:
        connection.close()


class UnixConnection(http.client.HTTPConnection):
    """To a Unix socket: a path, or an abstract name that starts with a NUL."""

    def __init__(self, path, patience=120):
        super().__init__("localhost", timeout=patience)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def request_on(connection, method, path, body=None, headers=None, key=None):
    sent = dict(headers or {})
    if body is not None and not any(name.lower() == "content-type" for name in sent):
        sent["Content-Type"] = "application/json"
    if key:
        sent["Authorization"] = f"Bearer {key}"
    connection.request(method, path, None if body is None else encode(body), sent)
    response = connection.getresponse()
    return Answer(response, response.read())


def get(gateway, path, **options):
    return request(gateway, "GET", path, **options)


def post(gateway, path, body, **options):
    return request(gateway, "POST", path, body, **options)


def body_of(source=None, session=None, stream=False, tools=(TOOL,), text=None, model="mock", **more):
    """A chat request that asks for code to be run."""
    content = text if text is not None else f"Run this Python code and tell me the result: {source}"
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    if tools:
        body["tools"] = list(tools)
    if session is not None:
        body["metadata"] = {"session_id": session}
    if stream:
        body["stream"] = True
    body.update(more)
    return body


def chat(gateway, *arguments, key=None, headers=None, path="/v1/chat/completions", **options):
    return post(gateway, path, body_of(*arguments, **options), key=key, headers=headers)


class Shared:
    """Lets several answers be read from one connection: what was read ahead stays for the next."""

    def __init__(self, reader):
        self.reader = reader

    def makefile(self, _mode):
        return self

    def close(self):
        pass  # the connection's reader lives on

    def __getattr__(self, name):
        return getattr(self.reader, name)


class Wire:
    """A bare connection."""

    def __init__(self, gateway, patience=120):
        self.sock = socket.create_connection(("127.0.0.1", gateway.port), timeout=patience)
        if getattr(gateway, "tls", None):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = gateway.tls.wrap_socket(self.sock, server_hostname="localhost", suppress_ragged_eofs=True)
        self.reader = self.sock.makefile("rb")

    @classmethod
    def of(cls, sock):
        """Over a socket that is connected already."""
        wire = cls.__new__(cls)
        wire.sock, wire.reader = sock, sock.makefile("rb")
        return wire

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader.close()
        self.sock.close()

    def reset(self):
        """Leaves with a reset instead of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def post(self, body, path="/v1/chat/completions", fields=()):
        raw = encode(body)
        head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
                f"Content-Length: {len(raw)}", *fields, "", ""]
        self.send("\r\n".join(head).encode() + raw)

    def read_all(self):
        """Until the gateway closes; a reset ends it as well."""
        data = b""
        try:
            while piece := self.sock.recv(65536):
                data += piece
        except (ConnectionError, ssl.SSLEOFError):
            pass
        return data

    def answer(self):
        response = http.client.HTTPResponse(Shared(self.reader))
        response.begin()
        return Answer(response, response.read())

    def stream(self):
        """The answer's head now, its lines as they come."""
        response = http.client.HTTPResponse(Shared(self.reader))
        response.begin()
        return response


def lines_of(response):
    """Lines of a stream, as they come."""
    while line := response.readline():
        yield line


def exchange(gateway, raw, patience=120):
    """Sends bytes and reads until the gateway closes the connection."""
    with Wire(gateway, patience) as wire:
        try:
            wire.send(raw)
        except ConnectionError:
            pass  # refused before all was sent
        return wire.read_all()
