"""Plugins that misbehave (plugins/rogue.c): each time the client gets an answer that it can use, the log says what happened
and whose doing it was, others are served, and nothing is left."""
import pathlib

from client import Wire, body_of, chat, request
from harness import BUILD, E2E, in_parallel, main, poll
from test_operations import metrics
from upstream import answer, code

FOLDER = str(BUILD / "tests" / "e2e")


class Rogue(E2E):
    def rogue(self, upstream, chain=None, server=None, run_timeout="60s", opens="good", handle="good",
              **sections):
        self.gate = pathlib.Path(self.path("gate"))
        self.rogue_journal = pathlib.Path(self.path("rogue.journal"))
        self.addCleanup(self.gate.touch)  # a failed test lets go of what blocks, too
        own = {"plugin": "rogue", "gate": str(self.gate), "journal": str(self.rogue_journal), "open": opens}
        hook = {**own, "sandbox": "cell", "search": "finder"}
        chain = [hook if one == "rogue" else one for one in chain or ["rogue"]]
        return self.serve(upstream, server={"plugin_path": [FOLDER], **(server or {})}, interceptors=chain,
                          sandboxes=[{**own, "name": "cell", "run_timeout": run_timeout, "handle": handle}],
                          searches=[{**own, "name": "finder"}], **sections)

    def lines(self, what=""):
        text = self.rogue_journal.read_text() if self.rogue_journal.exists() else ""
        return [line.strip() for line in text.splitlines() if line.startswith(what)]

    def open_gate(self, gateway):
        """What blocked has returned when its plugin is closed; here already, since a left thread is waited for then."""
        self.gate.touch()
        poll(lambda: metrics(gateway)["sandgate_worker_tasks"] == 0, "the lost threads to come back")

    def told(self, upstream):
        return [m["content"] for m in upstream.requests[1].json["messages"] if m["role"] == "tool"][0]

    def check_nothing_held(self, gateway):
        poll(lambda: metrics(gateway)["sandgate_memory_held_bytes"] == 0, "no bytes to be held")
        poll(lambda: metrics(gateway)["sandgate_worker_tasks"] == 0, "no thread to be busy")

    def check_gone(self, gateway):
        poll(lambda: len(self.lines("destroy")) == len(self.lines("create")) > 0, "every container to be deleted")
        self.check_nothing_held(gateway)


class Hooks(Rogue):
    def test_a_hook_that_blocks_beyond_its_deadline_is_abandoned(self):
        gateway = self.rogue(self.upstream(answer("fine")), server={"request_timeout": "1s"})
        reply = chat(gateway, text="ROGUE:block", tools=())
        self.assertEqual((reply.status, reply.error["message"]), (504, "The request was given up."))
        line = gateway.wait_event("call_abandoned")
        self.assertEqual((line["level"], line["plugin"], line["instance"], line["operation"]),
                         ("warn", "rogue", "rogue", "request"))
        self.assertIn("'request' was abandoned: it did not return within 2000 ms of being cancelled", line["message"])
        self.assertEqual(line["request"], gateway.wait_event("request")["request"])
        self.assertEqual(metrics(gateway)["sandgate_calls_abandoned_total"], 1)
        self.assertEqual(chat(gateway, text="x", tools=()).text, "fine", "others are served meanwhile")
        poll(lambda: self.lines("done") == ["done"], "the end of the second; the first's is still out")
        self.open_gate(gateway)
        poll(lambda: self.lines("done") == ["done", "done"], "the end of a request() that returned late")
        self.check_nothing_held(gateway)

    def test_codes_that_are_none(self):
        gateway = self.rogue(self.upstream())
        for word, message in (("odd", "'request' returned 4711, which is no code"),
                              ("mute", "'request' returned DENIED and gave no message"),
                              ("claim", "'request' returned CANCELLED, but nobody cancelled it")):
            reply = chat(gateway, text=f"ROGUE:{word}", tools=())
            self.assertEqual(reply.status, 500, word)
            self.assertRegex(reply.error["message"], r"^The gateway failed at this request; its operator finds the cause under req_")
            line = gateway.wait_event("request", lambda e, m=message: m in e.get("message", ""))
            self.assertEqual((line["level"], line["error"]), ("error", "INTERNAL"))
            self.assertEqual(line["message"], "rogue: " + message)
        self.assertEqual(self.lines("done"), [])
        self.check_nothing_held(gateway)

    def test_a_hook_that_floods_is_cut_off(self):
        gateway = self.rogue(self.upstream())
        reply = chat(gateway, text="ROGUE:flood", tools=())
        self.assertEqual((reply.status, reply.error["message"]),
                         (429, "A plugin of this gateway made the request too large."))
        self.assertEqual(gateway.wait_event("request")["cause"], "the hook 'rogue' emitted more than 33554432 bytes")
        self.check_nothing_held(gateway)


