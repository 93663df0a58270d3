"""What every end-to-end test shares: the real binary, served over loopback, and the check at the end of each test.

A test starts gateways with `self.gateway(config)`; each gets a port of its own and is awaited by the line that it logs
once it serves. When the test is over every gateway is stopped and looked at: SIGTERM gives exit code 0, no container is
left, every container that was made was deleted, no descriptor and no process is left, and no sanitizer said a word.
Nothing here sleeps for a time that is hoped to suffice: waiting is for a line, a byte, or a state that is asked for.

Test methods are named test_…, bNN_… (a behaviour of the specification) or cNNN_… (a case reported elsewhere).
"""
import atexit
import functools
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import descriptors
from certificates import Authority
from upstream import Upstream

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build-debug")).resolve()
BINARY = BUILD / "bin" / "sandgate"
# "1": every gateway whose configuration a test gives as sections speaks TLS, and so do the clients: what is tested of HTTP is
# tested over TLS as well.
OVER_TLS = os.environ.get("SANDGATE_TEST_TLS", "") == "1"
PATIENCE = float(os.environ.get("SANDGATE_TEST_PATIENCE", "60"))  # seconds until a wait is called a failure
UNDER = os.environ.get("SANDGATE_TEST_PREFIX", "").split()  # what runs the gateway: scripts/valgrind.sh
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:", "CHECK failed")


def poll(condition, what, patience=PATIENCE):
    """Asks for a state outside this process until it is there; the value that `condition` gave."""
    end = time.monotonic() + patience
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience:.0f} s in vain for: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)  # what is asked may cost more than what is waited for


# ---- configuration ----

PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*|[0-9]+(ms|s|m|h|B|KiB|MiB|GiB)|[0-9.]+:[0-9]+")
NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off"}


def scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if PLAIN.fullmatch(text) and text.lower() not in NOT_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)


def to_yaml(value, indent=0):
    """A block of YAML for dicts, lists and scalars, as an operator would write it."""
    pad = "  " * indent
    lines = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, (dict, list)) and inner:
                lines.append(f"{pad}{key}:")
                lines.append(to_yaml(inner, indent + 1))
            else:
                lines.append(f"{pad}{key}: {scalar_or_empty(inner)}")
    else:
        for inner in value:
            if isinstance(inner, (dict, list)) and inner:
                block = to_yaml(inner, indent + 1)
                lines.append(f"{pad}- {block.lstrip()}")
            else:
                lines.append(f"{pad}- {scalar_or_empty(inner)}")
    return "\n".join(lines)


def scalar_or_empty(value):
    if value == {}:
        return "{}"
    if value == []:
        return "[]"
    return scalar(value)


# ---- processes ----

def process_facts():
    """pid → (parent, session, start time), of all processes that this one can see."""
    facts = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = pathlib.Path("/proc", name, "stat").read_text()
        except OSError:
            continue  # it has ended meanwhile
        fields = text[text.rindex(")") + 2:].split()
        if fields[0] != "Z":
            facts[int(name)] = (int(fields[1]), int(fields[3]), fields[19])
    return facts


def descendants(pid, facts):
    found, wave = {}, [pid]
    while wave:
        wave = [child for child, fact in facts.items() if fact[0] in wave and child not in found]
        found.update({child: facts[child][2] for child in wave})
    return found


# ---- the log ----

LOG_FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)')


def parse_log(line):
    """A line of key=value as a dict; text that is none of the gateway's log lines gives {}."""
    if not line.startswith("time="):
        return {}
    fields = {}
    for key, value in LOG_FIELD.findall(line):
        if value.startswith('"'):
            value = re.sub(r"\\(x[0-9a-f]{2}|.)",
                           lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and len(m[1]) == 3 else m[1],
                           value[1:-1])
        fields[key] = value
    return fields


@functools.lru_cache(maxsize=None)
def shared_authority():
    """(authority, certificate, key) for all tests of a file."""
    authority = Authority()
    atexit.register(shutil.rmtree, authority.folder, True)
    return authority, *authority.sign("localhost")


def with_tls(config):
    """The same sections with a certificate for localhost, and what clients trust."""
    authority, certificate, key = shared_authority()
    server = {**config.get("server", {}), "tls": {"certificate": str(certificate), "key": str(key)}}
    return {**config, "server": server}, authority.context()


