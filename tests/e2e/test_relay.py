"""The relay: what no interceptor takes part in goes up as it came and comes back as it was, byte for byte; control keys,
credentials and hop-by-hop fields aside."""
import http.client
import json
import threading

from client import TOOL, Wire, body_of, exchange, get, post, request
from harness import E2E, UpstreamJournal, main
from upstream import Bytes, Status, Stream, answer, chunk, code, events

ODD = (b'{ "model" : "mock",\t"messages":[{"role":"user","content":"\\u00e9\\/\\ud83c\\udf26 \xc3\xa9"}] , "seed":9007199254740993,'
       b'"temperature":1.0,"top_p":1e400,"x":-0.0,"y":1E+2, "deep":[[[{}]]], "n":null,"tools":[ ]\r\n, "vendor":{"b":1,"a":2} }')
CONTROL = ["_code_interpreter_interception", "_code_interpreter_interception_container", "_websearch_interception_x",
           "_compression_interception", "_headroom_interception_y", "_agentic_loop", "_agentic_loop_depth", "_sandgate",
           "_sandgate_anything", "user_api_key", "user_api_key_hash", "max_agentic_loops", "litellm_call_id"]
NEAR = ["agentic_loop", "user_api", "sandgate", "_agentic", "max_agentic_loop", "User_api_key", "litellm_call"]


