"""A strict reader of Responses streams: what any official client needs, and no more than the API has. `check(events)` takes
the events (dicts, or the bytes of the body) and returns the final response; `check_response(response)` looks at a whole
answer. Both raise Complaint."""
from strict import Complaint, events_of, filled, need, one_of, shaped, whole  # noqa: F401 (Complaint for those who catch it)

STATUSES = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
COUNTED = {"input_tokens": whole, "input_tokens_details": dict, "output_tokens": whole, "output_tokens_details": dict,
           "total_tokens": whole}
RESPONSE = {
    "id": filled, "object": one_of("response"), "created_at": whole, "completed_at": (None, whole), "model": filled,
    "status": one_of("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"), "background": (None, bool),
    "error": (None, dict), "incomplete_details": (None, dict), "instructions": (None, str, list),
    "max_output_tokens": (None, int), "max_tool_calls": (None, int), "metadata": (None, dict), "output": list,
    "parallel_tool_calls": bool,
    "previous_response_id": (None, str), "prompt_cache_key": (None, str), "reasoning": (None, dict),
    "safety_identifier": (None, str), "service_tier": (None, str), "store": bool, "temperature": (None, int, float),
    "text": dict, "tool_choice": (str, dict), "tools": list, "top_logprobs": (None, int), "top_p": (None, int, float),
    "truncation": (None, str), "usage": (None, dict), "user": (None, str), "conversation?": (None, dict),
    "prompt?": (None, dict), "prompt_cache_retention?": (None, str), "billing?": dict, "moderation?": (None, dict),
    "context_management?": (None, list), "frequency_penalty?": (int, float), "presence_penalty?": (int, float)}
ERROR = {"code": filled, "message": str, "type?": str, "param?": (None, str)}
ITEM_STATUS = one_of("in_progress", "completed", "incomplete")
RUN_STATUS = one_of("in_progress", "interpreting", "completed", "incomplete", "failed")
SEARCH_STATUS = one_of("in_progress", "searching", "completed", "failed")
ITEMS = {
    "message": {"id": filled, "type": str, "status": ITEM_STATUS, "role": one_of("assistant"), "content": list, "phase?": str},
    "function_call": {"id": filled, "type": str, "status": ITEM_STATUS, "arguments": str, "call_id": filled, "name": filled},
    "custom_tool_call": {"id": filled, "type": str, "status?": ITEM_STATUS, "input": str, "call_id": filled, "name": filled},
    "code_interpreter_call": {"id": filled, "type": str, "status": RUN_STATUS, "code": (None, str), "container_id": filled,
                              "outputs": (None, list)},
    "web_search_call": {"id": filled, "type": str, "status": SEARCH_STATUS, "action?": dict},
    "reasoning": {"id": filled, "type": str, "summary": list, "content?": (None, list), "encrypted_content?": (None, str),
                  "status?": (None, ITEM_STATUS)}}
PARTS = {"output_text": {"type": str, "text": str, "annotations": list, "logprobs": list},
         "refusal": {"type": str, "refusal": str}, "summary_text": {"type": str, "text": str},
         "reasoning_text": {"type": str, "text": str}}
OUTPUTS = {"logs": {"type": str, "logs": str}, "image": {"type": str, "url": filled}}
ACTIONS = {"search": {"type": str, "query": str, "queries?": list, "sources?": list}, "open_page": {"type": str, "url": filled},
           "find_in_page": {"type": str, "url": filled, "pattern": str}}
ANNOTATIONS = {
    "container_file_citation": {"type": str, "container_id": filled, "file_id": filled, "filename": filled,
                                "start_index": whole, "end_index": whole},
    "url_citation": {"type": str, "start_index": whole, "end_index": whole, "title": str, "url": filled},
    "file_citation": {"type": str, "file_id": filled, "filename": str, "index": whole},
    "file_path": {"type": str, "file_id": filled, "index": whole}}

# ---- objects ----


def of_type(value, where, shapes):
    need(isinstance(value, dict), f"{where} is no object")
    need(value.get("type") in shapes, f"{where} is of the type {value.get('type')!r}, which nobody knows")
    shaped(value, where, shapes[value["type"]])


