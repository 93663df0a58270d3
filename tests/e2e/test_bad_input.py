"""Bad input of every kind as clients send it, a row each: the status, the error's type, code and field, the words that its
reader can act on, and what may not stand in them. What test_http_limits.py (limits of the HTTP front), test_auth.py (keys)
and test_smuggling.py (framing) show is not repeated; slow heads and bodies are answered 408 by tests/unit/
test_http_server_life.c, where the deadlines can be made short: the configuration has none for them."""
import json
import re
import typing
import urllib.parse

from client import TOOL, Wire, body_of, chat, encode, exchange, get, post, request
from harness import E2E, main
from upstream import Stream, answer, chunk, events, streamed

CHAT = "/v1/chat/completions"
KEY = "key-of-team-a"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": KEY}]}
NO_KEY = "No API key was given: send it as 'Authorization: Bearer KEY' or 'x-api-key'."
WRONG_KEY = "The API key is not one of this gateway's."
# Never for a client: places in the source, inner names, addresses.
INNER = re.compile(r"\.[ch]:\d|core/|errno|0x[0-9a-f]{6}|127\.0\.0\.1|SG_E_|\bNULL\b|anonymous")


class Row(typing.NamedTuple):
    sent: object  # what is bad about it: raw bytes, or members that replace those of a good request
    message: str
    status: int = 400
    param: str | None = None
    code: str | None = None
    absent: tuple = ()


def nested(depth):
    return b'{"model":"mock","messages":[],"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


