"""A strict reader of Messages streams: what any official client needs, and no more than the API has. `check(events)` takes
the events (dicts, or the bytes of the body) and returns the final message, or the error event that a failed stream ends
with; `check_message(message)` looks at a whole answer. Both raise Complaint."""
import json

from strict import Complaint, events_of, filled, need, one_of, shaped, whole  # noqa: F401 (Complaint for those who catch it)

CALLER = {"type": filled, "tool_id?": str}
USAGE = {"input_tokens?": whole, "output_tokens": whole, "cache_creation_input_tokens?": (None, whole),
         "cache_read_input_tokens?": (None, whole), "cache_creation?": (None, dict), "service_tier?": (None, str),
         "inference_geo?": (None, str), "output_tokens_details?": (None, dict), "server_tool_use?": (None, dict)}
STOPS = ("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded")
MESSAGE = {"id": filled, "type": one_of("message"), "role": one_of("assistant"), "model": filled, "content": list,
           "stop_reason": (None, one_of(*STOPS)), "stop_sequence": (None, str), "stop_details?": (None, dict),
           "container?": (None, dict), "usage": dict, "context_management?": (None, dict)}
CONTAINER = {"id": lambda value: filled(value) and value.startswith("container_"), "expires_at": filled, "skills?": (None, list)}
BLOCKS = {
    "text": {"type": str, "text": str, "citations?": (None, list)},
    "thinking": {"type": str, "thinking": str, "signature": str},
    "redacted_thinking": {"type": str, "data": filled},
    "tool_use": {"type": str, "id": filled, "name": filled, "input": dict, "caller?": dict},
    "server_tool_use": {"type": str, "id": lambda value: filled(value) and value.startswith("srvtoolu_"), "name": filled,
                        "input": dict, "caller?": dict}}
RESULT = {"type": str, "tool_use_id": filled, "content": dict, "caller?": dict}
OUTPUT = {"type": str, "stdout": str, "stderr": str, "return_code": int, "content": list}
BROKEN = {"type": str, "error_code": filled}
CODES = ("invalid_tool_input", "unavailable", "too_many_requests", "execution_time_exceeded")
EDITOR = "text_editor_code_execution"
# What stands in a result of each tool, and the codes of its errors.
RESULTS = {
    "code_execution": ({"code_execution_result": OUTPUT}, (*CODES, "container_expired")),
    "bash_code_execution": ({"bash_code_execution_result": OUTPUT}, (*CODES, "output_file_too_large")),
    EDITOR: ({
        f"{EDITOR}_view_result": {"type": str, "file_type": one_of("text", "image", "pdf"), "content": str,
                                  "num_lines": (None, whole), "start_line": (None, whole), "total_lines": (None, whole)},
        f"{EDITOR}_create_result": {"type": str, "is_file_update": bool},
        f"{EDITOR}_str_replace_result": {"type": str, "old_start": (None, whole), "old_lines": (None, whole),
                                         "new_start": (None, whole), "new_lines": (None, whole), "lines": (None, list)}},
        (*CODES, "file_not_found")),
    "web_search": ({}, ("invalid_tool_input", "unavailable", "max_uses_exceeded", "too_many_requests", "query_too_long",
                        "request_too_large")),
    "web_fetch": ({"web_fetch_result": {"type": str, "url": filled, "retrieved_at": (None, str), "content": dict}},
                  ("invalid_tool_input", "url_too_long", "url_not_allowed", "url_not_in_prior_context", "url_not_accessible",
                   "unsupported_content_type", "too_many_requests", "max_uses_exceeded", "unavailable", "content_too_large"))}
HIT = {"type": one_of("web_search_result"), "title": (None, str), "url": filled, "encrypted_content": str,
       "page_age": (None, str)}
DOCUMENT = {"type": one_of("document"), "source": dict, "title": (None, str), "citations?": (None, dict)}
SOURCES = {"text": {"type": str, "media_type": one_of("text/plain"), "data": str},
           "base64": {"type": str, "media_type": one_of("application/pdf"), "data": str}}
CITATIONS = {
    "web_search_result_location": {"type": str, "cited_text": lambda value: isinstance(value, str) and len(value) <= 150,
                                   "url": filled, "title": (None, str), "encrypted_index": str},
    "char_location": {"type": str, "cited_text": str, "document_index": whole, "document_title": (None, str),
                      "file_id": (None, str), "start_char_index": whole, "end_char_index": whole}}
ERRORS = ("invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
          "request_too_large", "rate_limit_error", "api_error", "timeout_error", "overloaded_error")

# ---- objects ----


def tool_of(kind):
    """The tool whose result this block is, or None."""
    tool = kind[:-len("_tool_result")] if isinstance(kind, str) and kind.endswith("_tool_result") else None
    return tool if tool in RESULTS else None


