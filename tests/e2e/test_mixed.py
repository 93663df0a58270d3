"""Turns that call our tools and the client's: the client gets its half and comes back with results, the upstream finds the
whole turn again, and code finds its variables. Also what we made and the client has in its history."""
import json

from client import TOOL, Wire, body_of, chat, post
from harness import E2E, in_parallel, main
from upstream import Status, Stream, always, answer, chunk, code, events, results_of, streamed

STOCK = {"type": "function", "function": {"name": "get_stock", "parameters": {
    "type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}}}
USER = {"role": "user", "content": "x"}
PATH = "/v1/chat/completions"
LOST = "earlier variables and files are gone"


def both(source, text="Both.", first="call_0", second="call_1", stream=False):
    """One turn with a call of ours and one of the client's, under ids as a server that only counts gives them."""
    calls = [(first, "code_interpreter", {"code": source}), (second, "get_stock", {"part": "A-7"})]
    return streamed(text, calls=calls) if stream else answer(text, calls=calls)


def message_of(reply, stream):
    """The message as the official client's accumulator would have it."""
    if not stream:
        return reply.json["choices"][0]["message"]
    message = {"role": "assistant", "content": reply.stream_text, "tool_calls": []}
    for event in reply.events[:-1]:
        for choice in event["choices"]:
            for call in choice["delta"].get("tool_calls", []):
                if "id" in call:
                    message["tool_calls"].append({k: v for k, v in call.items() if k != "index"})
                else:
                    message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return message


def continued(message, result="5", tools=(TOOL, STOCK), more=(), **options):
    results = [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in message["tool_calls"]]
    return {"model": "mock", "messages": [USER, message, *results, *more], "tools": list(tools), **options}


class Mixed(E2E):
    def first(self, gateway, stream=False, **options):
        reply = chat(gateway, "x", tools=(TOOL, STOCK), stream=stream, **options)
        self.assertEqual(reply.status, 200, reply.body)
        return message_of(reply, stream)

    def test_the_next_request_finds_the_whole_turn_again(self):
        for stream in (False, True):
            front = streamed("First.", calls=[("call_0", "code_interpreter", {"code": "x = 20"})]) if stream \
                else answer("First.", calls=[("call_0", "code_interpreter", {"code": "x = 20"})], reasoning_content="r")
            upstream = self.upstream(front, both("print(x + 1)", stream=stream), answer("done"))
            gateway = self.serve(upstream)
            message = self.first(gateway, stream)
            self.assertEqual([c["function"]["name"] for c in message["tool_calls"]], ["get_stock"])
            self.assertRegex(message["tool_calls"][0]["id"], r"^call_sg[0-9a-f]{32}$")
            self.assertEqual(message["content"], "First.\n\nBoth.")
            self.assertEqual(post(gateway, PATH, continued(message)).text, "done")
            up = upstream.requests[2].json["messages"]
            self.assertEqual([m["role"] for m in up], ["user", "assistant", "tool", "assistant", "tool", "tool"])
            self.assertEqual(up[1], upstream.requests[1].json["messages"][1], "the bytes of the turn before")
            self.assertEqual(up[3]["content"], "Both.")
            self.assertEqual([(c["id"], c["function"]["name"]) for c in up[3]["tool_calls"]],
                             [("call_0", "code_interpreter"), ("call_1", "get_stock")])
            self.assertEqual(results_of({"messages": up[3:]}), [("call_0", "21"), ("call_1", "5")])
            self.assertNotIn(b"call_sg", upstream.requests[2].body)

    def test_the_prefix_of_the_second_request_is_that_of_the_first(self):
        """So that the upstream's prompt cache keeps hitting."""
        upstream = self.upstream(code("x = 1", "call_a"), both("print(x)"), answer("done"))
        gateway = self.serve(upstream)
        first = json.dumps({"model": "mock", "tools": [TOOL, STOCK], "messages": [USER]}).encode()
        reply = post(gateway, PATH, first)
        message = reply.json["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "5"}]
        second = json.dumps({"model": "mock", "tools": [TOOL, STOCK], "messages": [USER, message, *results]}).encode()
        self.assertEqual(post(gateway, PATH, second).text, "done")
        before, after = (upstream.requests[i].body.replace(b", ", b",") for i in (1, 2))
        self.assertEqual(after[:len(before) - 2], before[:-2])

    def test_variables_live_on_in_the_request_that_continues(self):
        upstream = self.upstream(both("x = 41"), both("x = x + 1"), code("print(x)", "c"), answer("42"))
        gateway = self.serve(upstream)
        message = self.first(gateway)
        reply = post(gateway, PATH, continued(message))
        second = reply.json["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": second["tool_calls"][0]["id"], "content": "6"}]
        body = continued(message, more=[second, *results])
        self.assertEqual(gateway.journal.of("destroy"), [], "it waits")
        self.assertEqual(post(gateway, PATH, body).text, "42")
        self.assertEqual(results_of(upstream.requests[3].json)[-1], ("c", "42"))
        gateway.journal.wait("destroy")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_it_lives_on_over_an_answer_in_which_nothing_of_ours_runs(self):
        stock = answer(calls=[("call_0", "get_stock", {"part": "B"})])
        upstream = self.upstream(both("x = 7"), stock, code("print(x)", "c"), answer("7"))
        gateway = self.serve(upstream)
        message = self.first(gateway)
        second = post(gateway, PATH, continued(message)).json["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": second["tool_calls"][0]["id"], "content": "6"}]
        self.assertEqual(post(gateway, PATH, continued(message, more=[second, *results])).text, "7")
        self.assertEqual(results_of(upstream.requests[3].json if len(upstream.requests) > 3 else {})[-1], ("c", "7"))
        gateway.journal.wait("destroy")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_only_one_of_two_continuations_has_the_container(self):
        def turn(connection):
            known = len(results_of(connection.request.json))
            body = json.dumps(code("print(x)", "c") if known == 2 else answer("end")).encode()
            connection.head(fields=[("Content-Length", len(body))])
            connection.send(body)
            return True
        upstream = self.upstream(both("x = 41"), forever=turn)
        gateway = self.serve(upstream)
        message = self.first(gateway)
        in_parallel(2, lambda _: post(gateway, PATH, continued(message)))
        told = [results_of(r.json)[-1][1] for r in upstream.requests[1:] if len(results_of(r.json)) == 3]
        self.assertEqual(len(told), 2)
        self.assertEqual(sorted("41" == text for text in told), [False, True])
        other = [text for text in told if text != "41"][0]
        self.assertIn(LOST, other)
        self.assertIn("NameError", other)
        gateway.journal.wait("destroy", 2)

    def test_where_the_container_has_gone_the_next_result_says_so_once(self):
        upstream = self.upstream(both("x = 1"), code("print(2)"), answer("other"), code("print(3)", "a"),
                                 code("print(4)", "b"), answer("end"))
        gateway = self.serve(upstream, sessions={"max_containers": 1})
        message = self.first(gateway)
        self.assertEqual(chat(gateway, "y").text, "other")
        gateway.wait_event("container_evicted")
        self.assertEqual(post(gateway, PATH, continued(message)).text, "end")
        told = dict(results_of(upstream.requests[5].json))
        self.assertIn(LOST, told["a"])
        self.assertEqual(told["b"], "4")

    def test_a_continuation_that_fails_may_come_again(self):
        upstream = self.upstream(both("x = 8"), *always(Status(503, headers=[("Retry-After", "0")])), code("print(x)", "c"),
                                 answer("8"))
        gateway = self.serve(upstream)
        message = self.first(gateway)
        self.assertEqual(post(gateway, PATH, continued(message)).status, 503)
        self.assertEqual(post(gateway, PATH, continued(message)).text, "8")
        self.assertEqual(results_of(upstream.requests[4].json)[-1], ("c", "8"))
        gateway.journal.wait("destroy")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_with_a_session_its_container_goes_on(self):
        upstream = self.upstream(both("x = 1"), code("print(x)", "c"), answer("end"))
        gateway = self.serve(upstream)
        message = self.first(gateway, session="s")
        self.assertEqual(post(gateway, PATH, continued(message, metadata={"session_id": "s"})).text, "end")
        self.assertEqual(results_of(upstream.requests[2].json)[-1], ("c", "1"))
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_after_a_restart_the_history_goes_up_as_the_client_has_it(self):
        upstream = self.upstream(both("x = 1"), answer("done"))
        message = self.first(self.serve(upstream))
        body = json.dumps(continued(message)).encode()
        reply = post(self.serve(upstream), PATH, body)
        self.assertEqual(reply.text, "done")
        sent = json.dumps(json.loads(body)["messages"]).encode()
        self.assertIn(sent, upstream.requests[1].body)

    def test_another_identity_gets_nothing_of_it(self):
        auth = {"mode": "keys", "keys": [{"name": "a", "key": "sk-of-tenant-a"}, {"name": "b", "key": "sk-of-tenant-b"}]}
        upstream = self.upstream(both("print('secret')"), answer("to b"), code("print(x)", "c"), answer("to a"))
        gateway = self.serve(upstream, auth=auth)
        message = self.first(gateway, key="sk-of-tenant-a")
        self.assertEqual(post(gateway, PATH, continued(message), key="sk-of-tenant-b").text, "to b")
        self.assertNotIn(b"secret", upstream.requests[1].body)
        self.assertIn(message["tool_calls"][0]["id"].encode(), upstream.requests[1].body)
        self.assertEqual(post(gateway, PATH, continued(message), key="sk-of-tenant-a").text, "to a")
        self.assertIn(b"secret", upstream.requests[2].body)

    def test_two_conversations_with_a_server_that_counts_from_zero_stay_apart(self):
        upstream = self.upstream(both("print('one')"), both("print('two')"), answer("end"), answer("end"))
        gateway = self.serve(upstream)
        one, two = self.first(gateway), self.first(gateway)
        post(gateway, PATH, continued(two))
        post(gateway, PATH, continued(one))
        self.assertEqual(results_of(upstream.requests[2].json)[0], ("call_0", "two"))
        self.assertEqual(results_of(upstream.requests[3].json)[0], ("call_0", "one"))

    def test_a_changed_message_is_not_put_together_again(self):
        upstream = self.upstream(both("print(1)"), answer("end"), answer("end"))
        gateway = self.serve(upstream)
        message = self.first(gateway)
        changed = json.loads(json.dumps(message))
        changed["content"] = "Something else."
        post(gateway, PATH, continued(changed))
        up = upstream.requests[1].json["messages"]
        self.assertEqual([m["role"] for m in up], ["user", "assistant", "tool"])
        self.assertEqual(up[1]["content"], "Something else.")
        self.assertEqual((up[1]["tool_calls"][0]["id"], up[2]["tool_call_id"]), ("call_1", "call_1"))
        post(gateway, PATH, continued(message))
        self.assertEqual(len(upstream.requests[2].json["messages"]), 4, "the record is there still")

    def test_it_is_found_although_no_hosted_tool_is_named_any_more(self):
        upstream = self.upstream(both("print(6 * 7)"), answer("end"))
        gateway = self.serve(upstream)
        message = self.first(gateway)
        self.assertEqual(post(gateway, PATH, continued(message, tools=[STOCK])).text, "end")
        up = upstream.requests[1].json
        self.assertEqual([t["function"]["name"] for t in up["tools"]], ["get_stock"])
        self.assertEqual([c["function"]["name"] for c in up["messages"][1]["tool_calls"]], ["get_stock"])
        self.assertIn("print(6 * 7)", up["messages"][1]["content"])
        self.assertIn("42", up["messages"][1]["content"])

    def test_a_client_that_never_comes_back_costs_a_container_for_a_while_only(self):
        upstream = self.upstream(both("x = 1"))
        gateway = self.serve(upstream)
        self.first(gateway)
        self.assertEqual(gateway.journal.live(), [1])
        gateway.stop()
        self.assertEqual(gateway.journal.live()[-1], 0, "and none outlives the gateway")

    def test_a_client_that_has_left_before_its_answer_leaves_no_container_waiting(self):
        def slow(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": "a"}), end=False))
            connection.wait_closed()
            return False
        upstream = self.upstream(code("x = 1"), slow)
        gateway = self.serve(upstream)
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True, tools=(TOOL, STOCK)))
            gateway.journal.wait("run")
            upstream.next_request(), upstream.next_request()
        gateway.journal.wait("destroy")

    def test_clients_calls_in_pieces_under_ids_that_come_late(self):
        pieces = [chunk({"tool_calls": [{"index": 0, "function": {"name": "get_", "arguments": ""}}]}),
                  chunk({"tool_calls": [{"index": 0, "function": {"name": "stock"}}]}),
                  chunk({"tool_calls": [{"index": 0, "id": "late", "function": {"arguments": '{"part": "A-7"}'}}]}),
                  chunk({"tool_calls": [{"index": 1, "id": "ours", "function": {"name": "code_interpreter",
                                                                               "arguments": '{"code": "print(3)"}'}}]}),
                  chunk({}, "tool_calls")]
        upstream = self.upstream(Stream(events(*pieces)), answer("end"))
        gateway = self.serve(upstream)
        message = self.first(gateway, stream=True)
        self.assertEqual(post(gateway, PATH, continued(message)).text, "end")
        self.assertEqual(results_of(upstream.requests[1].json), [("late", "5"), ("ours", "3")])


class Strict(E2E):
    """Before a server that refuses what it does not know: unknown fields, calls without results, broken arguments."""

    def model(self, *script, interceptor=None):
        options = {"strict": True, "script": list(script)}
        chain = [{"plugin": "code_interpreter", "sandbox": "box", **(interceptor or {})}]
        return self.serve(upstream_options=options, interceptors=chain)

    def test_a_mixed_turn_and_its_continuation(self):
        gateway = self.model({"when": "x", "turn": 1, "text": "Both.", "calls": [
            'code_interpreter {"code": "print(6 * 7)"}', 'get_stock {"part": "A"}']},
            {"when": "x", "turn": 2, "text": "Done."})
        for stream in (False, True):
            reply = chat(gateway, text="x", tools=(TOOL, STOCK), stream=stream)
            self.assertEqual(reply.status, 200, reply.body)
            last = post(gateway, PATH, continued(message_of(reply, stream)))
            self.assertEqual((last.status, last.json["choices"][0]["message"]["content"]), (200, "Done."), last.body)
            up = json.loads(gateway.upstream_journal.bodies()[-1])
            self.assertEqual([m["content"].strip() for m in up["messages"] if m["role"] == "tool"], ["42", "5"])

    def history(self, gateway):
        reply = chat(gateway, text="x")
        self.assertEqual(reply.status, 200, reply.body)
        message = reply.json["choices"][0]["message"]
        self.assertEqual(len(message["executed_tools"]), 1)
        return [USER, message, {"role": "user", "content": "x"}]

    def test_shown_runs_come_back_as_pairs_or_as_text(self):
        gateway = self.model({"when": "x", "turn": 1, "call": "code_interpreter",
                              "arguments": '{"code": "print(6 * 7)"}'},
                             {"when": "x", "turn": 2, "text": "It is 42."}, {"when": "y", "text": "Again."},
                             interceptor={"show_runs": True})
        history = self.history(gateway)
        history[-1] = {"role": "user", "content": "y"}
        with_tool = post(gateway, PATH, {"model": "mock", "messages": history, "tools": [TOOL]})
        self.assertEqual((with_tool.status, with_tool.text), (200, "Again."), with_tool.body)
        up = json.loads(gateway.upstream_journal.bodies()[-1])["messages"]
        self.assertEqual([m["role"] for m in up], ["user", "assistant", "tool", "assistant", "user"])
        self.assertEqual(json.loads(up[1]["tool_calls"][0]["function"]["arguments"]), {"code": "print(6 * 7)"})
        self.assertEqual((up[2]["content"].strip(), up[3]["content"]), ("42", "It is 42."))
        without = post(gateway, PATH, {"model": "mock", "messages": history})
        self.assertEqual((without.status, without.text), (200, "Again."), without.body)
        up = json.loads(gateway.upstream_journal.bodies()[-1])["messages"]
        self.assertEqual([m["role"] for m in up], ["user", "assistant", "user"])
        self.assertIn("print(6 * 7)", up[1]["content"])
        self.assertTrue(up[1]["content"].endswith("It is 42."))

    def test_what_a_vendor_has_run_is_nothing_to_us(self):
        gateway = self.model({"when": "x", "text": "Fine."})
        vendor = {"role": "assistant", "content": "v", "executed_tools": [{
            "index": 0, "type": "python", "id": "ci_vendor", "arguments": "{}", "output": "7"}]}
        body = {"model": "mock", "messages": [USER, vendor, USER]}
        untouched = post(gateway, PATH, body)
        self.assertEqual((untouched.status, untouched.error["param"]), (400, "messages[1].executed_tools"))
        self.assertEqual(json.loads(gateway.upstream_journal.bodies()[-1]), body)
        ours = post(gateway, PATH, {**body, "tools": [TOOL]})
        self.assertEqual(ours.status, 200, "where we take part the key goes, and with it what no server takes")
        self.assertEqual(json.loads(gateway.upstream_journal.bodies()[-1])["messages"][1],
                         {"role": "assistant", "content": "v"})

    def test_c021_a_forced_tool_is_there_under_the_name_that_is_forced(self):  # C021
        own = {"type": "function", "function": {"name": "code_interpreter", "parameters": {"type": "object"}}}
        for tools in ([TOOL], [own, TOOL]):
            gateway = self.model({"when": "x", "turn": 2, "text": "Done."})
            choice = {"type": "code_interpreter"}
            reply = post(gateway, PATH, {"model": "mock", "messages": [{"role": "user", "content": "x"}], "tools": tools,
                                         "tool_choice": choice})
            self.assertEqual(reply.status, 200, reply.body)
            first = json.loads(gateway.upstream_journal.bodies()[0])
            self.assertIn(first["tool_choice"]["function"]["name"], [t["function"]["name"] for t in first["tools"]])


if __name__ == "__main__":
    main()
