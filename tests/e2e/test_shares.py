"""Two keys on one gateway: what one floods it with (large bodies, slow code, plugin calls that block threads) meets its
own share, the other is served meanwhile, and afterwards nothing is held: the figures in /metrics are back to 0."""
import pathlib

from client import Wire, body_of, chat, encode, post
from harness import BUILD, E2E, in_parallel, main, poll
from test_operations import A, B, KEYS, SCRAPER, metrics
from upstream import answer, chunk, code, events

FOLDER = str(BUILD / "tests" / "e2e")
MIB = 1 << 20


def soft_of(gateway):
    """The gateway's limit of open files, which it has raised to the hard one."""
    [line] = [one for one in pathlib.Path(f"/proc/{gateway.pid}/limits").read_text().splitlines() if "open files" in one]
    return int(line.split()[3])


class Shares(E2E):
    def check_nothing_held(self, gateway):
        """Once all clients have gone: this request for the metrics is the only thing there is."""
        expected = {"sandgate_memory_held_bytes": 0, "sandgate_worker_tasks": 0, "sandgate_requests_in_progress": 1}

        def figures():
            now = metrics(gateway, SCRAPER)
            return {name: now[name] for name in expected}
        poll(lambda: figures() == expected, lambda: f"nothing to be held: {figures()}")

    def wait_held(self, gateway, at_least):
        poll(lambda: metrics(gateway, SCRAPER)["sandgate_memory_held_bytes"] >= at_least, f"{at_least} bytes to be held")

    def padded(self, size):
        return body_of(text="x" * size, tools=())


class Memory(Shares):
    def budgeted(self, upstream=None, **more):
        gateway = self.serve(upstream or self.upstream(forever=answer("ok")), auth=KEYS, server={"memory_budget": "4MiB"}, **more)
        self.assertEqual(metrics(gateway, SCRAPER)["sandgate_memory_budget_bytes"], 4 * MIB)
        return gateway

    def test_a_flood_of_large_bodies_meets_its_own_share(self):
        gateway = self.budgeted()
        with Wire(gateway) as slow:  # announces much, sends little
            slow.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Authorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n{" % A.encode())
            self.wait_held(gateway, 1000000)
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/embeddings"):
                reply = post(gateway, path, self.padded(100000), key=A)
                self.assertEqual((reply.status, reply.get("retry-after")), (503, "1"), path)
                self.assertEqual(reply.error["message"], "The requests of this key hold 1048576 bytes, their share of "
                                 "server.memory_budget: try again later.")
            for size in (0, 100000, 900000):
                self.assertEqual(post(gateway, "/v1/chat/completions", self.padded(size), key=B).status, 200)
            self.assertEqual(chat(gateway, text="small", tools=(), key=A).status, 200, "a small one still fits")
        self.check_nothing_held(gateway)
        self.assertEqual(post(gateway, "/v1/chat/completions", self.padded(900000), key=A).status, 200)
        self.check_nothing_held(gateway)

    def test_what_will_never_fit_is_413(self):
        gateway = self.budgeted()
        for body in (self.padded(MIB), {**self.padded(MIB), "stream": True}):
            reply = post(gateway, "/v1/chat/completions", body, key=A)
            self.assertEqual((reply.status, reply.error["message"]),
                             (413, "This request needs more than 1048576 bytes, the most that one key may hold of "
                              "server.memory_budget."))
            self.assertIsNone(reply.get("retry-after"))
        self.check_nothing_held(gateway)

    def test_turns_and_streams_count_until_they_end(self):
        def endless(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": "y" * 5000}), end=False))
            return connection.wait_closed() and False
        gateway = self.budgeted(self.upstream(endless))
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True), fields=[f"Authorization: Bearer {A}"])
            stream = wire.stream()
            self.assertEqual(stream.status, 200)
            self.wait_held(gateway, 5000)
        self.check_nothing_held(gateway)

    def test_an_answer_that_outgrows_the_share_is_cut_with_an_error(self):
        def large(connection):
            connection.begin_stream()
            for _ in range(300):
                connection.chunk(events(chunk({"role": "assistant", "content": "y" * 5000}), end=False))
            connection.end()
            return True
        gateway = self.budgeted(self.upstream(large))
        reply = chat(gateway, "x", stream=True, key=A)
        self.assertEqual(reply.status, 200)
        failed = [event["error"]["message"] for event in reply.events if "error" in event]
        self.assertEqual(len(failed), 1, reply.events[-3:])
        self.assertIn("This request needs more than 1048576 bytes", failed[0])
        self.check_nothing_held(gateway)

    def test_of_a_stream_only_what_is_kept_counts(self):
        def chatty(connection):
            connection.begin_stream()
            piece = events(chunk({"role": "assistant", "content": "y"}, padding="z" * 1000), end=False) * 20
            for _ in range(100):  # two megabytes, of which 2,000 bytes are text
                connection.chunk(piece)
            connection.chunk(events(chunk({}, "stop")))
            connection.end()
            return True
        gateway = self.budgeted(self.upstream(chatty))
        reply = chat(gateway, "x", stream=True, key=A)
        self.assertEqual((reply.status, len(reply.stream_text)), (200, 2000))
        self.check_nothing_held(gateway)

    def test_failures_give_all_back(self):
        gateway = self.budgeted(self.upstream(forever=code("print(1)")))
        for body in (b"{", b'{"model":"none","messages":[]}', b'{"model":"mock","messages":[],"metadata":5}'):
            self.assertGreaterEqual(post(gateway, "/v1/chat/completions", body, key=A).status, 400)
        self.assertEqual(chat(gateway, "x", key=A).status, 200, "turns without end are ended")
        with Wire(gateway) as wire:
            wire.post(body_of("x"), fields=[f"Authorization: Bearer {A}"])
            wire.reset()
        self.check_nothing_held(gateway)

    def test_with_one_tenant_there_are_no_shares(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), server={"memory_budget": "4MiB"})
        self.assertEqual(post(gateway, "/v1/chat/completions", self.padded(3 * MIB)).status, 200)
        reply = post(gateway, "/v1/chat/completions", self.padded(4 * MIB))
        self.assertEqual(reply.status, 413)


