"""Runs the rows of a fault table on lanes, each a gateway with all that the rows need behind it, several side by side,
with the same end check after every row: nothing of it is left, and the next request works, streaming and not.

A row is a client's whole visit. `visit(lane)` makes it and checks what the client got; the bench checks the rest. A lane
on which a row failed serves no other. In the environment: FAULT_ROWS, a regular expression, selects rows by their names;
FAULT_LANES is how many lanes there are; FAULT_TIMES prints what each row took."""
import collections
import http.client
import os
import pathlib
import queue
import re
import sys
import threading
import time
import traceback

from client import Answer, Wire, body_of, encode
from faulty import Closed, FaultyUpstream, Full, Other, wish
from harness import PATIENCE, E2E, Journal, poll

KEY, SCHEMA = "key-of-the-bench", {"Content-Type": "application/json"}
SHORT_HEADER = {"X-Stainless-Timeout": "11"}  # less 10 s: the request has one second
SANDBOXES = {  # by the name of the model that uses it
    "net": {},
    "hasty": {},
    "create-refuse": {"create_fault": "refuse"},
    "create-limit": {"create_fault": "limit"},
    "create-garbage": {"create_fault": "garbage"},
    "create-fails-late": {"create_fault": "fail_after_handle"},
    "create-slow": {"create_delay": "150ms"},
    "create-late": {"create_delay": "1s"},
    "create-hang": {"create_fault": "hang"},
    "create-hang-late": {"create_fault": "hang_after_handle"},
    "destroy-refuse": {"destroy_fault": "refuse", "destroy_fault_count": 2},
    "destroy-slow": {"destroy_delay": "200ms"},
    "destroy-hang": {"destroy_fault": "hang", "destroy_fault_count": 1},
    "short-runs": {"run_timeout": "300ms"},
    "touch-refuse": {"touch_fault": "refuse"},
    "touch-hang": {"touch_fault": "hang"},
    "touch-gone": {"touch_fault": "gone"},
}
RULES = [{"when": "gone_once", "fault": "gone_before", "times": 1},
         {"when": "for_a_while", "stdout": "7\n", "delay": "1100ms"},
         {"when": "die", "stdout": "so far\n", "fault": "die"}, {"when": "gone_before", "fault": "gone_before", "times": 0},
         {"when": "hang", "stdout": "so far\n", "fault": "hang"}, {"when": "flood", "fault": "flood"},
         {"when": "cut", "stdout": "half of this", "fault": "cut"}, {"when": "garbage", "fault": "garbage"},
         {"when": "limit", "fault": "limit"}, {"when": "refuse", "fault": "refuse"},
         {"when": "slow", "stdout": "slowly\n", "delay": "150ms"}, {"when": "raise", "error_name": "ValueError"},
         {"when": "huge", "stdout": "0123456789" * 3000}]
HASTY = {"first_byte_timeout": "700ms", "silence_timeout": "700ms"}
MOCK_FAULTS = ("refuse", "hang", "stall", "cut", "reset", "garbage", "flood", "error_event")


def mock_script():
    """Entries of the mock upstream: 'MOCK fault turn', as the user's message says."""
    script = []
    for turn in (1, 2):
        for fault in MOCK_FAULTS:
            script.append({"when": f"MOCK {fault} {turn}", "turn": turn, "fault": fault, "text": "Words of a model."})
        for status in (400, 429, 503):
            script.append({"when": f"MOCK {status} {turn}", "turn": turn, "status": status, "text": "refused so"})
    script.append({"when": "MOCK", "turn": 1, "call": "code_interpreter", "arguments": '{"code": "print(42)"}'})
    script.append({"when": "MOCK", "turn": 2, "text": "Done: 42"})
    return script


