"""What holds on every surface and is no answer of a model: sessions, clients that leave, comments that keep streams alive, forged
control keys, and bodies that are wrong or large. test_scenarios.py has what a model's turns come to."""
import json
import threading

import strict_messages
import strict_responses
from client import Wire, encode, lines_of, post
from forms import CHAT, FORMS, MESSAGES, RESPONSES, Obedient
from harness import E2E, main
from test_tenants import CONTROL, VALUES, escaped
from upstream import Bytes

A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}
WAYS = [(form, stream) for form in FORMS for stream in (False, True)]


class Surface(E2E):
    def obedient(self, form, **options):
        upstream = self.upstream(forever=Obedient(form))
        return self.serve(upstream, **options), upstream

    def run_code(self, form, gateway, source, stream=False, key=None, **more):
        told = form.ask(gateway, form.body(stream, source, **more), key=key)
        self.assertEqual((told.status, told.error), (200, None), told.reply.body)
        return told.texts[-1]


class Sessions(Surface):
    def c076_b47_b48_b50_b51_a_session_is_the_same_over_surfaces_and_requests(self):  # C076
        """Variables that one surface has left are there on the others; nobody sees the id but us."""
        upstreams = {form.name: self.upstream(forever=Obedient(form)) for form in FORMS}
        gateway = self.serve(upstreams["chat"], upstreams=[
            {"name": form.name, "base_url": upstreams[form.name].url + "/v1", "models": [form.name]} for form in FORMS],
            gateway_options={"upstream_ports": [u.port for u in upstreams.values()]})
        for form, stream in WAYS:
            where = {"metadata": form.metadata("s")} if stream else {"litellm_metadata": {"session_id": "s"}}
            first = "x = 1" if (form, stream) == WAYS[0] else "x = x + 1"
            self.run_code(form, gateway, first, stream, model=form.name, **where)
        self.assertEqual(self.run_code(RESPONSES, gateway, "print(x)", model="responses", metadata={"session_id": "s"}), "6")
        self.assertEqual(len(gateway.journal.of("create")), 1)
        self.assertEqual(gateway.journal.of("destroy"), [])
        for form in FORMS:
            for request in upstreams[form.name].requests:
                self.assertNotIn("session_id", request.body.decode())
                self.assertNotIn("litellm_metadata", request.json)
                kept = {k: v for k, v in form.metadata("s").items() if k != "session_id"}
                self.assertIn(request.json.get("metadata"), (None, kept))
            self.assertTrue(any("metadata" in r.json for r in upstreams[form.name].requests), form.name)

    def c049_b53_two_keys_with_one_session_id_share_nothing(self):  # C049
        for form, stream in WAYS:
            gateway, _ = self.obedient(form, auth=KEYS)
            given = {"metadata": form.metadata("s")}
            other = {"metadata": form.metadata("t")}
            self.assertEqual(self.run_code(form, gateway, "x = 1", stream, A, **given).strip("[]"), "no output")
            self.assertIn("NameError", self.run_code(form, gateway, "print(x)", stream, B, **given))
            self.assertEqual(self.run_code(form, gateway, "print(x)", stream, A, **given), "1")
            self.assertIn("NameError", self.run_code(form, gateway, "print(x)", stream, A))
            self.assertIn("NameError", self.run_code(form, gateway, "print(x)", stream, A, **other))

    def c058_a_lost_container_is_replaced_and_said_so(self):  # C058
        for form, stream in WAYS:
            gateway, _ = self.obedient(form, rules=[{"when": "kill", "fault": "gone_before", "times": 1}])
            given = {"metadata": form.metadata("s")}
            self.run_code(form, gateway, "x = 5", stream, **given)
            told = self.run_code(form, gateway, "print(8) # kill", stream, **given)
            self.assertIn("lost", told)
            self.assertTrue(told.endswith("8"), told)
            self.assertEqual(self.run_code(form, gateway, "print(9)", stream, **given), "9", "said once")
            self.assertEqual(len(gateway.journal.of("create")), 2)

    def c060_a_failed_turn_leaves_the_session_alone(self):  # C060
        for form in FORMS:
            turns = [lambda c, f=form: f.turn(c.request.json, calls=[("a", "x = 7")]),
                     *[form.failure(503, headers=[("Retry-After", "0")])] * 2,
                     lambda c, f=form: f.turn(c.request.json, calls=[("b", "print(x)")]),
                     lambda c, f=form: f.turn(c.request.json, f.results(c.request.json)[-1][1])]
            gateway = self.serve(self.upstream(*turns))
            body = form.body(False, metadata=form.metadata("s"))
            self.assertEqual(form.ask(gateway, body).status, 424)
            self.assertEqual(form.ask(gateway, body).texts, ["7"])


