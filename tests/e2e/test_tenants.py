"""Tenants are enemies: what each may see, use, delete or leave to another. Beside test_auth.py (who is who), test_sessions.py
(caps) and test_mixed.py (records): headers in both directions, paths of stored objects, browsers where there are no keys, and
forged control keys, identities, ids and session ids. A forgery has no effect, and what belongs to another is answered like
what does not exist, byte for byte."""
import json
import re
import unicodedata
import urllib.parse

from client import TOOL, Wire, body_of, chat, encode, get, post, request
from harness import E2E, main
from upstream import Status, answer, code

CHAT = "/v1/chat/completions"
A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}
CONTROL = ("_agentic_loop_depth", "_agentic_loop", "max_agentic_loops", "_sandgate", "_sandgate_identity",
           "_code_interpreter_interception_active", "_websearch_interception_active", "_compression_interception",
           "_headroom_interception", "user_api_key", "user_api_key_team_id", "litellm_call_id")
VALUES = (99, 0, True, "a", {"identity": "a", "container": "cntr_sg" + "0" * 32}, ["x"], None)
REQUEST_ID = re.compile(rb"req_[0-9a-f]{32}")


def escaped(key):
    """The same key as other JSON writes it: every letter as \\uXXXX."""
    return "".join(f"\\u{ord(c):04x}" for c in key)


def first_escaped(key):
    return f"\\u{ord(key[0]):04X}" + key[1:]


def what_is_told(reply):
    """Of an answer, all that could tell two cases apart. Request ids and the date are always others; whether the connection
    goes on depends on whether the body that nobody reads had come already."""
    fields = sorted((name.lower(), value) for name, value in reply.fields
                    if name.lower() not in ("date", "connection", "x-request-id", "request-id"))
    return reply.status, fields, REQUEST_ID.sub(b"req_", reply.body)


