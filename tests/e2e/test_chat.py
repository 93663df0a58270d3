"""The loop on chat, without streams: what goes up in each turn, which calls are ours, and what the client is answered.
A scripted model server plays the upstream, the mock sandbox runs the code; both say what reached them."""
import json

from client import TOOL, body_of, chat, post
from harness import E2E, main
from upstream import Bytes, Status, answer, code

FUNCTION = {"type": "function", "function": {"name": "get_stock", "description": "x",
                                             "parameters": {"type": "object", "properties": {"part": {"type": "string"}}}}}


def tool_messages(body):
    return [m for m in body["messages"] if m["role"] == "tool"]


def names_of(body):
    return [tool["function"]["name"] for tool in body["tools"]]


class Chat(E2E):
    def ask(self, *turns, rules=(), body=None, sections=None, status=200, **request):
        """One request through a gateway of its own: (gateway, upstream, answer)."""
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream, rules=rules, **(sections or {}))
        reply = post(gateway, "/v1/chat/completions", body if body is not None else body_of("print(1)", **request))
        self.assertEqual(reply.status, status, reply.body)
        return gateway, upstream, reply

    def b04_the_tool_goes_up_in_nested_form_and_the_forced_choice_with_it(self):
        for forced in ({"type": "code_interpreter"}, {"type": "hosted_tool", "name": "code_interpreter"}):
            _, upstream, _ = self.ask(code("print(1)"), answer("done"), tool_choice=forced)
            first, second = (request.json for request in upstream.requests)
            tool = first["tools"][0]
            self.assertEqual(tool["type"], "function")
            self.assertEqual(tool["function"]["name"], "code_interpreter")
            self.assertEqual(tool["function"]["parameters"]["required"], ["code"])
            self.assertNotIn(b'"code_interpreter"}', upstream.requests[0].body.replace(b'"name":"code_interpreter"}', b""))
            self.assertEqual(first["tool_choice"], {"type": "function", "function": {"name": "code_interpreter"}})
            self.assertIn(second.get("tool_choice", "auto"), ["auto"], "the force goes after the first call")
            self.assertEqual(first["tools"], second["tools"])

    def b06_auto_and_choices_of_other_tools_stay(self):
        other = {"type": "function", "function": {"name": "get_stock"}}
        for choice in ("auto", "required", other):
            _, upstream, _ = self.ask(answer("done"), tools=[TOOL, FUNCTION], tool_choice=choice)
            self.assertEqual(upstream.requests[0].json["tool_choice"], choice)

    def b08_other_tools_activate_nothing(self):
        raw = json.dumps(body_of("print(1)", tools=[FUNCTION, {"type": "web_search"}])).encode()
        gateway, upstream, reply = self.ask(code("print(1)"), body=raw)
        self.assertEqual(upstream.requests[0].body, raw)
        self.assertEqual(reply.json, code("print(1)"), "the model's call is the client's business")
        self.assertEqual(gateway.journal.lines(), [])

    def b09_another_function_is_not_ours(self):
        gateway, upstream, reply = self.ask(answer(calls=[("call_x", "get_stock", {"part": "A"})]), tools=[TOOL, FUNCTION])
        self.assertEqual(len(upstream.requests), 1)
        self.assertEqual(gateway.journal.lines(), [])
        call = reply.json["choices"][0]["message"]["tool_calls"][0]
        self.assertEqual(call["function"], {"name": "get_stock", "arguments": '{"part": "A"}'})
        self.assertEqual(reply.finish, "tool_calls")

    def b10_all_turns_share_one_container(self):
        gateway, upstream, reply = self.ask(code("x = 20"), code("x = x + 1"), code("print(x * 2)"), answer("42 it is"))
        self.assertEqual(reply.text, "42 it is")
        self.assertEqual(len(gateway.journal.of("create")), 1)
        self.assertEqual(len(gateway.journal.of("run")), 3)
        self.assertIn("42", tool_messages(upstream.requests[3].json)[-1]["content"])

    def b11_a_client_given_id_shares_no_container(self):
        upstream = self.upstream(code("x = 1"), answer("a"), code("print(x)"), answer("b"))
        gateway = self.serve(upstream)
        for _ in range(2):
            reply = chat(gateway, "x", user="same", litellm_call_id="same", headers={"x-request-id": "same"})
            self.assertEqual(reply.status, 200)
        self.assertEqual(len(gateway.journal.of("create")), 2)
        self.assertIn("NameError", tool_messages(upstream.requests[3].json)[0]["content"])

    def b12_the_ephemeral_key_is_the_servers(self):
        upstream = self.upstream(*[code("x = 1"), answer("a")] * 2)
        gateway = self.serve(upstream)
        for _ in range(2):
            chat(gateway, "x", _code_interpreter_interception_key="mine", metadata={"_sandgate_container": "mine"})
        labels = gateway.journal.labels("create")
        self.assertEqual(len(set(labels)), 2)
        for label in labels:
            self.assertGreaterEqual(len(label), 22, "128 bits need so many characters of base64")
            self.assertNotIn("mine", label)

    def b16_without_runs_nothing_is_injected(self):
        _, _, reply = self.ask(answer("just words"))
        message = reply.json["choices"][0]["message"]
        self.assertEqual(message["content"], "just words")
        self.assertNotIn("executed_tools", message)
        self.assertNotIn("tool_calls", message)
        self.assertEqual(reply.finish, "stop")

    def b21_the_call_is_found_and_its_result_bears_its_id(self):
        gateway, upstream, reply = self.ask(answer(calls=[("call_abc", "code_interpreter", {"code": "print(6 * 7)"})]),
                                            answer("It is 42."))
        self.assertEqual(reply.text, "It is 42.")
        result = tool_messages(upstream.requests[1].json)[0]
        self.assertEqual(result["tool_call_id"], "call_abc")
        self.assertIn("42", result["content"])
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def b22_a_call_that_was_never_offered_runs_nothing(self):
        for tools in ((), (FUNCTION,)):
            gateway, upstream, reply = self.ask(code("print(1)"), tools=tools)
            self.assertEqual(len(upstream.requests), 1)
            self.assertEqual(reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "code_interpreter")
            self.assertEqual(gateway.journal.lines(), [])

    def b23_the_next_turn_carries_calls_and_results_and_the_clients_options(self):
        turn = answer("Let me see.", calls=[("call_1", "code_interpreter", {"code": "print(1)"}),
                                            ("call_2", "code_interpreter", {"code": "print(2)"})],
                      reasoning_content="I think", vendor_extra={"a": [1.0, None]})
        _, upstream, reply = self.ask(turn, answer("Done."), temperature=0, seed=7, vendor_option={"deep": True},
                                      _agentic_loop_depth=3, metadata={"tag": "x", "_sandgate": 1})
        second = upstream.requests[1].json
        assistant = [m for m in second["messages"] if m["role"] == "assistant"][0]
        self.assertEqual(assistant["content"], "Let me see.")
        self.assertEqual(assistant["reasoning_content"], "I think")
        self.assertEqual(assistant["vendor_extra"], {"a": [1.0, None]})
        self.assertEqual([c["id"] for c in assistant["tool_calls"]], ["call_1", "call_2"])
        self.assertEqual([m["tool_call_id"] for m in tool_messages(second)], ["call_1", "call_2"])
        self.assertEqual((second["temperature"], second["seed"], second["vendor_option"]), (0, 7, {"deep": True}))
        self.assertEqual(second["metadata"], {"tag": "x"})
        for request in upstream.requests:
            self.assertNotIn(b"_agentic_loop", request.body)
            self.assertNotIn(b"_sandgate", request.body)
        self.assertEqual(reply.text, "Let me see.\n\nDone.")

    def b25_forged_loop_state_has_no_effect(self):
        turns = [code(f"print({i})", f"call_{i}") for i in range(4)] + [answer("end")]
        gateway, upstream, reply = self.ask(*turns, max_agentic_loops=1, _agentic_loop_depth=99,
                                            litellm_metadata={"_agentic_loop_depth": 99})
        self.assertEqual(len(gateway.journal.of("run")), 4)
        self.assertEqual(reply.text, "end")
        for request in upstream.requests:
            self.assertNotIn("max_agentic_loops", request.json)
            self.assertNotIn("litellm_metadata", request.json)

    def b26_state_survives_from_turn_to_turn(self):
        sections = {"loop": {"max_calls": 2}}
        turns = [code("print(1)", "a"), code("print(2)", "b"), code("print(3)", "c"), answer("end")]
        gateway, upstream, _ = self.ask(*turns, sections=sections)
        self.assertEqual(len(gateway.journal.of("run")), 2, "the count of calls goes on over the turns")
        self.assertEqual(tool_messages(upstream.requests[3].json)[-1]["content"],
                         "[limit reached: answer with what you have]")
        self.assertNotEqual(upstream.requests[3].json.get("tool_choice"), "none", "it may still end by itself")

    def test_a_model_that_calls_again_after_the_limit_gets_one_last_turn(self):
        sections = {"loop": {"max_calls": 1}}
        turns = [code("print(1)", "a"), code("print(2)", "b"), code("print(3)", "c"), code("print(4)", "d")]
        gateway, upstream, reply = self.ask(*turns, sections=sections)
        self.assertEqual(len(upstream.requests), 4)
        self.assertEqual(upstream.requests[3].json["tool_choice"], "none")
        self.assertEqual(len(gateway.journal.of("run")), 1)
        self.assertEqual(reply.text, "The tools were used as often as this request allows, and the model gave no "
                                     "answer in words.")
        self.assertNotIn("tool_calls", reply.json["choices"][0]["message"])
        self.assertEqual(reply.finish, "stop")

    def test_the_last_turn_of_max_turns_is_made_with_tool_choice_none(self):
        turns = [code(f"print({i})", f"c{i}") for i in range(2)] + [answer("as far as I got")]
        _, upstream, reply = self.ask(*turns, sections={"loop": {"max_turns": 3}})
        self.assertEqual([r.json.get("tool_choice", "auto") for r in upstream.requests], ["auto", "auto", "none"])
        self.assertTrue(all(r.json["tools"] == upstream.requests[0].json["tools"] for r in upstream.requests))
        self.assertEqual(reply.text, "as far as I got")

    def test_an_upstream_that_ignores_tool_choice_gets_its_last_turn_without_the_tool(self):
        upstream = self.upstream(code("print(1)", "a"), answer("end"))
        gateway = self.serve(upstream, loop={"max_turns": 2}, upstream_options={"last_turn": "remove"})
        self.assertEqual(chat(gateway, "x").text, "end")
        last = upstream.requests[1].json
        self.assertNotIn("code_interpreter", [t["function"]["name"] for t in last.get("tools", [])])

    def test_at_most_eight_calls_of_a_turn_are_run(self):
        calls = [(f"call_{i}", "code_interpreter", {"code": f"print({i})"}) for i in range(10)]
        gateway, upstream, _ = self.ask(answer(calls=calls), answer("ok"))
        results = tool_messages(upstream.requests[1].json)
        self.assertEqual(len(gateway.journal.of("run")), 8)
        self.assertEqual([m["content"] for m in results[8:]], ["[limit reached: answer with what you have]"] * 2)
        self.assertEqual([m["tool_call_id"] for m in results], [f"call_{i}" for i in range(10)])

    def test_tool_choice_none_runs_nothing_and_stays(self):
        gateway, upstream, reply = self.ask(code("print(1)"), tool_choice="none")
        self.assertEqual(upstream.requests[0].json["tool_choice"], "none")
        self.assertEqual(len(upstream.requests), 1)
        self.assertEqual(gateway.journal.lines(), [])
        self.assertNotIn("tool_calls", reply.json["choices"][0]["message"])

    def test_a_client_function_of_our_name_makes_ours_take_another(self):
        own = {"type": "function", "function": {"name": "code_interpreter", "parameters": {"type": "object"}}}
        upstream = self.upstream(code("print(1)"))
        gateway = self.serve(upstream)
        reply = chat(gateway, "x", tools=[own, TOOL])
        names = names_of(upstream.requests[0].json)
        self.assertEqual(len(set(names)), 2, names)
        self.assertEqual(reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "code_interpreter")
        self.assertEqual(gateway.journal.lines(), [], "the client's own function is never run here")

    def test_tool_name_gives_the_function_another_name(self):
        upstream = self.upstream(code("print(6 * 7)", name="python"), answer("ok"))
        gateway = self.serve(upstream, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "tool_name": "python"}])
        self.assertEqual(chat(gateway, "x").text, "ok")
        self.assertEqual(names_of(upstream.requests[0].json), ["python"])
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_offer_always_offers_without_being_asked_and_for_listed_models_only(self):
        for offer, offered in (("always", True), ({"models": ["mo*"]}, True), ({"models": ["other"]}, False),
                               ("requested", False)):
            upstream = self.upstream(answer("words"))
            gateway = self.serve(upstream, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "offer": offer}])
            self.assertEqual(chat(gateway, "x", tools=()).text, "words")
            self.assertEqual("tools" in upstream.requests[0].json, offered, offer)

    def test_a_mixed_turn_runs_ours_and_hands_the_clients_over(self):
        turn = answer("Both.", calls=[("call_a", "code_interpreter", {"code": "print(5)"}),
                                      ("call_b", "get_stock", {"part": "A-7"})])
        gateway, upstream, reply = self.ask(turn, tools=[TOOL, FUNCTION])
        message = reply.json["choices"][0]["message"]
        self.assertEqual([c["function"]["name"] for c in message["tool_calls"]], ["get_stock"])
        self.assertEqual(message["content"], "Both.")
        self.assertEqual(reply.finish, "tool_calls")
        self.assertEqual(len(gateway.journal.of("run")), 1)
        self.assertEqual(len(upstream.requests), 1)

    def test_n_above_one_with_the_hosted_tool_is_refused(self):
        _, upstream, reply = self.ask(answer("x"), n=2, status=400)
        self.assertEqual(reply.error["param"], "n")
        self.assertEqual(upstream.requests, [])

    def test_usage_is_the_sum_over_the_turns(self):
        first = code("print(1)")
        first["usage"] = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        gateway, _, reply = self.ask(first, answer("ok", usage=(180, 50)))
        usage = reply.json["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]), (280, 70, 350))
        line = gateway.wait_event("request")
        self.assertEqual((line["turns"], line["runs"], line["input_tokens"], line["output_tokens"]), ("2", "1", "280", "70"))

    def test_show_runs_lists_what_ran_and_the_key_never_goes_up(self):
        upstream = self.upstream(code("print(6 * 7)"), answer("ok"), answer("next"))
        gateway = self.serve(upstream, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "show_runs": True}])
        reply = chat(gateway, "x")
        shown = reply.json["choices"][0]["message"]["executed_tools"]
        self.assertEqual(len(shown), 1)
        self.assertEqual(json.loads(shown[0]["arguments"]), {"code": "print(6 * 7)"})
        self.assertIn("42", shown[0]["output"])
        history = [{"role": "user", "content": "x"}, reply.json["choices"][0]["message"], {"role": "user", "content": "y"}]
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of(tools=(TOOL,), messages=history)).status, 200)
        self.assertNotIn(b"executed_tools", upstream.requests[2].body)

    def b34_an_exception_is_a_labelled_result(self):
        gateway, upstream, reply = self.ask(code("print(undefined_name)"), answer("It failed."))
        result = tool_messages(upstream.requests[1].json)[0]["content"]
        self.assertIn("NameError", result)
        self.assertIn("undefined_name", result)
        self.assertEqual(reply.text, "It failed.")
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def b35_arguments_without_code_run_nothing_and_say_so(self):
        for arguments in ("not json", "[1]", '"text"', "{}", '{"code": 5}', '{"cod": "print(1)"}', ""):
            gateway, upstream, reply = self.ask(answer(calls=[("c", "code_interpreter", arguments)]), answer("sorry"))
            result = tool_messages(upstream.requests[1].json)[0]["content"]
            self.assertIn("[invalid call]", result, arguments)
            self.assertEqual(gateway.journal.lines(), [], arguments)
            self.assertEqual(reply.text, "sorry")

    def b44_a_setting_of_the_interceptor_wins_over_the_sandboxs(self):
        for timeout, ended in (("300ms", True), ("0s", False)):  # 0s: the sandbox's run_timeout
            upstream = self.upstream(code("slow"), answer("ok"))
            gateway = self.serve(upstream, rules=[{"when": "slow", "stdout": "done", "delay": "1s"}],
                                 interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "timeout": timeout}])
            self.assertEqual(chat(gateway, "x").text, "ok")
            self.assertEqual("[timed out]" in tool_messages(upstream.requests[1].json)[0]["content"], ended, timeout)

    def b45_every_legal_shape_of_an_answer_is_understood(self):
        call = {"id": "c1", "type": "function", "function": {"name": "code_interpreter", "arguments": '{"code": "print(7)"}'}}
        for message in ({"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "assistant", "tool_calls": [call]},
                        {"role": "assistant", "content": "", "tool_calls": [call]},
                        {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]},
                        {"content": None, "tool_calls": [{**call, "function": {"name": "code_interpreter",
                                                                              "arguments": {"code": "print(7)"}}}]}):
            turn = answer()
            turn["choices"][0]["message"] = message
            gateway, upstream, reply = self.ask(turn, answer("seven"))
            self.assertEqual(reply.text, "seven")
            self.assertIn("7", tool_messages(upstream.requests[1].json)[0]["content"])
            self.assertEqual(len(gateway.journal.of("run")), 1)

    def b46_calls_are_found_beside_reasoning_and_unknown_fields(self):
        turn = answer("text", calls=[("c", "code_interpreter", {"code": "print(1)"})], reasoning="r",
                      reasoning_details=[{"type": "x", "data": "y"}], audio=None)
        _, upstream, _ = self.ask(turn, answer("ok"))
        assistant = [m for m in upstream.requests[1].json["messages"] if m["role"] == "assistant"][0]
        self.assertEqual(assistant["reasoning_details"], [{"type": "x", "data": "y"}])
        self.assertEqual(assistant["content"], "text")

    def c042_a_call_counts_although_the_finish_reason_says_stop(self):
        gateway, _, reply = self.ask(answer(calls=[("c", "code_interpreter", {"code": "print(1)"})], finish="stop"),
                                     answer("ok"))
        self.assertEqual(reply.text, "ok")
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def c043_broken_arguments_are_told_to_the_model_and_the_history_stays_valid(self):
        broken = '{"code": "print(\'a\nb\')"'
        gateway, upstream, reply = self.ask(answer(calls=[("c1", "code_interpreter", broken)]), code("print(8)", "c2"),
                                            answer("mended"))
        self.assertEqual(reply.text, "mended")
        second = upstream.requests[1].json
        self.assertIn("[invalid call]", tool_messages(second)[0]["content"])
        for message in second["messages"]:
            for call in message.get("tool_calls", []):
                self.assertIsInstance(json.loads(call["function"]["arguments"]), dict, "valid in the history")
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def c045_markdown_fences_around_the_code_do_not_hurt(self):
        fenced = "```python\nprint(2)\n```"
        gateway, upstream, _ = self.ask(code(fenced), answer("ok"))
        self.assertIn("2", tool_messages(upstream.requests[1].json)[0]["content"])
        self.assertNotIn("SyntaxError", tool_messages(upstream.requests[1].json)[0]["content"])
        gateway, upstream, _ = self.ask(answer(calls=[("c", "code_interpreter", '```json\n{"code":"print(1)"}\n```')]),
                                        answer("ok"))
        result = tool_messages(upstream.requests[1].json)[0]["content"]
        self.assertTrue("[invalid call]" in result or result.strip() == "1", result)
        gateway, upstream, _ = self.ask(code('print("a```b")'), answer("ok"))
        self.assertIn("a```b", tool_messages(upstream.requests[1].json)[0]["content"])

    def c056_variables_live_through_the_request(self):
        _, upstream, _ = self.ask(code("df = 6", "a"), code("print(df)", "b"), answer("6"))
        self.assertEqual(tool_messages(upstream.requests[2].json)[1]["content"].strip(), "6")

    def c063_calls_of_one_turn_run_in_their_order(self):
        calls = [(f"call_{c}", "code_interpreter", {"code": source}) for c, source in
                 zip("abcd", ("v = 1", "v += 1", "v += 1", "print(v)"))]
        gateway, upstream, _ = self.ask(answer(calls=calls), answer("3"), session="s")
        results = tool_messages(upstream.requests[1].json)
        self.assertEqual([m["tool_call_id"] for m in results], ["call_a", "call_b", "call_c", "call_d"])
        self.assertEqual(results[3]["content"].strip(), "3")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def c083_output_over_the_cap_is_cut_with_a_mark(self):
        rules = [{"when": "big", "stdout": "0123456789" * 6500}]
        _, upstream, _ = self.ask(code("big"), answer("ok"), rules=rules)
        result = tool_messages(upstream.requests[1].json)[0]["content"]
        self.assertLess(len(result), 17 * 1024)
        self.assertRegex(result, r"\d{5}", "the mark says how much was cut")
        self.assertTrue(result.startswith("0123456789"), "the head is kept")
        self.assertTrue(result.rstrip().endswith("0123456789"), "the tail is kept")

    def test_a_reply_cut_by_the_token_limit_runs_nothing(self):
        gateway, upstream, reply = self.ask(answer("begun", calls=[("c", "code_interpreter", '{"code": "pri')],
                                                   finish="length"))
        self.assertEqual(reply.finish, "length")
        self.assertEqual(len(upstream.requests), 1)
        self.assertEqual(gateway.journal.lines(), [])
        self.assertNotIn("tool_calls", reply.json["choices"][0]["message"])

    def test_before_a_run_the_upstreams_status_and_message_stay(self):
        error = {"error": {"message": "slow down", "type": "rate_limit", "param": "x", "code": "rate_limit_exceeded"}}
        _, upstream, reply = self.ask(Status(429, error, [("Retry-After", "60")]), status=429)
        self.assertEqual(reply.error["message"], "slow down")
        self.assertEqual(reply.error["code"], "rate_limit_exceeded")
        self.assertEqual(reply.get("retry-after"), "60")
        self.assertEqual(len(upstream.requests), 1, "so long a wait is the client's to decide")

    def test_a_turn_that_fails_for_the_moment_is_tried_once_more(self):
        for first in (Status(429, {"error": {"message": "busy"}}, [("Retry-After", "0")]), Status(500), Status(503),
                      Status(408), Bytes(b"")):
            gateway, upstream, reply = self.ask(first, code("print(1)"), answer("ok"))
            self.assertEqual(reply.text, "ok")
            self.assertEqual(len(upstream.requests), 3)
            self.assertEqual(upstream.requests[0].body, upstream.requests[1].body)
            self.assertEqual(gateway.wait_event("upstream_retry")["turn"], "1")
        gateway, upstream, reply = self.ask(code("print(1)"), Status(500), answer("ok"))
        self.assertEqual((reply.text, len(gateway.journal.of("run"))), ("ok", 1), "the code is not run again")

    def test_what_will_not_pass_by_itself_is_not_tried_again(self):
        for status in (400, 403, 404, 422):
            _, upstream, reply = self.ask(Status(status, {"error": {"message": "no"}}), status=status)
            self.assertEqual((reply.error["message"], len(upstream.requests)), ("no", 1))

    def test_after_a_run_a_failure_is_one_that_clients_do_not_repeat(self):
        for status in (429, 500, 503):
            gateway, _, reply = self.ask(code("print(1)"), *[Status(status, {"error": {"message": "later"}})] * 2, status=424)
            self.assertEqual(reply.get("x-should-retry"), "false")
            self.assertEqual(reply.error["code"], "failed_after_run")
            self.assertEqual(reply.error["message"], "later")
            line = gateway.wait_event("request")
            self.assertEqual(line["status"], "424")
            self.assertEqual(line["cause"], f"the upstream answered {status}")

    def test_an_error_without_a_message_is_told_by_its_status(self):
        _, _, reply = self.ask(*[Status(503, b"<html>busy</html>")] * 2, status=503)
        self.assertEqual(reply.error["message"], "The model server answered with status 503.")

    def test_a_request_that_takes_too_long_ends_and_says_so(self):
        gateway, _, reply = self.ask(code("slow"), rules=[{"when": "slow", "delay": "1h"}], status=424,
                                     sections={"server": {"request_timeout": "1s"}})
        self.assertEqual((reply.error["message"], reply.error["code"]), ("The request took too long.", "failed_after_run"))
        self.assertEqual(gateway.wait_event("request")["error"], "TIMEOUT")

    def test_the_clients_own_timeout_counts_if_it_is_shorter(self):
        upstream = self.upstream(code("slow"))
        gateway = self.serve(upstream, rules=[{"when": "slow", "delay": "1h"}])
        reply = chat(gateway, "x", headers={"X-Stainless-Timeout": "11"})  # less 10 s for the answer's way
        self.assertEqual((reply.status, reply.error["message"]), (424, "The request took too long."))

    def test_an_answer_over_the_limit_is_refused_and_not_cut(self):
        big = "a" * (20 << 20)
        _, _, reply = self.ask(answer(big, calls=[("c", "code_interpreter", {"code": "print(1)"})]), answer(big),
                               status=424)
        self.assertEqual(reply.error["message"], "The answer is too large for this gateway.")

    def test_the_operators_refused_key_is_not_the_clients_401(self):
        _, _, reply = self.ask(Status(401, {"error": {"message": "bad key sk-oper…"}}), status=502)
        self.assertEqual(reply.error["message"], "The model server refused the gateway's own credentials.")
        self.assertNotIn(b"sk-oper", reply.body)

    def test_an_answer_that_is_no_answer_is_502(self):
        for body in (b"<html>", b"[1,2]", b'{"choices": "no"}', b"{", b""):
            _, _, reply = self.ask(Status(200, body), status=502)
            self.assertIn("error", reply.json, body)

    def test_a_failing_sandbox_is_a_result_for_the_model(self):
        # What stands behind the label is for anybody: a provider's own words are the operator's.
        not_made = "[sandbox unavailable] The sandbox could not be made."
        for sandbox, told in (({"create_fault": "refuse"}, not_made), ({"create_fault": "garbage"}, not_made),
                              ({"create_fault": "fail_after_handle"}, not_made),
                              ({"create_fault": "limit"},
                               "[sandbox unavailable] All sandboxes are in use, and none became free in time.")):
            upstream = self.upstream(code("print(1)"), answer("no sandbox"))
            gateway = self.serve(upstream, sandbox=sandbox)
            self.assertEqual(chat(gateway, "x").text, "no sandbox")
            self.assertEqual(tool_messages(upstream.requests[1].json)[0]["content"].strip(), told)
            line = gateway.wait_event("service_failed")
            self.assertEqual(line["operation"], "create")

    def test_faults_of_a_run_are_results_for_the_model(self):
        for fault, label in (("die", "[sandbox"), ("cut", "[sandbox"), ("refuse", "[sandbox"), ("flood", "[output limit]"),
                             ("hang", "[timed out]"), ("limit", "[sandbox unavailable] The sandbox is at its limit.")):
            upstream = self.upstream(code("bad"), answer("told"))
            limit = {"run_timeout": "300ms"} if fault == "hang" else {}
            gateway = self.serve(upstream, rules=[{"when": "bad", "fault": fault}], sandbox=limit)
            self.assertEqual(chat(gateway, "x").text, "told", fault)
            self.assertIn(label, tool_messages(upstream.requests[1].json)[0]["content"], fault)
            self.assertEqual(gateway.wait_event("service_failed")["operation"], "run")

    def test_what_is_no_chat_request_is_refused_with_its_field(self):
        upstream = self.upstream()
        gateway = self.serve(upstream)
        for change, param in (({"messages": "x"}, "messages"), ({"messages": None}, "messages"), ({"tools": "x"}, None)):
            reply = post(gateway, "/v1/chat/completions", {**body_of("x"), **change})
            if param is not None:
                self.assertEqual((reply.status, reply.error["param"]), (400, param), reply.body)
        self.assertEqual([r for r in upstream.requests if b"code_interpreter" in r.body and b'"function"' in r.body], [])

    def test_duplicate_members_are_refused(self):
        upstream = self.upstream()
        gateway = self.serve(upstream)
        for raw in ('{"model":"mock","model":"mock","messages":[]}',
                    '{"model":"mock","mod\\u0065l":"x","messages":[]}',
                    '{"model":"mock","messages":[],"metadata":{"a":"1","a":"2"}}',
                    '{"model":"mock","messages":[],"tools":[{"type":"code_interpreter","type":"function"}]}'):
            reply = post(gateway, "/v1/chat/completions", raw)
            self.assertEqual(reply.status, 400, raw)
        self.assertEqual(upstream.requests, [])


if __name__ == "__main__":
    main()
