"""Sessions of the sandbox `local` that come and go, crash, hang and are killed from outside, behind the real gateway; nothing
may be left, and nothing may grow. scripts/soak_local.sh builds what it needs and starts it.

Each of so many threads has one session after the other: some requests of random code (soak_work.py), then the session is
deleted, or left to its idle time, or it was none. Beside them one thread kills: processes in boxes, first processes of boxes, in the
first rounds also the process that makes boxes. Another one measures (soak_figures.py). That goes in rounds, with a rest after
each, in which all must be as it was before. At the end so many sessions are made once more at one time, and the gateway is
stopped.

What must hold: every request is answered, with what its code must give, but for sessions that were killed from outside, of which
there may be no more than were killed; boxes, processes, control groups, descriptors and mounts are as before; and no memory grows. Of
the gateway that is what it has from its allocator (tests/support/memory_told.c) at rest, for each request, once what is made at
first use is there. A session's name is remembered when the session is gone (some 200 bytes, up to a limit), so names are used again.
What the kernel counts for it is no measure of growth, since the allocator keeps tens of megabytes of what many
sessions at one time have freed, in pieces that differ from round to round; it must only stay near what it once was under load."""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import soak_figures as figures
from soak_work import LOST, REFUSED, TIMED_OUT, Client, Step, choose

KEYS = 4
SPARE_BOXES = 200  # those left to their idle time, and those on their way out
ROUNDS = 5
ROUNDS_WITH_LOSSES = 2  # in which the process that makes boxes is killed
ROUNDS_TO_WARM = 2  # before memory is compared
RESIDENT_MOST = 1.5  # times what the gateway had at most before, under load
ALLOCATED_MOST = 48  # bytes for each request: answers without a session are remembered for an hour, with other names each
NAMES = 3  # of sessions of each thread, in turn; all have been used when the gateway is warm
HELPERS_MOST_KIB = 1024  # more than when they were warm
PAUSE_S = 2  # the longest between two requests of a session: a client reads what it gets
REFUSED_MOST = 0.2  # of all sessions, that a busy machine could make no box for in time
SAMPLE_S = 5
END_S = 60
COUNTED = ("boxes", "in_boxes", "helpers", "gateway_fds", "helpers_fds", "mounts", "groups")

CONFIG = """
server: {{ listen: "127.0.0.1:0", drain: 5s }}
auth:
  keys:
{keys}
sessions: {{ idle_timeout: 10s, per_identity: {most}, max_containers: {most}, max_containers_total: {most} }}
upstreams:
  - {{ name: mock, plugin: mock, models: [mock], chunk: 4096 }}
sandboxes:
  - {{ name: box, plugin: local, run_timeout: 10s, memory: 160MiB, disk: 64MiB, processes: 32, files: 128, boxes: {most} }}
interceptors:
  - {{ plugin: code_interpreter, sandbox: box }}
"""


