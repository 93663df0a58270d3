"""The table of what can fail behind the gateway, at every step of a request, and what the client is to get.

UPSTREAM: place in the upstream's answer → fault → outcome; every cell is made in the first turn (nothing has run) and in
the second (code has run), plain and streaming, and streaming with text before the call. A pair is one outcome for plain
answers and one for streams. OTHERS: what else an upstream may do. RELAYED: the same where no interceptor takes part.
MOCK: the faults of the mock model. SANDBOX: what may fail where code runs, and what the model is told of it."""
import re

UNREACHABLE = "The model server could not be reached or broke off its answer."
LATE = "The model server did not answer in time."
GOOD = "good"  # the answer, as if nothing had happened
CUT = "cut"    # relayed: the client sees that its answer was cut
PASSED = "passed"  # relayed: the bytes are the client's business


class Failure:
    """The status before anything ran, the message, and the code."""

    def __init__(self, status, message, code=None, retry_after=None):
        self.status, self.message, self.code, self.retry_after = status, message, code, retry_after


def refused(status, **more):
    return Failure(status, f"the model says {status}", "its_code", **more)


def plainly(status):
    return Failure(502 if status < 400 else status, f"The model server answered with status {status}.")


BROKEN = Failure(502, UNREACHABLE)
SILENT = Failure(504, LATE)
NONSENSE = Failure(502, re.compile(r"^The upstream's answer cannot be understood: "))
UNFINISHED = Failure(502, "The upstream's stream ended before its answer was whole")
TOO_LARGE = Failure(502, "The upstream's answer is larger than 32 MiB")
EVENT_TOO_LARGE = Failure(502, "The upstream sent an event of more than 8 MiB")
STREAM_TOO_LARGE = Failure(502, "The upstream's stream is larger than 256 MiB")
FELL_OVER = Failure(503, "the model fell over")
TOO_LONG = Failure(504, "The request took too long.")
# A stream without end, of a request that has a second: whichever comes first.
ENDLESS = Failure(504, re.compile(r"^(The request took too long\.|The upstream's answer is larger than 32 MiB)$"))
OPERATORS_KEY = Failure(502, "The model server refused the gateway's own credentials.")

UPSTREAM = {
    "first": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": BROKEN, "flood": BROKEN},
    "head": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": BROKEN, "flood": BROKEN},
    "begun": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": NONSENSE,
              "flood": (NONSENSE, EVENT_TOO_LARGE)},
    "mid": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": NONSENSE,
            "flood": (NONSENSE, EVENT_TOO_LARGE)},
    "last": {"cut": (BROKEN, GOOD), "reset": (BROKEN, GOOD), "hang": (SILENT, GOOD), "slow": GOOD,
             "garbage": (NONSENSE, GOOD), "flood": (NONSENSE, GOOD)},
    "end": {"cut": GOOD, "reset": GOOD, "hang": GOOD, "garbage": GOOD, "flood": GOOD},
}

RELAYED = {
    "first": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": BROKEN, "flood": BROKEN},
    "head": {"cut": BROKEN, "reset": BROKEN, "hang": SILENT, "slow": GOOD, "garbage": BROKEN, "flood": BROKEN},
    "begun": {"cut": (BROKEN, CUT), "reset": (BROKEN, CUT), "hang": (SILENT, CUT), "slow": GOOD, "garbage": PASSED,
              "flood": (PASSED, None)},
    "mid": {"cut": CUT, "reset": CUT, "hang": CUT, "slow": GOOD, "garbage": PASSED, "flood": (PASSED, None)},
    "last": {"cut": CUT, "reset": CUT, "hang": CUT, "slow": GOOD, "garbage": (PASSED, CUT), "flood": (PASSED, None)},
    "end": {"cut": GOOD, "reset": GOOD, "hang": GOOD, "garbage": GOOD, "flood": GOOD},
}

