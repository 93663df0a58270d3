"""Files of a request's container, as a tool asks the gateway for them, and shell commands: what it sees, how each failure
is told, and that a sandbox without files is asked for no container."""
from client import chat
from harness import BUILD, E2E, main

FOLDER = str(BUILD / "tests" / "e2e")
LOST = '{"state":"lost","note":"The sandbox of this session was lost and has been replaced: earlier variables and files are gone."}'


class Files(E2E):
    def serve_probe(self, **sections):
        return self.serve(None, server={"plugin_path": [FOLDER]},
                          interceptors=[{"plugin": "probe_files", "sandbox": "box"}], **sections)

    def told(self, gateway, words, session=None):
        reply = chat(gateway, text=f"Run this Python code: {words}", session=session)
        self.assertEqual(reply.status, 200, reply.body)
        text = reply.text
        self.assertTrue(text.startswith("The result is: "), text)
        return text.removeprefix("The result is: ")

    def test_files_are_those_of_the_container(self):
        gateway = self.serve_probe()
        self.assertEqual(self.told(gateway, "put a.txt some text", "s"), "code 0:;")
        self.assertEqual(self.told(gateway, "get a.txt", "s"), "data:some text;code 0:;")
        self.assertEqual(self.told(gateway, "list .", "s"),
                         'file:{"path": "/home/user/a.txt", "size": 9, "type": "file"};code 0:;')
        self.assertEqual(self.told(gateway, "bash cat a.txt && exit 3", "s"),
                         'out:some text;status:{"state": "exited", "code": 3};code 0:;')
        self.assertEqual(self.told(gateway, "get a.txt", "other"),
                         "code 3:no file '/home/user/a.txt' in the container;")

    def test_a_failure_says_what_the_model_can_use_and_nothing_of_what_is_behind(self):
        gateway = self.serve_probe()
        self.assertEqual(self.told(gateway, "get ../x"), "code 1:'../x' is not a path within the container;")
        self.assertEqual(self.told(gateway, "list nowhere"),
                         "code 3:no folder '/home/user/nowhere' in the container;")
        self.assertEqual(self.told(gateway, "perl 1"), "code 1:The sandbox cannot run this language.;")
        failed = gateway.events("service_failed")
        self.assertEqual([event["operation"] for event in failed], ["run"], "a missing file is no failure of a service")

    def test_a_container_that_cannot_be_made_is_unavailable_whatever_it_says(self):
        gateway = self.serve_probe(sandboxes=[{"name": "box", "plugin": "mock", "create_fault": "refuse"}])
        self.assertEqual(self.told(gateway, "get a"), "code 5:The sandbox could not be made.;")

    def test_a_sandbox_without_files_is_asked_for_no_container(self):
        gateway = self.serve_probe(sandboxes=[{"name": "box", "plugin": "probe_files"}])
        for words in ("get a", "put a b", "list a"):
            self.assertEqual(self.told(gateway, words), "code 5:the sandbox 'box' cannot hold files;")
        self.assertEqual(self.told(gateway, "bash ls"), "code 5:The sandbox could not be made.;")

    def test_a_lost_container_is_announced_before_its_files_are(self):
        gateway = self.serve_probe(sandboxes=[{"name": "box", "plugin": "mock",
                                               "rules": [{"when": "boom", "fault": "die"}]}])
        self.assertEqual(self.told(gateway, "put a b", "s"), "code 0:;")
        self.assertRegex(self.told(gateway, "bash boom", "s"), "^code 10:")
        self.assertEqual(self.told(gateway, "get a", "s"),
                         f"status:{LOST};code 3:no file '/home/user/a' in the container;")
        self.assertEqual(self.told(gateway, "get a", "s"), "code 3:no file '/home/user/a' in the container;")


if __name__ == "__main__":
    main()
