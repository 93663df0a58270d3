"""Objects that an upstream keeps under the operator's key and gave to one identity in a relayed answer: that identity may
name them, with that upstream; nobody else can, and nothing that a client had repeated in an answer counts."""
import json
import threading

from client import Wire, post
from harness import E2E, main
from upstream import Status, Stream, events

A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}
PATH = "/v1/responses"


def response(response_id="resp_1", items=("msg_1",), **more):
    output = [{"type": "message", "id": i, "role": "assistant", "status": "completed", "content": []} for i in items]
    return {"id": response_id, "object": "response", "created_at": 1, "status": "completed", "model": "up",
            "output": output, **more}


def plain(body):
    return Status(200, json.dumps(body).encode())


class RelayedIds(E2E):
    def ask(self, gateway, key, **members):
        return post(gateway, PATH, {"model": "mock", "input": "x", **members}, key=key)

    def test_the_identity_that_got_an_id_may_name_it_and_no_other(self):
        upstream = self.upstream(plain(response()), forever=plain(response("resp_2", ("msg_2",))))
        gateway = self.serve(upstream, auth=KEYS)
        self.assertEqual(self.ask(gateway, B, previous_response_id="resp_1").status, 400, "nobody has it yet")
        self.assertEqual(self.ask(gateway, A).status, 200)
        for members in ({"previous_response_id": "resp_1"}, {"input": [{"type": "item_reference", "id": "msg_1"}]},
                        {"input": [{"id": "msg_1"}]}):
            self.assertEqual(self.ask(gateway, A, **members).status, 200, members)
            refused = self.ask(gateway, B, **members)
            self.assertEqual(refused.status, 400, members)
            never = self.ask(gateway, B, **json.loads(json.dumps(members).replace("_1", "_9")))
            self.assertEqual(refused.error, never.error, "another's looks like what never was")
        self.assertEqual(len(upstream.requests), 4)

    def test_ids_of_a_stream_count_as_well(self):
        created = {"type": "response.created", "response": response(items=())}
        added = {"type": "response.output_item.done", "output_index": 0,
                 "item": {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1", "status": "completed"}}
        done = {"type": "response.completed", "response": response(items=("msg_1",))}
        upstream = self.upstream(Stream(events(created, added, done, end=False)), forever=plain(response("resp_2")))
        gateway = self.serve(upstream, auth=KEYS)
        self.assertEqual(self.ask(gateway, A, stream=True).status, 200)
        container = [{"type": "other", "container": "cntr_1"}]
        for members in ({"previous_response_id": "resp_1"}, {"input": [{"type": "item_reference", "id": "ci_1"}]},
                        {"input": [{"type": "item_reference", "id": "msg_1"}]}, {"tools": container}):
            self.assertEqual(self.ask(gateway, A, **members).status, 200, members)
            self.assertEqual(self.ask(gateway, B, **members).status, 400, members)

    def test_ids_of_a_stream_count_before_it_ends(self):
        """A client may come back with the last event while the end of the stream is still on its way."""
        gate = threading.Event()
        self.addCleanup(gate.set)

        def hold(connection):
            connection.begin_stream()
            connection.chunk(events({"type": "response.completed", "response": response()}, end=False))
            gate.wait(60)
            connection.end()
            return True
        upstream = self.upstream(hold, forever=plain(response("resp_2")))
        gateway = self.serve(upstream, auth=KEYS)
        with Wire(gateway) as wire:
            wire.post({"model": "mock", "input": "x", "stream": True}, PATH, (f"Authorization: Bearer {A}",))
            self.assertIn(b"response.completed", wire.stream().readline())
            self.assertEqual(self.ask(gateway, A, previous_response_id="resp_1").status, 200)
            self.assertEqual(self.ask(gateway, B, previous_response_id="resp_1").status, 400)
            gate.set()

    def test_a_stream_longer_than_the_memory_for_requests_is_read_to_its_end(self):
        delta = {"type": "response.output_text.delta", "delta": "x" * 60000}
        done = {"type": "response.completed", "response": response(items=("msg_last",))}
        upstream = self.upstream(Stream(events(*[delta] * 400, done, end=False)), forever=plain(response("resp_2")))
        gateway = self.serve(upstream, auth=KEYS, server={"memory_budget": "64MiB"})
        self.assertEqual(self.ask(gateway, A, stream=True).status, 200)
        self.assertEqual(self.ask(gateway, A, input=[{"type": "item_reference", "id": "msg_last"}]).status, 200)

    def test_what_a_client_has_repeated_in_an_answer_is_not_given_to_it(self):
        echo = response("resp_a", metadata={"id": "resp_b"}, tools=[{"type": "x", "id": "resp_b"}], user='"id":"resp_b"')
        echo["output"][0]["content"] = [{"type": "output_text", "text": '{"id":"resp_b"}', "id": "resp_b", "annotations": []}]
        upstream = self.upstream(forever=plain(echo))
        gateway = self.serve(upstream, auth=KEYS)
        self.assertEqual(self.ask(gateway, A).status, 200)
        self.assertEqual(self.ask(gateway, A, previous_response_id="resp_a").status, 200)
        self.assertEqual(self.ask(gateway, A, previous_response_id="resp_b").status, 400)

    def test_an_answer_that_is_cut_or_refused_gives_nothing(self):
        upstream = self.upstream(Status(404, json.dumps(response()).encode()), plain([response()]),
                                 Status(200, json.dumps(response()).encode()[:-1]), forever=plain(response("resp_2")))
        gateway = self.serve(upstream, auth=KEYS)
        for _ in range(3):
            self.ask(gateway, A)
        self.assertEqual(self.ask(gateway, A, previous_response_id="resp_1").status, 400)


if __name__ == "__main__":
    main()
