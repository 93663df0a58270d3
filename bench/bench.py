#!/usr/bin/env python3
"""Runs the benchmark: starts the servers, measures in interleaved rounds, prints the table. Called by bench/run.sh, which
installs and builds what is needed; bench/README.md says what the figures mean.

    bench.py --build FOLDER [SECONDS [ROUNDS]] [--only NAME] [--json FILE] [--page]
"""
import argparse
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import measures
import report
import servers


def say(text):
    print(text, flush=True)


def arguments():
    names = [subject.name for subject in measures.SUBJECTS]
    parser = argparse.ArgumentParser(prog="bench/run.sh", description="Measures sandgate against nginx and portkey.")
    parser.add_argument("seconds", nargs="?", type=float, default=4, help="of one measurement (default 4)")
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="(default 3)")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=" or ".join(names))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="writes all figures there")
    parser.add_argument("--page", action="store_true", help="writes docs/performance.md")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if not 0.2 <= chosen.seconds <= 3600 or not 1 <= chosen.rounds <= 1000:
        parser.error("seconds: 0.2 to 3600; rounds: 1 to 1000")
    chosen.only = chosen.only or names
    chosen.stream_rate, chosen.stream_chunks = 50, 250
    return chosen


# ---- the machine ----

def first_line(*command):
    """What a program says of its version; nginx says it on standard error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "not there"
    return (done.stdout or done.stderr).splitlines()[0].strip() if done.stdout or done.stderr else "unknown"


def cpu_facts():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    return facts


def machine(lab):
    cpu = cpu_facts()
    apart = len({lab.cores[who] for who in ("server", "load", "upstream")})
    memory_kib = int(pathlib.Path("/proc/meminfo").read_text().split()[1])
    system = os.uname()
    package = lab.portkey_entry.parents[1] / "package.json"
    facts = {
        "CPU": f"{cpu.get('model name', system.machine)}, {lab.cores['count']} cores"
               + (", virtual machine" if "hypervisor" in cpu.get("flags", "") else ""),
        "cores": "server, load and upstream have one each" if apart == 3 else
                 "one for the server, one for load and upstream" if apart == 2 else
                 "ONE for all: figures say little",
        "memory": f"{memory_kib / 1048576:.0f} GiB",
        "kernel": f"{system.sysname} {system.release.split('-')[0]}",
        "compiler": first_line("cc", "--version"),
        "sandgate": first_line(lab.build / "bin/sandgate", "version"),
        "nginx": first_line("nginx", "-v").removeprefix("nginx version: "),
    }
    if "portkey" in lab.kinds:
        facts["portkey"] = f"@portkey-ai/gateway {json.loads(package.read_text())['version']}, " \
                           f"node {first_line('node', '--version')}"
    return facts


def stolen_share(before, after):
    """How much of the cores' time the host gave to others, by two readings of cpu_times()."""
    passed = [b - a for a, b in zip(before, after)]
    return passed[7] / max(sum(passed[:8]), 1)


def cpu_times():
    return [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]


# ---- the run ----

def run(lab, chosen):
    os.sched_setaffinity(0, {lab.cores["load"]})
    lab.results = measures.Results()
    lab.descriptors = servers.raise_descriptor_limit(measures.DESCRIPTORS_WANTED)
    lab.kinds = ["nginx", "portkey", "sandgate"]
    if not lab.portkey_entry.exists():
        lab.kinds.remove("portkey")
        lab.results.note("portkey is LEFT OUT: npm could not install @portkey-ai/gateway")
    load = os.getloadavg()[0]
    if load > 0.5:
        lab.results.note(f"the machine was busy before the run (load {load:.1f}): figures may be worthless")
    lab.start_upstream()
    facts = machine(lab)
    before = cpu_times()
    measures.measure_all(lab, chosen.only, chosen.rounds, say)
    stolen = stolen_share(before, cpu_times())
    if stolen > 0.01:
        lab.results.note(f"{stolen:.0%} of the cores' time went to other guests of the host: figures may be worthless")
    titles = {subject.name: subject.title for subject in measures.SUBJECTS if subject.name in chosen.only}
    return report.document(lab.results, facts, {"seconds": chosen.seconds, "rounds": chosen.rounds}, titles)


def stop_on_signal(number, _frame):
    raise SystemExit(128 + number)


def take_folder(build):
    """A folder for logs and configurations, emptied of what a killed run left. The lock ends with this process."""
    lock = open(build / "run.lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("failed: another run is under way: both would be worthless")
    work = build / "run"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return work, lock


def main():
    chosen = arguments()
    build = chosen.build.resolve()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    work, _lock = take_folder(build)
    lab = servers.Lab(build, work, chosen)
    try:
        said = run(lab, chosen)
    except servers.Failed as failed:
        sys.exit(f"failed: {failed}")
    finally:
        lab.stop_all()
        shutil.rmtree(work, ignore_errors=True)
    say("\n" + report.table(said))
    if chosen.json:
        chosen.json.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if chosen.page:
        report.PAGE.write_text(report.page(said), encoding="utf-8")


main()