STATUSES = {400: refused(400), 401: OPERATORS_KEY, 403: refused(403), 404: refused(404), 408: refused(408),
            409: refused(409), 413: refused(413), 422: refused(422), 429: refused(429), 451: refused(451),
            500: refused(500), 502: refused(502), 503: refused(503), 504: refused(504), 529: refused(529),
            302: Failure(502, "the model says 302", "its_code"), 304: plainly(304), 204: NONSENSE}

# (what it is, the words of the wish, the outcome); `only`: in that mode, `costly`: not also with text before the call,
# `short`: the request has one second
OTHERS = [(f"status {status}", {"fault": "status", "status": status}, outcome) for status, outcome in STATUSES.items()]
OTHERS += [
    ("status 429 with a long Retry-After", {"fault": "status", "status": 429, "after": 30}, refused(429, retry_after="30")),
    ("status 503 with a long Retry-After", {"fault": "status", "status": 503, "after": 3600},
     refused(503, retry_after="3600")),
    ("status 429 with a short Retry-After", {"fault": "status", "status": 429, "after": 1}, refused(429, retry_after="1")),
    ("an error page", {"fault": "status", "status": 502, "form": "html"}, plainly(502)),
    ("an error without a word", {"fault": "status", "status": 500, "form": "none"}, plainly(500)),
    ("an error of 1 MiB", {"fault": "status", "status": 500, "form": "huge"}, plainly(500)),
    ("an error whose body hangs", {"fault": "error_hangs", "model": "hasty"}, plainly(500)),
    ("heads without end that say 'wait'", {"fault": "continues"}, BROKEN),
    ("another protocol", {"fault": "upgrade"}, BROKEN),
    ("an unframed answer that is cut", {"fault": "cut", "at": "mid", "framing": "close"}, (NONSENSE, UNFINISHED)),
    ("an unframed answer that is nearly whole", {"fault": "cut", "at": "last", "framing": "close"}, (NONSENSE, GOOD)),
    ("an unframed answer without a body", {"fault": "cut", "at": "begun", "framing": "close"}, (NONSENSE, UNFINISHED)),
    ("an unframed answer that is whole", {"fault": "cut", "at": "end", "framing": "close"}, GOOD),
    ("an unframed answer without end", {"fault": "flood", "at": "mid", "framing": "close"}, (TOO_LARGE, EVENT_TOO_LARGE)),
    ("an error event at once", {"fault": "error_event", "at": "begun", "only": "stream"}, FELL_OVER),
    ("an error event in the middle", {"fault": "error_event", "at": "mid", "only": "stream"}, FELL_OVER),
    ("words until time is up", {"fault": "drip", "at": "mid", "only": "stream", "short": True}, TOO_LONG),
    ("words until time is up, unasked", {"fault": "drip", "at": "mid", "sse": 1, "only": "plain", "short": True}, TOO_LONG),
    ("words without end", {"fault": "chatter", "at": "mid", "only": "stream", "costly": True}, TOO_LARGE),
    ("words without end, unasked", {"fault": "chatter", "at": "mid", "sse": 1, "only": "plain"}, TOO_LARGE),
    ("a whole stream, unasked", {"fault": "cut", "at": "end", "sse": 1, "only": "plain"}, GOOD),
    ("half a stream, unasked", {"fault": "cut", "at": "mid", "sse": 1, "only": "plain"}, BROKEN),
    ("comments without end", {"fault": "nothings", "at": "mid", "costly": True}, (NONSENSE, STREAM_TOO_LARGE)),
]

# The same where no interceptor takes part: what an upstream answers is the client's, but not its redirects.
OTHERS_RELAYED = [(f"status {status}", {"fault": "status", "status": status}, outcome) for status, outcome in {
    **STATUSES, 204: None}.items() if outcome]
OTHERS_RELAYED += [
    ("status 429 with Retry-After", {"fault": "status", "status": 429, "after": 30}, refused(429, retry_after="30")),
    ("status 503 with Retry-After", {"fault": "status", "status": 503, "after": 1}, refused(503, retry_after="1")),
    ("heads without end that say 'wait'", {"fault": "continues"}, BROKEN),
    ("another protocol", {"fault": "upgrade"}, BROKEN),
    ("an error whose body hangs", {"fault": "error_hangs", "model": "hasty"}, CUT),
    ("words until time is up", {"fault": "drip", "at": "mid", "only": "stream", "short": True}, CUT),
]

