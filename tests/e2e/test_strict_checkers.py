"""The strict readers of event streams themselves: they take every good example, and complain about each thing that is taken
away, put in, moved or changed, one by one. No gateway is needed."""
import copy
import itertools
import json
import unittest

import messages_upstream
import responses_upstream
import strict_messages
import strict_responses
from harness import ROOT, Loader
from strict import Complaint, read_events

DATA = ROOT / "tests" / "data" / "wire"
# The two one-sided forms of an error, which the gateway must not use.
ONE_SIDED = ("responses-stream-error-flat.sse", "responses-stream-error-nested.sse")
# What is the client's own, or the upstream's, and is handed on unread.
UNREAD = {"tools", "text", "reasoning", "metadata", "tool_choice", "input", "cache_creation"}
# What may be missing (wire.md 8, and the fields that the examples have and no client asks for).
OPTIONAL = {
    "responses": {"function_call_arguments.done.name", "action.queries", "action.sources"},
    "messages": {"caller", "container", "stop_details", "service_tier", "cache_creation", "cache_creation_input_tokens",
                 "cache_read_input_tokens", "server_tool_use", "skills", "message_delta.usage.input_tokens",
                 "server_tool_use.web_fetch_requests", "content_block.content.content.citations"}}
TEXT_EVENTS = {"response.output_text.delta", "response.output_text.done"}
# Events without which nothing is lost; response.failed says what `error` says.
SPARE_EVENTS = {"responses": {"response.in_progress", "error"}, "messages": {"ping"}}


def examples(surface):
    return [path for path in sorted(DATA.glob(f"{surface}-stream-*.sse")) if path.name not in ONE_SIDED]


def numbered(events):
    """Numbers again, so that it is not the numbers that are complained about."""
    for i, event in enumerate(events):
        if "sequence_number" in event:
            event["sequence_number"] = i
    return events


def objects(value, path=()):
    """(path, object) of every object that is read."""
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            if name not in UNREAD:
                yield from objects(inner, (*path, name))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from objects(inner, (*path, i))


def inside(value, path):
    for step in path:
        value = value[step]
    return value


def delta_type(event):
    delta = event.get("delta")
    return delta.get("type") if isinstance(delta, dict) else None


def says_nothing(event):
    return event.get("delta") in ("", {"type": "input_json_delta", "partial_json": ""})


def may_change_places(one, two):
    kinds = {one["type"], two["type"]}
    return ("ping" in kinds or says_nothing(one) or says_nothing(two) or one.get("delta") == two.get("delta") is not None
            # items may overlap, and a citation may come at any time within its part
            or (one["type"], two["type"]) == ("response.output_item.done", "response.output_item.added")
            or "response.output_text.annotation.added" in kinds and bool(kinds & TEXT_EVENTS)
            or {delta_type(one), delta_type(two)} == {"citations_delta", "text_delta"})


def of(events, kind, which=0):
    """The event of that type, the first or a later one."""
    return [event for event in events if event["type"] == kind][which]