class Leaving(Surface):
    """A client that closes its connection ends what is done for it, and nothing else."""

    def c074_the_upstreams_work_ends(self):  # C074
        closed = threading.Event()

        def silent(connection):
            if connection.wait_closed():
                closed.set()
            return False

        def begun(connection):
            body = form.turn({"stream": True}, "some words").pieces[0]
            connection.begin_stream()
            connection.chunk(body[:len(body) // 2])
            return silent(connection)
        for form, stream in WAYS:
            for turn in (silent, begun) if stream else (silent,):
                closed.clear()
                upstream = self.upstream(turn)
                gateway = self.serve(upstream)
                with Wire(gateway) as wire:
                    wire.post(form.body(stream), form.path)
                    upstream.next_request()
                    if turn is begun:
                        self.assertIn(b"data", wire.stream().readline() + wire.reader.readline() + wire.reader.readline())
                self.assertTrue(closed.wait(60))
                line = gateway.wait_event("request")
                self.assertEqual((line["status"], line["error"]), ("200" if turn is begun else "499", "CANCELLED"))
                self.assertEqual(gateway.journal.lines(), [])

    def c075_b30_a_run_ends_and_its_ephemeral_container_goes(self):  # C075
        for form, stream in WAYS:
            gateway, upstream = self.obedient(form, rules=[{"when": "forever", "delay": "1h"}])
            with Wire(gateway) as wire:
                wire.post(form.body(stream, "forever"), form.path)
                gateway.journal.wait("run")
            gateway.journal.wait("destroy")
            line = gateway.wait_event("request")
            self.assertEqual((line["error"], line["message"]), ("CANCELLED", "The client has gone."))
            self.assertEqual((gateway.journal.live()[-1], len(upstream.requests)), (0, 1))

    def c075_a_sessions_container_is_interrupted_and_stays_usable(self):  # C075
        for form, stream in WAYS:
            gateway, _ = self.obedient(form, rules=[{"when": "forever", "delay": "1h"}])
            given = {"metadata": form.metadata("s")}
            self.run_code(form, gateway, "x = 5", stream, **given)
            with Wire(gateway) as wire:
                wire.post(form.body(stream, "forever", **given), form.path)
                gateway.journal.wait("run", 2)
            gateway.journal.wait("interrupt")
            self.assertEqual(self.run_code(form, gateway, "print(x)", stream, **given), "5")
            self.assertEqual(gateway.journal.of("destroy"), [])

    def c075_a_container_that_is_kept_goes_with_the_run_that_nobody_waits_for(self):  # C075
        """Unless another request has it too: then the run is interrupted, and what is in it stays."""
        for form in (RESPONSES, MESSAGES):
            for is_shared in (False, True):
                gateway, upstream = self.obedient(form, sandbox={"keep": "5m"}, rules=[{"when": "forever", "delay": "1h"}])
                named = form.container(form.ask(gateway, form.body(False, "x = 5")))
                after = form.in_container(form.body(False, "print(x)"), named)
                others = []
                with Wire(gateway) as wire, Wire(gateway) as other:
                    wire.post(form.in_container(form.body(False, "forever"), named), form.path)
                    gateway.journal.wait("run", 2)
                    if is_shared:
                        other.post(after, form.path)
                        gateway.wait_events("turn", 4)  # it has its lease from before its first turn on
                    wire.close()
                    if is_shared:
                        others.append(other.answer())
                if is_shared:
                    self.assertEqual(others[0].status, 200, others[0].body)
                    self.assertEqual((len(gateway.journal.of("interrupt")), gateway.journal.of("destroy")), (1, []))
                    self.assertEqual(form.ask(gateway, after).texts, ["5"])
                else:
                    gateway.journal.wait("destroy")
                    self.assertEqual((form.ask(gateway, after).status, gateway.journal.of("interrupt")), (404, []))
                self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_an_answer_that_nobody_waited_for_is_not_kept(self):
        gateway, _ = self.obedient(RESPONSES, rules=[{"when": "forever", "delay": "1h"}])
        with Wire(gateway) as wire:
            wire.post(RESPONSES.body(True, "forever"), RESPONSES.path)
            begun = b"".join(line for line, _ in zip(lines_of(wire.stream()), range(2)))
            response_id = json.loads(begun.split(b"data: ")[1])["response"]["id"]
            gateway.journal.wait("run")
        gateway.wait_event("request")
        reply = post(gateway, RESPONSES.path, {**RESPONSES.body(False), "previous_response_id": response_id})
        self.assertEqual((reply.status, reply.error["code"]), (400, "previous_response_not_found"))


class KeptAlive(Surface):
    """C011: comments, or pings on Messages; none within an event, none behind the end."""

    EVERY = {"loop": {"keep_alive": "100ms"}}

    def check(self, form, body, runs=True):
        blocks = body.split(b"\n\n")
        self.assertEqual(blocks.pop(), b"", "it ends with an empty line")
        ping = b'event: ping\ndata: {"type": "ping"}'
        alive = ping if form is MESSAGES else b": keep-alive"
        self.assertGreaterEqual(blocks.count(alive), 2, body)
        self.assertNotEqual(blocks[-1], alive)
        rest = [block for block in blocks if block != alive]
        self.assertNotIn(b"keep-alive", b"".join(rest))
        self.assertNotIn(b"ping", b"".join(rest))
        for block in rest:
            lines = block.split(b"\n")
            self.assertEqual(lines[-1][:6], b"data: ")
            self.assertEqual(len(lines), 1 if form is CHAT else 2, block)
            if lines[-1] != b"data: [DONE]":
                json.loads(lines[-1][6:])
        return blocks.index(alive)

    def c011_while_code_runs(self):  # C011
        for form in FORMS:
            gateway, _ = self.obedient(form, rules=[{"when": "slow", "stdout": "done", "delay": "700ms"}], **self.EVERY)
            told = form.ask(gateway, form.body(True, "slow"))
            self.assertEqual(told.texts, ["done"])
            self.assertGreater(self.check(form, told.reply.body), 0, "not before the beginning")

    def c011_while_a_later_turn_is_silent(self):  # C011
        for form in FORMS:
            first = Obedient(form)

            def turn(connection):
                if form.last(connection.request.json)[0]:
                    connection.sock.settimeout(0.7)
                    try:
                        connection.sock.recv(1)  # what the gateway never sends: it waits
                    except TimeoutError:
                        connection.sock.settimeout(None)
                return first(connection)
            gateway = self.serve(self.upstream(forever=turn), **self.EVERY)
            told = form.ask(gateway, form.body(True, "print(3)"))
            self.assertEqual(told.texts, ["3"])
            self.check(form, told.reply.body)

    def c011_plain_answers_get_none(self):  # C011
        for form in FORMS:
            gateway, _ = self.obedient(form, rules=[{"when": "slow", "stdout": "done", "delay": "400ms"}], **self.EVERY)
            told = form.ask(gateway, form.body(False, "slow"))
            self.assertEqual(told.texts, ["done"])
            self.assertTrue(told.reply.body.startswith(b"{"))


class Logged(Surface):
    def c017_each_turn_each_tool_and_the_sum_have_their_line(self):  # C017
        for form, stream in WAYS:
            turns = [lambda c, f=form: f.turn(c.request.json, calls=[("a", "print(1)")], usage=(100, 20)),
                     lambda c, f=form: f.turn(c.request.json, "ok", usage=(180, 50))]
            gateway = self.serve(self.upstream(*turns))
            form.ask(gateway, form.body(stream))
            line = gateway.wait_event("request")
            self.assertEqual((line["path"], line["turns"], line["runs"], line["input_tokens"], line["output_tokens"]),
                             (form.path, "2", "1", "280", "70"))
            tool, = gateway.events("tool")
            self.assertEqual((tool["tool"], tool["status"], tool["request"]), ("code_interpreter", "completed", line["request"]))
            self.assertTrue(tool["ms"].isdigit())
            self.assertEqual([turn["input_tokens"] for turn in gateway.events("turn")], ["100", "180"])


class Forged(Surface):
    """B24, B25, B12: on chat in test_tenants.py, byte for byte; here that the other surfaces cut and heed nothing either."""

    def members(self, write):
        return "".join(f'"{write(key)}":{json.dumps(VALUES[i % len(VALUES)])},' for i, key in enumerate(CONTROL)).encode()

    def outcome(self, form, raw, **options):
        gateway, upstream = self.obedient(form, **options)
        reply = post(gateway, form.path, raw)
        self.assertEqual(reply.status, 200, reply.body)
        gateway.journal.wait("destroy")
        verbs = [line.split()[0] for line in gateway.journal.lines() if line.split()[0] in ("create", "run", "destroy")]
        return [r.body.replace(b"call_", b"") for r in upstream.requests], verbs

    def b12_b24_b25_keys_at_the_top_and_in_metadata_change_nothing(self):
        for form in (RESPONSES, MESSAGES):
            kept = encode(form.body(False, "print(1)", metadata={"user_id": "u"}))
            for loop in ({}, {"loop": {"max_turns": 2}}):
                bodies, verbs = self.outcome(form, kept, **loop)
                self.assertEqual(verbs, ["create", "run", "destroy"])
                for write in (str, escaped):
                    inside = self.members(write)
                    forged = kept.replace(b'"metadata": {', b'"metadata": {' + inside)
                    forged = b"{" + inside + b'"litellm_metadata":{' + inside + b'"x":1},' + forged[1:]
                    given, verbs = self.outcome(form, forged, **loop)
                    self.assertEqual(verbs, ["create", "run", "destroy"])
                    self.assertEqual(len(given), len(bodies))
                    self.assertEqual(given[0], bodies[0], "byte for byte")
                    self.assertEqual(json.loads(given[1])["metadata"], {"user_id": "u"})

    def b24_a_key_given_twice_is_refused(self):
        for form in (RESPONSES, MESSAGES):
            upstream = self.upstream()
            gateway = self.serve(upstream)
            good = encode(form.body(False, "x", metadata={"user_id": "u"}))
            for key in CONTROL:
                for raw in (b"{" + f'"{key}":1,"{escaped(key)}":2,'.encode() + good[1:],
                            good.replace(b'"metadata": {', f'"metadata": {{"{key}":1,"{escaped(key)}":2,'.encode())):
                    reply = post(gateway, form.path, raw)
                    self.assertEqual(reply.status, 400, raw)
                    self.assertIn(f"duplicate key '{key}'", reply.error["message"])
            self.assertEqual(upstream.requests, [])


class Broken(Surface):
    """Turns that break off: nothing of them runs, and the client is told so in the surface's form, with an end."""

    @staticmethod
    def half(form, stream, *calls):
        turn = form.turn({"stream": stream}, "Some words before it.", calls)
        data = turn.pieces[0] if stream else encode(turn)
        kind = b"text/event-stream" if stream else b"application/json"
        cut = data.rindex(b"print") + 3 if calls and not stream else len(data) * 3 // 4
        return Bytes(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(data)) + data[:cut])

    def broken(self, form, stream, *turns):
        gateway = self.serve(self.upstream(*turns, *turns[-1:]))
        told = form.ask(gateway, form.body(stream))
        self.assertTrue(told.error, told.reply.body)
        if form is RESPONSES and stream:
            self.assertEqual(told.final["status"], "failed")
        line = gateway.wait_event("request")
        self.assertIn(line["error"], ("UPSTREAM", "UNAVAILABLE", "TIMEOUT"))
        return gateway, told

    def test_a_first_turn_that_is_cut_runs_nothing(self):
        for form, stream in WAYS:
            call = ("call_1", "code_interpreter", {"code": "print(1)"})
            gateway, told = self.broken(form, stream, self.half(form, stream, call))
            self.assertEqual(gateway.journal.lines(), [])
            self.assertEqual(told.status, 200 if stream else 502)

    def c010_a_later_turn_that_is_cut_or_never_comes_is_told_at_the_end(self):  # C010, C009, B32
        for form, stream in WAYS:
            ran = form.turn({"stream": stream}, "First.", [("call_1", "code_interpreter", {"code": "print(1)"})])
            for turn in (self.half(form, stream), lambda connection: False):
                gateway, told = self.broken(form, stream, ran, turn)
                self.assertEqual(len(gateway.journal.of("run")), 1)
                self.assertEqual(told.status, 200 if stream else 424)
                if form is not MESSAGES:
                    self.assertEqual(told.code, "failed_after_run")
                if not stream:
                    self.assertEqual(told.reply.get("x-should-retry"), "false")


    def test_what_comes_in_one_piece_with_the_failure_is_told_before_it(self):
        """The checkers of streams see to it that nothing is missing: numbers, openings, ends."""
        for form, checker in ((RESPONSES, strict_responses), (MESSAGES, strict_messages)):
            events = form.turn({"stream": True}, "Some words before it.").pieces[0].split(b"\n\n")
            for tail in (b"data: {", b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"boom"}}'):
                go_on = threading.Event()

                def turn(connection, rest=b"\n\n".join([*events[1:5], tail, b""]), go_on=go_on, first=events[0] + b"\n\n"):
                    connection.begin_stream()
                    connection.chunk(first)
                    go_on.wait(60)
                    connection.chunk(rest)
                    connection.end()
                    return True
                gateway = self.serve(self.upstream(turn))
                with Wire(gateway) as wire:
                    wire.post(form.body(True), form.path)
                    response = wire.stream()
                    seen = response.readline()
                    go_on.set()
                    seen += response.read()
                self.assertIn(b"Som", seen)
                final = checker.check(seen)
                self.assertTrue(final.get("error"), seen)


