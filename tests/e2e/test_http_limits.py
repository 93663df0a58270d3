"""The HTTP front with what no good client sends: every limit at its edge and one past it, and messages that two servers
could read in two ways."""
import json
import re
import socket

from client import TOOL, Wire, body_of, encode, exchange, get, post, request
from harness import E2E, in_parallel, main
from upstream import Status, answer

GOOD = b'{"model":"mock","messages":[]}'
LINE = b"POST /v1/chat/completions HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(GOOD)


def status_of(raw):
    return int(raw.split(b" ", 2)[1]) if raw.startswith(b"HTTP/1.1 ") else None


class Limits(E2E):
    def setUp(self):
        super().setUp()
        self.up = self.upstream(forever=answer("ok"))
        self.gw = self.serve(self.up)

    def check_refused(self, raw, status=400, what=None):
        """Refused, the connection closed, and nothing of it read as a second request."""
        answered = exchange(self.gw, raw)
        self.assertEqual(status_of(answered), status, (what or raw[:200], answered[:300]))
        self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d\d\d ", answered)), 1, (raw[:200], answered))
        self.assertIn(b"\r\nconnection: close\r\n", answered.lower(), raw[:200])

    def test_the_good_request_works(self):
        answered = exchange(self.gw, LINE + HOST + JSON + LENGTH + b"Connection: close\r\n\r\n" + GOOD)
        self.assertEqual(status_of(answered), 200, answered)

    def test_smuggling_attempts_are_refused(self):
        smuggled = b"0\r\n\r\nGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        chunked = b"Transfer-Encoding: chunked\r\n"
        for fields in (LENGTH + chunked, chunked + LENGTH, LENGTH + LENGTH, b"Content-Length: 5, 5\r\n",
                       b"Content-Length: +5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 0x5\r\n", b"Content-Length: \r\n",
                       b"Content-Length: 99999999999999999999\r\n", b"Content-Length : 5\r\n", b"Transfer-Encoding : chunked\r\n",
                       b"Transfer-Encoding:\x0bchunked\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                       b"X: a\r\n b\r\n" + LENGTH, b" X: a\r\n" + LENGTH,
                       b"X: a\nY: b\r\n" + LENGTH, b"X: a\rY: b\r\n" + LENGTH, b"X: a\0b\r\n" + LENGTH, b"X\r\n" + LENGTH,
                       b": x\r\n" + LENGTH, b"X Y: z\r\n" + LENGTH, HOST + LENGTH):
            self.check_refused(LINE + HOST + JSON + fields + b"\r\n" + smuggled)
        for coding in (b"xchunked", b"gzip, chunked", b"chunked, chunked", b"identity", b"chunked;q=1"):
            answered = exchange(self.gw, LINE + HOST + JSON + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + smuggled)
            self.assertIn(status_of(answered), (400, 501), coding)
            self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d\d\d ", answered)), 1, coding)
        self.assertEqual(self.up.requests, [])

    def test_request_lines_that_are_none_are_refused(self):
        for line in (b"POST  /v1/models HTTP/1.1\r\n", b"POST /v1/models\r\n", b"P@ST /x HTTP/1.1\r\n", b"GET /a b HTTP/1.1\r\n",
                     b"GET /v1/models HTTP/1.1 \r\n", b"GET v1/models HTTP/1.1\r\n", b"GET /v1/\x7f HTTP/1.1\r\n",
                     b"GET http://other.example/v1/models HTTP/1.1\r\n", b"CONNECT localhost:80 HTTP/1.1\r\n",
                     b"GET /v1/models HTTX/1.1\r\n", b"GET /v1/models#x HTTP/1.1\r\n", b"GET * HTTP/1.1\r\n"):
            self.check_refused(line + HOST + b"\r\n")
        self.check_refused(b"GET /v1/models HTTP/2.0\r\n" + HOST + b"\r\n", 505)
        self.check_refused(b"GET /v1/models HTTP/1.1\r\n\r\n", 400, "no Host")
        self.check_refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "TLS")

    def test_paths_that_hide_something_are_refused(self):
        for path in ("/v1/../v1/models", "/v1//models", "/v1/./models", "/v1/models%2fx", "/v1/models%5Cx", "/v1/%2e%2e/models",
                     "/v1/models%00", "/v1/models%", "/v1/models%g0", "/v1/models/..", "//v1/models"):
            reply = get(self.gw, path)
            self.assertEqual(reply.status, 400, path)
        self.assertEqual(get(self.gw, "/v1/%6dodels").status, 200, "decoded once")
        self.assertEqual(get(self.gw, "/v1/%256dodels").status, 404, "and not twice")

    def test_a_body_in_chunks_is_read_and_broken_chunks_are_refused(self):
        start = LINE + HOST + JSON + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        good = b"5\r\n" + GOOD[:5] + b"\r\n%x;ext=1\r\n" % (len(GOOD) - 5) + GOOD[5:] + b"\r\n0\r\nTrailer: x\r\n\r\n"
        self.assertEqual(status_of(exchange(self.gw, start + good)), 200)
        self.assertEqual(self.up.requests[0].body, GOOD)
        for broken in (b"zz\r\n", b"-5\r\nabcde\r\n0\r\n\r\n", b"0x5\r\nabcde\r\n0\r\n\r\n", b"5\nabcde\n0\n\n",
                       b"5\r\nabcdeXX0\r\n\r\n", b"ffffffffffffffffff\r\n", b" 5\r\nabcde\r\n0\r\n\r\n", b"\r\n0\r\n\r\n"):
            self.check_refused(start + broken)

    def test_a_body_of_32_mib_passes_and_one_byte_more_is_413(self):
        limit = 32 << 20
        start, end = b'{"model":"mock","messages":[],"x":"', b'"}'
        full = start + b"a" * (limit - len(start) - len(end)) + end
        self.assertEqual(post(self.gw, "/v1/chat/completions", full).status, 200)
        self.assertEqual(self.up.requests[0].body, full)
        for head in (b"Content-Length: %d\r\n" % (limit + 1), b"Transfer-Encoding: chunked\r\n"):
            chunk = b"" if b"Length" in head else b"%x\r\n" % (limit + 1) + full + b"a\r\n0\r\n\r\n"
            answered = exchange(self.gw, LINE + HOST + JSON + head + b"\r\n" + chunk)
            self.assertEqual(status_of(answered), 413, answered[:300])
            self.assertIn(b"32", answered.split(b"\r\n\r\n", 1)[1], "the message names the limit")
        self.assertEqual(len(self.up.requests), 1)

    def test_a_body_that_grows_beyond_32_mib_by_what_is_added_is_413(self):
        start, end = b'{"model":"mock","tools":[{"type":"code_interpreter"}],"messages":[{"role":"user","content":"', b'"}]}'
        reply = post(self.gw, "/v1/chat/completions", start + b"a" * ((32 << 20) - len(start) - len(end)) + end)
        self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                         (413, "request_too_large", "The request, with what the gateway adds to it, is larger than 32 MiB."))
        self.assertEqual(self.up.requests, [])

    def test_an_announced_body_over_the_limit_is_refused_before_it_is_sent(self):
        with Wire(self.gw) as wire:
            wire.send(LINE + HOST + JSON + b"Content-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(status_of(wire.read_all()), 413)

    def test_expect_continue_is_answered(self):
        with Wire(self.gw) as wire:
            wire.send(LINE + HOST + JSON + LENGTH + b"Expect: 100-continue\r\n\r\n")
            self.assertEqual(wire.reader.readline(), b"HTTP/1.1 100 Continue\r\n")
            self.assertEqual(wire.reader.readline(), b"\r\n")
            wire.send(GOOD)
            self.assertEqual(wire.reader.readline().split(b" ")[1], b"200")

    def test_a_head_over_32_kib_or_128_fields_is_431(self):
        def head_of(total):
            rest = b"GET /health/live HTTP/1.1\r\n" + HOST + b"Connection: close\r\nX: \r\n\r\n"
            return rest.replace(b"X: ", b"X: " + b"a" * (total - len(rest)))
        self.assertEqual(status_of(exchange(self.gw, head_of(32 << 10))), 200)
        self.check_refused(head_of((32 << 10) + 1), 431)
        self.check_refused(b"GET /" + b"a" * (40 << 10), 431, "a line without end")

        def fields_of(count):
            return (b"GET /health/live HTTP/1.1\r\n" + HOST + b"Connection: close\r\n" +
                    b"".join(b"X%d: y\r\n" % i for i in range(count - 2)) + b"\r\n")
        self.assertEqual(status_of(exchange(self.gw, fields_of(128))), 200)
        self.check_refused(fields_of(129), 431)

    def test_what_is_no_json_on_a_surface_is_415(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/jsonx"):
            reply = post(self.gw, "/v1/chat/completions", GOOD, headers={"Content-Type": kind})
            self.assertEqual(reply.status, 415, kind)
            self.assertTrue(reply.error["message"].startswith(
                "The body must be JSON: send 'Content-Type: application/json', not '" + kind.split(";")[0]), reply.error)
        for kind in ("application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"):
            self.assertEqual(post(self.gw, "/v1/chat/completions", GOOD, headers={"Content-Type": kind}).status, 200, kind)
        with Wire(self.gw) as wire:
            wire.send(LINE + HOST + LENGTH + b"\r\n" + GOOD)
            self.assertEqual(wire.answer().status, 415, "no type at all")

    def test_a_coded_body_is_415_everywhere(self):
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            for coding in ("gzip", "br", "identity, gzip"):
                reply = post(self.gw, path, GOOD, headers={"Content-Type": "application/json", "Content-Encoding": coding})
                self.assertEqual((reply.status, reply.error["message"]),
                                 (415, f"Content-Encoding '{coding}' is not taken here: send the body as it is."))
        self.assertEqual(post(self.gw, "/v1/embeddings", GOOD, headers={"Content-Type": "application/json",
                                                                        "Content-Encoding": "identity"}).status, 200)

    def test_json_that_is_none_is_400(self):
        for raw in (b"", b"{", b"nul", b'{"model":"mock"', b'{"model":"mock"} x', b"{'a':1}", b'{"a":01}', b'{"a":1.}',
                    b'{"a":"\x01"}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}', b'{"a":"\\x"}', b'{"a":NaN}',
                    b"\xef\xbb\xbf{}", b'{"a":\xc0\x80}'):
            reply = post(self.gw, "/v1/chat/completions", raw)
            self.assertEqual(reply.status, 400, raw)
        self.assertEqual(self.up.requests, [])

    def test_depth_128_passes_and_129_does_not(self):
        def nested(depth):
            return b'{"model":"mock","messages":[],"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
        self.assertEqual(post(self.gw, "/v1/chat/completions", nested(128)).status, 200)
        reply = post(self.gw, "/v1/chat/completions", nested(129))
        self.assertEqual(reply.status, 400)
        self.assertIn("128", reply.error["message"])
        deepest = body_of("x", x=json.loads(b"[" * 127 + b"]" * 127))
        self.assertEqual(post(self.gw, "/v1/chat/completions", deepest).status, 200, "in the loop too")

    def test_session_ids_of_1_to_256_bytes_and_nothing_else(self):
        for session, status in (("s" * 256, 200), ("ä" * 128, 200), ("s" * 257, 400), ("ä" * 128 + "x", 400), ("a\0b", 400),
                                (5, 400), (True, 400), ([], 400), ({}, 400), ("", 200), (None, 200)):
            for source in ("metadata", "litellm_metadata"):
                body = body_of("x")
                body[source] = {"session_id": session}
                reply = post(self.gw, "/v1/chat/completions", body)
                self.assertEqual(reply.status, status, (source, session))
                if status == 400:
                    self.assertEqual(reply.error["param"], f"{source}.session_id")

    def test_metadata_that_is_no_object_is_400(self):
        for value in ("x", 5, [1]):
            reply = post(self.gw, "/v1/chat/completions", body_of("x", metadata=value))
            self.assertEqual((reply.status, reply.error["param"]), (400, "metadata"))

    def test_a_session_id_from_a_header_has_the_same_bound(self):
        gateway = self.serve(self.up, sessions={"id_from": ["header:X-Session"]})
        for length, status in ((256, 200), (257, 400)):
            reply = post(gateway, "/v1/chat/completions", body_of("x"), headers={"X-Session": "s" * length})
            self.assertEqual(reply.status, status)
        self.assertEqual(reply.error["message"], "The session id in header 'X-Session' is longer than 256 bytes.")

    def test_many_tools_are_read_and_too_many_refused(self):
        function = {"type": "function", "function": {"name": "f", "parameters": {}}}
        ok = body_of("x", tools=[{**function, "function": {"name": f"f{i}"}} for i in range(1023)] + [TOOL])
        self.assertEqual(post(self.gw, "/v1/chat/completions", ok).status, 200)
        over = body_of("x", tools=[{**function, "function": {"name": f"f{i}"}} for i in range(1024)] + [TOOL])
        reply = post(self.gw, "/v1/chat/completions", over)
        self.assertEqual(reply.status, 400)
        self.assertIn("1024", reply.error["message"])

    def test_requests_of_one_connection_follow_each_other(self):
        with Wire(self.gw) as wire:
            for _ in range(3):
                wire.post(GOOD)
                self.assertEqual(wire.answer().status, 200)
            one = LINE + HOST + JSON + LENGTH + b"\r\n" + GOOD
            wire.send(one + one)
            self.assertEqual([wire.answer().status for _ in range(2)], [200, 200])

    def test_http_1_0_is_served_and_closed(self):
        answered = exchange(self.gw, b"GET /health/live HTTP/1.0\r\n\r\n")
        self.assertEqual(status_of(answered), 200, answered)
        self.assertNotIn(b"chunked", answered.lower())

    def test_a_half_sent_request_costs_nothing(self):
        for part in (LINE[:10], LINE + HOST, LINE + HOST + JSON + LENGTH + b"\r\n" + GOOD[:5]):
            with Wire(self.gw) as wire:
                wire.send(part)
        with Wire(self.gw) as wire:
            wire.send(LINE)
            wire.reset()
        self.gw.wait_quiet()

    def test_an_answer_never_carries_what_an_upstream_smuggles_into_its_fields(self):
        upstream = self.upstream(Status(200, b"{}", [("X-Bad", "a\x01b"), ("X-Good", "c")]))
        gateway = self.serve(upstream)
        reply = post(gateway, "/v1/embeddings", {"model": "mock"})
        if reply.status == 200:
            self.assertIsNone(reply.get("x-bad"))
            self.assertEqual(reply.get("x-good"), "c")
        else:
            self.assertEqual(reply.status, 502)

    def test_log_lines_cannot_be_forged(self):
        request(self.gw, "GET", "/x%0aevent=forged")
        with Wire(self.gw) as wire:
            raw = encode({"model": "mock\nevent=forged x", "messages": []})
            wire.send(LINE + HOST + JSON + b"X-Request-Id: a event=forged\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
            self.assertEqual(wire.answer().status, 404)
        self.gw.wait_event("request", lambda e: e.get("client_request") == "a event=forged")
        self.assertEqual(self.gw.events("forged"), [])

    def test_a_hundred_connections_at_once(self):
        def one(i):
            with Wire(self.gw) as wire:
                wire.post({"model": "mock", "messages": [], "i": i})
                return wire.answer().status
        self.assertEqual(in_parallel(100, one), [200] * 100)

    def test_a_client_that_closes_its_sending_side_counts_as_gone(self):
        upstream = self.upstream(lambda connection: connection.wait_closed() and False)
        gateway = self.serve(upstream)
        with Wire(gateway) as wire:
            wire.post(GOOD)
            upstream.next_request()
            wire.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(gateway.wait_event("request")["status"], "499")


if __name__ == "__main__":
    main()
