"""The loop's rules, one after the other: limits and repetition, tries of an upstream, a context that is full, usage, what a
follow-up carries, and that a stream is never silent for long. A scripted model server plays the upstream."""
import json
import threading

from client import TOOL, Wire, body_of, chat, parse_events, post
from harness import BUILD, E2E, main
from upstream import Bytes, Status, Stream, always, answer, chunk, code, events, streamed

FOLDER = str(BUILD / "tests" / "e2e")
PATH = "/v1/chat/completions"
LIMIT = "[limit reached: answer with what you have]"
NO_WORDS = "The tools were used as often as this request allows, and the model gave no answer in words."
STOCK = {"type": "function", "function": {"name": "get_stock", "parameters": {"type": "object"}}}
FULL = {"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in "
                             "9000 tokens.", "type": "invalid_request_error", "param": "messages",
                  "code": "context_length_exceeded"}}


def results_of(body):
    return [m["content"].strip() for m in body["messages"] if m["role"] == "tool"]


def cut_off(*chunks):
    """A stream whose connection breaks behind these."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = events(*chunks, end=False)
    return Bytes(head + (b"%x\r\n%s\r\n" % (len(data), data) if data else b""))


class Rules(E2E):
    def ask(self, *turns, rules=(), sections=None, options=None, status=200, **request):
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream, rules=rules, upstream_options=options, **(sections or {}))
        reply = chat(gateway, "x", **request)
        self.assertEqual(reply.status, status, reply.body)
        return gateway, upstream, reply


class Limits(Rules):
    """Rule 5, each limit by itself, in the order in which they stand there."""

    def test_1_max_turns_the_last_of_them_is_made_with_tool_choice_none(self):
        turns = [code(f"print({i})", f"c{i}") for i in range(9)] + [answer("ten")]
        _, upstream, reply = self.ask(*turns)
        choices = [r.json.get("tool_choice", "auto") for r in upstream.requests]
        self.assertEqual(choices, ["auto"] * 9 + ["none"], "10 by default")
        self.assertEqual(reply.text, "ten")

    def test_2_max_calls_over_all_turns(self):
        turns = [answer(calls=[(f"c{t}_{i}", "code_interpreter", {"code": f"print({t * 8 + i})"}) for i in range(8)])
                 for t in range(5)] + [answer("enough")]
        gateway, upstream, reply = self.ask(*turns)
        self.assertEqual(len(gateway.journal.of("run")), 32, "32 by default")
        self.assertEqual(results_of(upstream.requests[5].json)[32:], [LIMIT] * 8)
        self.assertEqual(reply.text, "enough")

    def test_3_eight_calls_of_a_turn(self):
        calls = [(f"c{i}", "code_interpreter", {"code": f"print({i})"}) for i in range(9)]
        gateway, upstream, _ = self.ask(answer(calls=calls), code("print(100)", "again"), answer("end"))
        self.assertEqual(len(gateway.journal.of("run")), 8)
        self.assertEqual(results_of(upstream.requests[1].json)[8], LIMIT)
        self.assertEqual(results_of(upstream.requests[2].json)[9], LIMIT, "it was told so")
        self.assertEqual(upstream.requests[2].json["tool_choice"], "none")

    def test_4_over_a_limit_tools_and_choice_stay_until_the_model_calls_again(self):
        turns = [code("print(1)", "a"), code("print(2)", "b"), code("print(3)", "c"), code("print(4)", "d")]
        gateway, upstream, reply = self.ask(*turns, sections={"loop": {"max_calls": 1}}, tool_choice="auto")
        self.assertEqual([r.json["tool_choice"] for r in upstream.requests], ["auto", "auto", "auto", "none"])
        self.assertEqual(len({json.dumps(r.json["tools"]) for r in upstream.requests}), 1, "for prompt caches")
        self.assertEqual(results_of(upstream.requests[3].json), ["1", LIMIT, LIMIT])
        self.assertEqual((reply.text, reply.finish), (NO_WORDS, "stop"), "a call even then is dropped")

    def test_5_the_smallest_of_several_limits_wins(self):
        calls = [(f"c{i}", "code_interpreter", {"code": f"print({i})"}) for i in range(10)]
        for max_calls, run in ((3, 3), (30, 8)):
            gateway, _, _ = self.ask(answer(calls=calls), answer("end"), sections={"loop": {"max_calls": max_calls}})
            self.assertEqual(len(gateway.journal.of("run")), run)

    def test_6_the_same_call_with_the_same_result_a_third_time_is_over(self):
        spellings = ['{"code": "print(1)"}', '{ "code":"print(1)" }', '{"code":"\\u0070rint(1)"}']
        turns = [answer(calls=[(f"c{i}", "code_interpreter", text)]) for i, text in enumerate(spellings)]
        gateway, upstream, reply = self.ask(*turns, code("print(1)", "c3"), answer("end"))
        self.assertEqual([results_of(r.json)[-1] for r in upstream.requests[1:]], ["1", "1", LIMIT, LIMIT])
        self.assertEqual(len(gateway.journal.of("run")), 3, "the one behind it is not run")
        self.assertEqual(upstream.requests[4].json["tool_choice"], "none")
        self.assertEqual(reply.text, "end")

    def test_6_another_result_or_another_call_is_no_repetition(self):
        turns = [code("x = 0", "s")] + [code("x += 1\nprint(x)", f"c{i}") for i in range(4)] + [answer("end")]
        gateway, upstream, _ = self.ask(*turns)
        self.assertEqual(results_of(upstream.requests[5].json)[1:], ["1", "2", "3", "4"])
        turns = [code(f"print(1) # {i}", f"c{i}") for i in range(4)] + [answer("end")]
        _, upstream, _ = self.ask(*turns)
        self.assertEqual(results_of(upstream.requests[4].json), ["1"] * 4)

    def test_7_from_four_fifths_of_the_time_on_no_tool_is_started(self):
        rules = [{"when": "slow", "stdout": "done", "delay": "8100ms"}]
        calls = [("a", "code_interpreter", {"code": "slow"}), ("b", "code_interpreter", {"code": "print(2)"})]
        gateway, upstream, reply = self.ask(answer(calls=calls), answer("in time"), rules=rules,
                                            sections={"server": {"request_timeout": "10s"}})
        self.assertEqual(results_of(upstream.requests[1].json), ["done", LIMIT])
        self.assertEqual(upstream.requests[1].json["tool_choice"], "none")
        self.assertEqual(reply.text, "in time")
        self.assertEqual(len(gateway.journal.of("run")), 1)


class Tries(Rules):
    """Rule 6: an upstream that fails in a way that may pass is tried once more, as long as the client has seen nothing."""

    def test_what_may_pass_is_tried_again(self):
        later = [("Retry-After", "0")]
        for failure in (Status(408), Status(429, headers=later), Status(500), Status(502), Status(503, headers=later),
                        Status(529), Bytes(b""), cut_off()):
            gateway, upstream, reply = self.ask(failure, answer("second"))
            self.assertEqual((reply.text, len(upstream.requests)), ("second", 2))
            self.assertEqual(upstream.requests[0].body, upstream.requests[1].body)
            line = gateway.wait_event("upstream_retry")
            self.assertEqual((line["upstream"], line["turn"]), ("up", "1"))
            self.assertGreater(int(line["wait_ms"]), -1)

    def test_what_does_not_pass_is_not(self):
        for failure, status in ((Status(400), 400), (Status(404), 404), (Status(409), 409), (Status(401), 502),
                                (Status(200, b"<html>"), 502)):
            gateway, upstream, _ = self.ask(failure, answer("never"), status=status)
            self.assertEqual(len(upstream.requests), 1)
            self.assertEqual(gateway.events("upstream_retry"), [])

    def test_the_second_failure_is_final_and_keeps_its_status(self):
        gateway, upstream, reply = self.ask(Status(500), Status(503, {"error": {"message": "still busy"}}), answer("never"),
                                            status=503)
        self.assertEqual((reply.error["message"], len(upstream.requests)), ("still busy", 2))
        self.assertIsNone(reply.get("x-should-retry"))

    def test_an_upstream_that_wants_to_be_left_alone_for_long_is_not_tried_again(self):
        for field in (("Retry-After", "21"), ("Retry-After", "Wed, 01 Jan 2200 00:00:00 GMT"), ("Retry-After-Ms", "20001")):
            _, upstream, reply = self.ask(Status(429, headers=[field]), answer("never"), status=429)
            self.assertEqual(len(upstream.requests), 1)
        for field in (("Retry-After", "Wed, 01 Jan 2020 00:00:00 GMT"), ("Retry-After-Ms", "1"), ("Retry-After", "soon")):
            _, upstream, reply = self.ask(Status(429, headers=[field]), answer("second"))
            self.assertEqual(reply.text, "second")

    def test_no_try_goes_beyond_the_requests_time(self):
        gateway, upstream, _ = self.ask(Status(429, headers=[("Retry-After", "10")]), answer("never"), status=429,
                                        sections={"server": {"request_timeout": "5s"}})
        self.assertEqual((len(upstream.requests), gateway.events("upstream_retry")), (1, []))

    def test_a_later_turn_is_tried_again_and_the_code_is_not_run_again(self):
        gateway, upstream, reply = self.ask(code("print(1)"), Status(503), answer("ok"))
        self.assertEqual((reply.text, len(upstream.requests)), ("ok", 3))
        self.assertEqual(len(gateway.journal.of("run")), 1)
        self.assertEqual(upstream.requests[1].body, upstream.requests[2].body)
        self.assertEqual(gateway.wait_event("request")["turns"], "2", "a try is no turn")
        self.assertEqual(gateway.wait_event("upstream_retry")["turn"], "2")

    def test_after_a_run_the_final_failure_is_424(self):
        gateway, upstream, reply = self.ask(code("print(1)"), *always(Status(429, headers=[("Retry-After", "0")])), status=424)
        self.assertEqual((reply.get("x-should-retry"), reply.error["code"]), ("false", "failed_after_run"))
        self.assertEqual((len(upstream.requests), len(gateway.journal.of("run"))), (3, 1))

    def test_a_stream_is_tried_again_as_long_as_the_client_has_nothing_of_the_turn(self):
        broken = (cut_off(), cut_off(b": comment\n\n"), Stream(b'data: {"error":{"message":"busy","code":503}}\n\n'))
        for failure in broken:
            _, upstream, reply = self.ask(failure, streamed("whole"), stream=True)
            self.assertEqual((reply.stream_text, len(upstream.requests)), ("whole", 2))
            _, upstream, reply = self.ask(streamed("First.", calls=[("c", "code_interpreter", {"code": "print(1)"})]), failure,
                                          streamed("Second."), stream=True)
            self.assertEqual((reply.stream_text, len(upstream.requests)), ("First.\n\nSecond.", 3))
            self.assertEqual(reply.events[-1], "[DONE]")

    def test_a_stream_of_which_the_client_has_something_is_not(self):
        failure = cut_off(chunk({"role": "assistant", "content": "half"}))
        gateway, upstream, reply = self.ask(failure, streamed("never"), stream=True)
        self.assertEqual(len(upstream.requests), 1)
        self.assertIn("error", reply.events[-2])
        self.assertEqual(gateway.events("upstream_retry"), [])

    def test_a_relayed_request_is_tried_again_only_where_nothing_was_sent(self):
        for failure, status in ((Status(503), 503), (Bytes(b""), 502)):
            upstream = self.upstream(failure, answer("never"))
            gateway = self.serve(upstream)
            self.assertEqual(chat(gateway, "x", tools=()).status, status)
            self.assertEqual((len(upstream.requests), gateway.events("upstream_retry")), (1, []),
                             "what it says is the client's to act upon, and what it got may have been done")
        upstream.close()
        gone = self.serve(upstream)
        self.assertEqual(chat(gone, "x", tools=()).status, 502)
        self.assertEqual(len(gone.events("upstream_retry")), 1)
        self.assertIn("cannot connect", gone.events("upstream_retry")[0]["cause"])

    def test_a_model_plugin_is_tried_again_too(self):
        for fault in ("refuse", "reset"):
            gateway = self.serve(upstream_options={"script": [{"when": "x", "fault": fault, "times": 1, "text": "lost"},
                                                              {"when": "x", "text": "second"}]})
            self.assertEqual(chat(gateway, text="x").text, "second", fault)
            self.assertEqual(len(gateway.events("upstream_retry")), 1)


class Context(Rules):
    """Rule 7: results are cut where the upstream finds the context too long right behind them."""

    BIG = [{"when": "big", "stdout": "0123456789" * 1000}]

    def test_the_results_are_cut_and_the_turn_tried_once_more(self):
        texts = (FULL, {"error": {"message": "the request exceeds the available context size. try increasing it", "code": 400}},
                 {"object": "error", "message": "This model's maximum context length is 10 tokens.", "code": 400},
                 {"error": "prompt is too long: 210000 tokens > 200000 maximum"})
        for status, text in ((400, texts[0]), (413, texts[0]), *((400, text) for text in texts[1:])):
            gateway, upstream, reply = self.ask(code("big"), Status(status, text), answer("saved"), rules=self.BIG)
            self.assertEqual((reply.text, len(upstream.requests)), ("saved", 3))
            before, after = (results_of(r.json)[0] for r in upstream.requests[1:])
            self.assertGreater(len(before), 9000)
            self.assertLessEqual(len(after), 2048)
            self.assertRegex(after, r"\d\n\[… \d+ bytes cut: the context is full …\]\n\d+")
            self.assertTrue(after.startswith("0123456789") and after.endswith("0123456789"))
            self.assertEqual(gateway.wait_event("results_cut")["turn"], "2")
            self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_a_context_that_is_full_even_then_is_a_failure_after_a_run(self):
        _, upstream, reply = self.ask(code("big"), *always(Status(400, FULL)), answer("never"), rules=self.BIG, status=424)
        self.assertEqual((len(upstream.requests), reply.error["message"]), (3, FULL["error"]["message"]))

    def test_in_a_stream_it_is_saved_likewise(self):
        event = Stream(events({"error": {**FULL["error"]}}, end=False))
        for failure in (Status(400, FULL), event):
            _, upstream, reply = self.ask(streamed("A.", calls=[("c", "code_interpreter", {"code": "big"})]), failure,
                                          streamed("B."), rules=self.BIG, stream=True)
            self.assertEqual((reply.stream_text, len(upstream.requests)), ("A.\n\nB.", 3))

    def test_without_a_long_result_there_is_nothing_to_cut(self):
        gateway, upstream, reply = self.ask(code("print(1)"), Status(400, FULL), answer("never"), status=424)
        self.assertEqual((len(upstream.requests), gateway.events("results_cut")), (2, []))
        _, upstream, _ = self.ask(Status(400, FULL), answer("never"), status=400)
        self.assertEqual(len(upstream.requests), 1, "before any run it is the client's")

    def test_other_refusals_are_no_reason_to_cut(self):
        other = {"error": {"message": "Invalid value for 'messages'.", "code": "invalid_value"}}
        _, upstream, _ = self.ask(code("big"), Status(400, other), answer("never"), rules=self.BIG, status=424)
        self.assertEqual(len(upstream.requests), 2)


class Usage(Rules):
    """Rule 9."""

    def turns(self, stream):
        calls = [("c", "code_interpreter", {"code": "print(1)"})]
        return ((streamed(calls=calls, usage=(100, 20)), streamed("ok", usage=(180, 50))) if stream else
                (answer(calls=calls, usage=(100, 20)), answer("ok", usage=(180, 50))))

    def test_sum_or_last_as_the_upstream_is_configured(self):
        for options, wanted in (({}, (280, 70, 350)), ({"usage": "sum"}, (280, 70, 350)), ({"usage": "last"}, (180, 50, 230))):
            for stream in (False, True):
                more = {"stream_options": {"include_usage": True}} if stream else {}
                gateway, _, reply = self.ask(*self.turns(stream), options=options, stream=stream, **more)
                usage = reply.events[-2]["usage"] if stream else reply.json["usage"]
                self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]), wanted)
                line = gateway.wait_event("request")
                self.assertEqual((line["input_tokens"], line["output_tokens"]), ("280", "70"), "the log has the sum")

    def test_tokens_that_nobody_counted_are_left_out_of_the_log(self):
        calls = [("c", "code_interpreter", {"code": "print(1)"})]
        gateway, _, _ = self.ask(answer(calls=calls, usage=None), answer("ok", usage=None))
        lines = [gateway.wait_event("request"), *gateway.events("turn")]
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertEqual([key for key in line if key.endswith("_tokens")], [])

    def test_each_turn_and_each_tool_has_its_line(self):
        gateway, _, _ = self.ask(*self.turns(False))
        request = gateway.wait_event("request")["request"]
        turns = [(e["turn"], e["calls"], e["input_tokens"], e["output_tokens"], e["request"]) for e in gateway.events("turn")]
        self.assertEqual(turns, [("1", "1", "100", "20", request), ("2", "0", "180", "50", request)])
        tools = [(e["interceptor"], e["tool"], e["status"], e["request"]) for e in gateway.events("tool")]
        self.assertEqual(tools, [("code_interpreter", "code_interpreter", "completed", request)])
        self.assertGreaterEqual(int(gateway.events("tool")[0]["ms"]), 0)


class Search(Rules):
    SECTIONS = {"server": {"plugin_path": [FOLDER]}, "searches": [{"name": "web", "plugin": "mock"}],
                "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}, {"plugin": "probe_search", "search": "web"}]}

    def test_web_search_options_name_the_hosted_search(self):
        for stream in (False, True):
            call = [("c", "probe", {"what": "search"})]
            turn = streamed(calls=call) if stream else answer(calls=call)
            upstream = self.upstream(turn, streamed("ok") if stream else answer("ok"))
            gateway = self.serve(upstream, **self.SECTIONS)
            options = {"search_context_size": "low", "user_location": {"type": "approximate", "approximate": {"country": "NL"}}}
            reply = chat(gateway, "x", tools=(), stream=stream, web_search_options=options, temperature=1)
            self.assertEqual(reply.stream_text if stream else reply.text, "ok")
            for request in upstream.requests:
                self.assertEqual([t["function"]["name"] for t in request.json["tools"]], ["probe"])
                self.assertNotIn("web_search_options", request.json)
                self.assertEqual(request.json["temperature"], 1)

    def test_web_search_options_that_nothing_answers_stay(self):
        upstream = self.upstream(answer("a"), answer("b"))
        gateway = self.serve(upstream)
        options = {"search_context_size": "low"}
        raw = json.dumps(body_of("x", tools=(), web_search_options=options)).encode()
        self.assertEqual(post(gateway, PATH, raw).text, "a")
        self.assertEqual(upstream.requests[0].body, raw)
        self.assertEqual(chat(gateway, "x", web_search_options=options).text, "b")
        self.assertEqual(upstream.requests[1].json["web_search_options"], options, "the code tool does not answer it")

    def c003_a_streamed_search_is_carried_out_and_not_shown(self):  # C003
        upstream = self.upstream(streamed(calls=[("c", "probe", {"what": "search for Lyon weather today"})]), streamed("Sunny."))
        gateway = self.serve(upstream, **self.SECTIONS)
        reply = chat(gateway, "x", stream=True, tools=({"type": "web_search"},))
        self.assertEqual(reply.stream_text, "Sunny.")
        self.assertNotIn(b"tool_calls", reply.body)
        self.assertNotIn(b"probe", reply.body)
        finishes = [c["choices"][0]["finish_reason"] for c in reply.events[:-1] if c["choices"]]
        self.assertEqual(finishes[-1], "stop")
        gateway.wait_event("request")  # behind the lines of its calls
        self.assertEqual(len(gateway.events("tool")), 1, "one search")

    def c024_every_spelling_of_the_hosted_search_is_recognised(self):  # C024, the forms that chat knows
        for kind in ("web_search", "web_search_preview", "web_search_preview_2025_03_11", "web_search_2025_08_26",
                     "web_search_20250305", "browser_search"):
            upstream = self.upstream(answer("ok"))
            gateway = self.serve(upstream, **self.SECTIONS)
            self.assertEqual(chat(gateway, "x", tools=({"type": kind, "max_uses": 3},)).text, "ok", kind)
            self.assertEqual([t["type"] for t in upstream.requests[0].json["tools"]], ["function"], kind)

    def c024_an_unknown_hosted_tool_is_never_half_converted(self):  # C024
        upstream = self.upstream(answer("a"), answer("b"))
        gateway = self.serve(upstream, **self.SECTIONS)
        odd = {"type": "file_search", "vector_store_ids": ["vs_1"], "name": "web_search"}
        chat(gateway, "x", tools=(odd,))
        self.assertEqual(upstream.requests[0].json["tools"], [odd])
        chat(gateway, "x", tools=(odd, TOOL))
        self.assertEqual(upstream.requests[1].json["tools"][0], odd)

    def c029_code_and_search_in_one_turn_both_run_in_their_order(self):  # C029
        calls = [("s", "probe", {"what": "search"}), ("c", "code_interpreter", {"code": "print(7)"}),
                 ("t", "probe", {"what": "nothing"})]
        for stream in (False, True):
            upstream = self.upstream(streamed(calls=calls) if stream else answer(calls=calls),
                                     streamed("ok") if stream else answer("ok"))
            gateway = self.serve(upstream, **self.SECTIONS)
            reply = chat(gateway, "x", stream=stream, tools=({"type": "web_search"}, TOOL))
            self.assertEqual(reply.stream_text if stream else reply.text, "ok")
            told = [m for m in upstream.requests[1].json["messages"] if m["role"] == "tool"]
            self.assertEqual([m["tool_call_id"] for m in told], ["s", "c", "t"])
            self.assertEqual([m["content"].strip() for m in told[1:]], ["7", "probed"])


class FollowUps(Rules):
    """Rule 11: later turns carry the client's own options and nothing of ours."""

    def test_options_and_headers_of_the_client_go_up_in_each_turn(self):
        upstream = self.upstream(code("print(1)"), answer("ok"))
        gateway = self.serve(upstream, server={"forward_headers": ["x-trace"]}, upstream_options={"api_key": "sk-operator"})
        options = {"temperature": 0.25, "seed": 7, "user": "u", "vendor": {"a": [1.0]}, "logit_bias": {"1": -0}}
        headers = {"OpenAI-Beta": "b1", "X-Trace": "t1", "X-Stainless-Lang": "js", "Idempotency-Key": "once",
                   "Authorization": "Bearer client", "X-Request-Id": "mine", "Cookie": "c=1"}
        self.assertEqual(chat(gateway, "x", headers=headers, **options).text, "ok")
        first, second = upstream.requests
        for request in upstream.requests:
            self.assertEqual({k: request.json[k] for k in options}, options)
            self.assertEqual((request.get("openai-beta"), request.get("x-trace"), request.get("x-stainless-lang")),
                             ("b1", "t1", "js"))
            self.assertEqual(request.get("authorization"), "Bearer sk-operator")
            self.assertEqual((request.get("cookie"), request.get("x-request-id")), (None, None))
        self.assertEqual((first.get("idempotency-key"), second.get("idempotency-key")), ("once", None),
                         "a later turn is another request")
        self.assertEqual(set(second.json), set(first.json), "no member of ours")
        names = [sorted(k.lower() for k, _ in request.fields) for request in upstream.requests]
        self.assertEqual(sorted(names[1] + ["idempotency-key"]), names[0], "no header of ours")

    def c037_fields_of_the_message_that_nobody_knows_survive(self):  # C037
        def strict(connection):
            last = [m for m in connection.request.json["messages"] if m["role"] == "assistant"][0]
            good = last.get("reasoning_content") == "because" and last.get("x_signature") == {"s": 1.0}
            body = json.dumps(answer("ok") if good else {"error": {"message": "reasoning_content is missing"}}).encode()
            connection.head(200 if good else 400, [("Content-Length", len(body))])
            connection.send(body)
            return True
        call = [("c", "code_interpreter", {"code": "print(1)"})]
        _, _, reply = self.ask(answer("a", calls=call, reasoning_content="because", x_signature={"s": 1.0}), strict)
        self.assertEqual(reply.text, "a\n\nok")
        pieces = [chunk({"role": "assistant", "reasoning_content": "be"}), chunk({"reasoning_content": "cause"}),
                  chunk({"x_signature": {"s": 1.0}}),
                  chunk({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {
                      "name": "code_interpreter", "arguments": '{"code": "print(1)"}'}}]}), chunk({}, "tool_calls")]
        _, _, reply = self.ask(Stream(events(*pieces)), strict, stream=True)
        self.assertEqual(reply.stream_text, "ok")