class Relay(E2E):
    def ask(self, *turns, raw=ODD, path="/v1/chat/completions", headers=None, **sections):
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream, **sections)
        return gateway, upstream, post(gateway, path, raw, headers=headers)

    def test_request_and_answer_are_byte_exact(self):
        body = b'{"id" : 1, "choices":[ ] ,"big":9007199254740993,"f":1.0,"e":1e400,"u":"\\u00e9","x":{"b":1,"a":2}}\n \n'
        _, upstream, reply = self.ask(Status(200, body, [("X-Vendor", "y"), ("OpenAI-Processing-Ms", "5")]))
        self.assertEqual(upstream.requests[0].body, ODD)
        self.assertEqual(reply.body, body)
        self.assertEqual((reply.get("x-vendor"), reply.get("openai-processing-ms")), ("y", "5"))
        self.assertEqual(reply.get("content-length"), str(len(body)))
        self.assertEqual(upstream.requests[0].target, "/v1/chat/completions")

    def test_a_stream_is_byte_exact_and_live(self):
        data = events(b": a comment\r\n\r\n", chunk({"content": "x"}), b"event: odd\ndata: {\"z\":1.0}\n\n", b"data: [DONE]\n\n",
                      b"data: after the end\n\n", end=False)
        _, _, reply = self.ask(Stream(None, [data[i:i + 5] for i in range(0, len(data), 5)]))
        self.assertEqual(reply.body, data)
        self.assertTrue(reply.get("content-type").startswith("text/event-stream"))
        go_on = threading.Event()

        def turn(connection):
            connection.begin_stream()
            connection.chunk(b"data: 1\n\n")
            go_on.wait(60)
            connection.chunk(b"data: 2\n\n")
            connection.end()
            return True
        gateway = self.serve(self.upstream(turn))
        with Wire(gateway) as wire:
            wire.post({"model": "mock", "messages": [], "stream": True})
            response = wire.stream()
            self.assertEqual(response.readline(), b"data: 1\n")
            go_on.set()
            self.assertEqual(response.read(), b"\ndata: 2\n\n")

    def test_the_mock_model_over_http_through_a_second_gateway(self):
        log = UpstreamJournal(self.path("up.journal"))
        behind = self.gateway({"auth": {"mode": "none"}, "upstreams": [
            {"name": "mock", "plugin": "mock", "models": ["mock"], "journal": str(log.path)}]})
        front = self.serve(upstreams=[
            {"name": "second", "base_url": behind.url + "/v1", "models": ["mock"]}],
            gateway_options={"upstream_ports": [behind.port]})
        raw = json.dumps(body_of("print(1)", tools=())).encode()
        reply = post(front, "/v1/chat/completions", raw)
        self.assertEqual(reply.status, 200)
        self.assertEqual([b.encode() for b in log.bodies()], [raw])
        direct = post(behind, "/v1/chat/completions", raw)
        self.assertEqual(direct.json["choices"], reply.json["choices"])
        intercepted = post(front, "/v1/chat/completions", body_of("print(6 * 7)"))
        self.assertIn("42", intercepted.text)
        self.assertEqual(len(log.entries()), 4, "one each, and two turns")

    def b07_other_paths_are_left_alone_even_with_such_a_tool(self):
        for path in ("/v1/embeddings", "/embeddings", "/v1/completions", "/v1/moderations", "/v1/rerank",
                     "/v1/audio/speech", "/v1/images/generations", "/v1/responses/input_tokens"):
            raw = json.dumps({"model": "mock", "input": "x", "tools": [TOOL]}).encode()
            gateway, upstream, reply = self.ask(Status(200, b'{"ok":1}'), raw=raw, path=path)
            self.assertEqual((reply.status, reply.body), (200, b'{"ok":1}'), path)
            self.assertEqual(upstream.requests[0].body, raw, path)
            self.assertEqual(upstream.requests[0].target, "/v1/" + path.removeprefix("/v1").lstrip("/"))
            self.assertEqual(gateway.journal.lines(), [])

    def b01_control_keys_go_and_near_misses_stay(self):
        members = {**{key: 1 for key in CONTROL}, **{key: 2 for key in NEAR}}
        raw = json.dumps({"model": "mock", "messages": [], **members, "metadata": {**members, "mine": "kept"},
                          "litellm_metadata": {"a": 1}}).encode()
        raw = raw.replace(b'"_agentic_loop_depth"', b'"\\u005fagentic\\u005Floop_depth"', 1)
        _, upstream, reply = self.ask(answer("x"), raw=raw)
        self.assertEqual(reply.status, 200)
        sent = upstream.requests[0].json
        self.assertEqual(sent, {"model": "mock", "messages": [], **{key: 2 for key in NEAR},
                                "metadata": {**{key: 2 for key in NEAR}, "mine": "kept"}})

    def b24_what_is_cut_leaves_every_other_byte(self):
        raw = b'{"_sandgate":{"a":[1,2]}, "model":"mock" ,"user_api_key" : "x","messages":[ ],"metadata":{"_agentic_loop":1,"k":"v"},"z":1.0}'
        _, upstream, _ = self.ask(answer("x"), raw=raw)
        sent = upstream.requests[0].body
        self.assertIn(b'"model":"mock"', sent)
        self.assertIn(b'"z":1.0}', sent)
        self.assertIn(b'{"k":"v"}', sent)
        self.assertEqual(json.loads(sent), {"model": "mock", "messages": [], "metadata": {"k": "v"}, "z": 1.0})
        _, upstream, _ = self.ask(answer("x"), raw=b'{"model":"mock","messages":[],"metadata":{"_sandgate":1}}')
        self.assertEqual(upstream.requests[0].json, {"model": "mock", "messages": []}, "an empty metadata goes")
        _, upstream, _ = self.ask(answer("x"), raw=b'{"model":"mock","messages":[],"metadata":{"session_id":"s"}}')
        self.assertEqual(upstream.requests[0].json["metadata"], {"session_id": "s"}, "the client's where none takes part")

    def test_the_session_id_is_taken_out_where_an_interceptor_takes_part(self):
        _, upstream, _ = self.ask(answer("x"), raw=json.dumps(body_of("x", session="s")).encode())
        self.assertNotIn("metadata", upstream.requests[0].json)

    def b36_an_upstream_outside_the_scope_gets_the_request_untouched(self):
        inside, outside = self.upstream(answer("in")), self.upstream(code("print(1)"))
        gateway = self.serve(inside, upstreams=[
            {"name": "in", "base_url": inside.url + "/v1", "models": ["a"]},
            {"name": "out", "base_url": outside.url + "/v1", "models": ["b"]}],
            interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "upstreams": ["in"]}],
            gateway_options={})
        gateway.upstream_ports.add(outside.port)
        raw = json.dumps(body_of("x", model="b")).encode()
        reply = post(gateway, "/v1/chat/completions", raw)
        self.assertEqual(outside.requests[0].body, raw)
        self.assertEqual(reply.json, code("print(1)"))
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x", model="a")).text, "in")
        self.assertEqual(inside.requests[0].json["tools"][0]["type"], "function")

    def b20_a_call_from_an_upstream_outside_the_scope_runs_nothing(self):
        _, upstream, reply = self.ask(code("print(1)"), raw=json.dumps(body_of("x")).encode(),
                                      interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "enabled": False}])
        self.assertEqual(len(upstream.requests), 1)
        self.assertEqual(reply.json, code("print(1)"))

    def b37_an_unknown_model_is_404_and_lists_those_there_are(self):
        upstream = self.upstream(forever=answer("x"))
        gateway = self.serve(upstream, upstreams=[
            {"name": "one", "base_url": upstream.url, "models": ["small", "big-*"]},
            {"name": "two", "base_url": upstream.url, "models": ["msg"], "surfaces": ["responses"]}])
        reply = post(gateway, "/v1/chat/completions", body_of("x", model="other"))
        self.assertEqual((reply.status, reply.error["param"], reply.error["code"]), (404, "model", "model_not_found"))
        self.assertEqual(reply.error["message"],
                         "The model 'other' is not served here. Models that this key may use: small, big-*")
        reply = post(gateway, "/v1/chat/completions", body_of("x", model="msg"))
        self.assertEqual(reply.status, 404, "it is not spoken on this surface, and cannot be translated to what is")
        self.assertEqual(post(gateway, "/v1/messages", {"model": "none"}).json["error"]["type"], "not_found_error")
        for model in ("small", "big-one", "big-"):
            self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x", model=model)).status, 200, model)

    def test_no_model_at_a_path_is_said_so(self):
        upstream = self.upstream()
        gateway = self.serve(upstream, upstreams=[
            {"name": "two", "base_url": upstream.url, "models": ["msg"], "surfaces": ["responses"]}])
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x")).error["message"],
                         "The model 'mock' is not served here. No model is served at this path.")

    def test_exact_names_come_before_patterns(self):
        first, second = self.upstream(forever=answer("pattern")), self.upstream(forever=answer("exact"))
        gateway = self.serve(first, upstreams=[
            {"name": "one", "base_url": first.url, "models": ["*"]},
            {"name": "two", "base_url": second.url, "models": ["mock"]}])
        gateway.upstream_ports.add(second.port)
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x", tools=())).text, "exact")
        self.assertEqual(post(gateway, "/v1/chat/completions", body_of("x", tools=(), model="any")).text, "pattern")

    def test_a_request_without_a_model_says_what_it_needs(self):
        for raw, message in ((b'{"messages":[]}', "The request needs 'model', the name of a model."),
                             (b'{"model":5,"messages":[]}', "'model' must be a string."),
                             (b'{"model":"","messages":[]}', "The request needs 'model', the name of a model."),
                             (b'[1]', "The body must be a JSON object.")):
            _, _, reply = self.ask(raw=raw)
            self.assertEqual((reply.status, reply.error["message"]), (400, message))
        _, _, reply = self.ask(raw=b'{"model":"mock",}')
        self.assertEqual(reply.status, 400)
        self.assertTrue(reply.error["message"].startswith("The body is not valid JSON"), reply.error["message"])

    def test_fields_that_go_up_are_few_and_credentials_are_ours(self):
        headers = {"Authorization": "Bearer client-key", "x-api-key": "client-key", "Cookie": "a=b", "OpenAI-Beta": "b1",
                   "anthropic-version": "2023-06-01", "X-Stainless-Lang": "js", "Idempotency-Key": "once", "X-Other": "no",
                   "X-Listed": "yes", "Accept-Encoding": "gzip", "Connection": "X-Stainless-Os", "X-Stainless-Os": "linux",
                   "Content-Type": "application/json"}
        upstream = self.upstream(answer("x"))
        gateway = self.serve(upstream, upstream_options={"api_key": "operator-key"}, server={"forward_headers": ["x-listed"]})
        self.assertEqual(post(gateway, "/v1/chat/completions", ODD, headers=headers).status, 200)
        sent = upstream.requests[0]
        self.assertEqual(sent.get("authorization"), "Bearer operator-key")
        for name, value in (("openai-beta", "b1"), ("anthropic-version", "2023-06-01"), ("x-stainless-lang", "js"),
                            ("idempotency-key", "once"), ("x-listed", "yes")):
            self.assertEqual(sent.get(name), value, name)
        for name in ("x-api-key", "cookie", "x-other"):
            self.assertIsNone(sent.get(name), name)
        self.assertNotIn("client-key", str(sent.fields))

    def test_intercepted_turns_want_no_coding_and_one_idempotency_key(self):
        upstream = self.upstream(code("print(1)"), answer("x"))
        gateway = self.serve(upstream)
        post(gateway, "/v1/chat/completions", body_of("x"), headers={"Idempotency-Key": "once", "Accept-Encoding": "gzip"})
        self.assertEqual([r.get("accept-encoding") for r in upstream.requests], ["identity", "identity"])
        self.assertEqual([r.get("idempotency-key") for r in upstream.requests], ["once", None])

    def test_fields_that_come_down(self):
        _, _, reply = self.ask(Status(200, b"{}", [("Set-Cookie", "a=b"), ("X-Request-Id", "theirs"), ("Connection", "X-Hop"),
                                                   ("X-Hop", "1"), ("Keep-Alive", "timeout=5"), ("X-Kept", "2")]),
                               headers={"x-request-id": "clients", "Content-Type": "application/json"})
        self.assertIsNone(reply.get("set-cookie"))
        self.assertIsNone(reply.get("x-hop"))
        self.assertEqual(reply.get("x-kept"), "2")
        ids = [v for k, v in reply.fields if k.lower() == "x-request-id"]
        self.assertEqual(len(ids), 1)
        self.assertRegex(ids[0], r"^req_[A-Za-z0-9_-]{20,}$")

    def test_the_clients_request_id_is_logged_and_not_reflected(self):
        gateway, _, reply = self.ask(answer("x"), headers={"x-request-id": 'a b"c', "Content-Type": "application/json"})
        self.assertNotIn('a b"c', str(reply.fields))
        line = gateway.wait_event("request")
        self.assertEqual(line["client_request"], 'a b"c')
        self.assertEqual(line["request"], reply.get("x-request-id"))
        self.assertEqual((line["method"], line["path"], line["status"], line["model"], line["upstream"], line["bytes"]),
                         ("POST", "/v1/chat/completions", "200", "mock", "up", str(len(reply.body))))

    def test_upstream_errors_pass_as_they_are(self):
        for status in (400, 403, 404, 422, 429, 500, 503):
            body = b'{"error" : {"message":"theirs","vendor":1.0}}'
            _, _, reply = self.ask(Status(status, body, [("Retry-After", "9")]))
            self.assertEqual((reply.status, reply.body, reply.get("retry-after")), (status, body, "9"))

    def test_the_operators_refused_key_stays_hidden(self):
        upstream = self.upstream(Status(401, {"error": {"message": "Incorrect API key provided: sk-oper…"}}))
        gateway = self.serve(upstream, upstream_options={"api_key": "sk-operator"})
        reply = post(gateway, "/v1/chat/completions", ODD)
        self.assertEqual((reply.status, reply.error["message"]),
                         (502, "The model server refused the gateway's own credentials."))
        self.assertNotIn("sk-oper", gateway.log())

    def test_401_is_not_told_of_a_key_that_did_not_go_up(self):
        for sections, key in (({}, None), ({"auth": {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}]}}, "key-of-team-a")):
            gateway = self.serve(self.upstream(Status(401, {"error": {"message": "You sent no API key"}})), **sections)
            reply = post(gateway, "/v1/chat/completions", ODD, key=key)
            self.assertEqual((reply.status, reply.error["message"]),
                             (502, "The model server refused the gateway's own credentials."))

    def test_what_could_not_be_fetched_is_not_begun_where_keys_share_the_gateway(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        gateway = self.serve(upstream, auth={"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}]})
        asked = {"model": "mock", "input": "x"}
        reply = post(gateway, "/v1/responses", {**asked, "background": True}, key="key-of-team-a")
        self.assertEqual((reply.status, reply.error["param"], reply.error["message"]),
                         (400, "background", "background cannot be true on this gateway: what runs behind the answer could not "
                          "be fetched."))
        self.assertEqual(upstream.requests, [])
        self.assertEqual(post(gateway, "/v1/responses", {**asked, "background": False}, key="key-of-team-a").status, 200)
        self.assertEqual(post(self.serve(upstream), "/v1/responses", {**asked, "background": True}).status, 200, "alone")

    def test_a_refusal_that_shows_the_operators_key_is_told_in_other_words(self):
        shown = Status(403, {"error": {"message": "no rights for sk-operator-key"}})
        for body in (ODD, body_of("x", tools=[TOOL])):  # relayed, and intercepted
            upstream = self.upstream(shown)
            gateway = self.serve(upstream, upstream_options={"api_key": "sk-operator-key"})
            reply = post(gateway, "/v1/chat/completions", body)
            self.assertEqual((reply.status, reply.error["message"]),
                             (502, "The model server refused the gateway's own credentials."))
            self.assertNotIn("sk-operator", gateway.log())
            self.assertEqual(gateway.wait_event("request")["cause"],
                             "the upstream answered 403 and showed its credentials")
        # A status that tells the client what to do stays, with the time after which to do it.
        for status, body in ((429, ODD), (404, ODD), (400, body_of("x", tools=[TOOL])), (429, body_of("x", tools=[TOOL]))):
            upstream = self.upstream(*[Status(status, {"error": {"message": "sk-operator-key is over its quota"}},
                                              [("Retry-After", "30")])] * 2)
            gateway = self.serve(upstream, upstream_options={"api_key": "sk-operator-key"})
            reply = post(gateway, "/v1/chat/completions", body)
            self.assertEqual((reply.status, reply.error["message"], reply.get("retry-after")),
                             (status, f"The model server answered with status {status}; its words held the gateway's own "
                              "credentials and are kept back.", "30"))
        upstream = self.upstream(Status(403, b"x" * (1 << 20) + b"x"))
        gateway = self.serve(upstream, upstream_options={"api_key": "sk-operator-key"})
        reply = post(gateway, "/v1/chat/completions", ODD)
        self.assertEqual((reply.status, reply.error["message"]), (502, "The model server's refusal is too long."))

    def test_an_error_amid_an_answer_that_shows_the_operators_key_is_told_in_other_words(self):
        refused = "The model server refused the gateway's own credentials."
        kept_back = "The model server answered with status 429; its words held the gateway's own credentials and are kept back."
        def error(**more):
            return {"error": {"message": "sk-operator-key is over its quota", **more}}
        begun = chunk({"role": "assistant", "content": "Text."})
        for path, extra in (("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 9})):  # as it is, and translated
            for stream, turn, message in (
                    (False, Status(200, error()), refused), (False, Status(200, error(code=429)), kept_back),
                    (True, Stream(events(error())), refused), (True, Stream(events(begun, error())), refused),
                    (True, Stream(None, [events(begun, end=False), events(error(code=429))]), kept_back)):
                upstream = self.upstream(turn, turn)
                gateway = self.serve(upstream, upstream_options={"api_key": "sk-operator-key", "surfaces": ["chat"]})
                tools = [TOOL] if "chat" in path else [{"type": "code_execution_20250522", "name": "code_execution"}]
                reply = post(gateway, path, body_of("x", tools=tools, stream=stream, **extra))
                told = reply.body.decode()
                if not stream:
                    self.assertEqual(reply.status, 502 if message is refused else 429)
                self.assertIn(message, told)
                self.assertNotIn("sk-operator", told)
                self.assertNotIn("sk-operator", gateway.log())

    def test_redirects_are_not_passed_on(self):
        for status in (301, 302, 307, 999):
            _, _, reply = self.ask(Status(status, b"", [("Location", "http://inner.example:9000/")]))
            self.assertEqual((reply.status, reply.get("location")), (502, None))
            self.assertEqual(reply.error["message"], f"The model server answered with status {status}.")

    def test_an_upstream_that_is_not_there_is_502_and_only_the_log_names_it(self):
        upstream = self.upstream()
        upstream.close()
        gateway = self.serve(upstream)
        reply = post(gateway, "/v1/chat/completions", ODD)
        self.assertEqual((reply.status, reply.error["message"]),
                         (502, "The model server could not be reached or broke off its answer."))
        self.assertNotIn(str(upstream.port).encode(), reply.body)
        line = gateway.wait_event("request")
        self.assertIn(str(upstream.port), line["cause"])
        self.assertEqual(line["error"], "UNAVAILABLE")

    def test_an_upstream_that_is_silent_is_504(self):
        upstream = self.upstream(lambda connection: connection.wait_closed())
        gateway = self.serve(upstream, upstream_options={"first_byte_timeout": "200ms"})
        reply = post(gateway, "/v1/chat/completions", ODD)
        self.assertEqual((reply.status, reply.error["message"]), (504, "The model server did not answer in time."))

    def test_an_answer_that_is_cut_is_cut_for_the_client_too(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        for data in (head + b"Content-Length: 100\r\n\r\n{\"a\":", head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"):
            gateway = self.serve(self.upstream(Bytes(data)))
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                post(gateway, "/v1/chat/completions", ODD)

    def test_garbage_from_an_upstream_is_502(self):
        gateway, _, reply = self.ask(Bytes(b"no http at all\r\n\r\n"))
        self.assertEqual(reply.status, 502)
        gateway, _, reply = self.ask(Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"))
        self.assertEqual((reply.status, reply.error["message"]), (502, "The model server's answer cannot be understood."))
        self.assertEqual(gateway.wait_event("request")["cause"], "the upstream sent two different Content-Length")
        for length in (b"1", b"2", b"3"):
            both = b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
            gateway, _, reply = self.ask(Bytes(both))
            self.assertEqual((reply.status, reply.error["message"]),
                             (502, "The model server's answer cannot be understood."))
            line = gateway.wait_event("request")
            self.assertEqual((line["level"], line["cause"]),
                             ("info", "the upstream sent Content-Length and Transfer-Encoding"))

    def test_paths_that_name_stored_state_do_not_exist(self):
        gateway = self.serve(self.upstream(forever=Status(200, b"{}")))
        for path in ("/v1/files", "/v1/containers", "/v1/threads/x", "/v1/chat/completions/x",
                     "/v1/vector_stores", "/v1/batches", "/", "/v1", "/v1/v1/embeddings", "/v2/embeddings", "/v1/messages/batches"):
            for method in ("GET", "POST", "DELETE"):
                reply = request(gateway, method, path, b"{}" if method == "POST" else None)
                self.assertEqual(reply.status, 404, path)
                self.assertEqual(reply.error["message"], "There is nothing at this path on this gateway.")
                self.assertEqual(reply.error["code"], "unknown_path")

    def test_previous_response_id_is_refused_where_keys_share_the_gateway(self):
        upstream = self.upstream(forever=Status(200, b"{}"))
        keys = {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}]}
        gateway = self.serve(upstream, auth=keys)
        for name in ("previous_response_id", "conversation"):
            reply = post(gateway, "/v1/responses", {"model": "mock", "input": "x", name: "resp_1"}, key="key-of-team-a")
            self.assertEqual((reply.status, reply.error["param"], reply.error["message"]),
                             (400, name, f"'{name}' names nothing that a model server gave you through this gateway: send the whole input."))
        self.assertEqual(upstream.requests, [])
        alone = self.serve(upstream)
        self.assertEqual(post(alone, "/v1/responses", {"model": "mock", "input": "x", "conversation": "c"}).status, 200)

    def test_wrong_methods_name_the_right_one(self):
        gateway = self.serve(self.upstream())
        for method, path, allow in (("GET", "/v1/chat/completions", "POST"), ("POST", "/v1/models", "GET"),
                                    ("DELETE", "/health/live", "GET")):
            reply = request(gateway, method, path, b"{}" if method == "POST" else None)
            self.assertEqual((reply.status, reply.get("allow")), (405, allow))
            self.assertEqual(reply.error["message"], f"This path takes {allow}, not '{method}'.")

    def test_multipart_bodies_are_routed_by_their_part_model_and_not_changed(self):
        raw = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n\x00\xff_sandgate\r\n'
               b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nmock\r\n--b--\r\n')
        _, upstream, reply = self.ask(Status(200, b"{}"), raw=raw, path="/v1/audio/transcriptions",
                                      headers={"Content-Type": "multipart/form-data; boundary=b"})
        self.assertEqual(reply.status, 200)
        self.assertEqual(upstream.requests[0].body, raw)
        self.assertEqual(upstream.requests[0].get("content-type"), "multipart/form-data; boundary=b")

    def test_a_plugin_model_is_served_on_surfaces_only(self):
        gateway = self.serve()
        reply = post(gateway, "/v1/embeddings", {"model": "mock", "input": "x"})
        self.assertEqual((reply.status, reply.error["message"]), (404, "This model is not served at this path."))

    def test_models_are_listed_and_looked_up(self):
        listing = json.dumps({"data": [{"id": "gpt-a"}, {"id": "gpt-b"}, {"id": "other"}, {"id": 5}, 7]}).encode()
        upstream = self.upstream(forever=Status(200, listing))
        dead = self.upstream()
        dead.close()
        gateway = self.serve(upstream, upstreams=[
            {"name": "one", "base_url": upstream.url, "models": ["exact", "gpt-*"]},
            {"name": "two", "base_url": dead.url, "models": ["last", "x-*"]}])
        reply = get(gateway, "/v1/models")
        self.assertEqual([m["id"] for m in reply.json["data"]], ["exact", "gpt-a", "gpt-b", "last"])
        self.assertEqual((reply.json["object"], reply.json["data"][0]["object"]), ("list", "model"))
        self.assertEqual(upstream.requests[0].target, "/v1/models")
        self.assertEqual(gateway.wait_event("models_unknown")["upstream"], "two")
        self.assertEqual(get(gateway, "/models/gpt-a").json["id"], "gpt-a")
        missing = get(gateway, "/v1/models/other")
        self.assertEqual((missing.status, missing.error["code"], missing.error["message"]),
                         (404, "model_not_found", "There is no model 'other' here."))

    def test_an_upstreams_list_of_models_that_is_refused_or_too_long_is_left_out(self):
        for turn, message in ((Status(500, b"{}"), "status 500"),
                              (Status(200, b"[" + b" " * (5 << 20) + b"]"), "its list of models is too long")):
            upstream = self.upstream(turn)
            gateway = self.serve(upstream, upstreams=[{"name": "one", "base_url": upstream.url, "models": ["a", "b*"]}])
            self.assertEqual([m["id"] for m in get(gateway, "/v1/models").json["data"]], ["a"])
            self.assertEqual(gateway.wait_event("models_unknown")["message"], message)

    def test_the_query_goes_up_and_head_answers_without_a_body(self):
        _, upstream, _ = self.ask(answer("x"), path="/chat/completions?a=b&c=%20")
        self.assertEqual(upstream.requests[0].target, "/v1/chat/completions?a=b&c=%20")
        gateway = self.serve(self.upstream())
        raw = exchange(gateway, b"HEAD /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(raw.startswith(b"HTTP/1.1 200 "), raw)
        self.assertTrue(raw.endswith(b"\r\n\r\n"), raw)


if __name__ == "__main__":
    main()
