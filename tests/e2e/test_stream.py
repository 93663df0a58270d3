"""The loop on chat, streaming: text goes to the client as it comes, calls of ours never do, and what is odd in upstreams'
streams is understood. The bytes that the client gets are compared with what the same answer is without a stream."""
import json
import threading

from client import TOOL, Wire, body_of, chat, parse_events, post, text_of
from harness import E2E, main
from upstream import Bytes, Status, Stream, always, answer, chunk, code, events, streamed

FUNCTION = {"type": "function", "function": {"name": "get_stock", "parameters": {"type": "object"}}}


def code_call(source, call_id="call_1"):
    return [(call_id, "code_interpreter", {"code": source})]


def tool_messages(body):
    return [m for m in body["messages"] if m["role"] == "tool"]


class StreamTest(E2E):
    def ask(self, *turns, rules=(), options=None, **request):
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream, rules=rules, **(options or {}))
        reply = chat(gateway, "x", stream=True, **request)
        return gateway, upstream, reply

    def check_form(self, reply):
        """What holds for every stream of chat, whatever is in it."""
        self.assertEqual(reply.status, 200, reply.body)
        self.assertTrue(reply.get("content-type").startswith("text/event-stream"), reply.get("content-type"))
        found = reply.events
        self.assertEqual(found[-1], "[DONE]")
        self.assertEqual(found.count("[DONE]"), 1)
        chunks = found[:-1]
        with_choices = [c for c in chunks if c["choices"]]
        self.assertEqual(len({c["id"] for c in chunks}), 1)
        self.assertEqual(len({c["created"] for c in chunks}), 1)
        self.assertEqual({c["object"] for c in chunks}, {"chat.completion.chunk"})
        roles = [c["choices"][0]["delta"]["role"] for c in with_choices if "role" in c["choices"][0]["delta"]]
        self.assertEqual(roles, ["assistant"], "the role comes once")
        finishes = [c["choices"][0]["finish_reason"] for c in with_choices if c["choices"][0].get("finish_reason")]
        self.assertEqual(len(finishes), 1, "one finish reason")
        self.assertIsNotNone(with_choices[-1]["choices"][0]["finish_reason"], "and it is the last")
        self.assertNotIn(b'"code_interpreter"', reply.body)
        return finishes[0]

    def c001_both_variants_stream(self):
        _, _, reply = self.ask(streamed("hi"))
        self.assertEqual((self.check_form(reply), reply.stream_text), ("stop", "hi"))
        gateway, upstream, reply = self.ask(streamed(calls=code_call("print(6 * 7)")), streamed("It is 42."))
        self.assertEqual((self.check_form(reply), reply.stream_text), ("stop", "It is 42."))
        self.assertEqual(tool_messages(upstream.requests[1].json)[0]["content"].strip(), "42")
        self.assertTrue(all(r.json["stream"] for r in upstream.requests), "every turn streams")

    def b17_the_client_gets_its_stream_however_the_upstream_answers(self):
        _, _, reply = self.ask(code("print(1)"), answer("plain JSON"))
        self.assertEqual((self.check_form(reply), reply.stream_text), ("stop", "plain JSON"))
        upstream = self.upstream(streamed(calls=code_call("print(1)")), streamed("streamed"))
        reply = chat(self.serve(upstream), "x")
        self.assertEqual(reply.text, "streamed", "and the other way round")
        self.assertNotIn("stream", upstream.requests[0].json)

    def b18_an_upstream_that_is_called_without_stream_gets_no_stream_options(self):
        options = {"upstream_options": {"stream": "replay"}}
        _, upstream, reply = self.ask(code("print(1)"), answer("told", usage=(3, 4)), options=options,
                                      stream_options={"include_usage": True})
        self.assertEqual((self.check_form(reply), reply.stream_text), ("stop", "told"))
        for request in upstream.requests:
            self.assertFalse(request.json.get("stream"))
            self.assertNotIn("stream_options", request.json)
        usage = [e["usage"] for e in reply.events[:-1] if e.get("usage")]
        self.assertEqual([u["total_tokens"] for u in usage], [22], "honoured towards the client, summed")

    def test_usage_is_always_asked_for_and_shown_only_to_those_who_asked(self):
        turns = [streamed(calls=code_call("print(1)"), usage=(10, 2)), streamed("ok", usage=(20, 3))]
        _, upstream, reply = self.ask(*turns)
        self.assertTrue(all(r.json["stream_options"] == {"include_usage": True} for r in upstream.requests))
        self.assertNotIn(b'"usage":{', reply.body.replace(b" ", b""))
        _, _, reply = self.ask(*turns, stream_options={"include_usage": True})
        last = reply.events[-2]
        self.assertEqual((last["choices"], last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]), ([], 30, 5))

    def test_stream_and_whole_answer_carry_the_same_text(self):
        turns = [streamed("First.", calls=code_call("print(1)")), streamed("Second — ünïcode 🌦.")]
        _, _, reply = self.ask(*turns)
        upstream = self.upstream(*turns)
        whole = chat(self.serve(upstream), "x")
        self.assertEqual(reply.stream_text, whole.text)
        self.assertEqual(whole.text, "First.\n\nSecond — ünïcode 🌦.")

    def test_text_goes_to_the_client_before_the_turn_is_over(self):
        go_on = threading.Event()

        def turn(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": ""}), chunk({"content": "early"}), end=False))
            go_on.wait(60)
            connection.chunk(events(chunk({"content": " late"}), chunk({}, "stop")))
            connection.end()
            return True
        gateway = self.serve(self.upstream(turn))
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True))
            response = wire.stream()
            seen = b""
            while b"early" not in seen:
                seen += response.readline()
            self.assertNotIn(b"late", seen)
            go_on.set()
            seen += response.read()
            self.assertEqual(text_of(parse_events(seen)), "early late")

    def c011_a_running_tool_keeps_the_stream_alive_with_comments(self):
        rules = [{"when": "slow", "stdout": "done", "delay": "1s"}]
        _, _, reply = self.ask(streamed(calls=code_call("slow")), streamed("ok"), rules=rules,
                               options={"loop": {"keep_alive": "100ms"}})
        self.assertEqual(reply.stream_text, "ok")
        blocks = [b for b in reply.body.split(b"\n\n") if b]
        comments = [b for b in blocks if b.startswith(b":")]
        self.assertGreaterEqual(len(comments), 2)
        self.assertTrue(all(b.startswith((b":", b"data:")) for b in blocks), "none in the middle of an event")
        self.assertEqual(blocks[-1], b"data: [DONE]", "none after the end")

    def c040_calls_without_index_stay_apart(self):
        one_chunk = chunk({"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "code_interpreter", "arguments": '{"code": "print(1)"}'}},
            {"id": "b", "type": "function", "function": {"name": "code_interpreter", "arguments": '{"code": "print(2)"}'}}]})
        gateway, upstream, reply = self.ask(Stream(events(one_chunk, chunk({}, "tool_calls"))), streamed("ok"))
        results = tool_messages(upstream.requests[1].json)
        self.assertEqual([(m["tool_call_id"], m["content"].strip()) for m in results], [("a", "1"), ("b", "2")])
        self.assertEqual(reply.stream_text, "ok")

    def c041_a_new_id_is_a_new_call_whatever_its_index(self):
        def piece(index, arguments, **more):
            return chunk({"tool_calls": [{"index": index, **more, "function": {"arguments": arguments, **(
                {"name": "code_interpreter"} if more else {})}}]})
        stream = Stream(events(piece(0, '{"code":"print(1)"}', id="a", type="function"),
                               piece(0, '{"co', id="b", type="function"), piece(1, 'de":"print(2)"}'),
                               chunk({}, "tool_calls")))
        gateway, upstream, _ = self.ask(stream, streamed("ok"))
        results = tool_messages(upstream.requests[1].json)
        self.assertEqual([(m["tool_call_id"], m["content"].strip()) for m in results], [("a", "1"), ("b", "2")])

    def c042_finish_reason_stop_with_calls_goes_on(self):
        gateway, _, reply = self.ask(streamed(calls=code_call("print(1)"), finish="stop"), streamed("ok"))
        self.assertEqual(reply.stream_text, "ok")
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_a_call_whose_name_comes_in_pieces_is_recognised(self):
        def piece(**function):
            return chunk({"tool_calls": [{"index": 0, "function": function}]})
        first = chunk({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "code_"}}]})
        stream = Stream(events(first, piece(name="interpreter"), piece(arguments='{"code": '),
                               piece(arguments='"print(5)"}'), chunk({}, "tool_calls")))
        gateway, upstream, reply = self.ask(stream, streamed("ok"))
        self.assertEqual(tool_messages(upstream.requests[1].json)[0]["content"].strip(), "5")
        self.check_form(reply)

    def test_a_clients_call_is_released_under_the_next_free_index(self):
        calls = code_call("print(1)", "a") + [("b", "get_stock", {"part": "A-7"})]
        gateway, _, reply = self.ask(streamed("Both.", calls=calls), tools=[TOOL, FUNCTION])
        self.assertEqual(self.check_form(reply), "tool_calls")
        pieces = [call for event in reply.events[:-1] if event["choices"]
                  for call in event["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual({p["index"] for p in pieces}, {0})
        self.assertEqual("".join(p["function"].get("name", "") for p in pieces), "get_stock")
        self.assertEqual(json.loads("".join(p["function"].get("arguments", "") for p in pieces)), {"part": "A-7"})
        self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_any_chunking_of_the_upstreams_bytes_gives_the_same(self):
        first, last = streamed("Über", calls=code_call("print('ü')")).pieces[0], streamed("fin 🌦").pieces[0]
        for size in (1, 2, 7, 64):
            cut = [Stream(None, [data[i:i + size] for i in range(0, len(data), size)]) for data in (first, last)]
            _, upstream, reply = self.ask(*cut)
            self.assertEqual(reply.stream_text, "Über\n\nfin 🌦", size)
            self.assertEqual(tool_messages(upstream.requests[1].json)[0]["content"].strip(), "ü")

    def test_line_ends_comments_and_odd_events_do_not_matter(self):
        data = events(b": hello\n\n", chunk({"role": "assistant"}), b": x\n\n",
                      chunk({"content": "ok"}), chunk({}, "stop")).replace(b"\n", b"\r\n")
        _, _, reply = self.ask(Stream(data))
        self.assertEqual(reply.stream_text, "ok")

    def test_a_cut_stream_runs_nothing(self):
        whole = streamed(calls=code_call("print(1)")).pieces[0]
        cut = whole[:whole.rindex(b'"finish_reason": "tool_calls"')]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        gateway, _, reply = self.ask(Bytes(head + b"%x\r\n%s\r\n" % (len(cut), cut)))
        self.assertEqual(gateway.journal.lines(), [])
        self.assertIn(b'"error"', reply.body)

    def test_an_upstream_that_goes_on_behind_its_end_mark_keeps_nobody_waiting(self):
        def stays_open(connection):
            connection.begin_stream()
            connection.chunk(streamed("whole").pieces[0])
            self.assertTrue(connection.wait_closed(), "the gateway ends the transfer")

        for stream in (True, False):
            upstream = self.upstream(stays_open)
            gateway = self.serve(upstream, upstream_options={"silence_timeout": "1h"})
            reply = post(gateway, "/v1/chat/completions", body_of("x", tools=[TOOL], stream=stream))
            self.assertEqual((reply.status, reply.stream_text if stream else reply.text), (200, "whole"))

    def test_an_error_before_the_first_event_keeps_its_status(self):
        _, _, reply = self.ask(Status(429, {"error": {"message": "slow down", "code": "rate"}}, [("Retry-After", "60")]))
        self.assertEqual((reply.status, reply.error["message"], reply.get("retry-after")), (429, "slow down", "60"))
        self.assertTrue(reply.get("content-type").startswith("application/json"))

    def test_an_error_event_at_the_start_keeps_its_status(self):
        _, _, reply = self.ask(*[Stream(b'data: {"error":{"message":"overloaded","type":"server_error","code":503}}\n\n')] * 2)
        self.assertGreaterEqual(reply.status, 500)
        self.assertIn("overloaded", reply.error["message"])

    def test_a_failure_after_text_ends_in_an_error_event_and_the_end_mark(self):
        _, _, reply = self.ask(streamed("Text.", calls=code_call("print(1)")), *[Status(500, {"error": {"message": "broke"}})] * 2)
        self.assertEqual(reply.status, 200)
        found = reply.events
        self.assertEqual(found[-1], "[DONE]")
        self.assertEqual(found[-2]["error"]["message"], "broke")
        self.assertEqual(found[-2]["error"]["code"], "failed_after_run")

    def test_a_failure_after_a_silent_run_has_a_status_that_is_not_repeated(self):
        _, _, reply = self.ask(code("print(1)"), *[Status(500, {"error": {"message": "broke"}})] * 2)
        if reply.status == 200:  # a role or a comment had gone already
            self.assertEqual(reply.events[-2]["error"]["code"], "failed_after_run")
        else:
            self.assertEqual((reply.status, reply.get("x-should-retry")), (424, "false"))

    def test_a_json_format_turn_with_a_call_keeps_its_text_back(self):
        options = {"response_format": {"type": "json_object"}}
        _, _, reply = self.ask(streamed("thinking aloud", calls=code_call("print(1)")), streamed('{"a": 1}'), **options)
        self.assertEqual(reply.stream_text, '{"a": 1}')

    def test_chunks_of_text_are_spliced_not_reprinted(self):
        odd = (b'data: {"id":"chatcmpl-up","object":"chat.completion.chunk","created":1764400000,"model":"m","choices":'
               b'[{"index":0,"delta":{"content":"\\u0041\\/x"},"logprobs":{"v":1.0,"big":9007199254740993,"e":1e400},'
               b'"finish_reason":null}],"vendor":{"z":1,"a":2}}\n\n')
        _, _, reply = self.ask(Stream(events(chunk({"role": "assistant"}), odd, chunk({}, "stop"))))
        self.assertIn(b'"content":"\\u0041\\/x"', reply.body)
        self.assertIn(b'"logprobs":{"v":1.0,"big":9007199254740993,"e":1e400}', reply.body)
        self.assertIn(b'"vendor":{"z":1,"a":2}', reply.body)

    def test_a_slow_client_gets_everything(self):
        text = "0123456789abcdef" * 4096
        pieces = [chunk({"content": text}) for _ in range(64)]
        gateway = self.serve(self.upstream(Stream(events(*pieces, chunk({}, "stop")))))
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True))
            response = wire.stream()
            self.assertEqual(len(text_of(parse_events(response.read()))), 64 * len(text))


if __name__ == "__main__":
    main()