def check_result(block, where):
    tool = tool_of(block["type"])
    content = block.get("content")
    if tool == "web_search" and isinstance(content, list):
        shaped(block, where, {**RESULT, "content": list})
        for i, hit in enumerate(content):
            shaped(hit, f"{where}.content[{i}]", HIT)
        return
    shaped(block, where, RESULT)
    shapes, codes = RESULTS[tool]
    kind = content.get("type")
    if kind == f"{tool}_tool_result_error":
        more = {"error_message": (None, str)} if tool == EDITOR else {}
        shaped(content, f"{where}.content", {**BROKEN, "error_code": one_of(*codes), **more})
        return
    need(kind in shapes, f"{where}.content is of the type {kind!r}, which nobody knows")
    shaped(content, f"{where}.content", shapes[kind])
    if shapes[kind] is OUTPUT:
        for i, output in enumerate(content["content"]):
            shaped(output, f"{where}.content.content[{i}]", {"type": one_of(f"{tool}_output"), "file_id": filled})
    elif tool == "web_fetch":
        document = content["content"]
        shaped(document, f"{where}.content.content", DOCUMENT)
        if document.get("citations") is not None:
            shaped(document["citations"], f"{where}.content.content.citations", {"enabled": bool})
        need(document["source"].get("type") in SOURCES, f"{where} has an unknown source")
        shaped(document["source"], f"{where}.content.content.source", SOURCES[document["source"]["type"]])


def check_citation(citation, where):
    need(isinstance(citation, dict) and citation.get("type") in CITATIONS, f"{where} is a citation that nobody knows")
    shaped(citation, where, CITATIONS[citation["type"]])


def check_block(block, where):
    need(isinstance(block, dict), f"{where} is no block")
    kind = block.get("type")
    if tool_of(kind):
        check_result(block, where)
    else:
        need(kind in BLOCKS, f"{where} is of the type {kind!r}, which nobody knows")
        shaped(block, where, BLOCKS[kind])
    if block.get("caller") is not None:
        shaped(block["caller"], f"{where}.caller", CALLER)
    for i, citation in enumerate(block.get("citations") or []):
        check_citation(citation, f"{where}.citations[{i}]")


def check_usage(usage, where, first=False):
    shaped(usage, where, {**USAGE, "input_tokens": whole} if first else USAGE)
    if usage.get("server_tool_use") is not None:
        shaped(usage["server_tool_use"], f"{where}.server_tool_use", {"web_search_requests": whole, "web_fetch_requests?": whole})


def check_order(content, stop_reason):
    """Each hosted call is followed by its result, in the order of the calls; the last one may wait for the next answer."""
    waiting, ids = [], set()
    for i, block in enumerate(content):
        if "id" in block:
            need(block["id"] not in ids, f"content[{i}] has the id of another block")
            ids.add(block["id"])
        if block["type"] == "server_tool_use":
            waiting.append(block)
        elif tool_of(block["type"]):
            is_resumed = i == 0 and not ids  # answers the call that an earlier answer has ended with
            need(waiting or is_resumed, f"content[{i}] is a result without its call")
            call = waiting.pop(0) if waiting else {"id": block["tool_use_id"], "name": tool_of(block["type"])}
            need((block["tool_use_id"], tool_of(block["type"])) == (call["id"], call["name"]),
                 f"content[{i}] is the result of {block['tool_use_id']}, and {call['id']} is next")
    is_paused = stop_reason == "pause_turn"
    need(not waiting or (is_paused and waiting == content[-1:]), f"calls without their results: {waiting}")
    called = any(block["type"] == "tool_use" for block in content)
    need(not called or stop_reason in ("tool_use", "max_tokens"), f"a call of the client's tool, and {stop_reason}")
    need(called or stop_reason != "tool_use", "tool_use without a call of the client's tool")


def check_message(message, where="the message"):
    """A message that has ended."""
    shaped(message, where, MESSAGE)
    check_usage(message["usage"], f"{where}.usage", first=True)
    need(message["stop_reason"] is not None, f"{where} has no stop reason")
    if message.get("container") is not None:
        shaped(message["container"], f"{where}.container", CONTAINER)
    for i, block in enumerate(message["content"]):
        check_block(block, f"content[{i}]")
    check_order(message["content"], message["stop_reason"])
    return message


# ---- events ----

EMPTY = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}},
         "server_tool_use": {"input": {}}}
DELTAS = {"text_delta": ("text", {"type": str, "text": str}), "citations_delta": ("text", {"type": str, "citation": dict}),
          "thinking_delta": ("thinking", {"type": str, "thinking": str}),
          "signature_delta": ("thinking", {"type": str, "signature": filled}),
          "input_json_delta": (("tool_use", "server_tool_use"), {"type": str, "partial_json": str})}


