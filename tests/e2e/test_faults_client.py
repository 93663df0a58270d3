"""Everything that a client may do wrong or that may happen to it, at every step of its request: it says nothing, half of
something, nonsense or too much, slowly; it leaves while a model is awaited, while code runs, in the middle of the answer;
it takes nothing. It gets its answer if it is there for one, nothing is left behind, and the next request works."""
import re
import time

from client import body_of, encode, parse_events, text_of
from fault_bench import KEY, Bench, Row, check_failed, check_good, read_reply
from faulty import NOISE, wish
from harness import PATIENCE, main, poll

LINE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
KEY_FIELD = f"Authorization: Bearer {KEY}\r\n".encode()
JSON = b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = encode(body_of(text=wish(), model="net"))
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GOOD = LINE + KEY_FIELD + JSON + LENGTH + b"\r\n" + BODY
HEAD_BYTES = len(GOOD) - len(BODY)
NO_KEY = "No API key was given: send it as 'Authorization: Bearer KEY' or 'x-api-key'."
BAD_KEY = "The API key is not one of this gateway's."
LIMITS = {"head": "the request's head took longer than 15000 ms", "body": "the request's body paused for longer than 30000 ms"}
WRITE_LIMIT = "the client took nothing for 60000 ms"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def leave(wire, how):
    if how == "cut":
        wire.close()
    elif how == "reset":
        wire.reset()
    else:
        wire.half_close()


class Sent:
    """A bare connection in the place of one of the library's."""

    def __init__(self, wire):
        self.wire = wire

    def getresponse(self):
        return self.wire.stream()


def answer_on(wire):
    """The answer to what was sent by hand, whole or not."""
    return read_reply(Sent(wire))


def closed_without_a_word(case, wire):
    case.assertEqual(wire.read_all(), b"")


# ---- what is sent ----

def sent(step, fault, data, status=None, message=None, code=None):
    """Bytes that are no good request: refused with that status, or (None) no answer but an end."""
    def visit(lane):
        arrived = len(lane.up.requests)
        with lane.wire() as wire:
            try:
                for piece in data() if callable(data) else [data]:
                    wire.send(piece)
            except ConnectionError:
                pass  # refused before all was sent
            if status is None:
                closed_without_a_word(lane.case, wire)
            else:
                reply = answer_on(wire)
                if reply.get("x-request-id"):
                    check_failed(lane.case, reply, status, message, code=code)
                else:  # refused before it was a request
                    lane.case.assertEqual((reply.status, reply.cut), (status, None), reply)
                    lane.case.assertRegex(reply.error["message"], message)
        lane.case.assertEqual(len(lane.up.requests), arrived, "nothing went up")
    return Row(step, fault, "plain", visit, {})


def left(step, how, data):
    """The client leaves behind that."""
    def visit(lane):
        arrived = len(lane.up.requests)
        with lane.wire() as wire:
            wire.send(data)
            leave(wire, how)
            if how == "half-close":
                wire.read_all()
        lane.case.assertEqual(len(lane.up.requests), arrived, "nothing went up")
    return Row(step, how, "plain", visit, {})


