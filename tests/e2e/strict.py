"""What the strict readers of event streams share: complaints, shapes of objects, and the lines of server-sent events.

A shape is a dict of names and what they must be: a type, a tuple of types (None for null), or a function that says so. A
name with a question mark may be missing. A name that is in no shape is a complaint."""
import json


class Complaint(AssertionError):
    """The stream is not what the official clients need, or says what nobody knows."""


def need(condition, what):
    if not condition:
        raise Complaint(what)


def one_of(*values):
    return lambda value: value in values


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def filled(value):
    return isinstance(value, str) and value != ""


def is_a(value, wanted):
    if wanted is None:
        return value is None
    if isinstance(wanted, tuple):
        return any(is_a(value, one) for one in wanted)
    if isinstance(wanted, type):
        return isinstance(value, wanted) and not (wanted in (int, float) and isinstance(value, bool))
    return wanted(value)


def shaped(value, where, shape):
    """Complains where an object has not this shape."""
    need(isinstance(value, dict), f"{where} is no object: {value!r}")
    for name, wanted in shape.items():
        if name.endswith("?") and name[:-1] not in value:
            continue
        name = name.rstrip("?")
        need(name in value, f"{where} has no '{name}'")
        need(is_a(value[name], wanted), f"{where}.{name} must not be {value[name]!r}")
    known = {name.rstrip("?") for name in shape}
    for name in value:
        need(name in known, f"{where} has '{name}', which nobody knows")


def read_events(body):
    """The events of a body, each with an event line that is its type, one line of data and an empty line."""
    need(body.endswith(b"\n\n"), "the stream does not end with an empty line")
    events = []
    for block in body.decode().replace("\r\n", "\n").split("\n\n")[:-1]:
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if not lines:
            continue  # a comment
        need(len(lines) == 2 and lines[0].startswith("event: ") and lines[1].startswith("data: "),
             f"an event is an event line and a data line, not {block!r}")
        event = json.loads(lines[1][6:])
        need(isinstance(event, dict) and event.get("type") == lines[0][7:], f"the event line is not the type: {block!r}")
        events.append(event)
    return events


def events_of(source):
    """Events from bytes, or a list of events as it is."""
    return read_events(source) if isinstance(source, bytes) else list(source)