class Tally:
    """What happened, counted from many threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.problems = []

    def add(self, name, count=1):
        with self.lock:
            self.counts[name] += count

    def problem(self, text):
        with self.lock:
            self.problems.append(text)


class Gateway:
    def __init__(self, binary, folder, sessions):
        most = sessions + SPARE_BOXES
        config = pathlib.Path(folder, "config.yaml")
        keys = "\n".join(f"    - {{ name: tenant-{i}, key: sg-soak-key-of-tenant-{i} }}" for i in range(KEYS))
        config.write_text(CONFIG.format(keys=keys, most=most), encoding="utf-8")
        self.log = pathlib.Path(folder, "log")
        self.memory = pathlib.Path(folder, "memory")
        told = pathlib.Path(binary).parents[1] / "tests" / "memory_told.so"
        if not told.exists():
            sys.exit(f"{told} is not there: build the gateway with its tests")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([binary, "serve", "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "LD_PRELOAD": str(told), "MEMORY_TOLD": str(self.memory)},
                                            start_new_session=True)
        self.pid = self.process.pid
        self.port = int(self._await(r"event=serving .*address=\S+:(\d+)"))
        self.clients = [Client(self.port, f"sg-soak-key-of-tenant-{i}") for i in range(KEYS)]

    def _await(self, pattern):
        while self.process.poll() is None:
            found = re.search(pattern, figures.read(self.log))
            if found:
                return found[1]
            time.sleep(0.05)
        sys.exit(f"the gateway did not start:\n{figures.read(self.log)}")


class Soak:
    def __init__(self, options, gateway):
        self.options, self.gateway = options, gateway
        self.tally = Tally()
        self.begun = self.until = time.monotonic()
        self.at_rest = []  # figures after each round
        self.peak_kib = 0  # of the gateway, until it was warm
        self.killed = 0  # sessions that may have been lost to kills from outside

    def is_over(self):
        return time.monotonic() >= self.until

    # ---- sessions ----

    def judge(self, step, status, text):
        """True if the session has what it had before the step, and what the step did."""
        self.tally.add("requests")
        if status == 200 and (step.expected is None or step.expected.search(text)):
            return True
        if status == 200 and REFUSED.search(text):
            self.tally.add("refused")
        elif status == 200 and LOST.search(text):
            self.tally.add("lost")
        elif status == 200 and re.search(TIMED_OUT, text):
            self.tally.add("too slow")
        else:
            self.tally.problem(f"{step.name}: {status} {text[:200]!r} … {text[-300:]!r} for {step.code[:200]!r}")
        return False

    def step(self, client, session, step, chooser):
        if step.leaves:
            client.run_and_leave(session, step, chooser.choice((0, 0.05, 0.2)))
            self.tally.add("left")
            return True
        return self.judge(step, *client.run(session, step))

    def session(self, client, name, chooser):
        state = 0
        if name is not None:
            client.delete(name)  # what was left of it to its idle time
        alive = self.step(client, name, Step("first", "x = 0; print('new')", "new"), chooser)
        for _ in range(chooser.randrange(6)):
            if not alive or self.is_over():
                break
            time.sleep(chooser.uniform(0, PAUSE_S))
            step = choose(chooser, state)
            self.tally.add(f"did {step.name}")
            alive = self.step(client, name, step, chooser) and not step.ends
            state += step.name == "state"
        if name is not None and chooser.random() < 0.9:
            client.delete(name)

    def sessions(self, index):
        chooser = random.Random(f"{self.options.seed} {len(self.at_rest)} {index}")
        client = self.gateway.clients[index % KEYS]
        count = 0
        while not self.is_over():
            count += 1
            try:
                if chooser.random() < 0.1:  # a container that ends with its request
                    self.step(client, None, Step("alone", "print('alone')", "alone"), chooser)
                else:
                    self.session(client, f"s-{index}-{count % NAMES}", chooser)
                self.tally.add("sessions")
            except (OSError, ValueError, KeyError) as problem:
                self.tally.problem(f"no answer: {type(problem).__name__} {problem}")

    # ---- kills ----

    def kill_in_box(self, chooser):
        inside = [pid for pid in figures.below(self.gateway.pid) if figures.is_in_box(pid)]
        if inside:
            self.kill(chooser.choice(inside), 1)

    def kill_first_of_box(self, chooser):
        first = [pid for pid in figures.below(self.gateway.pid) if figures.is_first_of_box(pid)]
        if first:
            self.kill(chooser.choice(first), 1)

    def kill_maker(self, _):
        helpers = [pid for pid in figures.below(self.gateway.pid) if "local-broker" in figures.read(f"/proc/{pid}/cmdline")
                   and figures.parents().get(pid) == self.gateway.pid]
        if helpers:
            boxes = sum(map(figures.is_first_of_box, figures.below(self.gateway.pid)))
            self.kill(helpers[0], boxes + self.options.sessions)  # and those that ask just now

    def kill(self, pid, lost):
        with self.tally.lock:
            self.killed += lost
        try:
            os.kill(pid, signal.SIGKILL)
            self.tally.add("killed")
        except ProcessLookupError:
            pass

    def kills(self):
        chooser = random.Random(f"{self.options.seed} {len(self.at_rest)} kills")
        maker_at = time.monotonic() + chooser.uniform(0.2, 0.8) * (self.until - time.monotonic())
        if len(self.at_rest) >= ROUNDS_WITH_LOSSES:
            maker_at = self.until
        while not self.is_over():
            time.sleep(chooser.uniform(0.2, 2))
            chooser.choice((self.kill_in_box, self.kill_first_of_box))(chooser)
            if maker_at < time.monotonic() < self.until:
                maker_at = self.until
                self.kill_maker(chooser)
                self.tally.add("makers killed")

    # ---- figures ----

    def sample(self):
        sample = figures.measure(self.gateway.pid, time.monotonic() - self.begun)
        print(" ".join(f"{name}={sample[name]}" for name in figures.FIELDS), flush=True)
        if len(self.at_rest) < ROUNDS_TO_WARM:
            self.peak_kib = max(self.peak_kib, sample["gateway_kib"])
        return sample

    def rest(self):
        sample = {**self.sample(), "requests": self.tally.counts["requests"],
                  "allocated": figures.allocated(self.gateway.memory)}
        print(f"allocated={sample['allocated']} requests={sample['requests']}", flush=True)
        return sample

    def watch(self):
        while not self.is_over():
            self.sample()
            if self.gateway.process.poll() is not None:
                self.tally.problem(f"the gateway has ended with {self.gateway.process.returncode}")
                self.until = 0
            time.sleep(SAMPLE_S)

    def check_growth(self):
        warm = self.at_rest[ROUNDS_TO_WARM - 1:]
        each = figures.growth(*([sample[name] for sample in warm] for name in ("allocated", "requests")))
        print(f"allocated at rest after each round: {[sample['allocated'] for sample in self.at_rest]}; "
              f"{each:+.0f} bytes for each request in the last {len(warm) - 1}")
        if each > ALLOCATED_MOST:
            self.tally.problem(f"what the gateway allocates grows by {each:.0f} bytes for each request")
        bounds = {"gateway_kib": round(self.peak_kib * RESIDENT_MOST), "helpers_kib": warm[0]["helpers_kib"] + HELPERS_MOST_KIB}
        for name, most in bounds.items():
            print(f"{name} at rest after each round: {[sample[name] for sample in self.at_rest]}, at most {most}")
            if max(sample[name] for sample in warm[1:]) > most:
                self.tally.problem(f"{name} at rest is more than {most}")

    # ---- the end ----

    def settled(self):
        """The figures once they stay the same."""
        last, now = None, figures.measure(self.gateway.pid, 0)
        while last is None or any(last[name] != now[name] for name in COUNTED):
            time.sleep(1)
            last, now = now, figures.measure(self.gateway.pid, 0)
        return now

    def await_rest(self, before):
        """Until all is as before; the sessions that are left have their idle time first."""
        until = time.monotonic() + END_S
        while True:
            now = figures.measure(self.gateway.pid, time.monotonic() - self.begun)
            more = {name: (before[name], now[name]) for name in COUNTED if now[name] > before[name]}
            if not more or time.monotonic() > until:
                return more
            time.sleep(0.5)

    def all_at_once(self):
        """As many sessions as ever at one time: no place for a box has been lost."""
        def one(index):
            client = self.gateway.clients[index % KEYS]
            self.judge(Step("last", "", "last"), *client.run(f"last-{index}", Step("last", "print('last')", "last")))
            client.delete(f"last-{index}")
        self.in_threads(one, self.options.sessions)

    def in_threads(self, run, count):
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def delete_all(self):
        for client in self.gateway.clients:
            for session in client.sessions():
                client.delete(session["id"])

    def check_left(self, before, when):
        more = self.await_rest(before)
        if more:
            self.tally.problem(f"{when} there is more than before: {more}")

    def check_end(self, before, outside):
        self.all_at_once()
        self.check_left(before, "when the last sessions were deleted")
        print("at the end:", end=" ")
        self.sample()
        family = figures.below(self.gateway.pid)
        self.gateway.process.send_signal(signal.SIGTERM)
        code = self.gateway.process.wait(END_S)
        if code != 0 or "containers_left=0" not in figures.read(self.gateway.log):
            self.tally.problem(f"the gateway ended with {code}: {figures.read(self.gateway.log)[-1500:]}")
        left = [pid for pid in family if pid in figures.parents()]
        if left:
            self.tally.problem(f"processes are left: {left}")
        if outside != (figures.groups(figures.MAKERS), len(figures.read("/proc/self/mountinfo").splitlines())):
            self.tally.problem("control groups or mounts are left")

    def check_lost(self):
        lost = self.tally.counts["lost"]
        refused, sessions = self.tally.counts["refused"], self.tally.counts["sessions"]
        print(f"lost to kills from outside: {lost}, of at most {self.killed}; no box in time: {refused} of {sessions} sessions")
        for why, count in figures.counted(r'event=container_create_failed .* ms=(\d+) code=\S+ error="([^"]*)"', self.gateway.log):
            print(f"  no box {count} times: {why}")
        if refused > REFUSED_MOST * sessions + self.killed:
            self.tally.problem(f"{refused} of {sessions} sessions got no box")
        if lost > self.killed:
            self.tally.problem(f"{lost} sessions were lost, and at most {self.killed} were killed")

    def round(self, before):
        self.until = time.monotonic() + self.options.minutes * 60 / ROUNDS
        others = [threading.Thread(target=self.kills), threading.Thread(target=self.watch)]
        for thread in others:
            thread.start()
        self.in_threads(self.sessions, self.options.sessions)
        for thread in others:
            thread.join()
        self.delete_all()
        self.check_left(before, f"after round {len(self.at_rest) + 1}")
        print("at rest:", end=" ")
        self.at_rest.append(self.rest())

    def run(self):
        outside = (figures.groups(figures.MAKERS), len(figures.read("/proc/self/mountinfo").splitlines()))
        self.all_at_once()  # what is made at first use is there from here on
        before = self.settled()
        self.begun = time.monotonic()
        for _ in range(ROUNDS):
            self.round(before)
        self.check_growth()
        self.check_lost()
        self.check_end(before, outside)


def main():
    parser = argparse.ArgumentParser(description="Many sessions of the sandbox 'local' that come and go.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--sessions", type=int, default=200, help="at one time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("binary")
    options = parser.parse_args()
    options.seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {options.seed}: {options.sessions} sessions at a time for {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="sandgate-soak-") as folder:
        soak = Soak(options, Gateway(options.binary, folder, options.sessions))
        try:
            soak.run()
        finally:
            if soak.gateway.process.poll() is None:
                soak.gateway.process.kill()
        print(", ".join(f"{name} {count}" for name, count in sorted(soak.tally.counts.items())))
        for problem in soak.tally.problems[:20]:
            print("PROBLEM", problem)
        if soak.tally.problems:
            print(f"{len(soak.tally.problems)} problems; again with: --seed {options.seed}")
            kept = pathlib.Path(tempfile.gettempdir(), f"sandgate-soak-{options.seed}.log")
            kept.write_text(figures.read(soak.gateway.log), encoding="utf-8")
            print(f"the gateway's log: {kept}")
            sys.exit(1)
    print("nothing is left and nothing grows")


if __name__ == "__main__":
    main()
