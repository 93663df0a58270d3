"""What E2B may do wrong, at every step: the model is told, the client gets its answer, the next request works, and no sandbox
is left at E2B. The stub is told what to do wrong (e2b_stub/faults.mjs); that it does so as E2B does is checked against E2B's own
client in test_e2b_client.py."""
import base64

from client import Wire, body_of
from e2b import BROKEN, LOST, REFUSED, E2B
from harness import main, poll

CREATE = {"method": "POST", "path": "^/sandboxes$"}
MOST = "you have reached the maximum number of concurrent E2B sandboxes (20)."
RATE = {"code": 429, "message": "Rate limit exceeded"}
FULL = "[sandbox unavailable] All sandboxes are in use, and none became free in time."


class Faults(E2B):
    def after_create(self, fault, told, words):
        """A creation that fails so, what the model is told, and what the log says; the next request works."""
        stub = self.stub()
        gateway = self.serve(stub)
        stub.fault("api", **{**CREATE, "times": 1, **fault})
        self.assertEqual(self.python(gateway, "1", "s"), told)
        self.assertRegex(gateway.wait_event("service_failed")["message"], words)
        if told == FULL:  # it is not asked again at once
            self.assertEqual(self.python(gateway, "2", "s"), FULL)
            self.assertEqual(len(stub.requests("/sandboxes$", "POST")), 1)
            poll(lambda: self.python(gateway, "2", "s") == "2", lambda: "an account that is asked again")
        self.assertEqual(self.python(gateway, "2", "s"), "2")
        return stub, gateway

    def test_a_creation_that_is_refused(self):
        rows = (
            ({"status": 401, "body": {"code": 401, "message": "Invalid API key"}}, REFUSED, r"refuses the API key \(401\); check 'api_key'"),
            ({"status": 403, "body": {"code": 403, "message": "team is blocked"}}, REFUSED, r"does not allow it \(403\)"),
            ({"status": 404, "body": {"code": 404, "message": "template 'x' not found"}}, REFUSED, "404"),
            ({"status": 429, "body": {"code": 429, "message": MOST}}, FULL, r"limit of the account at E2B is reached \(429\)"),
            ({"status": 503, "body": "<h1>down</h1>"}, REFUSED, "503"),
            ({"status": 500}, REFUSED, "500"))
        for fault, told, words in rows:
            with self.subTest(fault["status"]):
                stub, _ = self.after_create(fault, told, words)
                self.assertEqual(len(stub.requests("/sandboxes$", "POST")), 2, "it is not asked again by itself")

    def limited(self, stub, seconds, times=1):
        stub.fault("api", **CREATE, times=times, status=429, headers={"retry-after": str(seconds)}, body=RATE)

    def check_waited(self, stub):
        """Between two creations there was the second that was asked for; clocks may differ by a little."""
        at = [request["ms"] for request in stub.requests("/sandboxes$", "POST")]
        for earlier, later in zip(at, at[1:]):
            self.assertGreaterEqual(later - earlier, 990)

    def test_a_rate_limit_is_kept_to(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.limited(stub, 1)
        self.assertEqual(self.python(gateway, "1", "s"), "1")
        self.assertEqual((len(stub.requests("/sandboxes$", "POST")), len(stub.made())), (2, 1))
        self.check_waited(stub)
        self.assertEqual(gateway.events("service_failed"), [])

    def test_a_rate_limit_is_waited_for_three_times_at_most(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.limited(stub, 1, times=4)
        self.assertEqual(self.python(gateway, "1", "s"), FULL)
        self.assertEqual(gateway.wait_event("service_failed")["message"],
                         "e2b (box): cannot make a sandbox: E2B limits how often it is asked (429); try again in 1 s")
        self.assertEqual(len(stub.requests("/sandboxes$", "POST")), 4)
        self.assertEqual(self.python(gateway, "2", "s"), "2")
        self.assertEqual((len(stub.requests("/sandboxes$", "POST")), len(stub.made())), (5, 1))
        self.check_waited(stub)

    def test_a_rate_limit_of_more_than_there_is_time_is_told_at_once_and_kept_to(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.limited(stub, 600)
        self.assertEqual(self.python(gateway, "1", "s"), FULL)
        self.assertEqual(self.python(gateway, "2", "t"), FULL)
        first, second = (event["message"] for event in gateway.wait_events("service_failed", 2))
        self.assertEqual(first, "e2b (box): cannot make a sandbox: E2B limits how often it is asked (429); try again in 120 s")
        self.assertRegex(second, r"^e2b \(box\): cannot make a sandbox: E2B's API is not asked: E2B limits how often it is \(429\); ")
        self.assertEqual(len(stub.journal("m")), 1, "the others have to wait as well")

    def test_a_creation_whose_answer_was_lost_is_found_again_and_ended(self):
        for how in ("lost", "cut"):
            with self.subTest(how):
                stub = self.stub()
                gateway = self.serve(stub)
                stub.fault("api", **CREATE, do=how)
                self.assertEqual(self.python(gateway, "1", "s"), REFUSED)
                stub.wait_ended(1)
                self.assertEqual(stub.ended("delete"), stub.made())
                self.assertEqual(self.python(gateway, "2", "s"), "2")

    def test_a_creation_whose_answer_was_lost_is_found_on_a_later_page(self):
        stub = self.stub()
        gateway = self.serve(stub)
        others = [{"sandboxID": f"iother{i}", "metadata": {"sandgate": "of-another"}} for i in range(100)]
        second = base64.urlsafe_b64encode(b"2026-01-01T00:00:00Z__0").decode().rstrip("=")
        stub.fault("api", **CREATE, do="lost")
        stub.fault("api", method="GET", path="^/v2/sandboxes$", status=200, headers={"x-next-token": second}, body=others)
        self.assertEqual(self.python(gateway, "1", "s"), REFUSED)
        stub.wait_ended(1)
        first, later = stub.requests("/v2/sandboxes", "GET")
        self.assertNotIn("nextToken", first["url"])
        self.assertEqual(later["url"], f"{first['url']}&nextToken={second}")
        self.assertEqual([line["url"] for line in stub.requests("/", "DELETE")], [f"/sandboxes/{one}" for one in stub.made()])

    def test_a_creation_that_is_reset_before_its_answer_is_not_repeated_by_itself(self):
        stub, _ = self.after_create({"do": "reset"}, REFUSED, r"^e2b \(box\): cannot make a sandbox: E2B's API broke off before it answered: ")
        self.assertEqual((len(stub.requests("/sandboxes$", "POST")), len(stub.made())), (2, 1))

    def test_a_creation_that_never_answers_is_found_again_and_ended(self):
        stub = self.stub()
        gateway = self.serve(stub, {"request_timeout": "1s"})
        stub.fault("api", **CREATE, do="lost_hang")
        self.assertRegex(self.python(gateway, "1", "s"), r"^\[sandbox unavailable\] ")
        stub.wait_ended(1)
        self.assertEqual(stub.ended("delete"), stub.made())

    def test_a_sandbox_that_ended_between_two_runs_is_replaced_and_said_so(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.python(gateway, "x = 5", "s")
        stub.kill()
        self.assertEqual(self.python(gateway, "print(7)", "s"), LOST + "7")
        self.assertEqual(self.python(gateway, "print(8)", "s"), "8")
        self.assertEqual(len(stub.made()), 2)

    def test_a_sandbox_that_ends_in_use_fails_the_run_and_is_replaced(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.assertRegex(self.python(gateway, "!die", "s"), r"^so far\n\[sandbox failed\] ")
        self.assertEqual(self.python(gateway, "print(8)", "s"), LOST + "8")
        self.assertEqual(len(stub.requests("/execute")), 2, "what had begun is not run again")

    def test_a_run_over_its_time_is_ended_and_the_next_finds_the_variables(self):
        stub = self.stub()
        gateway = self.serve(stub, {"run_timeout": "1s"})
        self.python(gateway, "x = 5", "s")
        self.assertRegex(self.python(gateway, "!slow", "s"), r"^\[timed out\] ")
        self.assertEqual(self.python(gateway, "x", "s"), "5")
        self.assertEqual(stub.journal("lost"), [], "nothing was sent in the moment after the end")

    def test_code_that_does_not_end_is_ended_by_a_restart_that_is_announced(self):
        stub = self.stub()
        gateway = self.serve(stub, {"run_timeout": "2s"})
        self.python(gateway, "x = 5", "s")
        self.assertRegex(self.python(gateway, "!stubborn", "s"), r"^working\n\[timed out\] ")
        told = self.python(gateway, "print(7)", "s")
        if "[timed out]" in told:  # the limit of this run came before the patience was over
            told = self.python(gateway, "print(7)", "s")
        self.assertRegex(told, r"^\[[^\n]*(restart|variables)[^\n]*\]\n7$")
        self.assertEqual(stub.journal("restarted"), [{"restarted": "python"}])

    def test_a_client_that_leaves_ends_the_run(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.python(gateway, "x = 5", "s")
        with Wire(gateway) as wire:
            wire.post(body_of(text="python !slow", session="s"))
            stub.wait(lambda line: "!slow" in line.get("body", "") and line["url"] == "/execute")
        stub.wait(lambda line: line.get("closed") == "/execute")
        self.assertEqual(self.python(gateway, "x", "s"), "5")

    def test_a_stream_that_breaks_off_fails_the_run_alone(self):
        for code in ("!reset", "!cut"):
            with self.subTest(code):
                stub = self.stub()
                gateway = self.serve(stub)
                self.python(gateway, "x = 5", "s")
                self.assertEqual(self.python(gateway, code, "s"), "so far\n" + BROKEN)
                self.assertEqual(self.python(gateway, "x", "s"), "5")
                self.assertEqual(len(stub.made()), 1)

    def test_a_reset_before_the_answer_fails_the_run_alone(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.python(gateway, "x = 5", "s")
        stub.fault("interpreter", path="/execute", do="reset")
        self.assertEqual(self.python(gateway, "x = x + 1", "s"), BROKEN)
        self.assertRegex(gateway.wait_event("service_failed")["message"], "the connection to the sandbox was lost")
        self.assertEqual(len(stub.requests("/execute")), 2, "it might have run: it is not sent again")
        self.assertEqual(self.python(gateway, "x", "s"), "5")
        self.assertEqual(len(stub.made()), 1)

    def test_an_answer_that_begins_late_is_waited_for_as_long_as_the_run_may_take(self):
        stub = self.stub()
        gateway = self.serve(stub, {"request_timeout": "1s", "run_timeout": "60s"})
        stub.fault("interpreter", path="/execute", do="slow", ms=1500)
        self.assertEqual(self.python(gateway, "print(7)", "s"), "7")
        self.assertEqual((len(stub.made()), len(stub.requests("/execute"))), (1, 1))
        stub.fault("api", **CREATE, do="slow", ms=300)
        stub.fault("envd", do="slow", ms=300)
        self.assertEqual(self.tell_messages(gateway, "bash echo on", "t"), "on")

    def test_an_answer_that_never_begins_is_waited_for_until_the_limit(self):
        stub = self.stub()
        gateway = self.serve(stub, {"run_timeout": "1s"})
        self.python(gateway, "x = 5", "s")
        self.assertRegex(self.python(gateway, "!hang", "s"), r"^\[timed out\] ")
        self.assertEqual(self.python(gateway, "x", "s"), "5")
        self.assertEqual((len(stub.made()), len(stub.requests("/execute"))), (1, 3))

    def test_output_without_end_is_cut_and_the_next_run_works(self):
        stub = self.stub()
        gateway = self.serve(stub)
        told = self.python(gateway, "!flood", "s")
        self.assertTrue(told.startswith("xxxx"), told[:80])
        self.assertRegex(told, r"\n\[output limit\] [^\n]*$")
        self.assertEqual(self.python(gateway, "1 + 1", "s"), "2")

    def test_a_port_that_is_closed_for_a_moment_is_tried_again(self):
        stub = self.stub()
        gateway = self.serve(stub)
        stub.fault("interpreter", path="/execute", do="port_closed", times=2)
        self.assertEqual(self.python(gateway, "print(7)", "s"), "7")
        self.assertEqual((len(stub.made()), len(stub.requests("/execute"))), (1, 3))

    def test_a_port_that_stays_closed_fails_the_run_alone(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.python(gateway, "x = 5", "s")
        stub.fault("interpreter", path="/execute", do="port_closed", times=4)
        self.assertRegex(self.python(gateway, "print(7)", "s"), r"^\[sandbox unavailable\] ")
        self.assertEqual(len(stub.requests("/execute")), 5, "three times it is tried again")
        self.assertRegex(gateway.wait_event("service_failed")["message"], r"the sandbox runs, but its server does not \(502\)")
        self.assertEqual(self.python(gateway, "x", "s"), "5")
        self.assertEqual(len(stub.made()), 1)

    def test_a_run_that_is_refused_fails_alone(self):
        for code in ("!403", "!429", "!500"):
            with self.subTest(code):
                stub = self.stub()
                gateway = self.serve(stub)
                self.python(gateway, "x = 5", "s")
                self.assertRegex(self.python(gateway, code, "s"), r"^\[sandbox unavailable\] ")
                self.assertEqual(self.python(gateway, "x", "s"), "5")

    def test_an_interpreter_that_ended_is_announced(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.python(gateway, "x = 5", "s")
        self.assertRegex(self.python(gateway, "!restarting", "s"), "variables")
        self.assertRegex(self.python(gateway, "x", "s"), "NameError")
        self.assertEqual(len(stub.made()), 1)

    def test_a_deletion_that_fails_is_tried_again(self):
        stub = self.stub()
        gateway = self.serve(stub)
        stub.fault("api", method="DELETE", status=500, times=2)
        self.assertEqual(self.python(gateway, "1"), "1")
        stub.wait_ended(1)
        self.assertEqual(len(stub.requests("/sandboxes/", "DELETE")), 3)

    def test_shell_commands_that_go_wrong(self):
        stub = self.stub()
        gateway = self.serve(stub, {"run_timeout": "1s"})
        self.assertRegex(self.tell_messages(gateway, "bash sleep 60", "s"), r"^\[timed out\] ")
        self.assertEqual(self.tell_messages(gateway, "bash cut", "s"), "so far\n" + BROKEN)
        self.assertRegex(self.tell_messages(gateway, "bash die", "s"), r"^so far\n\[sandbox failed\] ")
        self.assertEqual(self.tell_messages(gateway, "bash echo on", "s"), LOST + "on")


if __name__ == "__main__":
    main()