class Tools(Rogue):
    def asked(self, what, **options):
        upstream = self.upstream(answer(calls=[("c", "rogue", {"what": what})]), answer("told"))
        return self.rogue(upstream, **options), upstream

    def test_codes_that_are_none(self):
        for word, message in (("odd", "'call' returned 4711, which is no code"),
                              ("mute", "'call' returned DENIED and gave no message"),
                              ("claim", "'call' returned CANCELLED, but nobody cancelled it")):
            gateway, upstream = self.asked(f"ROGUE:{word}")
            self.assertEqual(chat(gateway, text="x", tools=()).text, "told")
            self.assertEqual(self.told(upstream), "[tool unavailable] The tool failed.")
            line = gateway.wait_event("tool_failed")
            self.assertEqual((line["interceptor"], line["error"], line["message"]), ("rogue", "INTERNAL", "rogue: " + message))
            self.check_nothing_held(gateway)

    def test_a_tool_that_floods_is_cut_off(self):
        gateway, upstream = self.asked("ROGUE:flood")
        self.assertEqual(chat(gateway, text="x", tools=()).text, "told")
        self.assertEqual(self.told(upstream), "[tool unavailable] The tool failed.")
        line = gateway.wait_event("tool_failed")
        self.assertEqual((line["error"], line["message"]), ("LIMIT", "rogue: 'call' emitted more than 20971520 bytes"))
        self.check_nothing_held(gateway)

    def test_a_tool_that_blocks_ends_with_its_request(self):
        gateway, _ = self.asked("ROGUE:block", server={"request_timeout": "1s"})
        reply = chat(gateway, text="x", tools=())
        self.assertEqual((reply.status, reply.error["message"]), (504, "The request took too long."),
                         "neither sandbox nor search had begun")
        line = gateway.wait_event("call_abandoned")
        self.assertEqual((line["plugin"], line["operation"]), ("rogue", "call"))
        self.open_gate(gateway)
        self.check_nothing_held(gateway)

    def test_a_client_that_leaves_ends_the_wait_for_a_tool_that_blocks(self):
        gateway, _ = self.asked("ROGUE:block")
        with Wire(gateway) as wire:
            wire.post(body_of(text="x", tools=()))
            poll(lambda: self.lines("call"), "the tool")
        line = gateway.wait_event("call_abandoned")
        self.assertIn("'call' was abandoned: it did not return within 2000 ms of being cancelled", line["message"])
        self.assertEqual(gateway.wait_event("request")["status"], "499")
        self.open_gate(gateway)
        self.check_nothing_held(gateway)

    def test_plugins_that_ask_plugins_never_wait_for_a_thread_that_waits_for_them(self):
        script = [{"turn": 1, "call": "rogue", "arguments": '{"what": "deep"}'}, {"turn": 2, "text": "told"}]
        gateway = self.rogue(None, server={"workers": 2}, upstream_options={"script": script})
        replies = in_parallel(12, lambda i: chat(gateway, text=f"{i}", tools=(), session=f"s{i % 4}"))
        self.assertEqual([(r.status, r.text) for r in replies], [(200, "told")] * 12)
        self.check_nothing_held(gateway)


