"""Every scenario of scenarios.py in every form, streamed and not: three forms × two ways. What is streamed is read by the strict
readers. A form that the gateway has no surface for yet is left out: core/surface/surfaces.c says which there are."""
import json
import re
import types
import unittest

from forms import FORMS, MESSAGES, RESPONSES, SHELL, Told
from harness import E2E, ROOT, main, poll
from scenarios import SCENARIOS, SHELL_SCENARIOS, Fail

SPOKEN = re.findall(r"&surface_(\w+)", (ROOT / "core" / "surface" / "surfaces.c").read_text(encoding="utf-8"))
RUNS_SHELL = '"bash_code_execution"' in (ROOT / "plugins" / "code_interpreter" / "code_interpreter.c").read_text(encoding="utf-8")


def scripted(form, turn, number, body):
    """What the upstream says: its turn in the form that was asked for."""
    if isinstance(turn, Fail):
        return form.failure(turn.status, turn.message, turn.headers)
    calls = [(f"call_{number}_{i}", call) if isinstance(call, str) else (f"call_{number}_{i}", *call)
             for i, call in enumerate(turn.calls)]
    return form.turn(body, turn.text, calls, turn.usage, turn.finish)


class Player:
    """The turns of a row, each made when it is asked for."""

    def __init__(self, form, turns, other_way=False):
        self.form, self.turns, self.number, self.other_way = form, list(turns), 0, other_way

    def __call__(self, connection):
        turn = self.turns.pop(0) if self.turns else Fail(500, "the scenario has no turn for this")
        self.number += 1
        body = connection.request.json
        if self.other_way:
            body["stream"] = not body.get("stream")
        return scripted(self.form, turn, self.number, body)


class Scenarios(E2E):
    def play(self, form, stream, row):
        upstream = self.upstream(forever=Player(form, row["turns"], "answers" in row))
        gateway = self.serve(upstream, rules=row.get("rules", ()), sandbox=row.get("sandbox"),
                             upstream_options=row.get("upstream"), **row.get("sections", {}))
        body = {**form.body(stream, **row.get("request", {})), **(getattr(form, row["asks_for"]) if "asks_for" in row else {})}
        if row.get("names_none"):
            del body["tools"]
        told = form.ask(gateway, body)
        self.look(form, stream, gateway, upstream, row, told)
        if "then" in row:
            seen = len(upstream.requests)
            after = form.ask(gateway, form.continued(body, told, "5"))
            self.look(form, stream, gateway, upstream, {"turns": row["turns"], **row["then"]}, after, seen)
        journal = gateway.journal  # B27, B30, C068: at once, not only when the gateway ends
        poll(lambda: len(journal.ended()) == len(journal.of("create")), lambda: f"an end of each container: {journal.lines()}")

    def look(self, form, stream, gateway, upstream, row, told, seen=0):
        bodies = [request.json for request in upstream.requests[seen:]]
        self.look_at_failure(form, stream, row, told)
        if "texts" in row:
            joined = ["\n\n".join(row["texts"])] if form.name == "chat" and row["texts"] else row["texts"]
            self.assertEqual(told.texts, joined)
        for what in ("finish", "usage"):
            if what in row:
                self.assertEqual(getattr(told, what), row[what], what)
        if "calls" in row:
            self.assertEqual([name for _, name, _ in told.calls], row["calls"])
        if "runs" in row:
            self.assertEqual(len(gateway.journal.of("run")), row["runs"], gateway.journal.lines())
        if "made" in row:
            self.assertEqual(len(gateway.journal.of("create")), row["made"], gateway.journal.lines())
        if "told" in row:
            self.alike([text for _, text in form.results(bodies[-1])], row["told"])
        if "choices" in row:
            self.assertEqual([form.choice(body) for body in bodies], row["choices"])
        if "offered" in row:
            self.assertEqual([form.offers_code(body) for body in bodies], row["offered"])
        if "limits" in row:
            self.assertEqual([body[form.limit] for body in bodies], row["limits"])
        if "shown" in row and form.shows_runs:
            self.assertEqual([run[:2] for run in told.shown], [run[:2] for run in row["shown"]])
            self.alike([run[2] for run in told.shown], [run[2] for run in row["shown"]])
        is_replayed = row.get("upstream", {}).get("stream") == "replay"
        for body in bodies:
            if is_replayed:
                self.assertNotIn("stream_options", body)
            self.assertEqual(body.get("stream", False), stream and not is_replayed, "every turn is asked for as the client asked")
            for _, _, arguments in form.module.calls_of(body):
                self.assertIsInstance(arguments, dict, "servers refuse a history with other arguments")

    def look_at_failure(self, form, stream, row, told):
        self.assertEqual(told.error, row.get("error"), told.reply.body)
        ran_before = row.get("status") == 424
        if stream and ran_before and told.status == 200:  # something had gone to the client: told within the stream
            self.assertIn(told.code, (row["code"], None) if form.name == "messages" else (row["code"],))
            return
        self.assertEqual(told.status, row.get("status", 200), told.reply.body)
        if ran_before:
            self.assertEqual(told.reply.get("x-should-retry"), "false")
            self.assertIn(told.code, (row["code"], None) if form.name == "messages" else (row["code"],))

    def alike(self, found, wanted):
        """Texts that are the wanted ones, or in which the wanted expressions are found."""
        self.assertEqual(len(found), len(wanted), found)
        for text, one in zip(found, wanted):
            self.assertEqual(text, one) if isinstance(one, str) else self.assertRegex(text, one)


