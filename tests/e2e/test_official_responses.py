"""The unmodified official client from npm (`openai`) on Responses: items and live events of runs, the client's functions beside
them, stored answers, containers by their ids, errors."""
import responses_upstream
from harness import main
from official import Official, both


class OfficialResponses(Official):
    program, form, mixed = "responses.mjs", responses_upstream, both("call")

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_c088_outputs_are_null_unless_they_are_asked_for(self):
        self.node(self.serve(), "without_outputs")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        self.node(self.serve(), "accumulate")

    def check_whole(self, body, stock):
        super().check_whole(body, stock)
        self.assertIs(body["store"], False)
        self.assertNotIn("previous_response_id", body)

    def test_a_client_function_beside_the_code_interpreter(self):
        self.check_mixed("mixed", self.form.answer)

    def test_a_mixed_stream_and_its_continuation_by_items(self):
        self.check_mixed("mixed_stream", self.form.streamed)

    def test_an_answer_is_kept_and_told_again(self):
        self.node(self.serve(), "stored")

    def test_nothing_is_kept_where_the_client_says_so(self):
        self.node(self.serve(), "not_stored")

    def test_c053_a_container_is_named_in_the_next_request(self):
        self.check_kept_container()

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        self.check_one_run(409, 503)  # the others on chat: it is one piece of code

    def test_c075_a_client_that_leaves_ends_the_run(self):
        self.check_end_by_leaving()


if __name__ == "__main__":
    main()
