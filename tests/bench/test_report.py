#!/usr/bin/env python3
"""The benchmark's verdicts: ratios are taken round by round, held against the right value of the rounds, and a figure that
is not there is never a success. Then its two ends: bodies have the sizes that they claim."""
import json
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import measures  # noqa: E402
import report  # noqa: E402


def results(*rows):
    made = measures.Results()
    for subject, what, who, values in rows:
        for value in values:
            made.add(subject, what, who, "µs", value)
    return made


def verdicts(made, *subjects):
    said = report.document(made, {}, {"seconds": 1, "rounds": 3}, {name: name for name in subjects})
    return {target["title"]: target for target in said["targets"]}, said


WAITING = (("errors", 0), ("RSS at most", 400), ("threads more than idle", 0), ("share of a core", 0.3))


class Report(unittest.TestCase):
    def test_ratios_are_taken_within_a_round(self):
        what = "CPU a request, 32 connections"
        judged, _ = verdicts(results(("relay", what, "sandgate", [26, 60, 90]), ("relay", what, "nginx", [10, 20, 45])), "relay")
        target = judged["relay: CPU a request ÷ nginx, 32 connections"]
        self.assertEqual(target["values"], [2.6, 3.0, 2.0])
        self.assertEqual((target["median"], target["min"], target["max"]), (2.6, 2.0, 3.0))
        self.assertEqual(target["verdict"], "reached")

    def test_more_than_the_limit_is_not_reached(self):
        what = "CPU a request, 32 connections"
        judged, _ = verdicts(results(("tool", what, "tool turn", [31]), ("tool", what, "relayed", [10])), "tool")
        self.assertEqual(judged["tool turn: CPU a request ÷ relayed"]["verdict"], "not reached")

    def test_a_figure_that_is_missing_is_not_measured(self):
        judged, said = verdicts(results(("relay", "CPU a request, 32 connections", "sandgate", [26])), "relay")
        self.assertEqual({target["verdict"] for target in judged.values()}, {"not measured"})
        self.assertIn("not measured", report.table(said))

    def test_no_ratio_to_nothing(self):
        what = "added p50 at 1 connection"
        judged, _ = verdicts(results(("relay", what, "sandgate", [30, 30]), ("relay", what, "nginx", [-1, 20])), "relay")
        self.assertEqual(judged["relay: added p50 ÷ nginx, 1 connection"]["values"], [1.5])

    def test_who_answers_nothing_has_no_figure(self):
        made = measures.Results()
        made.add("streams", "CPU a chunk", "portkey", "µs", None)
        self.assertEqual((made.figures, made.notes),
                         ({}, ["streams, portkey: nothing was answered, so there is no CPU a chunk"]))

    def test_one_error_in_one_round_counts(self):
        made = results(*(("waiting", what, "sandgate", [value] * 3) for what, value in WAITING))
        self.assertEqual({target["verdict"] for target in verdicts(made, "waiting")[0].values()}, {"reached"})
        made.figures["waiting", "errors", "sandgate"]["values"][1] = 1
        self.assertEqual(verdicts(made, "waiting")[0]["9,500 waiting: errors"]["verdict"], "not reached")

    def test_a_square_cost_is_not_linear(self):
        straight = [("bodies", f"CPU a request, {kb} KB", "sandgate", [50 + kb * 0.5]) for kb in (2, 20, 200)]
        square = [("bodies", f"CPU a request, {kb} KB", "sandgate", [50 + kb * kb * 0.01]) for kb in (2, 20, 200)]
        title = "linear in bytes: slope 20–200 KB ÷ slope 2–20 KB"
        self.assertAlmostEqual(verdicts(results(*straight), "bodies")[0][title]["median"], 1)
        self.assertAlmostEqual(verdicts(results(*square), "bodies")[0][title]["median"], 10)
        self.assertEqual(verdicts(results(*square), "bodies")[0][title]["verdict"], "not reached")

    def test_what_is_wanted_alone_is_judged(self):
        self.assertEqual({target["subject"] for target in verdicts(results(), "local")[0].values()}, {"local"})

    def test_the_page_has_every_figure_and_note(self):
        made = results(("local", "next run", "local", [0.5, 0.75, 0.25]))
        made.note("the machine was busy")
        text = report.page(json.loads(json.dumps(verdicts(made, "local")[1])))
        self.assertIn("| next run (µs) | local | 0.50 | 0.25 | 0.75 |", text)
        self.assertIn("| local sandbox: next run | reached | 0.50 | 0.25 | 0.75 | ≤ 1 ms | median |", text)
        self.assertIn("- the machine was busy", text)


class Bodies(unittest.TestCase):
    def test_bodies_have_the_size_that_they_claim(self):
        for size in (1000, 2000, 20_000, 200_000):
            for more in ({}, {"tools": measures.TOOLS}):
                text = json.dumps(measures.chat("m", size, **more), separators=(",", ":"))
                self.assertLess(abs(len(text) - size), 50)
                self.assertTrue(text.startswith('{"model":"m"'), "the upstream looks for the model at the start")

    def test_the_order_changes_from_round_to_round(self):
        self.assertEqual([measures.rotated("abc", turn) for turn in range(4)],
                         [list("abc"), list("bca"), list("cab"), list("abc")])

    def test_a_default_run_stays_below_twenty_minutes(self):
        settings = types.SimpleNamespace(seconds=4)
        self.assertLess(3 * sum(subject().seconds(settings) for subject in measures.SUBJECTS), 1200)


unittest.main()
