"""Plugins other than those that ship: hooks that replace or refuse a request, a model of a plugin's own, and tools that
ask for what they were not given. What they do wrong is the log's business, never the client's."""
import pathlib

from client import Wire, body_of, chat, post
from harness import BUILD, E2E, main, poll
from upstream import answer

FOLDER = str(BUILD / "tests" / "e2e")


def lines_of(journal):
    return journal.read_text().splitlines() if journal.exists() else []


class Hooks(E2E):
    def hooked(self, upstream, interceptors=None, **sections):
        self.hook_journal = pathlib.Path(self.path("hook.journal"))
        chain = interceptors or [{"plugin": "probe", "journal": str(self.hook_journal)},
                                 {"plugin": "code_interpreter", "sandbox": "box"}]
        return self.serve(upstream, server={"plugin_path": [FOLDER]}, interceptors=chain, **sections)

    def journal_lines(self):
        return lines_of(self.hook_journal)

    def test_a_hook_that_says_nothing_changes_nothing_and_hears_of_the_end(self):
        upstream = self.upstream(forever=answer("x"))
        gateway = self.hooked(upstream)
        raw = b'{ "model":"mock" , "messages":[ ], "x":1.0}'
        self.assertEqual(post(gateway, "/v1/chat/completions", raw).status, 200)
        self.assertEqual(upstream.requests[0].body, raw)
        gateway.stop()
        self.assertEqual(self.journal_lines(), ["request", "done"])

    def test_a_hook_replaces_the_request(self):
        upstream = self.upstream(forever=answer("x"))
        gateway = self.hooked(upstream)
        for more in ({"tools": ()}, {}):  # relayed and in the loop
            body = body_of(text="HOOK:redact my secret", **more)
            self.assertEqual(post(gateway, "/v1/chat/completions", body).status, 200)
            self.assertNotIn(b"secret", upstream.requests[-1].body)
            self.assertIn(b"******", upstream.requests[-1].body)

    def test_a_hook_refuses_the_request(self):
        upstream = self.upstream()
        gateway = self.hooked(upstream)
        reply = chat(gateway, text="HOOK:refuse")
        self.assertEqual(reply.status, 403)
        self.assertIn("the probe refuses this", reply.error["message"])
        self.assertEqual(upstream.requests, [])
        gateway.stop()
        self.assertEqual(self.journal_lines(), ["request"], "done() is for those that returned 0")

    def test_hooks_see_only_what_is_in_their_scope(self):
        upstream = self.upstream(forever=answer("x"))
        gateway = self.hooked(upstream, [{"plugin": "probe", "upstreams": ["other"]}], upstreams=[
            {"name": "up", "base_url": upstream.url, "models": ["mock"]},
            {"name": "other", "base_url": upstream.url, "models": ["other"]}])
        self.assertEqual(chat(gateway, text="HOOK:refuse").status, 200)
        self.assertEqual(chat(gateway, text="HOOK:refuse", model="other").status, 403)

    def test_what_a_hook_makes_must_be_a_request(self):
        gateway = self.hooked(self.upstream())
        self.assertEqual(chat(gateway, text="HOOK:garbage").status, 400)
        reply = chat(gateway, text="HOOK:huge")
        self.assertEqual((reply.status, reply.error["message"]),
                         (429, "A plugin of this gateway made the request too large."))

    def test_the_largest_request_passes_through_hooks_and_models_of_plugins(self):
        gateway = self.hooked(self.upstream(forever=answer("x")))
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of(text="a" * (31 << 20))).status, 200)
        plain = self.serve()
        self.assertEqual(post(plain, "/v1/chat/completions", body_of(text="a" * (31 << 20))).status, 200)

    def test_a_client_that_leaves_ends_a_hook_that_hangs(self):
        gateway = self.hooked(self.upstream())
        with Wire(gateway) as wire:
            wire.post(body_of(text="HOOK:hang"))
            poll(self.journal_lines, "the hook")
        line = gateway.wait_event("request")
        self.assertEqual((line["status"], line["message"]), ("499", "The request was given up."))

    def test_a_hook_cannot_run_code(self):
        gateway = self.hooked(self.upstream())
        reply = chat(gateway, text="HOOK:early")
        self.assertEqual(reply.status, 500)
        self.assertRegex(reply.error["message"], r"^The gateway failed at this request; its operator finds the cause under req_")
        self.assertIn("this is possible in a tool's call() only", gateway.wait_event("request")["message"])
        self.assertEqual(gateway.wait_event("request")["level"], "error")