class Alive(Rules):
    """A stream that has begun is never silent for long: comments go out while a tool runs or the upstream thinks."""

    def silent(self, before, first_chunks=()):
        """A turn that says nothing (behind these chunks) until the test lets it."""
        go_on, reached = threading.Event(), threading.Event()

        def turn(connection):
            if before == "head":
                reached.set()
                go_on.wait(60)
            connection.begin_stream()
            if first_chunks:
                connection.chunk(events(*first_chunks, end=False))
            if before != "head":
                reached.set()
                go_on.wait(60)
            connection.chunk(events(chunk({"content": "Late."}), chunk({}, "stop")))
            connection.end()
            return True
        return turn, go_on, reached

    def comments_until(self, response, count):
        seen = b""
        while seen.count(b": keep-alive\n\n") < count:
            seen += response.readline()
        return seen

    def test_comments_go_out_while_a_later_turn_is_silent(self):
        first = streamed("First.", calls=[("c", "code_interpreter", {"code": "print(1)"})])
        for before in ("head", "body"):
            turn, go_on, _ = self.silent(before)
            gateway = self.serve(self.upstream(first, turn), loop={"keep_alive": "100ms"})
            with Wire(gateway) as wire:
                wire.post(body_of("x", stream=True))
                response = wire.stream()
                seen = self.comments_until(response, 3)
                go_on.set()
                seen += response.read()
            blocks = [b for b in seen.split(b"\n\n") if b]
            self.assertTrue(all(b.startswith((b":", b"data:")) for b in blocks), "none within an event")
            self.assertEqual(blocks[-1], b"data: [DONE]")
            self.assertEqual("".join((c["choices"][0]["delta"].get("content") or "") for c in parse_events(seen)[:-1]
                                     if c["choices"]), "First.\n\nLate.")

    def test_and_while_the_first_turn_is_silent_once_it_has_begun(self):
        turn, go_on, _ = self.silent("body", [chunk({"role": "assistant", "content": "A"})])
        gateway = self.serve(self.upstream(turn), loop={"keep_alive": "100ms"})
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True))
            response = wire.stream()
            self.comments_until(response, 2)
            go_on.set()
            self.assertIn(b"[DONE]", response.read())

    def test_before_the_first_good_event_nothing_goes_out_so_that_an_error_keeps_its_status(self):
        go_on = threading.Event()

        def refuses_late(connection):
            go_on.wait(60)
            body = b'{"error":{"message":"no such thing"}}'
            connection.head(404, [("Content-Length", len(body))])
            connection.send(body)
            return True
        upstream = self.upstream(refuses_late)
        gateway = self.serve(upstream, loop={"keep_alive": "100ms"})
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True))
            upstream.next_request()
            wire.sock.settimeout(0.5)
            self.assertRaises(TimeoutError, wire.sock.recv, 1)
            wire.sock.settimeout(120)
            go_on.set()
            self.assertEqual(wire.answer().status, 404)

    def test_a_turn_without_text_begins_the_stream_for_its_tools_comments(self):
        rules = [{"when": "slow", "stdout": "done", "delay": "1s"}]
        _, _, reply = self.ask(code("slow"), answer("ok"), rules=rules, sections={"loop": {"keep_alive": "100ms"}}, stream=True)
        self.assertGreaterEqual(reply.body.count(b": keep-alive\n\n"), 2)
        self.assertEqual(reply.stream_text, "ok")

    def test_comments_go_out_while_a_try_is_awaited(self):
        later = Status(503, headers=[("Retry-After", "1")])
        first = streamed("First.", calls=[("c", "code_interpreter", {"code": "print(1)"})])
        _, _, reply = self.ask(first, later, streamed("Second."), sections={"loop": {"keep_alive": "100ms"}}, stream=True)
        self.assertEqual(reply.stream_text, "First.\n\nSecond.")
        self.assertGreaterEqual(reply.body.count(b": keep-alive\n\n"), 2)

    def test_an_upstream_that_is_silent_for_too_long_ends_it_in_spite_of_comments(self):
        turn, go_on, _ = self.silent("body", [chunk({"role": "assistant", "content": "A"})])
        gateway, _, reply = self.ask(turn, options={"silence_timeout": "700ms"}, sections={"loop": {"keep_alive": "100ms"}},
                                     stream=True)
        go_on.set()
        self.assertEqual(reply.events[-2]["error"]["message"], "The model server did not answer in time.")
        self.assertIn("silence limit", gateway.wait_event("request")["cause"])

    def test_plain_answers_get_no_comments(self):
        rules = [{"when": "slow", "stdout": "done", "delay": "500ms"}]
        _, _, reply = self.ask(code("slow"), answer("ok"), rules=rules, sections={"loop": {"keep_alive": "100ms"}})
        self.assertTrue(reply.body.startswith(b"{"))


if __name__ == "__main__":
    main()
