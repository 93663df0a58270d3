"""Everything that can fail where code runs: at a container's making, at a run's start, in it, at its result, when the
container's life is pushed on, and at its end. The model is told, the client gets its answer, nothing is left behind, and
the next request works. The table is in fault_table.py."""
import re

from fault_bench import SHORT_HEADER, Bench, Row, check_failed, check_good
from fault_table import MADE, SANDBOX, SANDBOX_ONCE, TOO_LONG, UNUSED
from harness import main, poll

MODES = (("plain", None), ("stream", None), ("stream", "Look."))
LOST = "[The sandbox of this session was lost and has been replaced: earlier variables and files are gone.]\n"


def answer_of(told, say=None):
    """What the client gets to read where the model was told that."""
    before = "Look.\n\nDone: " if say else "Done: "
    if not isinstance(told, re.Pattern):
        return before + told
    rest = told.pattern.removeprefix("^") if told.pattern.startswith("^") else "(.|\n)*" + told.pattern
    return re.compile("^" + re.escape(before) + rest, told.flags)


def told(step, fault, model, code, words, grown, mode, say):
    def visit(lane):
        reply = lane.wish(mode, model, code=code, **({"say": say} if say else {}))
        check_good(lane.case, reply, answer_of(words, say))
    return Row(step, fault, f"{mode}{' with text' if say else ''}", visit, grown)


def out_of_time(step, fault, model, code, mode, grown, ran):
    """The request's time is over while the sandbox does nothing."""
    def visit(lane):
        reply = lane.wish(mode, model, SHORT_HEADER, code=code)
        check_failed(lane.case, reply, TOO_LONG.status, TOO_LONG.message, ran)
    return Row(step, fault, mode, visit, grown)


def of_touch(fault, mode):
    """A session's second run begins when half of its idle time has gone: the container's life is pushed on then."""
    def visit(lane):
        is_gone = fault == "gone"

        def ask(code, words):
            check_good(lane.case, lane.wish(mode, f"touch-{fault}", session=f"touch-{fault}-{mode}", code=code), "Done: " + words)
        ask("for_a_while", "7")
        ask("for_a_while", "[sandbox failed] the container ended during the run" if is_gone else "7")
        poll(lambda: lane.grown().get("touch"), "the touch")
        ask("print(8)", LOST + "8" if is_gone else "8")
    return Row("touch", fault, mode, visit, {"create": 2, "run": 3, "touch": 1, "die": 1, "destroy": 1} if fault == "gone" else
               {"create": 1, "run": 3, "touch": 1 if fault == "hang" else 2, "destroy": 1})


def of_loss(mode):
    """A session whose container died is told so, once, and goes on."""
    def visit(lane):
        session = f"loss-{mode}"
        check_good(lane.case, lane.wish(mode, session=session, code="die"),
                   answer_of(re.compile(r"^so far\n\[sandbox failed\] ")))
        check_good(lane.case, lane.wish(mode, session=session, code="print(7)"), answer_of(LOST + "7"))
        check_good(lane.case, lane.wish(mode, session=session, code="print(8)"), answer_of("8"))
    return Row("run", "a session's container dies", mode, visit, {"create": 2, "run": 3, "die": 1, "destroy": 1})


def of_creations_that_hang():
    """A creation has a minute. The request's end does not end it; what it has made by then is deleted."""
    late = ("[sandbox unavailable] No sandbox could be had in time: too much else is going on. "
            "Try again in a moment.")
    step, behind = "container create", "hang behind the handle"
    for mode in ("plain", "stream"):
        yield told(step, "hang", "create-hang", "x=1", late, {}, mode, None)
        yield out_of_time(step, behind + " until the request's end", "create-hang-late", "x=1", mode, UNUSED, False)
    yield told(step, behind, "create-hang-late", "x=1", late, UNUSED, "plain", None)
    yield out_of_time(step, "hang until the request's end", "create-hang", "x=1", "stream", {}, False)


class Faults(Bench):
    LANES = 9  # most of them wait

    def test_what_a_sandbox_may_do_wrong(self):
        rows = [*of_creations_that_hang(), *(told(*one, "plain", None) for one in SANDBOX_ONCE)]
        rows += [of_touch(fault, mode) for fault in ("refuse", "hang", "gone") for mode in ("plain", "stream")]
        rows += [told(*one, mode, say) for one in SANDBOX for mode, say in MODES]
        for mode in ("plain", "stream"):
            rows.append(of_loss(mode))
            rows.append(out_of_time("run", "hang until the request's end", "net", "hang", mode, MADE, True))
        self.run_rows(rows)


if __name__ == "__main__":
    main()
