"""What is measured: each class one subject, prepared once and measured once a round.

A round measures all servers one after another, in another order each time, so that what the machine does meanwhile hits
all alike. A figure is (subject, what, who); its values are one a round.
"""
import json
import http.client
import os
import re
import select
import subprocess
import time

import servers
from servers import Failed, probe

WAITING = 9500
STREAMS = 500
FORM_STREAMS = 100
DESCRIPTORS_NEEDED = 2 * WAITING + 600  # of the server: the connections of clients and upstream
DESCRIPTORS_WANTED = 24_000  # from 7/8 of its limit on sandgate closes idle connections: measured with room above that
BODY_KB = (2, 20, 200)
SESSIONS = (10, 10_000)
SESSION_CONNECTIONS = 10
ASK = "Run this Python code and tell me the result: print(6 * 7)"
WORDS = "A sentence as people write them, with commas, a few \"quoted\" words, and its end of line.\n"
TOOLS = [{"type": "code_interpreter"}]


class Results:
    """figures[(subject, what, who)] = {"unit", "values"}; `notes` say what is to be known about them."""

    def __init__(self):
        self.figures, self.notes = {}, []

    def add(self, subject, what, who, unit, value):
        if value is None:
            self.note(f"{subject}, {who}: nothing was answered, so there is no {what}")
            return
        self.figures.setdefault((subject, what, who), {"unit": unit, "values": []})["values"].append(value)

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)


# ---- one measurement ----

class Outcome:
    """What bench_load says, and what /proc says of the server meanwhile."""

    def __init__(self, said, cpu_us, rss_peak, threads_peak):
        self.said, self.cpu_us, self.rss_peak, self.threads_peak = said, cpu_us, rss_peak, threads_peak
        self.errors, self.answers, self.chunks = said["errors"], said["answers"], said["chunks"]

    def cpu_each(self, count):
        return self.cpu_us / count if count else None

    def core_share(self):
        return self.cpu_us / 1e6 / self.said["seconds"]

    def time_us(self, series, which):
        return self.said[series][which + "_us"]


def lines_of(process, between):
    """The lines of its output as they come; between() is called at least four times a second."""
    rest = b""
    while True:
        if select.select([process.stdout], [], [], 0.25)[0]:
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode() for line in lines)
        between()


def load(lab, server, body, connections, seconds=None, watch=False, **options):
    """Runs bench_load against the server; **options are its own. The CPU is that between its two marks."""
    os.truncate(server.log_path, 0)
    command = [lab.build / "bench/bench_load", "--port", str(options.pop("port", server.port)), "--body", body,
               "--connections", str(connections), "--seconds", str(seconds or lab.settings.seconds)]
    for name, value in options.items():
        command += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    for name, value in server.headers.items():
        command += ["--header", f"{name}: {value}"]
    peaks, cpu, said = {"rss": 0, "threads": 0}, {}, None

    def look():
        if watch:
            peaks["rss"] = max(peaks["rss"], server.rss_bytes())
            peaks["threads"] = max(peaks["threads"], server.threads())

    process = servers.spawn(command, {lab.cores["load"]}, stdout=subprocess.PIPE, bufsize=0)
    try:
        for line in lines_of(process, look):
            if line in ("begin", "end"):
                cpu[line] = server.cpu_us()
            else:
                said = json.loads(line)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if lab.upstream.process.poll() is not None:
        raise Failed(f"the upstream ended: {lab.upstream.process.returncode}")
    if said is None or len(cpu) != 2 or process.returncode not in (0, -9):
        raise Failed(f"the load on {server.name} ended early: {server.last_words()}")
    return Outcome(said, cpu["end"] - cpu["begin"], peaks["rss"], peaks["threads"])


def load_without_errors(lab, server, *arguments, **options):
    """The same; an error ends the run, but for servers of others, where it becomes a note."""
    outcome = load(lab, server, *arguments, **options)
    if outcome.errors > 0:
        what = f"{server.name}: {outcome.errors} errors, the first: {outcome.said['error']}"
        if server.name != "portkey":
            raise Failed(f"{what}; its log ends: {server.last_words()}")
        lab.results.note(f"{what} ({arguments[1]} connections)")
    if outcome.answers + outcome.chunks == 0 and server.name != "portkey":
        raise Failed(f"{server.name} answered nothing: {server.last_words()}")
    if server.process.poll() is not None:
        raise Failed(f"{server.name} ended: {server.last_words()}")
    return outcome


# ---- bodies ----

