"""The unmodified official clients from npm (`@anthropic-ai/sdk`, the newest and one of the generation before) on Messages:
blocks and live events of runs, shell commands and file edits, the client's tools beside them, containers, searches, errors."""
import messages_upstream
from harness import main
from official import Official, both

SEARCH = {"searches": [{"name": "web", "plugin": "mock", "rules": [
    {"when": "sql", "hits": ["SQLite | https://sqlite.org/ | A small database. | 2024-05-23"]}]}],
          "interceptors": [{"plugin": "web_search", "search": "web"}]}
EDITS = [{"command": "create", "path": "notes.txt", "file_text": "one\n"},
         {"command": "str_replace", "path": "notes.txt", "old_str": "one", "new_str": "one\ntwo"},
         {"command": "view", "path": "notes.txt"}, {"command": "view", "path": "nothing.txt"}]


class Searching(Official):
    program, form, mixed = "messages.mjs", messages_upstream, both("toolu")

    def search(self, part, turn, again=True):
        """A search, one more than the client allows, an answer that cites; and what is asked then."""
        turns = [turn(calls=[("toolu_a", "web_search", {"query": "sql"})]), turn(calls=[("toolu_b", "web_search", {"query": "more"})]),
                 turn("A database: https://sqlite.org/.")]
        upstream = self.upstream(*turns, self.form.answer("There."))
        self.node(self.serve(upstream, **SEARCH), part)
        if again:
            results = [text for _, text in self.form.results_of(upstream.requests[3].json)]
            self.assertIn("1. SQLite\n   URL: https://sqlite.org/\n   Date: 2024-05-23\n   A small database.\n", results[0])
            self.assertEqual(results[1], "[limit reached: the call was not run]")
            self.check_said(upstream.requests[3].json)

    def check_said(self, body):
        """The text goes up again, without what we noted at it."""
        (text,) = messages_upstream.blocks_of(body, "text")
        self.assertEqual(text, {"type": "text", "text": "A database: https://sqlite.org/."})


class OfficialMessages(Searching):
    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_a_whole_answer_on_the_beta_path(self):
        self.node(self.serve(), "beta")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        self.node(self.serve(), "accumulate")

    def test_a_shell_command(self):
        upstream = self.upstream(self.form.streamed(calls=[("toolu_a", "bash_code_execution", {"command": "echo hello"})]),
                                 self.form.streamed("It says hello."))
        self.node(self.serve(upstream), "shell")

    def test_files_are_made_changed_and_shown_in_one_container(self):
        turns = [self.form.streamed(calls=[(f"toolu_{i}", "text_editor_code_execution", edit)]) for i, edit in enumerate(EDITS)]
        gateway = self.serve(self.upstream(*turns, self.form.streamed("Done.")))
        self.node(gateway, "editor")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def check_whole(self, body, stock):
        super().check_whole(body, stock)
        roles = [m["role"] for m in body["messages"]]
        self.assertTrue(all(a != b for a, b in zip(roles, roles[1:])), roles)

    def test_a_client_tool_beside_code_execution(self):
        self.check_mixed("mixed", self.form.answer)

    def test_a_mixed_stream_and_its_continuation(self):
        self.check_mixed("mixed_stream", self.form.streamed)

    def test_c032_searches_and_what_they_cite(self):
        self.search("search", self.form.answer)
        self.search("search_stream", self.form.streamed)
        self.search("search_beta", self.form.streamed, again=False)

    def test_fetching_is_an_error_of_its_block(self):
        upstream = self.upstream(self.form.streamed(calls=[("toolu_a", "web_fetch", {"url": "https://sqlite.org/"})]),
                                 self.form.streamed("No."))
        self.node(self.serve(upstream, **SEARCH), "fetch")

    def test_a_container_is_named_in_the_next_request(self):
        self.check_kept_container()

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        self.check_one_run(409, 529)  # the others on chat: it is one piece of code

    def test_a_client_that_leaves_ends_the_run(self):
        self.check_end_by_leaving()


class OfficialMessagesBefore(Searching):
    """Where the two generations differ: how they read streams, and their key."""
    anthropic = "anthropic-sdk-0"

    def test_a_whole_answer_and_streams(self):
        gateway = self.serve()
        for part in ("whole", "beta", "stream", "accumulate", "unknown_model"):
            self.node(gateway, part)

    def test_a_mixed_stream_and_its_continuation(self):
        streamed = self.form.streamed
        self.node(self.serve(self.upstream(streamed(calls=self.mixed), streamed("Stock 5 and 42."))), "mixed_stream")

    def test_a_search_and_what_it_cites(self):
        self.search("search_stream", self.form.streamed)


if __name__ == "__main__":
    main()
