"""Paths that an upstream lists under `relay_paths` (mode passthrough): what its server keeps, reached with the client's own key. They go
up as they are, with every method and bodies of any length as they come; nothing else does, and nobody's key goes elsewhere."""
import contextlib
import hashlib
import json
import pathlib
import re
import signal
import socket
import threading

from client import Wire, chat, exchange, get, post, request
from harness import E2E, PATIENCE, main, poll, run, to_yaml
from upstream import Bytes, Status, Stream, Upstream, answer

ANN, BOB = "sk-ann-of-the-upstream", "sk-bob-of-the-upstream"
PATHS = ["/v1/files", "/v1/files/*", "/threads/*/messages"]
ALL = "GET, HEAD, POST, PUT, PATCH, DELETE"
MIB = 1024 * 1024


class Raw:
    """A server of bare connections, for what is seen while a request still comes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.socks = []

    def accept(self):
        """The connection, and what follows the head on it."""
        sock, _ = self.listener.accept()
        sock.settimeout(PATIENCE)
        self.socks.append(sock)
        reader = sock.makefile("rb")
        head = []
        while (line := reader.readline()) not in (b"\r\n", b""):
            head.append(line.decode().rstrip("\r\n"))
        return sock, reader, head

    def close(self):
        for sock in self.socks:
            sock.close()
        self.listener.close()


class Paths(E2E):
    def config(self, *upstreams, **sections):
        return {"auth": {"mode": "passthrough"}, "upstreams": list(upstreams), **sections}

    def entry(self, upstream, name="up", paths=PATHS, **options):
        return {"name": name, "base_url": upstream.url + "/v1", "models": [name], "passthrough": True, "relay_paths": list(paths), **options}

    def open(self, *turns, forever=Status(200, {"object": "list"}), paths=PATHS, options=None, **sections):
        self.up = self.upstream(*turns, forever=forever)
        return self.gateway(self.config(self.entry(self.up, paths=paths, **(options or {})), **sections), upstream_ports=[self.up.port])

    def raw(self, **sections):
        raw = Raw()
        self.upstreams.append(raw)
        return self.gateway(self.config(self.entry(raw), **sections), upstream_ports=[raw.port]), raw

    def line(self, gateway, count=1):
        return gateway.wait_events("request", count)[count - 1]

    # ---- what goes up, and what comes back ----

    def test_every_method_goes_up_with_its_query_and_body(self):
        gateway = self.open()
        for method, path, body in (("GET", "/v1/files?purpose=a%20b&limit=2", None), ("POST", "/v1/files", b"\x00raw\xff"),
                                   ("PUT", "/files/f-1", b"{broken"), ("PATCH", "/v1/files/f-1/content", b"x"), ("DELETE", "/files/f-1", None),
                                   ("DELETE", "/files/f-1", b"why"), ("POST", "/v1/threads/t/messages", b"")):
            reply = request(gateway, method, path, body=body, headers={"Content-Type": "application/x-own"}, key=ANN)
            self.assertEqual((reply.status, reply.json), (200, {"object": "list"}), (method, path))
            sent = self.up.requests[-1]
            self.assertEqual((sent.method, sent.target, sent.body), (method, "/v1/" + path.removeprefix("/v1").lstrip("/"), body or b""))
            self.assertEqual((sent.get("authorization"), sent.get("content-type")), (f"Bearer {ANN}", "application/x-own"))
            has_body = method in ("POST", "PUT", "PATCH") or body is not None
            self.assertEqual(sent.get("content-length"), str(len(body or b"")) if has_body else None)
        self.assertNotIn(ANN, gateway.log())

    def test_a_key_in_anthropics_header_goes_up_as_it_came(self):
        gateway = self.open()
        get(gateway, "/v1/files", headers={"x-api-key": ANN, "anthropic-version": "2023-06-01", "anthropic-beta": "files-api-2025-04-14"})
        sent = self.up.requests[0]
        self.assertEqual([sent.get(name) for name in ("x-api-key", "authorization", "anthropic-version", "anthropic-beta")],
                         [ANN, None, "2023-06-01", "files-api-2025-04-14"])

    def test_only_headers_that_are_the_servers_to_know_go_up(self):
        gateway = self.open(server={"forward_headers": ["OpenAI-Project"]})
        told = {"Range": "bytes=0-9", "If-Range": '"e"', "Content-Encoding": "gzip", "Idempotency-Key": "k", "OpenAI-Project": "p"}
        kept = {"Cookie": "a=b", "X-Session-Id": "s", "X-HTTP-Method-Override": "DELETE", "X-Forwarded-For": "1.2.3.4", "TE": "trailers",
                "Connection": "X-Named, If-Match", "X-Named": "x", "If-Match": "y", "Upgrade": "h2c", "Proxy-Authorization": "z",
                "Forwarded": "for=x", "X-Original-URL": "/v1/models", "Accept-Encoding": "gzip"}
        request(gateway, "POST", "/v1/files", body=b"x", headers={**told, **kept}, key=ANN)
        sent = self.up.requests[0]
        self.assertEqual({name: sent.get(name) for name in told}, told)
        self.assertEqual({name: sent.get(name) for name in kept}, {name: None for name in kept})

    def test_an_answer_comes_back_as_it_is_but_for_what_speaks_for_the_gateway(self):
        gateway = self.open(Status(206, b"0123456789", headers=[("Content-Range", "bytes 0-9/99"), ("Content-Disposition", "attachment"),
                                                              ("Set-Cookie", "a=b"), ("Server", "x"), ("Location", "http://10.0.0.1/"),
                                                              ("Access-Control-Allow-Origin", "*"), ("Keep-Alive", "timeout=5"),
                                                              ("X-Accel-Redirect", "/inner"), ("X-Sendfile", "/etc/passwd"), ("NEL", "{}"),
                                                              ("Report-To", "{}"), ("Service-Worker-Allowed", "/"), ("X-Accel-Buffering", "no"),
                                                              ("Connection", "X-Hop"), ("X-Hop", "1"), ("X-Total", "9")]))
        reply = get(gateway, "/v1/files/f/content", headers={"Range": "bytes=0-9"}, key=ANN)
        self.assertEqual((reply.status, reply.body, reply.get("content-length")), (206, b"0123456789", "10"))
        self.assertEqual([reply.get(name) for name in ("content-range", "content-disposition", "x-total", "x-accel-buffering")],
                         ["bytes 0-9/99", "attachment", "9", "no"])
        for name in ("set-cookie", "server", "location", "access-control-allow-origin", "keep-alive", "x-hop", "x-accel-redirect", "x-sendfile",
                     "nel", "report-to", "service-worker-allowed"):
            self.assertIsNone(reply.get(name), name)
        self.assertRegex(reply.get("x-request-id"), "^req_")

    def test_head_and_204_have_no_body_and_the_connection_goes_on(self):
        gateway = self.open(Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nContent-Type: text/plain\r\n\r\n"),
                            Bytes(b"HTTP/1.1 204 No\r\n\r\n"), Bytes(b"HTTP/1.1 404 No\r\nContent-Length: 99\r\n\r\n"))
        with Wire(gateway) as wire:
            for method, status, length in (("HEAD", 200, "12345"), ("DELETE", 204, None), ("HEAD", 404, "99")):
                wire.send(f"{method} /v1/files/f HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += wire.reader.read(1)
                self.assertIn(f" {status} ".encode(), head)
                self.assertEqual(re.findall(rb"content-length: (\d+)", head), [length.encode()] if length else [])
                self.assertIn(b"connection: keep-alive", head)
        self.assertEqual([r.method for r in self.up.requests], ["HEAD", "DELETE", "HEAD"])

    def test_errors_are_the_upstreams_and_redirects_are_nobodys(self):
        no = {"error": {"message": "No such File object: f", "type": "invalid_request_error", "param": "id", "code": None}}
        gateway = self.open(Status(404, no), Status(401, {"error": {"message": "Incorrect API key provided: sk-ann*"}}),
                            Status(302, b"", headers=[("Location", "https://store.example/signed")]))
        replies = [get(gateway, "/v1/files/f", key=ANN) for _ in range(3)]
        self.assertEqual([r.status for r in replies], [404, 401, 502])
        self.assertEqual(replies[0].json, no)
        self.assertEqual(replies[1].error["message"], "Incorrect API key provided: sk-ann*")
        self.assertNotIn(b"store.example", replies[2].body)
        self.assertIsNone(replies[2].get("location"))

    def test_a_stream_of_events_goes_on_as_it_comes(self):
        gate = threading.Event()

        def turn(connection):
            connection.begin_stream()
            connection.chunk(b"data: 1\n\n")
            gate.wait(60)
            connection.chunk(b"data: 2\n\n")
            connection.end()
            return True
        gateway = self.open(turn)
        with Wire(gateway) as wire:
            wire.send(f"GET /v1/files/f/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
            stream = wire.stream()
            self.assertEqual(stream.readline(), b"data: 1\n")
            gate.set()
            self.assertEqual(stream.read(), b"\ndata: 2\n\n")

    # ---- what does not ----

    def test_what_is_not_listed_is_not_there(self):
        gateway = self.open()
        for path in ("/v1/file", "/v1/files/", "/v1/filesx", "/v1/Files", "/V1/files", "/v1/v1/files", "/v1/threads/t", "/v1/threads/t/messages/m",
                     "/v1/threads/a/b/messages", "/v1/batches", "/files%2e", "/v1/organization/api_keys", "/"):
            for method in ("GET", "DELETE"):
                reply = request(gateway, method, path, key=ANN)
                self.assertEqual((reply.status, reply.error["code"]), (404, "unknown_path"), path)
        self.assertEqual(self.up.requests, [])

    def test_nothing_goes_up_without_a_key_or_with_one_of_the_gateways(self):
        keys = [{"name": "prometheus", "key": "key-of-the-scraper", "use": "metrics"}, {"name": "op", "key": "key-of-the-operator", "use": "admin"}]
        gateway = self.open(auth={"mode": "passthrough", "keys": keys})
        self.assertEqual([get(gateway, "/v1/files", key=key).status for key in (None, "key-of-the-scraper", "key-of-the-operator")],
                         [401, 403, 403])
        with Wire(gateway) as wire:
            wire.send(f"GET /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nx-api-key: {BOB}\r\n\r\n".encode())
            self.assertEqual(wire.answer().status, 400)
        self.assertEqual(self.up.requests, [])

    def test_other_methods_are_refused(self):
        gateway = self.open()
        for method in ("TRACE", "OPTIONS", "CONNECT", "get", "PROPFIND", "GETX"):
            reply = exchange(gateway, f"{method} /v1/files HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
            self.assertRegex(reply, rb"^HTTP/1.1 40[05] ", method)
            if method not in ("CONNECT", "get"):  # which are refused before there is a path
                self.assertIn(f"allow: {ALL}".encode(), reply)
                self.assertIn(f"This path takes {ALL}, not '{method}'.".encode(), reply)
        self.assertEqual(self.up.requests, [])

    def test_paths_that_two_servers_could_read_in_two_ways_are_refused_or_written_anew(self):
        gateway = self.open()
        for path in ("/v1/files/../models", "/v1/files/%2e%2e/models", "/v1/files//x", "/v1/files/a%2fb", "/v1/files/a%5cb", "/v1/files/a\\b",
                     "/v1/files/%00", "/v1/files/%0d%0aX:1", "/v1/files/%zz", "/v1/files/.", "/v1/./files/a"):
            self.assertEqual(get(gateway, path, key=ANN).status, 400, path)
        for path in ("/v1/files/%252e%252e%252fmodels", "/v1/files/%252F", "/v1/files/a%2500"):
            reply = get(gateway, path, key=ANN)
            self.assertEqual((reply.status, reply.error["message"]), (400, "The path is percent-encoded twice: encode its names once."))
        self.assertEqual(self.up.requests, [])
        for path, sent in (("/%76%31/fil%65s/a", "/v1/files/a"), ("/v1/files/..;/models", "/v1/files/..%3B/models"),
                           ("/v1/files/a%3Fb=c%23d", "/v1/files/a%3Fb%3Dc%23d"), ("/v1/files/%C3%A4%20b", "/v1/files/%C3%A4%20b"),
                           ("/v1/files/100%25", "/v1/files/100%25"), ("/v1/files/a?x=/../y&p=%2e", "/v1/files/a?x=/../y&p=%2e"),
                           ("/v1/files/ft:x@y~z_-.", "/v1/files/ft:x@y~z_-.")):
            self.assertEqual(get(gateway, path, key=ANN).status, 200, path)
            self.assertEqual(self.up.requests[-1].target, sent)
        exchange(gateway, f"GET http://a/v1/files/f?q HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
        self.assertEqual(self.up.requests[-1].target, "/v1/files/f?q")

    def test_a_body_where_none_is_meant_is_refused(self):
        gateway = self.open()
        for method in ("GET", "HEAD"):
            for framing in ("Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
                reply = exchange(gateway, f"{method} /v1/files HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {ANN}\r\n{framing}".encode())
                self.assertIn(b"HTTP/1.1 400 ", reply)
                if method == "GET":
                    self.assertIn(b"A request with GET has no body.", reply)
        reply = exchange(gateway, f"POST /v1/files HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {ANN}\r\nContent-Type: a/b\r\n"
                         "Content-Type: c/d\r\nContent-Length: 1\r\n\r\nx".encode())
        self.assertIn(b"Content-Type is given twice.", reply)
        self.assertEqual(self.up.requests, [])

    def test_a_body_that_looks_like_a_request_is_nobody_elses(self):
        """The server reads no body, and takes what stands in its place for the next request of that connection."""
        gateway, raw = self.raw()
        smuggled = b"GET /v1/files/stolen HTTP/1.1\r\nHost: a\r\n\r\n"
        results = []
        asking = threading.Thread(target=lambda: results.append(request(gateway, "DELETE", "/v1/files/f", body=smuggled, key=ANN)))
        asking.start()
        sock, reader, _ = raw.accept()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        asking.join(60)
        self.assertEqual(results[0].status, 200)
        asking = threading.Thread(target=lambda: results.append(get(gateway, "/v1/files/mine", key=BOB)))
        asking.start()
        other, _, head = raw.accept()  # another connection
        self.assertEqual(head[0], "GET /v1/files/mine HTTP/1.1")
        other.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine")
        asking.join(60)
        self.assertEqual(results[1].body, b"mine")
        self.assertEqual(reader.read(), smuggled, "the first one was closed")

    # ---- whose it is ----

    def test_a_path_leads_to_its_upstream_and_takes_no_key_elsewhere(self):
        one, other = (self.upstream(forever=Status(200, {"of": name})) for name in ("one", "other"))
        gateway = self.gateway(self.config(self.entry(one, "one", ["/files/*"]), self.entry(other, "other", ["/files", "/batches/*"])),
                               upstream_ports=[one.port, other.port])
        self.assertEqual([get(gateway, path, key=ANN).json["of"] for path in ("/v1/files/a", "/v1/files", "/v1/batches/b")],
                         ["one", "other", "other"])
        self.assertEqual([len(one.requests), len(other.requests)], [1, 2])

    def test_a_good_answer_is_no_proof_of_the_key(self):
        """What is behind such a path may be open to everybody: nothing may be run for a key that nobody looked at."""
        gateway = self.open()
        self.assertEqual(get(gateway, "/v1/files", key=ANN).status, 200)
        reply = get(gateway, "/v1/sessions", key=ANN)
        self.assertEqual((reply.status, reply.error["code"]), (404, "key_not_accepted_yet"))
        self.up.forever = answer("ok")
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN, model="up").status, 200)
        self.assertEqual(get(gateway, "/v1/sessions", key=ANN).status, 200)

    def test_failures_say_nothing_about_models(self):
        gateway = self.open(forever=Status(500, b"{}"), options={"circuit_failures": 1, "retries": 0})
        for _ in range(3):
            self.assertEqual(get(gateway, "/v1/files", key=ANN).status, 500)
        self.assertNotIn("upstreams", get(gateway, "/health/ready").json)
        chat(gateway, text="x", tools=(), key=ANN, model="up")
        gateway.wait_event("upstream_circuit_opened")

    def test_a_request_is_logged_counted_and_accounted(self):
        keys = [{"name": "prometheus", "key": "key-of-the-scraper", "use": "metrics"}]
        lines = pathlib.Path(self.path("accounting.jsonl"))
        usage = {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}
        gateway = self.open(Status(200, usage), auth={"mode": "passthrough", "keys": keys}, accounting={"file": str(lines)})
        self.assertEqual(request(gateway, "PUT", "/v1/files/f?secret=1", body=b"x" * 1000, key=ANN).status, 200)
        line = self.line(gateway)
        self.assertEqual((line["method"], line["path"], line["status"], line["upstream"]), ("PUT", "/v1/files/f", "200", "up"))
        self.assertNotIn("model", line)
        self.assertRegex(line["identity"], "^pt_")
        poll(lambda: lines.read_text().count("\n") == 1, "the line of accounting")
        told = json.loads(lines.read_text())
        self.assertEqual((told["path"], told["model"], told["upstream"], told["status"], told["turns"], told["request_bytes"], told["answer_bytes"],
                          told["input_tokens"]), ("/v1/files/f", None, "up", 200, 1, 1000, len(json.dumps(usage)), None))
        numbers = get(gateway, "/metrics", key="key-of-the-scraper").body.decode()
        self.assertIn('sandgate_requests_total{route="relay",status="2xx"} 1', numbers)
        self.assertNotIn('model=""', numbers)

    # ---- long bodies ----

    def test_a_body_goes_up_while_it_comes(self):
        for framing, first, last, seen in (("Content-Length: 10", b"first", b"-last", (b"first", b"-last")),
                                           ("Transfer-Encoding: chunked", b"5\r\nfirst\r\n", b"5\r\n-last\r\n0\r\n\r\n",
                                            (b"5\r\nfirst\r\n", b"5\r\n-last\r\n0\r\n\r\n"))):
            gateway, raw = self.raw()
            with Wire(gateway) as wire:
                wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n{framing}\r\n\r\n".encode() + first)
                sock, reader, head = raw.accept()
                self.assertIn(framing, head)
                self.assertEqual(reader.read(len(seen[0])), seen[0])
                wire.send(last)
                self.assertEqual(reader.read(len(seen[1])), seen[1])
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                self.assertEqual(wire.answer().status, 200)
                self.assertEqual(reader.read(), b"")

    def test_bodies_longer_than_the_memory_for_requests_pass_both_ways(self):
        data = bytes(range(256)) * 4096 * 48  # 48 MiB
        self.up = self.upstream(lambda connection: Status(200, {"digest": hashlib.sha256(connection.request.body).hexdigest()}),
                                Status(200, data), Stream(b"", pieces=[data[i:i + MIB] for i in range(0, len(data), MIB)], content_type="a/b"))
        gateway = self.gateway(self.config(self.entry(self.up), server={"memory_budget": "4MiB"}), upstream_ports=[self.up.port])
        before = resident(gateway)
        reply = request(gateway, "POST", "/v1/files", body=data, key=ANN)
        self.assertEqual((reply.status, reply.json["digest"]), (200, hashlib.sha256(data).hexdigest()))
        for _ in range(2):
            self.assertEqual(hashlib.sha256(get(gateway, "/v1/files/f/content", key=ANN).body).hexdigest(), hashlib.sha256(data).hexdigest())
        self.assertLess(resident(gateway) - before, 24 * MIB, "nothing of it was held")

    def test_what_a_transfer_may_hold_counts_from_its_beginning(self):
        gateway, raw = self.raw(server={"memory_budget": "4MiB"})
        head = f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: 2\r\n\r\nx".encode()
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(gateway)) for _ in range(5)]
            for wire in wires[:4]:  # a quarter of a mebibyte each is the share of a key
                wire.send(head)
                raw.accept()
            wires[4].send(head)
            reply = wires[4].answer()
            self.assertEqual((reply.status, reply.get("retry-after")), (503, "1"))
            self.assertIn("server.memory_budget: try again later.", reply.error["message"])
            # Who has all of an answer may come back at once, by a connection of its own. A race: many of them.
            framings = (b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
            for i in range(200):
                wires[0].send(b"y")
                raw.socks[0].sendall(b"HTTP/1.1 200 OK\r\n" + framings[i % 2])
                self.assertEqual(wires[0].answer().status, 200)
                wires[0] = stack.enter_context(Wire(gateway))
                wires[0].send(head)
                raw.socks[0] = raw.accept()[0]

    def test_a_body_may_be_so_long_and_no_longer(self):
        gateway, raw = self.raw()
        for length, accepted in ((1024 * MIB, True), (1024 * MIB + 1, False)):
            with Wire(gateway) as wire:
                wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: {length}\r\n\r\nx".encode())
                if accepted:
                    _, reader, _ = raw.accept()
                    self.assertEqual(reader.read(1), b"x")
                else:
                    reply = wire.answer()
                    self.assertEqual((reply.status, reply.error["message"]), (413, "the request's body is longer than 1073741824 bytes"))

    def test_who_expects_it_is_told_to_go_on_once_the_upstream_is_reached(self):
        gateway, raw = self.raw()
        with Wire(gateway) as wire:
            wire.send(f"PUT /v1/files/f HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n".encode())
            sock, reader, head = raw.accept()
            self.assertEqual(wire.reader.readline() + wire.reader.readline(), b"HTTP/1.1 100 Continue\r\n\r\n")
            self.assertNotIn("expect", " ".join(head).lower())
            wire.send(b"abc")
            self.assertEqual(reader.read(3), b"abc")
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            self.assertEqual(wire.answer().status, 200)

    # ---- who leaves, and who fails ----

    def test_a_client_that_leaves_in_its_body_ends_the_request_at_the_upstream(self):
        for framing, first in (("Content-Length: 100", b"half"), ("Transfer-Encoding: chunked", b"4\r\nhalf\r\n")):
            gateway, raw = self.raw()
            with Wire(gateway) as wire:
                wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n{framing}\r\n\r\n".encode() + first)
                _, reader, _ = raw.accept()
                self.assertEqual(reader.read(len(first)), first)
            self.assertEqual(reader.read(), b"", "cut, and not ended as if it were whole")
            self.assertEqual(self.line(gateway)["status"], "499")

    def test_a_client_that_leaves_its_answer_ends_the_transfer(self):
        gateway, raw = self.raw()
        with Wire(gateway) as wire:
            wire.send(f"GET /v1/files/f/content HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
            sock, reader, _ = raw.accept()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc")
            self.assertEqual(wire.stream().read(3), b"abc")
        self.assertEqual(reader.read(), b"")

    def test_a_body_that_is_badly_chunked_or_breaks_off_reaches_nobody_whole(self):
        gateway, raw = self.raw()
        with Wire(gateway) as wire:
            wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".encode())
            _, reader, _ = raw.accept()
            self.assertEqual(reader.read(8), b"3\r\nabc\r\n")
            wire.send(b"0x1\r\n")
            reply = wire.answer()
            self.assertEqual((reply.status, reply.error["message"]), (400, "the request's body is not well chunked"))
        self.assertEqual(reader.read(), b"", "no last chunk")

    def test_an_upstream_that_refuses_early_is_heard(self):
        gateway, raw = self.raw()
        with Wire(gateway) as wire:
            wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: {64 * MIB}\r\n\r\n".encode())
            sock, _, _ = raw.accept()
            refusal = b'{"error":{"message":"too large"}}'
            sock.sendall(b"HTTP/1.1 413 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(refusal) + refusal)
            try:
                for _ in range(64):
                    wire.send(b"x" * MIB)
            except ConnectionError:
                pass  # it was told enough
            reply = wire.answer()
            self.assertEqual((reply.status, reply.body), (413, refusal))

    def test_an_upstream_that_dies_is_told(self):
        gateway, raw = self.raw()
        with Wire(gateway) as wire:  # in the request's body
            wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: 100\r\n\r\nhalf".encode())
            sock, reader, _ = raw.accept()
            self.assertEqual(reader.read(4), b"half")
            abort(sock, reader)
            wire.send(b"x" * 96)
            self.assertEqual(wire.answer().status, 502)
        with Wire(gateway) as wire:  # in its answer
            wire.send(f"GET /v1/files/f HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
            sock, reader, _ = raw.accept()
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            self.assertIn(b"\r\nabc\r\n", read_until(wire.sock, b"abc\r\n"))
            abort(sock, reader)
            self.assertEqual(wire.read_all(), b"", "no last chunk")
        told = [event["message"] for event in gateway.wait_events("request", 2) if event["status"] == "502"]
        self.assertEqual(len(told), 1)
        self.assertNotIn(str(raw.port), told[0])

    def test_where_nobody_listens_the_body_is_not_asked_for(self):
        self.up = Upstream()
        self.up.close()
        gateway = self.gateway(self.config(self.entry(self.up, retries=1)), upstream_ports=[self.up.port])
        with Wire(gateway) as wire:
            wire.send(f"PUT /v1/files/f HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n".encode())
            reply = wire.answer()
            self.assertEqual((reply.status, reply.error["message"]), (502, "The model server could not be reached or broke off its answer."))
        self.assertEqual(len(gateway.events("upstream_retry")), 1)

    def test_what_was_sent_is_not_sent_again(self):
        """The second file would be another one."""
        gateway, raw = self.raw()
        with Wire(gateway) as wire:
            wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: 4\r\n\r\nfile".encode())
            sock, reader, _ = raw.accept()
            self.assertEqual(reader.read(4), b"file")
            abort(sock, reader)
            self.assertEqual(wire.answer().status, 502)
        raw.listener.setblocking(False)
        with self.assertRaises(BlockingIOError):
            raw.listener.accept()

    def test_nor_is_what_has_no_body_and_changes_something(self):
        """Where a kept connection ends without an answer, libcurl would send it anew: the second DELETE finds nothing, and says so."""
        def ends(connection):
            return connection.request.method != "DELETE" and Status(200, b"{}")
        gateway = self.open(forever=ends)
        with Wire(gateway) as wire:  # one loop of the gateway's, which keeps a connection
            for method, status in (("GET", 200), ("DELETE", 502)):
                wire.send(f"{method} /v1/files/f HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
                self.assertEqual(wire.answer().status, status)
        self.assertEqual([sent.method for sent in self.up.requests], ["GET", "DELETE"])

    # ---- reading again ----

    def test_paths_come_and_go_with_sighup_and_transfers_go_on(self):
        gateway, raw = self.raw()

        def reload(**options):
            count = len(gateway.events("reloaded")) + len(gateway.events("reload_failed"))
            gateway.config_path.write_text(to_yaml(self.config(self.entry(raw, **options))) + "\n")
            gateway.signal(signal.SIGHUP)
            poll(lambda: len(gateway.events("reloaded")) + len(gateway.events("reload_failed")) > count, "the reload")
        with Wire(gateway) as wire:
            wire.send(f"POST /v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ANN}\r\nContent-Length: 10\r\n\r\nfirst".encode())
            sock, reader, _ = raw.accept()
            self.assertEqual(reader.read(5), b"first")
            reload(paths=["/batches"])
            self.assertEqual(gateway.events("reloaded")[0]["upstreams_changed_names"], "up")
            self.assertEqual(get(gateway, "/v1/files", key=ANN).status, 404)
            wire.send(b"-last")
            self.assertEqual(reader.read(5), b"-last")
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            self.assertEqual(wire.answer().status, 200)
        reload(paths=["/v1/models/*"])
        self.assertIn("for which the gateway has a path of its own", gateway.log())
        asking = threading.Thread(target=lambda: get(gateway, "/v1/batches", key=ANN))
        asking.start()
        sock, _, head = raw.accept()
        self.assertEqual(head[0], "GET /v1/batches HTTP/1.1", "as before")
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        asking.join(60)


class Mistakes(E2E):
    def check(self, *upstreams, auth=None):
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml({"auth": auth or {"mode": "passthrough"}, "upstreams": list(upstreams)}) + "\n")
        code_, _, said = run("check", "--config", path)
        return code_, re.sub(re.escape(path) + r":\d+:\d+: ", "", said).splitlines()[:-1]

    def up(self, *paths, name="u", **more):
        return {"name": name, "base_url": "https://x", "models": ["m"], "passthrough": True, "relay_paths": list(paths), **more}

    def test_paths_that_the_gateway_has_itself_are_refused(self):
        own = ["/chat/completions", "/responses", "/responses/*", "/messages", "/models", "/models/*", "/sessions", "/sessions/*", "/health/*",
               "/metrics", "/admin", "/admin/*", "/embeddings", "/completions", "/moderations", "/rerank", "/audio/speech", "/audio/transcriptions",
               "/audio/translations", "/images/generations", "/images/edits", "/images/variations", "/messages/count_tokens"]
        cases = [(path, path) for path in own] + [("/v1" + path, path) for path in own]
        cases += [("/*", "/chat/completions"), ("/v1/*/completions", "/chat/completions"), ("/v1/audio/*", "/audio/speech"),
                  ("/v1/messages/*", "/messages/count_tokens"), ("/v1/sessions/*/files", "/sessions/*"), ("/*/content", "/responses/*"),
                  ("/v1/responses/*/input_items", "/responses/*"), ("/responses/input_tokens", "/responses/*"), ("/health/live", "/health/*"),
                  ("/admin/config", "/admin/*"), ("/metrics/x", "/metrics/*"), ("/health", "/health")]
        for path, of_ours in cases:
            self.assertEqual(self.check(self.up(path)), (1, [
                f"upstream 'u': 'relay_paths' holds '{path}', for which the gateway has a path of its own ('{of_ours}'): name what lies beside it"]))
        good = ["/v1/files", "/v1/messages/batches", "/v1/messages/batches/*", "/v1/chat/completions/*", "/v1/audio/voices/*", "/v1/fine_tuning/jobs/*"]
        self.assertEqual(self.check(self.up(*good))[0], 0)

    def test_what_is_no_pattern_is_refused(self):
        self.assertEqual(self.check(self.up("files", "/v1/fil*", "/a?b", "/v1")), (1, [
            "upstream 'u': 'relay_paths' holds 'files', which does not begin with '/'",
            "upstream 'u': 'relay_paths' holds '/v1/fil*', which has a '*' beside other characters: it stands for a whole segment",
            "upstream 'u': 'relay_paths' holds '/a?b', which may hold letters, digits, '-', '.', '_', '~', ':', '@' and '*' between its slashes, "
            "and no query",
            "upstream 'u': 'relay_paths' holds '/v1', which must name something behind /v1, which may be left out and stands once"]))

    def test_only_the_clients_own_key_may_say_who_asks(self):
        needs = ("upstream 'u': 'relay_paths' opens what the server keeps for the key that is sent, which must be the client's: it needs "
                 "'passthrough: true' (in auth mode 'passthrough'), a 'base_url' and no 'api_key'")
        keys = {"mode": "keys", "keys": [{"name": "a", "key": "12345678"}]}
        through = {"name": "t", "base_url": "https://x", "models": ["n"], "passthrough": True}
        self.assertEqual(self.check(self.up("/files", passthrough=False, api_key="sk-operator"), auth=keys), (1, [needs]))
        self.assertEqual(self.check(self.up("/files", passthrough=False), auth={"mode": "none"}), (1, [needs]))
        self.assertEqual(self.check(self.up("/files", passthrough=False), through), (1, [needs]))
        self.assertIn(needs, self.check(self.up("/files", api_key="sk-operator"))[1])
        self.assertIn(needs, self.check({"name": "u", "plugin": "mock", "models": ["m"], "passthrough": True, "relay_paths": ["/files"]})[1])
        self.assertIn("upstream 'u': 'relay_paths' opens what the server keeps for whoever asks, and 'client_certificate' says that it is you: "
                      "leave one out", self.check(self.up("/files", client_certificate="a.pem", client_key="b.pem"))[1])
        self.assertEqual(self.check(self.up("/files", headers={"api-key": "secret-of-the-operator"})), (1, [
            "upstream 'u': 'relay_paths' opens what the server keeps for whoever asks, and 'headers' may say that it is you: leave one out, or "
            "have clients send them ('server.forward_headers')"]))

    def test_a_path_is_one_upstreams(self):
        found = self.check(self.up("/files", "/files/*"), self.up("/batches", "/files/*/content", name="v"))
        self.assertEqual(found, (1, ["upstream 'v': 'relay_paths' has '/files/*/content' in common with upstream 'u': a request names no model "
                                     "there, so that a path must be one upstream's"]))
        self.assertEqual(self.check(self.up("/files"), self.up("/files/*", name="v"))[0], 0)


def resident(gateway):
    with open(f"/proc/{gateway.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def abort(sock, reader):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    reader.close()
    sock.close()


def read_until(sock, end):
    data = b""
    while not data.endswith(end):
        data += sock.recv(65536)
    return data


if __name__ == "__main__":
    main()