class Lane:
    """One gateway with everything that the rows need behind it, and its end checks."""

    def __init__(self, case):
        self.case = case
        self.up, self.closed, self.full, self.other = FaultyUpstream(), Closed(), Full(), Other()
        self.read = {}  # of the journals
        servers = [self.up, self.closed, self.full, self.other]
        case.upstreams += servers
        self.journals = {name: Journal(case.path(f"{name}.journal")) for name in (*SANDBOXES, "mock")}
        self.gateway = case.gateway(self.config(), journals=list(self.journals.values()), upstream_ports=[
            server.port for server in servers])
        self.rest()

    def config(self):
        base = f"{self.up.url}/v1"
        upstreams = [{"name": name, "base_url": base, "models": [name],
                      **(HASTY if name == "hasty" else {})}
                     for name in SANDBOXES]
        upstreams += [
            {"name": "closed", "base_url": f"http://127.0.0.1:{self.closed.port}", "models": ["closed"]},
            {"name": "full", "base_url": f"http://127.0.0.1:{self.full.port}", "models": ["full"], "connect_timeout": "300ms"},
            {"name": "nameless", "base_url": "http://no-such-host.invalid", "models": ["nameless"], "connect_timeout": "2s"},
            {"name": "tls", "base_url": f"https://127.0.0.1:{self.other.port}", "models": ["tls"]},
            {"name": "mock", "plugin": "mock", "models": ["mock"], "surfaces": ["chat"], "script": mock_script()},
            {"name": "hasty-mock", "plugin": "mock", "models": ["hasty-mock"], "surfaces": ["chat"], "script": mock_script(),
             **HASTY}]
        boxes = [{"name": name, "plugin": "mock", "journal": str(self.journals[name].path), "rules": RULES, **options}
                 for name, options in (*SANDBOXES.items(), ("mock", {}))]
        chain = [{"plugin": "code_interpreter", "name": f"of-{name}", "sandbox": name, "upstreams": [name]}
                 for name in (*SANDBOXES, "mock")]
        chain.append({"plugin": "code_interpreter", "name": "of-others", "sandbox": "net",
                      "upstreams": ["closed", "full", "nameless", "tls", "hasty-mock"]})
        return {"auth": {"mode": "keys", "keys": [{"name": "bench", "key": KEY}]}, "upstreams": upstreams,
                "sandboxes": boxes, "interceptors": chain, "sessions": {"idle_timeout": "2s"}}

    # ---- what a row does ----

    def ask(self, mode, model="net", headers=None, text=None, tools=True, session=None, key=KEY):
        """One chat request; modes: plain, stream; with `tools` it is intercepted, else relayed."""
        body = body_of(text=text, model=model, stream=mode == "stream", session=session,
                       tools=({"type": "code_interpreter"},) if tools else ())
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=PATIENCE * 2)
        try:
            connection.request("POST", "/v1/chat/completions", encode(body), {
                **SCHEMA, "Authorization": f"Bearer {key}", **(headers or {})})
            return read_reply(connection)
        finally:
            connection.close()

    def wire(self):
        return Wire(self.gateway, PATIENCE * 2)

    def wish(self, mode, model="net", headers=None, tools=True, session=None, **words):
        return self.ask(mode, model, headers, wish(**words), tools, session)

    # ---- the end check ----

    def counts(self, journal):
        """What stands in a journal: how often each operation, and how many containers there are; read when it has grown."""
        try:
            size = os.stat(journal.path).st_size
        except FileNotFoundError:
            return {}, 0
        if journal not in self.read or self.read[journal][0] != size:
            lines = journal.path.read_bytes()[:size].decode().splitlines()
            live = [int(line.rpartition("live=")[2]) for line in lines if "live=" in line]
            self.read[journal] = size, collections.Counter(line.split(" ", 1)[0] for line in lines), live[-1] if live else 0
        return self.read[journal][1:]

    def verbs(self):
        """How often each operation stands in the journals."""
        whole = collections.Counter()
        for journal in self.journals.values():
            whole.update(self.counts(journal)[0])
        return dict(whole)

    def alive(self):
        """Containers that exist now, in all sandboxes."""
        return sum(self.counts(journal)[1] for journal in self.journals.values())

    def children(self):
        """Processes that the gateway has made."""
        found = []
        for task in pathlib.Path(f"/proc/{self.gateway.pid}/task").iterdir():
            found += (task / "children").read_text().split()
        return found

    def is_quiet(self):
        """No more descriptors than at rest."""
        return self.gateway.fds() <= self.fds_at_rest

    def rest(self):
        """What is there when nothing is going on."""
        self.fds_at_rest = self.gateway.fds()
        self.before = self.verbs()

    def grown(self):
        now = self.verbs()
        return {verb: count - self.before.get(verb, 0) for verb, count in now.items() if count != self.before.get(verb, 0)}

    def check_end(self):
        """Nothing is left, and the next request works, streaming and not."""
        case, gateway = self.case, self.gateway
        poll(lambda: self.alive() == 0, lambda: f"no container, not {self.alive()}: {self.verbs()}")
        poll(self.is_quiet, lambda: f"{self.fds_at_rest} descriptors:\n" + "\n".join(gateway.fd_targets()))
        case.assertEqual(self.children(), [], "processes")
        gateway.check_sanitizers()
        for mode in ("plain", "stream"):
            check_good(case, self.wish(mode), "Done: 42")
        poll(lambda: self.alive() == 0, "the container of the next request to end")
        self.before = self.verbs()