class Block:
    """A block between its start and its stop."""

    def __init__(self, block, where):
        check_block(block, where)
        self.block, self.where, self.json, self.is_open = dict(block), where, "", True
        for name, value in EMPTY.get(block["type"], {}).items():
            need(block[name] == value, f"{where} starts with {name} {block[name]!r}")
        need(not block.get("citations"), f"{where} starts with citations")

    def take(self, delta):
        need(isinstance(delta, dict) and delta.get("type") in DELTAS, f"{self.where} gets a delta that nobody knows: {delta!r}")
        kinds, shape = DELTAS[delta["type"]]
        need(self.block["type"] in kinds, f"a {delta['type']} on a {self.block['type']}")
        shaped(delta, f"{self.where}.delta", shape)
        if delta["type"] == "input_json_delta":
            self.json += delta["partial_json"]
            need(self.json[:1] in ("", "{"), f"the input of {self.where} begins with {self.json[:1]!r}")
        elif delta["type"] == "citations_delta":
            check_citation(delta["citation"], f"{self.where}.citation")
            need(isinstance(self.block.get("citations"), list), f"{self.where} starts without citations")
            self.block["citations"] = [*self.block["citations"], delta["citation"]]
        else:
            key = delta["type"].split("_")[0]
            self.block[key] += delta[key]

    def stop(self, was_cut):
        need(self.is_open, f"{self.where} stops twice")
        self.is_open = False
        if self.json:
            try:
                self.block["input"] = json.loads(self.json)
            except ValueError:
                need(was_cut(), f"the input of {self.where} is no JSON: {self.json!r}")
            need(isinstance(self.block["input"], dict), f"the input of {self.where} is no object")
        need(self.json or self.block["type"] != "server_tool_use", f"{self.where} has no input")
        need(self.block["type"] != "thinking" or self.block["signature"], f"{self.where} has no signature")


class Stream:
    def __init__(self, events):
        self.message, self.blocks, self.delta, self.final = None, [], None, None
        self.stop_reason = next((e["delta"].get("stop_reason") for e in events
                                 if e.get("type") == "message_delta" and isinstance(e.get("delta"), dict)), None)

    def take(self, event):
        kind = event.get("type")
        need(self.final is None, f"{kind} comes behind the end")
        if kind == "error":
            self.fail(event)
            return
        need((self.message is None) == (kind == "message_start"), f"{kind} comes at the wrong time")
        need(self.delta is None or kind in ("message_stop", "ping"), f"{kind} comes behind message_delta")
        takers = {"message_start": self.begin, "content_block_start": self.start, "content_block_delta": self.grow,
                  "content_block_stop": self.stop, "message_delta": self.change, "message_stop": self.end, "ping": self.ping}
        need(kind in takers, f"{kind} is an event that nobody knows")
        takers[kind](event)

    @staticmethod
    def ping(event):
        shaped(event, "ping", {"type": str})

    def begin(self, event):
        shaped(event, "message_start", {"type": str, "message": dict})
        message = event["message"]
        shaped(message, "message_start.message", MESSAGE)
        check_usage(message["usage"], "message_start.message.usage", first=True)
        for name, value in (("content", []), ("stop_reason", None), ("stop_sequence", None)):
            need(message[name] == value, f"the message starts with {name} {message[name]!r}")
        if message.get("container") is not None:
            shaped(message["container"], "message_start.message.container", CONTAINER)
        self.message = message

    def block_of(self, event, shape):
        shaped(event, event["type"], {"type": str, "index": whole, **shape})
        need(self.blocks and event["index"] == len(self.blocks) - 1 and self.blocks[-1].is_open,
             f"{event['type']} is for the block {event['index']}, which is not open")
        return self.blocks[-1]

    def start(self, event):
        shaped(event, event["type"], {"type": str, "index": whole, "content_block": dict})
        need(event["index"] == len(self.blocks), f"a block has the index {event['index']}, not {len(self.blocks)}")
        need(not self.blocks or not self.blocks[-1].is_open, "a block starts while another is open")
        self.blocks.append(Block(event["content_block"], f"content[{event['index']}]"))

    def grow(self, event):
        self.block_of(event, {"delta": dict}).take(event["delta"])

    def stop(self, event):
        is_last = lambda: self.stop_reason == "max_tokens"  # noqa: E731 (only such an answer may end within an input)
        self.block_of(event, {}).stop(is_last)

    def change(self, event):
        shaped(event, event["type"], {"type": str, "delta": dict, "usage": dict, "context_management?": (None, dict)})
        need(not self.blocks or not self.blocks[-1].is_open, "message_delta while a block is open")
        shaped(event["delta"], "message_delta.delta", {"stop_reason": one_of(*STOPS), "stop_sequence": (None, str),
                                                       "stop_details?": (None, dict), "container?": (None, dict)})
        check_usage(event["usage"], "message_delta.usage")
        started = self.message["usage"]
        need(event["usage"].get("input_tokens", started["input_tokens"]) >= started["input_tokens"], "the usage has shrunk")
        self.delta = event

    def end(self, event):
        shaped(event, event["type"], {"type": str})
        need(self.delta is not None, "message_stop without message_delta")
        usage = {**self.message["usage"], **self.delta["usage"]}
        content = [block.block for block in self.blocks]
        self.final = check_message({**self.message, **self.delta["delta"], "usage": usage, "content": content})

    def fail(self, event):
        shaped(event, "error", {"type": str, "error": dict, "request_id?": (None, str)})
        shaped(event["error"], "error.error", {"type": one_of(*ERRORS), "message": filled, "details?": (None, dict)})
        self.final = event


def check(source):
    """The final message of a stream, or its error event."""
    events = events_of(source)
    stream = Stream(events)
    for event in events:
        stream.take(event)
    need(stream.final is not None, "the stream has no end")
    return stream.final
