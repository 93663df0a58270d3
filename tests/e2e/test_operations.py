"""What operators use: metrics, an identity's view of its sessions, the service manager, and the page of the configuration."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.parse

from client import UnixConnection, Wire, body_of, chat, get, request, request_on
from harness import BINARY, E2E, ROOT, main, parse_log, poll
from upstream import Status, answer, code, streamed

A, B, SCRAPER = "key-of-team-a", "key-of-team-b", "key-of-the-scraper"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B},
                                 {"name": "prometheus", "key": SCRAPER, "use": "metrics"}]}
LINE = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? ([0-9.]+)')

# Listens, then becomes the gateway as a service manager would start it.
ACTIVATE = """
import os, socket, sys
import fcntl
kinds = sys.argv[1].split(",")
high = []
for kind in kinds:
    if kind.isdigit():
        s = socket.socket(fileno=int(kind))
    elif kind == "datagram":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    else:
        path = kind.removeprefix("unix:")
        s = socket.socket(socket.AF_UNIX if path != kind else socket.AF_INET)
        s.bind(path if path != kind else ("127.0.0.1", 0))
        s.listen(16)
    high.append(fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100))
for place, fd in enumerate(high, 3):
    os.dup2(fd, place)
    os.set_inheritable(place, True)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(kinds)), LISTEN_FDNAMES=":".join(["sandgate"] * len(kinds)))