class Reply:
    """What came back, whole or not."""

    def __init__(self, status=None, fields=(), body=b"", cut=None):
        self.status, self.fields, self.body, self.cut = status, list(fields), body, cut

    get = Answer.get
    json = Answer.json
    error = Answer.error
    text = Answer.text
    finish = Answer.finish
    events = Answer.events
    stream_text = Answer.stream_text

    @property
    def is_stream(self):
        return (self.get("content-type") or "").startswith("text/event-stream")

    def __repr__(self):
        return f"status {self.status}, cut: {self.cut}, fields {self.fields}, body {self.body[:300]!r} … {self.body[-300:]!r}"


def read_reply(connection):
    try:
        response = connection.getresponse()
    except (http.client.HTTPException, ConnectionError) as problem:
        return Reply(cut=repr(problem))
    body, cut = bytearray(), None
    try:
        while piece := response.read1(65536):
            body += piece
        if response.length:  # read1() does not say that the end was too early
            cut = f"{response.length} bytes are missing"
    except http.client.IncompleteRead as problem:
        body, cut = body + problem.partial, repr(problem)
    except ConnectionError as problem:
        cut = repr(problem)
    return Reply(response.status, response.getheaders(), bytes(body), cut)


def check_shape(case, reply):
    """What holds for every answer that ended as answers do."""
    case.assertIsNone(reply.cut, reply)
    case.assertRegex(reply.get("x-request-id") or "", r"^req_[A-Za-z0-9_-]{20,}$", reply)
    if not reply.is_stream:
        case.assertEqual(reply.get("content-type"), "application/json", reply)
        return
    case.assertEqual(reply.status, 200, reply)
    events = reply.events
    case.assertEqual((events[-1], events.count("[DONE]")), ("[DONE]", 1), reply)
    case.assertTrue(reply.body.endswith(b"\n\n"), reply)
    case.assertNotIn(b'"code_interpreter"', reply.body, "no call of ours is shown")


def check_good(case, reply, text):
    """The whole answer with that text (or one that matches it)."""
    check_shape(case, reply)
    case.assertEqual(reply.status, 200, reply)
    said = reply.stream_text if reply.is_stream else reply.text
    if isinstance(text, re.Pattern):
        case.assertRegex(said, text)
    else:
        case.assertEqual(said, text, reply)
    if reply.is_stream:
        case.assertEqual([e for e in reply.events[:-1] if "error" in e], [], reply)
        reasons = [e["choices"][0].get("finish_reason") for e in reply.events[:-1] if e["choices"]]
        case.assertEqual(([r for r in reasons if r], reasons[-1]), (["stop"], "stop"), reply)
    else:
        case.assertEqual(reply.finish, "stop", reply)