class Forged(E2E):
    """Control keys: the gateway does the same, and the upstream sees the same, as without them."""

    def ask(self, raw, headers=None, **options):
        upstream = self.upstream(code("x = 1\nprint(x)"), code("print(x)", "call_2"), answer("done"))
        gateway = self.serve(upstream, **options)
        reply = post(gateway, CHAT, raw, headers=headers)
        self.assertEqual(reply.status, 200, (raw, reply.body))
        gateway.journal.wait("destroy")
        verbs = [line.split()[0] for line in gateway.journal.lines() if line.split()[0] in ("create", "run", "destroy")]
        return [r.body for r in upstream.requests], verbs, reply.text

    def raw(self, top=b"", metadata=b'"mine":"kept"'):
        return (b'{' + top + b'"model":"mock","messages":[{"role":"user","content":"x"}],"tools":[{"type":"code_interpreter"}],'
                b'"metadata":{' + metadata + b'}}')

    def test_keys_at_the_top_and_in_metadata_change_nothing_at_all(self):
        expected = self.ask(self.raw())
        self.assertEqual(expected[1:], (["create", "run", "run", "destroy"], "done"))
        forged = [(write(key), json.dumps(VALUES[i % len(VALUES)])) for i, key in enumerate(CONTROL)
                  for write in (str, first_escaped, escaped)]
        for i in range(len(forged)):  # three at a time, of different keys: a key twice is refused
            three = [forged[(i + step) % len(forged)] for step in (0, 3, 6)]
            members = "".join(f'"{key}":{value},' for key, value in three).encode()
            self.assertEqual(self.ask(self.raw(members, members + b'"mine":"kept"')), expected, members)

    def test_litellm_metadata_is_read_for_the_session_alone_and_goes_whole(self):
        inside = "".join(f'"{key}":99,' for key in CONTROL).encode()
        self.assertEqual(self.ask(self.raw(b'"litellm_metadata":{' + inside + b'"x":1},')), self.ask(self.raw()))
        self.assertEqual(self.ask(self.raw(b'"litellm\\u005fmetadata":{"user_api_key":"a"},')), self.ask(self.raw()))

    def test_a_key_given_twice_is_refused_however_it_is_written(self):
        upstream = self.upstream()
        gateway = self.serve(upstream)
        for key in CONTROL:
            for one, other in ((key, key), (key, first_escaped(key)), (escaped(key), first_escaped(key))):
                twice = f'"{one}":1,"{other}":2'.encode()
                for raw in (self.raw(twice + b","), self.raw(b"", twice)):
                    reply = post(gateway, CHAT, raw)
                    self.assertEqual(reply.status, 400, raw)
                    self.assertIn(f"duplicate key '{key}'", reply.error["message"])
        self.assertEqual(upstream.requests, [])

    def test_keys_further_inside_are_the_clients_and_do_nothing(self):
        _, verbs, text = self.ask(self.raw())
        inner = "".join(f'"{key}":99,' for key in CONTROL).encode()
        for raw in (b'{"model":"mock","messages":[{' + inner + b'"role":"user","content":"x"}],"tools":[{"type":"code_interpreter"}]}',
                    b'{"model":"mock","messages":[{"role":"user","content":"x"}],"tools":[{' + inner + b'"type":"code_interpreter"}]}',
                    b'{"model":"mock","messages":[{"role":"user","content":"x"}],"tools":[{"type":"code_interpreter"}],'
                    b'"metadata":{"inner":{' + inner + b'"x":1}},"extra_body":{' + inner + b'"metadata":{' + inner + b'"x":1}}}'):
            bodies, *rest = self.ask(raw)
            self.assertEqual(rest, [verbs, text], raw)
            self.assertEqual(len(bodies), 3)
        self.assertIn(b'"extra_body":{' + inner, bodies[0], "the client's own bytes")

    def test_headers_of_the_name_do_nothing(self):
        expected = self.ask(self.raw())
        headers = {"Content-Type": "application/json", **{key.replace("_", "-"): "99" for key in CONTROL},
                   **{key: "99" for key in CONTROL}, "X-Litellm-Call-Id": "x", "X-Sandgate-Identity": "a"}
        self.assertEqual(self.ask(self.raw(), headers), expected)


