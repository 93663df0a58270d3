"""The unmodified official client from npm (`openai`) on Responses: items and live events of runs, the client's functions beside
them, stored answers, containers by their ids, errors."""
from harness import main
from official import Official
from responses_upstream import answer, calls_of, code, results_of, streamed
from upstream import Status, always

BOTH = [("call_a", "code_interpreter", {"code": "print(6 * 7)"}), ("call_b", "get_stock", {"part": "A-7"})]


class OfficialResponses(Official):
    program = "responses.mjs"

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_c088_outputs_are_null_unless_they_are_asked_for(self):
        self.node(self.serve(), "without_outputs")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        self.node(self.serve(), "accumulate")

    def check_whole(self, upstream):
        """The second request has the turn as the upstream made it, and both results."""
        self.assertEqual(len(upstream.requests), 2)
        body = upstream.requests[1].json
        self.assertEqual([name for _, name, _ in calls_of(body)], ["code_interpreter", "get_stock"])
        self.assertEqual([text.strip() for _, text in results_of(body)], ["42", "5"])
        self.assertEqual([call_id for call_id, _, _ in calls_of(body)], [call_id for call_id, _ in results_of(body)])
        self.assertIs(body["store"], False)
        self.assertNotIn("previous_response_id", body)

    def test_a_client_function_beside_the_code_interpreter(self):
        upstream = self.upstream(answer(calls=BOTH), answer("Stock 5 and 42."))
        self.node(self.serve(upstream), "mixed")
        self.check_whole(upstream)

    def test_a_mixed_stream_and_its_continuation_by_items(self):
        upstream = self.upstream(streamed(calls=BOTH), streamed("Stock 5 and 42."))
        self.node(self.serve(upstream), "mixed_stream")
        self.check_whole(upstream)

    def test_an_answer_is_kept_and_told_again(self):
        self.node(self.serve(), "stored")

    def test_nothing_is_kept_where_the_client_says_so(self):
        self.node(self.serve(), "not_stored")

    def test_c053_a_container_is_named_in_the_next_request(self):
        gateway = self.serve(sandbox={"keep": "1m"})
        self.node(gateway, "container")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        for part in ("failed_after_run", "failed_after_run_in_a_stream"):
            for status in (409, 503):  # the others on chat: it is one piece of code
                upstream = self.upstream(code("print(1)"), *always(Status(status, headers=[("Retry-After", "0")])))
                gateway = self.serve(upstream)
                self.node(gateway, part)
                tries = 1 if status == 409 else 2  # of the gateway's own
                self.assertEqual(len(upstream.requests), 1 + tries, "the client must not repeat it")
                self.assertEqual(len(gateway.journal.of("run")), 1)

    def test_c075_a_client_that_leaves_ends_the_run(self):
        gateway = self.serve(rules=[{"when": "6 * 7", "fault": "hang"}])
        self.node(gateway, "leave")
        gateway.journal.wait("destroy")


if __name__ == "__main__":
    main()
