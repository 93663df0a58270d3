"""Who may call: keys, and what browsers add where there are none."""
import hashlib

from client import TOOL, Wire, body_of, chat, get, post, request
from harness import E2E, main
from upstream import answer, code

A, B, OLD = "key-of-team-a", "key-of-team-b", "old-key-of-team-a"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "sha256": hashlib.sha256(B.encode()).hexdigest()},
                                 {"name": "a", "key": "${OLD_KEY}"}]}


class Auth(E2E):
    def keyed(self, *turns, **options):
        upstream = self.upstream(*turns, forever=answer("ok"))
        gateway = self.serve(upstream, auth=KEYS, gateway_options={"env": {"OLD_KEY": OLD}}, **options)
        return gateway, upstream

    def test_a_key_is_needed_and_must_be_known(self):
        gateway, upstream = self.keyed()
        for headers, message in (
                ({}, "No API key was given: send it as 'Authorization: Bearer KEY' or 'x-api-key'."),
                ({"Authorization": "Basic abc"}, "No API key was given: send it as 'Authorization: Bearer KEY' or 'x-api-key'."),
                ({"Authorization": "Bearer wrong"}, "The API key is not one of this gateway's."),
                ({"x-api-key": A + "x"}, "The API key is not one of this gateway's.")):
            for path in ("/v1/chat/completions", "/v1/models"):
                reply = request(gateway, "GET" if path == "/v1/models" else "POST", path,
                                None if path == "/v1/models" else body_of("x"), headers=headers)
                self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                                 (401, "invalid_api_key", message))
        self.assertEqual(upstream.requests, [])
        self.assertNotIn("wrong", gateway.log())

    def test_both_ways_to_present_a_key_work(self):
        gateway, upstream = self.keyed()
        ways = (({"Authorization": f"Bearer {A}"}, "a"), ({"authorization": f"bearer  {B} "}, "b"), ({"X-Api-Key": OLD}, "a"))
        for count, (headers, identity) in enumerate(ways, 1):
            self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x"), headers=headers).status, 200)
            self.assertEqual(gateway.wait_events("request", count)[-1]["identity"], identity)
        self.assertNotIn(A, str([r.fields for r in upstream.requests]), "the gateway's key never goes up")
        self.assertNotIn(A, gateway.log())

    def test_two_keys_that_differ_are_refused(self):
        gateway, upstream = self.keyed()
        for headers in ([("Authorization", f"Bearer {A}"), ("x-api-key", B)],
                        [("Authorization", f"Bearer {A}"), ("Authorization", f"Bearer {B}")],
                        [("x-api-key", A), ("x-api-key", B)]):
            wire = Wire(gateway)
            lines = [f"{name}: {value}" for name, value in headers]
            wire.send("\r\n".join(["GET /v1/models HTTP/1.1", "Host: localhost", *lines, "", ""]).encode())
            reply = wire.answer()
            self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                             (400, "ambiguous_api_key", "Two different API keys were given: send one, in one header."))
        same = {"Authorization": f"Bearer {A}", "x-api-key": A}
        self.assertEqual(get(gateway, "/v1/models", headers=same).status, 200)

    def test_errors_of_messages_have_their_own_form(self):
        gateway, _ = self.keyed()
        reply = post(gateway, "/v1/messages", {"model": "mock"})
        self.assertEqual(reply.json["type"], "error")
        self.assertEqual(reply.json["error"]["type"], "authentication_error")
        self.assertEqual(reply.json["request_id"], reply.get("request-id"))

    def test_health_needs_no_key(self):
        gateway, _ = self.keyed()
        self.assertEqual(get(gateway, "/health/live").json, {"status": "ok"})
        self.assertEqual(get(gateway, "/health/ready").json, {"status": "ok"})

    def b53_identities_never_share_and_cannot_be_forged(self):
        turns = [code("x = 5"), answer("a"), code("print(x)"), answer("b"), code("print(x)"), answer("c")]
        gateway, upstream = self.keyed(*turns)
        chat(gateway, "x", session="s", key=A)
        chat(gateway, "x", session="s", key=B, user_api_key="a", user="a", identity="a", litellm_metadata={
            "session_id": "s", "user_api_key": "a", "identity": "a"})
        chat(gateway, "x", session="s", key=OLD)
        results = [[m["content"] for m in r.json["messages"] if m["role"] == "tool"] for r in upstream.requests[1::2]]
        self.assertIn("NameError", results[1][0])
        self.assertEqual(results[2][0].strip(), "5", "two keys of one name are one identity")
        self.assertEqual(len(gateway.journal.of("create")), 2)

    def b58_odd_session_ids_do_not_collide(self):
        gateway, _ = self.keyed(*[turn for i in range(8) for turn in (code("x = 1", f"c{i}"), answer("ok"))])
        for key, session in ((A, "s:b"), (B, "s"), (A, "b:s"), (B, "a:s"), (A, "a\u0001s"), (A, "ä"), (A, "a/../b"), (A, " ")):
            self.assertEqual(chat(gateway, "x", session=session, key=key).status, 200, session)
        self.assertEqual(len(set(gateway.journal.labels("create"))), 8)

    def test_without_keys_a_web_page_is_refused_unless_its_origin_is_listed(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), server={"origins": ["https://good.example"]})
        message = ("Web pages of this origin may not call the gateway: its operator can list the origin under server.origins.")
        for origin in ("https://evil.example", "null", "https://good.example.evil", ""):
            reply = post(gateway, "/v1/chat/completions", body_of("x"), headers={"Origin": origin})
            self.assertEqual((reply.status, reply.error["code"], reply.error["message"]), (403, "origin_not_allowed", message))
        reply = post(gateway, "/v1/chat/completions", body_of("x"), headers={"Origin": "https://good.example"})
        self.assertEqual((reply.status, reply.get("access-control-allow-origin"), reply.get("vary")),
                         (200, "https://good.example", "origin"))

    def test_a_preflight_is_answered_for_listed_origins_only(self):
        gateway = self.serve(self.upstream(), server={"origins": ["https://good.example"]})
        ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization"}
        reply = request(gateway, "OPTIONS", "/v1/chat/completions", headers={**ask, "Origin": "https://good.example"})
        self.assertEqual((reply.status, reply.get("access-control-allow-methods"), reply.get("access-control-allow-headers")),
                         (204, "GET, POST, DELETE, OPTIONS", "content-type,authorization"))
        self.assertEqual(reply.get("access-control-max-age"), "600")
        self.assertEqual(request(gateway, "OPTIONS", "/v1/chat/completions", headers={**ask, "Origin": "https://x"}).status, 403)
        reply = request(gateway, "OPTIONS", "/v1/chat/completions", headers=ask)
        self.assertEqual((reply.status, reply.error["message"]), (405, "This path takes POST, not 'OPTIONS'."))

    def test_without_keys_the_host_must_be_the_gateways(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), server={"hosts": ["box.lan"]})
        message = ("The gateway does not know itself by this Host: its operator can list the name under server.hosts.")
        for host, status in (("localhost", 200), (f"127.0.0.1:{gateway.port}", 200), ("[::1]:80", 200), ("BOX.lan:9", 200),
                             ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil", 403)):
            with Wire(gateway) as wire:
                raw = b'{"model":"mock","messages":[]}'
                wire.send(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                          f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
                reply = wire.answer()
            self.assertEqual(reply.status, status, host)
            if status == 403:
                self.assertEqual((reply.error["code"], reply.error["message"]), ("host_not_allowed", message))

    def c050_without_authentication_all_are_one_tenant(self):
        upstream = self.upstream(code("x = 5"), answer("a"), code("print(x)"), answer("b"))
        gateway = self.serve(upstream)
        for key in (None, "any"):
            self.assertEqual(chat(gateway, "x", session="s", key=key).status, 200)
        self.assertEqual(upstream.requests[3].json["messages"][-1]["content"].strip(), "5")
        self.assertEqual({e["identity"] for e in gateway.wait_events("request", 2)}, {"anonymous"})
        self.assertEqual(chat(gateway, "x", tools=(TOOL,)).status, 500, "the script is over: an error, and no crash")


if __name__ == "__main__":
    main()