class Descriptors(Shares):
    def serve_with(self, room, upstream, **options):
        """With so many descriptors more than a process of this many loops needs at least."""
        gateway = self.serve(upstream, auth=KEYS, **options)
        fixed = soft_of(gateway) - int(metrics(gateway, SCRAPER)["sandgate_descriptors_max"])
        gateway.stop()
        return self.serve(upstream, auth=KEYS, gateway_options={"prefix": ["prlimit", f"--nofile={fixed + room}"]}, **options)

    def test_idle_connections_give_way_and_busy_ones_never(self):
        upstream = self.upstream(lambda connection: connection.wait_closed() and False, forever=answer("ok"))
        gateway = self.serve_with(64, upstream)
        self.assertEqual(metrics(gateway, SCRAPER)["sandgate_descriptors_max"], 64)
        with Wire(gateway) as busy:
            busy.post(body_of(text="x", tools=()), fields=[f"Authorization: Bearer {A}"])
            upstream.next_request()
            idle = []
            for _ in range(100):  # three times as many as may be open
                idle.append(Wire(gateway))
                self.addCleanup(idle[-1].close)
                idle[-1].post(body_of(text="x", tools=()), fields=[f"Authorization: Bearer {B}"])
                self.assertEqual(idle[-1].answer().status, 200)
            self.assertLessEqual(metrics(gateway, SCRAPER)["sandgate_descriptors_used"], 64)
            self.assertEqual(idle[0].read_all(), b"", "the longest idle has gone")
            poll(lambda: metrics(gateway, SCRAPER)["sandgate_requests_in_progress"] == 2, "the busy one to be left alone")
        for wire in idle:
            wire.close()
        self.check_nothing_held(gateway)

    def hold(self, gateway, count, data):
        """So many clients without a key, who send that and stay."""
        wires = []
        for _ in range(count):
            wires.append(Wire(gateway))
            self.addCleanup(wires[-1].close)
            wires[-1].send(data)
        return wires

    def check_served_beside(self, data):
        """Three times as many clients as may be open hold what they can with `data`; those with a key are served all the same."""
        upstream = self.upstream(lambda connection: connection.wait_closed() and False, forever=answer("ok"))
        gateway = self.serve_with(64, upstream)
        with Wire(gateway) as busy:
            busy.post(body_of(text="x", tools=()), fields=[f"Authorization: Bearer {A}"])
            upstream.next_request()
            held = self.hold(gateway, 3 * 32, data)
            for _ in range(8):
                reply = chat(gateway, text="x", tools=(), key=B)
                self.assertEqual((reply.status, reply.text), (200, "ok"))
                self.assertLessEqual(metrics(gateway, SCRAPER)["sandgate_descriptors_used"], 64)
                poll(lambda: metrics(gateway, SCRAPER)["sandgate_requests_in_progress"] == 2,
                     "the busy one, and the asking: what was answered may still be counted for a moment")
            self.assertEqual(len(held[0].read_all().split(b"HTTP/1.1 503 ")), 1, "the one held longest had its place, and lost it")
        for wire in held:
            wire.close()
        self.check_nothing_held(gateway)

    def test_half_heads_without_a_key_give_way(self):
        self.check_served_beside(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")

    def test_clients_who_send_nothing_give_way(self):
        self.check_served_beside(b"")

    def test_bodies_that_were_refused_give_way(self):
        for path in (b"/v1/chat/completions", b"/nowhere"):
            with self.subTest(path=path):
                self.check_served_beside(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{" % path)

    def test_a_request_for_whose_transfer_no_descriptor_is_left_is_told_to_come_again(self):
        def waits(connection):
            return connection.wait_closed() and False
        script = [turn for i in range(4) for turn in (code("print(1)", f"c{i}"), answer("ok"))]
        upstream = self.upstream(*script, forever=waits)
        gateway = self.serve_with(64, upstream, sandboxes=[{"name": "box", "plugin": "local"}])
        gateway.fds_before += 4 * 9
        for i in range(4):  # boxes, of nine descriptors each
            self.assertEqual(chat(gateway, "x", f"s{i}", key=B).status, 200)
        wires, body = [], encode(body_of(text="x", tools=()))
        for _ in range(17):  # each would be a client's descriptor and one more: two too many
            wires.append(Wire(gateway))
            self.addCleanup(wires[-1].close)
            wires[-1].sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (A.encode(), len(body)))
        poll(lambda: metrics(gateway, SCRAPER)["sandgate_requests_in_progress"] == 18, "all to have begun")
        for wire in wires:
            wire.sock.sendall(body)
        line = gateway.wait_event("request", lambda line: line["status"] == "503")
        self.assertEqual(line["message"], "The gateway has no room for another connection: try again later.")
        for wire in wires:
            wire.close()


class Threads(Shares):
    def post_all(self, gateway, bodies):
        """On a connection of its own each, for their clients to leave."""
        wires = []
        for body in bodies:
            wires.append(Wire(gateway))
            self.addCleanup(wires[-1].close)
            wires[-1].post(body, fields=[f"Authorization: Bearer {A}"])
        return wires

    def test_a_flood_of_slow_code_runs_in_its_share(self):
        gateway = self.serve(rules=[{"when": "slow", "fault": "hang"}], auth=KEYS, server={"workers": 4})
        wires = self.post_all(gateway, [body_of("slow", f"s{i}") for i in range(6)])
        gateway.journal.wait("create", 6)
        gateway.journal.wait("run", 2)
        replies = in_parallel(4, lambda i: chat(gateway, "print(6 * 7)", f"t{i}", key=B))
        self.assertEqual([r.text for r in replies], ["The result is: 42\n"] * 4)
        self.assertEqual(len(gateway.journal.of("run")), 2 + 4, "two of the six, and the other's")
        for wire in wires:
            wire.close()
        gateway.wait_events("request", 10)
        self.check_nothing_held(gateway)
        self.assertEqual(chat(gateway, "print(1)", "s0", key=A).text, "The result is: 1\n")

    def test_a_run_that_had_not_begun_at_the_end_may_be_tried_again(self):
        for workers, waits, second in ((2, "for the key's share of runs", "t"), (4, "for its turn in the container", "s")):
            gateway = self.serve(rules=[{"when": "slow", "delay": "1h"}], auth=KEYS,
                                 server={"workers": workers, "drain": "100ms"})
            wires = self.post_all(gateway, [body_of("slow", "s")])
            gateway.journal.wait("run")
            wires += self.post_all(gateway, [body_of("slow", second)])
            poll(lambda g=gateway: metrics(g, SCRAPER)["sandgate_requests_in_progress"] == 3, "both to be in progress")
            poll(lambda g=gateway: len(g.upstream_journal.entries()) == 2, "both turns")
            gateway.signal()
            replies = [wire.answer() for wire in wires]
            self.assertEqual([r.status for r in replies], [424, 503], waits)
            self.assertEqual([r.error["code"] == "failed_after_run" for r in replies], [True, False], waits)
            self.assertEqual([r.get("x-should-retry") for r in replies], ["false", None], waits)
            gateway.stop(quiet=False)
            lines = {e["status"]: e["runs"] for e in gateway.events("request") if e["path"] != "/metrics"}
            self.assertEqual(lines, {"424": "1", "503": "0"}, waits)
            self.assertEqual(len(gateway.journal.of("run")), 1, waits)

    def test_a_flood_of_calls_that_block_threads_keeps_to_its_share(self):
        gate, journal = pathlib.Path(self.path("gate")), pathlib.Path(self.path("journal"))
        self.addCleanup(gate.touch)
        gateway = self.serve(self.upstream(forever=answer("ok")), auth=KEYS, server={"workers": 4, "plugin_path": [FOLDER]},
                             interceptors=[{"plugin": "rogue", "gate": str(gate), "journal": str(journal)}])
        blocking = body_of(text="ROGUE:block", tools=())
        wires = self.post_all(gateway, [blocking] * 2)
        poll(lambda: journal.exists() and len(journal.read_text().splitlines()) == 2, "two threads to be blocked")
        wires += self.post_all(gateway, [blocking] * 6)
        poll(lambda: metrics(gateway, SCRAPER)["sandgate_worker_tasks"] == 8, "the others to wait")
        replies = in_parallel(4, lambda i: chat(gateway, text="x", tools=(), key=B))
        self.assertEqual([r.text for r in replies], ["ok"] * 4)
        self.assertEqual(metrics(gateway, SCRAPER)["sandgate_worker_tasks"], 8, "all of the first still block or wait")
        for wire in wires[4:]:
            wire.close()  # four of those that wait
        poll(lambda: metrics(gateway, SCRAPER)["sandgate_worker_tasks"] == 4, "those that left to be taken back")
        gate.touch()
        self.assertEqual([wire.answer().status for wire in wires[:4]], [200] * 4)
        self.check_nothing_held(gateway)
        self.assertEqual(journal.read_text().count("request block"), 4, "what was taken back never ran")


if __name__ == "__main__":
    main()
