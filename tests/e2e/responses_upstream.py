"""Turns of a model server that speaks Responses, for Upstream (upstream.py), in the same words: answer(), code(), streamed()
…; and what a request's body carried."""
import itertools
import json

from upstream import Stream, text_of

CREATED = 1764400000
NUMBERS = itertools.count(1)
WHOLE = {"background": False, "error": None, "incomplete_details": None, "instructions": None, "max_output_tokens": None,
         "max_tool_calls": None, "model": "up-model", "parallel_tool_calls": True, "previous_response_id": None,
         "prompt_cache_key": None, "reasoning": {"effort": None, "summary": None}, "safety_identifier": None,
         "service_tier": "default", "store": False, "temperature": 1, "text": {"format": {"type": "text"}, "verbosity": "medium"},
         "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1, "truncation": "disabled", "user": None,
         "metadata": {}}


def as_text(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def text_part(text, annotations=()):
    return {"type": "output_text", "annotations": list(annotations), "logprobs": [], "text": text}


def message(text, number, status="completed", annotations=()):
    return {"id": f"msg_up{number}", "type": "message", "status": status, "role": "assistant",
            "content": [text_part(text, annotations)]}


def reasoning_item(text, number, encrypted=None):
    item = {"id": f"rs_up{number}", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}] if text else []}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def function_call(call_id, name, arguments, number, status="completed"):
    return {"id": f"fc_up{number}_{call_id}", "type": "function_call", "status": status, "arguments": as_text(arguments),
            "call_id": call_id, "name": name}


def answer(text=None, calls=(), usage=(10, 5), reasoning=None, encrypted=None, incomplete=None, annotations=(), **more):
    """A response. A call is (id, name, arguments); arguments that are no text are written as JSON text. `incomplete`: why, and
    the last item is then what is not whole."""
    number = next(NUMBERS)
    output = []
    if reasoning is not None or encrypted:
        output.append(reasoning_item(reasoning, number, encrypted))
    if text is not None:
        output.append(message(text, number, annotations=annotations))
    output += [function_call(*call, number) for call in calls]
    if incomplete and output and "status" in output[-1]:
        output[-1]["status"] = "incomplete"
    counted = usage and {"input_tokens": usage[0], "input_tokens_details": {"cached_tokens": 0}, "output_tokens": usage[1],
                         "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": sum(usage)}
    return {"id": f"resp_up{number}", "object": "response", "created_at": CREATED,
            "status": "incomplete" if incomplete else "completed", "completed_at": None if incomplete else CREATED + 1, **WHOLE,
            "incomplete_details": {"reason": incomplete} if incomplete else None, "output": output, "usage": counted or None,
            **more}


def code(source, call_id="call_1", name="code_interpreter", **more):
    """A turn that calls the code tool."""
    return answer(calls=[(call_id, name, {"code": source})], **more)


def bash(command, call_id="call_1", name="bash_code_execution", **more):
    return answer(calls=[(call_id, name, {"command": command})], **more)


# ---- streams ----

def growing(kind, within, key, text, size, **more):
    """The deltas of a text, then the whole."""
    for at in range(0, len(text), size):
        yield {"type": f"response.{kind}.delta", **within, "delta": text[at:at + size], **more}
    yield {"type": f"response.{kind}.done", **within, key: text, **more}


def part_events(kind, within, part, inner):
    empty = {**part, "text": "", **({"annotations": []} if "annotations" in part else {})}
    yield {"type": f"response.{kind}.added", **within, "part": empty}
    yield from inner
    yield {"type": f"response.{kind}.done", **within, "part": part}


def text_events(within, part):
    yield from growing("output_text", within, "text", part["text"], 3, logprobs=[])
    for i, annotation in enumerate(part["annotations"]):
        yield {"type": "response.output_text.annotation.added", **within, "annotation_index": i, "annotation": annotation}


def inner_events(item, index):
    within = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        yield from growing("function_call_arguments", within, "arguments", item["arguments"], 4)
    for i, part in enumerate(item.get("summary", [])):
        at = {**within, "summary_index": i}
        yield from part_events("reasoning_summary_part", at, part, growing("reasoning_summary_text", at, "text", part["text"], 3))
    for i, part in enumerate(item.get("content", [])):
        at = {**within, "content_index": i}
        yield from part_events("content_part", at, part, text_events(at, part))


def item_events(item, index):
    begun = {**item, **{key: type(item[key])() for key in ("content", "summary", "arguments") if key in item}}
    if "status" in item:
        begun["status"] = "in_progress"
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield from inner_events(item, index)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def events_of(response):
    """All events that a response is streamed as, without their numbers."""
    begun = {**response, "status": "in_progress", "completed_at": None, "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield from item_events(item, index)
    yield {"type": f"response.{response['status']}", "response": response}


def failing(response, message="The model failed.", code="server_error", behind=2):
    """The first `behind` events of a response, then its failure."""
    error = {"code": code, "message": message}
    failed = {**response, "status": "failed", "completed_at": None, "error": error, "output": [], "usage": None}
    nested = {"type": code, "code": code, "message": message, "param": None}
    return [*itertools.islice(events_of(response), behind), {"type": "error", **error, "param": None, "error": nested},
            {"type": "response.failed", "response": failed}]


def numbered(events):
    return [{"type": event["type"], "sequence_number": i, **event} for i, event in enumerate(events)]


def events(*several):
    """Server-sent events as bytes, numbered: dicts as JSON, text and bytes as they are."""
    out, number = [], 0
    for event in several:
        if isinstance(event, dict):
            event = {"type": event["type"], "sequence_number": number, **event}
            number += 1
            event = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        out.append(event if isinstance(event, bytes) else event.encode())
    return b"".join(out)


def streamed(*arguments, **options):
    """An answer as a stream: its text in pieces of three characters, each call's arguments in pieces of four."""
    return Stream(events(*events_of(answer(*arguments, **options))))


# ---- what a request carried ----

def items_of(body):
    """The input as a list of items."""
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def calls_of(body):
    """(id, name, arguments) of the calls in the history."""
    return [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in items_of(body)
            if item.get("type") == "function_call"]


def results_of(body):
    """(id, text) of the results in the history."""
    return [(item["call_id"], text_of(item["output"]).strip()) for item in items_of(body)
            if item.get("type") == "function_call_output"]


def tools_of(body):
    """Names of the functions that are offered."""
    return [tool.get("name") for tool in body.get("tools", [])]