# (what it is, the model, the outcome): before anything is sent
CONNECT = [
    ("nobody listens", "closed", BROKEN),
    ("a connection that is not made", "full", SILENT),
    ("a name that is none", "nameless", BROKEN),
    ("no TLS where it should be", "tls", BROKEN),
]

# The faults of the mock model, which is a plugin: fault → outcome (plain, stream)
MOCK = {
    "refuse": BROKEN, "hang": SILENT, "stall": SILENT, "cut": (NONSENSE, UNFINISHED), "reset": BROKEN,
    "garbage": NONSENSE, "flood": (TOO_LARGE, ENDLESS), "error_event": (
        Failure(500, "mock upstream: the model failed"), Failure(502, "mock upstream: the model failed")),
    "400": Failure(400, "refused so"), "429": Failure(429, "refused so", "rate_limit_exceeded"),
    "503": Failure(503, "refused so"),
}

MADE = {"create": 1, "run": 1, "destroy": 1}
DIED = {"create": 1, "run": 1, "die": 1}
FAILED = {"create_failed": 1}
UNUSED = {"create": 1, "destroy": 1}
NOT_MADE = "[sandbox unavailable] The sandbox could not be made."
IN_USE = "[sandbox unavailable] All sandboxes are in use, and none became free in time."

# (step, fault, the model that has such a sandbox, the code, what the model is told, what the journals say)
SANDBOX = [
    ("container create", "refuse", "create-refuse", "x=1", NOT_MADE, FAILED),
    ("container create", "limit", "create-limit", "x=1", IN_USE, FAILED),
    ("container create", "garbage", "create-garbage", "x=1", NOT_MADE, {}),
    ("container create", "a failure after the handle", "create-fails-late", "x=1", NOT_MADE, {**UNUSED, **FAILED}),
    ("container create", "slow", "create-slow", "print(7)", "7", MADE),
    ("run start", "refuse", "net", "refuse", "[sandbox unavailable] The sandbox failed.", MADE),
    ("run start", "limit", "net", "limit", "[sandbox unavailable] The sandbox is at its limit.", MADE),
    ("run start", "gone each time", "net", "gone_before", re.compile(r"^\[sandbox failed\] "),
     {"create": 3, "run": 3, "die": 3}),
    ("run", "slow", "net", "slow", "slowly", MADE),
    ("run", "an exception", "net", "raise", re.compile(r"ValueError"), MADE),
    ("run", "the container dies", "net", "die", re.compile(r"^so far\n\[sandbox failed\] "), DIED),
    ("run", "hang", "short-runs", "hang", re.compile(r"^so far\n\[timed out\] "), MADE),
    ("run", "cut", "net", "cut",
     "half o\n[sandbox failed] The sandbox failed while this ran: it may have had effects.", MADE),
    ("run", "output without end", "net", "flood", re.compile(
        r"\n\[output limit\] the run gave more than 10 MiB of output and was ended; print less$"), None),
    ("result", "garbage", "net", "garbage", re.compile(r"^ok "), MADE),
    ("result", "much of it", "net", "huge", re.compile(r"^0123456789.*\d{5}.*0123456789$", re.S), MADE),
    ("delete", "slow", "destroy-slow", "print(7)", "7", MADE),
]

# Faults that a gateway has so many times only: (step, fault, model, code, what the model is told, what the journals say)
SANDBOX_ONCE = [
    ("delete", "hang", "destroy-hang", "print(7)", "7", MADE),
    ("delete", "refuse twice", "destroy-refuse", "print(7)", "7", {**MADE, "destroy_failed": 2}),
    ("run start", "gone once", "net", "print(7)#gone_once", "7", {"create": 2, "run": 2, "die": 1, "destroy": 1}),
]
