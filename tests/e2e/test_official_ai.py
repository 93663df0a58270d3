"""The unmodified `ai` package from npm with its providers for OpenAI and Anthropic, which check every field of what they are
sent: whole answers, streams, conversations that send back what was answered, the client's tools beside ours."""
import messages_upstream
import responses_upstream
from harness import main
from official import Official, both
from test_official_messages import SEARCH

FORMS = {"responses": responses_upstream, "messages": messages_upstream, "shell": messages_upstream}
NAMES = {"responses": "code_interpreter", "messages": "code_interpreter", "shell": "bash_code_execution"}


class OfficialAi(Official):
    program = "ai.mjs"
    apis = NAMES  # that are asked in

    def form_of(self, api):
        """The module that writes the upstream's turns."""
        return FORMS[api]

    def upstream_of(self, api, *texts, mixed=False):
        """One that calls the code tool, and where `mixed` the client's too, and then says each text."""
        calls = both("call", NAMES[api], {"command": "echo hello"} if api == "shell" else None)
        turns = [{"calls": calls if mixed else calls[:1]}, *[{"text": text} for text in texts]]
        return self.upstream(*self.turns_of(api, turns))

    def turns_of(self, api, turns):
        return [self.form_of(api).streamed(turn.get("text"), calls=turn.get("calls", ()), usage=(10, 5)) for turn in turns]

    def test_a_whole_answer(self):
        for api in [api for api in self.apis if api != "shell"]:
            with self.subTest(api):
                self.node(self.serve(), api, "whole")

    def test_a_stream(self):
        for api in [api for api in self.apis if api != "shell"]:
            with self.subTest(api):
                self.node(self.serve(), api, "stream")

    def test_a_stream_with_a_shell_command(self):
        self.node(self.serve(self.upstream_of("shell", "It says hello.")), "shell", "stream")

    def test_a_conversation_sends_back_what_was_answered(self):
        for api in self.apis:
            with self.subTest(api):
                upstream = self.upstream_of(api, "It is 42.", "Again: 42.")
                self.node(self.serve(upstream), api, "conversation")
                body = upstream.requests[2].json
                self.assertEqual([name for _, name, _ in self.form_of(api).calls_of(body)], [NAMES[api]])
                self.assertEqual([text for _, text in self.form_of(api).results_of(body)], ["hello" if api == "shell" else "42"])

    def test_c032_a_search_its_sources_and_what_is_sent_back(self):
        for part in ("whole", "stream", "sources", "conversation"):
            with self.subTest(part):
                turns = [{"calls": [("toolu_a", "web_search", {"query": "sql"})]},
                         {"text": "SQLite, since 42 years: https://sqlite.org/."}]
                last = [{"text": "Again."}] if part == "conversation" else []
                upstream = self.upstream(*self.turns_of("messages", [*turns * (2 if part == "sources" else 1), *last]))
                self.node(self.serve(upstream, **SEARCH), "search", part)
        body = upstream.requests[2].json
        self.assertEqual([name for _, name, _ in self.form_of("messages").calls_of(body)], ["web_search"])
        self.assertIn("A small database.", self.form_of("messages").results_of(body)[0][1])
        self.assertNotIn("encrypted_index", upstream.requests[2].body.decode())

    def test_a_client_tool_beside_ours(self):
        for api in self.apis:
            with self.subTest(api):
                upstream = self.upstream_of(api, "Stock 5 and 42.", mixed=True)
                self.node(self.serve(upstream), api, "mixed")
                results = [text for _, text in self.form_of(api).results_of(upstream.requests[1].json)]
                self.assertEqual(len(results), 2)
                self.assertIn("5 of A-7", results[1])


if __name__ == "__main__":
    main()
