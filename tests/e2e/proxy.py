"""Proxies under the test's control: they note who asked for what, and make the tunnel, or answer as they are told."""
import base64
import socket
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass  # one of the two sides has left
    for sock, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            sock.shutdown(how)
        except OSError:
            pass  # closed already


class Tunnel:
    """One that was asked for."""

    def __init__(self, target, user, head=b""):
        self.target, self.user, self.head = target, user, head
        self.port = None  # from which the server sees it


class Proxy:
    """An HTTP proxy that knows CONNECT, or (socks) a SOCKS5 one. Names are no matter: all tunnels lead to 127.0.0.1.

    refuse: what an HTTP proxy answers instead of making a tunnel; b"" for nothing at all."""

    def __init__(self, socks=False, refuse=None, tls=None):
        self.socks, self.refuse, self.tls = socks, refuse, tls
        self.tunnels, self.lock = [], threading.Lock()
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for sock in [self.listener, *self.sockets]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already
            sock.close()

    def by_port(self):
        return {tunnel.port: tunnel for tunnel in self.tunnels}

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            sock = self.tls.wrap_socket(sock, server_side=True) if self.tls else sock
            self.sockets.append(sock)
            tunnel = self._asked_by_socks(sock) if self.socks else self._asked(sock)
            with self.lock:
                self.tunnels.append(tunnel)
            if self.refuse is not None:
                sock.sendall(self.refuse)
                while self.refuse == b"" and sock.recv(65536):
                    pass
                sock.close()
                return
            other = socket.create_connection(("127.0.0.1", int(tunnel.target.rsplit(":", 1)[1])))
            tunnel.port = other.getsockname()[1]
            self.sockets.append(other)
            sock.sendall(b"\5\0\0\1\0\0\0\0\0\0" if self.socks else b"HTTP/1.1 200 Made\r\nX-Proxy: secret-name\r\n\r\n")
            threading.Thread(target=pump, args=(other, sock), daemon=True).start()
            pump(sock, other)
        except OSError:
            pass  # the gateway has left, as tests make it do

    @staticmethod
    def _asked(sock):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = sock.recv(1)
            if not piece:
                raise OSError("left")
            head += piece
        lines = head.decode().split("\r\n")
        login = [line.split(" ", 2)[2] for line in lines if line.lower().startswith("proxy-authorization: basic ")]
        method, target, _ = lines[0].split(" ")
        return Tunnel(target if method == "CONNECT" else lines[0], base64.b64decode(login[0]).decode() if login else None, head)

    @staticmethod
    def _asked_by_socks(sock):
        reader = sock.makefile("rb", buffering=0)

        def exactly(count):
            data = b""
            while len(data) < count:
                piece = reader.read(count - len(data))
                if not piece:
                    raise OSError("left")
                data += piece
            return data
        _, count = exactly(2)
        methods, user = exactly(count), None
        sock.sendall(b"\5\2" if 2 in methods else b"\5\0")
        if 2 in methods:
            name = exactly(exactly(2)[1]).decode()
            user = f"{name}:{exactly(exactly(1)[0]).decode()}"
            sock.sendall(b"\1\0")
        kind = exactly(4)[3]
        host = exactly(exactly(1)[0]).decode() if kind == 3 else ".".join(map(str, exactly(4)))
        return Tunnel(f"{host}:{int.from_bytes(exactly(2), 'big')}", user)
