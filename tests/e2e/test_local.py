"""The local sandbox behind the gateway: real Python, its state, its limits, and what hostile code gets to see."""
import os
import pathlib
import socket
import sys
import unittest
import unittest.mock

from client import Wire, body_of, chat, get
from harness import E2E, ROOT, main, run
from upstream import Status, answer, code

# The one file system of a box, its devices, and its terminals.
WRITABLE_MOUNTS = {"/home/user", "/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                   "/dev/urandom", "/dev/ptmx", "/dev/tty"}


class Local(E2E):
    def boxed(self, upstream, sandbox=None, **sections):
        """A gateway with this model server and real boxes."""
        gateway = self.gateway({
            "auth": {"mode": "none"}, "upstreams": [{"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}],
            "sandboxes": [{"name": "box", "plugin": "local", **(sandbox or {})}],
            "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}], **sections},
            upstream_ports=[upstream.port])
        gateway.fds_before += 2 * 9  # up to two sessions keep their boxes, of nine descriptors each
        return gateway

    def local(self, *sources, sandbox=None, session="s", **sections):
        """Runs each source by a request of its own in one session: (gateway, what the model was told of each)."""
        turns = [turn for i, source in enumerate(sources) for turn in (code(source, f"c{i}"), answer("ok"))]
        upstream = self.upstream(*turns)
        gateway = self.boxed(upstream, sandbox, **sections)
        for _ in sources:
            reply = chat(gateway, "x", session)
            self.assertEqual((reply.status, reply.text), (200, "ok"), reply.body)
        return gateway, [[m["content"] for m in r.json["messages"] if m["role"] == "tool"][0]
                         for r in upstream.requests[1::2]]

    def test_python_runs(self):
        _, told = self.local("import sys\nprint(sys.version_info[0] * 7)", "sum(range(10))")
        self.assertEqual([t.strip() for t in told], ["21", "45"])

    def test_what_boxes_rest_on_is_told_in_the_log_in_health_and_by_describe(self):
        gateway = self.boxed(self.upstream(answer("ok")))
        ready = get(gateway, "/health/ready").json
        self.assertEqual((ready["status"], list(ready["plugins"])), ("ok", ["box"]))
        told = ready["plugins"]["box"]
        self.assertEqual(told["state"], "open")
        self.assertIn(told["tier"], (0, 2) if os.geteuid() == 0 else (1, 2))
        self.assertEqual(told["tier"] < 2, [told["memory"], told["processes"], told["cpu"]] == ["group"] * 3)
        self.assertRegex(told["note"], f"^isolation tier {told['tier']}: ")
        self.assertEqual(get(gateway, "/health/live").json, {"status": "ok"}, "that is for machines alone")
        lines = [event["message"] for event in gateway.events("plugin") if event.get("operation") == "open"]
        self.assertRegex(lines[-1], f"^the test container passed; .*; isolation tier {told['tier']}")
        code_, out, err = run("describe", "local")
        self.assertEqual((code_, err), (0, ""))
        self.assertRegex(out, r"\non this machine, started as this command was: isolation tier [012]: .+\n$")

    def test_a_strict_gateway_starts_only_where_groups_limit_all(self):
        code_, out, _ = run("describe", "local")
        gateway = self.gateway({"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}],
                                "sandboxes": [{"name": "box", "plugin": "local", "isolation": "strict"}],
                                "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]},
                               serve="isolation tier 2" not in out)
        if "isolation tier 2" in out:
            gateway.stopped = True
            self.assertEqual(gateway.wait_end(), 1)
            self.assertIn("'isolation: strict' needs control groups of memory, pids and cpu",
                          gateway.wait_event("plugin_open_failed")["message"])
        else:
            self.assertLess(get(gateway, "/health/ready").json["plugins"]["box"]["tier"], 2)

    def c076_variables_files_and_imports_live_in_the_session(self):
        _, told = self.local("import json; f=open('a.txt','w'); f.write('1'); f.close()",
                             "print(open('a.txt').read(), json.dumps({}))")
        self.assertEqual(told[1].strip(), "1 {}")

    def c080_input_is_answered_at_once(self):
        _, told = self.local("name = input('who? ')\nprint(name)")
        self.assertRegex(told[0], "EOFError|StdinNotImplementedError|RuntimeError")

    def c083_big_output_is_cut_with_a_mark(self):
        _, told = self.local("import json; print(json.dumps(list(range(60000))))")
        self.assertLess(len(told[0]), 17 * 1024)
        self.assertTrue(told[0].startswith("[0, 1, 2, "), told[0][:80])
        self.assertTrue(told[0].rstrip().endswith("59999]"), told[0][-80:])
        self.assertRegex(told[0], r"\d{6}", "the mark says how much was cut")

    def c090_ordinary_modules_can_be_imported(self):
        _, told = self.local("import json, decimal, threading, subprocess, tempfile, zoneinfo, sqlite3; print('ok')",
                             "t = threading.Thread(target=lambda: print('in a thread')); t.start(); t.join()")
        self.assertEqual([t.strip() for t in told], ["ok", "in a thread"])

    def b34_an_exception_comes_with_a_short_traceback(self):
        _, told = self.local("def f():\n    return 1 / 0\nf()")
        self.assertIn("ZeroDivisionError", told[0])
        self.assertNotIn(str(ROOT), told[0])
        self.assertLess(len(told[0]), 1500)

    def c107_no_network_reaches_anything(self):
        """Cloud metadata, the gateway itself, its model server, and a listener on all of the host's addresses."""
        everywhere = socket.create_server(("", 0))
        everywhere.settimeout(0)
        upstream = self.upstream()
        gateway = self.boxed(upstream)
        ports = (gateway.port, upstream.port, everywhere.getsockname()[1])
        hosts = ("127.0.0.1", "172.17.0.1", *{info[4][0] for info in socket.getaddrinfo(socket.gethostname(), 80, socket.AF_INET)})
        urls = ["http://169.254.169.254/", "http://[fd00:ec2::254]/", *(f"http://{h}:{p}/health/live" for h in hosts for p in ports)]
        upstream.turns = [code("from urllib.request import urlopen\nreached, refused = [], 0\n"
                               f"for u in {urls!r}:\n"
                               "    try:\n        reached.append((u, urlopen(u, timeout=2).status))\n"
                               "    except OSError:\n        refused += 1\n"
                               "print('reached', reached, 'refused', refused)"), answer("ok")]
        self.assertEqual(chat(gateway, "x", "s").status, 200)
        told = upstream.requests[1].json["messages"][-1]["content"].strip()
        self.assertEqual(told, f"reached [] refused {len(urls)}")
        with everywhere, self.assertRaises(BlockingIOError):
            everywhere.accept()

    def c108_a_shell_in_the_box_sees_nothing_of_the_host(self):
        """The environment, the account, and what is mounted: everything but the box's one file system and devices read-only."""
        secret = pathlib.Path(self.path("secret-of-the-host"))
        secret.write_text("secret")
        shell = "import subprocess\nprint(subprocess.run(%r, shell=True, capture_output=True, text=True))"
        sources = ["open('/tmp/of-another-session', 'w').close()", shell % "id; ls -la / /tmp /data; env",
                   "print(open('/proc/mounts').read())", shell % f"cat {secret}; touch /usr/x; ps -e"]
        upstream = self.upstream(*[turn for i, source in enumerate(sources) for turn in (code(source, f"c{i}"), answer("ok"))])
        with unittest.mock.patch.dict(os.environ, {"SANDGATE_CANARY": "of the host"}):
            gateway = self.boxed(upstream)
        for session in ("other", "s", "s", "s"):
            self.assertEqual(chat(gateway, "x", session).status, 200)
        told = [r.json["messages"][-1]["content"] for r in upstream.requests[3::2]]
        self.assertIn("uid=1000(user) gid=1000(user)", told[0])
        self.assertIn("cannot access '/data'", told[0])
        for foreign in ("of-another-session", "CANARY", "BUILD_DIR"):
            self.assertNotIn(foreign, told[0])
        mounts = [line.split() for line in told[1].strip().splitlines()]
        writable = sorted({m[1] for m in mounts if "rw" in m[3].split(",")})
        self.assertLessEqual(set(writable), WRITABLE_MOUNTS, told[1])
        self.assertTrue({"/", "/usr", "/proc"} <= {m[1] for m in mounts if "ro" in m[3].split(",")}, told[1])
        self.assertNotIn(str(ROOT), told[1])
        self.assertIn("No such file or directory", told[2])
        self.assertIn("cannot touch '/usr/x': Read-only file system", told[2])
        self.assertNotIn("sandgate", told[2].replace(str(secret), ""))

    def test_sessions_do_not_see_each_others_files(self):
        upstream = self.upstream(code("open('mine','w').write('x'); open('/tmp/mine','w').write('x')"), answer("ok"),
                                 code("import os; print(os.path.exists('mine'), os.path.exists('/tmp/mine'))"), answer("ok"))
        gateway = self.boxed(upstream)
        for session in ("a", "b"):
            chat(gateway, "x", session)
        self.assertIn("False False", [m["content"] for m in upstream.requests[3].json["messages"] if m["role"] == "tool"][0])

    def test_endless_code_ends_at_its_time_limit_and_the_session_goes_on(self):
        _, told = self.local("x = 5", "while True: pass", "print(x if 'x' in globals() else 'restarted')",
                             sandbox={"run_timeout": "1s"})
        self.assertIn("[timed out]", told[1])
        self.assertTrue(told[2].strip().endswith(("5", "restarted")), told[2])

    def test_too_much_memory_ends_the_code_and_not_the_gateway(self):
        gateway, told = self.local("x = bytearray(2 << 30)", "print('alive')", sandbox={"memory": "128MiB", "disk": "32MiB"})
        self.assertRegex(told[0], r"MemoryError|\[sandbox failed\]|memory")
        self.assertIn("alive", told[1])

    def test_the_model_is_told_of_children_that_were_killed_for_their_memory(self):
        child = ("import subprocess, sys\nx = 7\nhog = bytearray(b'x') * (50 << 20)\n"
                 "child = subprocess.run([sys.executable, '-c', 'import signal; hog = bytearray(b\"x\") * (110 << 20); signal.pause()'])\n"
                 "print(-child.returncode)")
        _, told = self.local(child, "print(x)", sandbox={"memory": "128MiB", "disk": "32MiB"})
        self.assertEqual(told[0].strip().splitlines(), ["9", "[processes started by the code were killed for the memory "
                                                        "they took (limit 128MiB)]"])
        self.assertEqual(told[1].strip(), "7", "it is told once, and the variables are there")

    def test_a_flood_is_stopped_and_the_model_is_told_that_it_was_the_output(self):
        _, told = self.local("x = 7\nwhile True: print('y' * 100000)", "print(x)")
        self.assertRegex(told[0], r"\[output limit\] the code printed more than 64MiB and was interrupted")
        self.assertEqual(told[1].strip(), "7")

    def test_too_many_processes_are_refused_in_the_box(self):
        _, told = self.local("import subprocess\nn = 0\ntry:\n    while n < 500:\n        subprocess.Popen(['sleep', '100']); n += 1\n"
                             "except Exception as e:\n    print(type(e).__name__, n)", "print('alive')")
        self.assertRegex(told[0], r"BlockingIOError|OSError|\[sandbox failed\]")
        self.assertIn("alive", told[1])

    def test_code_that_kills_its_interpreter_loses_the_state_and_says_so(self):
        _, told = self.local("x = 1", "import os; os.kill(os.getpid(), 9)", "print('x' in globals())")
        self.assertRegex(told[1], r"\[sandbox failed\] .*SIGKILL")
        self.assertTrue(told[2].strip().endswith("False"), told[2])
        self.assertRegex(told[1] + told[2], "lost|gone")

    def c060_a_failing_turn_keeps_the_sessions_files(self):
        turns = [code("open('a.txt', 'w').write('kept')", "c0"), answer("ok"),
                 code("while True: pass", "c1"), answer("ok"),
                 code("print(1)", "c2"), *[Status(500, {"error": {"message": "broken"}})] * 2,
                 code("print(open('a.txt').read())", "c3"), answer("ok")]
        upstream = self.upstream(*turns)
        gateway = self.boxed(upstream, {"run_timeout": "1s"})
        self.assertEqual([chat(gateway, "x", "s").status for _ in range(4)], [200, 200, 424, 200])
        told = [[m["content"] for m in r.json["messages"] if m["role"] == "tool"] for r in upstream.requests]
        self.assertIn("[timed out]", told[3][0])
        self.assertEqual(told[-1][0].strip(), "kept")

    def c071_a_second_gateway_touches_nothing_of_the_first(self):
        first_model = self.upstream(code("x = 7\nopen('b.txt', 'w').write('mine')", "c0"), answer("ok"),
                                    code("print(x, open('b.txt').read())", "c1"), answer("ok"))
        first = self.boxed(first_model)
        self.assertEqual(chat(first, "x", "s").status, 200)
        second_model = self.upstream(code("import os\nprint('x' in globals(), os.path.exists('b.txt'))", "c0"), answer("ok"))
        second = self.boxed(second_model)
        self.assertEqual(chat(second, "x", "s").status, 200)
        self.assertIn("False False", second_model.requests[1].json["messages"][-1]["content"])
        second.stop()
        self.assertEqual(chat(first, "x", "s").status, 200)
        self.assertIn("7 mine", first_model.requests[3].json["messages"][-1]["content"])

    def c075_a_client_that_leaves_ends_the_code(self):
        upstream = self.upstream(code("open('/tmp/f','w')\nwhile True: pass"))
        gateway = self.boxed(upstream)
        with Wire(gateway) as wire:
            wire.post(body_of("x"))
            upstream.next_request()
        self.assertEqual(gateway.wait_event("request")["status"], "499")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to take user namespaces away")
    def c092_without_user_namespaces_the_start_stops_and_says_what_to_do(self):
        limit = (sys.executable, "-B", str(ROOT / "tests" / "e2e" / "no_user_namespaces.py"))
        gateway = self.gateway({"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}],
                                "sandboxes": [{"name": "box", "plugin": "local"}],
                                "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]},
                               serve=False, prefix=limit)
        gateway.stopped = True
        code_ = gateway.wait_end()
        if not gateway.events("plugin_open_failed"):
            self.skipTest("user namespaces cannot be taken away here: " + gateway.log()[-300:])
        self.assertEqual(code_, 1)
        message = gateway.wait_event("plugin_open_failed")["message"]
        self.assertIn("user.max_user_namespaces is 0", message)
        self.assertIn("box", message)
        self.assertIn("sysctl -w user.max_user_namespaces=", message)

    def c093_in_a_container_with_the_default_filter_the_start_stops_and_names_the_step(self):
        """The probe at the start is a box like any other, so what would fail later fails there: nothing is ever ready."""
        gateway = self.gateway({"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}],
                                "sandboxes": [{"name": "box", "plugin": "local"}],
                                "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]}, serve=False,
                               prefix=(sys.executable, "-B", str(ROOT / "tests" / "e2e" / "like_docker.py")))
        gateway.stopped = True
        self.assertEqual(gateway.wait_end(), 1)
        message = gateway.wait_event("plugin_open_failed")["message"]
        self.assertIn("cannot create namespaces (clone3): Function not implemented", message)
        self.assertIn("--security-opt seccomp=unconfined", message)
        self.assertEqual(gateway.events("serving"), [])


if __name__ == "__main__":
    main()
