"""Cases of sandboxes far away that were reported of other programs: a stream that breaks off or stays open, a sandbox that is not
there any more long before its time, contexts that pile up. The plugin e2b against the stub, which counts what was run and made."""
from e2b import BROKEN, LOST, E2B
from harness import main
from test_operations import metrics


class Cases(E2B):
    def begin(self, sandbox=None):
        """A stub, and a gateway with a session that has a variable."""
        stub = self.stub()
        gateway = self.serve(stub, sandbox)
        self.assertEqual(self.python(gateway, "x = 5", "s"), "[no output]")
        return stub, gateway

    def check_usable(self, stub, gateway, executions):
        """The session goes on in the same sandbox, which was asked to run code so often."""
        self.assertEqual(len(stub.requests("/execute")), executions, "what has begun is not run again")
        self.assertEqual(self.python(gateway, "x", "s"), "5")
        self.assertEqual((len(stub.made()), [one["runs"] for one in stub.sandboxes()]), (1, [executions + 1]))

    # C095, variant A: cut after an event of stdout, with its last chunk (!cut), without (!break), and by a reset.
    def c095_a_stream_without_its_end_is_a_failure_with_what_came_so_far(self):
        for code in ("!cut", "!break", "!reset"):
            with self.subTest(code):
                stub, gateway = self.begin()
                self.assertEqual(self.python(gateway, code, "s"), "so far\n" + BROKEN)
                self.assertRegex(gateway.wait_event("service_failed")["message"], "the connection to the sandbox was lost")
                self.check_usable(stub, gateway, 2)

    # C095, variant B: the connection stays open, in silence or with keepalives, and the final event never comes.
    def c095_a_final_event_that_never_comes_is_waited_for_until_the_limit(self):
        for code in ("!silent", "!idle"):
            with self.subTest(code):
                stub, gateway = self.begin({"run_timeout": "3s"})
                self.assertRegex(self.python(gateway, code, "s"), r"^so far\n\[timed out\] ")
                stub.wait(lambda line: line.get("closed") == "/execute")
                self.check_usable(stub, gateway, 2)

    # C095, its counterpart: the final event is the end, whatever the connection does.
    def c095_a_connection_that_stays_open_behind_the_final_event_is_not_waited_for(self):
        stub, gateway = self.begin({"run_timeout": "1h"})  # longer than the client has patience for
        self.assertEqual(self.python(gateway, "!kept", "s"), "all")
        self.check_usable(stub, gateway, 2)

    # C096: the sandbox is refused as unknown though its time is not up; `how` says whether at the run or between two.
    def c096_a_sandbox_that_is_gone_before_its_time_is_replaced_once(self):
        for how in ("at the run", "between two runs"):
            with self.subTest(how):
                stub, gateway = self.begin()
                before = metrics(gateway)
                if how == "at the run":
                    stub.fault("interpreter", path="/execute", do="kill")
                else:
                    stub.kill()
                self.assertEqual(self.python(gateway, "print(7)", "s"), LOST + "7")
                self.assertEqual(stub.ended(), stub.ended("kill"), "none had reached the end of its time")
                self.assertEqual((len(stub.made()), [one["runs"] for one in stub.sandboxes()]), (2, [1]))
                now = metrics(gateway)
                grown = {name: now[name] - before[name] for name in before if name.startswith("sandgate_containers_")}
                self.assertEqual((grown["sandgate_containers_replaced_total"], grown["sandgate_containers_created_total"]), (1, 1))
                told = self.python(gateway, "x", "s")
                self.assertRegex(told, r"\[exception\] NameError")
                self.assertNotIn(LOST, told, "it is said once")
                self.assertEqual(metrics(gateway)["sandgate_containers_replaced_total"], now["sandgate_containers_replaced_total"])

    # C098: a context for each run would pile up until the sandbox stops answering.
    def c098_a_hundred_runs_of_a_session_leave_one_context(self):
        stub, gateway = self.begin()
        (first,) = stub.sandboxes()
        self.assertEqual(first["used"], 1)
        for i in range(1, 100):
            self.assertEqual(self.python(gateway, f"x = x + 1\nx - {i}", "s"), "5")
        (last,) = stub.sandboxes()
        self.assertEqual((last["runs"], last["used"], last["contexts"]), (100, 1, first["contexts"]))
        self.assertEqual(stub.requests("/contexts"), [])


if __name__ == "__main__":
    main()