class Identities(E2E):
    def setUp(self):
        super().setUp()
        self.up = self.upstream(forever=self.model)
        self.gw = self.serve(self.up, auth=KEYS)

    @staticmethod
    def model(connection):
        """Runs what the last user message says, and answers with what the tool said."""
        last = connection.request.json["messages"][-1]
        turn = answer(last["content"].strip()) if last["role"] == "tool" else code(last["content"].split("result: ", 1)[1])
        data = Status(200, turn)
        connection.head(200, [("Content-Length", len(data.body))])
        connection.send(data.body)
        return True

    def run_code(self, source, session, key, gateway=None, **more):
        reply = chat(gateway or self.gw, source, session, key=key, **more)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.text

    def listed(self, key, gateway=None):
        return {entry["id"]: entry["container_id"] for entry in get(gateway or self.gw, "/v1/sessions", key=key).json["data"]}

    def test_forged_identities_see_use_and_end_nothing_of_another(self):
        self.run_code("x = 'of a'", "s", A)
        container = self.listed(A)["s"]
        members = {"user": "a", "identity": "a", "user_api_key": A, "user_api_key_alias": "a", "api_key": A, "organization": "a",
                   "safety_identifier": "a", "prompt_cache_key": "a"}
        headers = {"X-Identity": "a", "X-Forwarded-User": "a", "X-Remote-User": "a", "OpenAI-Organization": "a",
                   "OpenAI-Project": "a", "X-Real-IP": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1",
                   "X-Litellm-Api-Key": A, "api-key": A, "Cookie": f"key={A}", "X-Original-Url": "/v1/sessions"}
        text = self.run_code("print(x)", "s", B, headers=headers, **members,
                             litellm_metadata={"session_id": "s", **members})
        self.assertIn("NameError", text)
        self.assertIn("NameError", self.run_code("print(x)", None, B, container=container, **members))
        told = [what_is_told(chat(self.gw, "print(x)", None, key=B, tools=[{**TOOL, "container": named}]))
                for named in (container, "cntr_sg" + "f" * 32)]
        self.assertEqual((told[0], told[0][0]), (told[1], 400))
        self.assertEqual([e["id"] for e in get(self.gw, "/v1/sessions?identity=a&user=a", key=B, headers=headers).json["data"]], ["s"])
        self.assertNotEqual(self.listed(B)["s"], container)
        self.assertEqual(self.run_code("print(x)", "s", A), "of a")
        self.assertEqual(self.listed(A), {"s": container})
        self.assertEqual({e["identity"] for e in self.gw.wait_events("request", 9)}, {"a", "b"})

    def test_what_is_anothers_is_answered_like_what_never_was(self):
        self.run_code("x = 5", "mine", A)
        container = self.listed(A)["mine"]
        for method in ("DELETE", "GET", "POST", "PUT", "HEAD"):
            told = {name: what_is_told(request(self.gw, method, f"/v1/sessions/{name}", b"{}" if method in ("POST", "PUT") else None,
                                               key=B)) for name in ("mine", container, "none", "cntr_sg" + "f" * 32)}
            self.assertEqual(len({str(answer_) for answer_ in told.values()}), 1, told)
        for query in (f"?id={container}", "?after=mine", "?identity=a"):
            self.assertEqual(what_is_told(get(self.gw, "/v1/sessions" + query, key=B)), what_is_told(get(self.gw, "/v1/sessions", key=B)))
        self.assertEqual(self.listed(A), {"mine": container})
        self.assertEqual(self.gw.journal.of("destroy"), [])

    def test_session_ids_that_look_alike_are_others(self):
        keys = {"mode": "keys", "keys": [{"name": name, "key": f"key-of-{name}-"} for name in ("a", "ab", "a:b", "A", "abox")]}
        gateway = self.serve(self.up, auth=keys, sessions={"per_identity": 100})
        long = "s" * 255
        composed, decomposed = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
        pairs = [("a", "bc"), ("ab", "c"), ("a:b", "c"), ("a", ":bc"), ("a", "b:c"), ("A", "bc"), ("a", "BC"), ("a", " bc"), ("a", "bc "),
                 ("a", composed), ("a", decomposed), ("a", long + "a"), ("a", long + "b"), ("a", long), ("abox", "s"), ("a", "boxs"),
                 ("a", "sbox"), ("a", "\x02bc"), ("a", "bc\n"), ("a", "null"), ("a", "0"), ("a", "\x01\x01"),
                 ("a", "cntr_sg" + "0" * 32), ("a", "%62c"), ("a", "b/../bc")]
        for i, (name, session) in enumerate(pairs):
            self.assertEqual(self.run_code(f"x = {i}", session, f"key-of-{name}-", gateway), "[no output]")
        self.assertEqual(len(set(gateway.journal.labels("create"))), len(pairs))
        for i, (name, session) in enumerate(pairs):
            self.assertEqual(self.run_code("print(x)", session, f"key-of-{name}-", gateway), str(i), (name, session))

    def test_a_session_named_like_a_container_is_no_way_to_it(self):
        self.run_code("x = 'of a'", "s", A)
        container = self.listed(A)["s"]
        for key in (A, B):
            self.assertIn("NameError", self.run_code("print(x)", container, key))
        self.assertEqual(request(self.gw, "DELETE", f"/v1/sessions/{container}", key=B).status, 200, "its own session of that id")
        self.assertEqual(self.run_code("print(x)", "s", A), "of a", "and not the container of that id")

    def test_what_one_uses_up_is_its_own(self):
        gateway = self.serve(self.up, auth=KEYS, sessions={"per_identity": 2, "max_containers": 3})
        self.run_code("x = 'of a'", "s", A, gateway)
        for i in range(6):
            self.run_code("x = 1", f"s{i}", B, gateway)
            self.run_code("x = 1", None, B, gateway)
        self.assertEqual(self.run_code("print(x)", "s", A, gateway), "of a")
        self.assertEqual(len(self.listed(B, gateway)), 2)


