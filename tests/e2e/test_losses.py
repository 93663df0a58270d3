"""What the model is told where a conversation's container is new and the conversation is not: never where nothing has run before, and
again where it was told with a request that failed, so that it stands in nobody's history."""
from client import TOOL, post
from fronts import NEW
from harness import E2E, main
from upstream import Status, answer, code

PATH = "/v1/chat/completions"
USER, ASSISTANT = {"role": "user", "content": "and now?"}, {"role": "assistant", "content": "{"}


class Losses(E2E):
    def ask(self, gateway, *messages):
        body = {"model": "mock", "messages": list(messages), "tools": [TOOL], "metadata": {"session_id": "s"}}
        return post(gateway, PATH, body)

    def told(self, up):
        """What the model was told of the runs so far, the last request's."""
        return [m["content"].rstrip("\n") for m in up.requests[-1].json["messages"] if m["role"] == "tool"]

    def test_the_beginning_of_the_answer_that_is_asked_for_is_no_past(self):
        up = self.upstream(answer("a topic"), code("print(1)"), answer("ok"))
        gateway = self.serve(up)
        self.assertEqual(self.ask(gateway, USER, ASSISTANT).status, 200)
        self.assertEqual(self.ask(gateway, USER).status, 200)
        self.assertEqual(self.told(up), ["1"])

    def test_an_answer_that_was_answered_is_one(self):
        up = self.upstream(code("print(1)"), answer("ok"), code("print(2)"), answer("ok"))
        gateway = self.serve(up)
        self.assertEqual(self.ask(gateway, USER, ASSISTANT, USER).status, 200)
        self.assertEqual(self.told(up), [NEW + "\n1"])
        self.assertEqual(self.ask(gateway, USER, ASSISTANT, USER).status, 200)
        self.assertEqual(self.told(up), ["2"])

    def test_what_was_told_with_a_request_that_failed_is_told_again(self):
        refused = Status(400, {"error": {"message": "no"}})
        up = self.upstream(code("print(1)"), refused, code("print(2)"), answer("ok"), code("print(3)"), answer("ok"))
        gateway = self.serve(up)
        history = (USER, ASSISTANT, USER)
        self.assertEqual(self.ask(gateway, *history).status, 424)
        self.assertEqual(self.told(up), [NEW + "\n1"])
        self.assertEqual(self.ask(gateway, *history).status, 200)
        self.assertEqual(self.told(up), [NEW + "\n2"])
        self.assertEqual(self.ask(gateway, *history).status, 200)
        self.assertEqual(self.told(up), ["3"])


if __name__ == "__main__":
    main()
