"""What a key may use and how much of it: models, tools, requests and runs a minute, requests at a time, containers, until when;
and the users that a key speaks for."""
import datetime

from client import TOOL, Wire, body_of, chat, get, post, request
from harness import E2E, in_parallel, main, run, to_yaml
from upstream import Status, answer, code

A, B, FRONT = "key-of-team-a", "key-of-team-b", "key-of-a-front-end"
USER = "x-openwebui-user-id"
WEB = {"type": "web_search"}


def keyed(*keys):
    return {"mode": "keys", "keys": [{"name": name, "key": key, **options} for name, key, options in keys]}


class Keyed(E2E):
    def one(self, *turns, key=A, name="a", others=(), upstream=None, forever=answer("ok"), **options):
        """A gateway whose key A has these options."""
        sections = {k: options.pop(k) for k in ("rules", "upstream_options", "interceptors", "sandbox", "sessions", "searches")
                    if k in options}
        self.up = upstream or self.upstream(*turns, forever=forever)
        return self.serve(self.up, auth=keyed((name, key, options), *others), **sections)

    def plain(self, gateway, key=A, **options):
        return chat(gateway, text="x", tools=(), key=key, **options)

    def told(self, request_):
        return [m["content"] for m in request_.json["messages"] if m["role"] == "tool"]