class Headers(E2E):
    def up_and_down(self, path, body, fields=(), down=(), key=None, **options):
        upstream = self.upstream(Status(200, answer("ok"), list(down)))
        gateway = self.serve(upstream, **options)
        with Wire(gateway) as wire:
            wire.post(body, path, [*fields, *([f"Authorization: Bearer {key}"] if key else [])])
            reply = wire.answer()
        self.assertEqual(reply.status, 200, reply.body)
        return upstream.requests[0], reply

    def test_only_what_is_listed_goes_up_whoever_serves_it(self):
        fields = ["Cookie: a=b", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "Referer: http://x", "Origin-Trial: x",
                  "Proxy-Authorization: Basic x", "TE: trailers", "Keep-Alive: timeout=5", "Via: x", "Range: bytes=0-1",
                  "If-None-Match: x", "OpenAI-Organization: org-of-the-client", "User-Agent: client/1.0", "X-Session: mine",
                  "Upgrade: h2c", "Trailer: x", "HTTP2-Settings: x", "anthropic-beta: b1"]
        for path, body in ((CHAT, body_of("x", tools=())), (CHAT, body_of("x")), ("/v1/messages", {"model": "mock", "messages": []}),
                           ("/v1/embeddings", {"model": "mock"})):
            for auth, key in (({"mode": "none"}, None), (KEYS, A)):
                sent, _ = self.up_and_down(path, body, fields, auth=auth, key=key)
                names = sorted(name.lower() for name, _ in sent.fields)
                own = ["accept-encoding"] if path == CHAT and "tools" in body else []
                self.assertEqual(names, sorted(["anthropic-beta", "content-length", "content-type", "host", "user-agent", *own]),
                                 (path, auth))
                self.assertEqual(sent.get("user-agent"), "sandgate")
                self.assertNotIn(A, str(sent.fields))

    def test_credentials_go_up_as_the_surface_has_them_and_are_the_operators(self):
        for path, wanted in ((CHAT, ("authorization", "Bearer sk-operator")), ("/v1/messages", ("x-api-key", "sk-operator")),
                             ("/v1/messages/count_tokens", ("x-api-key", "sk-operator")),
                             ("/v1/embeddings", ("authorization", "Bearer sk-operator"))):
            sent, reply = self.up_and_down(path, {"model": "mock", "messages": []}, auth=KEYS, key=A,
                                           upstream_options={"api_key": "sk-operator"})
            self.assertEqual([(n.lower(), v) for n, v in sent.fields if n.lower() in ("authorization", "x-api-key")], [wanted])
            self.assertNotIn("sk-operator", str(reply.fields) + reply.body.decode())

    def test_one_idempotency_key_of_two_tenants_is_two(self):
        """An upstream that heeds them would answer the one with the other's answer: it sees the operator's account alone."""
        upstream = self.upstream(forever=answer("ok"))
        gateway = self.serve(upstream, auth=KEYS)
        for tools in ((), (TOOL,)):
            for key in (A, B, A):
                self.assertEqual(chat(gateway, text="x", tools=tools, key=key, headers={"Idempotency-Key": "one"}).status, 200)
            first, other, again = [upstream.requests.pop(0).get("idempotency-key") for _ in range(3)]
            self.assertRegex(first, "^[0-9a-f]{64}$")
            self.assertEqual(again, first, "the same for a request that is repeated")
            self.assertNotEqual(other, first)

    def test_what_connection_names_stays_here(self):
        fields = ["Connection: keep-alive, X-Stainless-Os", "Connection: x-listed", "X-Stainless-Os: linux", "X-Listed: yes",
                  "X-Stainless-Lang: js"]
        sent, _ = self.up_and_down(CHAT, body_of("x", tools=()), fields, server={"forward_headers": ["x-listed"]})
        self.assertEqual((sent.get("x-stainless-os"), sent.get("x-listed"), sent.get("x-stainless-lang")), (None, None, "js"))

    def test_an_upstream_does_not_speak_for_the_gateway(self):
        down = [("Access-Control-Allow-Origin", "*"), ("access-control-allow-credentials", "true"), ("Alt-Svc", 'h2="evil.example:443"'),
                ("Strict-Transport-Security", "max-age=1"), ("Clear-Site-Data", '"*"'), ("Set-Cookie", "a=b"), ("Refresh", "0;url=x"),
                ("X-Request-Id", "theirs"), ("Request-Id", "theirs"), ("Trailer", "x"), ("Proxy-Authenticate", "Basic"),
                ("Server", "theirs/1"), ("Via", "1.1 theirs"), ("X-Powered-By", "theirs"), ("Location", "http://theirs/"),
                ("openai-organization", "theirs"), ("openai-project", "theirs"), ("X-Ratelimit-Remaining", "5")]
        for origin in (None, "https://good.example"):
            _, reply = self.up_and_down(CHAT, body_of("x", tools=()), [f"Origin: {origin}"] if origin else [], down,
                                        server={"origins": ["https://good.example"]})
            names = [name.lower() for name, _ in reply.fields]
            for name in ("access-control-allow-credentials", "alt-svc", "strict-transport-security", "clear-site-data", "set-cookie",
                         "refresh", "trailer", "proxy-authenticate", "server", "via", "x-powered-by", "location",
                         "openai-organization", "openai-project"):
                self.assertNotIn(name, names)
            self.assertEqual([v for n, v in reply.fields if n.lower() == "access-control-allow-origin"], [origin] if origin else [])
            self.assertEqual(len([n for n in names if n in ("x-request-id", "request-id")]), 2)
            self.assertNotIn("theirs", str(reply.fields))
            self.assertEqual(reply.get("x-ratelimit-remaining"), "5")


