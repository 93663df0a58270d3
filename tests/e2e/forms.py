"""The three API forms in one vocabulary, so that what a gateway has to do can be written down once (scenarios.py). Each form
knows how a client asks, how an upstream answers, and how both are read."""
import itertools
import json

import messages_upstream
import responses_upstream
import strict_messages
import strict_responses
import upstream
from client import post
from upstream import Status

SCHEMA = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}


class Told:
    """What a client was told, whatever the form."""

    def __init__(self, reply):
        self.status, self.reply = reply.status, reply
        self.error = None   # the message of an error, of the whole answer or within a stream
        self.code = None    # and its code, where the form has one
        self.texts = []     # a text for each turn that has one; chat joins them
        self.calls = []     # (id, name, arguments) of the client's functions
        self.shown = []     # (code, "ok" or "failed", what was printed) of each run; None where the form shows none
        self.finish = None  # "stop", "length" or "calls"
        self.usage = None   # (input tokens, output tokens)
        self.final = None   # the form's own object


class Form:
    """One API form. `module`: its answers as an upstream."""

    name = path = module = None
    shows_runs = True
    limit = "max_tokens"
    key = "code"  # what the code tool is given
    one_call, as_json = {"parallel_tool_calls": False}, None  # members that ask for one call a turn, and for JSON

    def ask(self, gateway, body, **options):
        reply = post(gateway, self.path, body, **options)
        told = Told(reply)
        if reply.status != 200:
            told.error, told.code = reply.error["message"], reply.error.get("code")
        elif body.get("stream"):
            self.read_stream(told)
        else:
            self.read(told, reply.json)
        return told

    def turn(self, body, text=None, calls=(), usage=(10, 5), finish=None):
        """An upstream's turn, in the form that the request asks for. A call is (id, arguments) of the code tool or
        (id, name, arguments) of another; no name is the code tool's, given these arguments."""
        own = self.code_tool(body)
        named = [(call[0], call[1] or own, call[2]) if len(call) == 3 else (call[0], own, {self.key: call[1]}) for call in calls]
        make = self.module.streamed if body.get("stream") else self.module.answer
        return make(text, calls=named, usage=usage, **self.finish_of(finish))

    def failure(self, status, message="the model is busy", headers=()):
        """An upstream's refusal."""
        error = {"message": message, "type": "server_error", "param": None, "code": None}
        return Status(status, {"error": error}, headers)

    # `body` asks; `continued` is the request after an answer: the history as the client has it, results of its functions, and
    # what the user says next. `last` is what a request ends with: (is it a result, its text). Each form has these; and where
    # containers can be named, `in_container` makes a request name one, and `container` is the one that an answer has named.

    def code_tool(self, body):
        """The name under which the gateway has offered code to the model."""
        for tool in body.get("tools", []):
            function = tool.get("function", tool)
            schema = function.get("parameters") or function.get("input_schema") or {}
            if schema.get("required") == [self.key]:
                return function["name"]
        return "code_that_was_not_offered"

    def offers_code(self, body):
        return self.code_tool(body) != "code_that_was_not_offered"

    def metadata(self, session):
        return {"session_id": session, "kept": "k"}

    def results(self, body):
        """(id, text) of the results that a request carries to an upstream."""
        return self.module.results_of(body)

    def choice(self, body):
        """"auto", "none" or "forced", of a request that an upstream got."""
        choice = body.get("tool_choice", "auto")
        return choice if isinstance(choice, str) and choice != "required" else "forced"