def check_annotation(annotation, where, text):
    """`text`: what there is of it."""
    of_type(annotation, where, ANNOTATIONS)
    if annotation["type"] == "url_citation":
        need(annotation["start_index"] < annotation["end_index"] <= len(text), f"{where} covers nothing of the text: {annotation}")


def check_part(part, where):
    of_type(part, where, PARTS)
    for i, annotation in enumerate(part.get("annotations", [])):
        check_annotation(annotation, f"{where}.annotations[{i}]", part["text"])


def check_item(item, where):
    of_type(item, where, ITEMS)
    for key, kinds in (("content", ("output_text", "refusal", "reasoning_text")), ("summary", ("summary_text",))):
        for i, part in enumerate(item.get(key) or []):
            check_part(part, f"{where}.{key}[{i}]")
            need(part["type"] in kinds, f"{where}.{key}[{i}] is a {part['type']}")
    for i, output in enumerate(item.get("outputs") or []):
        of_type(output, f"{where}.outputs[{i}]", OUTPUTS)
    if "action" in item:
        need(item["status"] in ("completed", "failed"), f"{where} has an action while it is {item['status']}")
        of_type(item["action"], f"{where}.action", ACTIONS)
        for query in item["action"].get("queries", []):
            need(filled(query), f"{where}.action.queries has {query!r}")
        for i, source in enumerate(item["action"].get("sources", [])):
            shaped(source, f"{where}.action.sources[{i}]", {"type": one_of("url"), "url": filled})


def check_ended_item(item, where):
    check_item(item, where)
    need(item.get("status") not in ("in_progress", "interpreting", "searching"), f"{where} has not ended: {item.get('status')}")
    need(item["type"] != "web_search_call" or "action" in item, f"{where} has no action")


def check_response(response, where="the response"):
    """A response that has ended."""
    shaped(response, where, RESPONSE)
    status = response["status"]
    need(status in STATUSES.values(), f"{where} has not ended: {status}")
    need((response["error"] is not None) == (status == "failed"), f"{where} is {status}, and its error {response['error']}")
    if response["error"] is not None:
        shaped(response["error"], f"{where}.error", ERROR)
    need((response["incomplete_details"] is not None) == (status == "incomplete"),
         f"{where} is {status}, and incomplete {response['incomplete_details']}")
    if status == "incomplete":
        shaped(response["incomplete_details"], f"{where}.incomplete_details",
               {"reason": one_of("max_output_tokens", "content_filter")})
    need(response["completed_at"] is None or status == "completed", f"{where} is {status}, and completed")
    if response["usage"] is not None:
        shaped(response["usage"], f"{where}.usage", COUNTED)
        shaped(response["usage"]["input_tokens_details"], "input_tokens_details",
               {"cached_tokens": whole, "cache_write_tokens?": whole})
        shaped(response["usage"]["output_tokens_details"], "output_tokens_details", {"reasoning_tokens": whole})
    need(response["usage"] is not None or status == "failed", f"{where} has no usage")
    ids = [item.get("id") for item in response["output"]]
    need(len(set(ids)) == len(ids), f"{where} has an item's id twice: {ids}")
    for i, item in enumerate(response["output"]):
        (check_item if status == "failed" else check_ended_item)(item, f"{where}.output[{i}]")
    return response


def check_begun(response, where):
    shaped(response, where, RESPONSE)
    need(response["status"] in ("in_progress", "queued"), f"{where} is {response['status']}")
    for name, value in (("output", []), ("usage", None), ("error", None), ("incomplete_details", None), ("completed_at", None)):
        need(response[name] == value, f"{where}.{name} is {response[name]!r} before anything has come")


# ---- events ----