def write_body(lab, name, body):
    """In the compact form of client libraries; the model first, where the upstream looks for it."""
    path = lab.work / f"{name}.json"
    path.write_text(json.dumps(body, separators=(",", ":")))
    return path


def chat(model, size=1000, **more):
    """A chat request of about `size` bytes: a history with a question at its end."""
    messages = [{"role": "user", "content": ASK}]
    body = {"model": model, "messages": messages, **more}
    missing = size - len(json.dumps(body, separators=(",", ":")))
    for i in range(max(missing, 0) // 450):
        role = "user" if i % 2 == 0 else "assistant"
        messages.insert(i, {"role": role, "content": f"Message {i}:\n" + WORDS * 4})
    missing = size - len(json.dumps(body, separators=(",", ":")))
    if missing > 40:
        messages.insert(0, {"role": "system", "content": "x" * (missing - 34)})
    return body


# ---- the subjects ----

class Subject:
    """prepare() once, measure() once a round; seconds(settings) is what a round takes."""

    def prepare(self, lab):
        pass

    def measure(self, lab, turn):
        raise NotImplementedError

    def seconds(self, settings):
        raise NotImplementedError

    def add(self, lab, what, who, unit, value):
        lab.results.add(self.name, what, who, unit, value)


def rotated(items, turn):
    items = list(items)
    by = turn % len(items)
    return items[by:] + items[:by]


class Relay(Subject):
    """A plain request of 1 KB, relayed; what it adds to the time at one connection."""
    name, title = "relay", "Plain requests of 1 KB"

    def prepare(self, lab):
        self.body = write_body(lab, "relay", chat("m"))
        self.servers = [lab.start(kind) for kind in lab.kinds]
        for server in self.servers:
            probe(server, chat("m"), "Good morning.")
            load(lab, server, self.body, 32, seconds=min(2, lab.settings.seconds))

    def measure(self, lab, turn):
        for connections in (32, 256):
            for server in rotated(self.servers, turn):
                outcome = load_without_errors(lab, server, self.body, connections)
                self.add(lab, f"CPU a request, {connections} connections", server.name, "µs",
                         outcome.cpu_each(outcome.answers))
        times = {}
        for server in rotated([lab.upstream, *self.servers], turn):
            times[server] = load_without_errors(lab, server, self.body, 1)
        for which in ("p50", "p99"):
            direct = times[lab.upstream].time_us("whole", which)
            self.add(lab, f"{which} at 1 connection", "upstream", "µs", direct)
            for server in self.servers:
                self.add(lab, f"added {which} at 1 connection", server.name, "µs",
                         times[server].time_us("whole", which) - direct)

    def seconds(self, settings):
        return 10 * (settings.seconds + 0.4)


class Tool(Subject):
    """A request with one run of code: two turns at the upstream, a container made, used and deleted between them."""
    name, title = "tool", "A tool turn: the model calls the code interpreter once (mock sandbox)"

    def prepare(self, lab):
        self.server = lab.start("sandgate")
        self.bodies = [("relayed", write_body(lab, "tool-plain", chat("m"))),
                       ("tool turn", write_body(lab, "tool", chat("tool", tools=TOOLS)))]
        probe(self.server, chat("tool", tools=TOOLS), "Good morning.")

    def measure(self, lab, turn):
        for who, body in rotated(self.bodies, turn):
            outcome = load_without_errors(lab, self.server, body, 32)
            self.add(lab, "CPU a request, 32 connections", who, "µs", outcome.cpu_each(outcome.answers))

    def seconds(self, settings):
        return 2 * (settings.seconds + 0.4)


class Bodies(Subject):
    """Long histories: relayed, and with a tool offered (scanned, spliced; the model does not call it)."""
    name, title = "bodies", "Chat bodies of 2, 20 and 200 KB"

    def prepare(self, lab):
        sandgate = lab.start("sandgate")
        self.variants = []
        for who, server, more in (("nginx", lab.start("nginx"), {}), ("sandgate", sandgate, {}),
                                  ("sandgate, tool offered", sandgate, {"tools": TOOLS})):
            for kb in BODY_KB:
                body = chat("m", kb * 1000, **more)
                probe(server, body, "Good morning.")
                self.variants.append((who, kb, server, write_body(lab, f"{who}-{kb}", body)))

    def measure(self, lab, turn):
        for who, kb, server, body in rotated(self.variants, turn * 4):
            outcome = load_without_errors(lab, server, body, 32)
            self.add(lab, f"CPU a request, {kb} KB", who, "µs", outcome.cpu_each(outcome.answers))

    def seconds(self, settings):
        return 9 * (settings.seconds + 0.4)


class Sessions(Subject):
    """The same requests while 10 and while 10,000 sessions have a container. All sessions are used, one after another."""
    name, title = "sessions", "10 and 10,000 live sessions"

    def prepare(self, lab):
        session = chat("tool", tools=TOOLS, metadata={"session_id": "s-%%%%%%%%"})
        self.plain, self.session = write_body(lab, "session-plain", chat("m")), write_body(lab, "session", session)
        self.servers = []
        for count in SESSIONS:
            server = lab.start("sandgate")
            outcome = load_without_errors(lab, server, self.session, SESSION_CONNECTIONS, ids=count, once=True)
            self.servers.append((count, server))
            self.check(server, count)
            if outcome.answers != count:
                raise Failed(f"{outcome.answers} sessions were made instead of {count}")

    def check(self, server, count):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/metrics")
        found = re.search(r"^sandgate_sessions (\d+)$", connection.getresponse().read().decode(), re.M)
        connection.close()
        if found is None or int(found[1]) != count:
            raise Failed(f"{count} sessions should live, {found and found[1]} do")

    def measure(self, lab, turn):
        for count, server in rotated(self.servers, turn):
            for what, body in (("relayed", self.plain), ("tool turn in a session", self.session)):
                outcome = load_without_errors(lab, server, body, SESSION_CONNECTIONS, ids=count)
                self.add(lab, f"CPU a request, {what}", f"{count} sessions", "µs", outcome.cpu_each(outcome.answers))
            self.check(server, count)

    def seconds(self, settings):
        return 4 * (settings.seconds + 0.4)


class Streams(Subject):
    """500 streams at a time, begun over a second, each of 250 chunks at 50 a second. Every chunk carries its time."""
    name, title = "streams", "500 streams of 50 chunks a second"

    def prepare(self, lab):
        plain = write_body(lab, "stream", chat("stream", stream=True))
        offered = write_body(lab, "stream-tool", chat("stream", stream=True, tools=TOOLS))
        self.variants = [("upstream", lab.upstream, plain)]
        self.variants += [(kind, lab.start(kind), plain) for kind in lab.kinds]
        sandgate = next(server for who, server, _ in self.variants if who == "sandgate")
        self.variants.append(("sandgate, tool offered", sandgate, offered))

    def measure(self, lab, turn):
        wanted = STREAMS * lab.settings.stream_rate
        for who, server, body in rotated(self.variants, turn):
            outcome = load_without_errors(lab, server, body, STREAMS, port=server.stream_port, ramp=1, cut=True)
            arrived = outcome.chunks / outcome.said["seconds"]
            if arrived < 0.9 * wanted:
                lab.results.note(f"streams, {who}: only {arrived:.0f} of {wanted} chunks a second arrived")
            for series, what in (("first", "first byte"), ("passage", "age of a chunk on arrival")):
                for which in ("p50", "p99"):
                    self.add(lab, f"{what}, {which}", who, "ms", outcome.time_us(series, which) / 1000)
            if server is not lab.upstream:
                self.add(lab, "CPU a chunk", who, "µs", outcome.cpu_each(outcome.chunks))

    def seconds(self, settings):
        return 5 * (settings.seconds + 1.5)


class Forms(Subject):
    """100 streams at a time of each API form, with a tool offered, so that the gateway reads and writes every event."""
    name, title = "forms", "100 streams of each API form, a tool offered"
    FORMS = (("chat", "/v1/chat/completions", "stream", {"messages": True, "tools": TOOLS}),
             ("responses", "/v1/responses", "stream-responses",
              {"input": True, "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
             ("messages", "/v1/messages", "stream-messages",
              {"messages": True, "max_tokens": 1000, "tools": [{"type": "code_execution_20250522", "name": "code_execution"}]}))

    def prepare(self, lab):
        sandgate, self.variants = lab.start("sandgate"), []
        for form, path, model, more in self.FORMS:
            asked = {key: [{"role": "user", "content": ASK}] if value is True else value for key, value in more.items()}
            body = write_body(lab, f"form-{form}", {"model": model, "stream": True, **asked})
            self.variants += [(f"{form}, upstream", path, lab.upstream, body), (form, path, sandgate, body)]
            if form == "chat":
                self.variants += [(kind, path, lab.start(kind), body) for kind in ("nginx", "pump") if kind != "nginx"
                                  or kind in lab.kinds]

    def measure(self, lab, turn):
        for who, path, server, body in rotated(self.variants, turn):
            outcome = load_without_errors(lab, server, body, FORM_STREAMS, port=server.stream_port, path=path, ramp=1, cut=True)
            for which in ("p50", "p99"):
                self.add(lab, f"first byte, {which}", who, "ms", outcome.time_us("first", which) / 1000)
            if server is not lab.upstream:
                self.add(lab, "CPU a chunk", who, "µs", outcome.cpu_each(outcome.chunks))

    def seconds(self, settings):
        return 8 * (settings.seconds + 1.5)


class Translated(Subject):
    """Clients of Messages over a server that speaks chat alone, beside clients of chat; a tool is offered in both."""
    name, title = "translated", "Clients of Messages over a server of Chat"
    CODE = [{"type": "code_execution_20250522", "name": "code_execution"}]

    def prepare(self, lab):
        self.server, self.bodies, self.streams = lab.start("sandgate"), [], []
        for kb in (2, 200):
            own = chat("of-chat", kb * 1000)
            messages = [message for message in own["messages"] if message["role"] != "system"]
            system = "".join(message["content"] for message in own["messages"] if message["role"] == "system")
            other = {"model": "of-chat", "max_tokens": 1000, "system": system or "x", "messages": messages, "tools": self.CODE}
            self.bodies += [("untranslated", kb, "/v1/chat/completions", write_body(lab, f"own-{kb}", {**own, "tools": TOOLS})),
                            ("translated", kb, "/v1/messages", write_body(lab, f"other-{kb}", other))]
        asked = {"model": "stream", "stream": True, "messages": [{"role": "user", "content": ASK}]}
        self.streams = [("untranslated", "/v1/chat/completions", write_body(lab, "own-stream", {**asked, "tools": TOOLS})),
                        ("translated", "/v1/messages",
                         write_body(lab, "other-stream", {**asked, "max_tokens": 1000, "tools": self.CODE}))]

    def measure(self, lab, turn):
        for who, kb, path, body in rotated(self.bodies, turn):
            outcome = load_without_errors(lab, self.server, body, 32, path=path)
            self.add(lab, f"CPU a request, {kb} KB", who, "µs", outcome.cpu_each(outcome.answers))
        for who, path, body in rotated(self.streams, turn):
            outcome = load_without_errors(lab, self.server, body, FORM_STREAMS, port=self.server.stream_port, path=path, ramp=1,
                                          cut=True)
            self.add(lab, "CPU a chunk", who, "µs", outcome.cpu_each(outcome.chunks))

    def seconds(self, settings):
        return 4 * (settings.seconds + 0.4) + 2 * (settings.seconds + 1.5)


class Waiting(Subject):
    """9,500 connections, each with a request that waits 2–6 s on the upstream and is sent again when it is answered."""
    name, title = "waiting", "9,500 requests waiting 2–6 s on the upstream"
    measurable = True

    def prepare(self, lab):
        self.body = write_body(lab, "wait", chat("wait"))
        if lab.descriptors < DESCRIPTORS_NEEDED:
            self.measurable = False
            lab.results.note(f"9,500 waiting requests are NOT MEASURED: a process may open {lab.descriptors} files here, "
                             f"{DESCRIPTORS_NEEDED} are needed (ulimit -Hn)")
        elif lab.descriptors < DESCRIPTORS_WANTED:
            lab.results.note(f"a process may open {lab.descriptors} files here: with 9,500 waiting sandgate closes idle "
                             f"connections, from {DESCRIPTORS_WANTED} on it need not (ulimit -Hn)")

    def measure(self, lab, turn):
        if not self.measurable:
            return
        for kind in rotated(lab.kinds, turn):
            server = lab.start(kind)  # a fresh one: what it holds is of this measurement alone
            idle = server.threads()
            outcome = load(lab, server, self.body, WAITING, max(lab.settings.seconds, 2), watch=True, ramp=3, warm=3, drain=20)
            self.add(lab, "errors", kind, "", outcome.errors)
            self.add(lab, "share of a core", kind, "", outcome.core_share())
            self.add(lab, "RSS at most", kind, "MB", outcome.rss_peak / 1e6)
            self.add(lab, "threads more than idle", kind, "", outcome.threads_peak - idle)
            if outcome.errors:
                ended = ", and its process ended" if server.process.poll() is not None else ""
                lab.results.note(f"waiting, {kind}: {outcome.errors} errors, the first: {outcome.said['error']}{ended}")
            lab.stop(server)

    def seconds(self, settings):
        return 3 * (max(settings.seconds, 2) + 3 + 3 + 6 + 1)


class Limits(Subject):
    """What a key costs, and its limits: the same request with each kind of authentication."""
    name, title = "limits", "Keys and their limits: a plain request of 1 KB, 32 connections"
    servers_count = len(servers.AUTHS)

    def start(self, lab):
        return [(auth, lab.start_sandgate(auth)) for auth in servers.AUTHS]

    def prepare(self, lab):
        self.body = write_body(lab, self.name, chat("m"))
        self.servers = self.start(lab)
        for _, server in self.servers:
            probe(server, chat("m"), "Good morning.")
            load(lab, server, self.body, 32, seconds=min(2, lab.settings.seconds))

    def measure(self, lab, turn):
        for auth, server in rotated(self.servers, turn):
            outcome = load_without_errors(lab, server, self.body, 32)
            self.add(lab, "CPU a request", auth, "µs", outcome.cpu_each(outcome.answers))

    def seconds(self, settings):
        return self.servers_count * (settings.seconds + 0.4)


class Accounting(Limits):
    """What a line for each request costs, its tokens read from the relayed answer."""
    name, title = "accounting", "Accounting: a plain request of 1 KB, 32 connections"
    servers_count = 2

    def start(self, lab):
        file = lab.work / "accounting.jsonl"
        return [("without", lab.start_sandgate()), ("with", lab.start_sandgate(more=f"accounting: {{ file: {file} }}\n"))]


class Tls(Subject):
    """What TLS costs: over connections that are kept, and with a handshake for each request. An nginx on the load's core
    speaks TLS for the load."""
    name, title = "tls", "TLS 1.3: a plain request of 1 KB, 32 connections"

    def prepare(self, lab):
        self.body, self.ways = write_body(lab, self.name, chat("m")), []
        if "nginx" not in lab.kinds:
            lab.results.note("TLS is NOT MEASURED: there is no nginx to speak it for the load")
            return
        for who, start in (("nginx", lab.start_nginx_tls), ("sandgate", lab.start_sandgate_tls)):
            server, port = start()
            kept, new = lab.start_tls_client(port)
            self.ways += [(f"{who}, kept connections", server, kept), (f"{who}, a handshake each", server, new)]
        for who, start in (("nginx", lab.start_nginx), ("sandgate", lab.start_sandgate)):
            server = start()
            self.ways.append((f"{who}, without TLS", server, server.port))
        for _, server, port in self.ways:
            load(lab, server, self.body, 32, seconds=min(2, lab.settings.seconds), port=port)

    def measure(self, lab, turn):
        for who, server, port in rotated(self.ways, turn):
            outcome = load_without_errors(lab, server, self.body, 32, port=port)
            self.add(lab, "CPU a request", who, "µs", outcome.cpu_each(outcome.answers))

    def seconds(self, settings):
        return 6 * (settings.seconds + 0.4)


class Local(Subject):
    """The local sandbox by itself: real processes in real namespaces, by its own benchmark."""
    name, title = "local", "The local sandbox (40 containers a round, the median of each)"
    PATTERN = re.compile(r"^(\S.*?) +min +[0-9.]+ +median +([0-9.]+) +p95 +[0-9.]+ (ms|MB)$", re.M)
    NEEDED = {"create to first output", "next run", "create to first output, cold", "memory of an idle session"}

    def prepare(self, lab):
        self.program = lab.build / "tests/bench_local"

    def measure(self, lab, turn):
        process = servers.spawn([self.program, "40"], lab.cores["all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said, failed = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            said, failed = "", "it takes too long"
        finally:
            process.kill()
            process.wait()
        found = self.PATTERN.findall(said)
        if not self.NEEDED <= {what for what, _, _ in found}:
            lab.results.note(f"the local sandbox is NOT MEASURED: {failed.strip()[-300:] or said.strip()[-300:]}")
        if "not measured with packages" in said:
            lab.results.note("numpy, pandas and matplotlib are not all installed: the local sandbox is not measured with them")
        for what, median, unit in found:
            self.add(lab, what, "local", unit, float(median))

    def seconds(self, settings):
        return 15


SUBJECTS = (Relay, Tool, Bodies, Sessions, Streams, Forms, Translated, Limits, Accounting, Tls, Waiting, Local)


def measure_all(lab, wanted, rounds, say):
    subjects = [subject() for subject in SUBJECTS if subject.name in wanted]
    expected = sum(subject.seconds(lab.settings) for subject in subjects) * rounds
    say(f"Measuring, {rounds} rounds; this takes about {expected / 60:.1f} minutes …")
    began = time.monotonic()
    for subject in subjects:
        subject.prepare(lab)
    for turn in range(rounds):
        for subject in subjects:
            subject.measure(lab, turn)
        say(f"  round {turn + 1} of {rounds}: {time.monotonic() - began:.0f} s")