class Chat(Form):
    name, path, module = "chat", "/v1/chat/completions", upstream
    shows_runs = False
    as_json = {"response_format": {"type": "json_object"}}

    def body(self, stream, text="x", functions=False, choice=None, tokens_max=None, **more):
        tools = [{"type": "code_interpreter"}]
        if functions:
            tools.append({"type": "function", "function": {"name": "get_stock", "parameters": SCHEMA}})
        body = {"model": "mock", "messages": [{"role": "user", "content": text}], "tools": tools, "stream": stream, **more}
        if stream:
            body["stream_options"] = {"include_usage": True}
        if choice:
            body["tool_choice"] = {"type": "code_interpreter"} if choice == "forced" else choice
        if tokens_max:
            body[self.limit] = tokens_max
        return body

    def finish_of(self, finish):
        return {"finish": finish} if finish else {}

    def last(self, body):
        message = body["messages"][-1]
        return message["role"] == "tool", self.module.text_of(message["content"])

    def read(self, told, answer):
        message, told.final = answer["choices"][0]["message"], answer
        told.texts = [message["content"]] if message["content"] else []
        told.calls = [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                      for call in message.get("tool_calls", [])]
        told.finish = {"tool_calls": "calls"}.get(answer["choices"][0]["finish_reason"], answer["choices"][0]["finish_reason"])
        told.usage = (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"])

    def read_stream(self, told):
        events = told.reply.events
        assert events[-1] == "[DONE]", "the stream has no end mark"
        message, finish, usage = {"role": "assistant", "content": "", "tool_calls": []}, None, None
        for event in events[:-1]:
            if "error" in event:
                told.error, told.code = event["error"]["message"], event["error"]["code"]
                return
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                finish = choice["finish_reason"] or finish
                self.grow(message, choice["delta"])
        if not message["tool_calls"]:
            del message["tool_calls"]
        self.read(told, {"choices": [{"message": message, "finish_reason": finish}], "usage": usage})

    @staticmethod
    def grow(message, delta):
        message["content"] += delta.get("content") or ""
        for call in delta.get("tool_calls", []):
            if "id" in call:
                assert call["index"] == len(message["tool_calls"]), "indexes count up"
                message["tool_calls"].append({"id": call["id"], "type": "function", "function": dict(call["function"])})
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]

    def continued(self, body, told, result=None, text=None):
        message = told.final["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": call[0], "content": result} for call in told.calls]
        asked = [{"role": "user", "content": text}] if text else []
        return {**body, "messages": [*body["messages"], message, *results, *asked]}


class Responses(Form):
    name, path, module, limit = "responses", "/v1/responses", responses_upstream, "max_output_tokens"
    as_json = {"text": {"format": {"type": "json_object"}}}

    def body(self, stream, text="x", functions=False, choice=None, tokens_max=None, **more):
        tools = [{"type": "code_interpreter", "container": {"type": "auto"}}]
        if functions:
            tools.append({"type": "function", "name": "get_stock", "parameters": SCHEMA, "strict": False})
        body = {"model": "mock", "input": [{"role": "user", "content": text}], "tools": tools, "stream": stream,
                "include": ["code_interpreter_call.outputs"], **more}
        if choice:
            body["tool_choice"] = {"type": "code_interpreter"} if choice == "forced" else choice
        if tokens_max:
            body[self.limit] = tokens_max
        return body

    def finish_of(self, finish):
        return {"incomplete": "max_output_tokens"} if finish == "length" else {}

    def last(self, body):
        item = self.module.items_of(body)[-1]
        is_result = item.get("type") == "function_call_output"
        return is_result, self.module.text_of(item["output" if is_result else "content"])

    def in_container(self, body, container):
        return {**body, "tools": [{**body["tools"][0], "container": container}, *body["tools"][1:]]}

    def container(self, told):
        return next((item["container_id"] for item in told.final["output"] if item["type"] == "code_interpreter_call"), None)

    def read(self, told, response):
        told.final = strict_responses.check_response(response)
        self.take(told, response)

    def read_stream(self, told):
        told.final = strict_responses.check(told.reply.body)
        if told.final["error"]:
            told.error, told.code = told.final["error"]["message"], told.final["error"]["code"]
            return
        self.take(told, told.final)

    @staticmethod
    def take(told, response):
        for item in response["output"]:
            if item["type"] == "message":
                told.texts.append("".join(part["text"] for part in item["content"]))
            elif item["type"] == "function_call":
                told.calls.append((item["call_id"], item["name"], json.loads(item["arguments"])))
            elif item["type"] == "code_interpreter_call":
                printed = "".join(output.get("logs", "") for output in item["outputs"] or [])
                told.shown.append((item["code"], "ok" if item["status"] == "completed" else "failed", printed.strip()))
        told.finish = "length" if response["status"] == "incomplete" else "calls" if told.calls else "stop"
        told.usage = (response["usage"]["input_tokens"], response["usage"]["output_tokens"])

    def continued(self, body, told, result=None, text=None):
        results = [{"type": "function_call_output", "call_id": call[0], "output": result} for call in told.calls]
        asked = [{"role": "user", "content": text}] if text else []
        return {**body, "input": [*body["input"], *told.final["output"], *results, *asked]}