class Checkers(unittest.TestCase):
    def complains(self, surface, events, what):
        module = {"responses": strict_responses, "messages": strict_messages}[surface]
        with self.assertRaises(Complaint, msg=what):
            module.check(events)

    @staticmethod
    def each(surface):
        for path in examples(surface):
            yield path.name, read_events(path.read_bytes())

    # ---- what is right ----

    def test_every_good_stream_is_taken_and_gives_its_final_object(self):
        for name, events in self.each("responses"):
            self.assertEqual(strict_responses.check(events), events[-1]["response"], name)
        for name, events in self.each("messages"):
            final = strict_messages.check(events)
            whole = DATA / name.replace("-stream-", "-response-").replace(".sse", ".json")
            if whole.exists():
                message = json.loads(whole.read_text())
                if "container" not in events[-2]["delta"]:
                    message.pop("container", None)
                self.assertEqual(final["content"], message["content"], name)
                self.assertEqual(final["stop_reason"], message["stop_reason"], name)
        self.assertGreater(len(examples("responses")), 8)
        self.assertGreater(len(examples("messages")), 7)

    def test_every_good_answer_is_taken(self):
        for path in DATA.glob("*-response-*.json"):
            answer = json.loads(path.read_text())
            check = strict_responses.check_response if path.name.startswith("responses") else strict_messages.check_message
            self.assertEqual(check(answer), answer, path.name)

    def test_the_scripted_upstreams_stream_what_is_right(self):
        calls = [("call_a", "f", {"x": 1}), ("call_b", "g", {})]
        cite = {"type": "url_citation", "start_index": 0, "end_index": 2, "title": "t", "url": "https://example.org"}
        for options in ({"text": "Grüße"}, {"text": "Hi", "calls": calls}, {"calls": calls}, {"text": ""},
                        {"text": "cut", "incomplete": "max_output_tokens"}, {"reasoning": "hm", "encrypted": "x", "text": "Hi"},
                        {"text": "site", "annotations": [cite]}):
            whole = responses_upstream.answer(**options)
            self.assertEqual(strict_responses.check(responses_upstream.events(*responses_upstream.events_of(whole))), whole)
        failed = strict_responses.check(responses_upstream.events(*responses_upstream.failing(responses_upstream.answer("x"))))
        self.assertEqual(failed["error"]["message"], "The model failed.")
        for options in ({"text": "Grüße"}, {"text": "Hi", "calls": calls}, {"calls": calls}, {"thinking": "hm", "calls": calls},
                        {"text": "cut", "stop": "max_tokens"}):
            whole = messages_upstream.answer(**options)
            self.assertEqual(strict_messages.check(messages_upstream.events(*messages_upstream.events_of(whole))), whole)
        failed = strict_messages.check(messages_upstream.events(*messages_upstream.failing(messages_upstream.answer("x"))))
        self.assertEqual(failed["error"]["type"], "overloaded_error")

    # ---- each thing by itself, in every example ----

    def is_optional(self, surface, event, path, name):
        names = [str(step) for step in (event["type"].removeprefix("response."), *path, name) if not isinstance(step, int)]
        joined = ".".join(names)
        return any(joined == o or joined.endswith("." + o) for o in OPTIONAL[surface])

    def test_no_field_may_be_missing(self):
        for surface in ("responses", "messages"):
            removed = 0
            for name, events in self.each(surface):
                for i, event in enumerate(events):
                    for path, found in list(objects(event)):
                        for field in found:
                            if self.is_optional(surface, event, path, field):
                                continue
                            broken = copy.deepcopy(events)
                            del inside(broken[i], path)[field]
                            self.complains(surface, broken, f"{name}: event {i} {event['type']} without {path} {field}")
                            removed += 1
            self.assertGreater(removed, 300)

    def test_no_unknown_field_may_be_there(self):
        for surface in ("responses", "messages"):
            for name, events in self.each(surface):
                for i, event in enumerate(events):
                    for path, found in list(objects(event)):
                        if path and path[-1] in ("input_tokens_details", "output_tokens_details"):
                            continue  # they grow with the API
                        broken = copy.deepcopy(events)
                        inside(broken[i], path)["_sandgate"] = 1
                        self.complains(surface, broken, f"{name}: event {i} {event['type']} with one more in {path}")

    def shows(self, surface, events, final, what):
        """A complaint or, where a stream says nothing twice (pieces of a message's text), another final object."""
        module = {"responses": strict_responses, "messages": strict_messages}[surface]
        try:
            self.assertNotEqual(module.check(events), final, what)
            self.assertEqual(surface, "messages", what)
        except Complaint:
            pass

    def test_no_event_may_be_missing_or_come_twice(self):
        for surface, module in (("responses", strict_responses), ("messages", strict_messages)):
            for name, events in self.each(surface):
                final = module.check(events)
                for i, event in enumerate(events):
                    if event["type"] == "ping" or says_nothing(event):
                        continue
                    twice = numbered(copy.deepcopy(events[:i + 1] + events[i:]))
                    without = numbered(copy.deepcopy(events[:i] + events[i + 1:]))
                    is_failed = final.get("type") == "error" and event["type"] != "error"  # what came before does not matter
                    if not is_failed:
                        self.shows(surface, twice, final, f"{name}: twice {i} {event}")
                    if not is_failed and event["type"] not in SPARE_EVENTS[surface]:
                        self.shows(surface, without, final, f"{name}: without {i} {event}")

    def test_no_two_events_may_change_places(self):
        for surface, module in (("responses", strict_responses), ("messages", strict_messages)):
            for name, events in self.each(surface):
                final = module.check(events)
                for i, (one, two) in enumerate(itertools.pairwise(events)):
                    if may_change_places(one, two) or final.get("type") == "error":
                        continue
                    broken = numbered(copy.deepcopy(events[:i] + [two, one] + events[i + 2:]))
                    self.shows(surface, broken, final, f"{name}: {one['type']} and {two['type']} at {i} the other way round")

    def test_no_stream_may_end_early_or_go_on(self):
        for surface, module in (("responses", strict_responses), ("messages", strict_messages)):
            for name, events in self.each(surface):
                for i in range(len(events)):
                    self.complains(surface, events[:i], f"{name}: cut at {i}")
                for more in ({"type": "ping"}, {"type": "response.in_progress", "sequence_number": len(events), "response": {}}):
                    self.complains(surface, [*events, more], f"{name}: more behind the end")
                self.assertIsNotNone(module.check(events))

    def test_events_of_invented_types_are_complained_about(self):
        for surface in ("responses", "messages"):
            for name, events in self.each(surface):
                for i in range(1, len(events)):
                    made_up = {"type": "response.code_interpreter_call.failed", "sequence_number": i, "output_index": 0,
                               "item_id": "x"}
                    broken = numbered(copy.deepcopy(events[:i] + [made_up] + events[i:]))
                    self.complains(surface, broken, f"{name}: invented at {i}")

    # ---- what is there and wrong ----

    def changed(self, surface, example, change):
        """The example with a change: a function of its events."""
        events = read_events((DATA / f"{surface}-stream-{example}.sse").read_bytes())
        change(events)
        return events

    def test_what_responses_must_not_say(self):
        run, web, item = "code-interpreter", "web-search", "response.output_item"

        def cite(events):
            return of(events, "response.output_text.annotation.added")["annotation"]
        cases = {
            "a number twice": (run, lambda e: e[4].update(sequence_number=3)),
            "another response's id": (run, lambda e: e[-1]["response"].update(id="resp_other")),
            "another time": (run, lambda e: e[-1]["response"].update(created_at=1)),
            "another model": (run, lambda e: e[1]["response"].update(model="other")),
            "an index that leaves one out": (run, lambda e: of(e, f"{item}.added", 1).update(output_index=2)),
            "an item's id that has changed": (run, lambda e: of(e, f"{item}.done")["item"].update(id="ci_other")),
            "an empty id": (run, lambda e: of(e, f"{item}.added")["item"].update(id="")),
            "the id of another item": (run, lambda e: of(e, f"{item}.added", 1)["item"].update(
                id=of(e, f"{item}.added")["item"]["id"])),
            "another container": (run, lambda e: of(e, f"{item}.done")["item"].update(container_id="cntr_other")),
            "an event for another item": (run, lambda e: of(e, "response.output_text.delta").update(item_id="msg_other")),
            "an event on an item of another type": (run, lambda e: of(e, "response.code_interpreter_call_code.delta").update(
                type="response.function_call_arguments.delta")),
            "code that is not its deltas": (run, lambda e: of(e, "response.code_interpreter_call_code.done").update(code="x")),
            "an item that ends with other code": (run, lambda e: of(e, f"{item}.done")["item"].update(code="x")),
            "an output of no type": (run, lambda e: of(e, f"{item}.done")["item"]["outputs"][0].update(type="html")),
            "a text that is not its deltas": (run, lambda e: of(e, "response.output_text.done").update(text="x")),
            "a part that is not its text": (run, lambda e: of(e, "response.content_part.done")["part"].update(text="x")),
            "a final item that is another": (run, lambda e: e[-1]["response"]["output"][0].update(code="x")),
            "a final answer with an item less": (run, lambda e: e[-1]["response"]["output"].pop()),
            "a final answer in another order": (run, lambda e: e[-1]["response"]["output"].reverse()),
            "an item that has not ended": (run, lambda e: of(e, f"{item}.done")["item"].update(status="interpreting")),
            "an annotation's index": (run, lambda e: of(e, "response.output_text.annotation.added").update(annotation_index=1)),
            "a search with an action at its start": (web, lambda e: of(e, f"{item}.added")["item"].update(
                action={"type": "search", "query": "x"})),
            "a search without an action at its end": (web, lambda e: of(e, f"{item}.done")["item"].pop("action")),
            "a search of a status that only code has": (web, lambda e: of(e, f"{item}.done")["item"].update(status="incomplete")),
            "a source of no known type": (web, lambda e: of(e, f"{item}.done")["item"]["action"]["sources"][0].update(type="page")),
            "a query that is empty among the queries": (web, lambda e: of(e, f"{item}.done")["item"]["action"]["queries"].append("")),
            "a citation of text that has not come": (web, lambda e: cite(e).update(end_index=1000)),
            "a citation of nothing": (web, lambda e: cite(e).update(end_index=cite(e)["start_index"])),
            "a status that is not the event": (run, lambda e: e[-1]["response"].update(status="incomplete")),
            "completed with an error": (run, lambda e: e[-1]["response"].update(error={"code": "x", "message": "y"})),
            "failed without an error": ("failed", lambda e: e[-1]["response"].update(error=None)),
            "incomplete without a reason": ("incomplete", lambda e: e[-1]["response"].update(incomplete_details=None)),
            "incomplete for an unknown reason": ("incomplete", lambda e: e[-1]["response"]["incomplete_details"].update(reason="x")),
            "usage before the end": (run, lambda e: e[0]["response"].update(usage=e[-1]["response"]["usage"])),
            "no usage at the end": (run, lambda e: e[-1]["response"].update(usage=None)),
            "output_text": (run, lambda e: e[-1]["response"].update(output_text="x")),
            "a running search with its action": ("web-search", lambda e: of(e, f"{item}.added")["item"].update(
                action={"type": "search", "query": "q"})),
            "an action of no type": ("web-search", lambda e: of(e, f"{item}.done")["item"]["action"].update(type="find")),
            "arguments that are not their deltas": ("mixed-function-call", lambda e: of(
                e, "response.function_call_arguments.done").update(arguments="{}")),
            "another function": ("mixed-function-call", lambda e: of(e, f"{item}.done", 1)["item"].update(name="other")),
            "a summary that is not its deltas": ("reasoning-code-interpreter", lambda e: of(
                e, f"{item}.done")["item"]["summary"][0].update(text="x"))}
        for what, (example, change) in cases.items():
            self.complains("responses", self.changed("responses", example, change), what)

    def test_what_messages_must_not_say(self):
        run, start, stop = "code-execution-20250825", "content_block_start", "content_block_stop"

        def result(e, which=0):
            blocks = [event["content_block"] for event in e if event["type"] == start]
            return [block for block in blocks if "tool_use_id" in block][which]

        def swap_results(e):
            one, two = result(e), result(e, 1)
            one["tool_use_id"], two["tool_use_id"] = two["tool_use_id"], one["tool_use_id"]

        def piece(e):
            return next(event["delta"] for event in e if event.get("delta", {}).get("partial_json"))
        cases = {
            "an index that leaves one out": (run, lambda e: of(e, start, 1).update(index=5)),
            "an end of another block": (run, lambda e: of(e, stop, 1).update(index=0)),
            "a message that starts with content": (run, lambda e: e[0]["message"]["content"].append({"type": "text", "text": "x"})),
            "a message that starts with its end": (run, lambda e: e[0]["message"].update(stop_reason="end_turn")),
            "a text block with text": (run, lambda e: of(e, start)["content_block"].update(text="x")),
            "an input that begins with a space": (run, lambda e: piece(e).update(partial_json=" " + piece(e)["partial_json"])),
            "an input that is no JSON": (run, lambda e: piece(e).update(partial_json="{{" + piece(e)["partial_json"])),
            "a delta of another type": (run, lambda e: piece(e).update(type="text_delta")),
            "a call whose id is no server tool's": (run, lambda e: of(e, start, 1)["content_block"].update(id="toolu_1")),
            "a result of another call": (run, lambda e: result(e).update(tool_use_id="srvtoolu_other")),
            "a result of another tool": (run, lambda e: result(e).update(type="code_execution_tool_result")),
            "a result of no type": (run, lambda e: result(e)["content"].update(type="bash_result")),
            "results in another order": ("parallel-server-tools", swap_results),
            "a code that nobody knows": ("web-search", lambda e: result(e).update(
                content={"type": "web_search_tool_result_error", "error_code": "broken"})),
            "tool_use without a call of the client's": ("resumed", lambda e: of(e, "message_delta")["delta"].update(
                stop_reason="tool_use")),
            "an end while a call waits": ("pause-turn", lambda e: of(e, "message_delta")["delta"].update(stop_reason="end_turn")),
            "an end behind a call of the client's": ("mixed-tool-use", lambda e: of(e, "message_delta")["delta"].update(
                stop_reason="end_turn")),
            "no stop reason": (run, lambda e: of(e, "message_delta")["delta"].update(stop_reason=None)),
            "a container of the other surface": (run, lambda e: of(e, "message_delta")["delta"]["container"].update(id="cntr_1")),
            "usage that shrinks": (run, lambda e: of(e, "message_delta")["usage"].update(input_tokens=0)),
            "an error of no type": ("error", lambda e: e[-1]["error"].update(type="server_error"))}
        for what, (example, change) in cases.items():
            self.complains("messages", self.changed("messages", example, change), what)

    def test_the_lines_of_an_event_are_looked_at(self):
        good = (DATA / "messages-stream-resumed.sse").read_bytes()
        self.assertEqual(strict_messages.check(good)["type"], "message")
        self.assertEqual(strict_messages.check(b": keep-alive\n\n" + good)["type"], "message")
        lines = good.split(b"\n")
        for broken in (b"\n".join(line for line in lines if not line.startswith(b"event:")),
                       good.replace(b"event: message_stop", b"event: message_end"), good + b"data: [DONE]\n\n", good[:-1],
                       good.replace(b"event: message_stop\n", b"event: message_stop\nid: 1\n")):
            self.complains("messages", broken, broken[-80:])

    def test_one_sided_errors_are_complained_about(self):
        for name in ONE_SIDED:
            self.complains("responses", (DATA / name).read_bytes(), name)


if __name__ == "__main__":
    unittest.main(testLoader=Loader(), verbosity=2)
