"""Mode passthrough: clients bring their own keys of the upstream, which alone says whether they are good."""
import re

from client import Wire, body_of, chat, get, post, request
from harness import E2E, main, run, to_yaml
from upstream import Status, answer, code

ANN, BOB, SCRAPER = "sk-ann-of-the-upstream", "sk-bob-of-the-upstream", "key-of-the-scraper"
REFUSED = Status(401, {"error": {"message": "Incorrect API key provided: sk-ann*", "type": "invalid_request_error", "param": None,
                                 "code": "invalid_api_key"}}, headers=[("content-type", "application/json")])


class Passthrough(E2E):
    def open(self, *turns, forever=answer("ok"), upstreams=(), auth=None, **options):
        self.up = self.upstream(*turns, forever=forever)
        return self.serve(self.up, auth={"mode": "passthrough", **(auth or {})}, upstream_options={"passthrough": True}, **options)

    def told(self, request_):
        return [m["content"] for m in request_.json["messages"] if m["role"] == "tool"]

    def sent(self, name):
        return [r.get(name) for r in self.up.requests]

    def test_the_clients_key_goes_up_as_the_client_sent_it(self):
        gateway = self.open(code("print(1)"), answer("done"))
        self.assertEqual(chat(gateway, "x", key=ANN).status, 200)
        self.assertEqual(post(gateway, "/v1/embeddings", {"model": "mock", "input": "x"}, key=BOB).status, 200)
        self.assertEqual(self.sent("authorization"), [f"Bearer {ANN}", f"Bearer {ANN}", f"Bearer {BOB}"])
        body = {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        post(gateway, "/v1/messages", body, headers={"x-api-key": ANN})
        post(gateway, "/v1/messages", body, headers={"Authorization": f"Bearer {ANN}"})
        self.assertEqual(self.sent("x-api-key")[3:], [ANN, None])
        self.assertEqual(self.sent("authorization")[3:], [None, f"Bearer {ANN}"])
        for secret in (ANN, BOB):
            self.assertNotIn(secret, gateway.log())

    def test_without_a_key_nothing_goes_up(self):
        gateway = self.open()
        reply = chat(gateway, text="x", tools=())
        self.assertEqual((reply.status, reply.error["code"], self.up.requests), (401, "invalid_api_key", []))
        with Wire(gateway) as wire:
            wire.post(body_of(text="x"), fields=(f"Authorization: Bearer {ANN}", f"x-api-key: {BOB}"))
            self.assertEqual(wire.answer().status, 400)

    def test_a_key_that_the_upstream_refuses_is_told_as_it_tells_it(self):
        gateway = self.open(forever=REFUSED)
        for tools in ((), ({"type": "code_interpreter"},)):
            reply = chat(gateway, text="x", tools=tools, key=ANN)
            self.assertEqual(reply.status, 401, reply.body)
        self.assertEqual(gateway.journal.of("create"), [])

    def test_only_upstreams_that_are_marked_can_be_reached(self):
        other = self.upstream(forever=answer("the operator's"))
        self.up = self.upstream(forever=answer("ok"))
        config = {"auth": {"mode": "passthrough"}, "upstreams": [
            {"name": "own", "base_url": other.url + "/v1", "api_key": "the-operators-key", "models": ["closed", "mock"]},
            {"name": "up", "base_url": self.up.url + "/v1", "passthrough": True, "models": ["mock", "more"]}]}
        gateway = self.gateway(config, upstream_ports=[other.port, self.up.port])
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN).text, "ok")
        reply = chat(gateway, text="x", tools=(), key=ANN, model="closed")
        self.assertEqual((reply.status, reply.error["message"]),
                         (404, "The model 'closed' is not served here. Models that this key may use: mock, more"))
        self.assertEqual([m["id"] for m in get(gateway, "/v1/models", key=ANN).json["data"]], ["mock", "more"])
        self.assertEqual(other.requests, [])

    def two(self, second_models=("b-*", "b-exact")):
        """A gateway with two upstreams of different owners; each has a list of its own and refuses the other's keys."""
        def owner(key, prefix):
            def one(connection):
                if connection.request.get("authorization") != f"Bearer {key}":
                    return REFUSED
                if connection.request.method == "GET":
                    return Status(200, {"object": "list", "data": [{"id": f"{prefix}-1"}]})
                return answer("ok")
            return self.upstream(forever=one)
        self.a, self.b = owner(ANN, "a"), owner(BOB, "b")
        config = {"auth": {"mode": "passthrough"}, "upstreams": [
            {"name": "a", "base_url": self.a.url + "/v1", "passthrough": True, "models": ["a-*", "a-exact"]},
            {"name": "b", "base_url": self.b.url + "/v1", "passthrough": True, "models": list(second_models)}]}
        return self.gateway(config, upstream_ports=[self.a.port, self.b.port])

    @staticmethod
    def listed(gateway, key):
        return [m["id"] for m in get(gateway, "/v1/models", key=key).json["data"]]

    def test_a_list_of_models_shows_a_key_to_nobody_who_has_not_taken_it(self):
        gateway = self.two()
        self.assertEqual(self.listed(gateway, ANN), ["a-exact", "b-exact"])
        self.assertEqual((self.a.requests, self.b.requests), ([], []))
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN, model="a-1").status, 200)
        self.assertEqual(self.listed(gateway, ANN), ["a-exact", "a-1", "b-exact"])
        self.assertEqual(([r.method for r in self.a.requests], self.b.requests), (["POST", "GET"], []))
        self.assertEqual(self.listed(gateway, BOB), ["a-exact", "b-exact"], "that one key was taken says nothing of another")
        self.assertEqual((len(self.a.requests), self.b.requests), (2, []))
        self.assertEqual(chat(gateway, text="x", tools=(), key=BOB, model="b-1").status, 200)
        self.assertEqual(self.listed(gateway, BOB), ["a-exact", "b-exact", "b-1"])
        self.assertEqual((len(self.a.requests), [r.get("authorization") for r in self.b.requests]), (2, [f"Bearer {BOB}"] * 2))
        self.assertEqual(gateway.events("models_unknown"), [])

    def test_a_key_that_is_refused_is_not_shown_again_for_a_list(self):
        gateway = self.two()
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN, model="b-1").status, 401)
        self.assertEqual(self.listed(gateway, ANN), ["a-exact", "b-exact"])
        self.assertEqual((self.a.requests, [r.method for r in self.b.requests]), ([], ["POST"]))

    def test_one_of_two_with_patterns_is_not_shown_the_others_keys_either(self):
        gateway = self.two(second_models=("b-exact",))
        self.assertEqual(chat(gateway, text="x", tools=(), key=BOB, model="b-exact").status, 200)
        self.assertEqual(self.listed(gateway, BOB), ["a-exact", "b-exact"])
        self.assertEqual(self.a.requests, [])

    def test_a_model_that_only_an_upstream_knows_is_not_said_to_be_absent(self):
        gateway = self.two()
        reply = get(gateway, "/v1/models/a-1", key=ANN)
        self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                         (404, "key_not_accepted_yet", "The model server has not accepted this key lately: make a request to a "
                          "model with it first."))
        self.assertEqual((get(gateway, "/v1/models/a-exact", key=ANN).status, self.a.requests), (200, []))
        self.assertEqual(get(gateway, "/v1/models/c-1", key=ANN).error["code"], "model_not_found")
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN, model="a-1").status, 200)
        self.assertEqual(get(gateway, "/v1/models/a-1", key=ANN).json["id"], "a-1")
        self.assertEqual(get(gateway, "/v1/models/a-2", key=ANN).error["code"], "model_not_found")
        self.assertEqual(self.b.requests, [])

    def test_the_only_upstream_is_asked_for_its_list_with_any_key(self):
        self.up = self.upstream(forever=Status(200, {"object": "list", "data": [{"id": "p-1"}]}))
        gateway = self.gateway({"auth": {"mode": "passthrough"}, "upstreams": [
            {"name": "up", "base_url": self.up.url + "/v1", "passthrough": True, "models": ["p-*"]},
            {"name": "own", "base_url": self.up.url + "/v1", "api_key": "the-operators-key", "models": ["q-*"]}]},
            upstream_ports=[self.up.port])
        self.assertEqual(self.listed(gateway, ANN), ["p-1"])
        self.assertEqual(self.sent("authorization"), [f"Bearer {ANN}"])

    def test_each_key_has_its_own_sessions_once_the_upstream_took_it(self):
        turns = [turn for i, text in enumerate(("x = 5", "print(x)", "print(x)")) for turn in (code(text, f"c{i}"), answer("x"))]
        gateway = self.open(*turns)
        unknown = ("key_not_accepted_yet", "The model server has not accepted this key lately: make a request to a model with it "
                   "first.")
        reply = get(gateway, "/v1/sessions", key=ANN)
        self.assertEqual((reply.status, (reply.error["code"], reply.error["message"])), (404, unknown))
        for key in (ANN, BOB, ANN):
            self.assertEqual(chat(gateway, "x", "s", key=key).status, 200)
        results = [self.told(r) for r in self.up.requests[1::2]]
        self.assertIn("NameError", results[1][0])
        self.assertEqual(results[2][0].strip(), "5")
        self.assertEqual([s["id"] for s in get(gateway, "/v1/sessions", key=ANN).json["data"]], ["s"])
        self.assertEqual(request(gateway, "DELETE", "/v1/sessions/s", key="sk-of-nobody").status, 404)
        self.assertEqual(request(gateway, "DELETE", "/v1/sessions/s", key=ANN).status, 200)
        self.assertEqual([len(get(gateway, "/v1/sessions", key=key).json["data"]) for key in (ANN, BOB)], [0, 1])
        names = {e["identity"] for e in gateway.events("container_created")}
        self.assertEqual(len(names), 2)
        for name in names:
            self.assertRegex(name, r"^pt_[0-9a-f]{32}$")

    def test_nothing_runs_for_a_key_that_was_not_taken(self):
        """A request whose history asks for a run before the model is asked: from a made-up key it would be code for free."""
        gateway = self.open(forever=REFUSED)
        left = {"model": "mock", "max_tokens": 99, "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
                "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_sg" + "0" * 32, "name": "code_execution",
                     "input": {"code": "print(1)"}}]}]}
        reply = post(gateway, "/v1/messages", left, headers={"x-api-key": ANN})
        self.assertEqual((reply.status, reply.error["message"], self.up.requests, gateway.journal.of("create")),
                         (404, "The model server has not accepted this key lately: make a request to a model with it first.",
                          [], []))
        reply = post(gateway, "/v1/responses", {"model": "mock", "input": "x", "tools": [
            {"type": "code_interpreter", "container": "cntr_sg" + "0" * 32}]}, key=ANN)
        self.assertEqual((reply.status, reply.error["code"]), (404, "container_not_found"))
        self.assertEqual(get(gateway, "/v1/responses/resp_sg0", key=ANN).status, 404)
        self.up.forever = answer("ok")
        self.assertEqual(chat(gateway, text="x", tools=(), key=ANN).status, 200)
        post(gateway, "/v1/messages", left, headers={"x-api-key": ANN})
        self.assertEqual(len(gateway.journal.of("run")), 1, "of a key that was taken it runs")

    def test_metrics_open_to_their_own_key_which_never_goes_up(self):
        gateway = self.open(auth={"keys": [{"name": "prometheus", "key": SCRAPER, "use": "metrics"}]})
        self.assertEqual([get(gateway, "/metrics", key=key).status for key in (SCRAPER, ANN)], [200, 401])
        self.assertEqual(chat(gateway, text="x", tools=(), key=SCRAPER).status, 403)
        self.assertEqual(self.up.requests, [])
        self.assertNotIn(b"pt_", get(gateway, "/metrics", key=SCRAPER).body)

    def test_an_accounts_own_state_at_the_upstream_is_its_own(self):
        gateway = self.open()
        body = {"model": "mock", "input": "x", "previous_response_id": "resp_of_the_upstream"}
        self.assertEqual(post(gateway, "/v1/responses", body, key=ANN, headers={"Idempotency-Key": "k"}).status, 200)
        self.assertEqual(self.up.requests[0].json["previous_response_id"], "resp_of_the_upstream")
        self.assertEqual(self.sent("idempotency-key"), ["k"])


