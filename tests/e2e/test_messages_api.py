"""Anthropic's Messages with the real binary: code that runs between the model's turns shows as the hosted tool's blocks, whole
and streamed; what is wrong is told in Anthropic's form. The wire itself is held by the unit tests (test_messages_*.c)."""
import json

from client import post
from harness import E2E, main
from upstream import Status, Stream

TOOL = {"type": "code_execution_20250522", "name": "code_execution"}
STOCK = {"name": "get_stock", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "x"}


def text(what):
    return {"type": "text", "text": what}


def use(source, call_id="toolu_1", name="code_interpreter"):
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"code": source}}


def message(*content, stop=None):
    calls = any(block["type"] == "tool_use" for block in content)
    return {"id": "msg_up", "type": "message", "role": "assistant", "model": "up-model", "content": list(content),
            "stop_reason": stop or ("tool_use" if calls else "end_turn"), "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5}}


def event(kind, **members):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def streamed(*content):
    """The same message in events: texts in pieces of three characters, inputs in pieces of four."""
    whole = message(*content)
    out = [event("message_start", message={**whole, "content": [], "stop_reason": None})]
    for index, block in enumerate(content):
        is_text = block["type"] == "text"
        key, kind, grown, size = ("text", "text_delta", block["text"], 3) if is_text else \
            ("partial_json", "input_json_delta", json.dumps(block["input"]), 4)
        out.append(event("content_block_start", index=index,
                         content_block=text("") if is_text else {**block, "input": {}}))
        for at in range(0, len(grown), size):
            out.append(event("content_block_delta", index=index, delta={"type": kind, key: grown[at:at + size]}))
        out.append(event("content_block_stop", index=index))
    out.append(event("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None},
                     usage={"output_tokens": 5}))
    return Stream(b"".join(out) + event("message_stop"))


def accumulated(raw):
    """The message that a client puts together from the events."""
    whole, inputs = None, {}
    for one in raw.decode().strip().split("\n\n"):
        name, data = one.split("\n")
        body = json.loads(data.removeprefix("data: "))
        assert name == "event: " + body["type"], one
        if body["type"] == "message_start":
            whole = body["message"]
        elif body["type"] == "content_block_start":
            assert body["index"] == len(whole["content"]), one
            whole["content"].append(body["content_block"])
        elif body["type"] == "content_block_delta":
            delta, block = body["delta"], whole["content"][body["index"]]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                inputs[body["index"]] = inputs.get(body["index"], "") + delta["partial_json"]
        elif body["type"] == "message_delta":
            whole.update(body["delta"])
            whole["usage"].update(body["usage"])
    for index, given in inputs.items():
        whole["content"][index]["input"] = json.loads(given)
    return whole


class Messages(E2E):
    def ask(self, gateway, stream=False, messages=(USER,), tools=(TOOL, STOCK), **more):
        reply = post(gateway, "/v1/messages", {"model": "mock", "max_tokens": 500, "stream": stream,
                                               "messages": list(messages), "tools": list(tools), **more})
        self.assertEqual(reply.status, 200, reply.body)
        return accumulated(reply.body) if stream else reply.json

    def test_c027_c056_runs_show_as_blocks_and_share_their_variables(self):
        for stream in (False, True):
            make = streamed if stream else message
            upstream = self.upstream(make(text("Let me see."), use("x = 20")), make(use("print(x + 22)", "toolu_2")),
                                     make(text("It is 42.")))
            answer = self.ask(self.serve(upstream), stream)
            self.assertEqual([b["type"] for b in answer["content"]],
                             ["text", "server_tool_use", "code_execution_tool_result",
                              "server_tool_use", "code_execution_tool_result", "text"])
            call, result = answer["content"][3:5]
            self.assertEqual((call["name"], call["input"]), ("code_execution", {"code": "print(x + 22)"}))
            self.assertEqual(result["tool_use_id"], call["id"])
            self.assertEqual(result["content"], {"type": "code_execution_result", "stdout": "42\n", "stderr": "",
                                                 "return_code": 0, "content": []})
            self.assertEqual((answer["id"], answer["stop_reason"]), ("msg_up", "end_turn"))
            self.assertEqual((answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]), (30, 15))
            sent = upstream.requests[2].json
            self.assertEqual([tool["name"] for tool in sent["tools"]], ["code_interpreter", "get_stock"])
            self.assertEqual([m["role"] for m in sent["messages"]],
                             ["user", "assistant", "user", "assistant", "user"])
            self.assertEqual(sent["messages"][4]["content"][0]["tool_use_id"], "toolu_2")

    def test_a_mixed_turn_comes_back_whole(self):
        for stream in (False, True):
            make = streamed if stream else message
            upstream = self.upstream(make(use("print(6 * 7)"), use("", "toolu_2", "get_stock")), message(text("Both.")))
            gateway = self.serve(upstream)
            answer = self.ask(gateway, stream)
            self.assertEqual([b["type"] for b in answer["content"]],
                             ["server_tool_use", "code_execution_tool_result", "tool_use"])
            self.assertEqual(answer["stop_reason"], "tool_use")
            result = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "9"}
            self.ask(gateway, messages=[USER, {"role": "assistant", "content": answer["content"]},
                                        {"role": "user", "content": [result]}])
            turn, results = upstream.requests[1].json["messages"][1:]
            self.assertEqual([b["name"] for b in turn["content"]], ["code_interpreter", "get_stock"])
            self.assertEqual([(r["tool_use_id"], r["content"]) for r in results["content"]],
                             [(turn["content"][0]["id"], "42"), ("toolu_2", "9")])

    def test_errors_have_the_published_form(self):
        upstream = self.upstream(Status(400, b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'))
        gateway = self.serve(upstream)
        for tools, words in (([{"type": "code_execution_latest"}], "tools[0].type: unknown tool type "), ([TOOL], "no")):
            reply = post(gateway, "/v1/messages", {"model": "mock", "max_tokens": 9, "messages": [USER], "tools": tools})
            self.assertEqual(reply.status, 400)
            self.assertEqual((reply.json["type"], reply.json["error"]["type"]), ("error", "invalid_request_error"))
            self.assertTrue(reply.json["error"]["message"].startswith(words), reply.body)
            self.assertTrue(reply.json["request_id"].startswith("req_"))


if __name__ == "__main__":
    main()
