"""Everything that can fail at an upstream, at every place of its answer, in every form in which a client may ask: the
right answer, nothing left behind, and the next request works. The table is in fault_table.py, its faults in faulty.py."""
from fault_bench import SHORT_HEADER, Bench, Row, check_failed, check_good
from fault_table import CONNECT, CUT, ENDLESS, GOOD, MADE, MOCK, OTHERS, OTHERS_RELAYED, PASSED, RELAYED, UPSTREAM
from harness import main

SAID = "Look.\n\nDone: 42"  # all that a client may be told, of which a failure leaves a part
RELAYED_TEXT = "Words of a model."
MODES = (("plain", None), ("stream", None), ("stream", "Look."))


def for_mode(outcome, mode):
    return outcome[mode == "stream"] if isinstance(outcome, tuple) else outcome


def intercepted(step, fault, mode, say, turn, words, outcome):
    """A row whose answer is made by the loop."""
    words = dict(words)
    model, short = words.pop("model", "net"), words.pop("short", False)
    words.pop("only", None)
    words.pop("costly", None)
    ran = turn == 2

    def visit(lane):
        reply = lane.wish(mode, model, SHORT_HEADER if short else None, turn=turn, **words, **({"say": say} if say else {}))
        if outcome is GOOD:
            check_good(lane.case, reply, SAID if say else "Done: 42")
            return
        check_failed(lane.case, reply, outcome.status, outcome.message, ran, code=outcome.code)
        if reply.is_stream:
            lane.case.assertTrue(ran or mode == "stream")
            said = reply.stream_text.replace("chatter ", "")
            lane.case.assertTrue((SAID if say else "Done: 42").startswith(said), said)
        elif outcome.retry_after is not None:
            lane.case.assertEqual(reply.get("retry-after"), outcome.retry_after, reply)
    name = f"{mode}{' with text' if say else ''}, turn {turn}"
    return Row(step, fault, name, visit, grown=MADE if ran or outcome is GOOD else {})


def relayed(step, fault, mode, words, outcome):
    words = dict(words)
    model, headers = words.pop("model", "net"), SHORT_HEADER if words.pop("short", False) else None
    words.pop("only", None)

    def visit(lane):
        reply = lane.wish(mode, model, headers, tools=False, **words)
        case = lane.case
        if outcome is CUT:
            case.assertEqual(reply.status, 500 if fault.startswith("an error") else 200, reply)
            case.assertIsNotNone(reply.cut, reply)
        elif outcome is GOOD:
            case.assertEqual((reply.status, reply.cut), (200, None), reply)
            case.assertEqual(reply.stream_text if reply.is_stream else reply.text, RELAYED_TEXT)
        elif outcome is PASSED:
            case.assertEqual((reply.status, reply.cut), (200, None), reply)
        else:
            check_failed(case, reply, outcome.status, outcome.message, code=outcome.code)
            case.assertFalse(reply.is_stream)
            if outcome.retry_after is not None:
                case.assertEqual(reply.get("retry-after"), outcome.retry_after, reply)
    return Row(step, fault, f"relayed {mode}", visit, grown={})


def of_places():
    for place, faults in UPSTREAM.items():
        for fault, outcome in faults.items():
            words = {"fault": fault, "at": place, **({"model": "hasty"} if fault == "hang" else {})}
            for mode, say in MODES:
                for turn in (1, 2):
                    yield intercepted(f"upstream {place}", fault, mode, say, turn, words, for_mode(outcome, mode))


def of_places_relayed():
    for place, faults in RELAYED.items():
        for fault, outcome in faults.items():
            words = {"fault": fault, "at": place, **({"model": "hasty"} if fault == "hang" else {})}
            for mode in ("plain", "stream"):
                if for_mode(outcome, mode) is not None:
                    yield relayed(f"upstream {place}", fault, mode, words, for_mode(outcome, mode))


def of_others():
    for fault, words, outcome in OTHERS:
        for mode, say in MODES:
            for turn in (1, 2):
                if words.get("only", mode) == mode and not (words.get("costly") and say):
                    yield intercepted("upstream", fault, mode, say, turn, words, for_mode(outcome, mode))


def of_others_relayed():
    for fault, words, outcome in OTHERS_RELAYED:
        for mode in ("plain", "stream"):
            if words.get("only", mode) == mode:
                yield relayed("upstream", fault, mode, words, outcome)


def of_connect():
    for fault, model, outcome in CONNECT:
        for mode in ("plain", "stream"):
            yield intercepted("upstream connect", fault, mode, None, 1, {"model": model}, outcome)
            yield relayed("upstream connect", fault, mode, {"model": model}, outcome)


def of_mock(fault, mode, turn, outcome):
    def visit(lane):
        short = SHORT_HEADER if outcome is ENDLESS else None
        model = "hasty-mock" if fault in ("hang", "stall") else "mock"
        reply = lane.ask(mode, model, short, f"MOCK {fault} {turn}")
        check_failed(lane.case, reply, outcome.status, outcome.message, turn == 2, code=outcome.code)
    return Row("mock model", fault, f"{mode}, turn {turn}", visit, grown=MADE if turn == 2 else {})


class Places(Bench):
    def test_what_an_upstream_may_do_wrong_at_every_place_of_its_answer(self):
        self.run_rows([*of_places(), *of_places_relayed()])


class Others(Bench):
    def test_what_else_an_upstream_may_do_wrong(self):
        self.run_rows([*of_connect(), *of_others(), *of_others_relayed()])

    def test_what_the_mock_model_does_wrong(self):
        self.run_rows([of_mock(fault, mode, turn, for_mode(outcome, mode)) for fault, outcome in MOCK.items()
                       for mode in ("plain", "stream") for turn in (1, 2)])


if __name__ == "__main__":
    main()