class StrictModel(E2E):
    """A model server that refuses whatever its API does not have takes all that the gateway sends, and so does the client."""

    def play(self, form, stream):
        gateway = self.serve(upstream_options={"strict": True})
        body = form.body(stream, "Run this Python code: x = 6*7\nprint(x)", metadata=form.metadata("s1"), _sandgate_turn=3)
        for text, answer in ((None, "42"), ("Run this Python code: print(x + 1)", "43"),
                             ("Run this Python code: print(no)", "NameError")):
            if text:
                body = form.continued(body, told, text=text)
            told = form.ask(gateway, body)
            self.assertEqual((told.status, told.error), (200, None), told.reply.body)
            self.assertRegex(told.texts[-1], f"The result is: (.*\\n)*.*{answer}")
        self.assertEqual(len(gateway.upstream_journal.entries()), 6)
        self.assertNotIn("_sandgate", "".join(gateway.upstream_journal.bodies()))

    def test_it_takes_a_conversation_with_runs(self):
        for form in FORMS:
            for stream in (False, True):
                if form.name in SPOKEN:
                    with self.subTest(form=form.name, stream=stream):
                        self.play(form, stream)


class Readers(unittest.TestCase):
    """What the forms make of answers that are known to be good."""

    def read(self, form, example):
        reply = types.SimpleNamespace(status=200, body=(ROOT / "tests" / "data" / "wire" / example).read_bytes())
        told = Told(reply)
        if example.endswith(".sse"):
            form.read_stream(told)
        else:
            form.read(told, json.loads(reply.body))
        return told

    def test_runs_texts_and_calls_are_found_in_responses(self):
        for example in ("responses-stream-reasoning-code-interpreter.sse", "responses-response-code-interpreter.json"):
            told = self.read(RESPONSES, example)
            self.assertEqual((told.shown[0][1], told.finish, told.calls, told.usage), ("ok", "stop", [], (412, 96)))
            self.assertIn("650", told.shown[0][2])
            self.assertEqual(len(told.texts), 1)
        for example in ("responses-stream-mixed-function-call.sse", "responses-response-mixed-function-call.json"):
            told = self.read(RESPONSES, example)
            self.assertEqual((told.calls, told.finish), ([("call_partA7", "get_stock", {"part": "A-7"})], "calls"))
        told = self.read(RESPONSES, "responses-stream-error.sse")
        self.assertEqual((told.error, told.code), ("The upstream model returned an error.", "server_error"))
        self.assertEqual(self.read(RESPONSES, "responses-stream-incomplete.sse").finish, "length")

    def test_runs_texts_and_calls_are_found_in_messages(self):
        for example in ("messages-stream-code-execution-20250522.sse", "messages-response-code-execution-20250522.json"):
            told = self.read(MESSAGES, example)
            self.assertEqual((told.shown[0][1], told.finish, told.calls, told.usage), ("ok", "stop", [], (2310, 184)))
            self.assertIn("650", told.shown[0][2])
        for example in ("messages-stream-mixed-tool-use.sse", "messages-response-mixed-tool-use.json"):
            told = self.read(MESSAGES, example)
            self.assertEqual((told.calls[0][1:], told.finish), (("get_stock", {"part": "A-7"}), "calls"))
        self.assertEqual(self.read(MESSAGES, "messages-stream-error.sse").error, "Overloaded")


def add(name, row, form, stream):
    def test(self):
        if form.name not in SPOKEN or form is SHELL and not RUNS_SHELL:
            self.skipTest(f"there is no surface '{form.name}' yet, or none with a shell")
        self.play(form, stream, row)
    words = re.sub(r"\W+", "_", name)
    way = f"{form.name}{'_shell' if form is SHELL else ''}{'_streamed' if stream else ''}"
    test.__name__ = f"test_{words}__{way}"
    setattr(Scenarios, test.__name__, test)


for rows, forms in ((SCENARIOS, FORMS), (SHELL_SCENARIOS, [SHELL])):
    for scenario, described in rows.items():
        for each in forms:
            for streamed in (False, True):
                add(scenario, described, each, streamed)

if __name__ == "__main__":
    main()
