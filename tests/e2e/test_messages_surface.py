"""Messages with the real binary: what this form alone has. test_messages_api.py shows its answers, test_scenarios.py what all forms
share, test_containers.py containers; the wire itself is held by the unit tests (test_messages_*.c)."""
import datetime
import json

import strict_messages
from client import encode, post
from forms import MESSAGES as FORM
from harness import E2E, main
from messages_upstream import answer, code, events, events_of, results_of, streamed, tools_of
from upstream import Stream

PYTHON, SHELL = ["code_execution_20250522"], ["code_execution_20250825", "code_execution_20260120", "code_execution_20991231"]
THINKING = {"type": "thinking", "thinking": "Hm — ünï.", "signature": "sig/1+="}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_vendor", "name": "web_search", "input": {"query": "musl"}}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_vendor", "content": [
    {"type": "web_search_result", "title": "A", "url": "https://a.test/x", "encrypted_content": "e", "page_age": None}]}


def sent(message, stream):
    """A message as the upstream says it."""
    return Stream(events(*events_of(message))) if stream else message


def with_content(content, stop="end_turn"):
    return {**answer("x"), "content": content, "stop_reason": stop}


def call(source, call_id="toolu_1", name="code_interpreter"):
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"code": source}}


class MessagesSurface(E2E):
    def ask(self, gateway, stream=False, messages=({"role": "user", "content": "x"},), **more):
        reply = post(gateway, FORM.path, {**FORM.body(stream), "messages": list(messages), **more})
        self.assertEqual(reply.status, 200, reply.body)
        return strict_messages.check(reply.body) if stream else strict_messages.check_message(reply.json)

    def c034_a_pause_is_passed_on_and_resumed(self):  # C034
        """Of a server that runs tools of its own: what it has said goes back as it came, and its end is never made up."""
        for stream in (False, True):
            paused = with_content([{"type": "text", "text": "I look."}, SEARCH], "pause_turn")
            after = with_content([RESULT, {"type": "text", "text": "Found."}])
            upstream = self.upstream(sent(paused, stream), sent(after, stream))
            gateway = self.serve(upstream)
            first = self.ask(gateway, stream)
            self.assertEqual((first["stop_reason"], first["content"]), ("pause_turn", paused["content"]))
            resumed = [{"role": "user", "content": "x"}, {"role": "assistant", "content": first["content"]}]
            self.assertEqual(self.ask(gateway, stream, resumed)["content"], after["content"])
            self.assertEqual(upstream.requests[1].json["messages"], resumed)
            self.assertIn(encode(resumed), upstream.requests[1].body, "byte for byte")
            self.assertEqual(gateway.journal.lines(), [])

    def c034_a_pause_after_a_run_is_passed_on(self):  # C034
        for stream in (False, True):
            paused = with_content([SEARCH], "pause_turn")
            upstream = self.upstream(sent(with_content([call("print(1)")], "tool_use"), stream), sent(paused, stream))
            message = self.ask(self.serve(upstream), stream)
            self.assertEqual([b["type"] for b in message["content"]],
                             ["server_tool_use", "code_execution_tool_result", "server_tool_use"])
            self.assertEqual((message["stop_reason"], message["content"][2]), ("pause_turn", SEARCH))
            self.assertEqual((message["usage"]["input_tokens"], message["usage"]["output_tokens"]), (20, 10))

    def c035_the_turn_goes_back_whole_and_in_its_order(self):  # C035
        for stream in (False, True):
            turn = [THINKING, REDACTED, {"type": "text", "text": "Let me look."}, call("print(1)")]
            last = [THINKING, {"type": "text", "text": "One."}]
            upstream = self.upstream(sent(with_content(turn, "tool_use"), stream), sent(with_content(last), stream),
                                     sent(with_content([{"type": "text", "text": "Two."}]), stream))
            gateway = self.serve(upstream)
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
            message = self.ask(gateway, stream, **thinking)
            body = upstream.requests[1].json
            self.assertEqual(body["messages"][1], {"role": "assistant", "content": turn})
            self.assertEqual(body["thinking"], thinking["thinking"])
            if not stream:
                for block in turn:
                    self.assertIn(encode(block), upstream.requests[1].body, "byte for byte")
            self.assertEqual([b["type"] for b in message["content"]],
                             ["thinking", "redacted_thinking", "text", "server_tool_use", "code_execution_tool_result",
                              "thinking", "text"])
            history = [{"role": "user", "content": "x"}, {"role": "assistant", "content": message["content"]},
                       {"role": "user", "content": "more"}]
            self.ask(gateway, stream, history, **thinking)
            again = upstream.requests[2].json["messages"]
            self.assertEqual([m["role"] for m in again], ["user", "assistant", "user", "assistant", "user"])
            self.assertEqual(again[1]["content"][:3], turn[:3])
            self.assertEqual((again[1]["content"][3]["name"], again[1]["content"][3]["input"]),
                             ("code_interpreter", {"code": "print(1)"}))
            self.assertEqual(again[2]["content"][0]["tool_use_id"], again[1]["content"][3]["id"])
            self.assertEqual(again[3]["content"], last)

    def c024_every_version_is_recognised(self):  # C024
        for names, types in ((["code_interpreter"], PYTHON), (["bash_code_execution", "text_editor_code_execution"], SHELL)):
            for version in types:
                upstream = self.upstream(answer("ok"))
                self.ask(self.serve(upstream), tools=[{"type": version, "name": "code_execution"}])
                self.assertEqual(tools_of(upstream.requests[0].json), names, version)
                self.assertEqual([set(tool) & {"type"} for tool in upstream.requests[0].json["tools"]], [set()] * len(names))

    def c024_versions_that_never_were_are_refused(self):  # C024
        upstream = self.upstream()
        gateway = self.serve(upstream)
        for version in ("", "_", "_latest", "_2025", "_20240101", "_20250523", "_20250800", "_20251332", "_202508250", "_20250825x",
                        "_-0250825", "_20250825\0", "_" + "9" * 5000, "_２０２５０８２５"):
            reply = post(gateway, FORM.path, {**FORM.body(False), "tools": [{"type": "code_execution" + version, "name": "x"}]})
            self.assertEqual((reply.status, reply.error["type"]), (400, "invalid_request_error"), version)
            self.assertTrue(reply.error["message"].startswith("tools[0].type: unknown tool type 'code_execution"), reply.body)
            self.assertTrue(reply.error["message"].endswith("there are code_execution_20250522 and code_execution_20250825"))
            self.assertLess(len(reply.body), 500)
        self.assertEqual(upstream.requests, [])

    def odd(self, change):
        """A streamed turn of two calls, its events changed, and what came of it."""
        whole = answer(calls=[("toolu_a", "code_interpreter", {"code": "print(1)"}),
                              ("toolu_b", "code_interpreter", {"code": "print(2)"})])
        changed = [change(json.loads(json.dumps(event))) for event in events_of(whole)]
        upstream = self.upstream(Stream(events(*[e for e in changed if e is not None])), streamed("ok"))
        gateway = self.serve(upstream)
        message = self.ask(gateway, True)
        self.assertEqual([text for _, text in results_of(upstream.requests[1].json)], ["1", "2"])
        self.assertEqual([b["input"]["code"] for b in message["content"] if b["type"] == "server_tool_use"],
                         ["print(1)", "print(2)"])
        self.assertEqual(len(gateway.journal.of("run")), 2)

    def c040_blocks_without_indexes_stay_apart(self):  # C040
        self.odd(lambda event: {k: v for k, v in event.items() if k != "index"})

    def c041_blocks_under_one_index_stay_apart(self):  # C041
        self.odd(lambda event: {**event, "index": 0} if "index" in event else event)

    def c042_a_stop_reason_that_does_not_tell_of_calls_changes_nothing(self):  # C042
        for reason in ("end_turn", "stop_sequence", None, "odd"):
            self.odd(lambda event, r=reason: {**event, "delta": {"stop_reason": r}} if event["type"] == "message_delta" else event)

    def test_blocks_that_are_not_stopped_run(self):
        self.odd(lambda event: None if event["type"] == "content_block_stop" else event)

    def c039_interleaved_calls_of_the_client_keep_their_arguments(self):  # C039
        calls = [("toolu_f", "f", {"a": 1, "b": [2, 3]}), ("toolu_g", "get_stock", {"part": "A-7"})]
        whole = list(events_of(answer(calls=calls)))
        per_block = [[e for e in whole if e.get("index") == i] for i in (0, 1)]
        mixed = [e for pair in zip(*(block[1:-1] for block in per_block)) for e in pair]
        used = len(mixed) // 2
        rest = [e for block in per_block for e in block[1 + used:-1]]
        stream = [whole[0], per_block[0][0], per_block[1][0], *mixed, *rest, per_block[1][-1], per_block[0][-1], *whole[-2:]]
        upstream = self.upstream(Stream(events(*stream)))
        functions = [{"name": "f", "input_schema": {"type": "object"}}]
        body = FORM.body(True, functions=True)
        message = self.ask(self.serve(upstream), True, tools=[*body["tools"], *functions])
        self.assertEqual([(b["id"], b["name"], b["input"]) for b in message["content"]], calls)

    def test_when_a_container_expires_is_told(self):
        for stream in (False, True):
            gateway = self.serve(self.upstream(code("print(1)", name="code_interpreter"), answer("ok")), sandbox={"keep": "5m"})
            container = self.ask(gateway, stream)["container"]
            expires = datetime.datetime.fromisoformat(container["expires_at"].replace("Z", "+00:00"))
            left = (expires - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
            self.assertGreater(left, 200)
            self.assertLessEqual(left, 301)


if __name__ == "__main__":
    main()
