"""The admin address (`server.admin`): everybody's sessions seen and ended, metrics, figures of the loops; who may ask there, and that
nothing of it is anywhere else. And clients' addresses behind proxies (`server.trusted_proxies`), as the log tells them."""
import json
import os
import pathlib
import re
import signal
import socket

from client import Wire, chat, get, request
from harness import E2E, main, poll, run, to_yaml
from test_sessions import A, B, KEYS, Script

LOST = "[The sandbox of this session was lost and has been replaced: earlier variables and files are gone.]"
ADMIN, SCRAPER = "key-of-the-operator", "key-of-the-scraper"
OPERATORS = [{"name": "operator", "key": ADMIN, "use": "admin"}, {"name": "scraper", "key": SCRAPER, "use": "metrics"}]


class Door:
    """The admin address of a gateway, for what asks a gateway."""

    def __init__(self, gateway):
        address = gateway.wait_event("listening", lambda event: event.get("use") == "admin")["address"]
        self.port = int(address.rsplit(":", 1)[1])


class Admin(E2E):
    def open(self, auth=None, server=None, **options):
        gateway = self.serve(self.upstream(forever=Script()), auth=auth or KEYS, server={"admin": "127.0.0.1:0", **(server or {})}, **options)
        return gateway, Door(gateway)

    def run_code(self, gateway, source, session=None, key=A, **more):
        reply = chat(gateway, source, session, key=key, **more)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.text

    def listed(self, door, query="", **options):
        reply = get(door, f"/admin/sessions{query}", **options)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    # ---- sessions ----

    def test_the_operator_sees_everybodys_sessions(self):
        gateway, door = self.open()
        self.run_code(gateway, "x = 1", "s", key=A)
        self.run_code(gateway, "x = 2", "s", key=A)
        self.run_code(gateway, "x = 3", "t", key=B)
        a, b = self.listed(door)["data"]
        own = get(gateway, "/v1/sessions", key=A).json["data"][0]
        self.assertEqual((a["identity"], a["id"], a["container_id"], a["sandbox"]), ("a", "s", own["container_id"], "box"))
        self.assertEqual((a["state"], a["uses"], a["requests"], a["parked"], a["created_at"]), ("ready", 2, 0, False, own["created_at"]))
        self.assertEqual((b["identity"], b["id"], b["uses"]), ("b", "t", 1))
        self.assertEqual(a["label"], gateway.journal.labels("create")[0])
        self.assertLessEqual(a["idle_seconds_left"], 900)
        self.assertLess(a["unused_seconds"], 600)
        self.assertNotIn("mock:", json.dumps([a, b]), "handles are secrets here too")

    def test_the_list_comes_in_pages(self):
        gateway, door = self.open()
        for session in ("1", "2", "3"):
            self.run_code(gateway, "x = 1", session)
        first = self.listed(door, "?limit=2")
        self.assertEqual(([one["id"] for one in first["data"]], first["has_more"]), (["1", "2"], True))
        second = self.listed(door, f"?limit=2&after={first['after']}")
        self.assertEqual(([one["id"] for one in second["data"]], second["has_more"]), (["3"], False))
        last = self.listed(door, f"?after={second['after']}")
        self.assertEqual((last["data"], last["after"]), ([], second["after"]))

    def test_the_list_can_be_one_identitys(self):
        keys = {"mode": "keys", "keys": [{"name": "front", "key": A, "user_from": "header:x-user"}, {"name": "b", "key": B}]}
        gateway, door = self.open(auth=keys)
        for user in ("ann", "bob"):
            self.run_code(gateway, "x = 1", "s", headers={"x-user": user})
        self.run_code(gateway, "x = 1", "s", key=B)
        self.assertEqual([(one["identity"], one["user"]) for one in self.listed(door, "?identity=front")["data"]],
                         [("front", "ann"), ("front", "bob")])
        self.assertEqual([one["user"] for one in self.listed(door, "?identity=front&user=bob")["data"]], ["bob"])
        self.assertEqual(self.listed(door, "?identity=fron")["data"], [])
        self.assertEqual(len(self.listed(door)["data"]), 3)

    def test_a_session_that_the_operator_ends_is_told_its_loss(self):
        gateway, door = self.open()
        self.run_code(gateway, "x = 1", "s")
        self.run_code(gateway, "x = 2", "t")
        container = self.listed(door)["data"][0]["container_id"]
        ended = request(door, "DELETE", f"/admin/sessions/{container}")
        self.assertEqual((ended.status, ended.json["deleted"]), (200, 1))
        gateway.journal.wait("destroy")
        self.assertEqual(self.run_code(gateway, "print(7)", "s"), LOST + "\n7")
        self.assertEqual(self.run_code(gateway, "print(x)", "t"), "2")
        again = request(door, "DELETE", f"/admin/sessions/{container}")
        self.assertEqual((again.status, again.error["code"], again.error["message"]),
                         (404, "session_not_found", "There is no container of this id."))

    def test_all_sessions_of_an_identity_can_be_ended(self):
        gateway, door = self.open()
        for session in ("1", "2"):
            self.run_code(gateway, "x = 1", session, key=A)
        self.run_code(gateway, "x = 1", "3", key=B)
        ended = request(door, "DELETE", "/admin/sessions?identity=a")
        self.assertEqual((ended.status, ended.json["deleted"]), (200, 2))
        gateway.wait_events("container_deleted", 2)
        self.assertEqual([one["identity"] for one in self.listed(door)["data"]], ["b"])

    def test_what_is_not_meant_ends_nothing(self):
        gateway, door = self.open()
        self.run_code(gateway, "x = 1", "s")
        whose = "Say whose sessions shall end: ?identity=NAME, or one by its container id as in DELETE /admin/sessions/cntr_…."
        query = "The query may have identity, user (with identity), after (a number) and limit (1 to 1000), each once and with a value."
        paged = "All sessions of an identity are ended at once: leave 'after' and 'limit' out."
        for path, words in (("/admin/sessions", whose), ("/admin/sessions?identity=", query), ("/admin/sessions?identity=a&user=", query),
                            ("/admin/sessions?identity=b&identity=a", query), ("/admin/sessions?identity=a%00b", query),
                            ("/admin/sessions?identity=a&limit=1", paged), ("/admin/sessions?identity=a&after=9", paged),
                            ("/admin/sessions?user=ann", query),
                            ("/admin/sessions?Identity=a", query), ("/admin/sessions?identity=a&limit=0", query),
                            ("/admin/sessions?identity=a&limit=1001", query), ("/admin/sessions?identity=a&after=x", query)):
            refused = request(door, "DELETE", path)
            self.assertEqual((refused.status, refused.error["message"]), (400, words), path)
        self.assertEqual(request(door, "POST", "/admin/sessions", "{}").status, 405)
        self.assertEqual(gateway.journal.of("destroy"), [])

    def test_a_container_in_use_can_be_ended(self):
        gateway, door = self.open(rules=[{"when": "forever", "fault": "hang"}])
        with Wire(gateway) as wire:
            wire.post({"model": "mock", "messages": [{"role": "user", "content": "result: forever"}], "tools": [{"type": "code_interpreter"}],
                       "metadata": {"session_id": "s"}}, fields=(f"Authorization: Bearer {A}",))
            gateway.journal.wait("run")
            busy = self.listed(door)["data"][0]
            self.assertEqual((busy["requests"], busy["idle_seconds_left"], busy["unused_seconds"]), (1, None, None))
            self.assertEqual(request(door, "DELETE", f"/admin/sessions/{busy['container_id']}").json["deleted"], 1)
            gateway.journal.wait("destroy")

    # ---- figures ----

    def test_metrics_are_there_and_not_at_the_public_address(self):
        gateway, door = self.open(auth={"mode": "keys", "keys": [*KEYS["keys"], OPERATORS[1]]})
        self.assertIn("sandgate_requests_total", get(door, "/metrics").body.decode())
        self.assertEqual(get(gateway, "/metrics", key=SCRAPER).status, 404)
        self.assertRegex(get(door, "/metrics").body.decode(), r'sandgate_requests_total\{route="metrics",status="2xx"\} [1-9]')

    def test_the_profile_tells_what_each_loop_does(self):
        gateway, door = self.open()
        self.run_code(gateway, "x = 1", "s")
        now = get(door, "/admin/profile").json
        self.assertEqual(len(now["loops"]), int(gateway.wait_event("serving")["loops"]))
        for loop in now["loops"]:
            self.assertGreaterEqual(loop["late_us"], 0)
            self.assertGreater(loop["cpu_us"], 0)
            self.assertNotIn("busy", loop)
        self.assertGreater(now["loops"][0]["fibers"], 0)
        self.assertEqual((now["containers"]["ready"], now["containers"]["sessions"]), (1, 1))
        self.assertGreater(now["memory"]["resident_bytes"], 1 << 20)
        later = get(door, "/admin/profile?seconds=1").json
        self.assertEqual(later["seconds"], 1)
        for loop in later["loops"]:
            self.assertGreaterEqual(loop["busy"], 0)
            self.assertLessEqual(loop["busy"], 1.5)
        for query in ("seconds=61", "seconds=x", "second=1", "seconds=-1"):
            refused = get(door, f"/admin/profile?{query}")
            self.assertEqual((refused.status, refused.error["message"]), (400, "The query may have seconds, 0 to 60."), query)

    def test_who_leaves_while_the_loops_are_looked_at_stands_so_in_the_log(self):
        gateway, door = self.open()
        with Wire(door) as wire:
            wire.send(b"GET /admin/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            poll(lambda: get(door, "/admin/profile").json["http"]["requests"] == 2, "it to be looked after, beside what asks for that")
        left = gateway.wait_event("request", lambda event: event["status"] == "499")
        self.assertEqual((left["path"], left["message"]), ("/admin/profile", "left while the loops were looked at"))

    def test_a_long_look_at_the_loops_does_not_hold_the_end(self):
        """It tells what it has seen until then."""
        gateway, door = self.open(server={"drain": "1h"})
        with Wire(door) as wire:
            wire.send(b"GET /admin/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            poll(lambda: get(door, "/admin/profile").json["http"]["requests"] == 2, "it to be looked after, beside what asks for that")
            gateway.signal()
            reply = wire.answer()
        self.assertEqual(reply.status, 200)
        self.assertLess(reply.json["seconds"], 60)
        self.assertTrue(all(0 <= loop["busy"] <= 1.5 for loop in reply.json["loops"]), reply.json)
        gateway.stop(quiet=False)

    def test_health_is_at_both_addresses(self):
        gateway, door = self.open()
        for place in (gateway, door):
            self.assertEqual([get(place, f"/health/{path}").status for path in ("live", "ready")], [200, 200])

    # ---- who, and where ----

    def test_nothing_of_it_is_at_the_public_address_nor_the_other_way_round(self):
        gateway, door = self.open(auth={"mode": "keys", "keys": [*KEYS["keys"], *OPERATORS]})
        for path in ("/admin/sessions", "/admin/profile", "/admin/sessions/cntr_sg0", "/v1/admin/sessions", "/admin"):
            for key in (A, ADMIN):
                self.assertEqual(get(gateway, path, key=key).status, 404, path)
        for path in ("/v1/models", "/v1/sessions", "/v1/chat/completions", "/v1/embeddings", "/", "/admin"):
            self.assertEqual(get(door, path, key=ADMIN).status, 404, path)
        self.assertEqual(chat(door, "1", key=A).status, 404)

    def test_with_a_key_for_it_no_other_opens_it(self):
        gateway, door = self.open(auth={"mode": "keys", "keys": [*KEYS["keys"], *OPERATORS]})
        self.assertEqual(self.listed(door, key=ADMIN)["data"], [])
        for path in ("/admin/sessions", "/admin/profile", "/metrics"):
            self.assertEqual(get(door, path).error["code"], "invalid_api_key", path)
            refused = get(door, path, key=A).error
            self.assertEqual((refused["code"], refused["message"]), ("key_not_for_admin", "This key does not open the admin address: "
                             "its operator can make one that does, with 'use: admin'."), path)
        self.assertEqual(get(door, "/admin/sessions", key=SCRAPER).error["code"], "key_not_for_admin")
        self.assertEqual([get(door, "/metrics", key=key).status for key in (SCRAPER, ADMIN)], [200, 200])
        refused = get(gateway, "/v1/models", key=ADMIN)
        self.assertEqual((refused.status, refused.error["code"], refused.error["message"]),
                         (403, "key_for_admin_only", "This key opens the gateway's admin address and nothing else."))

    def test_web_pages_do_not_reach_it(self):
        gateway, door = self.open(auth={"mode": "none"}, server={"origins": ["https://app.example"]})
        self.assertEqual(get(gateway, "/v1/models", headers={"Origin": "https://app.example"}).status, 200)
        for headers in ({"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(get(door, "/admin/sessions", headers=headers).status, 403, headers)
        for origin in ("https://evil.example", "https://app.example"):
            refused = get(door, "/admin/sessions", headers={"Origin": origin})
            self.assertEqual((refused.status, refused.error["code"], refused.error["message"]),
                             (403, "origin_not_allowed", "Web pages may not call the admin address."), origin)
        self.assertEqual(request(door, "DELETE", "/admin/sessions?identity=a", headers={"Origin": "null"}).status, 403)
        self.assertEqual(get(door, "/admin/sessions", headers={"Host": f"localhost:{door.port}"}).status, 200)

    def test_a_unix_socket_is_an_admin_address_too(self):
        path = os.path.join(self.folder, "admin.sock")
        gateway = self.serve(self.upstream(forever=Script()), auth=KEYS, server={"admin": f"unix:{path}"})
        gateway.wait_event("listening", lambda event: event.get("use") == "admin")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET /admin/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            told = b""
            while piece := connection.recv(65536):
                told += piece
        self.assertTrue(told.startswith(b"HTTP/1.1 200"), told)
        self.assertIn(b'"data":[]', told)

    def check_refused(self, sections, words):
        config = pathlib.Path(self.folder, "refused.yaml")
        config.write_text(to_yaml({"upstreams": [{"name": "mock", "plugin": "mock", "models": ["mock"]}], **sections}) + "\n")
        status, said, more = run("check", "--config", str(config))
        self.assertNotEqual(status, 0, said)
        self.assertIn(words, said + more)

    def test_what_would_open_it_to_others_is_refused_at_the_start(self):
        for server, auth, words in (
                ({"admin": "0.0.0.0:0"}, KEYS, "server: 'admin' at 0.0.0.0:0 would let everybody who reaches it end sessions: use 127.0.0.1 "
                                               "or a Unix socket, or make a key with 'use: admin'"),
                ({"admin": "127.0.0.1"}, KEYS, "'admin' must be an address and port such as 127.0.0.1:4000, not '127.0.0.1'"),
                ({"admin": "unix:relative"}, KEYS, "'admin' must be unix: and an absolute path"),
                ({"admin": "127.0.0.1:4000"}, KEYS, "'admin' has '127.0.0.1:4000' beside 127.0.0.1:4000, which meet"),
                ({"admin": "127.0.0.1:4001", "metrics_open": True}, KEYS,
                 "server: 'metrics_open' is about /metrics at 'listen', where it is not beside 'admin': leave one of the two out"),
                ({}, {"mode": "keys", "keys": [{"name": "o", "key": ADMIN, "use": "admin", "models": ["mock"]}]},
                 "key 'o' opens the admin address only")):
            with self.subTest(words):
                self.check_refused({"server": server, "auth": auth}, words)

    def test_with_a_key_others_may_reach_it(self):
        gateway, door = self.open(auth={"mode": "keys", "keys": [*KEYS["keys"], *OPERATORS]}, server={"admin": "0.0.0.0:0"})
        self.assertEqual(get(door, "/admin/sessions", key=ADMIN, headers={"Host": "any.name"}).status, 200)
        self.assertEqual(get(door, "/admin/sessions").status, 401)

    def test_where_its_key_is_taken_away_it_closes_also_where_it_would_be_open_without_one(self):
        auth = {"mode": "keys", "keys": [*KEYS["keys"], *OPERATORS]}
        for address in ("0.0.0.0:0", "127.0.0.1:0"):
            gateway, door = self.open(auth=auth, server={"admin": address})
            config = gateway.config_path.read_text()
            without = re.sub(r"    - name: operator\n      key: .*\n      use: admin\n", "", config)
            self.assertNotEqual(without, config)
            gateway.config_path.write_text(without)
            gateway.signal(signal.SIGHUP)
            gateway.wait_event("reloaded")
            for key in (ADMIN, A, None):
                refused = get(door, "/admin/sessions", key=key)
                self.assertEqual((refused.status, refused.error["code"], refused.error["message"]), (
                    403, "no_admin_key", "No key opens this address any more: its operator can make one with 'use: admin'."))

    # ---- clients behind proxies ----

    def seen(self, gateway, headers):
        before = len(gateway.events("request"))
        get(gateway, "/v1/models", headers=headers)
        event = gateway.wait_events("request", before + 1)[-1]
        return event["client"], event.get("proxy")

    def test_a_trusted_proxy_says_who_the_client_is(self):
        gateway = self.serve(server={"trusted_proxies": ["127.0.0.0/8", "10.0.0.0/8"]})
        client, proxy = self.seen(gateway, {"X-Forwarded-For": "203.0.113.9, 198.51.100.7, 10.0.0.1"})
        self.assertEqual(client, "198.51.100.7")
        self.assertRegex(proxy, r"^127\.0\.0\.1:\d+$")
        self.assertEqual(self.seen(gateway, {"X-Forwarded-For": "2001:db8::1"})[0], "[2001:db8::1]")
        for headers in ({"X-Forwarded-For": "nobody"}, {"Forwarded": "for=198.51.100.7"}, {}):
            client, proxy = self.seen(gateway, headers)
            self.assertRegex(client, r"^127\.0\.0\.1:\d+$", headers)
            self.assertIsNone(proxy)

    def test_without_trust_nobody_says_who_the_client_is(self):
        for proxies in ({}, {"trusted_proxies": ["10.0.0.0/8"]}):
            gateway = self.serve(server=proxies)
            client, proxy = self.seen(gateway, {"X-Forwarded-For": "198.51.100.7"})
            self.assertRegex(client, r"^127\.0\.0\.1:\d+$")
            self.assertIsNone(proxy)

    def test_the_other_header_can_be_chosen(self):
        gateway = self.serve(server={"trusted_proxies": ["127.0.0.1"], "trusted_header": "forwarded"})
        self.assertEqual(self.seen(gateway, {"Forwarded": 'for="[2001:db8::1]:80";proto=https', "X-Forwarded-For": "203.0.113.9"})[0],
                         "[2001:db8::1]")

    def test_what_a_proxy_says_does_not_go_up(self):
        upstream = self.upstream(forever=Script())
        gateway = self.serve(upstream, server={"trusted_proxies": ["127.0.0.1"]})
        chat(gateway, "print(1)", headers={"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.7"})
        self.assertEqual([(r.get("x-forwarded-for"), r.get("forwarded")) for r in upstream.requests], [(None, None)] * 2)

    def test_proxies_that_are_none_are_refused_at_the_start(self):
        for entry, problem in (("proxy.example", "is no address and no network"),
                               ("10.0.0.0/40", "has a length that is none: it is 1 to 32 for IPv4, 1 to 128 for IPv6"),
                               ("10.0.0.1/8", "has an address within the network in place of the network's own")):
            with self.subTest(entry):
                self.check_refused({"server": {"trusted_proxies": [entry]}, "auth": {"mode": "none"}}, f"server: an entry of "
                                   f"'trusted_proxies' {problem}: 10.0.0.0/8, 192.0.2.7, 2001:db8::/32 or unix, not '{entry}'")


if __name__ == "__main__":
    main()
