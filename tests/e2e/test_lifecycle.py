"""The life of the process: its start and what can be wrong with it, signals, draining, and what is left: nothing."""
import os
import pwd
import resource
import signal
import socket
import subprocess
import threading
import unittest

from client import TOOL, Wire, body_of, chat, get
from harness import BINARY, BUILD, E2E, PATIENCE, main, poll, run, to_yaml
from upstream import answer, code, streamed

MOCK = {"auth": {"mode": "none"}, "upstreams": [{"name": "mock", "plugin": "mock", "models": ["mock"]}]}


class Lifecycle(E2E):
    def refused_start(self, config, **options):
        """What a gateway that cannot start says, and its exit code."""
        gateway = self.gateway(config, serve=False, **options)
        gateway.stopped = True
        code_ = gateway.wait_end()
        gateway.check_sanitizers()
        return code_, gateway

    def test_it_says_where_it_serves_and_ends_cleanly(self):
        gateway = self.serve()
        serving = gateway.wait_event("serving")
        self.assertEqual(serving["address"], f"127.0.0.1:{gateway.port}")
        self.assertEqual((serving["upstreams"], serving["interceptors"], serving["level"]), ("1", "1", "info"))
        self.assertGreaterEqual(int(serving["loops"]), 1)
        gateway.stop()
        self.assertEqual([e["event"] for e in gateway.events() if e["event"] in ("serving", "draining", "stopped")],
                         ["serving", "draining", "stopped"])
        self.assertEqual(gateway.wait_event("draining")["requests"], "0")

    def test_interrupt_ends_it_like_terminate_and_hangup_does_not(self):
        gateway = self.serve()
        gateway.signal(signal.SIGHUP)
        gateway.wait_event("reloaded")
        self.assertEqual(get(gateway, "/health/live").status, 200)
        gateway.signal(signal.SIGINT)
        gateway.wait_event("stopped")

    def test_a_hangup_while_it_starts_neither_ends_it_nor_is_lost(self):
        """The configuration is a pipe: whoever has opened it for reading is at its start, and waits."""
        pipe = self.path("config.yaml")
        os.mkfifo(pipe)
        gateway = self.gateway(MOCK, serve=False, arguments=("--listen", "127.0.0.1:0", "--config", pipe))
        with open(pipe, "w", encoding="utf-8") as file:
            gateway.signal(signal.SIGHUP)
            file.write(to_yaml(MOCK) + "\n")
        gateway.wait_event("serving")
        gateway.fds_before = gateway.fds()
        with open(pipe, "w", encoding="utf-8") as file:  # it reads again
            file.write(to_yaml(MOCK) + "\n")
        gateway.wait_event("reloaded")

    def test_a_request_in_progress_is_finished_before_the_end(self):
        gateway = self.serve(self.upstream(code("slow"), answer("finished")), rules=[{"when": "slow", "delay": "1s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x"))
            gateway.journal.wait("run")
            gateway.signal()
            self.assertEqual(gateway.wait_event("draining")["requests"], "1")
            self.assertEqual(wire.answer().text, "finished")
        gateway.stop(quiet=False)
        self.assertEqual(gateway.wait_event("request")["status"], "200")

    @staticmethod
    def is_refused(gateway):
        try:
            with Wire(gateway) as late:
                late.send(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return late.sock.recv(1) == b""
        except OSError:
            return True

    def test_while_it_drains_nothing_new_is_taken(self):
        gateway = self.serve(self.upstream(code("slow"), answer("x")), rules=[{"when": "slow", "delay": "1s"}])
        with Wire(gateway) as busy:
            busy.post(body_of("x"))
            gateway.journal.wait("run")
            with Wire(gateway) as idle:
                gateway.signal()
                gateway.wait_event("draining")
                self.assertEqual(idle.read_all(), b"", "an idle connection is closed")
            poll(lambda: self.is_refused(gateway), "every loop to take nothing new")
            self.assertEqual(busy.answer().status, 200)
        gateway.stop(quiet=False)

    def test_what_does_not_end_in_time_is_cancelled_and_its_container_deleted(self):
        gateway = self.serve(self.upstream(code("forever")), rules=[{"when": "forever", "delay": "1h"}],
                             server={"drain": "200ms"})
        with Wire(gateway) as wire:
            wire.post(body_of("x"))
            gateway.journal.wait("run")
            gateway.signal()
            wire.read_all()
        gateway.stop(quiet=False)
        self.assertEqual(gateway.journal.live()[-1], 0)

    def cut_short(self, *turns, ready, **body):
        """The answer to a request that the end of the gateway finds at work, and its line in the log."""
        gateway = self.serve(self.upstream(*turns), rules=[{"when": "forever", "delay": "1h"}], server={"drain": "100ms"})
        with Wire(gateway) as wire:
            wire.post(body_of("x", **body))
            ready(gateway)
            gateway.signal()
            reply = wire.answer()
        gateway.stop(quiet=False)
        return reply, gateway.wait_event("request")

    def test_a_client_hears_that_its_code_had_run_when_the_gateway_ended(self):
        message = "The gateway is shutting down."
        reply, line = self.cut_short(code("forever"), ready=lambda gateway: gateway.journal.wait("run"))
        self.assertEqual((reply.status, reply.error["message"], reply.error["code"]), (424, message, "failed_after_run"))
        self.assertEqual(reply.get("x-should-retry"), "false")
        self.assertEqual((line["status"], line["message"]), ("424", message))
        said = streamed("Look.", calls=[("c", "code_interpreter", {"code": "forever"})])
        reply, _ = self.cut_short(said, ready=lambda gateway: gateway.journal.wait("run"), stream=True)
        self.assertEqual((reply.events[-1], reply.stream_text), ("[DONE]", "Look."))
        self.assertEqual((reply.events[-2]["error"]["message"], reply.events[-2]["error"]["code"]), (message, "failed_after_run"))

    def test_a_client_hears_that_it_may_try_again_when_nothing_had_run(self):
        arrived = threading.Event()

        def never_answers(connection):
            arrived.set()
            connection.wait_closed()
        for tools in ((TOOL,), ()):
            arrived.clear()
            reply, line = self.cut_short(never_answers, ready=lambda _: arrived.wait(PATIENCE), tools=tools)
            self.assertEqual((reply.status, reply.error["message"]), (503, "The gateway is shutting down."))
            self.assertEqual((reply.get("retry-after"), reply.get("x-should-retry")), ("1", None))
            self.assertRegex(reply.get("x-request-id"), "^req_")
            self.assertEqual(line["status"], "503")

    def test_sessions_are_deleted_at_the_end(self):
        gateway = self.serve(self.upstream(code("x = 1"), answer("a"), code("x = 2"), answer("b")))
        for session in ("s", "t"):
            chat(gateway, "x", session)
        gateway.stop()
        self.assertEqual(len(gateway.journal.of("destroy")), 2)

    def test_a_deletion_that_hangs_does_not_hold_the_end_for_ever(self):
        gateway = self.serve(self.upstream(code("x = 1"), answer("a")), sandbox={"destroy_fault": "hang"})
        gateway.journals = []
        chat(gateway, "x", "s")
        gateway.stopped = True
        gateway.signal()
        stopped = gateway.wait_event("stopped", patience=max(PATIENCE, 60))
        self.assertEqual((stopped["containers_left"], stopped["level"]), ("1", "warn"))
        self.assertEqual(gateway.wait_end(), 0)
        gateway.check_sanitizers()

    def test_a_second_terminate_ends_it_at_once(self):
        gateway = self.serve(self.upstream(code("forever")), rules=[{"when": "forever", "delay": "1h"}])
        gateway.journals = []
        with Wire(gateway) as wire:
            wire.post(body_of("x"))
            gateway.journal.wait("run")
            gateway.signal()
            gateway.wait_event("draining")
            gateway.signal()
            gateway.stopped = True
            self.assertEqual(gateway.wait_end(), 1)

    def spinning(self, upstream, **options):
        """A gateway one of whose loops is held for ever, and which one."""
        gateway = self.serve(upstream, sandboxes=[{"name": "box", "plugin": "spinner"}],
                             server={"plugin_path": [str(BUILD / "tests" / "e2e")], "drain": "100ms"}, gateway_options=options)
        gateway.journals, gateway.stopped = [], True
        self.addCleanup(gateway.process.kill)  # where the test fails
        wire = Wire(gateway)
        self.addCleanup(wire.close)
        wire.post(body_of("x"))
        return gateway, gateway.wait_event("loop_held", lambda e: e.get("plugin") == "spinner")["loop"]

    def test_a_plugin_that_holds_a_loop_for_ever_does_not_hold_the_end(self):
        cores = sorted(os.sched_getaffinity(0))
        alone, loop = self.spinning(self.upstream(code("spin")), prefix=("taskset", "-c", str(cores[0])))
        self.assertEqual(loop, "0", "the loop that would take the signal")
        held = [(alone, loop)]
        while len(cores) > 1 and held[-1][1] == "0":  # the kernel chooses the loop; here another one is wanted
            if len(held) > 1:
                held.pop()[0].process.kill()
            held.append(self.spinning(self.upstream(code("spin"))))
        for gateway, _ in held:
            gateway.signal()
        for gateway, loop in held:
            left = gateway.wait_event("calls_left")
            self.assertEqual((left["level"], left["calls"], left["loop"], left["fiber"], left["step"], left["plugin"]),
                             ("error", "1", loop, "run", "run", "spinner"))
            self.assertGreaterEqual(int(left["held_ms"]), 30100)
            self.assertEqual(gateway.wait_end(), 1)
            self.assertEqual(gateway.log().splitlines()[-1],
                             f"sandgate: the end was forced: loop {loop} is held by 'run' of plugin 'spinner'")
            gateway.check_sanitizers()

    def test_a_port_in_use_is_said_so(self):
        first = self.serve()
        code_, second = self.refused_start(MOCK, arguments=("--listen", f"127.0.0.1:{first.port}"))
        self.assertEqual(code_, 1)
        self.assertIn(f"127.0.0.1:{first.port}", second.log())
        self.assertIn("in use", second.log())
        self.assertEqual(get(first, "/health/live").status, 200, "the first is not disturbed")
        with socket.create_server(("127.0.0.1", 0)) as foreign:
            port = foreign.getsockname()[1]
            code_, third = self.refused_start(MOCK, arguments=("--listen", f"127.0.0.1:{port}"))
        self.assertEqual(code_, 1)
        self.assertEqual(third.wait_event("start_failed")["error"], "CONFIG")

    def test_too_few_descriptors_are_said_at_the_start(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        path = self.path("few.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml(MOCK))
        done = subprocess.run(["bash", "-c", 'ulimit -n 100; exec "$0" serve --config "$1" --listen 127.0.0.1:0', str(BINARY), path],
                              capture_output=True, text=True, timeout=PATIENCE, env=self.environment(), check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], "the limit of open files is 100, too few: [0-9]+ are needed at the least; "
                                                       r"raise it \(ulimit -n, or LimitNOFILE= of the service\)$")
        self.assertEqual((soft, hard), resource.getrlimit(resource.RLIMIT_NOFILE))

    @unittest.skipUnless(os.geteuid() == 0, "only root can serve as root")
    def test_it_warns_when_it_serves_as_root_and_not_as_another(self):
        gateway = self.gateway(MOCK)
        self.assertEqual(gateway.wait_event("serving_as_root")["message"], "run the gateway as a user of its own")
        self.assertEqual(gateway.wait_event("serving_as_root")["level"], "warn")
        nobody = pwd.getpwnam("nobody")
        os.chmod(self.folder, 0o755)
        prefix = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--inh-caps=-all")
        if subprocess.run([*prefix, str(BINARY), "version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("another user cannot reach this build's folder")
        other = self.gateway(MOCK, prefix=prefix, readable=True)
        self.assertEqual(other.events("serving_as_root"), [])

    def test_a_plugin_that_does_not_open_stops_the_start(self):
        config = {**MOCK, "sandboxes": [{"name": "box", "plugin": "mock", "journal": "/nowhere/at/all"}]}
        code_, gateway = self.refused_start(config)
        self.assertEqual(code_, 1)
        failed = gateway.wait_event("plugin_open_failed")
        self.assertEqual((failed["level"], failed["error"]), ("error", "CONFIG"))
        self.assertIn("box", failed["message"])
        self.assertIn("sandgate: " + failed["message"], gateway.log(), "and in words without the log's form")

    def test_open_addresses_want_authentication(self):
        message = ("auth: mode 'none' at 0.0.0.0:0 would let everybody who reaches it run code: listen at 127.0.0.1, "
                   "set keys, or say 'insecure: true'")
        code_, gateway = self.refused_start(MOCK, arguments=("--listen", "0.0.0.0:0"))
        self.assertEqual((code_, gateway.log()), (1, "sandgate: " + message))
        insecure = self.gateway({**MOCK, "auth": {"mode": "none", "insecure": True}}, arguments=("--listen", "0.0.0.0:0"))
        self.assertEqual(insecure.address.split(":")[0], "0.0.0.0")

    def test_addresses_are_read_in_every_usual_form(self):
        for listen in ("127.0.0.1:0", "localhost:0", "[::1]:0"):
            if listen.startswith("[") and not socket.has_ipv6:
                continue
            try:
                gateway = self.gateway(MOCK, arguments=("--listen", listen))
            except AssertionError as problem:
                if listen.startswith("["):
                    continue  # a host without IPv6
                raise problem
            first = "127.0.0.1:" if listen.startswith("localhost") else listen[:-1]
            self.assertTrue(any(address.startswith(first) for address in gateway.addresses), gateway.addresses)

    def test_addresses_that_are_none_are_refused(self):
        for listen in ("127.0.0.1", "4000", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x", "a" * 300 + ":1"):
            code_, gateway = self.refused_start(MOCK, arguments=("--listen", listen))
            self.assertEqual(code_, 1, listen)
            self.assertEqual(gateway.log(), "sandgate: server: 'listen' must be an address and port such as "
                                            f"127.0.0.1:4000, not '{listen}'")
        code_, gateway = self.refused_start(MOCK, arguments=("--listen", "no.such.host.invalid:80"))
        self.assertIn("server: 'listen' address 'no.such.host.invalid:80' is not known here: ", gateway.log())

    def test_a_broken_file_serves_nothing(self):
        path = self.path("bad.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml({**MOCK, "loops": {}}))
        code_, out, err = run("serve", "--config", path)
        self.assertEqual((code_, out), (1, ""))
        self.assertIn(f"1 problem in {path}", err)

    def test_requests_hold_no_descriptor_after_they_ended(self):
        gateway = self.serve(self.upstream(*[turn for i in range(30) for turn in (code("print(1)", f"c{i}"), answer("x"))]))
        for _ in range(30):
            self.assertEqual(chat(gateway, "x").status, 200)
        poll(lambda: gateway.fds() <= gateway.fds_before, lambda: "\n".join(gateway.fd_targets()))


if __name__ == "__main__":
    main()