class Models(Keyed):
    MODELS = {"upstream_options": {"models": ["mock", "big", "small-*"]}}

    def test_a_model_that_the_key_may_not_use_is_as_one_that_is_not_there(self):
        gateway = self.one(models=["mock", "small-a", "tiny-*"], others=[("b", B, {})], **self.MODELS)
        self.assertEqual([self.plain(gateway, model=m).status for m in ("mock", "small-a", "big", "small-b", "tiny-x")],
                         [200, 200, 404, 404, 404])
        refused = self.plain(gateway, model="big")
        self.assertEqual((refused.error["code"], refused.error["param"], refused.error["message"]),
                         ("model_not_found", "model",
                          "The model 'big' is not served here. Models that this key may use: mock, small-a"))
        self.assertEqual(self.plain(gateway, key=B, model="big").status, 200)
        refused = post(gateway, "/v1/messages", {"model": "big", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
                       key=A)
        self.assertEqual((refused.status, refused.error["type"]), (404, "not_found_error"))
        self.assertEqual(post(gateway, "/v1/embeddings", {"model": "big", "input": "x"}, key=A).status, 404)
        self.assertEqual(len([r for r in self.up.requests if r.json.get("model") == "big"]), 1)

    def test_the_list_has_what_the_key_may_use(self):
        gateway = self.one(models=["mock", "small-a", "tiny-*"], others=[("b", B, {}), ("c", FRONT, {"models": []})],
                           forever=Status(404, {}), **self.MODELS)

        def listed(key):
            return [m["id"] for m in get(gateway, "/v1/models", key=key).json["data"]]
        self.assertEqual((listed(A), listed(B), listed(FRONT)), (["mock", "small-a"], ["mock", "big"], []))
        self.assertEqual([get(gateway, f"/v1/models/{m}", key=A).status for m in ("mock", "small-a", "big")], [200, 200, 404])
        refused = self.plain(gateway, key=FRONT)
        self.assertEqual((refused.status, refused.error["message"]),
                         (404, "The model 'mock' is not served here. This key may use no model at this path."))


class Tools(Keyed):
    def test_a_hosted_tool_that_the_key_may_not_use_is_refused_whoever_would_answer_it(self):
        gateway = self.one(code("print(1)"), answer("done"), tools=["code_interpreter"])
        for index, entry, name in ((0, WEB, "web_search"), (0, {"type": "mcp", "server_url": "x"}, "mcp"),
                                   (1, {"type": "file_search"}, "file_search")):
            tools = [TOOL] * index + [entry]
            refused = chat(gateway, "x", tools=tools, key=A)
            self.assertEqual((refused.status, refused.error["code"], refused.error["param"], refused.error["message"]),
                             (403, "tool_not_allowed", f"tools[{index}].type", f"This key may not use the tool '{name}'."))
        for options in ({}, "all"):
            refused = chat(gateway, "x", tools=(), key=A, web_search_options=options)
            self.assertEqual((refused.status, refused.error["param"]), (403, "web_search_options"))
        self.assertEqual(self.up.requests, [])
        own = {"type": "function", "function": {"name": "mine", "parameters": {}}}
        self.assertEqual(chat(gateway, "x", tools=[own, TOOL], key=A).status, 200)

    def test_each_surface_refuses_in_its_own_words(self):
        gateway = self.one(tools=["web_search"])
        messages = {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        refused = post(gateway, "/v1/messages", {**messages, "tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
                       key=A)
        self.assertEqual((refused.status, refused.error["type"], refused.error["message"]),
                         (403, "permission_error", "This key may not use the tool 'code_execution_20250825'."))
        refused = post(gateway, "/v1/responses", {"model": "mock", "input": "x", "tools": [
            {"type": "code_interpreter", "container": {"type": "auto"}}]}, key=A)
        self.assertEqual((refused.status, refused.error["code"]), (403, "tool_not_allowed"))
        self.assertEqual(self.up.requests, [])

    def test_a_type_of_a_vendor_is_allowed_with_its_kind(self):
        gateway = self.one(tools=["code_interpreter", "bash_*"])
        messages = {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        for entry in ({"type": "code_execution_20250522", "name": "code_execution"},
                      {"type": "code_execution_20250825", "name": "code_execution"}, {"type": "bash_20250124", "name": "bash"}):
            reply = post(gateway, "/v1/messages", {**messages, "tools": [entry]}, key=A)
            self.assertNotEqual(reply.status, 403, reply.body)

    def test_a_type_that_is_given_twice_hides_nothing(self):
        gateway = self.one(tools=[])
        body = '{"model":"mock","messages":[],"tools":[{"type":"function","type":"web_search"}]}'
        reply = post(gateway, "/v1/chat/completions", body, key=A)
        self.assertEqual((reply.status, self.up.requests), (400, []))
        body = '{"model":"mock","messages":[],"tools":[{"t\\u0079pe":"web_search"}]}'
        self.assertEqual(post(gateway, "/v1/chat/completions", body, key=A).status, 403)

    def test_what_is_no_list_of_objects_is_not_passed_on_unjudged(self):
        gateway = self.one(forever=Status(200, b"{}"), tools=[], others=[("b", B, {})])
        for tools, param, wanted in (({"type": "web_search"}, "tools", "a list"), ("web_search", "tools", "a list"),
                                     ([[{"type": "web_search"}]], "tools[0]", "an object"), (["web_search"], "tools[0]", "an object")):
            for path, said in (("/v1/chat/completions", {"messages": []}), ("/v1/responses", {"input": "x"})):
                body = {"model": "mock", **said, "tools": tools}
                refused = post(gateway, path, body, key=A)
                self.assertEqual((refused.status, refused.error["param"], refused.error["message"]),
                                 (400, param, f"{param} must be {wanted}."))
        self.assertEqual(self.up.requests, [])
        self.assertEqual(post(gateway, "/v1/chat/completions", {"model": "mock", "messages": [], "tools": None}, key=A).status, 200)

    def test_a_prompt_that_the_upstream_keeps_may_have_any_tools(self):
        gateway = self.one(forever=Status(200, b"{}"), tools=["code_interpreter"], others=[("b", B, {"tools": ["prompt"]}), ("c", FRONT, {})])
        body = {"model": "mock", "input": "x", "prompt": {"id": "pmpt_1"}}
        refused = post(gateway, "/v1/responses", body, key=A)
        self.assertEqual((refused.status, refused.error["code"], refused.error["param"], refused.error["message"]),
                         (403, "tool_not_allowed", "prompt", "This key may not use the tool 'prompt'."))
        self.assertEqual(self.up.requests, [])
        self.assertEqual([post(gateway, "/v1/responses", body, key=key).status for key in (B, FRONT)], [200, 200])
        self.assertEqual(post(gateway, "/v1/completions", {"model": "mock", "prompt": "own words"}, key=A).status, 200)

    def test_a_tool_that_is_always_offered_is_not_offered_to_a_key_that_may_not_use_it(self):
        interceptors = [{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}]
        gateway = self.one(tools=[], others=[("b", B, {})], interceptors=interceptors)
        self.assertEqual([self.plain(gateway, key=key).status for key in (A, B)], [200, 200])
        self.assertEqual(["tools" in r.json for r in self.up.requests], [False, True])


class Rates(Keyed):
    def test_requests_over_the_limit_get_429_and_are_told_when(self):
        gateway = self.one(requests_per_minute=2, others=[("b", B, {})])
        first, second, third = (self.plain(gateway) for _ in range(3))
        self.assertEqual([first.status, second.status, third.status], [200, 200, 429])
        heads = [[r.get(f"x-ratelimit-{n}-requests") for n in ("limit", "remaining", "reset")] for r in (first, second, third)]
        self.assertEqual([h[:2] for h in heads], [["2", "1"], ["2", "0"], ["2", "0"]])
        self.assertRegex(heads[0][2], r"^(30|[12]\d)s$")
        self.assertRegex(heads[1][2], r"^(1m0s|[345]\ds)$")
        self.assertEqual((third.error["code"], third.error["message"]),
                         ("rate_limit_exceeded", "Rate limit reached: this key may make 2 requests a minute. Try again later."))
        self.assertTrue(0 < int(third.get("retry-after")) <= 30, third.get("retry-after"))
        self.assertEqual(self.plain(gateway, key=B).status, 200, "another's limit is another's")
        self.assertEqual(get(gateway, "/v1/models", key=A).status, 200, "the limit is one of requests to models")
        self.assertEqual(len(self.up.requests), 3)

    def test_on_messages_they_are_told_as_anthropic_tells_them(self):
        gateway = self.one(requests_per_minute=1, forever=answer("ok"))
        body = {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        replies = [post(gateway, "/v1/messages", body, key=A) for _ in range(2)]
        self.assertEqual(replies[1].status, 429)
        self.assertEqual(replies[1].error["type"], "rate_limit_error")
        for reply in replies:
            self.assertEqual([reply.get(f"anthropic-ratelimit-requests-{n}") for n in ("limit", "remaining")], ["1", "0"])
            at = datetime.datetime.strptime(reply.get("anthropic-ratelimit-requests-reset"), "%Y-%m-%dT%H:%M:%SZ")
            ahead = at.replace(tzinfo=datetime.timezone.utc) - datetime.datetime.now(datetime.timezone.utc)
            self.assertTrue(0 < ahead.total_seconds() <= 61, ahead)
            self.assertIsNone(reply.get("x-ratelimit-limit-requests"))

    def test_the_upstreams_own_limits_are_passed_where_there_are_none_of_ours_only(self):
        fields = {"x-ratelimit-limit-requests": "9999", "x-ratelimit-remaining-tokens": "5", "anthropic-ratelimit-x": "1"}
        gateway = self.one(requests_per_minute=10, others=[("b", B, {})], forever=Status(200, answer("ok"), headers=[*fields.items(), ("content-type", "application/json")]))
        ours, theirs = self.plain(gateway), self.plain(gateway, key=B)
        self.assertEqual([[r.get(name) for name in fields] for r in (ours, theirs)],
                         [["10", None, None], ["9999", "5", "1"]])

    def test_an_intercepted_stream_tells_them_too(self):
        gateway = self.one(code("print(1)"), answer("done"), requests_per_minute=5)
        reply = chat(gateway, "x", stream=True, key=A)
        self.assertEqual((reply.status, reply.get("x-ratelimit-remaining-requests")), (200, "4"))

    def test_keys_of_one_name_share_the_limit(self):
        gateway = self.one(requests_per_minute=2, others=[("a", B, {"requests_per_minute": 2})])
        self.assertEqual([self.plain(gateway, key=key).status for key in (A, B, A, B)], [200, 200, 429, 429])

    def test_requests_at_a_time_are_bounded(self):
        gateway = self.one(code("slow"), answer("x"), in_flight=1, rules=[{"when": "slow", "delay": "30s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x"), fields=(f"Authorization: Bearer {A}",))
            gateway.journal.wait("run")
            refused = self.plain(gateway)
            self.assertEqual((refused.status, refused.error["code"], refused.get("retry-after"), refused.error["message"]),
                             (429, "rate_limit_exceeded", "1", "Too many requests at a time: this key may have 1 in progress. "
                              "Try again when one of them has ended."))
        gateway.wait_event("request", lambda e: e["status"] == "499")
        self.assertEqual(self.plain(gateway).status, 200, "its place is free again")

    def test_exactly_as_many_as_allowed_get_through_at_once(self):
        gateway = self.one(requests_per_minute=2)
        statuses = in_parallel(12, lambda i: self.plain(gateway).status)
        self.assertEqual(sorted(statuses), [200] * 2 + [429] * 10)


class Runs(Keyed):
    def test_a_run_over_the_limit_is_a_result_for_the_model(self):
        gateway = self.one(code("print(1)"), code("print(2)", "c2"), answer("done"), runs_per_minute=1)
        reply = chat(gateway, "x", key=A)
        self.assertEqual((reply.status, reply.text), (200, "done"))
        self.assertEqual(self.told(self.up.requests[-1])[-1], "[limit reached: answer with what you have]")
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_a_request_that_asks_for_a_run_when_none_is_left_is_429(self):
        gateway = self.one(code("print(1)"), answer("done"), runs_per_minute=1)
        self.assertEqual(chat(gateway, "x", key=A).status, 200)
        refused = chat(gateway, "x", key=A)
        self.assertEqual((refused.status, refused.error["code"], refused.error["message"]),
                         (429, "rate_limit_exceeded", "Rate limit reached: this key may run 1 tool call a minute. Try again later, "
                          "or ask without tools."))
        self.assertTrue(0 < int(refused.get("retry-after")) <= 60)
        self.assertEqual(self.plain(gateway).status, 200, "without tools there is no limit of runs")

    def test_where_a_tool_is_only_offered_nothing_is_refused(self):
        interceptors = [{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}]
        gateway = self.one(code("print(1)"), answer("done"), runs_per_minute=1, interceptors=interceptors)
        self.assertEqual([self.plain(gateway).status for _ in range(2)], [200, 200])


class Containers(Keyed):
    def test_a_key_may_have_fewer_or_more_sessions_than_others(self):
        turns = [turn for i in range(6) for turn in (code("print(1)", f"c{i}"), answer("x"))]
        gateway = self.one(*turns, per_identity=1, others=[("b", B, {"per_identity": 3})], sessions={"per_identity": 2})
        for key in (A, B):
            for session in ("one", "two", "three"):
                self.assertEqual(chat(gateway, "x", session, key=key).status, 200)
        listed = [sorted(s["id"] for s in get(gateway, "/v1/sessions", key=key).json["data"]) for key in (A, B)]
        self.assertEqual(listed, [["three"], ["one", "three", "two"]])


class Expiry(Keyed):
    def test_a_key_is_good_until_it_expires(self):
        tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
        gateway = self.one(expires=tomorrow.strftime("%Y-%m-%d"), others=[
            ("b", B, {"expires": "2020-02-29"}), ("c", FRONT, {"expires": tomorrow.strftime("%Y-%m-%dT%H:%M:%S+02:00")})])
        self.assertEqual([self.plain(gateway, key=key).status for key in (A, B, FRONT)], [200, 401, 200])
        refused = self.plain(gateway, key=B)
        self.assertEqual((refused.error["code"], refused.error["message"]),
                         ("expired_api_key", "The API key has expired: ask the gateway's operator for another."))


class Users(Keyed):
    def front(self, *turns, **options):
        return self.one(*turns, key=FRONT, name="webui", user_from=f"header:{USER}", **options)

    def ask(self, gateway, user, *arguments, **options):
        return chat(gateway, *arguments, key=FRONT, headers={USER: user} if user is not None else {}, **options)

    def test_users_behind_one_key_have_their_own_sessions(self):
        gateway = self.front(code("x = 5"), answer("a"), code("print(x)", "c2"), answer("b"), code("print(x)", "c3"), answer("c"),
                             others=[("b", B, {})])
        for count, user in enumerate(("ann", "bob", "ann"), 1):
            self.assertEqual(self.ask(gateway, user, "x", "s").status, 200)
            line = gateway.wait_events("request", count)[-1]
            self.assertEqual((line["identity"], line["user"]), ("webui", user))
        results = [self.told(r) for r in self.up.requests[1::2]]
        self.assertIn("NameError", results[1][0])
        self.assertEqual(results[2][0].strip(), "5")
        ids = [s["id"] for s in get(gateway, "/v1/sessions", key=FRONT, headers={USER: "ann"}).json["data"]]
        self.assertEqual(ids, ["s"])
        self.assertEqual({(e["identity"], e["user"]) for e in gateway.events("container_created")},
                         {("webui", "ann"), ("webui", "bob")})

    def test_a_request_without_its_user_is_refused(self):
        gateway = self.front()
        message = (f"This key speaks for users: the header '{USER}' must name the request's user, once, in 1 to 256 bytes "
                   "without control characters.")
        for user in (None, "", "x" * 257, "a\tb"):
            reply = self.ask(gateway, user, text="x", tools=())
            self.assertEqual((reply.status, reply.error["code"], reply.error["param"], reply.error["message"]),
                             (400, "user_missing", USER, message))
        with Wire(gateway) as wire:
            wire.post(body_of(text="x"), fields=(f"Authorization: Bearer {FRONT}", f"{USER}: a", f"{USER}: b"))
            self.assertEqual(wire.answer().status, 400)
        self.assertEqual(get(gateway, "/v1/sessions", key=FRONT).status, 400)
        self.assertEqual(get(gateway, "/v1/models", key=FRONT).status, 200, "the list is nobody's own")
        self.assertEqual(self.ask(gateway, "x" * 256, text="x", tools=()).status, 200)

    def test_no_user_is_another_key_nor_anothers_user(self):
        turns = [turn for i in range(4) for turn in (code("x = 1" if i == 0 else "print(x)", f"c{i}"), answer("x"))]
        gateway = self.front(*turns, others=[("webui/ann", A, {}), ("web", B, {"user_from": f"header:{USER}"})])
        self.ask(gateway, "ann", "x", "s")
        chat(gateway, "x", "s", key=A)
        chat(gateway, "x", "s", key=B, headers={USER: "ui/ann"})
        self.ask(gateway, "webui/ann", "x", "s")
        for result in (self.told(r) for r in self.up.requests[3::2]):
            self.assertIn("NameError", result[-1])
        self.assertEqual(len(gateway.journal.of("create")), 4)

    def test_nothing_of_a_user_is_a_label_of_metrics_and_what_is_logged_is_one_line(self):
        gateway = self.front(others=[("prometheus", B, {"use": "metrics"})])
        self.assertEqual(self.ask(gateway, 'evil" identity=root', text="x", tools=()).status, 200)
        event = gateway.wait_event("request")
        self.assertEqual((event["identity"], event["user"]), ("webui", 'evil" identity=root'))
        self.assertNotIn(b"evil", get(gateway, "/metrics", key=B).body)

    def test_the_keys_limit_bounds_all_its_users_and_theirs_each(self):
        gateway = self.front(requests_per_minute=3, user_requests_per_minute=2)
        replies = [self.ask(gateway, user, text="x", tools=()) for user in ("ann", "ann", "ann", "bob", "carl")]
        self.assertEqual([r.status for r in replies], [200, 200, 429, 200, 429])
        self.assertEqual([r.error["message"] for r in (replies[2], replies[4])], [
            "Rate limit reached: this user may make 2 requests a minute. Try again later.",
            "Rate limit reached: this key may make 3 requests a minute. Try again later."])
        self.assertEqual([r.get("x-ratelimit-limit-requests") for r in replies], ["2", "2", "2", "3", "3"],
                         "the limit that is nearest")
        self.assertEqual([r.get("x-ratelimit-remaining-requests") for r in replies], ["1", "0", "0", "0", "0"])

    def test_what_a_limit_refused_is_counted_by_the_limit_and_whose_it_is(self):
        gateway = self.front(*[turn for i in range(2) for turn in (code("print(1)", f"c{i}"), answer("x"))], runs_per_minute=1,
                             requests_per_minute=4, user_requests_per_minute=2, others=[("prometheus", B, {"use": "metrics"})])
        self.assertEqual(self.ask(gateway, "ann", "x").status, 200)
        self.assertEqual(self.ask(gateway, "ann", "x").status, 429, "no run is left")
        self.assertEqual([self.ask(gateway, user, text="x", tools=()).status for user in ("ann", "bob", "bob", "carl")],
                         [429, 200, 200, 429])
        text = get(gateway, "/metrics", key=B).body.decode()
        counted = {line.split("{")[1] for line in text.splitlines() if line.startswith("sandgate_limited_total{")}
        self.assertEqual(counted, {
            'limit="requests_per_minute",of="key"} 1', 'limit="requests_per_minute",of="user"} 1',
            'limit="in_flight",of="key"} 0', 'limit="in_flight",of="user"} 0',
            'limit="runs_per_minute",of="key"} 1', 'limit="runs_per_minute",of="user"} 0'})

    def test_names_that_are_made_up_do_not_get_round_the_keys_limit(self):
        gateway = self.front(requests_per_minute=5, runs_per_minute=1, in_flight=50, user_in_flight=1)
        statuses = [self.ask(gateway, f"made-up-{i}", text="x", tools=()).status for i in range(8)]
        self.assertEqual(statuses, [200] * 5 + [429] * 3)

    def test_containers_of_all_users_count_for_the_key(self):
        turns = [turn for i in range(4) for turn in (code("print(1)", f"c{i}"), answer("x"))]
        gateway = self.front(*turns, max_containers=2)
        for user in ("ann", "bob", "carl"):
            self.assertEqual(self.ask(gateway, user, "x", "s").status, 200)
        left = [len(get(gateway, "/v1/sessions", key=FRONT, headers={USER: u}).json["data"]) for u in ("ann", "bob", "carl")]
        self.assertEqual(left, [0, 1, 1], "the least recently used one made room")
        self.assertLessEqual(max(gateway.journal.live()), 2)

    def test_a_users_requests_at_a_time_are_bounded_by_themselves(self):
        gateway = self.front(code("slow"), answer("x"), user_in_flight=1, rules=[{"when": "slow", "delay": "30s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x"), fields=(f"Authorization: Bearer {FRONT}", f"{USER}: ann"))
            gateway.journal.wait("run")
            replies = [self.ask(gateway, user, text="x", tools=()) for user in ("ann", "bob")]
            self.assertEqual([r.status for r in replies], [429, 200])
            self.assertEqual(replies[0].error["message"], "Too many requests at a time: this user may have 1 in progress. Try "
                             "again when one of them has ended.")

    def test_conversations_of_a_front_end_are_sessions_of_its_users(self):
        """As Open WebUI sends them: one key, a header for the user, one for the chat."""
        gateway = self.front(code("x = 5"), answer("a"), code("print(x)", "c2"), answer("b"), code("print(x)", "c3"), answer("c"),
                             sessions={"id_from": ["header:x-openwebui-chat-id"]})

        def say(user, chat_id):
            reply = chat(gateway, "x", key=FRONT, headers={USER: user, "X-OpenWebUI-Chat-Id": chat_id})
            self.assertEqual(reply.status, 200)
            return self.told(self.up.requests[-1])[-1].strip()
        say("ann", "chat-1")
        self.assertEqual(say("ann", "chat-1"), "5")
        self.assertIn("NameError", say("bob", "chat-1"))
        self.assertEqual([s["id"] for s in get(gateway, "/v1/sessions", key=FRONT, headers={USER: "ann"}).json["data"]], ["chat-1"])
        sent = str([r.fields for r in self.up.requests]).lower()
        self.assertNotIn("openwebui", sent, "who asks stays here")


class Mistakes(E2E):
    """What `sandgate check` says of keys."""

    def check(self, *keys):
        path = self.path("config.yaml")
        config = {"auth": {"keys": list(keys)}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}]}
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml(config) + "\n")
        exit_code, _, said = run("check", "--config", path)
        self.assertEqual(exit_code, 1, said)
        return [line.removeprefix(path + ":") for line in said.splitlines()[:-1]]

    def test_each_is_told_with_its_place_and_what_would_be_right(self):
        key = {"name": "a", "key": "12345678"}
        cases = [
            ({**key, "expires": "2026-02-30"}, "5:16: auth: key 'a': 'expires' must be a date such as 2026-12-31 (to its end, UTC) "
             "or a time such as 2026-12-31T18:00:00Z, not '2026-02-30'"),
            ({**key, "user_from": "x-user"}, "5:18: auth: key 'a': 'user_from' must be header:NAME, such as "
             "header:x-openwebui-user-id, not 'x-user'"),
            ({**key, "user_from": "header:b ad"}, "5:18: auth: key 'a': 'user_from' must be header:NAME, such as "
             "header:x-openwebui-user-id, not 'header:b ad'"),
            ({**key, "user_from": "header:Cookie"}, "5:18: auth: key 'a': 'user_from' may not be 'header:Cookie': a secret is no "
             "name, users are logged"),
            ({**key, "user_in_flight": 3}, "3:7: auth: key 'a': limits of users (user_…) need 'user_from', which says where a "
             "request names its user"),
            ({**key, "use": "metrics", "models": ["x"]}, "3:7: auth: key 'a' opens /metrics only: models, tools, limits and users "
             "mean nothing for it"),
            ({**key, "requests_per_minute": -1}, "5:28: auth: 'keys[0].requests_per_minute' must be at least 0, not '-1'"),
            ({"name": "a\x1fb", "key": "12345678"}, "3:13: auth: the name of a key is at most 128 bytes, without control characters"),
            ({"name": "n" * 129, "key": "12345678"}, "3:13: auth: the name of a key is at most 128 bytes, without control "
             "characters"),
        ]
        for wrong, message in cases:
            self.assertEqual(self.check(wrong), [message])

    def test_keys_of_one_name_must_say_the_same(self):
        said, = self.check({"name": "a", "key": "12345678", "in_flight": 2}, {"name": "a", "key": "87654321"})
        self.assertRegex(said, r"^6:7: auth: key 'a' has other limits or users than at .*config.yaml:3: keys of one name are one "
                               r"identity, so that both have to say the same$")


if __name__ == "__main__":
    main()
