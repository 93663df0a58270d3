"""Models with names of one's own: requests are spread over their entries, go up under the upstream's name and come back under the
client's, and go on to another entry where one fails before anything was said or run."""
import http.client
import signal
import socket
import threading

import messages_upstream
import responses_upstream

from client import Wire, body_of, chat, get, parse_events, post
from harness import PATIENCE, E2E, main, run, to_yaml
from upstream import Bytes, Status, Stream, answer, chunk, code, events, streamed

BOX = [{"name": "box", "plugin": "mock"}]
CODE = [{"plugin": "code_interpreter", "sandbox": "box"}]


def entry(name, upstream, **options):
    return {"name": name, "base_url": upstream.url + "/v1", **options}


def to(upstream, model=None, weight=None):
    return {"upstream": upstream, **({"model": model} if model else {}), **({"weight": weight} if weight else {})}


class Models(E2E):
    def begin(self, upstreams, models, **sections):
        config = {"auth": {"mode": "none"}, "upstreams": upstreams, "models": models, "sandboxes": BOX, "interceptors": CODE,
                  **sections}
        return self.gateway(config, upstream_ports=[u.port for u in self.upstreams])

    def pair(self, a_turns=(), b_turns=(), a_forever=None, b_forever=None, to_=None, fallback=None, a_options=None, b_options=None,
             sections=None, **model):
        """Two upstreams behind the name "fast", the first with b as its fallback unless told otherwise."""
        self.a = self.upstream(*a_turns, forever=a_forever)
        self.b = self.upstream(*b_turns, forever=b_forever or answer("b"))
        models = [{"name": "fast", "to": to_ or [to("a", "model-a")],
                   **({} if to_ and fallback is None else {"fallback": fallback or [to("b", "model-b")]}), **model}]
        return self.begin([entry("a", self.a, **(a_options or {})), entry("b", self.b, **(b_options or {}))], models,
                          **(sections or {}))

    @staticmethod
    def names(upstream):
        return [request.json["model"] for request in upstream.requests]

    # ---- names ----

    def test_the_upstreams_name_goes_up_and_the_clients_comes_back(self):
        gateway = self.pair(a_forever={**answer("hello"), "model": "model-a"})
        got = chat(gateway, text="x", tools=(), model="fast")
        self.assertEqual((got.json["model"], got.text, self.names(self.a)), ("fast", "hello", ["model-a"]))
        line = gateway.wait_event("request")
        self.assertEqual((line["model"], line["upstream"], line["upstream_model"]), ("fast", "a", "model-a"))

    def test_all_else_of_the_body_goes_up_as_it_came(self):
        gateway = self.pair(a_forever=answer("x"))
        body = b'{"messages":[{"role":"user","content":"\\u00e4 model fast"}] , "model" : "f\\u0061st","x_y":1.50}'
        self.assertEqual(post(gateway, "/v1/chat/completions", body).status, 200)
        self.assertEqual(self.a.requests[0].body, body.replace(b'"f\\u0061st"', b'"model-a"'))

    def test_events_of_a_stream_have_the_clients_name(self):
        pieces = events(chunk({"role": "assistant", "content": "a"}, model="model-a"),
                        chunk({"content": "b"}, "stop", model="model-a"))
        gateway = self.pair(a_forever=Stream(b"", [pieces[i:i + 5] for i in range(0, len(pieces), 5)]))
        got = chat(gateway, text="x", tools=(), model="fast", stream=True)
        self.assertEqual([e["model"] for e in got.events if e != "[DONE]"], ["fast", "fast"])
        self.assertEqual(got.body, pieces.replace(b"model-a", b"fast"))

    def test_an_intercepted_request_has_it_in_every_turn(self):
        for stream in (False, True):
            turns = [code("print(1)"), answer("one")] if not stream else \
                [streamed(calls=[("c1", "code_interpreter", {"code": "print(1)"})]), streamed("one")]
            gateway = self.pair(a_turns=turns)
            got = chat(gateway, "print(1)", model="fast", stream=stream)
            said = [e for e in got.events if e != "[DONE]"] if stream else [got.json]
            self.assertEqual({e["model"] for e in said}, {"fast"})
            self.assertEqual(self.names(self.a), ["model-a", "model-a"])

    def test_responses_and_messages_have_it_too_whole_and_streamed(self):
        cases = [("/v1/responses", {"input": "hi"}, responses_upstream),
                 ("/v1/messages", {"max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}, messages_upstream)]
        for path, body, made in cases:
            gateway = self.pair(a_turns=[made.answer("hi"), made.streamed("hi")])
            got = post(gateway, path, {**body, "model": "fast"})
            self.assertEqual((got.status, got.json["model"]), (200, "fast"), got.body)
            got = post(gateway, path, {**body, "model": "fast", "stream": True})
            self.assertEqual(got.status, 200)
            found = [e.get("response", e.get("message", {})).get("model") for e in got.events]
            self.assertEqual({name for name in found if name}, {"fast"})
            self.assertNotIn(b"up-model", got.body)
            self.assertEqual(self.names(self.a), ["model-a", "model-a"])

    def test_a_translated_request_has_it_and_a_kept_answer_keeps_it(self):
        gateway = self.pair(a_forever={**answer("hi"), "model": "model-a"}, a_options={"surfaces": ["chat"]})
        made = post(gateway, "/v1/responses", {"model": "fast", "input": "hi"})
        self.assertEqual((made.status, made.json["model"]), (200, "fast"))
        kept = get(gateway, f"/v1/responses/{made.json['id']}")
        self.assertEqual((kept.status, kept.json["model"]), (200, "fast"))
        self.assertEqual(self.names(self.a), ["model-a"])

    def test_other_paths_and_forms_are_renamed(self):
        gateway = self.pair(a_turns=[{"object": "list", "data": [], "model": "model-a"}, {"text": "words"}])
        got = post(gateway, "/v1/embeddings", {"model": "fast", "input": "x"})
        self.assertEqual((got.json["model"], self.names(self.a)), ("fast", ["model-a"]))
        form = (b'--X\r\nContent-Disposition: form-data; name="file"; filename="fast.wav"\r\n\r\nfast\r\n'
                b'--X\r\nContent-Disposition: form-data; name="model"\r\n\r\nfast\r\n--X--\r\n')
        got = post(gateway, "/v1/audio/transcriptions", form, headers={"Content-Type": "multipart/form-data; boundary=X"})
        self.assertEqual(got.status, 200, got.body)
        self.assertEqual(self.a.requests[1].body, form.replace(b"\r\n\r\nfast\r\n--X--", b"\r\n\r\nmodel-a\r\n--X--"))

    def test_a_refusal_speaks_of_the_clients_name(self):
        error = {"error": {"message": "model-a: no such field. Is model-a-b or 'model-a' meant?", "type": "x", "param": None,
                           "code": None}}
        for options in ({}, {"api_key": "sk-x"}):
            gateway = self.pair(a_turns=[Status(400, error), Status(400, error)], a_options=options)
            for tools in ((), [{"type": "code_interpreter"}]):
                got = chat(gateway, text="x", tools=tools, model="fast")
                self.assertEqual((got.status, got.error["message"]),
                                 (400, "fast: no such field. Is model-a-b or 'fast' meant?"))

    def test_an_error_event_speaks_of_the_clients_name(self):
        """Before anything was said it is an answer of its own, behind that an event."""
        failed = events({"error": {"message": "model-a is overloaded, unlike model-a-b", "type": "server_error"}}, end=False)
        message, is_seen = "fast is overloaded, unlike model-a-b", threading.Event()

        def fails_later(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": "half"}, model="model-a"), end=False))
            self.assertTrue(is_seen.wait(PATIENCE))
            connection.chunk(failed)
            connection.end()
            return True
        gateway = self.pair(a_turns=[Stream(failed), fails_later], to_=[to("a", "model-a")], b_options={"models": ["other"]})
        got = chat(gateway, text="x", model="fast", stream=True)
        self.assertEqual((got.status, got.error["message"]), (502, message))
        seen = b""
        with Wire(gateway) as wire:
            wire.post(body_of(text="x", model="fast", stream=True))
            response = wire.stream()
            while piece := response.read1(65536):
                seen += piece
                if b"half" in seen:
                    is_seen.set()
        self.assertEqual([e["error"]["message"] for e in parse_events(seen) if "error" in e], [message])

    def test_a_server_is_asked_for_answers_that_can_be_read(self):
        """What it has compressed could not be renamed."""
        gateway = self.pair(a_forever={**answer("x"), "model": "model-a"}, b_options={"models": ["plain"]})
        for model in ("fast", "plain"):
            got = chat(gateway, text="x", tools=(), model=model, headers={"Accept-Encoding": "gzip, br"})
            self.assertEqual(got.status, 200)
        accepted = [[value for name, value in r.fields if name.lower() == "accept-encoding"]
                    for r in (*self.a.requests, *self.b.requests)]
        self.assertEqual(accepted, [["identity"], []])

    def test_an_answer_of_nothing_but_a_name_ends_with_the_requests_time(self):
        """The name is left out as it comes, so that nothing is left to give while it goes on."""
        begun = threading.Event()

        def names_itself_for_ever(connection):
            connection.head()
            connection.send(b'{"id":"x","model":"')
            begun.set()
            while True:
                connection.send(b"a" * 1000000)
        gateway = self.pair(a_turns=[names_itself_for_ever], to_=[to("a", "model-a")], b_options={"models": ["other"]})
        with Wire(gateway) as wire:
            wire.post(body_of("x", model="fast", tools=()), fields=["X-Stainless-Timeout: 11"])
            self.assertTrue(begun.wait(PATIENCE))
            got = wire.read_all()
        line = gateway.wait_event("request")
        self.assertEqual((line["error"], line["message"]), ("TIMEOUT", "The request took too long."))
        self.assertNotIn(b"aaa", got)

    def test_a_name_comes_before_what_upstreams_list(self):
        gateway = self.pair(a_forever=answer("a"), b_options={"models": ["fast", "*"]}, to_=[to("a")])
        self.assertEqual([chat(gateway, text="x", tools=(), model=m).text for m in ("fast", "faster")], ["a", "b"])
        self.assertEqual(self.names(self.a), ["fast"], "without a name of its own an entry is asked for the client's")

    def test_a_key_may_use_a_model_by_the_clients_name_alone(self):
        key = {"name": "k", "key": "secret-key-k", "models": ["fast"]}
        gateway = self.pair(a_forever=answer("a"), a_options={"models": ["model-a"]}, sections={"auth": {"keys": [key]}})
        got = [chat(gateway, text="x", tools=(), model=m, key="secret-key-k").status for m in ("fast", "model-a")]
        self.assertEqual(got, [200, 404])

    def test_an_unknown_model_is_told_the_names(self):
        gateway = self.pair(b_options={"models": ["other"]})
        got = chat(gateway, text="x", tools=(), model="slow")
        self.assertEqual((got.status, got.error["message"]),
                         (404, "The model 'slow' is not served here. Models that this key may use: fast, other"))

    def test_the_list_of_models_has_the_names(self):
        key = {"name": "k", "key": "secret-key-k", "models": ["f*"]}
        gateway = self.pair(a_options={"models": ["model-a", "fine"]}, sections={"auth": {"keys": [key]}})
        got = get(gateway, "/v1/models", key="secret-key-k")
        self.assertEqual([m["id"] for m in got.json["data"]], ["fast", "fine"])
        self.assertEqual([get(gateway, f"/v1/models/{m}", key="secret-key-k").status for m in ("fast", "model-a")], [200, 404])

    # ---- choice ----

    def test_requests_are_spread_by_weight(self):
        gateway = self.pair(a_forever=answer("a"), to_=[to("a", weight=3), to("b", weight=1)])
        got = "".join(chat(gateway, text="x", tools=(), model="fast").text for _ in range(16))
        self.assertEqual((got.count("a"), got.count("b"), got[:4] * 4), (12, 4, got))

    def test_a_session_and_a_prompt_cache_key_stay_with_one_entry(self):
        gateway = self.pair(a_forever=answer("a"), to_=[to("a"), to("b")])

        def said(**more):
            return chat(gateway, text="x", tools=(), model="fast", **more).text
        for more in ({"session": "s1"}, {"prompt_cache_key": "p1"}):
            self.assertEqual(len({said(**more) for _ in range(6)}), 1)
        self.assertEqual({said(session=f"s{i}") for i in range(40)}, {"a", "b"})
        self.assertEqual({said() for _ in range(2)}, {"a", "b"})

    def test_without_sticky_a_session_is_spread_too(self):
        gateway = self.pair(a_forever=answer("a"), to_=[to("a"), to("b")], sticky=False)
        self.assertEqual({chat(gateway, text="x", tools=(), model="fast", session="s").text for _ in range(2)}, {"a", "b"})

    def test_an_entry_that_cannot_be_asked_is_left_out(self):
        gateway = self.pair(to_=[to("a"), to("b")], a_options={"surfaces": ["responses"]}, b_options={"surfaces": ["chat"]})
        self.assertEqual([chat(gateway, text="x", tools=(), model="fast").status for _ in range(4)], [200] * 4)
        self.assertEqual((len(self.a.requests), len(self.b.requests)), (0, 4))

    # ---- fallback ----

    def test_each_failure_of_an_upstream_leads_to_the_next_entry(self):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            port = nobody.getsockname()[1]
        for turn in (Status(500), Status(503), Status(529), Status(429, headers=[("Retry-After", "600")]), Status(408),
                     Bytes(b""), Bytes(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n"), None):
            for tools in ((), [{"type": "code_interpreter"}]):
                gateway = self.pair(a_turns=[turn] if turn else [])
                if turn is None:
                    gateway.config_path.write_text(gateway.config_path.read_text().replace(f":{self.a.port}/", f":{port}/"))
                    gateway.signal(signal.SIGHUP)
                    gateway.wait_event("reloaded")
                got = chat(gateway, text="x", tools=tools, model="fast")
                self.assertEqual((got.status, got.text), (200, "b"), f"{turn and vars(turn)} {tools}")
                self.assertEqual((len(self.a.requests), self.names(self.b)), (1 if turn else 0, ["model-b"]))
                told = gateway.wait_event("upstream_fallback")
                self.assertEqual([told[k] for k in ("model", "upstream", "to", "to_model")], ["fast", "a", "b", "model-b"])
                self.assertEqual(gateway.wait_event("request")["upstream"], "b")
                self.assertEqual(gateway.events("upstream_retry"), [])
                metrics = get(gateway, "/metrics").body.decode()
                self.assertIn('sandgate_upstream_fallbacks_total{upstream="a"} 1', metrics)
                self.assertIn('sandgate_upstream_fallbacks_total{upstream="b"} 0', metrics)

    def test_an_upstream_that_does_not_begin_in_time_is_left(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        gateway = self.pair(a_turns=[lambda _c: gate.wait(60) and False], a_options={"first_byte_timeout": "200ms"})
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "b")
        self.assertEqual(gateway.wait_event("upstream_fallback")["error"], "TIMEOUT")

    def test_a_stream_that_has_not_begun_goes_on_elsewhere(self):
        for tools in ((), [{"type": "code_interpreter"}]):
            gateway = self.pair(a_turns=[Status(503)], b_turns=[streamed("from b")])
            got = chat(gateway, text="x", tools=tools, model="fast", stream=True)
            self.assertEqual((got.status, got.stream_text), (200, "from b"))

    def test_a_fault_of_the_client_leads_nowhere(self):
        for status in (400, 403, 404, 413, 422):
            for tools in ((), [{"type": "code_interpreter"}]):
                gateway = self.pair(a_turns=[Status(status)])
                self.assertEqual(chat(gateway, text="x", tools=tools, model="fast").status, status)
                self.assertEqual((self.b.requests, gateway.events("upstream_fallback")), ([], []))

    def test_the_operators_key_that_is_refused_leads_to_the_next_entry(self):
        gateway = self.pair(a_turns=[Status(401)], a_options={"api_key": "sk-old"})
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "b")
        self.assertEqual(self.b.requests[0].get("authorization"), None)

    def test_where_all_fail_the_last_ones_answer_is_told(self):
        gateway = self.pair(a_turns=[Status(503, headers=[("Retry-After", "7")])],
                            b_forever=Status(429, {"error": {"message": "slow down", "type": "t", "code": "c", "param": None}},
                                             headers=[("Retry-After", "99")]))
        got = chat(gateway, text="x", tools=(), model="fast")
        self.assertEqual((got.status, got.get("retry-after"), got.error["message"]), (429, "99", "slow down"))
        got = chat(gateway, "print(1)", model="fast")
        self.assertEqual((got.status, got.get("retry-after"), got.error["message"]), (429, "99", "slow down"))

    def test_once_code_has_run_there_is_no_other(self):
        gateway = self.pair(a_turns=[code("print(1)"), Status(400)])
        self.assertEqual(chat(gateway, "print(1)", model="fast").status, 424)
        self.assertEqual(self.b.requests, [])

    def test_once_a_byte_has_gone_there_is_no_other(self):
        cut = events(chunk({"role": "assistant", "content": "half"}), end=False)
        for tools in ((), [{"type": "code_interpreter"}]):
            gateway = self.pair(a_turns=[Stream(cut, chunked=False)] if tools else [Bytes(
                b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"
                % (len(cut), cut))])
            try:
                got = chat(gateway, text="x", tools=tools, model="fast", stream=True)
                self.assertEqual(got.stream_text, "half")
            except OSError:
                pass  # the relayed answer is cut off as the upstream's was
            except Exception as problem:  # http.client's IncompleteRead
                self.assertIn("half", str(getattr(problem, "partial", "half")))
            self.assertEqual(self.b.requests, [])

    def test_another_api_and_other_tools_are_the_new_entrys(self):
        """The first is relayed to as it is, the second speaks chat alone and has the code tool."""
        gateway = self.pair(a_turns=[Status(500)], b_turns=[code("print(1)"), answer("one")], b_options={"surfaces": ["chat"]},
                            sections={"interceptors": [{**CODE[0], "upstreams": ["b"]}]})
        got = post(gateway, "/v1/responses", {"model": "fast", "input": "x", "tools": [{"type": "code_interpreter",
                                                                                       "container": {"type": "auto"}}]})
        self.assertEqual((got.status, got.json["model"]), (200, "fast"), got.body)
        self.assertEqual([item["type"] for item in got.json["output"]], ["code_interpreter_call", "message"])
        self.assertEqual([r.target for r in (*self.a.requests, *self.b.requests)],
                         ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"])

    def test_the_request_is_whole_again_for_the_next(self):
        """Control keys are cut once, the session's container is the same."""
        gateway = self.pair(a_turns=[Status(500), Status(500)], b_turns=[code("x = 1"), answer("ok"), code("print(x)"), answer("ok")])
        for _ in range(2):
            got = chat(gateway, "x", session="s", model="fast", metadata={"session_id": "s", "kept": "yes"})
            self.assertEqual(got.status, 200, got.body)
        self.assertEqual({tuple(r.json.get("metadata", {})) for r in (*self.a.requests, *self.b.requests)}, {("kept",)})
        self.assertEqual(len(get(gateway, "/v1/sessions").json["data"]), 1)

    # ---- circuits ----

    def test_an_upstream_that_fails_again_and_again_is_left_alone_and_tried_later(self):
        gateway = self.pair(a_turns=[Status(500)] * 3, a_forever=answer("a"), to_=[to("a")], fallback=[to("b")],
                            a_options={"circuit_failures": 2, "circuit_time": "300ms"})
        got = [chat(gateway, text="x", tools=(), model="fast").text for _ in range(4)]
        self.assertEqual((got, len(self.a.requests)), (["b"] * 4, 2))
        opened = gateway.wait_event("upstream_circuit_opened")
        self.assertEqual([opened[k] for k in ("upstream", "failures", "open_ms", "status", "level")],
                         ["a", "2", "300", "500", "warn"])
        self.assertEqual(get(gateway, "/health/ready").json["upstreams"], {"a": {"circuit": "open", "failures": 2}})
        self.assertIn('sandgate_upstream_circuit_open{upstream="a"} 1', get(gateway, "/metrics").body.decode())
        self.reload_same(gateway)
        while len(self.a.requests) < 3:  # the trial that fails …
            self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "b")
        while chat(gateway, text="x", tools=(), model="fast").text != "a":  # … and, later, the one that does not
            pass
        self.assertEqual(len(self.a.requests), 4)
        self.assertEqual(gateway.wait_event("upstream_circuit_closed")["upstream"], "a")
        self.assertNotIn("upstreams", get(gateway, "/health/ready").json)
        self.assertIn('sandgate_upstream_circuit_open{upstream="a"} 0', get(gateway, "/metrics").body.decode())
        self.assertEqual(len(gateway.events("upstream_circuit_opened")), 1)

    def test_a_circuit_that_is_switched_off_while_it_is_open_keeps_nobody_away(self):
        options = {"circuit_failures": 1, "circuit_time": "1h", "circuit_time_max": "1h"}
        gateway = self.pair(a_turns=[Status(500)], a_forever=answer("a"), to_=[to("a")], fallback=[to("b")], a_options=options)
        self.assertEqual([chat(gateway, text="x", tools=(), model="fast").text for _ in range(2)], ["b", "b"])
        self.assertEqual(len(self.a.requests), 1)
        gateway.config_path.write_text(gateway.config_path.read_text().replace("circuit_failures: 1", "circuit_failures: 0"))
        gateway.signal(signal.SIGHUP)
        self.assertEqual(gateway.wait_event("reloaded")["upstreams_changed"], "1")
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "a")
        self.assertNotIn("upstreams", get(gateway, "/health/ready").json)

    def reload_same(self, gateway):
        gateway.signal(signal.SIGHUP)
        self.assertEqual(gateway.wait_event("reloaded")["upstreams_changed"], "0")

    def test_a_fault_of_the_client_opens_no_circuit(self):
        gateway = self.pair(a_forever=Status(400), a_options={"circuit_failures": 1})
        self.assertEqual([chat(gateway, text="x", tools=(), model="fast").status for _ in range(3)], [400] * 3)
        self.assertEqual(gateway.events("upstream_circuit_opened"), [])

    def test_an_answer_that_breaks_off_later_opens_no_circuit(self):
        cut = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n"
        gateway = self.pair(a_turns=[Bytes(cut + b'{"id":"x"')], a_options={"circuit_failures": 1})
        try:
            chat(gateway, text="x", tools=(), model="fast")
        except http.client.HTTPException:
            pass  # it is cut off as the upstream's was
        gateway.wait_event("request")
        self.assertEqual((gateway.events("upstream_circuit_opened"), self.b.requests), ([], []))

    def test_a_server_that_nobody_reaches_opens_it_with_its_cause(self):
        gateway = self.pair(a_options={"circuit_failures": 1})
        self.a.close()
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "b")
        opened = gateway.wait_event("upstream_circuit_opened")
        self.assertRegex(opened["cause"], r"(?i)connect|refused")
        self.assertNotIn("status", opened)

    def test_where_all_circuits_are_open_a_request_is_tried_all_the_same(self):
        options = {"circuit_failures": 1, "circuit_time": "1h", "circuit_time_max": "1h"}
        gateway = self.pair(a_turns=[Status(500)], b_turns=[Status(500)] * 2, a_forever=answer("a"), a_options=options,
                            b_options=options)
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").status, 500)
        self.assertEqual(len(gateway.wait_events("upstream_circuit_opened", 2)), 2)
        self.assertEqual(chat(gateway, text="x", tools=(), model="fast").text, "a")
        self.assertEqual(len(gateway.wait_events("upstream_circuit_closed", 1)), 1)

    def test_a_model_without_a_name_of_its_own_is_asked_whatever_the_circuit_says(self):
        gateway = self.pair(a_turns=[Status(500)], a_forever=answer("a"),
                            a_options={"models": ["plain"], "circuit_failures": 1, "circuit_time": "1h",
                                       "circuit_time_max": "1h"})
        self.assertEqual([chat(gateway, text="x", tools=(), model="plain").status for _ in range(2)], [500, 200])
        gateway.wait_event("upstream_circuit_closed")

    # ---- configuration ----

    def test_models_are_read_again(self):
        gateway = self.pair(a_forever=answer("a"))
        config = {"auth": {"mode": "none"}, "upstreams": [entry("a", self.a), entry("b", self.b)], "sandboxes": BOX,
                  "interceptors": CODE, "models": [{"name": "slow", "to": [to("b", "model-x")]},
                                                   {"name": "fast", "to": [to("a", "model-y")]}]}
        gateway.config_path.write_text(to_yaml(config) + "\n")
        gateway.signal(signal.SIGHUP)
        told = gateway.wait_event("reloaded")
        self.assertEqual([told[k] for k in ("models", "models_added_names", "models_changed_names", "models_removed")],
                         ["2", "slow", "fast", "0"])
        self.assertEqual([chat(gateway, text="x", tools=(), model=m).text for m in ("slow", "fast")], ["b", "a"])
        self.assertEqual((self.names(self.a), self.names(self.b)), (["model-y"], ["model-x"]))
        self.assertEqual(gateway.events("needs_restart"), [])

    def test_what_is_wrong_is_told_with_its_place(self):
        upstreams = [{"name": "a", "base_url": "http://127.0.0.1:1/v1"}, {"name": "lost", "base_url": "http://127.0.0.1:1/v1"}]
        cases = [([{"name": "m", "to": [to("b")]}], "model 'm': there is no upstream 'b'; there is a, lost"),
                 ([{"name": "m", "to": []}], "models: 'to' must not be empty"),
                 ([{"name": "m"}], "models: 'to' is required: a list of maps"),
                 ([{"name": "m*", "to": [to("a")]}], "models: a 'name' is what clients write: 1 to 128 bytes without '*', white space "
                  "around it and control characters, not 'm*'"),
                 ([{"name": "m", "to": [to("a"), to("a", "m")]}], "model 'm': 'm' of upstream 'a' is there twice"),
                 ([{"name": "m", "to": [to("a", str(i)) for i in range(33)]}],
                  "model 'm': 'to' and 'fallback' may have 32 entries together, not 33"),
                 ([{"name": "m", "to": [to("a", weight=101)]}], "models: 'to[0].weight' must be at most 100, not '101'"),
                 ([{"name": "m", "to": [to("a")]}] * 2, "models: 'm' is used twice (first in line "),
                 ([{"name": "m", "to": [to("a", "x\u0001")]}],
                  "model 'm': the 'model' of an entry must be a name without control characters"),
                 ([{"name": "m", "to": [to("a")]}], "upstream 'lost' serves no model: give it 'models', or name it in an entry of the "
                  "section 'models'")]
        for models, message in cases:
            path = self.path("config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(to_yaml({"auth": {"mode": "none"}, "upstreams": upstreams, "models": models}) + "\n")
            status, _, said = run("check", "--config", path)
            self.assertEqual(status, 1)
            self.assertIn(message, said)
            self.assertRegex(said, r"config\.yaml:\d+:\d+: ")

    def test_times_of_a_circuit_must_agree(self):
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml({"auth": {"mode": "none"}, "upstreams": [
                {"name": "a", "base_url": "http://127.0.0.1:1/v1", "models": ["m"], "circuit_time": "10m"}]}) + "\n")
        status, _, said = run("check", "--config", path)
        self.assertEqual(status, 1)
        self.assertIn("upstream 'a': 'circuit_time' is longer than 'circuit_time_max'", said)


if __name__ == "__main__":
    main()
