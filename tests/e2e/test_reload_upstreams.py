"""Upstreams read again on SIGHUP: new ones serve, those that are gone do not, running requests keep theirs, and what of a plugin
has changed is told as needing a restart."""
import re
import signal
import threading

from client import chat, get
from harness import E2E, main, to_yaml
from upstream import Status, answer

BOX = [{"name": "box", "plugin": "mock"}]
CODE = [{"plugin": "code_interpreter", "sandbox": "box"}]


def entry(name, upstream, *models, **options):
    return {"name": name, "base_url": upstream.url + "/v1", "models": list(models), **options}


class ReloadUpstreams(E2E):
    def configured(self, *upstreams, **sections):
        sections = {"auth": {"mode": "none"}, "upstreams": list(upstreams), "sandboxes": BOX, "interceptors": CODE, **sections}
        return {key: value for key, value in sections.items() if value is not None}

    def begin(self, *upstreams, **sections):
        return self.gateway(self.configured(*upstreams, **sections), upstream_ports=[u.port for u in self.upstreams])

    def reload(self, gateway, *upstreams, event="reloaded", **sections):
        gateway.config_path.write_text(to_yaml(self.configured(*upstreams, **sections)) + "\n")
        count = len(gateway.events(event))
        gateway.signal(signal.SIGHUP)
        return gateway.wait_events(event, count + 1)[count]

    def said(self, gateway, model):
        got = chat(gateway, text="x", tools=(), model=model)
        return got.text if got.status == 200 else got.status

    def place(self, gateway, line):
        lines = gateway.config_path.read_text().splitlines()
        at = next(i for i, one in enumerate(lines) if line in one)
        return f"{gateway.config_path}:{at + 1}:{len(lines[at]) - len(lines[at].lstrip(' -')) + 1}"

    def test_one_that_is_new_serves_and_one_that_is_gone_does_not(self):
        a, b, c = (self.upstream(forever=answer(name)) for name in "abc")
        gateway = self.begin(entry("a", a, "m-a"), entry("b", b, "m-b"))
        self.assertEqual([self.said(gateway, m) for m in ("m-a", "m-b", "m-c")], ["a", "b", 404])
        told = self.reload(gateway, entry("b", b, "m-b", "m-x"), entry("c", c, "m-c"))
        self.assertEqual({k: v for k, v in told.items() if k.startswith("upstreams")},
                         {"upstreams": "2", "upstreams_added": "1", "upstreams_added_names": "c", "upstreams_removed": "1",
                          "upstreams_removed_names": "a", "upstreams_changed": "1", "upstreams_changed_names": "b"})
        self.assertEqual([self.said(gateway, m) for m in ("m-a", "m-b", "m-x", "m-c")], [404, "b", "b", "c"])
        self.assertEqual([m["id"] for m in get(gateway, "/v1/models").json["data"]], ["m-b", "m-x", "m-c"])
        self.assertEqual(gateway.events("needs_restart"), [])

    def test_the_same_upstreams_are_told_as_nothing_new(self):
        a = self.upstream(forever=answer("a"))
        gateway = self.begin(entry("a", a, "m"))
        told = self.reload(gateway, entry("a", a, "m"))
        self.assertEqual([told[f"upstreams{k}"] for k in ("", "_added", "_removed", "_changed")], ["1", "0", "0", "0"])

    def test_another_address_and_another_key_are_used_from_the_next_request_on(self):
        before, after = self.upstream(forever=answer("before")), self.upstream(forever=answer("after"))
        gateway = self.begin(entry("a", before, "m", api_key="sk-before"))
        self.assertEqual(self.said(gateway, "m"), "before")
        self.reload(gateway, entry("a", after, "m", api_key="sk-after"))
        self.assertEqual(self.said(gateway, "m"), "after")
        self.assertEqual([u.requests[-1].get("authorization") for u in (before, after)], ["Bearer sk-before", "Bearer sk-after"])
        self.assertNotIn("sk-", gateway.log())

    def test_whatever_is_wrong_changes_nothing(self):
        a, b = self.upstream(forever=answer("a")), self.upstream(forever=answer("b"))
        good = entry("a", a, "m")
        interceptors = [{"plugin": "code_interpreter", "sandbox": "box", "upstreams": ["a"]}]
        gateway = self.begin(good, interceptors=interceptors)
        cases = [([], "there is no upstream: add one under 'upstreams:'"),
                 ([entry("b", b, "m"), entry("b", b, "n")], "upstreams: 'b' is used twice"),
                 ([{**good, "surfaces": ["chats"]}], "upstream 'a': 'surfaces' may hold chat, responses and messages, not 'chats'"),
                 ([{**good, "plugin": "mock"}], "upstream 'a' needs exactly one of 'base_url' and 'plugin'"),
                 ([{**good, "silence": "1s"}], "upstreams: unknown key 'silence'"),
                 ([{**good, "passthrough": True}], "upstream 'a': 'passthrough' means something in auth mode 'passthrough' only"),
                 ([entry("b", b, "m")], "interceptors: there is no upstream 'a'; there is b")]
        for upstreams, message in cases:
            self.reload(gateway, *upstreams, event="reload_failed", interceptors=interceptors)
            self.assertIn(message, [e["message"][:len(message)] for e in gateway.events("reload_problem")])
            self.assertEqual(self.said(gateway, "m"), "a")
        self.assertEqual(gateway.events("reloaded"), [])
        self.assertEqual(b.requests, [])

    def test_a_running_request_keeps_the_upstream_that_it_began_with(self):
        gate = threading.Event()

        def late(_connection):
            gate.wait(60)
            return Status(503)
        first = self.upstream(late, forever=answer("kept"))
        second = self.upstream(forever=answer("new"))
        gateway = self.begin(entry("a", first, "m", api_key="sk-kept"))
        got = []
        thread = threading.Thread(target=lambda: got.append(chat(gateway, "print(1)", model="m")))
        thread.start()
        first.next_request()
        self.reload(gateway, entry("b", second, "m"))
        self.assertEqual(self.said(gateway, "m"), "new")
        gate.set()
        thread.join(60)
        self.assertEqual(got[0].text, "kept", "the second try went where the first did")
        self.assertEqual([r.get("authorization") for r in first.requests], ["Bearer sk-kept"] * 2)
        self.assertEqual(gateway.wait_event("request", lambda e: e.get("turns") == "1")["upstream"], "a")

    def test_what_was_counted_of_a_name_goes_on_when_it_comes_back(self):
        a, b = self.upstream(forever=answer("a")), self.upstream(forever=answer("b"))
        gateway = self.begin(entry("a", a, "m"))

        def calls():
            text = get(gateway, "/metrics").body.decode()
            return dict(re.findall(r'^sandgate_upstream_calls_total\{upstream="(\w+)"\} (\d+)$', text, re.M))
        self.said(gateway, "m")
        self.reload(gateway, entry("b", b, "m"))
        self.said(gateway, "m")
        self.assertEqual(calls(), {"a": "1", "b": "1"}, "what is gone stays counted")
        self.reload(gateway, entry("b", b, "n"), entry("a", a, "m"))
        self.said(gateway, "m")
        self.assertEqual(calls(), {"a": "2", "b": "1"})

    def test_of_a_plugin_the_models_are_taken_and_its_options_need_a_restart(self):
        plugin = {"name": "fake", "plugin": "mock", "models": ["m"]}
        gateway = self.begin(plugin)
        self.assertEqual(self.said(gateway, "n"), 404)
        self.reload(gateway, {**plugin, "models": ["n"], "journal": self.path("journal")})
        told = gateway.events("needs_restart")
        self.assertEqual([(e["option"], e["place"].rsplit(":", 1)[0]) for e in told],
                         [("upstreams[0].journal", self.place(gateway, "journal:").rsplit(":", 1)[0])])
        self.assertEqual(self.said(gateway, "m"), 404)
        self.assertIsInstance(self.said(gateway, "n"), str)

    def test_a_plugin_that_was_not_there_at_the_start_needs_one_and_is_left_out(self):
        a = self.upstream(forever=answer("a"))
        gateway = self.begin(entry("a", a, "m"))
        new = {"name": "fake", "plugin": "mock", "models": ["n"]}
        told = self.reload(gateway, entry("a", a, "m"), new,
                           interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "upstreams": ["fake"]}])
        self.assertEqual((told["upstreams"], told["upstreams_added"]), ("1", "0"))
        found = {e["option"]: e["place"] for e in gateway.events("needs_restart")}
        self.assertEqual(set(found), {"upstreams[1]", "interceptors[0].upstreams"})
        self.assertEqual(found["upstreams[1]"], self.place(gateway, "name: fake"))
        self.assertEqual([self.said(gateway, m) for m in ("m", "n")], ["a", 404])

    def test_a_plugin_that_goes_and_comes_back_is_the_one_that_was_opened(self):
        a = self.upstream(forever=answer("a"))
        plugin = {"name": "fake", "plugin": "mock", "models": ["n"]}
        gateway = self.begin(entry("a", a, "m"), plugin)
        self.reload(gateway, entry("a", a, "m"))
        self.assertEqual(self.said(gateway, "n"), 404)
        self.reload(gateway, plugin, entry("a", a, "m"))
        self.assertIsInstance(self.said(gateway, "n"), str)
        self.assertEqual(gateway.events("needs_restart"), [])

    def test_an_address_that_becomes_a_plugin_needs_a_restart(self):
        a, b = self.upstream(forever=answer("a")), self.upstream(forever=answer("b"))
        gateway = self.begin(entry("a", a, "m"), entry("b", b, "n"))
        self.reload(gateway, {"name": "a", "plugin": "mock", "models": ["m"]}, entry("b", b, "n"))
        self.assertEqual([e["option"] for e in gateway.events("needs_restart")], ["upstreams[0]"])
        self.assertEqual([self.said(gateway, m) for m in ("m", "n")], [404, "b"])


if __name__ == "__main__":
    main()