NOT_JSON = "The body is not valid JSON: "
BODIES = [
    Row(b"", NOT_JSON + "invalid JSON at byte 0: the text ends where a value is expected"),
    Row(b"hello", NOT_JSON + "invalid JSON at byte 0: expected a value"),
    Row(b"{", NOT_JSON + "invalid JSON at byte 1: expected a key in quotes"),
    Row(b'{"model":"mock",}', NOT_JSON + "invalid JSON at byte 16: expected a key in quotes"),
    Row(b"{'model':'mock'}", NOT_JSON + "invalid JSON at byte 1: expected a key in quotes"),
    Row(b'{"model":"mock"', NOT_JSON + "invalid JSON at byte 15: expected ',' or '}'"),
    Row(b'{"a":1}{"b":2}', NOT_JSON + "invalid JSON at byte 7: more text after the value"),
    Row(b'{"model":"mock","x":tru}', NOT_JSON + "invalid JSON at byte 20: expected a value"),
    Row(b'{"model":"mock","x":"a\nb"}', NOT_JSON + "invalid JSON at byte 22: a control character in a string must be escaped"),
    Row(b'{"model":"secret-name","x":"\xff"}', NOT_JSON + "invalid JSON at byte 28: not UTF-8", absent=("secret-name",)),
    Row(b"\xef\xbb\xbf{}", NOT_JSON + "invalid JSON at byte 0: a byte order mark; leave it out"),
    Row(b"model=mock&messages=x", NOT_JSON + "invalid JSON at byte 0: expected a value", absent=("model=mock",)),
    Row(nested(129), NOT_JSON + "JSON at byte 161: nested deeper than 128 levels"),
    Row(nested(100000), NOT_JSON + "JSON at byte 161: nested deeper than 128 levels"),
    Row(b'{"model":"mock","messages":[],' + b",".join(b'"k%d":1' % i for i in range(4100)) + b"}",
        NOT_JSON + "JSON at byte 39860: more than 4096 members in one object"),
    Row(b"[]", "The body must be a JSON object."),
    Row(b"null", "The body must be a JSON object."),
    Row(b'"{}"', "The body must be a JSON object."),
    Row(b'{"model":"mock","mod\\u0065l":"other"}', NOT_JSON + "duplicate key 'model'", param="model"),
]
MEMBERS = [
    Row({"messages": "x"}, "messages must be an array", param="messages"),
    Row({"messages": {}}, "messages must be an array", param="messages"),
    Row({"messages": None}, "messages must be an array", param="messages"),
    Row({"messages": 5}, "messages must be an array", param="messages"),
    Row({"model": None}, "'model' must be a string.", param="model"),
    Row({"model": ["mock"]}, "'model' must be a string.", param="model"),
    Row({"model": ""}, "The request needs 'model', the name of a model.", param="model"),
    Row({"model": "moc"}, "The model 'moc' is not served here. Models that this key may use: mock", 404, "model", "model_not_found"),
    Row({"model": "MOCK"}, "The model 'MOCK' is not served here. Models that this key may use: mock", 404, "model",
        "model_not_found"),
    Row({"model": "mock\0"}, "'model' must not hold a NUL.", param="model"),
    Row({"model": "m" * 5000}, "The model '" + "m" * 128 + "' is not served here. Models that this key may use: mock", 404, "model",
        "model_not_found", ("m" * 129,)),
    Row({"n": 2}, "n must be 1 in a request with hosted tools, not 2", param="n"),
    Row({"n": 1e9}, "n must be 1 in a request with hosted tools, not 1000000000.0", param="n"),
    Row({"metadata": "x"}, "metadata must be an object", param="metadata"),
    Row({"metadata": 5}, "metadata must be an object", param="metadata"),
    Row({"metadata": True}, "metadata must be an object", param="metadata"),
    Row({"metadata": ["session_id"]}, "metadata must be an object", param="metadata"),
    Row({"litellm_metadata": "x"}, "litellm_metadata must be an object", param="litellm_metadata"),
    Row({"metadata": {"session_id": 5}}, "metadata.session_id must be a string", param="metadata.session_id"),
    Row({"metadata": {"session_id": False}}, "metadata.session_id must be a string", param="metadata.session_id"),
    Row({"metadata": {"session_id": {"id": "x"}}}, "metadata.session_id must be a string", param="metadata.session_id"),
    Row({"metadata": {"session_id": "secret" + "s" * 251}}, "metadata.session_id is 257 bytes long; it may have 1 to 256",
        param="metadata.session_id", absent=("secret",)),
    Row({"metadata": {"session_id": "secret\0b"}}, "metadata.session_id must not hold a NUL", param="metadata.session_id",
        absent=("secret",)),
    Row({"litellm_metadata": {"session_id": "a\0"}}, "litellm_metadata.session_id must not hold a NUL",
        param="litellm_metadata.session_id"),
    Row({"metadata": {"session_id": "a\ud800"}},
        "metadata.session_id must not hold U+FFFD, which stands for what could not be read", param="metadata.session_id"),
]
RAW_MEMBERS = [  # what no dict can hold
    Row(b'"metadata":{"session_id":"a","session_id":"b"}', "duplicate key 'session_id' in metadata", param="metadata"),
    Row(b'"metadata":{"session_id":"a","s\\u0065ssion_id":"b"}', "duplicate key 'session_id' in metadata", param="metadata"),
    Row(b'"tool_choice":{"type":"function","type":"x"}', "duplicate key 'type' in tool_choice", param="tool_choice"),
    Row(b'"metadata":{},"metadata":{}', NOT_JSON + "duplicate key 'metadata'", param="metadata"),
]
PATHS = [  # (method, path), message …
    Row(("GET", "/v1/nothing"), "There is nothing at this path on this gateway.", 404, code="unknown_path", absent=("nothing at /",)),
    Row(("POST", "/v1/chat/completions/"), "There is nothing at this path on this gateway.", 404, code="unknown_path"),
    Row(("POST", "/V1/chat/completions"), "There is nothing at this path on this gateway.", 404, code="unknown_path"),
    Row(("GET", CHAT), "This path takes POST, not 'GET'.", 405),
    Row(("PUT", CHAT), "This path takes POST, not 'PUT'.", 405),
    Row(("TRACE", "/v1/models"), "This path takes GET, not 'TRACE'.", 405),
    Row(("DELETE", "/v1/sessions"), "This path takes GET, not 'DELETE'.", 405),
    Row(("GET", "/v1/sessions/x"), "This path takes DELETE, not 'GET'.", 405),
    Row(("AVERYLONGMETHODOFNOBODYATALL", CHAT), "This path takes POST, not 'AVERYLONGMETHODOFNOB'.", 405),
    Row(("GET", "/v1/models/none"), "There is no model 'none' here.", 404, "model", "model_not_found"),
    Row(("GET", "/v1/%2e%2e/models"), "the request's path has a dot segment"),
    Row(("GET", "/v1/models%2fx"), "the request's path has an encoded slash"),
    Row(("GET", "/v1/models%00"), "the request's path has a control character"),
    Row(("GET", "/v1/models%zz"), "the request's path has a broken escape"),
]
HEADS = [  # raw heads
    Row(b"GET /v1/models HTTP/1.1\r\n\r\n", "the request has no Host header"),
    Row(b"GET /v1/models HTTP/1.1\r\nHost: a b\r\n\r\n", "Host is not a host and port"),
    Row(b"GET /v1/models HTTP/1.1\r\nHost:\r\n\r\n", "Host is empty"),
    Row(b"GET /v1/models HTTP/3.0\r\nHost: a\r\n\r\n", "only HTTP/1.1 and HTTP/1.0 are spoken here", 505),
    Row(b"GET http://other.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "the request's target names another host than its Host field", absent=("other.example",)),
    Row(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 33000 + b"\r\n\r\n",
        "the request's head is longer than 32768 bytes", 431, absent=("aaa",)),
    Row(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nSecret-Name : x\r\n\r\n", "a header has a space before its colon",
        absent=("Secret",)),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "the request has both Content-Length and Transfer-Encoding"),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        "Transfer-Encoding may only be 'chunked'", 501),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: a-miracle\r\n\r\n", "Expect may only be '100-continue'",
        417, absent=("miracle",)),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "The body must be JSON: send 'Content-Type: application/json'.", 415),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 33554433\r\n\r\n", "the request's body is longer than 33554432 bytes", 413),
    Row(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "the request's body is not well chunked"),
]
FORM = "multipart/form-data; boundary=b"
FIELD = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
MODEL_FIELD = FIELD % (b"model", b"", b"mock")
FORMS = [  # (Content-Type, body), message …: what another reader could take for another model
    Row((FORM, MODEL_FIELD + FIELD % (b"model", b"", b"dear") + b"--b--"), "the request's form has the field 'model' twice"),
    Row((FORM, FIELD % (b"x\\\"; name=\"model", b"", b"mock") + b"--b--"),
        "the request's form has a part whose Content-Disposition does not name one field"),
    Row((FORM, FIELD % (b"model", b'; filename="x"', b"mock") + b"--b--"), "the request's form has the field 'model' as a file, or coded"),
    Row((FORM, MODEL_FIELD), "the request's form has no boundary at its end"),
    Row((FORM, MODEL_FIELD + b"--b--\r\n" + FIELD % (b"model", b"", b"dear")), "the request's form has bytes behind its end",
        absent=("dear",)),
    Row((FORM, FIELD % (b"model", b"", b"mock\n") + b"--b--"), "'model' must not hold control characters.", param="model"),
    Row((FORM, FIELD % (b"model", b"", b"dear") + b"--b--"), "The model 'dear' is not served here. Models that this key may use: mock",
        404, "model", "model_not_found"),
    Row((FORM, FIELD % (b"file", b'; filename="a"', MODEL_FIELD[3:-2]) + b"--b--"), "The request needs 'model', the name of a model.",
        param="model"),
    Row(("multipart/form-data", MODEL_FIELD + b"--b--"),
        "the request's form needs one 'boundary' of 1 to 70 characters in its Content-Type"),
    Row(("text/plain", b'{"model":"mock"}'),
        "The body must be JSON or a form: send 'Content-Type: application/json' or 'multipart/form-data'.", 415),
    Row(("multipart/mixed; boundary=b", MODEL_FIELD + b"--b--"),
        "The body must be JSON or a form: send 'Content-Type: application/json' or 'multipart/form-data'.", 415),
]
KEY_FIELDS = [
    Row([], NO_KEY, 401, code="invalid_api_key"),
    Row(["Authorization: Bearer"], NO_KEY, 401, code="invalid_api_key"),
    Row([f"Authorization: {KEY}"], NO_KEY, 401, code="invalid_api_key", absent=(KEY,)),
    Row([f"api-key: {KEY}"], NO_KEY, 401, code="invalid_api_key", absent=(KEY,)),
    Row([f"Cookie: Authorization=Bearer {KEY}"], NO_KEY, 401, code="invalid_api_key", absent=(KEY,)),
    Row(["x-api-key:"], NO_KEY, 401, code="invalid_api_key"),
    Row([f"Authorization: Bearer {KEY.upper()}"], WRONG_KEY, 401, code="invalid_api_key", absent=(KEY.upper(),)),
    Row([f"Authorization: Bearer {KEY} "[:-2]], WRONG_KEY, 401, code="invalid_api_key"),
    Row([f"Authorization: Bearer {KEY} x"], WRONG_KEY, 401, code="invalid_api_key", absent=(KEY,)),
    Row([f"Authorization: Bearer Bearer {KEY}"], WRONG_KEY, 401, code="invalid_api_key", absent=(KEY,)),
    Row(["Authorization: Bearer " + "k" * 20000], WRONG_KEY, 401, code="invalid_api_key", absent=("kkk",)),
    Row([f"Authorization: Bearer {KEY}", "x-api-key: other-key"], "Two different API keys were given: send one, in one header.",
        400, code="ambiguous_api_key", absent=(KEY, "other-key")),
    Row([f"Authorization: Bearer {KEY}", "authorization: Bearer other-key"],
        "Two different API keys were given: send one, in one header.", 400, code="ambiguous_api_key", absent=(KEY, "other-key")),
    Row([f"Authorization: Bearer {KEY}", f"Authorization: Basic {KEY}"],
        "Two different API keys were given: send one, in one header.", 400, code="ambiguous_api_key", absent=(KEY,)),
]