class Messages(Form):
    name, path, module = "messages", "/v1/messages", messages_upstream
    tool, run = "code_execution_20250522", "code_execution"
    one_call = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    as_json = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}

    def body(self, stream, text="x", functions=False, choice=None, tokens_max=None, **more):
        tools = [{"type": self.tool, "name": "code_execution"}]
        if functions:
            tools.append({"name": "get_stock", "input_schema": SCHEMA})
        body = {"model": "mock", self.limit: tokens_max or 4096, "messages": [{"role": "user", "content": text}], "tools": tools,
                "stream": stream, **more}
        if choice:
            body["tool_choice"] = {"type": "tool", "name": "code_execution"} if choice == "forced" else {"type": choice}
        return body

    def finish_of(self, finish):
        return {"stop": {"length": "max_tokens", "stop": "end_turn"}[finish]} if finish else {}

    def last(self, body):
        content = body["messages"][-1]["content"]
        block = {"type": "text", "text": content} if isinstance(content, str) else content[-1]
        is_result = block["type"] == "tool_result"
        return is_result, self.module.text_of(block.get("content", "")) if is_result else block["text"]

    def failure(self, status, message="the model is busy", headers=()):
        return Status(status, {"type": "error", "error": {"type": "api_error", "message": message}}, headers)

    def in_container(self, body, container):
        return {**body, "container": container}

    def container(self, told):
        return (told.final.get("container") or {}).get("id")

    def read(self, told, message):
        told.final = strict_messages.check_message(message)
        self.take(told, message)

    def read_stream(self, told):
        told.final = strict_messages.check(told.reply.body)
        if told.final["type"] == "error":
            told.error = told.final["error"]["message"]
            return
        self.take(told, told.final)

    def take(self, told, message):
        called = {}
        for block in message["content"]:
            if block["type"] == "text":
                told.texts.append(block["text"])
            elif block["type"] == "tool_use":
                told.calls.append((block["id"], block["name"], block["input"]))
            elif block["type"] == "server_tool_use":
                called[block["id"]] = block["input"].get(self.key)
            elif block["type"] == f"{self.run}_tool_result":
                content = block["content"]
                is_ok = content["type"] == f"{self.run}_result"
                printed = content["stdout"] + content["stderr"] if is_ok else ""
                told.shown.append((called[block["tool_use_id"]], "ok" if is_ok else "failed", printed.strip()))
        told.finish = {"max_tokens": "length", "tool_use": "calls"}.get(message["stop_reason"], "stop")
        told.usage = (message["usage"]["input_tokens"], message["usage"]["output_tokens"])

    def continued(self, body, told, result=None, text=None):
        results = [{"type": "tool_result", "tool_use_id": call[0], "content": result} for call in told.calls]
        asked = [{"type": "text", "text": text}] if text else []
        more = [{"role": "assistant", "content": told.final["content"]}, {"role": "user", "content": [*results, *asked]}]
        return {**body, "messages": [*body["messages"], *more]}

    def metadata(self, session):
        return {"session_id": session, "user_id": "u"}  # nothing else is this API's

    def choice(self, body):
        kind = body.get("tool_choice", {"type": "auto"})["type"]
        return kind if kind in ("auto", "none") else "forced"


class Shell(Messages):
    """The newer code execution of Messages: shell commands, and files."""

    key = "command"
    tool, run = "code_execution_20250825", "bash_code_execution"


class Obedient:
    """A model that runs what the user says, and answers with what came of it. For `forever` of an upstream."""

    def __init__(self, form):
        self.form, self.numbers = form, itertools.count(1)

    def __call__(self, connection):
        body = connection.request.json
        is_result, text = self.form.last(body)
        if is_result:
            return self.form.turn(body, text.strip() or "nothing")
        return self.form.turn(body, calls=[(f"call_{next(self.numbers)}", text)])


CHAT, RESPONSES, MESSAGES = FORMS = Chat(), Responses(), Messages()
SHELL = Shell()
