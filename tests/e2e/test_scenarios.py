"""Every scenario of scenarios.py in every form, streamed and not: three forms × two ways. What is streamed is read by the strict
readers. A form that the gateway has no surface for yet is left out: core/surface/surfaces.c says which there are."""
import json
import re
import types
import unittest

from forms import FORMS, MESSAGES, RESPONSES, SHELL, Told
from harness import E2E, ROOT, main
from scenario_stage import Stage
from scenarios import SCENARIOS, SHELL_SCENARIOS

SPOKEN = re.findall(r"&surface_(\w+)", (ROOT / "core" / "surface" / "surfaces.c").read_text(encoding="utf-8"))
RUNS_SHELL = '"bash_code_execution"' in (ROOT / "plugins" / "code_interpreter" / "code_interpreter.c").read_text(encoding="utf-8")


class Scenarios(Stage):
    """One test for each row, form and way."""


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
