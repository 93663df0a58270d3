"""Accounting: one JSON line a request with exact figures, whatever became of it; sums for the metrics; the audit only where it is
asked for. A disk that is full stops nobody, and a file that was renamed is left."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from client import TOOL, Wire, body_of, get, post
from harness import BINARY, E2E, main, poll, run, to_yaml
from test_operations import metrics
from upstream import Status, Stream, answer, chunk, code, events, streamed

PATH = "/v1/chat/completions"
A, B, FRONT, SCRAPER = "key-of-team-a", "key-of-team-b", "key-of-a-front-end", "key-of-the-scraper"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "front", "key": FRONT, "user_from": "header:x-user"}, {"name": "b", "key": B, "requests_per_minute": 1},
                                 {"name": "prometheus", "key": SCRAPER, "use": "metrics"}]}
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SEARCH = {"type": "web_search"}
DETAILS = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 64},
           "completion_tokens_details": {"reasoning_tokens": 7}}


def with_usage(turn, usage):
    return {**turn, "usage": usage}


class Accounting(E2E):
    def setUp(self):
        super().setUp()
        self.file = pathlib.Path(self.path("accounting.jsonl"))

    def accounted(self, *turns, audit=None, file=None, **sections):
        upstream = self.upstream(*turns)
        section = {"file": str(file or self.file), **({"audit": str(audit)} if audit else {})}
        gateway = self.serve(upstream, accounting=section, **sections)
        return gateway, upstream

    def lines(self, count, path=None):
        """Once there are so many: a line comes after its answer."""
        path = path or self.file
        poll(lambda: path.exists() and path.read_text().count("\n") >= count, lambda: f"{count} lines in {path.read_text()}")
        text = path.read_text()
        self.assertEqual(text.count("\n"), count, text)
        return [json.loads(line) for line in text.splitlines()]

    def line(self, path=None):
        return self.lines(1, path)[0]

    def expect(self, line, **wanted):
        self.assertEqual({key: line[key] for key in wanted}, wanted)

    # ---- a request's line ----

    def test_a_request_with_a_run_is_told_to_the_last_figure(self):
        gateway, _ = self.accounted(with_usage(code("print(1)"), DETAILS), answer("ok", usage=(10, 5)),
                                    rules=[{"when": "print", "delay": "5ms"}])  # else its time may be none
        sent = json.dumps(body_of("secret question", session="s")).encode()
        reply = post(gateway, PATH, sent)
        line = self.line()
        self.assertEqual(set(line), {
            "time", "request", "identity", "user", "model", "upstream", "method", "path", "status", "error", "turns", "calls", "runs",
            "searches", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "container_seconds", "duration_seconds",
            "request_bytes", "answer_bytes"})
        self.assertRegex(line["time"], TIME)
        self.expect(line, request=reply.get("x-request-id"), identity="anonymous", user=None, model="mock", upstream="up", method="POST",
                    path=PATH, status=200, error=None, turns=2, calls=1, runs=1, searches=0, input_tokens=110, output_tokens=25,
                    cached_tokens=64, reasoning_tokens=7, request_bytes=len(sent), answer_bytes=len(reply.body))
        self.assertTrue(0 < line["container_seconds"] <= line["duration_seconds"], line)
        self.assertNotIn("question", self.file.read_text())
        self.assertEqual(self.file.stat().st_mode & 0o7777, 0o600)

    def test_a_stream_is_told_the_same(self):
        gateway, _ = self.accounted(streamed("", calls=[("c", "code_interpreter", '{"code": "print(1)"}')], usage=(100, 20)),
                                    streamed("ok", usage=(10, 5)))
        reply = post(gateway, PATH, body_of("x", stream=True))
        self.expect(self.line(), turns=2, runs=1, input_tokens=110, output_tokens=25, cached_tokens=None, reasoning_tokens=None,
                    answer_bytes=len(reply.body), container_seconds=self.line()["container_seconds"])

    def test_searches_are_no_runs(self):
        call = answer(calls=[("c", "web_search", {"query": "x"})])
        gateway, _ = self.accounted(call, answer("ok"), searches=[{"name": "web", "plugin": "mock"}], upstream_options={"surfaces": ["chat"]},
                                    interceptors=[{"plugin": "web_search", "search": "web"}])
        post(gateway, "/v1/responses", {"model": "mock", "input": "x", "tools": [SEARCH]})
        self.expect(self.line(), path="/v1/responses", calls=1, runs=0, searches=1, container_seconds=0)

    def test_relayed_answers_are_read_on_their_way(self):
        usage = {"prompt_tokens": 8, "total_tokens": 8}
        response = {"id": "resp_1", "object": "response", "status": "completed", "output": [],
                    "usage": {"input_tokens": 36, "output_tokens": 87, "input_tokens_details": {"cached_tokens": 12},
                              "output_tokens_details": {"reasoning_tokens": 40}}, "metadata": {"usage": '"usage":{"input_tokens":1}'}}
        begun = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 25, "output_tokens": 1,
                                                                              "cache_read_input_tokens": 9}}}
        ended = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 15}}
        told = "a model says \"usage\":{\"prompt_tokens\":9}"
        rows = [(PATH, answer("x" * 20000), False, (10, 5, None, None)), (PATH, answer(told, usage=None), False, (None, None, None, None)),
                (PATH, streamed("some text", usage=(7, 3)), True, (7, 3, None, None)),
                (PATH, streamed("some text"), True, (None, None, None, None)),
                ("/v1/embeddings", {"data": [{"embedding": [0.5] * 3000}], "usage": usage}, False, (8, None, None, None)),
                ("/v1/responses", response, False, (36, 87, 12, 40)),
                ("/v1/responses", Stream(events({"type": "response.completed", "response": response}, end=False)), True, (36, 87, 12, 40)),
                ("/v1/messages", Stream(events(begun, *[chunk({"content": "x" * 900})] * 30, ended, end=False)), True, (25, 15, 9, None))]
        gateway, _ = self.accounted(*[turn for _, turn, _, _ in rows])
        for count, (path, _, stream, tokens) in enumerate(rows, 1):
            body = body_of("x", stream=stream, tools=[]) if "chat" in path else {"model": "mock", "input": "x", "stream": stream}
            if "messages" in path:
                body = {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "stream": stream}
            self.assertEqual(post(gateway, path, body).status, 200, path)
            line = self.lines(count)[-1]
            got = tuple(line[key] for key in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"))
            self.assertEqual((line["path"], got, line["turns"], line["status"]), (path, tokens, 1, 200))

    def test_what_fails_is_told_too(self):
        gateway, upstream = self.accounted(Status(400, {"error": {"message": "no"}}), code("print(1)"), Status(400), auth=KEYS)
        for count, (more, key) in enumerate((({}, A), ({}, A), ({"model": "unknown"}, A), ({"tools": []}, B),
                                             ({}, B)), 1):  # the last: over requests_per_minute
            if key == B:
                upstream.close()
            post(gateway, PATH, body_of("x", **more), key=key)
            lines = self.lines(count)
        self.assertEqual([(line["identity"], line["status"], line["turns"], line["runs"], line["upstream"]) for line in lines],
                         [("a", 400, 1, 0, "up"), ("a", 424, 2, 1, "up"), ("a", 404, 0, 0, None), ("b", 502, 1, 0, "up"),
                          ("b", 429, 0, 0, None)])
        self.assertTrue(all(line["error"] for line in lines), lines)
        self.assertEqual(lines[1]["input_tokens"], 10, "of the turn that was good")

    def test_who_is_not_known_and_what_only_looks_on_is_not_accounted(self):
        gateway, _ = self.accounted(answer("ok"), auth=KEYS)
        get(gateway, "/health/live")
        get(gateway, "/health/ready")
        get(gateway, "/metrics", key=SCRAPER)
        get(gateway, "/nowhere", key=A)
        post(gateway, PATH, body_of("x"), key="a-wrong-key")
        post(gateway, PATH, body_of("x", tools=[]), key=FRONT, headers={"x-user": "anna"})
        get(gateway, "/v1/models", key=B)
        lines = self.lines(2)
        # Two loops may have answered, each with lines of its own.
        self.assertCountEqual([(line["identity"], line["user"], line["path"]) for line in lines],
                              [("front", "anna", PATH), ("b", None, "/v1/models")])

    def test_a_client_that_leaves_is_told_as_gone(self):
        def begins(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": "A"}), end=False))
            self.assertTrue(connection.wait_closed())
        gateway, upstream = self.accounted(begins, lambda connection: connection.wait_closed() and False)
        for stream in (True, False):
            with Wire(gateway) as wire:
                wire.post(body_of("x", stream=stream, tools=[]))
                if stream:
                    wire.stream().read1(65536)
                else:
                    upstream.next_request()
                    upstream.next_request()
            lines = self.lines(1 if stream else 2)
        self.assertEqual([(line["status"], line["error"], line["turns"]) for line in lines], [(200, "CANCELLED", 1), (499, "CANCELLED", 1)])

    # ---- the file ----

    def test_without_the_section_nothing_is_written(self):
        gateway = self.serve(self.upstream(answer("ok")))
        post(gateway, PATH, body_of("x", tools=[]))
        gateway.wait_event("request")
        self.assertNotIn("accounting_lines", "".join(metrics(gateway)))
        self.assertNotIn("audit", gateway.log())

    def test_standard_error_is_possible(self):
        gateway, _ = self.accounted(answer("ok"), file="-")
        post(gateway, PATH, body_of("x", tools=[]))
        poll(lambda: '{"time":"' in gateway.log(), gateway.log)
        line = json.loads(next(line for line in gateway.log().splitlines() if line.startswith("{")))
        self.expect(line, model="mock", input_tokens=10)

    def test_a_renamed_file_is_left_on_sighup_and_nothing_is_lost(self):
        gateway, _ = self.accounted(*[answer("ok")] * 3)
        post(gateway, PATH, body_of("x", tools=[]))
        self.line()
        old = self.file.with_suffix(".1")
        self.file.rename(old)
        post(gateway, PATH, body_of("x", tools=[]))
        self.lines(2, old)
        gateway.signal(signal.SIGHUP)
        self.assertEqual(gateway.wait_event("accounting_reopened")["file"], str(self.file))
        post(gateway, PATH, body_of("x", tools=[]))
        self.line()
        self.assertEqual(len(self.lines(2, old)), 2)

    def test_all_of_it_is_there_at_the_end(self):
        gateway, _ = self.accounted(*[answer("ok")] * 20)
        ids = [post(gateway, PATH, body_of("x", tools=[])).get("x-request-id") for _ in range(20)]
        gateway.stop()
        self.assertCountEqual([line["request"] for line in self.lines(20)], ids)

    def test_a_full_disk_stops_nobody_and_is_told_once(self):
        self.file.symlink_to("/dev/full")
        gateway, _ = self.accounted(*[answer("ok")] * 6)
        for _ in range(3):
            self.assertEqual(post(gateway, PATH, body_of("x", tools=[])).status, 200)
        failed = gateway.wait_event("accounting_failed")
        self.assertEqual((failed["level"], failed["file"], failed["message"]),
                         ("error", str(self.file), "cannot be written: No space left on device"))
        for _ in range(2):
            post(gateway, PATH, body_of("x", tools=[]))
        self.file.unlink()  # there is room again
        gateway.signal(signal.SIGHUP)
        self.assertEqual(gateway.wait_event("accounting_resumed")["lost"], "0")
        self.assertEqual([line["status"] for line in self.lines(5)], [200] * 5)
        self.assertEqual(len(gateway.events("accounting_failed")), 1)
        self.assertEqual(metrics(gateway)["sandgate_accounting_lines_written_total"], 5)

    def test_what_is_lost_with_a_full_disk_is_told_at_the_end(self):
        gateway, _ = self.accounted(answer("ok"), file="/dev/full")
        post(gateway, PATH, body_of("x", tools=[]))
        gateway.wait_event("accounting_failed")
        gateway.stop()
        self.assertEqual(gateway.events("accounting_lost")[0]["lost"], "1")

    def test_a_file_that_cannot_be_is_told_before_the_start(self):
        config = {"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}], "server": {"listen": "127.0.0.1:0"}}
        path = pathlib.Path(self.path("config.yaml"))
        open_audit, folder = pathlib.Path(self.path("audit")), path.parent
        open_audit.touch(0o644)
        os.chmod(open_audit, 0o644)
        link = pathlib.Path(self.path("link"))
        link.symlink_to(open_audit)
        own = "accounting: 'audit' must be another file than 'file': who settles accounts need not read what clients say"
        for section, words in (
                ({"file": "/no/such/folder/x"}, "accounting: 'file' is in a folder that is not there, or not for the gateway to look into: make it"),
                ({"file": str(folder)}, "accounting: 'file' is a folder: name a file in it"),
                ({"file": ""}, "accounting: 'file' is empty: name a file, or leave it out"),
                ({"audit": str(open_audit)}, "accounting: 'audit' is a file that is open to others: chmod 600 it"),
                ({"audit": "-"}, "accounting: 'audit' must be a file of its own, not '-': what clients say does not belong into the log"),
                ({"file": "y", "audit": "./y"}, own), ({"file": str(open_audit), "audit": link.name}, own),
                ({"fiel": "x"}, "accounting: unknown key 'fiel'; did you mean 'file'?")):
            path.write_text(to_yaml({**config, "accounting": section}))
            for command in ("check", "serve"):
                code_, _, err = run(command, "--config", str(path))
                self.assertEqual(code_, 1, section)
                self.assertIn(words, err)

    def test_what_the_gateway_may_not_write_is_told_to_an_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="sandgate-accounting-"))
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        (folder / "mine").touch(0o600)
        (folder / "link").symlink_to("new")
        path = folder / "config.yaml"
        for file, words in (("mine", "accounting: 'file' is a file that the gateway may not write"),
                            ("new", "accounting: 'file' is in a folder that the gateway may not write"),
                            ("link", "accounting: 'file' is a link into a folder that the gateway may not write")):
            path.write_text("auth: { mode: none }\nupstreams: [{ name: m, base_url: 'http://127.0.0.1:1', models: [m] }]\n"
                            f"accounting: {{ file: {file} }}\n")
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BINARY, "check", "--config", path],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)

    def test_a_name_that_a_client_chooses_is_cut(self):
        gateway, upstream = self.accounted(answer("ok"), upstream_options={"models": ["*"]})
        long = "m" * 1_000_000
        post(gateway, PATH, {"model": long, "messages": [{"role": "user", "content": "x"}]})
        self.assertEqual(self.line()["model"], "m" * 256)
        self.assertEqual(upstream.requests[0].json["model"], long)


    def test_metrics_sum_up_by_identity_and_model(self):
        gateway, _ = self.accounted(with_usage(code("print(1)"), DETAILS), answer("ok", usage=(10, 5)), answer("ok"), Status(404),
                                    auth=KEYS, upstream_options={"models": ["*"]})
        post(gateway, PATH, body_of("x"), key=A)
        post(gateway, PATH, body_of("x", tools=[], model='odd"\nname'), key=A)
        post(gateway, PATH, body_of("x", tools=[], model="not-there"), key=B)
        self.lines(3)
        found = {name: value for name, value in metrics(gateway, SCRAPER).items() if name.startswith("sandgate_usage")}
        seconds = found.pop('sandgate_usage_container_seconds_total{identity="a",model="mock"}')
        self.assertGreater(seconds, 0)

        def family(name, first, second):
            return {f'sandgate_usage_{name}_total{{identity="a",model="mock"}}': first,
                    f'sandgate_usage_{name}_total{{identity="a",model="odd\\"\\nname"}}': second}
        self.assertEqual(found, {**family("requests", 1, 1), **family("input_tokens", 110, 10), **family("output_tokens", 25, 5),
                                 **family("cached_tokens", 64, 0), **family("reasoning_tokens", 7, 0), **family("runs", 1, 0),
                                 **family("searches", 0, 0),
                                 'sandgate_usage_container_seconds_total{identity="a",model="odd\\"\\nname"}': 0})

    # ---- the audit ----

    def test_the_audit_has_what_was_asked_and_run_and_no_key(self):
        audit = pathlib.Path(self.path("audit.jsonl"))
        gateway, upstream = self.accounted(code("print(6 * 7)"), answer("a secret answer"), answer("ok"), audit=audit, auth=KEYS,
                                           rules=[{"when": "print", "stdout": "42\n"}],
                                           upstream_options={"api_key": "sk-of-the-operator", "headers": {"x-secret": "value-of-a-header"}})
        warned = gateway.wait_event("audit_is_on")
        self.assertEqual((warned["level"], warned["file"], warned["message"]),
                         ("warn", str(audit), "what clients ask, and code that runs for them, is written there in full"))
        first = post(gateway, PATH, body_of("x", text="a secret question"), key=FRONT, headers={"x-user": "anna"})
        post(gateway, PATH, body_of("x", text="relayed", tools=[]), key=A)
        lines = self.lines(5, audit)
        self.assertEqual([(line["kind"], line["turn"], line["tool"]) for line in lines], [
            ("body", 1, None), ("call", 1, "code_interpreter"), ("result", 1, "code_interpreter"), ("body", 2, None), ("body", 1, None)])
        self.assertEqual([lines[i]["text"].encode() for i in (0, 3, 4)], [request.body for request in upstream.requests])
        self.assertEqual(json.loads(lines[1]["text"]), {"code": "print(6 * 7)"})
        self.assertIn("42", lines[2]["text"])
        self.expect(lines[0], request=first.get("x-request-id"), identity="front", user="anna", model="mock", upstream="up",
                    bytes=len(upstream.requests[0].body))
        self.assertEqual(audit.stat().st_mode & 0o7777, 0o600)
        for secret in (A, FRONT, "sk-of-the-operator", "value-of-a-header"):
            self.assertNotIn(secret, audit.read_text())
        self.assertNotIn("secret question", self.file.read_text() + gateway.log())

    def test_a_long_text_is_cut_there(self):
        audit = pathlib.Path(self.path("audit.jsonl"))
        gateway, upstream = self.accounted(answer("ok"), audit=audit)
        post(gateway, PATH, body_of("x", text="ä" * 200000, tools=[]))
        line = self.line(audit)
        self.assertEqual(line["bytes"], len(upstream.requests[0].body))
        self.assertTrue(256 * 1024 - 4 < len(line["text"].encode()) <= 256 * 1024)


if __name__ == "__main__":
    main()