class Scope(Surface):
    def b20_b36_an_upstream_outside_the_scope_gets_the_request_untouched(self):
        """And a call of the name that we would have given is the client's there: B09, B19."""
        for form, stream in WAYS:
            turn = form.turn({"stream": stream}, calls=[("call_1", "code_interpreter", {"code": "print(1)"})])
            upstream = self.upstream(turn)
            gateway = self.serve(upstream, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "upstreams": ["other"]}],
                                 upstreams=[{"name": name, "base_url": upstream.url + "/v1", "models": [model]}
                                            for name, model in (("up", "mock"), ("other", "else"))])
            raw = encode(form.body(stream)).replace(b": ", b" :\t")
            reply = post(gateway, form.path, raw)
            self.assertEqual(upstream.requests[0].body, raw)
            self.assertEqual(reply.body, turn.pieces[0] if stream else encode(turn), "and the answer as it came")
            self.assertEqual(gateway.journal.lines(), [])

    def b09_b19_b22_a_call_of_a_function_that_was_not_offered_is_the_clients(self):
        for form, stream in WAYS:
            given = [("call_1", "code_interpreter", {"code": "print(1)"}), ("call_2", "get_stock", {"part": "A"})]
            for call in given:
                upstream = self.upstream(form.turn({"stream": stream}, calls=[call]))
                gateway = self.serve(upstream)
                body = form.body(stream, functions=True)
                own = {**body, "tools": [json.loads(json.dumps(body["tools"][1]).replace("get_stock", call[1])), body["tools"][0]]}
                told = form.ask(gateway, own)
                self.assertEqual([(name, arguments) for _, name, arguments in told.calls], [call[1:]])
                self.assertEqual((gateway.journal.lines(), len(upstream.requests)), ([], 1))