class Mistakes(E2E):
    def check(self, config):
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml(config) + "\n")
        code_, _, said = run("check", "--config", path)
        return code_, re.sub(re.escape(path) + r":\d+:\d+: ", "", said).splitlines()[:-1]

    def test_what_would_mix_keys_is_refused(self):
        def up(**more):
            return {"name": "u", "base_url": "http://x", "models": ["m"], **more}
        through = {"mode": "passthrough"}
        keys = {"keys": [{"name": "a", "key": "12345678"}]}
        cases = [
            (through, up(passthrough=True, api_key="12345"),
             "upstream 'u': 'passthrough' sends the client's key, and 'api_key' is yours: leave one out"),
            (through, {"name": "u", "plugin": "mock", "models": ["m"], "passthrough": True},
             "upstream 'u': 'passthrough' needs a 'base_url': a plugin gets no key"),
            (through, up(), "auth: mode 'passthrough' reaches no upstream: mark those that take their clients' own keys with "
             "'passthrough: true'"),
            (keys, up(passthrough=True), "upstream 'u': 'passthrough' means something in auth mode 'passthrough' only: elsewhere "
             "the client's key is the gateway's"),
            ({**through, **keys}, up(passthrough=True), "auth: in mode 'passthrough' clients have keys of the upstreams: key 'a' "
             "needs 'use: metrics' or 'use: admin' here"),
        ]
        for auth, entry, message in cases:
            self.assertEqual(self.check({"auth": auth, "upstreams": [entry]}), (1, [message]))
        self.assertEqual(self.check({"auth": through, "upstreams": [up(passthrough=True)]})[0], 0)

    def test_a_model_that_shows_keys_to_several_servers_is_spoken_of(self):
        path = self.path("config.yaml")

        def told(urls, to, fallback=(), operators=()):
            upstreams = [{"name": f"u{i}", "base_url": url, **({"api_key": "12345"} if i in operators else {"passthrough": True})}
                         for i, url in enumerate(urls)]
            lists = {"to": [{"upstream": f"u{i}"} for i in to], "fallback": [{"upstream": f"u{i}"} for i in fallback]}
            with open(path, "w", encoding="utf-8") as file:
                file.write(to_yaml({"models": [{"name": "m", **{key: each for key, each in lists.items() if each}}],
                                    "auth": {"mode": "passthrough"}, "upstreams": upstreams}) + "\n")
            code_, _, said = run("check", "--config", path)
            self.assertEqual(code_, 0, said)
            return said

        def warning(one, another):
            return (f"{path}:2:5: warning: model 'm': the client's own key goes to '{one}' and to '{another}', which are different "
                    "servers: put upstreams into one model only where the same keys are for all of them\n")
        one, another = "https://one.example/v1", "https://two.example/v1"
        self.assertEqual(told([one, another], [0, 1]), warning("u0", "u1"))
        self.assertEqual(told([one, another], [0], [1]), warning("u0", "u1"))
        self.assertEqual(told([one, "https://ONE.example/other"], [0, 1]), "")
        self.assertEqual(told([one, another], [0, 1], operators=[1]), "")
        self.assertEqual(told([one, "https://one.example", "https://one.example:8443"], [0, 1, 2]), warning("u0", "u2"))


if __name__ == "__main__":
    main()