def in_pieces(arguments):
    """A streamed turn with one call of the code tool, its arguments in pieces of up to 10,000 characters."""
    def piece(index, **function):
        first = {"id": "call_1", "type": "function"} if index == 0 else {}
        return chunk({"tool_calls": [{"index": 0, **first, "function": function}]})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Stream(events(piece(0, name="code_interpreter", arguments=""),
                         *(piece(1, arguments=text[at:at + 10000]) for at in range(0, len(text), 10000)),
                         chunk({}, "tool_calls")))


class BadInput(E2E):
    def setUp(self):
        super().setUp()
        self.up = self.upstream(forever=answer("ok"))
        self.gw = self.serve(self.up)

    def check(self, row, reply):
        what = (str(row.sent)[:120], reply.status, reply.body[:400])
        error = reply.error
        self.assertEqual((reply.status, error["message"]), (row.status, row.message), what)
        self.assertEqual((error["param"], error["code"]), (row.param, row.code), what)
        self.assertEqual(error["type"], "invalid_request_error", what)
        self.assertTrue(reply.get("content-type").startswith("application/json"), what)
        self.assertEqual(sorted(error), ["code", "message", "param", "type"], what)
        text = reply.body.decode()
        self.assertIsNone(INNER.search(text), what)
        for word in row.absent:
            self.assertNotIn(word, text, what)

    def check_served(self, gateway=None):
        """Nothing of it went up, and the next good request is served."""
        self.assertEqual(self.up.requests, [])
        self.assertEqual(chat(gateway or self.gw, text="x", key=KEY).status, 200)

    def test_bodies(self):
        for row in BODIES:
            self.check(row, post(self.gw, CHAT, row.sent))
        self.check_served()

    def test_members(self):
        for row in MEMBERS:
            self.check(row, post(self.gw, CHAT, {**body_of("x"), **row.sent}))
        for row in RAW_MEMBERS:
            self.check(row, post(self.gw, CHAT, b'{"model":"mock","messages":[],"tools":[{"type":"code_interpreter"}],' + row.sent + b"}"))
        self.check_served()

    def test_tools_of_the_wrong_type_are_the_upstreams_to_refuse_and_ours_where_tools_are_added(self):
        always = self.serve(self.up, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}])
        for tools in ("x", 5, {}, True):
            raw = encode({"model": "mock", "messages": [], "tools": tools})
            self.check(Row(raw, "tools must be an array", param="tools"), post(always, CHAT, raw))
            self.assertEqual(self.up.requests, [])
            self.assertEqual(post(self.gw, CHAT, raw).status, 200)
            self.assertEqual(self.up.requests.pop().body, raw, "as it came")
        for entry in ("x", 5, None, [], {}, {"type": 5}, {"type": "function"}, {"type": "function", "function": 5},
                      {"type": "function", "function": {"name": 5}}, {"type": "custom", "custom": []}):
            self.assertEqual(post(self.gw, CHAT, body_of("x", tools=[entry, TOOL])).status, 200, entry)
            self.assertEqual(self.up.requests.pop().json["tools"][0], entry, "the client's entry is the upstream's to judge")

    def test_a_tool_choice_of_the_wrong_type_goes_up_as_it_is(self):
        for choice in ("x", 5, [], {}, True, {"type": 5}, {"type": "function"}, {"type": "function", "function": {"name": 5}},
                       {"type": "allowed_tools", "allowed_tools": 5}, {"type": "function", "function": {"name": "nope"}}):
            self.assertEqual(post(self.gw, CHAT, body_of("x", tool_choice=choice)).status, 200, choice)
            self.assertEqual(self.up.requests.pop().json["tool_choice"], choice)

    def test_paths_and_methods(self):
        for row in PATHS:
            method, path = row.sent
            with Wire(self.gw) as wire:
                wire.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.check(row, wire.answer())
        self.check_served()

    def test_heads(self):
        for row in HEADS:
            with Wire(self.gw) as wire:
                wire.send(row.sent)
                reply = wire.answer()
                self.check(row, reply)
                if reply.status != 415:
                    self.assertEqual(wire.reader.read(), b"", "and closed")
        self.check_served()

    def test_json_in_another_coding_is_refused(self):
        message = "The body must be UTF-8: send 'charset=utf-8', or none."
        for kind in ("utf-7", "utf-16", "iso-8859-1", '"utf-7"', "utf-8; charset=utf-7", "", '"utf-8'):
            for path in (CHAT, "/v1/embeddings"):
                self.check(Row(kind, message, 415), post(self.gw, path, b'{"model":"mock","x":"+ACI-"}',
                                                         headers={"Content-Type": f"application/json; charset={kind}"}))
        self.assertEqual(self.up.requests, [])
        for kind in ("; charset=utf-8", ';charset="UTF-8"', ";", "; charset=us-ascii", "; profile=x"):
            self.assertEqual(post(self.gw, CHAT, body_of("x"), headers={"Content-Type": "application/json" + kind}).status, 200, kind)

    def test_under_messages_each_is_told_in_that_form(self):
        gateway = self.serve(self.up, auth=KEYS)
        long = b'{"model":"mock","x":"' + b"a" * (32 << 20) + b'"}'
        for method, path, raw, key, status, kind in (
                ("POST", "/v1/messages", b"{", KEY, 400, "invalid_request_error"),
                ("POST", "/v1/messages", b'{"model":"mock","model":"x"}', KEY, 400, "invalid_request_error"),
                ("POST", "/v1/messages", b'{"model":"mock","metadata":5}', KEY, 400, "invalid_request_error"),
                ("POST", "/v1/messages", b"{}", "wrong-key", 401, "authentication_error"),
                ("POST", "/v1/messages", b'{"model":"none"}', KEY, 404, "not_found_error"),
                ("POST", "/v1/messages/count_tokens", b'{"model":"none"}', KEY, 404, "not_found_error"),
                ("GET", "/messages", None, KEY, 405, "invalid_request_error"),
                ("POST", "/v1/messages", long, KEY, 413, "request_too_large")):
            reply = request(gateway, method, path, raw, key=key)
            self.assertEqual((reply.status, reply.json["type"], reply.json["error"]["type"]), (status, "error", kind), reply.body)
            self.assertEqual(sorted(reply.json["error"]), ["message", "type"])
            self.assertEqual(reply.json["request_id"], reply.get("request-id"))
            self.assertIsNone(INNER.search(reply.json["error"]["message"]))
        self.check_served(gateway)

    def test_forms(self):
        for row in FORMS:
            kind, raw = row.sent
            self.check(row, post(self.gw, "/v1/audio/transcriptions", raw, headers={"Content-Type": kind}))
        raw = MODEL_FIELD + b"--b--"
        with Wire(self.gw) as wire:
            wire.send(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Content-Type: " + FORM.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
            self.check(Row("two types", "Content-Type is given twice."), wire.answer())
        self.check_served()

    def test_keys(self):
        gateway = self.serve(self.up, auth=KEYS)
        for row in KEY_FIELDS:
            with Wire(gateway) as wire:
                wire.post(body_of("x"), fields=row.sent)
                self.check(row, wire.answer())
        self.assertNotIn(KEY, gateway.log())
        self.check_served(gateway)

    def test_expected_bodies_of_bad_requests_are_not_asked_for(self):
        gateway = self.serve(self.up, auth=KEYS)
        for line, fields, status in (("POST /v1/nothing", "", b"404"), (f"PUT {CHAT}", "", b"405"), (f"POST {CHAT}", "", b"401"),
                                     (f"POST {CHAT}", f"Authorization: Bearer {KEY}\r\nContent-Type: text/plain\r\n", b"415")):
            with Wire(gateway) as wire:
                wire.send(f"{line} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n".encode())
                first = wire.reader.readline()
                self.assertEqual(first.split(b" ")[1], status, "the answer, and no '100 Continue'")
        self.assertEqual(self.up.requests, [])

    def test_an_http_1_0_client_is_never_told_to_go_on(self):
        raw = encode(body_of("x", tools=()))
        answered = exchange(self.gw, f"POST {CHAT} HTTP/1.0\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                                     f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        self.assertTrue(answered.startswith(b"HTTP/1.1 200 "), answered[:100])

    def test_an_absolute_target_is_its_path(self):
        answered = exchange(self.gw, b"GET http://localhost/v1/models?x=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(answered.startswith(b"HTTP/1.1 200 "), answered[:100])
        self.assertEqual(self.gw.wait_event("request")["path"], "/v1/models")

    def test_pipelined_bad_requests_are_answered_in_their_order(self):
        def one(raw):
            return (f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
                    .encode() + raw)
        good = encode(body_of("x", tools=()))
        with Wire(self.gw) as wire:
            wire.send(one(b"{") + one(good) + one(b'{"model":"none"}') + one(b"[]") + one(good))
            self.assertEqual([wire.answer().status for _ in range(5)], [400, 200, 404, 400, 200])

    def test_a_session_id_may_hold_anything_else_and_log_lines_stay_lines(self):
        odd = ("a\nevent=forged b", 'say "hi"', "back\\slash", "\r\n\r\n", "\x7f\x1b[31m", "a=b c=d", "\u2028", "'; drop")
        up = self.upstream(*[turn for i in range(len(odd)) for turn in
                             (answer(calls=[(f"c{i}", "code_interpreter", {"code": "print(1)"})]), answer("ok"))])
        gateway = self.serve(up, auth=KEYS)
        for session in odd:
            self.assertEqual(chat(gateway, "x", session, key=KEY).status, 200, session)
        listed = get(gateway, "/v1/sessions", key=KEY).json["data"]
        self.assertEqual(sorted(entry["id"] for entry in listed), sorted(odd))
        gateway.wait_events("request", len(odd) + 1)
        self.assertEqual(gateway.events("forged"), [])
        for line in gateway.log().split("\n"):
            self.assertRegex(line, r"^time=\S+ level=\S+ event=\S+", "a line of the log is a line")
            self.assertNotRegex(line, "[\x00-\x1f\x7f]")
        deleted = request(gateway, "DELETE", "/v1/sessions/" + urllib.parse.quote('say "hi"', safe=""), key=KEY)
        self.assertEqual((deleted.status, deleted.json["id"]), (200, 'say "hi"'))

    def test_a_session_header_counts_once(self):
        gateway = self.serve(self.up, sessions={"id_from": ["header:X-Session"]})
        with Wire(gateway) as wire:
            wire.post(body_of("x"), fields=["X-Session: a", "x-session: a"])
            self.check(Row("two", "The header 'X-Session' with the session id is given 2 times: send one.", param="X-Session"),
                       wire.answer())

    def calls(self, arguments, stream=False):
        """What the model is told about a call with these arguments."""
        turn = in_pieces(arguments) if stream else answer(calls=[("call_1", "code_interpreter", arguments)])
        up = self.upstream(turn, streamed("done") if stream else answer("done"))
        gateway = self.serve(up, rules=[{"when": "aaaa", "stdout": "ran"}])
        reply = chat(gateway, "x", stream=stream)
        self.assertEqual(reply.status, 200, reply.body[:300])
        self.assertEqual(reply.stream_text if stream else reply.text, "done")
        result, = [m["content"] for m in up.requests[1].json["messages"] if m["role"] == "tool"]
        return gateway, result, up

    def test_arguments_of_a_call_that_are_none_are_told_to_the_model(self):
        for arguments, problem in (
                ("not json", "the arguments are not a JSON object"), ("[1]", "the arguments are not a JSON object"),
                ("{}", "'code' is missing"), ('{"code":5}', "'code' is not a string"),
                ('{"code":"a","code":"b"}', "'code' is given more than once"), ('{"code":"a"', "the arguments are not a JSON object"),
                ("{" * 5000, "the arguments are not a JSON object"), ('{"x":"' + "s" * (1 << 20) + '"}', "'code' is missing"),
                ("x" * (1 << 20), "the arguments are not a JSON object")):
            for stream in (False, True):
                gateway, result, _ = self.calls(arguments, stream)
                self.assertTrue(result.startswith("[invalid call] "), result[:200])
                self.assertIn(problem, result)
                self.assertIn("code", result, "what would be right")
                self.assertLess(len(result), 600, "what came is not told back")
                self.assertEqual(gateway.journal.lines(), [])

    def test_code_of_a_megabyte_is_run(self):
        source = "# " + "a" * (1 << 20)
        for stream in (False, True):
            gateway, result, up = self.calls({"code": source}, stream)
            self.assertEqual(result.strip(), "ran")
            self.assertEqual(len(gateway.journal.of("run")), 1)
            call, = [c for m in up.requests[1].json["messages"] for c in m.get("tool_calls", [])]
            self.assertEqual(json.loads(call["function"]["arguments"]), {"code": source}, "whole in the history")


if __name__ == "__main__":
    main()
