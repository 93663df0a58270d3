"""Restart without loss with sandboxes of E2B: handles outlive the gateway, so the next one connects to them by E2B's own
means. The stub's journal is the witness of what was asked."""
import json
import os
import pathlib
import signal

from e2b import API_KEY, LOST, E2B
from harness import main, poll

OTHER_KEY = "e2b_" + "f" * 40


class Restart(E2B):
    def _end(self):
        """What is kept at the end of the test would live until its timeout."""
        for gateway in reversed(self.gateways):
            gateway.stop()
        for stub in self.stubs:
            stub.kill()
        super()._end()

    def start(self, stub, sandbox=None, **sessions):
        self.state = os.path.join(self.folder, "sessions.json")
        return self.serve(stub, sandbox, sessions={"on_shutdown": "keep", "state_file": self.state, **sessions})

    def test_a_session_goes_on_in_its_sandbox(self):
        stub = self.stub()
        first = self.start(stub)
        self.python(first, "x = 5", "s")
        first.stop()
        self.assertEqual((len(stub.sandboxes()), stub.ended()), (1, []))
        self.assertNotIn(stub.made()[0], pathlib.Path(self.state).read_text(), "handles stand there in another form")
        self.assertNotIn(API_KEY, pathlib.Path(self.state).read_text())
        second = self.start(stub)
        self.assertEqual(self.python(second, "print(x)", "s"), "5")
        self.assertEqual(len(stub.made()), 1)
        self.assertEqual(len(stub.requests("/sandboxes/[^/]+/connect", "POST")), 1)

    def test_a_sandbox_that_ended_meanwhile_is_told_and_replaced_once(self):
        stub = self.stub()
        first = self.start(stub)
        self.python(first, "x = 5", "s")
        first.stop()
        stub.kill()
        second = self.start(stub)
        self.assertEqual(self.python(second, "print(7)", "s"), LOST + "7")
        self.assertEqual(self.python(second, "print(8)", "s"), "8")
        self.assertEqual(len(stub.made()), 2)

    def test_a_gateway_that_is_killed_leaves_sandboxes_that_end_by_themselves(self):
        stub = self.stub()
        first = self.start(stub, state_every="0s")
        self.python(first, "x = 5", "s")
        first.stopped = True
        first.signal(signal.SIGKILL)
        first.wait_end()
        self.assertFalse(os.path.exists(self.state))
        lives = [json.loads(made["body"])["timeout"] for made in stub.requests("/sandboxes$", "POST")]
        self.assertEqual(lives, [15 * 60 + 60 + 60], "idle time, run and a minute, in seconds")

    def test_a_gateway_that_is_killed_loses_nothing_that_was_written(self):
        stub = self.stub()
        first = self.start(stub, state_every="100ms")
        self.python(first, "x = 5", "s")
        poll(lambda: os.path.exists(self.state), "the state to be written")
        first.stopped = True
        first.signal(signal.SIGKILL)
        first.wait_end()
        second = self.start(stub)
        self.assertEqual(self.python(second, "print(x)", "s"), "5")
        self.assertEqual(len(stub.made()), 1)

    def test_with_another_key_of_e2b_the_sandboxes_are_left_to_their_lives(self):
        stub = self.stub()
        first = self.start(stub)
        self.python(first, "x = 5", "s")
        first.stop()
        second = self.start(stub, {"api_key": OTHER_KEY})
        self.assertRegex(second.wait_event("container_not_taken_up")["reason"], "account")
        self.assertEqual(stub.requests("/sandboxes/", "DELETE"), [])
        self.assertEqual(len(stub.sandboxes()), 1)

    def test_sandboxes_that_were_taken_up_are_ended_when_their_session_is(self):
        stub = self.stub()
        first = self.start(stub)
        self.python(first, "x = 5", "s")
        first.stop()
        self.start(stub, idle_timeout="1s")
        stub.wait_ended(1)
        self.assertEqual(stub.ended("delete"), stub.made())


if __name__ == "__main__":
    main()