LIFECYCLE = {"type": str, "sequence_number": int, "response": dict}
ITEM_EVENT = {"type": str, "sequence_number": int, "output_index": whole, "item": dict}
WITHIN = {"type": str, "sequence_number": int, "output_index": whole, "item_id": filled}
CONTENT = {**WITHIN, "content_index": whole}
SUMMARY = {**WITHIN, "summary_index": whole}
FAILURE = {"type": str, "sequence_number": int, "code": (None, str), "message": str, "param": (None, str), "error": dict}
DELTA = {"delta": str, "obfuscation?": str}
CODE, CODE_TEXT = "response.code_interpreter_call.", "response.code_interpreter_call_code."
WEB = "response.web_search_call."
# Of which item type, and of which shape.
EVENTS = {
    "response.content_part.added": ("message", {**CONTENT, "part": dict}),
    "response.content_part.done": ("message", {**CONTENT, "part": dict}),
    "response.output_text.delta": ("message", {**CONTENT, **DELTA, "logprobs": list}),
    "response.output_text.done": ("message", {**CONTENT, "text": str, "logprobs": list}),
    "response.output_text.annotation.added": ("message", {**CONTENT, "annotation_index": whole, "annotation": dict}),
    "response.refusal.delta": ("message", {**CONTENT, **DELTA}),
    "response.refusal.done": ("message", {**CONTENT, "refusal": str}),
    "response.function_call_arguments.delta": ("function_call", {**WITHIN, **DELTA}),
    "response.function_call_arguments.done": ("function_call", {**WITHIN, "arguments": str, "name?": filled}),
    "response.custom_tool_call_input.delta": ("custom_tool_call", {**WITHIN, **DELTA}),
    "response.custom_tool_call_input.done": ("custom_tool_call", {**WITHIN, "input": str}),
    CODE + "in_progress": ("code_interpreter_call", WITHIN),
    CODE_TEXT + "delta": ("code_interpreter_call", {**WITHIN, **DELTA}),
    CODE_TEXT + "done": ("code_interpreter_call", {**WITHIN, "code": str}),
    CODE + "interpreting": ("code_interpreter_call", WITHIN),
    CODE + "completed": ("code_interpreter_call", WITHIN),
    WEB + "in_progress": ("web_search_call", WITHIN),
    WEB + "searching": ("web_search_call", WITHIN),
    WEB + "completed": ("web_search_call", WITHIN),
    "response.reasoning_summary_part.added": ("reasoning", {**SUMMARY, "part": dict}),
    "response.reasoning_summary_part.done": ("reasoning", {**SUMMARY, "part": dict}),
    "response.reasoning_summary_text.delta": ("reasoning", {**SUMMARY, **DELTA}),
    "response.reasoning_summary_text.done": ("reasoning", {**SUMMARY, "text": str}),
    "response.reasoning_text.delta": ("reasoning", {**CONTENT, **DELTA}),
    "response.reasoning_text.done": ("reasoning", {**CONTENT, "text": str})}
# What each item needs before it may end as completed, in this order.
STAGES = {
    "code_interpreter_call": [CODE + "in_progress", CODE_TEXT + "delta", CODE_TEXT + "done", CODE + "interpreting",
                              CODE + "completed"],
    "web_search_call": [WEB + "in_progress", WEB + "searching", WEB + "completed"]}
WHOLE_TEXT = {"function_call": "arguments", "custom_tool_call": "input", "code_interpreter_call": "code"}


class Part:
    """A part of a message or of reasoning that grows."""

    def __init__(self, part):
        self.part, self.text, self.annotations = part, "", []
        self.text_done = self.done = False


