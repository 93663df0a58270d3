"""Memory that runs out, in the gateway, in the bytes that it may hold, and in a sandbox.

The gateway's allocations fail one after the other (support/failing_alloc.c): for every n the n-th of a request does, from
the client's connection over the upstream's to the last byte written. Either the request fails or succeeds as others do and
the next one works, or the gateway ends: by abort(), having said "out of memory", with nothing left behind. It never answers
or asks with half a text, and never crashes. STRIDE in the environment is how far apart the n are."""
import http.client
import json
import os
import signal
import subprocess

import descriptors
from client import body_of, chat, encode
from failing_alloc import FOR_GOOD, FailingAlloc
from fault_bench import Reply, check_shape, read_reply
from faulty import FaultyUpstream, wish
from harness import E2E, PATIENCE, descendants, main, poll, process_facts
from upstream import answer, code

STRIDE = int(os.environ.get("STRIDE", "5"))
SAID = "sandgate: out of memory"
LAST_LINES = 8  # other threads may have their say until the process is gone
LARGE = "x" * (300 << 10)  # more than any buffer that is small


class Strict(FaultyUpstream):
    """Remembers bodies that came whole and are no JSON."""

    def __init__(self):
        super().__init__()
        self.broken = []

    def serve_turn(self, connection):
        body = connection.request.body
        if len(body) < int(connection.request.get("content-length")):
            return False  # the gateway ended in the middle
        try:
            json.loads(body)
        except ValueError:
            self.broken.append(body[-200:])
            return False
        return super().serve_turn(connection)


