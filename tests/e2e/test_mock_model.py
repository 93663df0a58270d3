"""The mock model behind the gateway, in all three forms: requests that no interceptor takes part in go to it and come back as
they are, and what it streams is what the strict readers take."""
import json

import strict_messages
import strict_responses
from client import post
from harness import E2E, main

SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
RUN = "Run this Python code: print(6*7)"
SCRIPT = [{"when": "think", "reasoning": "Well, let me see", "text": "Both.", "calls": ['a {"x": 1}', "b {}"]},
          {"when": "fail", "text": "0123456789abcdef", "fault": "error_event"}]


def responses(text, **more):
    tools = [{"type": "function", "name": "py", "parameters": SCHEMA}]
    return {"model": "mock", "input": text, "tools": tools, **more}


def messages(text, **more):
    tools = [{"name": "py", "input_schema": SCHEMA}]
    return {"model": "mock", "max_tokens": 1000, "messages": [{"role": "user", "content": text}], "tools": tools, **more}


class Model(E2E):
    def serve_model(self, **options):
        return self.serve(upstream_options={"script": SCRIPT, **options})

    def both(self, gateway, text):
        """The final responses and messages, whole and streamed."""
        for stream in (False, True):
            reply = post(gateway, "/v1/responses", responses(text, stream=stream))
            self.assertEqual(reply.status, 200, reply.body)
            response = strict_responses.check(reply.body) if stream else strict_responses.check_response(reply.json)
            reply = post(gateway, "/v1/messages", messages(text, stream=stream))
            self.assertEqual(reply.status, 200, reply.body)
            yield response, strict_messages.check(reply.body) if stream else strict_messages.check_message(reply.json)

    def test_it_calls_the_tool_in_each_form(self):
        for response, message in self.both(self.serve_model(strict=True), RUN):
            self.assertEqual([(item["name"], json.loads(item["arguments"])) for item in response["output"]],
                             [("py", {"code": "print(6*7)"})])
            self.assertEqual([(block["name"], block["input"]) for block in message["content"]], [("py", {"code": "print(6*7)"})])
            self.assertEqual((response["status"], message["stop_reason"]), ("completed", "tool_use"))

    def test_reasoning_text_and_calls_are_streamed_as_each_form_has_them(self):
        for response, message in self.both(self.serve_model(), "think"):
            self.assertEqual([item["type"] for item in response["output"]],
                             ["reasoning", "message", "function_call", "function_call"])
            self.assertEqual([block["type"] for block in message["content"]], ["thinking", "text", "tool_use", "tool_use"])
            self.assertEqual(response["output"][0]["summary"][0]["text"], message["content"][0]["thinking"])

    def test_a_failure_within_a_stream_has_each_forms_events(self):
        gateway = self.serve_model()
        failed = strict_responses.check(post(gateway, "/v1/responses", responses("fail", stream=True)).body)
        self.assertEqual(failed["error"], {"code": "server_error", "message": "mock upstream: the model failed"})
        error = strict_messages.check(post(gateway, "/v1/messages", messages("fail", stream=True)).body)
        self.assertEqual(error["error"], {"type": "api_error", "message": "mock upstream: the model failed"})

    def test_a_strict_one_refuses_in_each_forms_words(self):
        gateway = self.serve_model(strict=True)
        reply = post(gateway, "/v1/responses", responses("x", tools=[{"type": "file_search"}]))
        self.assertEqual((reply.status, reply.error["param"]), (400, "tools[0].type"))
        reply = post(gateway, "/v1/messages", messages("x", messages=[{"role": "user", "content": "a"}] * 2))
        self.assertEqual((reply.status, reply.json["type"], reply.error["type"]), (400, "error", "invalid_request_error"))
        self.assertIn("roles must alternate", reply.error["message"])


if __name__ == "__main__":
    main()