class Gateway:
    """One running `sandgate serve`."""

    def __init__(self, test, config, env=None, journals=(), upstream_ports=(), serve=True, arguments=None, prefix=(),
                 readable=False, pass_fds=(), binary=BINARY, tls=None):
        self.test = test
        self.tls, self.authority = tls, None  # an ssl.SSLContext of clients, where the configuration has a certificate
        if OVER_TLS and tls is None and isinstance(config, dict) and not readable:
            self.authority = shared_authority()[0]
            config, self.tls = with_tls(config)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sandgate-e2e-", dir=test.folder))
        self.config_path = self.folder / "config.yaml"
        self.config_path.write_text(config if isinstance(config, str) else to_yaml(config) + "\n")
        if readable:  # by the other user whom `prefix` makes it run as
            for path in (test.folder, self.folder):
                os.chmod(path, 0o755)
        self.journals = list(journals)
        self.upstream_ports = set(upstream_ports)
        self.lines, self.half_line = [], b""
        self.changed = threading.Condition()
        self.ended = False
        self.stopped = False
        self.was_told = False  # to end
        self.port = 0
        # `--pdeathsig` last, for changing the user clears it: a test program that is killed leaves no gateway behind.
        command = [*prefix, shutil.which("setpriv"), "--pdeathsig", "KILL", *UNDER, str(binary), "serve",
                   "--config", str(self.config_path), *(("--listen", "127.0.0.1:0") if arguments is None else arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env={**test.environment(), **(env or {})},
                                        start_new_session=True, pass_fds=pass_fds)
        self.pid = self.process.pid
        os.set_blocking(self.process.stderr.fileno(), False)
        threading.Thread(target=self._read, daemon=True).start()
        if serve:
            serving = self.wait_event("serving")
            self.address = serving["address"]
            number = self.address.rsplit(":", 1)[1]
            self.port = int(number) if number.isdigit() else 0  # of a Unix socket
            self.fds_before = self.fds()

    def _read(self):
        reader = select.poll()
        reader.register(self.process.stderr, select.POLLIN)
        is_open = True
        while is_open:
            reader.poll()
            with self.changed:
                is_open = self._take()
        with self.changed:
            self.ended = True
            self._add([self.half_line] if self.half_line else [])

    def _take(self):
        """With the lock: what has been logged by now. Whoever looks at the log takes it for itself: what was said before an answer
        that has come shall be seen, however late the thread that reads is. False at the end."""
        while not self.ended:
            try:
                raw = os.read(self.process.stderr.fileno(), 1 << 16)
            except BlockingIOError:
                return True
            if raw == b"":
                return False
            *whole, self.half_line = (self.half_line + raw).split(b"\n")
            self._add(whole)
        return False

    def _add(self, lines):
        self.lines += [line.decode("utf-8", "backslashreplace") for line in lines]
        self.changed.notify_all()

    @property
    def trusted(self):
        """What has Node.js trust its certificate, as environment."""
        return {"NODE_EXTRA_CA_CERTS": str(self.authority.ca)} if self.authority else {}

    @property
    def addresses(self):
        """All at which it serves, as it logs them."""
        return [event["address"] for event in self.events("listening")] or [self.address]

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def log(self):
        with self.changed:
            self._take()
            return "\n".join(self.lines)

    def events(self, name=None):
        with self.changed:
            self._take()
            parsed = [parse_log(line) for line in self.lines]
        return [p for p in parsed if p and (name is None or p.get("event") == name)]

    def wait_events(self, name, count):
        """The first so many lines of that event: a request's line comes after its answer."""
        poll(lambda: len(self.events(name)) >= count, lambda: f"{count} × {name} in:\n{self.log()}")
        return self.events(name)[:count]

    def show_in_gdb(self):
        """With SG_GDB set: every thread and fiber, for whoever reads the failure."""
        if not os.environ.get("SG_GDB") or self.process.poll() is not None:
            return
        subprocess.run(["gdb", "--batch", "-p", str(self.pid), "-ex", "thread apply all backtrace",
                        "-ex", f"source {ROOT / 'scripts' / 'gdb_fibers.py'}", "-ex", "fibers -b"],
                       stdout=sys.stderr, stderr=subprocess.STDOUT, check=False)

    def wait_event(self, name, where=lambda event: True, patience=PATIENCE):
        """The first line of that event, now or when it comes."""
        end = time.monotonic() + patience
        seen = 0
        with self.changed:
            while True:
                while seen < len(self.lines):
                    event = parse_log(self.lines[seen])
                    seen += 1
                    if event.get("event") == name and where(event):
                        return event
                left = end - time.monotonic()
                if self.ended or left <= 0:
                    self.show_in_gdb()
                    state = "ended" if self.ended else "silent"
                    raise AssertionError(f"no event={name} ({state}); the log was:\n" + "\n".join(self.lines[-60:]))
                self.changed.wait(left)

    def wait_end(self, patience=PATIENCE):
        """The exit code, once the process has ended and all that it said was read."""
        code = self.process.wait(patience)
        poll(lambda: self.ended, "the end of the log")
        self.process.stderr.close()
        return code

    def fds(self):
        """Open descriptors, without what is kept for later."""
        return descriptors.count(self.pid, self.upstream_ports)

    def unix_sockets(self):
        return descriptors.socket_kinds(self.pid).count("pair")

    def fd_targets(self):
        return sorted(descriptors.targets(self.pid).values())

    def signal(self, number=signal.SIGTERM):
        self.was_told = self.was_told or number in (signal.SIGTERM, signal.SIGINT)
        self.process.send_signal(number)

    def stop(self, quiet=True):
        """Ends it and checks that nothing is left."""
        if self.stopped:
            return
        self.stopped = True
        case = self.test
        try:
            if self.process.poll() is None:
                if quiet and not self.was_told:
                    self.wait_quiet()
                family = descendants(self.pid, process_facts())
                if not self.was_told:
                    self.signal()
                code = self.wait_end()
            else:
                family = {}
                code = self.wait_end()
            log = self.log()
            self.check_sanitizers()
            case.assertEqual(code, 0, f"exit code; the log was:\n{log[-6000:]}")
            stopped = self.events("stopped")
            case.assertEqual([s["containers_left"] for s in stopped], ["0"], log[-3000:])
            for journal in self.journals:
                journal.check_balanced(case)
            poll(lambda: not self.left_of(family), lambda: f"processes {self.left_of(family)} to end", 20)
        finally:
            if self.process.poll() is None:
                self.show_in_gdb()
                self.process.kill()
                self.wait_end()

    def wait_quiet(self):
        """Until as many descriptors are open as before the work."""
        def is_quiet():
            return self.process.poll() is not None or self.fds() <= self.fds_before
        poll(is_quiet, lambda: f"{self.fds_before} descriptors, not {self.fds()}:\n" + "\n".join(self.fd_targets()), 30)

    def left_of(self, family):
        facts = process_facts()
        return [pid for pid, fact in facts.items()
                if fact[1] == self.pid or (pid in family and family[pid] == fact[2])]

    def check_sanitizers(self):
        log = self.log()
        for word in SANITIZER_WORDS:
            if word in log:
                raise AssertionError(f"{word} spoke:\n{log[-12000:]}")


class Journal:
    """The file in which the mock sandbox writes what was done: 'create LABEL live=N', 'run LABEL' …"""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    def of(self, verb):
        return [line for line in self.lines() if line.split(" ", 1)[0] == verb]

    def labels(self, verb):
        return [line.split()[1] for line in self.of(verb)]

    def live(self):
        """The number of containers alive after each creation and deletion."""
        return [int(m[1]) for line in self.lines() if (m := re.search(r"\blive=(\d+)", line))]

    def wait(self, verb, count=1, patience=PATIENCE):
        poll(lambda: len(self.of(verb)) >= count, lambda: f"{count} × {verb} in {self.lines()}", patience)

    def ended(self):
        """Labels of containers that were deleted, that died in use or whose life was over, each as often as it ended."""
        return [label for verb in ("destroy", "die", "expire") for label in self.labels(verb)]

    def check_balanced(self, case):
        case.assertEqual(sorted(self.labels("create")), sorted(self.ended()), "containers made, and ended, once each")


class UpstreamJournal:
    """The file in which the mock upstream writes one JSON line for each request that reached it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def entries(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def bodies(self):
        return [entry["body"] for entry in self.entries()]


class E2E(unittest.TestCase):
    """A test case with gateways, upstreams and a folder, all of which end with each test."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sandgate-e2e-")
        self.gateways, self.upstreams, self.counter = [], [], 0
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(self._end)

    def _end(self):
        problems = []
        for gateway in reversed(self.gateways):  # those in front first: they hold connections to those behind
            try:
                gateway.stop()
            except AssertionError as problem:
                problems.append(str(problem))
        for upstream in self.upstreams:
            upstream.close()
        self.assertEqual(problems, [], "\n\n".join(problems))

    @staticmethod
    def environment():
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env["ASAN_OPTIONS"] = "exitcode=86:detect_leaks=1:" + env.get("ASAN_OPTIONS", "")
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:" + env.get("UBSAN_OPTIONS", "")
        env["TSAN_OPTIONS"] = "exitcode=66:" + env.get("TSAN_OPTIONS", "")
        return env

    def path(self, name):
        self.counter += 1
        return os.path.join(self.folder, f"{self.counter}-{name}")

    def upstream(self, *turns, **options):
        upstream = Upstream(turns, **options)
        self.upstreams.append(upstream)
        return upstream

    def gateway(self, config=None, **options):
        """Starts one. A dict of sections is completed by `usual`; a text is taken as it is."""
        gateway = Gateway(self, config, **options)
        self.gateways.append(gateway)
        return gateway

    def serve(self, upstream=None, rules=(), sandbox=None, upstream_options=None, gateway_options=None, **sections):
        """A gateway as most tests want it: the mock sandbox with a journal, the code_interpreter interceptor, and as
        upstream either a scripted one (`self.upstream(…)`) or the mock model. Sections replace or extend the usual."""
        journal = Journal(self.path("sandbox.journal"))
        box = {"name": "box", "plugin": "mock", "journal": str(journal.path), **(sandbox or {})}
        if rules:
            box["rules"] = list(rules)
        upstream_journal = None
        if upstream is None:
            upstream_journal = UpstreamJournal(self.path("upstream.journal"))
            entry = {"name": "mock", "plugin": "mock", "journal": str(upstream_journal.path), "models": ["mock"]}
        else:
            entry = {"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}
        entry.update(upstream_options or {})
        config = {"auth": {"mode": "none"}, "upstreams": [entry], "sandboxes": [box],
                  "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]}
        config.update(sections)
        options = {"upstream_ports": [upstream.port] if upstream is not None else [], **(gateway_options or {})}
        gateway = self.gateway(config, journals=[journal], **options)
        gateway.journal = journal
        gateway.upstream_journal = upstream_journal
        return gateway

    def measured(self, what, seconds):
        """A time that is reported and not judged: machines differ."""
        print(f"measured: {what}: {seconds * 1000:.1f} ms", file=sys.stderr)


def run(*arguments, config=None, env=None, binary=BINARY):
    """Runs the command line to its end: (exit code, standard output, standard error)."""
    command = [str(binary), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                          env={**E2E.environment(), **(env or {})}, cwd=config)
    for word in SANITIZER_WORDS:
        if word in done.stderr:
            raise AssertionError(f"{word} spoke:\n{done.stderr[-12000:]}")
    return done.returncode, done.stdout, done.stderr


def in_parallel(count, work):
    """Runs work(i) on so many threads at once; their results in order. The first failure is raised."""
    results, failures, gate = [None] * count, [], threading.Barrier(count)

    def one(i):
        try:
            gate.wait(PATIENCE)
            results[i] = work(i)
        except BaseException as failure:  # handed to the caller's thread
            failures.append(failure)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


class Loader(unittest.TestLoader):
    names = re.compile(r"test_|b\d\d_|c\d\d\d_")

    def getTestCaseNames(self, case):
        return sorted(name for name in dir(case) if self.names.match(name) and callable(getattr(case, name)))


def main():
    if not BINARY.exists():
        sys.exit(f"{BINARY} is not there: build first, or set BUILD_DIR")
    unittest.main(testLoader=Loader(), verbosity=2)
