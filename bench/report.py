#!/usr/bin/env python3
"""From figures to what is read: the targets with their verdicts, the table, docs/performance.md.

    bench/report.py RESULTS.json             prints the table of a run again
    bench/report.py RESULTS.json --page      writes docs/performance.md from it
"""
import json
import pathlib
import statistics
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "performance.md"
CPU = "CPU a request, {} connections"


class Missing(Exception):
    """A figure that this run does not have."""


def ratio(a, b):
    """Within the noise a server may add nothing at all: no ratio then."""
    if b <= 0:
        raise Missing
    return a / b


def cpu_against_nginx(connections):
    what = CPU.format(connections)
    return lambda get: ratio(get("relay", what, "sandgate"), get("relay", what, "nginx"))


def added_against_nginx(get):
    what = "added p50 at 1 connection"
    return ratio(get("relay", what, "sandgate"), get("relay", what, "nginx"))


def tool_against_relay(get):
    what = CPU.format(32)
    return ratio(get("tool", what, "tool turn"), get("tool", what, "relayed"))


def just(subject, what, who):
    return lambda get: get(subject, what, who)


def longer_body(who):
    return lambda get: get("bodies", "CPU a request, 200 KB", who) - get("bodies", "CPU a request, 2 KB", who)


def bend(who):
    """Cost a byte from 20 to 200 KB against that from 2 to 20 KB: 1 for a straight line, 10 for a square."""
    def compute(get):
        small, middle, large = (get("bodies", f"CPU a request, {kb} KB", who) for kb in (2, 20, 200))
        return ratio((large - middle) / 180, (middle - small) / 18)
    return compute


def sessions_ratio(what):
    what = f"CPU a request, {what}"
    return lambda get: ratio(get("sessions", what, "10000 sessions"), get("sessions", what, "10 sessions"))


def first_byte_added(who):
    return lambda get: get("streams", "first byte, p99", who) - get("streams", "first byte, p99", "upstream")


def form_first_byte(form):
    return lambda get: get("forms", "first byte, p99", form) - get("forms", "first byte, p99", f"{form}, upstream")


def translated(what):
    return lambda get: ratio(get("translated", what, "translated"), get("translated", what, "untranslated"))


def limits(who, than):
    return lambda get: ratio(get("limits", "CPU a request", who), get("limits", "CPU a request", than))


def accounting(get):
    return ratio(get("accounting", "CPU a request", "with"), get("accounting", "CPU a request", "without"))


def tls_against_nginx(how):
    return lambda get: ratio(get("tls", "CPU a request", f"sandgate, {how}"), get("tls", "CPU a request", f"nginx, {how}"))


# subject, title, value of a round, limit, unit, which of the rounds' values is held against it
TARGETS = (
    ("relay", "relay: CPU a request ÷ nginx, 32 connections", cpu_against_nginx(32), 2.6, "", "median"),
    ("relay", "relay: CPU a request ÷ nginx, 256 connections", cpu_against_nginx(256), 3.0, "", "median"),
    ("relay", "relay: added p50 ÷ nginx, 1 connection", added_against_nginx, 1.8, "", "median"),
    ("tool", "tool turn: CPU a request ÷ relayed", tool_against_relay, 3.0, "", "median"),
    ("bodies", "200 KB body: CPU more than 2 KB", longer_body("sandgate"), 150, "µs", "median"),
    ("bodies", "the same with a tool offered", longer_body("sandgate, tool offered"), 150, "µs", "median"),
    ("bodies", "linear in bytes: slope 20–200 KB ÷ slope 2–20 KB", bend("sandgate"), 2.0, "", "median"),
    ("bodies", "the same with a tool offered", bend("sandgate, tool offered"), 2.0, "", "median"),
    ("sessions", "10,000 ÷ 10 live sessions: CPU of a relayed request", sessions_ratio("relayed"), 1.1, "", "median"),
    ("sessions", "10,000 ÷ 10: CPU of a tool turn in a session", sessions_ratio("tool turn in a session"), 1.1, "",
     "median"),
    ("streams", "stream: p99 of the first byte more than the upstream's", first_byte_added("sandgate"), 2.0, "ms",
     "median"),
    ("streams", "the same with a tool offered", first_byte_added("sandgate, tool offered"), 2.0, "ms", "median"),
    ("streams", "stream: CPU a passed chunk", just("streams", "CPU a chunk", "sandgate"), 10, "µs", "median"),
    ("streams", "the same with a tool offered", just("streams", "CPU a chunk", "sandgate, tool offered"), 10, "µs",
     "median"),
    *((("forms", f"{form}: p99 of the first byte more than the upstream's, 100 streams", form_first_byte(form), 2.0, "ms", "median"))
      for form in ("chat", "responses", "messages")),
    *((("forms", f"{form}: CPU a passed chunk, 100 streams", just("forms", "CPU a chunk", form), 10, "µs", "median"))
      for form in ("chat", "responses", "messages")),
    ("translated", "translated ÷ untranslated: CPU a request of 2 KB", translated("CPU a request, 2 KB"), 2.0, "", "median"),
    ("limits", "a key with limits ÷ without: CPU a request", limits("with limits", "a key"), 1.05, "", "median"),
    ("limits", "limits of users too ÷ without: CPU a request", limits("limits of users", "a key"), 1.05, "", "median"),
    ("accounting", "accounting on ÷ off: CPU a request", accounting, 1.10, "", "median"),
    ("tls", "TLS: CPU a request ÷ nginx, kept connections", tls_against_nginx("kept connections"), 2.6, "", "median"),
    ("tls", "TLS: CPU a request ÷ nginx, a handshake each", tls_against_nginx("a handshake each"), 1.5, "", "median"),
    ("waiting", "9,500 waiting: errors", just("waiting", "errors", "sandgate"), 0, "", "max"),
    ("waiting", "9,500 waiting: RSS", just("waiting", "RSS at most", "sandgate"), 450, "MB", "max"),
    ("waiting", "9,500 waiting: threads more than idle", just("waiting", "threads more than idle", "sandgate"), 32, "",
     "max"),
    ("waiting", "9,500 waiting: share of a core", just("waiting", "share of a core", "sandgate"), 0.6, "", "median"),
    ("local", "local sandbox: create to first output", just("local", "create to first output", "local"), 3.0, "ms",
     "median"),
    ("local", "local sandbox: the same, cold", just("local", "create to first output, cold", "local"), 15.0, "ms", "median"),
    ("local", "local sandbox: next run", just("local", "next run", "local"), 1.0, "ms", "median"),
    ("local", "local sandbox: memory of an idle session with packages loaded",
     just("local", "memory of an idle session, with packages", "local"), 8.0, "MB", "median"),
)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def target_values(figures, compute):
    """One value for each round in which all that it needs was measured."""
    def get_in(turn):
        def get(*key):
            values = figures.get(key, {"values": []})["values"]
            if turn >= len(values):
                raise Missing
            return values[turn]
        return get

    values = []
    for turn in range(max((len(figure["values"]) for figure in figures.values()), default=0)):
        try:
            values.append(compute(get_in(turn)))
        except Missing:
            continue
    return values