class Gateway(E2E):
    """A gateway whose memory runs out again and again; where it has ended another one takes its place."""

    def setUp(self):
        super().setUp()
        self.up = Strict()
        self.upstreams.append(self.up)
        self.started = self.ended = self.failed = self.good = 0

    def start(self, plugin):
        self.switch = FailingAlloc(self.path("switch"))
        gateway = self.gateway({
            "auth": {"mode": "none"}, "upstreams": [{"name": "up", "base_url": self.up.url + "/v1", "models": ["mock"]}],
            "sandboxes": [{"name": "box", "plugin": plugin}],
            "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]},
            upstream_ports=[self.up.port], env=self.switch.environment())
        self.started += 1
        self.check_next(gateway)
        return gateway

    def ask(self, gateway, stream, more, **words):
        """Whatever comes back; a connection that is cut is an answer, too."""
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        try:
            return self.ask_on(connection, stream, more, **words)
        finally:
            connection.close()

    def ask_on(self, connection, stream, more, **words):
        try:
            body = body_of(text=wish(**words), stream=stream, **more)
            connection.request("POST", "/v1/chat/completions", encode(body), {"Content-Type": "application/json"})
            return read_reply(connection)
        except ConnectionError as problem:
            return Reply(cut=repr(problem))

    def check_next(self, gateway):
        for stream in (False, True):
            reply = self.ask(gateway, stream, {})
            check_shape(self, reply)
            self.assertEqual(reply.status, 200, f"{reply}\n{gateway.log()[-3000:]}")
            self.assertEqual(reply.stream_text if stream else reply.text, "Done: 42", reply)

    def has_ended(self, gateway, reply):
        """A gateway that gave up is gone soon behind a cut answer; behind a whole one it may still fall."""
        try:
            gateway.process.wait(PATIENCE if reply.status is None else 0.01)
        except subprocess.TimeoutExpired:
            self.assertIsNotNone(reply.status, "an answer, or the gateway's end:\n" + gateway.log())
        return gateway.process.poll() is not None

    def goes_on(self, gateway):
        """The next request works, and nothing of the last one is left; or the gateway fell behind its answer."""
        try:
            self.check_next(gateway)
            gateway.wait_quiet()
        except AssertionError:
            try:  # its connections are reset a moment before it has ended
                gateway.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                pass
            if gateway.process.poll() is None:
                raise
        gateway.check_sanitizers()
        return gateway.process.poll() is None

    def check_ended(self, gateway, family):
        """It said why, and nothing that it had started is left."""
        code = gateway.wait_end()
        gateway.stopped = True
        self.gateways.remove(gateway)
        self.assertEqual(code, -signal.SIGABRT, gateway.log()[-6000:])
        self.assertIn(SAID, gateway.lines[-LAST_LINES:], gateway.log()[-6000:])
        poll(lambda: not gateway.left_of(family), lambda: f"processes {gateway.left_of(family)} to end", 20)
        self.ended += 1

    def check_reply(self, reply):
        """An answer that is whole, and good or an error."""
        if reply.cut is not None and reply.is_stream:
            return  # the client sees that
        check_shape(self, reply)
        if reply.is_stream:
            is_error = "error" in reply.events[-2]
        else:
            is_error = "error" in reply.json
            self.assertEqual(is_error, reply.status != 200, reply)
        self.failed += is_error
        self.good += not is_error

    def sweep(self, plugin, stride, many=1, more=None, **words):
        gateway = self.start(plugin)
        self.switch.restart()
        self.ask(gateway, False, more or {}, **words)
        last = self.switch.count + 16  # a request does not always need the same
        for nth in range(1, last, stride):
            for stream in (False, True):
                family = descendants(gateway.pid, process_facts())
                self.switch.fail(nth, many)
                reply = self.ask(gateway, stream, more or {}, **words)
                self.switch.heal()
                with self.subTest(nth=nth, stream=stream, many=many):
                    if not self.has_ended(gateway, reply):
                        self.check_reply(reply)
                    if not self.goes_on(gateway):
                        self.check_ended(gateway, family)
                        gateway = self.start(plugin)
        self.assertEqual(self.up.broken, [], "bodies that were sent")
        self.assertGreater(self.ended + self.failed, 0, "something failed")
        self.measured(f"{last} allocations; gateways {self.started}, ended {self.ended}, errors {self.failed}, "
                      f"good {self.good}", 0)

    def test_a_connection_that_cannot_be_waited_for_is_not_closed_without_a_word(self):
        """Its client has not sent anything yet. Each has another descriptor, for which a loop needs memory the first time."""
        gateway, held = self.start("mock"), []
        for nth in range(1, 13):
            family = descendants(gateway.pid, process_facts())
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
            held.append(connection)
            self.switch.fail(nth)
            try:
                connection.connect()
                ours = {connection.sock.getsockname()[1]}
                poll(lambda: self.switch.failed or "towards" in descriptors.socket_kinds(gateway.pid, ours),
                     "the connection to be accepted")
            except ConnectionError:
                pass  # it has ended already, as the question finds
            reply = self.ask_on(connection, False, {})
            self.switch.heal()
            with self.subTest(nth=nth):
                if self.has_ended(gateway, reply):
                    self.check_ended(gateway, family)
                    gateway = self.start("mock")
                else:
                    self.check_reply(reply)
        for connection in held:
            connection.close()
        self.assertGreater(self.ended, 0)

    def test_every_allocation_of_a_request_fails_once(self):
        self.sweep("mock", STRIDE)

    def test_memory_stays_away_from_any_allocation_on(self):
        self.sweep("mock", 4 * STRIDE, many=FOR_GOOD)

    def test_allocations_for_large_texts_fail(self):
        """Large buffers have limits, and end with an error of the request where memory does."""
        self.sweep("mock", 2 * STRIDE, more={"user": LARGE}, say="word" * 1000, code="print('y'*60000)")

    def test_nothing_of_the_local_sandbox_outlives_a_gateway_without_memory(self):
        self.sweep("local", 12 * STRIDE)


class Box(E2E):
    """Code in a real box that takes memory without end: the model is told, the next request works, nothing is left."""

    SOURCES = {
        "objects": ("hog = []\nwhile True: hog.append(bytearray(1 << 20))", r"MemoryError|ran out of memory"),
        "pages": ("import mmap\nhog = []\nwhile True:\n    m = mmap.mmap(-1, 16 << 20)\n    hog.append(m)\n"
                  "    for i in range(0, len(m), 4096): m[i] = 1", r"ran out of memory|Cannot allocate memory"),
        "children": ("import os, mmap, time\nwhile True:\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                     "        for i in range(0, len(m), 4096): m[i] = 1\n        time.sleep(100)",
                     r"ran out of memory|were killed for the memory|BlockingIOError"),
    }

    def test_code_that_takes_memory_without_end(self):
        for kind, (source, told) in self.SOURCES.items():
            for stream in (False, True):
                with self.subTest(kind, stream=stream):
                    upstream = self.upstream(code(source, "c0"), answer("ok"), code("print(6 * 7)", "c1"), answer("ok"))
                    gateway = self.gateway({
                        "auth": {"mode": "none"}, "upstreams": [
                            {"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}],
                        "sandboxes": [{"name": "box", "plugin": "local", "memory": "128MiB", "disk": "32MiB",
                                       "run_timeout": "20s"}],
                        "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]}, upstream_ports=[upstream.port])
                    for _ in range(2):
                        reply = chat(gateway, "x", stream=stream)
                        self.assertEqual((reply.status, reply.stream_text if stream else reply.text), (200, "ok"))
                    results = [[m["content"] for m in upstream.requests[i].json["messages"] if m["role"] == "tool"][0]
                               for i in (1, 3)]
                    self.assertRegex(results[0], told)
                    self.assertEqual(results[1].strip(), "42")
                    gateway.stop()


if __name__ == "__main__":
    main()