class ModelPlugin(E2E):
    def probed(self):
        self.journal = pathlib.Path(self.path("model.journal"))
        return self.serve(server={"plugin_path": [FOLDER]}, upstreams=[
            {"name": "up", "plugin": "probe", "models": ["mock"], "journal": str(self.journal)}])

    def test_it_answers_with_its_own_head(self):
        gateway = self.probed()
        reply = chat(gateway, "x", tools=())
        self.assertEqual((reply.status, reply.text, reply.get("x-probe")), (200, "probed", "yes"))
        self.assertEqual(chat(gateway, "x").text, "probed")

    def test_what_it_does_wrong_is_hidden_from_the_client(self):
        gateway = self.probed()
        reply = chat(gateway, text="UP:head")
        self.assertEqual(reply.status, 500)
        self.assertIn("the upstream plugin gave a head without meaning", gateway.wait_event("request")["message"])
        reply = chat(gateway, text="UP:fail")
        self.assertEqual((reply.status, reply.error["message"]),
                         (502, "The model server could not be reached or broke off its answer."))
        self.assertIn("the probe's model is away", gateway.wait_event("request", lambda e: e["status"] == "502")["cause"])

    def test_a_client_that_leaves_ends_it(self):
        for tools in ((), ({"type": "code_interpreter"},)):
            gateway = self.probed()
            with Wire(gateway) as wire:
                wire.post(body_of(text="UP:hang", tools=tools))
                poll(lambda: lines_of(self.journal), "the model")
            line = gateway.wait_event("request")
            self.assertEqual((line["status"], line["message"]), ("499", "The request was given up."))


class Tools(E2E):
    def probed(self, what):
        upstream = self.upstream(answer(calls=[("c", "probe", {"what": what})]), answer("told"))
        gateway = self.serve(upstream, server={"plugin_path": [FOLDER]}, interceptors=[{"plugin": "probe_tool"}])
        reply = chat(gateway, "x", tools=())
        self.assertEqual((reply.status, reply.text), (200, "told"), reply.body)
        result = [m["content"] for m in upstream.requests[1].json["messages"] if m["role"] == "tool"][0]
        return gateway, upstream, result

    def test_a_tool_of_no_hosted_kind_is_always_offered(self):
        _, upstream, result = self.probed("nothing")
        self.assertEqual(upstream.requests[0].json["tools"][0]["function"]["name"], "probe")
        self.assertEqual(result, "probed")

    def test_a_tool_that_asks_for_what_it_was_not_given_fails_and_the_model_is_told(self):
        for what, message in (("run", "this interceptor has no sandbox"), ("search", "this interceptor has no search")):
            gateway, _, result = self.probed(what)
            self.assertEqual(result, "[tool unavailable] The tool failed.")
            line = gateway.wait_event("tool_failed")
            self.assertIn(message, line["message"])
            self.assertEqual((line["error"], line["interceptor"]), ("INTERNAL", "probe_tool"))

    def test_a_web_search_tool_needs_a_search(self):
        gateway = self.gateway({"auth": {"mode": "none"}, "server": {"plugin_path": [FOLDER]},
                                "upstreams": [{"name": "mock", "plugin": "mock", "models": ["mock"]}],
                                "interceptors": [{"plugin": "probe_search"}]}, serve=False)
        gateway.stopped = True
        self.assertEqual(gateway.wait_end(), 1)
        self.assertIn("interceptors: 'probe_search' needs 'search: NAME'", gateway.log())


if __name__ == "__main__":
    main()
