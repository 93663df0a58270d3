"""The unmodified official clients from npm (`@anthropic-ai/sdk`, the newest and one of the generation before) on Messages:
blocks and live events of runs, shell commands and file edits, the client's tools beside them, containers, errors."""
from harness import main
from messages_upstream import answer, calls_of, code, results_of, streamed
from official import Official
from upstream import Status, always

BOTH = [("toolu_a", "code_interpreter", {"code": "print(6 * 7)"}), ("toolu_b", "get_stock", {"part": "A-7"})]
EDITS = [{"command": "create", "path": "notes.txt", "file_text": "one\n"},
         {"command": "str_replace", "path": "notes.txt", "old_str": "one", "new_str": "one\ntwo"},
         {"command": "view", "path": "notes.txt"}, {"command": "view", "path": "nothing.txt"}]


class OfficialMessages(Official):
    program = "messages.mjs"

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_a_whole_answer_on_the_beta_path(self):
        self.node(self.serve(), "beta")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        self.node(self.serve(), "accumulate")

    def test_a_shell_command(self):
        upstream = self.upstream(streamed(calls=[("toolu_a", "bash_code_execution", {"command": "echo hello"})]),
                                 streamed("It says hello."))
        self.node(self.serve(upstream), "shell")

    def test_files_are_made_changed_and_shown_in_one_container(self):
        turns = [streamed(calls=[(f"toolu_{i}", "text_editor_code_execution", edit)]) for i, edit in enumerate(EDITS)]
        gateway = self.serve(self.upstream(*turns, streamed("Done.")))
        self.node(gateway, "editor")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def check_whole(self, upstream):
        """The second request has the turn as the upstream made it, and both results."""
        self.assertEqual(len(upstream.requests), 2)
        body = upstream.requests[1].json
        self.assertEqual([name for _, name, _ in calls_of(body)], ["code_interpreter", "get_stock"])
        self.assertEqual([text.strip() for _, text in results_of(body)], ["42", "5"])
        self.assertEqual([call_id for call_id, _, _ in calls_of(body)], [call_id for call_id, _ in results_of(body)])
        roles = [m["role"] for m in body["messages"]]
        self.assertTrue(all(a != b for a, b in zip(roles, roles[1:])), roles)

    def test_a_client_tool_beside_code_execution(self):
        upstream = self.upstream(answer(calls=BOTH), answer("Stock 5 and 42."))
        self.node(self.serve(upstream), "mixed")
        self.check_whole(upstream)

    def test_a_mixed_stream_and_its_continuation(self):
        upstream = self.upstream(streamed(calls=BOTH), streamed("Stock 5 and 42."))
        self.node(self.serve(upstream), "mixed_stream")
        self.check_whole(upstream)

    def test_a_container_is_named_in_the_next_request(self):
        gateway = self.serve(sandbox={"keep": "1m"})
        self.node(gateway, "container")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        for part in ("failed_after_run", "failed_after_run_in_a_stream"):
            for status in (409, 529):  # the others on chat: it is one piece of code
                upstream = self.upstream(code("print(1)", name="code_interpreter"),
                                         *always(Status(status, headers=[("Retry-After", "0")])))
                gateway = self.serve(upstream)
                self.node(gateway, part)
                tries = 1 if status == 409 else 2  # of the gateway's own
                self.assertEqual(len(upstream.requests), 1 + tries, "the client must not repeat it")
                self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_a_client_that_leaves_ends_the_run(self):
        gateway = self.serve(rules=[{"when": "6 * 7", "fault": "hang"}])
        self.node(gateway, "leave")
        gateway.journal.wait("destroy")


class OfficialMessagesBefore(Official):
    """Where the two generations differ: how they read streams, and their key."""
    program, anthropic = "messages.mjs", "anthropic-sdk-0"

    def test_a_whole_answer_and_streams(self):
        gateway = self.serve()
        for part in ("whole", "beta", "stream", "accumulate", "unknown_model"):
            self.node(gateway, part)

    def test_a_mixed_stream_and_its_continuation(self):
        self.node(self.serve(self.upstream(streamed(calls=BOTH), streamed("Stock 5 and 42."))), "mixed_stream")


if __name__ == "__main__":
    main()
