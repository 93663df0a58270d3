"""Sessions with sandboxes of E2B: the real gateway and the plugin e2b against the stub. Who shares a sandbox, how many there
are, that every one is ended at E2B, and that its files are the same ones for Python, shell and editor."""
import json

from e2b import E2B
from harness import in_parallel, main


class Sessions(E2B):
    def test_a_session_keeps_its_variables_and_others_have_their_own(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.assertEqual(self.python(gateway, "x = 5", "a"), "[no output]")
        self.assertEqual(self.python(gateway, "x = 6", "b"), "[no output]")
        self.assertEqual(self.python(gateway, "print(x)\nx + 1", "a"), "5\n6")
        self.assertEqual(self.python(gateway, "x", "b"), "6")
        self.assertRegex(self.python(gateway, "print(x)"), r"\[exception\] NameError: name 'x' is not defined$")
        stub.wait_ended(1)
        self.assertEqual((len(stub.made()), len(stub.sandboxes())), (3, 2))

    def test_what_is_asked_of_e2b(self):
        stub = self.stub()
        gateway = self.serve(stub, {"template": "my-template", "env": {"GREETING": "hi"}, "lifetime": "1h"})
        self.assertEqual(self.python(gateway, 'os.environ["GREETING"]', "a"), "hi")
        body = json.loads(stub.requests("/sandboxes$", "POST")[0]["body"])
        self.assertEqual((body["templateID"], body["secure"], body["envVars"]), ("my-template", True, {"GREETING": "hi"}))
        self.assertEqual((body["allow_internet_access"], body["network"]["allowPublicTraffic"]), (False, False))
        self.assertEqual(len(body["metadata"]), 1, "the label, and no word on whose it is")
        self.assertNotIn("anonymous", json.dumps(body))
        run = stub.requests("/execute")[0]
        self.assertTrue(run["h"]["x-access-token"].startswith("ea_") and run["h"]["e2b-traffic-access-token"].startswith("ta_"))

    def test_what_is_written_in_the_configuration_reaches_e2b(self):
        stub = self.stub()
        gateway = self.serve(stub, {"internet": True, "public_traffic": True, "deny_out": ["10.0.0.0/8"]})
        self.assertEqual(self.python(gateway, "1 + 1"), "2")
        body = json.loads(stub.requests("/sandboxes$", "POST")[0]["body"])
        self.assertEqual((body["allow_internet_access"], body["network"]["denyOut"]), (True, ["10.0.0.0/8"]))
        self.assertNotIn("e2b-traffic-access-token", stub.requests("/execute")[0]["h"])

    def test_the_least_recently_used_sandbox_is_ended_at_the_cap(self):
        stub = self.stub()
        gateway = self.serve(stub, sessions={"per_identity": 2})
        for session in ("a", "b"):
            self.python(gateway, f'name = "{session}"', session)
        self.python(gateway, "name", "a")
        self.python(gateway, "1", "c")
        stub.wait_ended(1)
        self.assertEqual(stub.ended("delete"), [stub.made()[1]])
        self.assertEqual(self.python(gateway, "name", "a"), "a")
        self.assertEqual(len(stub.sandboxes()), 2)

    def test_an_idle_sandbox_is_ended(self):
        stub = self.stub()
        gateway = self.serve(stub, sessions={"idle_timeout": "1s"})
        self.python(gateway, "x = 1", "a")
        stub.wait_ended(1)
        self.assertEqual(stub.ended("delete"), stub.made())
        self.assertRegex(self.python(gateway, "x", "a"), "NameError")

    def test_all_are_ended_when_the_gateway_stops(self):
        stub = self.stub()
        gateway = self.serve(stub)
        in_parallel(4, lambda i: self.python(gateway, f"x = {i}", f"s{i}"))
        self.assertEqual(len(stub.sandboxes()), 4)
        gateway.stop()
        self.assertEqual(stub.sandboxes(), [])
        self.assertEqual(sorted(stub.ended("delete")), sorted(stub.made()))

    def test_python_shell_and_editor_have_the_same_files(self):
        for template in ("code-interpreter-v1", "envd-0.5.6", "envd-0.3.9"):
            with self.subTest(template):
                stub = self.stub()
                self.check_files(self.serve(stub, {"template": template}))

    def check_files(self, gateway):
        def messages(words):
            return self.tell_messages(gateway, words, "s")
        self.assertEqual(messages('bash echo one > a.txt && cat a.txt; exit 3'), "one\n[exit status 3]")
        self.assertEqual(messages('edit {"command": "view", "path": "a.txt"}').split(), ["1", "one"])
        changed = messages('edit {"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "two"}')
        self.assertTrue(changed.startswith("[changed: a.txt]"), changed)
        self.assertEqual(messages("bash cat a.txt"), "two")
        created = messages('edit {"command": "create", "path": "new/b.txt", "file_text": "é"}')
        self.assertTrue(created.startswith("[created: new/b.txt"), created)
        self.assertEqual(messages("bash cat new/b.txt"), "é")
        self.assertIn("b.txt", messages('edit {"command": "view", "path": "new"}'))
        self.assertRegex(messages('edit {"command": "view", "path": "none.txt"}'), r"^\[not found\] ")
        self.assertRegex(messages("bash sleeping"), r"command not found\n\[exit status 127\]$")

    def test_results_of_every_kind_reach_the_model(self):
        stub = self.stub()
        gateway = self.serve(stub)
        self.assertEqual(self.python(gateway, "!rich", "s").split("\n"),
                         ["<Figure>", "[image/png, not shown]", "   a", "0  1"])
        for code, words in (("!crlf", "crlf"), ("!blank", "behind a blank line"), ("!unknown", "behind an unknown event"),
                            ("!split", "piece by piece é 😀"), ("!nan", "x")):
            self.assertEqual(self.python(gateway, code, "s"), words)


if __name__ == "__main__":
    main()
