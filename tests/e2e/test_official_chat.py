"""The unmodified official client from npm (`openai`) on chat: whole answers, streams, and the client's own functions beside
the code interpreter."""
import upstream as chat_upstream
from harness import main
from official import Official, both


class OfficialChat(Official):
    program, form, mixed, said = "chat.mjs", chat_upstream, both("call_up"), "Both."

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        upstream = self.upstream(
            self.form.streamed("Let me see.", calls=[("c", "code_interpreter", {"code": "print(6 * 7)"})], usage=(10, 2)),
            self.form.streamed("It is 42.", usage=(20, 3)))
        self.node(self.serve(upstream), "accumulate")

    def check_cited(self, part, *turns, **interceptor):
        pages = [{"hits": ["Weather | https://weather.test/lyon | Sunny."]}]
        self.node(self.serve(self.upstream(*turns), searches=[{"name": "web", "plugin": "mock", "rules": pages}],
                             interceptors=[{"plugin": "web_search", "search": "web", **interceptor}]), part)

    def test_pages_that_an_answer_cites(self):
        calls, text = [("c", "web_search", {"query": "Lyon"})], "🌞 Sunny [1]: https://weather.test/lyon."
        whole, pieces = ((make(calls=calls), make(text)) for make in (self.form.answer, self.form.streamed))
        self.check_cited("cited", *whole)
        self.check_cited("cited_stream", *pieces)
        self.check_cited("cited_ai", *self.by_form(whole, pieces), offer="always")

    def by_form(self, whole, pieces):
        """The turns for two requests at once, each in the form that it asks for."""
        def turn(connection):
            body = connection.request.json
            return (pieces if body.get("stream") else whole)[bool(self.form.results_of(body))]
        return [turn] * 4

    def check_whole(self, body, stock):
        super().check_whole(body, stock)
        self.assertEqual([call_id for call_id, _, _ in chat_upstream.calls_of(body)], ["call_up_a", "call_up_b"])
        self.assertEqual([m["role"] for m in body["messages"][1:]], ["assistant", "tool", "tool"])

    def test_a_client_function_beside_the_code_interpreter(self):
        self.check_mixed("mixed", self.form.answer)

    def test_a_mixed_stream_and_its_continuation(self):
        self.check_mixed("mixed_stream", self.form.streamed)

    def test_functions_that_the_client_runs_by_itself(self):
        self.check_mixed("run_tools", self.form.answer, "5 of A-7")

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        self.check_one_run(408, 409, 429, 500, 503)


if __name__ == "__main__":
    main()