class Item:
    """An item between its added and its done."""

    def __init__(self, item, where):
        check_item(item, where)
        self.item, self.where = item, where
        self.parts, self.seen, self.text, self.text_done, self.done = [], [], "", False, None
        empty = {"content": [], "summary": [], "arguments": "", "input": "", "code": ""}
        for name, value in empty.items():
            if name in item and item[name] is not None:
                need(item[name] == value, f"{where} is added with {name} {item[name]!r}")
        need(item.get("status", "in_progress") == "in_progress", f"{where} is added as {item.get('status')}")
        need("action" not in item, f"{where} is added with its action")
        need(not item.get("outputs"), f"{where} is added with outputs")

    def take(self, event):
        kind = event["type"]
        need(self.done is None, f"{kind} comes behind the end of {self.where}")
        need(event["item_id"] == self.item["id"], f"{kind} is for {event['item_id']!r}, not for {self.item['id']!r}")
        need(EVENTS[kind][0] == self.item["type"], f"{kind} on a {self.item['type']}")
        if self.item["type"] in STAGES:
            self.take_stage(kind)
        if self.item["type"] in ("message", "reasoning"):
            self.take_part_event(kind, event)
        elif kind.endswith(".delta"):
            need(not self.text_done, f"{kind} behind the done of {self.where}")
            self.text += event["delta"]
        elif self.item["type"] in WHOLE_TEXT and kind.endswith(".done"):
            need(not self.text_done, f"{kind} comes twice")
            need(event[WHOLE_TEXT[self.item["type"]]] == self.text, f"{kind} says something else than its deltas: {event}")
            need(event.get("name", self.item.get("name")) == self.item.get("name"), f"{kind} has another name")
            self.text_done = True

    def take_stage(self, kind):
        order = STAGES[self.item["type"]]
        is_repeated = kind in self.seen and kind != CODE_TEXT + "delta"
        need(not is_repeated and all(order.index(seen) <= order.index(kind) for seen in self.seen), f"{kind} is out of its order")
        need(self.seen or kind == order[0], f"{kind} comes before {order[0]}")
        self.seen.append(kind)

    def take_part_event(self, kind, event):
        index = event.get("content_index", event.get("summary_index"))
        if kind.startswith("response.reasoning_text."):
            self.part_of_text(index)
        if kind.endswith("part.added"):
            check_part(event["part"], f"{kind}.part")
            need(index == len(self.parts), f"{kind} has the index {index}, not {len(self.parts)}")
            need(not self.parts or self.parts[-1].done, f"{kind} while another part is open")
            text = event["part"].get("text", event["part"].get("refusal"))
            need(text == "" and not event["part"].get("annotations"), f"{kind} has a text already")
            self.parts.append(Part(event["part"]))
            return
        need(index < len(self.parts), f"{kind} comes before its part")
        self.take_within(self.parts[index], kind, event)

    def part_of_text(self, index):
        """Raw reasoning has no events of parts: the first delta begins one."""
        if index == len(self.parts):
            self.parts.append(Part({"type": "reasoning_text", "text": ""}))

    def take_within(self, part, kind, event):
        need(not part.done, f"{kind} behind the end of its part")
        if kind.endswith("part.done"):
            need(part.text_done, f"{kind} before its text is done")
            need(event["part"] == self.whole(part), f"{kind} says something else than its events: {event['part']}")
            part.done = True
        elif kind.endswith("annotation.added"):
            check_annotation(event["annotation"], kind, part.text)
            need(event["annotation_index"] == len(part.annotations), f"{kind} has the index {event['annotation_index']}")
            part.annotations.append(event["annotation"])
        elif kind.endswith(".delta"):
            need(not part.text_done, f"{kind} behind the done of its text")
            part.text += event["delta"]
        else:
            need(not part.text_done, f"{kind} comes twice")
            need(event.get("text", event.get("refusal")) == part.text, f"{kind} says something else than its deltas")
            part.text_done = True
            part.done = part.part["type"] == "reasoning_text"

    @staticmethod
    def whole(part):
        key = "refusal" if part.part["type"] == "refusal" else "text"
        more = {"annotations": part.annotations} if "annotations" in part.part else {}
        return {**part.part, key: part.text, **more}

    def end(self, item):
        need(self.done is None, f"{self.where} ends twice")
        check_ended_item(item, self.where)
        for name in ("id", "type", "call_id", "name", "container_id", "role"):
            need(item.get(name) == self.item.get(name), f"{self.where}.{name} has changed: {item.get(name)!r}")
        if item["type"] in WHOLE_TEXT:
            is_unsaid = item.get("status") in ("incomplete", "failed") and not self.text
            need(self.text_done or is_unsaid, f"{self.where} ends without its done")
            need((item[WHOLE_TEXT[item["type"]]] or "") == self.text, f"{self.where} ends with another text")
        if item["type"] in STAGES and item["status"] == "completed":
            missing = [stage for stage in STAGES[item["type"]] if stage not in self.seen and not stage.endswith("delta")]
            need(not missing, f"{self.where} is completed without {missing}")
        if item["type"] in ("message", "reasoning"):
            need(all(part.done for part in self.parts), f"{self.where} ends with an open part")
            shown = (item.get("summary") or []) + (item.get("content") or [])
            need(shown == [self.whole(part) for part in self.parts], f"{self.where} ends with other parts than came: {shown}")
        self.done = item