def check_failed(case, reply, status, message, ran=False, said=None, code=None):
    """An error: as an answer, or as the last event of a stream that had begun (`said`: with what text). After a run it
    must be one that client libraries do not repeat."""
    check_shape(case, reply)
    if reply.is_stream:
        case.assertIn("error", reply.events[-2], reply)
        error = reply.events[-2]["error"]
        if said is not None:
            case.assertEqual(reply.stream_text, said, reply)
    else:
        case.assertIn("error", reply.json, reply)
        error = reply.error
        case.assertEqual(reply.status, 424 if ran else status, reply)
        case.assertEqual(reply.get("x-should-retry"), "false" if ran else None, reply)
    case.assertEqual(set(error), {"message", "type", "param", "code"}, reply)
    if isinstance(message, re.Pattern):
        case.assertRegex(error["message"], message)
    else:
        case.assertEqual(error["message"], message, reply)
    case.assertEqual(error["code"] == "failed_after_run", ran, reply)
    if code is not None and not ran:
        case.assertEqual(error["code"], code, reply)


class Row:
    """One line of the table: at which step of a request, what fails, in which way the client asks, and the visit."""

    def __init__(self, step, fault, mode, visit, grown=None):
        self.name = f"{step}, {fault}, {mode}"
        self.step, self.fault, self.mode, self.visit = step, fault, mode, visit
        self.grown = grown  # what the sandboxes' journals must have grown by


class Bench(E2E):
    """A test case that runs rows on lanes."""

    LANES = 5

    def setUp(self):
        self.over = threading.Event()  # a gateway lives no longer than the thread that has started it
        self.addCleanup(self.over.set)
        super().setUp()

    def run_rows(self, rows):
        """All rows that are selected; those that fail are told with their names."""
        wanted = os.environ.get("FAULT_ROWS")
        rows = [row for row in rows if not wanted or re.search(wanted, row.name)]
        self.assertEqual(len({row.name for row in rows}), len(rows), "each row has a name of its own")
        waiting, failures, lock, ended = queue.Queue(), [], threading.Lock(), queue.Queue()
        for row in rows:
            waiting.put(row)
        began = time.monotonic()

        def lane_main():
            try:
                self.lane_run(waiting, failures, lock)
            except BaseException:  # the lane itself, not a row
                with lock:
                    failures.append(("a lane", traceback.format_exc()))
            ended.put(True)
            self.over.wait()
        lanes = min(int(os.environ.get("FAULT_LANES", self.LANES)), len(rows))
        for _ in range(lanes):
            threading.Thread(target=lane_main, daemon=True).start()
        for _ in range(lanes):
            ended.get()
        self.measured(f"{len(rows)} rows", time.monotonic() - began)
        for name, problem in sorted(failures):
            with self.subTest(name):
                self.fail(problem)

    def lane_run(self, waiting, failures, lock):
        lane = None
        while True:
            try:
                row = waiting.get_nowait()
            except queue.Empty:
                return
            if lane is None:
                with lock:
                    lane = Lane(self)
            began = time.monotonic()
            try:
                row.visit(lane)
                if row.grown is not None:
                    poll(lambda: lane.alive() == 0, "the row's containers to end")
                    touches = {} if "touch" in row.grown else {"touch"}  # on a busy machine a session needs them
                    grown = {verb: count for verb, count in lane.grown().items() if verb not in touches}
                    self.assertEqual(grown, row.grown, "what the sandboxes did")
                lane.check_end()
            except Exception:
                with lock:
                    failures.append((row.name, traceback.format_exc() + "\n" + lane.gateway.log()[-2500:]))
                lane = None  # the next row gets a fresh one
            if os.environ.get("FAULT_TIMES"):
                print(f"{time.monotonic() - began:7.2f} s  {row.name}", file=sys.stderr)