class Paths(E2E):
    STORED = ("/responses/resp_1/output", "/responses/resp_1/cancel/x", "/chat/completions/chatcmpl_1",
              "/chat/completions/chatcmpl_1/messages", "/conversations", "/conversations/conv_1/items", "/files", "/files/file_1",
              "/files/file_1/content", "/uploads", "/batches", "/messages/batches", "/messages/batches/b/results", "/containers",
              "/containers/cntr_1", "/containers/cntr_1/files/cfile_1/content", "/vector_stores/vs_1/search", "/assistants", "/threads/t/runs",
              "/fine_tuning/jobs", "/evals", "/organization/projects", "/videos/v/content", "/skills", "/realtime/sessions",
              "/audio/voices", "/audio/voice_consents", "/audio/voice_consents/c", "/audio/speech/x", "/images", "/images/i", "/audio",
              "/images/generations/x", "/completions/x", "/embeddings/x", "/moderations/x", "/rerank/x", "/responses/input_tokens/x",
              "/messages/count_tokens/x", "/responses/compact", "/organizations/org/usage", "/admin", "/config", "/debug", "/key/generate")

    def test_paths_of_stored_objects_do_not_exist_for_anybody(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway = self.serve(upstream, auth=KEYS, upstream_options={"api_key": "sk-operator"})
        told = set()
        for path in self.STORED:
            for version in ("/v1", ""):
                for method in ("GET", "POST", "DELETE"):
                    reply = request(gateway, method, version + path, encode({"model": "mock"}) if method == "POST" else None, key=A)
                    self.assertEqual(reply.status, 404, (method, version + path, reply.body))
                    told.add(str(what_is_told(reply)))
        self.assertEqual(len(told), 1, told)
        self.assertEqual(upstream.requests, [])

    def test_responses_are_those_that_the_gateway_keeps(self):
        """What an upstream keeps under that id, or another tenant got from the gateway, is what never was."""
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway = self.serve(upstream, auth=KEYS, upstream_options={"api_key": "sk-operator"})
        for version in ("/v1", ""):
            for method, path in (("GET", "/responses/resp_1"), ("DELETE", "/responses/resp_1"),
                                 ("GET", "/responses/resp_1/input_items"), ("POST", "/responses/resp_1/cancel")):
                reply = request(gateway, method, version + path, b"{}" if method == "POST" else None, key=A)
                self.assertEqual((reply.status, reply.error["message"]), (404, "Response with id 'resp_1' not found."), path)
            reply = request(gateway, "POST", version + "/responses/resp_1", b"{}", key=A)
            self.assertEqual((reply.status, reply.get("allow")), (405, "GET, DELETE"))
            self.assertEqual(reply.error["message"], "This path takes GET, DELETE, not 'POST'.")
        self.assertEqual(upstream.requests, [])

    def test_no_spelling_of_a_path_leads_there(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway = self.serve(upstream, auth=KEYS, upstream_options={"api_key": "sk-operator"})
        for path, status in (("/v1/audio/../responses/resp_1", 400), ("/v1/audio/speech/../../files", 400), ("/v1/./files", 400),
                             ("/v1/audio/%2e%2e/files", 400), ("/v1/audio/%2E./files", 400), ("/v1/audio/speech%2f..%2ffiles", 400),
                             ("/v1/audio%2fspeech", 400), ("/v1//files", 400), ("/v1/audio/speech//", 400), ("/v1/audio\\speech", 400),
                             ("/v1/audio/speech%5c..%5cfiles", 400), ("/v1/audio/speech%00", 400), ("/v1/audio/speech%0d%0aX:%20y", 400),
                             ("/v1/audio/speech%3fx=1", 404), ("/v1/audio/speech%23x", 404), ("/v1/audio/speech;x=1", 404),
                             ("/v1/audio/speech%20", 404), ("/v1/audio/speech%252f..", 404), ("/v1/audio/%252e%252e/files", 404),
                             ("/v1/audio/\u00e4".encode().decode("latin-1"), 400), ("/v1/v1/embeddings", 404), ("/V1/embeddings", 404),
                             ("/v1/embeddings/", 404), ("/v1/Embeddings", 404), ("/v1/sessions/..%2fmodels", 400),
                             ("/v1/sessions/%2e%2e", 400), ("/v1/models/%2e%2e/files", 400)):
            with Wire(gateway) as wire:
                wire.send(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {A}\r\nContent-Type: application/json\r\n"
                          "Content-Length: 16\r\n\r\n{\"model\":\"mock\"}".encode("latin-1"))
                self.assertEqual(wire.answer().status, status, path)
        self.assertEqual(upstream.requests, [])
        self.assertEqual(post(gateway, "/v1/%65mbeddings?a=../files&b=%2f", {"model": "mock"}, key=A).status, 200)
        self.assertEqual(upstream.requests[0].target, "/v1/embeddings?a=../files&b=%2f", "what was checked is what goes up")


class Stored(E2E):
    """What an upstream keeps under the operator's key is not reached through a body either."""

    NAMED = [  # (path, members as raw JSON, the field, what the message advises)
        ("/v1/responses", '"input":[{"type":"item_reference","id":"msg_1"}]', "input[0]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"role":"user","content":"x"},5,{"id":"rs_1"}]', "input[2]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"id":"rs_1","type":null}]', "input[0]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"role":null,"id":"rs_1"}]', "input[0]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"role":{"a":"user"},"id":"rs_1"}]', "input[0]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"role":"user","role":null,"id":"rs_1"}]', "input[0]", "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"type":"item_reference","id":"rs_1","type":"message"}]', "input[0]",
         "send the item itself, not a reference to it"),
        ("/v1/responses", '"input":[{"t\\u0079pe":"item\\u005freference","id":"rs_1"}]', "input[0]",
         "send the item itself, not a reference to it"),
        ("/v1/responses/input_tokens", '"input":[{"type":"item_reference","id":"msg_1"}]', "input[0]",
         "send the item itself, not a reference to it"),
        ("/v1/responses", '"tools":[{"type":"x"},{"type":"other","container":"cntr_1"}]', "tools[1].container",
         'say {"type": "auto"}'),
        ("/v1/responses/input_tokens", '"tools":[{"type":"other","container":{"type":"auto"},"container":"cntr_1"}]', "tools[0].container",
         'say {"type": "auto"}'),
        ("/v1/responses", '"tools":[{"type":"shell","container":{"type":"container_reference","id":"cntr_1"}}]', "tools[0].container",
         'say {"type": "auto"}'),
        ("/v1/responses", '"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}]',
         "tools[0].environment", 'say {"type": "container_auto"}'),
        ("/v1/responses/input_tokens", '"tools":[{"type":"x"},{"type":"shell","environment":{"type":"local"},'
         '"environment":{"container\\u005fid":"cntr_1"}}]', "tools[1].environment", 'say {"type": "container_auto"}'),
        ("/v1/responses", '"input":[{"id":"rs_1","type":null,"type":"message"}]', "input[0]",
         "send the item itself, not a reference to it"),
        ("/v1/messages", '"container":"container_1"', "container", "leave its id out"),
        ("/v1/messages", '"container":{"id":"container_1","skills":[]}', "container", "leave its id out"),
        ("/v1/messages/count_tokens", '"container":"container_1"', "container", "leave its id out")]

    def test_objects_that_another_may_have_made_are_not_named(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway, alone = self.serve(upstream, auth=KEYS), self.serve(upstream)
        for path, members, field, advice in self.NAMED:
            raw = ('{"model":"mock",' + members + "}").encode()
            reply = post(gateway, path, raw, key=A)
            self.assertEqual((reply.status, reply.error["message"]), (400, f"'{field}' names nothing that a model server gave you through this gateway: {advice}."), raw)
            if "messages" not in path:
                self.assertEqual(reply.error["param"], field)
            self.assertEqual(upstream.requests, [], raw)
            self.assertEqual(post(alone, path, raw).status, 200, "a tenant alone has no other")
            self.assertEqual(upstream.requests.pop().body, raw)

    def test_ids_of_ones_own_items_pass(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway = self.serve(upstream, auth=KEYS)
        for path, members in (("/v1/responses", '"input":[{"type":"message","id":"msg_1","role":"assistant","content":[]},'
                                                '{"id":"x","role":"user","content":"y"},{"type":"reasoning","id":"rs_1","summary":[]}]'),
                              ("/v1/responses", '"input":"x","tools":[{"type":"other","container":{"type":"auto"}}]'),
                              ("/v1/responses", '"input":"x","tools":[{"type":"shell","environment":{"type":"container_auto",'
                                                '"container_id":null}},{"type":"shell","environment":{"type":"local"}},'
                                                '{"type":"computer_use_preview","environment":"browser"}]'),
                              ("/v1/responses", '"previous_response_id":null,"conversation":null,"input":[]'),
                              ("/v1/messages", '"container":{"skills":[]}'), ("/v1/messages", '"container":null'),
                              (CHAT, '"messages":[],"input":[{"type":"item_reference","id":"x"}],"container":"x"')):
            raw = ('{"model":"mock",' + members + "}").encode()
            self.assertEqual(post(gateway, path, raw, key=A).status, 200, raw)
            self.assertEqual(upstream.requests.pop().body, raw)


class Browsers(E2E):
    """Without keys any page that the operator looks at could call the gateway."""

    ELSEWHERE = "Web pages of other sites may neither fetch from the gateway nor link to it."

    def ask(self, gateway, method, path, fields, body=b""):
        with Wire(gateway) as wire:
            kind = ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
            wire.send("\r\n".join([f"{method} {path} HTTP/1.1", *fields, *kind, "", ""]).encode() + body)
            return wire.answer()

    def test_what_a_page_of_another_site_fetches_without_an_origin_is_refused(self):
        gateway = self.serve(self.upstream(forever=answer("ok")))
        for site in ("cross-site", "same-site", "CROSS-SITE", "", "anything"):
            for method, path, body in (("GET", "/v1/models", b""), ("GET", "/v1/sessions", b""), ("GET", "/metrics", b""),
                                       ("DELETE", "/v1/sessions/x", b""), ("POST", CHAT, b'{"model":"mock","messages":[]}')):
                reply = self.ask(gateway, method, path, ["Host: localhost", f"Sec-Fetch-Site: {site}"], body)
                self.assertEqual((reply.status, reply.error["code"], reply.error["message"]), (403, "origin_not_allowed", self.ELSEWHERE),
                                 (site, path))
        for site in ("none", "same-origin"):
            self.assertEqual(self.ask(gateway, "GET", "/v1/models", ["Host: localhost", f"Sec-Fetch-Site: {site}"]).status, 200, site)
        reply = self.ask(gateway, "POST", CHAT, ["Host: localhost", "Sec-Fetch-Mode: cors"], b'{"model":"mock","messages":[]}')
        self.assertEqual(reply.status, 200, "client libraries on Node say this much")

    def test_a_listed_origin_may_although_it_is_another_site(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), server={"origins": ["https://good.example"]})
        fields = ["Host: localhost", "Sec-Fetch-Site: cross-site"]
        self.assertEqual(self.ask(gateway, "GET", "/v1/models", [*fields, "Origin: https://good.example"]).status, 200)
        for origin in ("https://evil.example", "null", "https://good.example:444", "http://good.example", "https://GOOD.example",
                       "https://good.example, https://evil.example"):
            reply = self.ask(gateway, "GET", "/v1/models", [*fields, f"Origin: {origin}"])
            self.assertEqual((reply.status, reply.get("access-control-allow-origin")), (403, None), origin)

    def test_names_that_an_attacker_points_here_are_refused(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), server={"hosts": ["box.lan"]})
        for host, status in (("rebound.example", 403), ("127.0.0.1.rebound.example", 403), ("localhost.rebound.example", 403),
                             ("127.0.0.2", 403), ("0.0.0.0", 403), ("0", 403), ("2130706433", 403), ("127.1", 403), ("[::]", 403),
                             ("[::ffff:127.0.0.1]", 403), ("localhost.", 403), ("box.lan.", 403), ("xbox.lan", 403), ("box.lan", 200),
                             ("LOCALHOST:1", 200), ("[::1]", 200)):
            reply = self.ask(gateway, "GET", "/v1/models", [f"Host: {host}"])
            self.assertEqual(reply.status, status, host)
        for fields in (["Host: rebound.example", "X-Forwarded-Host: localhost"], ["Host: rebound.example", "Forwarded: host=localhost"]):
            self.assertEqual(self.ask(gateway, "GET", "/v1/models", fields).status, 403, fields)
        reply = self.ask(gateway, "GET", "http://rebound.example/v1/models", ["Host: rebound.example"])
        self.assertEqual(reply.status, 403, "in the target too")
        self.assertEqual(self.ask(gateway, "GET", "/v1/models", ["Host:"]).status, 400, "an empty one is none")

    def test_where_keys_are_needed_a_page_needs_one_too(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), auth=KEYS)
        fields = ["Host: rebound.example", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"]
        reply = self.ask(gateway, "GET", "/v1/models", fields)
        self.assertEqual((reply.status, reply.get("access-control-allow-origin")), (401, None))
        reply = self.ask(gateway, "GET", "/v1/models", [*fields, f"Authorization: Bearer {A}"])
        self.assertEqual((reply.status, reply.get("access-control-allow-origin")), (200, None), "its answer is not the page's to read")


if __name__ == "__main__":
    main()