os.execv(sys.argv[2], sys.argv[2:])
"""


def metrics(gateway, key=None):
    """Every series of the text, which must be well-formed: name and labels → value."""
    reply = get(gateway, "/metrics", key=key)
    assert reply.status == 200, reply.body
    assert reply.get("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    found, typed = {}, None
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            typed = line.split()[2]
        elif not line.startswith("# HELP "):
            match = LINE.fullmatch(line)
            assert match and match[1].startswith(typed), line
            assert match[1] + (match[2] or "") not in found, line
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


class Metrics(E2E):
    def test_what_happened_is_counted(self):
        gateway = self.serve(self.upstream(code("print(1)"), answer("x"), code("y"), answer("x"), Status(429, {"error": {}}),
                                           Status(429, {"error": {}})))
        before = metrics(gateway)
        self.assertEqual(chat(gateway, "a").status, 200)
        self.assertEqual(chat(gateway, "b", "some-session").status, 200)
        self.assertEqual(chat(gateway, "c").status, 429)
        self.assertEqual(get(gateway, "/nothing/here").status, 404)
        self.assertEqual(get(gateway, "/health/live").status, 200)
        gateway.journal.wait("destroy")
        poll(lambda: metrics(gateway)["sandgate_containers_destroyed_total"] == 1, "the deletion to be counted")
        gateway.wait_events("request", 7)  # those above and two that read the metrics: counted when they are logged
        now = metrics(gateway)

        def grown(name):
            return now[name] - before[name]
        self.assertEqual(grown('sandgate_requests_total{route="chat",status="2xx"}'), 2)
        self.assertEqual(grown('sandgate_requests_total{route="chat",status="4xx"}'), 1)
        self.assertEqual(grown('sandgate_requests_total{route="none",status="4xx"}'), 1)
        self.assertEqual(grown('sandgate_requests_total{route="health",status="2xx"}'), 1)
        self.assertGreaterEqual(grown('sandgate_requests_total{route="metrics",status="2xx"}'), 2)
        self.assertEqual(grown('sandgate_request_duration_seconds_count{route="chat"}'), 3)
        self.assertGreaterEqual(grown('sandgate_turns_total{upstream="up"}'), 5)
        self.assertGreaterEqual(grown('sandgate_upstream_errors_total{upstream="up",kind="limited"}'), 1)
        self.assertGreaterEqual(grown('sandgate_upstream_first_byte_seconds_count{upstream="up"}'), 5)
        self.assertEqual(grown('sandgate_tool_calls_total{interceptor="code_interpreter",outcome="completed"}'), 2)
        self.assertEqual(grown('sandgate_runs_total{sandbox="box",outcome="completed"}'), 1)
        self.assertEqual(grown('sandgate_runs_total{sandbox="box",outcome="raised"}'), 1)
        self.assertEqual(grown('sandgate_run_duration_seconds_bucket{sandbox="box",le="+Inf"}'), 2)
        self.assertEqual(grown("sandgate_containers_created_total"), 2)
        self.assertEqual(now['sandgate_containers{state="ready"}'], 1)
        self.assertEqual(now["sandgate_sessions"], 1)
        self.assertGreater(grown("sandgate_request_body_bytes_total"), 300)
        self.assertGreater(grown("sandgate_answer_body_bytes_total"), 300)
        self.assertGreaterEqual(now["sandgate_connections"], 1)
        self.assertEqual(now["sandgate_requests_in_progress"], 1, "this one")
        self.assertGreater(now["process_resident_memory_bytes"], 1 << 20)

    def test_failures_are_counted_by_cause(self):
        gateway = self.serve(self.upstream(code("print(1)"), answer("x")), sandbox={"create_fault": "refuse"})
        self.assertEqual(chat(gateway, "a").status, 200)
        self.assertEqual(metrics(gateway)['sandgate_sandbox_errors_total{sandbox="box",cause="unavailable"}'], 1)

    def test_an_upstream_that_is_not_there_is_unreachable(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            gateway = self.gateway({"auth": {"mode": "none"}, "upstreams": [
                {"name": "gone", "base_url": f"http://127.0.0.1:{taken.getsockname()[1]}/v1", "models": ["mock"]}]})
            self.assertEqual(chat(gateway, tools=(), text="x").status, 502)
        self.assertGreaterEqual(metrics(gateway)['sandgate_upstream_errors_total{upstream="gone",kind="unreachable"}'], 1)

    def test_a_client_that_leaves_is_counted(self):
        gateway = self.serve(self.upstream(code("slow"), answer("x")), rules=[{"when": "slow", "delay": "30s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x"))
            gateway.journal.wait("run")
        gateway.wait_event("request")
        poll(lambda: metrics(gateway)["sandgate_client_disconnects_total"] == 1, "the client to be missed")
        self.assertEqual(metrics(gateway)['sandgate_runs_total{sandbox="box",outcome="cancelled"}'], 1)

    def test_no_label_comes_from_a_client(self):
        gateway = self.serve()
        chat(gateway, "a", "secret-session", model="secret-model", headers={"X-Request-Id": "secret-request"})
        get(gateway, "/secret-path")
        request(gateway, "DELETE", "/v1/sessions/secret-session")
        self.assertNotIn(b"secret", get(gateway, "/metrics").body)

    def test_a_key_of_its_own_opens_them_and_nothing_else(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), auth=KEYS)
        for key, status, reason in ((None, 401, "invalid_api_key"), ("wrong", 401, "invalid_api_key"),
                                    (A, 403, "key_not_for_metrics")):
            reply = get(gateway, "/metrics", key=key)
            self.assertEqual((reply.status, reply.error["code"]), (status, reason))
        self.assertIn("This key does not open /metrics: its operator can make one that does, with 'use: metrics'.",
                      get(gateway, "/metrics", key=A).error["message"])
        self.assertIn("sandgate_loops", metrics(gateway, SCRAPER))
        for reply in (chat(gateway, tools=(), text="x", key=SCRAPER), get(gateway, "/v1/models", key=SCRAPER),
                      get(gateway, "/v1/sessions", key=SCRAPER)):
            self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                             (403, "key_for_metrics_only", "This key opens /metrics and nothing else."))
        self.assertEqual(chat(gateway, tools=(), text="x", key=A).status, 200)

    def test_they_can_be_left_open(self):
        gateway = self.serve(self.upstream(forever=answer("ok")), auth=KEYS, server={"metrics_open": True})
        self.assertIn("sandgate_loops", metrics(gateway))
        self.assertEqual(get(gateway, "/v1/models").status, 401, "nothing else is")

    def test_they_are_read_by_get_alone(self):
        gateway = self.serve()
        reply = request(gateway, "POST", "/metrics", {})
        self.assertEqual((reply.status, reply.get("allow")), (405, "GET"))
        self.assertEqual(get(gateway, "/v1/metrics").status, 404)


class SessionList(E2E):
    def two_tenants(self, **options):
        gateway = self.serve(self.upstream(forever=answer("unused")), auth=KEYS, **options)
        return gateway

    def with_sessions(self, *sessions, **options):
        turns = [turn for i in range(len(sessions)) for turn in (code("print(1)", f"c{i}"), answer("x"))]
        gateway = self.serve(self.upstream(*turns), auth=KEYS, **options)
        for key, session in sessions:
            self.assertEqual(chat(gateway, "x", session, key=key).status, 200)
        return gateway

    def listed(self, gateway, key):
        reply = get(gateway, "/v1/sessions", key=key)
        self.assertEqual((reply.status, reply.json["object"]), (200, "list"))
        return reply.json["data"]

    def delete(self, gateway, session, key):
        return request(gateway, "DELETE", "/v1/sessions/" + urllib.parse.quote(session, safe=""), key=key)

    def assert_unknown(self, reply):
        self.assertEqual((reply.status, reply.error["code"], reply.error["message"]),
                         (404, "session_not_found", "There is no such session."))

    def test_each_identity_sees_its_own_sessions(self):
        gateway = self.with_sessions((A, "one"), (A, "zwei ä"), (B, "one"))
        found = {entry["id"]: entry for entry in self.listed(gateway, A)}
        self.assertEqual(sorted(found), ["one", "zwei ä"])
        one = found["one"]
        self.assertEqual((one["object"], one["sandbox"], one["state"]), ("session", "box", "idle"))
        self.assertRegex(one["container_id"], r"^cntr_sg[0-9a-f]{32}$")
        self.assertTrue(0 < one["idle_seconds_left"] <= 900, one)
        self.assertTrue(one["created_at"] - 1 <= one["last_used_at"] <= one["created_at"] + 60, one)
        self.assertEqual([entry["id"] for entry in self.listed(gateway, B)], ["one"])
        self.assertNotEqual(self.listed(gateway, B)[0]["container_id"], one["container_id"])
        self.assertEqual(get(gateway, "/sessions", key=B).json, get(gateway, "/v1/sessions", key=B).json)

    def test_containers_without_a_session_are_not_listed(self):
        gateway = self.with_sessions((A, None), (A, ""))
        self.assertEqual(self.listed(gateway, A), [])

    def test_one_in_use_says_so(self):
        gateway = self.serve(self.upstream(code("slow"), answer("x")), rules=[{"when": "slow", "delay": "30s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x", "s"))
            gateway.journal.wait("run")
            entry, = self.listed(gateway, None)
            self.assertEqual((entry["id"], entry["state"], entry["idle_seconds_left"]), ("s", "in_use", None))

    def test_a_session_is_ended_by_its_id_or_its_containers(self):
        gateway = self.with_sessions((A, "one"), (A, "a b?#%ä"), (A, "third"))
        for session in ("one", "a b?#%ä"):
            reply = self.delete(gateway, session, A)
            self.assertEqual((reply.status, reply.json),
                             (200, {"object": "session.deleted", "id": session, "deleted": True}))
        left, = self.listed(gateway, A)
        self.assertEqual(left["id"], "third")
        self.assertEqual(self.delete(gateway, left["container_id"], A).status, 200)
        self.assertEqual(self.listed(gateway, A), [])
        deleted = gateway.wait_events("container_deleted", 3)
        self.assert_unknown(self.delete(gateway, "one", A))
        self.assertEqual([e["reason"] for e in deleted], ["ended"] * 3)

    def test_ids_that_no_path_can_name_are_ended_by_their_containers(self):
        ids = ["slash/ed", "back\\slash", "tab\t", "\x7f", ".", ".."]
        gateway = self.with_sessions(*[(A, session) for session in ids])
        found = {entry["id"]: entry["container_id"] for entry in self.listed(gateway, A)}
        self.assertEqual(sorted(found), sorted(ids))
        for session in ids:
            self.assertEqual(self.delete(gateway, session, A).status, 400, session)
            self.assertEqual(self.delete(gateway, found[session], A).status, 200, session)
        self.assertEqual(self.listed(gateway, A), [])

    def test_anothers_and_unknown_ones_are_the_same_404(self):
        gateway = self.with_sessions((A, "mine"))
        container = self.listed(gateway, A)[0]["container_id"]
        for session in ("mine", container, "never", "cntr_sg" + "0" * 32, "x" * 300):
            self.assert_unknown(self.delete(gateway, session, B))
        self.assertEqual(len(self.listed(gateway, A)), 1, "nothing was touched")
        self.assertEqual(gateway.journal.of("destroy"), [])

    def test_after_its_end_a_session_begins_anew(self):
        turns = [turn for i, text in enumerate(("x = 5", "print(x)")) for turn in (code(text, f"c{i}"), answer("x"))]
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream)
        self.assertEqual(chat(gateway, "x", "s").status, 200)
        self.assertEqual(self.delete(gateway, "s", None).status, 200)
        self.assertEqual(chat(gateway, "x", "s").status, 200)
        told = [m["content"] for m in upstream.requests[-1].json["messages"] if m["role"] == "tool"]
        self.assertIn("NameError", told[-1])
        self.assertNotIn("lost", told[-1], "its owner knows")

    def test_one_in_use_can_be_ended_too(self):
        gateway = self.serve(self.upstream(code("slow"), answer("x")), rules=[{"when": "slow", "delay": "30s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x", "s"))
            gateway.journal.wait("run")
            self.assertEqual(self.delete(gateway, "s", None).status, 200)
            gateway.journal.wait("destroy")

    def test_a_key_is_needed(self):
        gateway = self.with_sessions()
        self.assertEqual(get(gateway, "/v1/sessions").status, 401)
        self.assertEqual(request(gateway, "DELETE", "/v1/sessions/x").status, 401)
        reply = request(gateway, "GET", "/v1/sessions/x", key=A)
        self.assertEqual((reply.status, reply.get("allow")), (405, "DELETE"))


class ServiceManager(E2E):
    def activated(self, *kinds, **options):
        return self.gateway({"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["mock"]}]},
                            prefix=[sys.executable, "-c", ACTIVATE, ",".join(kinds)], arguments=("--listen", "127.0.0.1:1"), **options)

    def test_it_is_told_when_the_gateway_is_ready_and_when_it_stops(self):
        path = self.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(60)
            gateway = self.serve(gateway_options={"env": {"NOTIFY_SOCKET": path}})
            self.assertEqual(manager.recv(1000).decode(), f"READY=1\nSTATUS=Serving at 127.0.0.1:{gateway.port}")
            gateway.signal()
            self.assertEqual(manager.recv(1000).decode(), "STOPPING=1\nSTATUS=Finishing what is in progress")
            gateway.stop(quiet=False)

    def test_a_socket_that_is_handed_over_is_served(self):
        gateway = self.activated("tcp")
        serving = gateway.wait_event("serving")
        self.assertEqual(serving["socket"], "handed_over")
        self.assertRegex(serving["address"], r"^127\.0\.0\.1:\d+$")
        self.assertNotEqual(gateway.port, 1, "the configured address is not used")
        for _ in range(20):  # whichever loop takes each
            self.assertEqual(chat(gateway, tools=(), text="hello").status, 200)

    def test_what_is_handed_over_needs_no_place_for_a_socket_of_its_own(self):
        gateway = self.gateway({"auth": {"mode": "none"}, "server": {"listen": "unix:" + self.path("no-folder") + "/s"},
                                "upstreams": [{"name": "m", "plugin": "mock", "models": ["mock"]}]},
                               prefix=[sys.executable, "-c", ACTIVATE, "tcp"], arguments=())
        self.assertEqual(gateway.wait_event("serving")["socket"], "handed_over")

    def test_a_restart_refuses_no_connection(self):
        with socket.socket() as kept:
            kept.bind(("127.0.0.1", 0))
            kept.listen(16)
            first = self.activated(str(kept.fileno()), pass_fds=(kept.fileno(),))
            self.assertEqual(chat(first, tools=(), text="hello").status, 200)
            first.stop()
            with Wire(first) as wire:  # nobody serves now
                wire.post(body_of(tools=(), text="hello"))
                second = self.activated(str(kept.fileno()), pass_fds=(kept.fileno(),))
                self.assertEqual(second.port, first.port)
                self.assertEqual(wire.answer().status, 200)

    def test_another_kind_of_socket_stops_the_start(self):
        gateway = self.activated("datagram", serve=False)
        gateway.stopped = True
        self.assertEqual(gateway.wait_end(), 1)
        self.assertEqual(gateway.log(), "sandgate: what the service manager handed over as socket 1 is not a listening stream "
                                        "socket: the socket unit needs 'ListenStream=ADDRESS:PORT' or 'ListenStream=/PATH', and "
                                        "'Accept=no'")

    def test_several_sockets_of_several_kinds_are_served(self):
        path = self.path("handed.sock")
        gateway = self.activated("tcp", "unix:" + path)
        tcp, unix = gateway.addresses
        self.assertRegex(tcp, r"^127\.0\.0\.1:\d+$")
        self.assertEqual(unix, "unix:" + path)
        self.assertEqual(get(gateway, "/health/live").status, 200)
        self.assertEqual(request_on(UnixConnection(path), "GET", "/health/live").status, 200)
        gateway.stop()
        self.assertTrue(os.path.exists(path), "it is the service manager's, which hands it to the next process")

    def test_a_start_that_fails_leaves_the_reason_in_the_last_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            gateway = self.gateway({"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}]},
                                   serve=False, arguments=("--listen", address))
            gateway.stopped = True
            self.assertEqual(gateway.wait_end(), 1)
        self.assertEqual(gateway.lines[-1], f"sandgate: cannot listen on {address}: Address already in use (is another server "
                                            "running there?)")

    def test_the_unit_is_well_formed(self):
        text = (ROOT / "packaging" / "sandgate.service").read_text()
        self.assertIn("Type=notify\n", text)
        self.assertIn("TimeoutStopSec=", text)
        # One box that the kernel kills ends nothing else, and no number of crashes leaves it down for good.
        for line in ("OOMPolicy=continue", "StartLimitIntervalSec=0", "MemoryMax=75%", "TasksMax=8192", "User=sandgate",
                     "Delegate=yes"):
            self.assertIn(f"\n{line}\n", text)

    def test_the_unit_forbids_nothing_that_a_box_needs(self):
        text = (ROOT / "packaging" / "sandgate.service").read_text()
        for name in ("RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc",
                     "ProcSubset", "ProtectHostname", "ProtectControlGroups", "MemoryDenyWriteExecute"):
            self.assertNotRegex(text, rf"(?m)^{name}=")
            self.assertIn(f"{name}=", text, "it says why")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_understands_every_line_of_the_unit(self):
        text = (ROOT / "packaging" / "sandgate.service").read_text()
        path = pathlib.Path(self.path("sandgate.service"))
        path.write_text(text.replace("/usr/local/bin/sandgate", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False)
        self.assertEqual([line for line in done.stderr.splitlines() if "sandgate.service" in line], [])


class Documentation(E2E):
    def test_the_page_of_the_configuration_says_what_the_program_says(self):
        done = subprocess.run([sys.executable, "-B", str(ROOT / "scripts" / "configuration_docs.py"), str(BINARY), "--check"],
                              capture_output=True, text=True, env=self.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_metric_stands_in_the_table(self):
        page = (ROOT / "docs" / "operations.md").read_text()
        gateway = self.serve()
        names = re.findall(r"^# TYPE (\S+)", get(gateway, "/metrics").body.decode(), re.M)
        self.assertEqual([name for name in names if f"`{name}`" not in page and f"`{name}{{" not in page], [])


class Traces(E2E):
    def traced(self, topics):
        upstream = self.upstream(code("print(1)"), streamed("done"))
        gateway = self.serve(upstream, gateway_options={"env": {"SG_TRACE": topics}})
        self.assertEqual(chat(gateway, "x", stream=True).stream_text, "done")
        gateway.stop()  # and its container is deleted
        return gateway, [line for line in map(parse_log, gateway.log().splitlines()) if line.get("event") == "trace"]

    def test_each_step_of_the_chosen_topics_is_a_line(self):
        _, lines = self.traced("http,sse,plugin,fiber")
        steps = {(line["topic"], line["step"]) for line in lines}
        self.assertLessEqual({("http", "request"), ("http", "fetch_begin"), ("http", "fetch_head"), ("http", "fetch_end"),
                              ("http", "answer"), ("sse", "event"), ("plugin", "call_begin"), ("plugin", "call_end"),
                              ("fiber", "fiber_begin"), ("fiber", "fiber_end")}, steps)
        begun = [line["object"] for line in lines if line["step"] == "call_begin"]
        self.assertEqual(sorted(begun), sorted(line["object"] for line in lines if line["step"] == "call_end"))

    def test_nothing_is_traced_unasked_nor_with_a_topic_that_is_none(self):
        gateway, lines = self.traced("htp")
        self.assertEqual(lines, [])
        self.assertIn("sandgate: SG_TRACE names an unknown topic; known are http, sse, plugin, fiber; nothing is traced", gateway.log())
        self.assertEqual(self.traced("")[1], [])


if __name__ == "__main__":
    main()
