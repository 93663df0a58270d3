"""Plugins built with the headers of earlier minors (tests/data/plugin-1.0, -1.1) load and work in this gateway: sandbox, hook
and tool, with all option types; nothing is written beyond the structs as they were then."""
import re
import socket

from client import chat
from harness import BUILD, E2E, main, run, to_yaml
from upstream import answer, code

FOLDER = str(BUILD / "tests" / "e2e" / "plugin-1.0")


class FirstMinor(E2E):
    options = {"greeting": "hi", "mood": "bad", "count": 3, "loud": True, "names": {"a": "b"},
               "rules": [{"word": "secret", "reason": "it is one"}, {"word": "magic"}]}

    def sections(self):
        return {"server": {"plugin_path": [FOLDER]},
                "sandboxes": [{"name": "old", "plugin": "first", "greeting": "hi"}],
                "interceptors": [{"plugin": "first", "sandbox": "old", **self.options},
                                 {"plugin": "code_interpreter", "sandbox": "old"}]}

    def check_closed(self, gateway):
        gateway.stop()
        said = sorted(event["message"] for event in gateway.events("plugin"))
        self.assertEqual(said[:2], ["closed with live=0 hooks=0"] * 2)
        self.assertRegex(said[2], r"^opened with 1, minor \d+$")
        self.assertRegex(said[3], r"^opened with 3, minor \d+$")
        self.assertEqual(gateway.events("plugin_misuse"), [])

    def test_its_sandbox_runs_code_for_todays_interceptor(self):
        upstream = self.upstream(code("x = 1"), code("y"), answer("done"))
        gateway = self.serve(upstream, **self.sections())
        self.assertEqual(chat(gateway, "x", "some-session").text, "done")
        told = [m["content"] for m in upstream.requests[2].json["messages"] if m["role"] == "tool"]
        self.assertEqual([one.strip() for one in told], ["hi from box-1: x = 1 (1)", "hi from box-1: y (1)"])
        self.check_closed(gateway)

    def test_its_hook_refuses_by_a_list_of_rules(self):
        gateway = self.serve(self.upstream(forever=answer("fine")), **self.sections())
        for text, message in (("my secret", "'secret' is not for here: it is one"), ("magic", "'magic' is not for here: no")):
            reply = chat(gateway, text=text)
            self.assertEqual(reply.status, 403)
            self.assertIn(message, reply.error["message"])
        self.assertEqual(chat(gateway, text="x").text, "fine")
        self.check_closed(gateway)

    def test_its_tool_uses_the_core(self):
        upstream = self.upstream(answer(calls=[("c", "first", '{"say":"x"}')]), answer("done"))
        gateway = self.serve(upstream, **self.sections())
        self.assertEqual(chat(gateway, text="x", tools=()).text, "done")
        told = [m["content"] for m in upstream.requests[1].json["messages"] if m["role"] == "tool"]
        self.assertEqual(told, ['hi from box-1: {"say":"x"} (1)\n/a/file'])
        self.check_closed(gateway)

    def test_its_options_are_checked_and_described(self):
        sections = {"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}], **self.sections()}
        sections["interceptors"][0].update(count=10, mood="odd", rules=[{"reason": "x"}])
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml(sections) + "\n")
        code_, _, said = run("check", "--config", path)
        self.assertEqual(code_, 1)
        for message in (r"first: 'count' must be at most 9, not '10'", r"first: 'mood' must be one of good, bad, not 'odd'",
                        r"'rules\[0\]\.word' is required"):
            self.assertRegex(said, message)
        code_, out, _ = run("describe", "first", "--plugin-path", FOLDER)
        self.assertEqual(code_, 0)
        self.assertTrue(re.search(r"1\.0\.0", out), out)


class SecondMinor(E2E):
    def sections(self, **hook):
        return {"server": {"plugin_path": [str(BUILD / "tests" / "e2e" / "plugin-1.1")]},
                "sandboxes": [{"name": "old", "plugin": "first"}],
                "interceptors": [{"plugin": "first", **hook}, {"plugin": "code_interpreter", "sandbox": "old"}]}

    def test_its_exchanges_are_written_at_its_size(self):
        page = self.upstream(answer("x"))
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))  # and does not listen
        nobody = taken.getsockname()[1]
        upstream = self.upstream(code(page.url + "/none"), code(f"http://127.0.0.1:{nobody}/"), answer("done"))
        gateway = self.serve(upstream, gateway_options={"upstream_ports": [upstream.port, page.port]}, **self.sections())
        self.assertEqual(chat(gateway, "x").text, "done")
        told = [m["content"] for m in upstream.requests[2].json["messages"] if m["role"] == "tool"]
        self.assertRegex(told[0], r"^\d\d\d ")
        self.assertIn("[sandbox unavailable]", told[1])
        [failed] = gateway.events("service_failed")
        self.assertIn(f"failed: cannot connect to 127.0.0.1:{nobody}", failed["message"])

    def test_its_hook_knows_who_asks(self):
        gateway = self.serve(self.upstream(forever=answer("fine")), **self.sections(only="somebody"))
        reply = chat(gateway, text="x")
        self.assertEqual((reply.status, "'anonymous' may not ask, only 'somebody' may" in reply.error["message"]), (403, True))
        gateway = self.serve(self.upstream(forever=answer("fine")), **self.sections(only="anonymous"))
        self.assertEqual(chat(gateway, text="x").text, "fine")


if __name__ == "__main__":
    main()
