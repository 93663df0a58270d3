"""Hosted tools that nobody here answers, on each surface, with and without a tool of ours beside them: they go up as they are,
they are taken out with all that names them, or the request is refused before anything is called."""
import json

from client import post
from harness import E2E, main
from upstream import Status

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
OURS = {"chat": {"type": "code_interpreter"}, "responses": {"type": "code_interpreter", "container": {"type": "auto"}},
        "messages": {"type": "code_execution_20250522", "name": "code_execution"}}
OTHERS = {"chat": {"type": "image_generation"}, "responses": {"type": "file_search", "vector_store_ids": ["vs_1"]},
          "messages": {"type": "web_fetch_20250910", "name": "web_fetch"}}
OWN = {"chat": {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}},
       "responses": {"type": "function", "name": "shell", "parameters": {"type": "object"}},
       "messages": {"name": "shell", "input_schema": {"type": "object"}}}


class OtherTools(E2E):
    def ask(self, policy, surface, tools, **more):
        upstream = self.upstream(forever=Status(400, b'{"error":{"message":"seen"}}'))
        options = {"other_tools": policy} if policy else None
        gateway = self.serve(upstream, upstream_options=options)
        body = {"model": "mock", "tools": tools, **more}
        body["input" if surface == "responses" else "messages"] = [{"role": "user", "content": "x"}]
        if surface == "messages":
            body["max_tokens"] = 100
        reply = post(gateway, PATHS[surface], body)
        return gateway, [json.loads(request.body) for request in upstream.requests], reply

    def test_c028_they_are_refused_where_the_operator_says_so(self):
        for surface, other in OTHERS.items():
            for tools in ([other], [OWN[surface], other], [OURS[surface], OWN[surface], other]):
                with self.subTest(surface, tools=len(tools)):
                    _, seen, reply = self.ask("reject", surface, tools)
                    self.assertEqual((reply.status, seen), (400, []))
                    self.assertEqual(reply.error["message"],
                                     f"The tool type '{other['type']}' is not available for this model.")
                    if surface != "messages":
                        self.assertEqual((reply.error["param"], reply.error["code"]),
                                         (f"tools[{len(tools) - 1}].type", "unsupported_tool"))

    def test_c025_they_are_taken_out_where_the_operator_says_so(self):
        for surface, other in OTHERS.items():
            with self.subTest(surface):
                gateway, seen, _ = self.ask("drop", surface, [other, OURS[surface], OWN[surface], other])
                self.assertEqual(len(seen[0]["tools"]), 2)
                self.assertEqual(seen[0]["tools"][1], OWN[surface])
                self.assertEqual(gateway.wait_event("tools_dropped")["types"], f"{other['type']},{other['type']}")
                _, seen, _ = self.ask("drop", surface, [OWN[surface], other])
                self.assertEqual(seen[0]["tools"], [OWN[surface]], "also where nothing of ours takes part")
                _, seen, _ = self.ask("drop", surface, [other], parallel_tool_calls=False, tool_choice="auto")
                self.assertEqual([key for key in seen[0] if "tool" in key], [], "what makes no sense without tools")

    def test_what_names_one_that_is_gone_goes_too(self):
        choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "file_search"}, {"type": "function", "name": "shell"}]}
        tools = [OTHERS["responses"], OWN["responses"]]
        _, seen, _ = self.ask("drop", "responses", tools, tool_choice=choice)
        self.assertEqual(seen[0]["tool_choice"]["tools"], choice["tools"][1:])
        _, seen, _ = self.ask("drop", "responses", tools, tool_choice={**choice, "tools": choice["tools"][:1]})
        self.assertNotIn("tool_choice", seen[0])
        _, seen, _ = self.ask("drop", "responses", tools, tool_choice={"type": "file_search"})
        self.assertNotIn("tool_choice", seen[0])
        _, seen, _ = self.ask("drop", "responses", tools, tool_choice={"type": "function", "name": "shell"})
        self.assertEqual(seen[0]["tool_choice"], {"type": "function", "name": "shell"})

    def test_they_go_up_as_they_are_by_default(self):
        for policy in (None, "pass"):
            for surface, other in OTHERS.items():
                _, seen, _ = self.ask(policy, surface, [other, OURS[surface]])
                self.assertEqual(seen[0]["tools"][0], other)
                self.assertNotEqual(seen[0]["tools"][1], OURS[surface])


if __name__ == "__main__":
    main()