class Sandboxes(Rogue):
    def coded(self, source, **options):
        upstream = self.upstream(code(source), answer("told"))
        chain = [{"plugin": "code_interpreter", "sandbox": "cell"}]
        return self.rogue(upstream, chain=chain, **options), upstream

    def test_codes_that_are_none(self):
        for word, message in (("odd", "'run' returned 4711, which is no code"),
                              ("mute", "'run' returned DENIED and gave no message"),
                              ("claim", "'run' returned CANCELLED, but nobody cancelled it")):
            gateway, upstream = self.coded(f"ROGUE:{word}")
            self.assertEqual(chat(gateway, "x").text, "told")
            self.assertTrue(self.told(upstream).startswith("[sandbox unavailable]"), self.told(upstream))
            line = gateway.wait_event("service_failed")
            self.assertEqual((line["operation"], line["error"], line["message"]),
                             ("run", "INTERNAL", f"rogue (cell): {message}"))
            self.check_gone(gateway)

    def test_output_without_end_is_cut_off(self):
        gateway, upstream = self.coded("ROGUE:flood")
        self.assertEqual(chat(gateway, "x").text, "told")
        self.assertIn("[output limit]", self.told(upstream))
        self.check_gone(gateway)

    def test_a_run_that_blocks_beyond_its_deadline_costs_its_container(self):
        gateway, upstream = self.coded("ROGUE:block", run_timeout="1s")
        self.assertEqual(chat(gateway, "x").text, "told")
        self.assertTrue(self.told(upstream).startswith("["), self.told(upstream))
        line = gateway.wait_event("call_abandoned")
        self.assertEqual((line["plugin"], line["instance"], line["operation"]), ("rogue", "cell", "run"))
        self.assertEqual(metrics(gateway)["sandgate_calls_abandoned_total"], 1)
        poll(lambda: self.lines("destroy"), "the container to be deleted")
        self.open_gate(gateway)
        self.check_gone(gateway)


class Handles(Rogue):
    """What create() may emit as a handle. The journal of a plugin has a line for each create() and destroy()."""

    def handled(self, handle, turns=1, **options):
        turns = [turn for i in range(turns) for turn in (code("hello", f"c{i}"), answer("told"))]
        upstream = self.upstream(*turns)
        return self.rogue(upstream, chain=[{"plugin": "code_interpreter", "sandbox": "cell"}], handle=handle,
                          **options), upstream

    def results(self, upstream):
        return [m["content"] for r in upstream.requests for m in r.json["messages"] if m["role"] == "tool"]

    def test_a_handle_that_is_none_makes_no_container(self):
        for handle in ("none", "long", "nul"):
            with self.subTest(handle):
                gateway, upstream = self.handled(handle)
                self.assertEqual(chat(gateway, "x").text, "told")
                self.assertEqual(self.results(upstream), ["[sandbox unavailable] The sandbox could not be made."])
                line = gateway.wait_event("container_create_failed")
                self.assertEqual(line["error"],
                                 "sandbox 'cell': create() gave no handle of 1 to 4096 bytes without NUL")
                self.check_nothing_held(gateway)

    def test_a_handle_may_be_long_and_of_any_bytes_and_many_are_one(self):
        for handle in ("longest", "odd", "many"):
            with self.subTest(handle):
                gateway, upstream = self.handled(handle)
                self.assertEqual(chat(gateway, "x", stream=True).stream_text, "told")
                self.assertEqual(self.results(upstream), ["ran"])
                self.check_gone(gateway)
                self.assertEqual(len(self.lines("create")), 1)
                for piece in ("\x1b", "hhhhhhhhhh", "\\x1b"):
                    self.assertNotIn(piece, gateway.log(), "a handle is a secret")

    def test_a_handle_that_another_container_has_is_refused(self):
        gateway, upstream = self.handled("twice", turns=4)
        for session in ("a", "b", "a"):
            self.assertEqual(chat(gateway, "x", session).text, "told")
        self.assertEqual(self.results(upstream), ["ran", "[sandbox unavailable] The sandbox could not be made.", "ran"])
        line = gateway.wait_event("container_create_failed")
        self.assertEqual(line["error"], "sandbox 'cell': create() gave the handle of another container")
        self.assertEqual(self.lines("destroy"), [], "it is the first one's")
        reply = request(gateway, "DELETE", "/v1/sessions/a")
        self.assertEqual(reply.status, 200, reply.body)
        gateway.wait_event("container_deleted")
        self.assertEqual(chat(gateway, "x", "b").text, "told")
        self.assertEqual(self.results(upstream)[-1], "ran", "it is free again")


class Start(Rogue):
    def test_a_plugin_that_fails_in_open_stops_the_start_and_is_named(self):
        for opens, message in (("refuse", "the rogue does not like this configuration"),
                               ("odd", "'open' returned 4711, which is no code"),
                               ("mute", "'open' returned UNAVAILABLE and gave no message"),
                               ("claim", "'open' returned CANCELLED, but nobody cancelled it")):
            gateway = self.rogue(self.upstream(), opens=opens, gateway_options={"serve": False})
            gateway.stopped = True
            self.assertEqual(gateway.wait_end(), 1, opens)
            self.assertIn(message, gateway.log())
            self.assertRegex(gateway.log(), r"rogue( \((cell|finder)\))?: ")
            self.assertEqual(self.lines(), [], "nothing was opened, and so nothing is closed")


if __name__ == "__main__":
    main()
