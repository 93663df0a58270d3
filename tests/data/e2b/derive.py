#!/usr/bin/env python3
"""What the plugin e2b has to emit for each recording, worked out with Python's own JSON reader: derive.py > expected.txt

The recordings are answers of E2B's own interpreter server (index.json tells of each). A part of expected.txt begins with
"= NAME FLAGS"; then comes a line for each event, in order: its kind and its data, or the data's length and FNV-1a hash
where it is long. tests/plugin_e2b/test_e2b_stream.c reads it. Written apart from the plugin's code on purpose: run it again
only where what shall be emitted has changed, and read the difference."""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
FIELDS = [("text", "text/plain"), ("html", "text/html"), ("markdown", "text/markdown"), ("svg", "image/svg+xml"),
          ("latex", "text/latex"), ("javascript", "application/javascript"), ("png", "image/png"),
          ("jpeg", "image/jpeg"), ("pdf", "application/pdf"), ("json", "application/json"),
          ("data", "application/vnd.e2b.data+json"), ("chart", "application/vnd.e2b.chart+json")]
ENDS = {"ContextRestarting": "the interpreter's process ended while the code ran, as by os._exit(), a crash or too much memory",
        "WebSocketError": "the interpreter was restarted while the code ran",
        "UnexpectedEndOfExecution": "the interpreter was ended while the code ran"}
RESTARTED = ('{"state":"restarted","note":"the interpreter was begun anew: variables, functions and imports are gone; '
             'files are kept"}')


def without_surrogates(value):
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    return [without_surrogates(v) for v in value] if isinstance(value, list) else value


def quoted(text):
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def short_traceback(text):
    text = re.sub("\x1b\\[[^@-~]*[@-~]", "", text)
    if "\n" not in text:
        text = text.replace("    at ", "\n    at ")
    text = re.sub("(?m)^(?:[^ \n]* *)Traceback \\(most recent call last\\):?\n?", "Traceback (most recent call last):\n", text)
    lines, inside = [], False
    for line in text.split("\n"):
        if inside and re.match(" *[0-9]+( |$)", line):
            continue
        inside = line.startswith(("Cell In[", "File ")) or (inside and re.match("-+>", line) is not None)
        lines.append(line)
    text = "\n".join(lines).rstrip(" \t\r\n")
    assert len(text.encode()) <= 4096, "write the cut here too"
    return text


def pieces(text):
    data = text.encode()
    while len(data) > 65536:
        cut = 65536
        while data[cut] & 0xC0 == 0x80:
            cut -= 1
        yield data[:cut]
        data = data[cut:]
    if data:
        yield data


def bundle(event):
    members = {mime: event[field] for field, mime in FIELDS
               if event.get(field) is not None and (field, event[field]) != ("chart", {})}
    members |= {mime: value for mime, value in event.get("extra", {}).items() if value is not None}
    # The values as the server has written them: Python's json with its defaults.
    return ("{" + ",".join(f'"{mime}":{json.dumps(value)}' for mime, value in members.items()) + "}").encode()


def events_of(event, seen):
    kind = event.get("type")
    if kind in ("stdout", "stderr"):
        seen.add("begun")
        yield from (("out" if kind == "stdout" else "err", data) for data in pieces(event["text"]))
    elif kind == "result":
        seen.add("begun")
        yield "result", bundle(event)
    elif kind == "error":
        end = None if event["traceback"] else ENDS.get(event["name"])
        if not (end and "restarted" in seen):
            if end:
                yield "status", RESTARTED.encode()
            yield "exception", (f'{{"name":{quoted(event["name"])},"value":{quoted(end or event["value"])},'
                                f'"traceback":{quoted(short_traceback(event["traceback"]))}}}').encode()
        seen |= {"begun", "restarted"} if end else {"begun"}
    else:
        seen |= {{"number_of_executions": "begun", "end_of_execution": "ended", "keepalive": "alive"}.get(kind, "")} - {""}


def read(line, is_last):
    try:
        event = json.loads(line)
        return event if isinstance(event, dict) else None, not isinstance(event, dict)
    except ValueError:
        if is_last and line.startswith('{"type": "std'):
            return json.loads(re.sub(r"\\(u[0-9a-f]{0,3})?$", "", line) + '"}'), True
        return None, True


def show(data):
    if len(data) > 400:
        value = 0xCBF29CE484222325
        for byte in data:
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return f"#{len(data)} {value:016x}"
    return "".join("\\\\" if b == 92 else chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in data)


def main():
    for path in sorted(HERE.glob("recordings/*.*")):
        if path.name == "index.json":
            continue
        seen, out, unreadable = set(), [], 0
        lines = path.read_text().split("\n")
        for i, line in enumerate(lines):
            if line.strip() and "ended" not in seen:
                event, is_bad = read(line, i == len(lines) - 1)
                unreadable += is_bad
                out += events_of(without_surrogates(event), seen) if event else []
        flags = [f for f in ("begun", "ended", "restarted", "alive") if f in seen]
        print(" ".join(["=", path.name, *flags, *([f"unreadable:{unreadable}"] if unreadable else [])]))
        for kind, data in out:
            print(kind, show(data))


sys.exit(main())
