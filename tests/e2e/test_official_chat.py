"""The unmodified official client from npm (`openai`) on chat: whole answers, streams, and the client's own functions beside
the code interpreter."""
from harness import main
from official import Official
from upstream import Status, always, answer, code, streamed


class OfficialChat(Official):
    program = "chat.mjs"

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        upstream = self.upstream(streamed("Let me see.", calls=[("c", "code_interpreter", {"code": "print(6 * 7)"})],
                                          usage=(10, 2)), streamed("It is 42.", usage=(20, 3)))
        self.node(self.serve(upstream), "accumulate")

    def test_a_client_function_beside_the_code_interpreter(self):
        both = answer("Both.", calls=[("call_up_a", "code_interpreter", {"code": "print(6 * 7)"}),
                                      ("call_up_b", "get_stock", {"part": "A-7"})])
        upstream = self.upstream(both, answer("Stock 5 and 42."))
        gateway = self.serve(upstream)
        self.node(gateway, "mixed")
        self.check_whole(upstream)

    def check_whole(self, upstream, stock="5"):
        """The second request has the turn as the upstream made it, and both results."""
        self.assertEqual(len(upstream.requests), 2)
        messages = upstream.requests[1].json["messages"]
        self.assertEqual([(c["id"], c["function"]["name"]) for c in messages[1]["tool_calls"]],
                         [("call_up_a", "code_interpreter"), ("call_up_b", "get_stock")])
        self.assertEqual([(m["tool_call_id"], m["content"].strip()) for m in messages[2:]],
                         [("call_up_a", "42"), ("call_up_b", stock)])

    def test_a_mixed_stream_and_its_continuation(self):
        both = streamed("Both.", calls=[("call_up_a", "code_interpreter", {"code": "print(6 * 7)"}),
                                        ("call_up_b", "get_stock", {"part": "A-7"})])
        upstream = self.upstream(both, streamed("Stock 5 and 42."))
        self.node(self.serve(upstream), "mixed_stream")
        self.check_whole(upstream)

    def test_functions_that_the_client_runs_by_itself(self):
        both = answer("Both.", calls=[("call_up_a", "code_interpreter", {"code": "print(6 * 7)"}),
                                      ("call_up_b", "get_stock", {"part": "A-7"})])
        upstream = self.upstream(both, answer("Stock 5 and 42."))
        self.node(self.serve(upstream), "run_tools")
        self.check_whole(upstream, "5 of A-7")

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        for part in ("failed_after_run", "failed_after_run_in_a_stream"):
            for status in (408, 409, 429, 500, 503):
                upstream = self.upstream(code("print(1)"), *always(Status(status, headers=[("Retry-After", "0")])))
                gateway = self.serve(upstream)
                self.node(gateway, part)
                tries = 1 if status == 409 else 2  # of the gateway's own
                self.assertEqual(len(upstream.requests), 1 + tries, "the client must not repeat it")
                self.assertEqual(len(gateway.journal.of("run")), 1)


if __name__ == "__main__":
    main()