class Bodies(Surface):
    def test_what_is_no_json_is_refused_by_its_name(self):
        for form in FORMS:
            upstream = self.upstream()
            gateway = self.serve(upstream)
            for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
                            {"Content-Type": "application/json", "Content-Encoding": "gzip"}):
                reply = post(gateway, form.path, form.body(False), headers=headers)
                self.assertEqual((reply.status, reply.error["type"]), (415, "invalid_request_error"), reply.body)
                self.assertEqual("type" in reply.json, form is MESSAGES, "in the surface's form")
            self.assertEqual(upstream.requests, [])

    def refused(self, form, gateway, raw, message, param=None):
        reply = post(gateway, form.path, raw)
        self.assertEqual((reply.status, reply.error["type"]), (400, "invalid_request_error"), (raw[:200], reply.body))
        self.assertIn(message, reply.error["message"])
        if param and form is RESPONSES:
            self.assertEqual(reply.error["param"], param)

    def test_members_of_the_wrong_type_are_named(self):
        rows = {"tools": ["x", 5, {}, True], "metadata": ["x", 5, True, ["session_id"]]}
        for form in (RESPONSES, MESSAGES):
            upstream = self.upstream()
            gateway = self.serve(upstream, interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}])
            for name, values in rows.items():
                for value in values:
                    self.refused(form, gateway, encode({**form.body(False), name: value}), name, name)
            for session in (5, False, {"id": "x"}, "s" * 257, "a\0b", "a\ud800"):
                self.refused(form, gateway, encode({**form.body(False), "metadata": {"session_id": session}}),
                             "metadata.session_id", "metadata.session_id")
            self.assertEqual(upstream.requests, [])

    def test_a_choice_that_is_none_is_the_upstreams_to_refuse(self):
        for form, stream in WAYS:
            upstream = self.upstream(forever=form.failure(400, "no such choice"))
            gateway = self.serve(upstream)
            for choice in (5, [], True, "sometimes", {}, {"type": 5}, {"type": "none at all"}, {"type": ["auto"]}):
                told = form.ask(gateway, {**form.body(stream), "tool_choice": choice})
                self.assertEqual((told.status, told.error), (400, "no such choice"))
                self.assertEqual(upstream.requests[-1].json["tool_choice"], choice)
            self.assertEqual(gateway.journal.lines(), [])

    def test_elements_of_the_wrong_kind_harm_nobody(self):
        """They go up, or are refused; the gateway and what it made are looked at when the test ends."""
        odd = [5, None, True, "x", [], ["x"], {}, {"type": 5}, {"role": 5}, {"role": "assistant", "content": 5},
               {"role": "user", "content": [5, None, {"type": []}, {"type": "tool_result"}, {"type": "tool_result", "content": 7}]},
               {"role": "assistant", "content": [{"type": "server_tool_use", "id": "srvtoolu_sg1", "name": 5, "input": 5},
                                                 {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_sg1"},
                                                 {"type": "code_execution_tool_result", "tool_use_id": 7, "content": "x"}]},
               {"type": "code_interpreter_call", "id": "ci_sg1"}, {"type": "code_interpreter_call", "id": "ci_sg" + "x" * 5000},
               {"type": "code_interpreter_call", "id": "ci_sg1", "code": 5, "container_id": {}, "outputs": [5, {"type": "logs"}]},
               {"type": "code_interpreter_call", "id": "ci_sg\0", "code": "\0\x1b[2J", "container_id": "\0", "outputs": "x"},
               {"type": "item_reference"}, {"type": "item_reference", "id": 5}, {"type": "reasoning", "summary": 5},
               {"type": "function_call_output", "call_id": None, "output": [5]}, {"role": "assistant", "tool_calls": [5]},
               {"role": "tool", "tool_call_id": "call_sg" + "0" * 32},
               {"role": "assistant", "executed_tools": [5, {"id": "ci_sg1"}]}]
        for form, stream in WAYS:
            upstream = self.upstream(forever=lambda c, f=form: f.turn(c.request.json, "ok"))
            gateway = self.serve(upstream)
            key = "input" if form is RESPONSES else "messages"
            for one in odd:
                body = form.body(stream)
                reply = post(gateway, form.path, {**body, key: [*body[key], one, *body[key]]})
                self.assertIn(reply.status, (200, 400, 404), (one, reply.body))
            self.assertEqual(gateway.journal.of("run"), [])

    def test_members_given_twice_are_named(self):
        for form in (RESPONSES, MESSAGES):
            upstream = self.upstream()
            gateway = self.serve(upstream)
            good = encode(form.body(False))
            twice = {b'"model":"m","mod\\u0065l":"x"': "model",
                     b'"metadata":{"session_id":"a","s\\u0065ssion_id":"b"}': "session_id",
                     b'"tool_choice":{"type":"auto","type":"any"}': "type", b'"metadata":{},"metadata":{}': "metadata",
                     b'"stream":false,"stream":true': "stream", b'"container":"a","container":"b"': "container"}
            for members, name in twice.items():
                cut = good.replace(b'"model": "mock", ', b"").replace(b'"stream": false', b'"z": 1')
                model = b"" if b"mod" in members else b'"model":"mock",'
                self.refused(form, gateway, b"{" + model + members + b"," + cut[1:],
                             f"duplicate key '{name}'")
            tool = good.replace(b'"tools": [{', b'"tools": [{"ty\\u0070e":"function",')
            self.refused(form, gateway, tool, "duplicate key 'type' in tools[0]", "tools[0]")
            self.assertEqual(upstream.requests, [])

    def test_ten_thousand_items_go_up_as_they_came(self):
        for form, stream in WAYS:
            gateway, upstream = self.obedient(form)
            history = [{"role": ("user", "assistant")[i % 2], "content": f"{i} ünï \"\\ 1.0"} for i in range(10_000)]
            body = form.body(stream)
            key = "input" if form is RESPONSES else "messages"
            raw = encode({**body, key: [*history, {"role": "user", "content": "print(5)"}]})
            told_reply = post(gateway, form.path, raw)
            self.assertEqual(told_reply.status, 200, told_reply.body[:300])
            sent = json.dumps(history).encode()[1:-1]
            self.assertEqual([sent in request.body for request in upstream.requests], [True, True])
            checker = {"responses": strict_responses, "messages": strict_messages}.get(form.name)
            if checker and stream:
                checker.check(told_reply.body)


if __name__ == "__main__":
    main()
