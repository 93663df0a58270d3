"""Turns of a model server that speaks Messages, for Upstream (upstream.py), in the same words: answer(), code(), streamed() …;
and what a request's body carried."""
import itertools
import json

from upstream import Stream, text_of

NUMBERS = itertools.count(1)


def tool_use(call_id, name, arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def counted(usage):
    return {"input_tokens": usage[0], "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": usage[1],
            "service_tier": "standard"}


def answer(text=None, calls=(), usage=(10, 5), thinking=None, stop=None, signature="sig-up", **more):
    """A message. A call is (id, name, arguments); arguments that are a text are meant for streams: JSON text, or none."""
    content = []
    if thinking is not None:
        content.append({"type": "thinking", "thinking": thinking, "signature": signature})
    if text is not None:
        content.append({"type": "text", "text": text})
    content += [tool_use(*call) for call in calls]
    return {"id": f"msg_up{next(NUMBERS)}", "type": "message", "role": "assistant", "model": "up-model", "content": content,
            "stop_reason": stop or ("tool_use" if calls else "end_turn"), "stop_sequence": None, "usage": counted(usage), **more}


def code(source, call_id="toolu_1", name="code_execution", **more):
    """A turn that calls the code tool."""
    return answer(calls=[(call_id, name, {"code": source})], **more)


def bash(command, call_id="toolu_1", name="bash_code_execution", **more):
    return answer(calls=[(call_id, name, {"command": command})], **more)


# ---- streams ----

def delta(index, kind, key, value):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}


def growing(index, kind, key, text, size):
    for at in range(0, len(text), size):
        yield delta(index, kind, key, text[at:at + size])


def block_events(block, index):
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    begun = {**block, **{key: value for key, value in empty.items() if key in block}}
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    if block["type"] == "text":
        yield from growing(index, "text_delta", "text", block["text"], 3)
    elif block["type"] == "thinking":
        yield from growing(index, "thinking_delta", "thinking", block["thinking"], 3)
        yield delta(index, "signature_delta", "signature", block["signature"])
    elif block["type"] in ("tool_use", "server_tool_use"):
        text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        yield delta(index, "input_json_delta", "partial_json", "")
        yield from growing(index, "input_json_delta", "partial_json", text, 4)
    yield {"type": "content_block_stop", "index": index}


def events_of(message):
    """All events that a message is streamed as."""
    first = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": first}}
    for index, block in enumerate(message["content"]):
        yield from block_events(block, index)
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]},
           "usage": message["usage"]}
    yield {"type": "message_stop"}


def failing(message, text="Overloaded", kind="overloaded_error", behind=2):
    """The first `behind` events of a message, then its failure."""
    return [*itertools.islice(events_of(message), behind), {"type": "error", "error": {"type": kind, "message": text}}]


def events(*several):
    """Server-sent events as bytes: dicts as JSON, text and bytes as they are."""
    out = []
    for event in several:
        if isinstance(event, dict):
            event = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        out.append(event if isinstance(event, bytes) else event.encode())
    return b"".join(out)


def streamed(*arguments, **options):
    """An answer as a stream: its text in pieces of three characters, each call's input in pieces of four."""
    return Stream(events(*events_of(answer(*arguments, **options))))


# ---- what a request carried ----

def blocks_of(body, kind):
    return [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
            if block["type"] == kind]


def calls_of(body):
    """(id, name, arguments) of the calls in the history."""
    return [(block["id"], block["name"], block["input"]) for block in blocks_of(body, "tool_use")]


def results_of(body):
    """(id, text) of the results in the history."""
    return [(block["tool_use_id"], text_of(block.get("content", "")).strip()) for block in blocks_of(body, "tool_result")]


def tools_of(body):
    """Names of the functions that are offered."""
    return [tool.get("name") for tool in body.get("tools", [])]