def slow(step, at, end):
    """Good, in a few pieces, each a while after the one before."""
    def visit(lane):
        with lane.wire() as wire:
            wire.send(GOOD[:at])
            size = max(1, (end - at) // 6)
            for begin in range(at, end, size):
                time.sleep(0.02)
                wire.send(GOOD[begin:min(begin + size, end)])
            wire.send(GOOD[end:])
            check_good(lane.case, answer_on(wire), "Done: 42")
    return Row(step, "slow", "plain", visit, {"create": 1, "run": 1, "destroy": 1})


def fields_without_end():
    yield LINE + KEY_FIELD
    for _ in range(64):
        yield b"X-More: " + b"a" * 1000 + b"\r\n"


def body_without_end():
    yield LINE + KEY_FIELD + JSON + CHUNKED + b"\r\n"
    for _ in range(33):
        yield chunk(b" " * (1 << 20))


def keyed(field):
    return LINE + field + JSON + LENGTH + b"\r\n" + BODY


def with_body(body, length=None):
    return LINE + KEY_FIELD + JSON + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


def of_what_is_sent():
    yield from (left("accept", how, b"") for how in ("cut", "reset", "half-close"))
    yield sent("accept", "garbage", NOISE * 8, 400, ".")
    yield sent("accept", "another protocol", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", 400, ".")
    yield sent("accept", "flood", b"A" * 100000, 431, "the request's head is longer than 32768 bytes")
    yield slow("accept", 0, 10)
    yield from (left("head", how, GOOD[:HEAD_BYTES // 2]) for how in ("cut", "reset", "half-close"))
    yield sent("head", "garbage", LINE + KEY_FIELD + NOISE + b"\r\n\r\n", 400, ".")
    yield sent("head", "flood", fields_without_end, 431, "the request's head is longer than 32768 bytes")
    yield slow("head", 30, HEAD_BYTES)
    yield sent("authentication", "none", keyed(b""), 401, NO_KEY, "invalid_api_key")
    yield sent("authentication", "a wrong key", keyed(b"Authorization: Bearer wrong\r\n"), 401, BAD_KEY, "invalid_api_key")
    yield sent("authentication", "another scheme", keyed(b"Authorization: Basic " + KEY.encode() + b"\r\n"), 401, NO_KEY,
               "invalid_api_key")
    yield sent("authentication", "garbage", keyed(b"Authorization: Bearer \xff\xfe\xc3(\r\n"), 401, BAD_KEY, "invalid_api_key")
    yield sent("authentication", "flood", keyed(b"Authorization: Bearer " + b"k" * 30000 + b"\r\n"), 401, BAD_KEY,
               "invalid_api_key")
    yield sent("authentication", "two keys", keyed(KEY_FIELD + b"X-Api-Key: another\r\n"), 400, re.compile("^Two different API"),
               "ambiguous_api_key")
    for how in ("cut", "reset", "half-close"):
        yield left("body", how, GOOD[:-10])
        yield left("body in chunks", how, LINE + KEY_FIELD + JSON + CHUNKED + b"\r\n" + chunk(BODY[:20]))
    yield sent("body", "garbage", with_body(NOISE * 8), 400, re.compile("^The body is not valid JSON"))
    yield sent("body", "half of it", with_body(BODY[:-10]), 400, re.compile("^The body is not valid JSON"))
    yield sent("body", "none", with_body(b""), 400, re.compile("^The body is not valid JSON"))
    yield sent("body", "too much announced", with_body(b"", 33 << 20), 413, re.compile("longer than 33554432 bytes"))
    yield sent("body in chunks", "garbage", LINE + KEY_FIELD + JSON + CHUNKED + b"\r\n" + NOISE * 8, 400,
               re.compile("not well chunked"))
    yield sent("body in chunks", "flood", body_without_end, 413, re.compile("longer than 33554432 bytes"))
    yield slow("body", HEAD_BYTES, len(GOOD))


def of_silence():
    """Longer than may be."""
    yield sent("accept", "hang", b"")
    yield sent("head", "hang", GOOD[:HEAD_BYTES // 2], 408, LIMITS["head"])
    yield sent("body", "hang", GOOD[:-10], 408, LIMITS["body"])
    yield sent("body in chunks", "hang", LINE + KEY_FIELD + JSON + CHUNKED + b"\r\n" + chunk(BODY[:20]), 408, LIMITS["body"])


# ---- leaving while the gateway works ----

def posted(lane, wire, mode, name, tools=True, model="net", session=None, **words):
    wire.post(body_of(text=wish(**words), model=model, stream=mode == "stream", session=session,
                      tools=({"type": "code_interpreter"},) if tools else ()),
              fields=[f"Authorization: Bearer {KEY}", f"X-Request-Id: {name}"])


def noted_end(lane, name):
    """The log's line of that request."""
    return lane.gateway.wait_event("request", lambda event: event.get("client_request") == name)


def leaves(step, how, mode, ready, grown=None, tools=True, **words):
    """The client leaves when `ready(lane, wire)` has returned; the gateway notes it, and ends everything for it."""
    name = f"{step} {how} {mode} {tools}".replace(" ", "-")

    def visit(lane):
        lane.logged = {event: len(lane.gateway.events(event)) for event in ("turn", "upstream_retry")}
        with lane.wire() as wire:
            posted(lane, wire, mode, name, tools, **words)
            ready(lane, wire)
            leave(wire, how)
            line = noted_end(lane, name)
        lane.case.assertEqual(line.get("error"), "CANCELLED", line)
        poll(lambda: lane.up.busy == 0, "the upstream's answer to be ended")
    return Row(step, how, f"{'' if tools else 'relayed '}{mode}", visit, grown)


def upstream_works(lane, _):
    poll(lambda: lane.up.busy == 1, "the upstream to have the request")


def run_begins(lane, _):
    poll(lambda: lane.grown().get("run"), "the run")


def answer_begins(_, wire):
    assert wire.sock.recv(1) == b"H"


def turn_ends(lane, _):
    lane.gateway.wait_events("turn", lane.logged["turn"] + 1)


def try_fails(lane, _):
    lane.gateway.wait_events("upstream_retry", lane.logged["upstream_retry"] + 1)


def of_leaving():
    made = {"create": 1, "run": 1, "destroy": 1}
    for how in ("cut", "reset", "half-close"):
        for mode in ("plain", "stream"):
            for tools in (True, False):
                yield leaves("first byte", how, mode, upstream_works, {}, tools, fault="hang", at="first")
                yield leaves("upstream's head", how, mode, upstream_works, {}, tools, fault="hang", at="head")
                yield leaves("mid-stream", how, mode, upstream_works, {}, tools, fault="hang", at="mid")
            yield leaves("first byte of the second turn", how, mode, upstream_works, made, fault="hang", at="first", turn=2)
            yield leaves("run", how, mode, run_begins, made, code="hang")
            yield leaves("result that floods", how, mode, run_begins, None, code="flood")
            yield leaves("second try", how, mode, try_fails, {}, fault="status", status=429, after=15)
            yield of_creation(how, mode)
        yield leaves("client write", how, "stream", answer_begins, {}, fault="chatter", at="mid")
        yield leaves("client write", how, "stream", answer_begins, {}, tools=False, fault="chatter", at="mid")
        yield leaves("client write of the second turn", how, "stream", answer_begins, None, fault="chatter", at="mid", turn=2)
        yield of_session(how)


def of_creation(how, mode):
    """What is made for nobody any more goes as soon as it is there."""
    def visit(lane):
        leaves("container create", how, mode, turn_ends, model="create-late").visit(lane)
        poll(lambda: lane.grown().get("destroy"), "the deletion")
    return Row("container create", how, mode, visit, {"create": 1, "destroy": 1})


def of_session(how):
    """The code is interrupted; the session goes on with what it had."""
    def visit(lane):
        session = f"left-{how}"
        check_good(lane.case, lane.wish("plain", session=session, code="x=7"), "Done: [no output]")
        leaves("session", how, "stream", lambda *_: poll(lambda: lane.grown().get("run") == 2, "the run"), session=session,
               code="hang").visit(lane)
        check_good(lane.case, lane.wish("plain", session=session, code="print(x)"), "Done: 7")
    return Row("run in a session", how, "stream", visit, {"create": 1, "run": 3, "interrupt": 1, "destroy": 1})


# ---- reading the answer ----

def reads_slowly(tools):
    def visit(lane):
        with lane.wire() as wire:
            posted(lane, wire, "stream", "slow", tools, say="Look.", fault="long", at="mid")
            response, seen = wire.stream(), bytearray()
            while piece := response.read1(1 << 16):
                time.sleep(0.005)
                seen += piece
        said = text_of(parse_events(bytes(seen))).replace("chatter ", "")
        lane.case.assertEqual(said, "Look.\n\nDone: 42" if tools else "Look.")
        lane.case.assertGreater(len(seen), 4 << 20)
    return Row("client write", "slow", "stream" if tools else "relayed stream", visit)


def takes_nothing(tools):
    def visit(lane):
        with lane.wire() as wire:
            posted(lane, wire, "stream", "takes-nothing", tools, fault="chatter", at="mid")
            answer_begins(lane, wire)
            line = lane.gateway.wait_event("request", lambda event: event.get("client_request") == "takes-nothing",
                                           patience=2 * PATIENCE)
            lane.case.assertEqual((line["error"], line["message"]), ("TIMEOUT", WRITE_LIMIT))
            lane.case.assertNotIn(b"\r\n0\r\n\r\n", wire.read_all(), "the client sees that it was cut")
    return Row("client write", "hang", "stream" if tools else "relayed stream", visit, {})


class Faults(Bench):
    LANES = 9  # some of them wait

    def test_what_a_client_may_do_wrong(self):
        rows = [takes_nothing(True), takes_nothing(False), *of_silence()]  # each waits for a limit of the gateway's
        self.run_rows([*rows, *of_what_is_sent(), *of_leaving(), reads_slowly(True), reads_slowly(False)])


if __name__ == "__main__":
    main()