class Stream:
    def __init__(self):
        self.first, self.items, self.failure, self.final, self.previous = None, [], None, None, None

    def take(self, number, event):
        kind = event.get("type")
        need(self.final is None, f"{kind} comes behind the end")
        need(event.get("sequence_number") == number, f"{kind} has the number {event.get('sequence_number')!r}, not {number}")
        need(self.first is not None or kind == "response.created", f"the stream begins with {kind}")
        need(self.failure is None or kind == "response.failed", f"{kind} comes behind an error")
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self.begin(kind, event)
        elif kind in STATUSES:
            self.end(kind, event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self.take_item(kind, event)
        elif kind == "error":
            shaped(event, kind, FAILURE)  # flat and nested at once: some clients raise the one, some the other
            shaped(event["error"], "error.error", {"type": filled, "code": (None, str), "message": str, "param": (None, str)})
            need(event["error"]["message"] == event["message"], "error has two messages")
            self.failure = event
        elif kind == "keepalive":
            shaped(event, kind, {"type": str, "sequence_number": int})
        else:
            need(kind in EVENTS, f"{kind} is an event that nobody knows")
            shaped(event, kind, EVENTS[kind][1])
            need(event["output_index"] < len(self.items), f"{kind} is for no item: {event['output_index']}")
            self.items[event["output_index"]].take(event)
        self.previous = kind

    def same(self, response, kind):
        for name in ("id", "created_at", "model"):
            need(response[name] == self.first[name], f"{kind} has another {name}: {response[name]!r}")

    def begin(self, kind, event):
        shaped(event, kind, LIFECYCLE)
        check_begun(event["response"], kind)
        before = {"response.created": (None,), "response.queued": ("response.created",),
                  "response.in_progress": ("response.created", "response.queued")}
        need(self.previous in before[kind], f"{kind} behind {self.previous}")
        self.first = self.first or event["response"]
        self.same(event["response"], kind)

    def take_item(self, kind, event):
        shaped(event, kind, ITEM_EVENT)
        index, item = event["output_index"], event["item"]
        if kind.endswith("added"):
            need(index == len(self.items), f"{kind} has the index {index}, not {len(self.items)}")
            need(item.get("id") not in [i.item["id"] for i in self.items], f"{kind} has the id of another item")
            self.items.append(Item(item, f"output[{index}]"))
        else:
            need(index < len(self.items), f"{kind} is for no item: {index}")
            self.items[index].end(item)

    def end(self, kind, event):
        shaped(event, kind, LIFECYCLE)
        response = check_response(event["response"], kind)
        self.same(response, kind)
        need(response["status"] == STATUSES[kind], f"{kind} with the status {response['status']}")
        need(kind == "response.failed" or all(item.done for item in self.items), f"{kind} while an item is open")
        need(len(response["output"]) == len(self.items), f"{kind} has {len(response['output'])} items of {len(self.items)}")
        for item, final in zip(self.items, response["output"]):
            need(final.get("id") == item.item["id"], f"{kind}: {item.where} has another id")
            need(item.done is None or final == item.done, f"{kind}: {item.where} is not what it ended with: {final}")
        self.final = response


def check(source):
    """The final response of a stream."""
    stream = Stream()
    for number, event in enumerate(events_of(source)):
        stream.take(number, event)
    need(stream.final is not None, "the stream has no end")
    return stream.final