def judge(figures, subjects):
    """The targets of the subjects that were wanted, with their verdicts."""
    judged = []
    for subject, title, compute, limit, unit, by in TARGETS:
        if subject not in subjects:
            continue
        values = target_values(figures, compute)
        target = {"subject": subject, "title": title, "limit": limit, "unit": unit, "by": by, "verdict": "not measured"}
        if values:
            target |= {"values": values, **spread(values)}
            target["verdict"] = "reached" if target[by] <= limit else "not reached"
        judged.append(target)
    return judged


def document(results, machine, settings, titles):
    figures = [{"subject": key[0], "what": key[1], "who": key[2], "unit": figure["unit"], "values": figure["values"],
                **spread(figure["values"])} for key, figure in results.figures.items()]
    return {"machine": machine, "settings": settings, "titles": titles, "figures": figures,
            "targets": judge(results.figures, titles), "notes": results.notes}


# ---- text ----

def number(value):
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def three(row):
    return [number(row[which]) for which in ("median", "min", "max")]


def columns(rows):
    """Text in columns: the first two to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) if i in (0, 1) else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        yield "  " + "  ".join(cells).rstrip()


def figures_of(said, subject):
    """Rows by what they measure, each name once; within it, who, in the order of the first round."""
    by_what = {}
    for figure in said["figures"]:
        if figure["subject"] == subject:
            unit = f" ({figure['unit']})" if figure["unit"] else ""
            by_what.setdefault(figure["what"] + unit, []).append([figure["who"], *three(figure)])
    return [[what if i == 0 else "", *row] for what, rows in by_what.items() for i, row in enumerate(rows)]


def limit_text(target):
    return f"≤ {number(target['limit'])}{' ' + target['unit'] if target['unit'] else ''}"


def targets_of(said):
    return [[target["title"], target["verdict"], *(three(target) if "median" in target else ["", "", ""]),
             limit_text(target), target["by"]] for target in said["targets"]]


def table(said):
    lines = []
    for subject, title in said["titles"].items():
        rows = figures_of(said, subject)
        if rows:
            lines += ["", title, *columns([["", "", "median", "min", "max"], *rows])]
    lines += ["", "Targets (ratios are taken in each round)",
              *columns([["", "", "median", "min", "max", "limit", "held against"], *targets_of(said)])]
    lines += ["", *said["notes"]] if said["notes"] else []
    return "\n".join(lines).lstrip("\n")


def markdown(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" if i < 2 else "---:" for i in range(len(head))) + " |"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def page(said):
    """docs/performance.md: the targets first, then every figure, then where it was measured."""
    settings = said["settings"]
    lines = ["# Performance", "",
             f"One run of `bench/run.sh`: {settings['rounds']} rounds, {settings['seconds']:g} s a measurement, all servers "
             "one after another in each round against the same upstream on the same machine. What is measured and how to "
             "read it stands in [bench/README.md](../bench/README.md). Absolute times are this machine's; ratios travel.",
             "", "This page is written by `bench/report.py RESULTS.json --page`.", "", "## Targets", "",
             *markdown(["target", "verdict", "median", "min", "max", "limit", "held against"], targets_of(said))]
    for subject, title in said["titles"].items():
        rows = figures_of(said, subject)
        if rows:
            lines += ["", f"## {title}", "", *markdown(["what", "server", "median", "min", "max"], rows)]
    if said["notes"]:
        lines += ["", "## Notes", "", *(f"- {note}" for note in said["notes"])]
    lines += ["", "## The machine", "", *(f"- {name}: {value}" for name, value in said["machine"].items()), ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--page"]):
        sys.exit(__doc__)
    said = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    if sys.argv[2:]:
        PAGE.write_text(page(said), encoding="utf-8")
    else:
        print(table(said))


if __name__ == "__main__":
    main()
