"""What a client sees at the edges of a request that is translated: how its upstream fails, what is streamed and when, and what goes
up of requests that name no hosted tool at all, which the gateway would relay to a server of their own API."""
import json
import threading

import messages_upstream
import upstream as chat_upstream
from client import Wire, lines_of
from forms import CHAT, MESSAGES, RESPONSES
from harness import E2E, main, poll
from test_operations import A, KEYS, SCRAPER, metrics
from test_translated import PAIRS
from upstream import Bytes, Stream, always

BUSY = "the model is busy"
BROKEN = "The model server could not be reached or broke off its answer."
PIXEL = "iVBORw0KGgo="
# The type of an error by its status; what is not here is a server_error of OpenAI's, an api_error of Anthropic's.
TYPES = {400: ("invalid_request_error", "invalid_request_error"), 404: ("invalid_request_error", "not_found_error"),
         429: ("rate_limit_error", "rate_limit_error"), 529: ("server_error", "overloaded_error")}


def plain(form, stream=False, **more):
    """A request that names no hosted tool; `functions` leaves the client's own."""
    body = form.body(stream, **more)
    tools = [tool for tool in body.pop("tools") if "get_stock" in json.dumps(tool)]
    body.pop("include", None)
    return {**body, **({"tools": tools} if tools else {})}


def begun(server, text):
    """The events of a stream up to a part of its text, and those of its end."""
    if server is CHAT:
        whole = [chat_upstream.chunk({"role": "assistant", "content": text}), chat_upstream.chunk({"content": "END"}),
                 chat_upstream.chunk({}, "stop")]
        return chat_upstream.events(*whole[:1], end=False), chat_upstream.events(*whole[1:])
    whole = list(messages_upstream.events_of(messages_upstream.answer("END")))
    first = {**whole[0]["message"]}
    start = [{**whole[0], "message": first}, whole[1], messages_upstream.delta(0, "text_delta", "text", text)]
    return messages_upstream.events(*start), messages_upstream.events(*whole[2:])


def error_event(server, message):
    if server is CHAT:
        return chat_upstream.events({"error": {"message": message, "type": "server_error", "param": None, "code": None}})
    return messages_upstream.events({"type": "error", "error": {"type": "overloaded_error", "message": message}})


def as_type(content_type, status, body):
    """A turn of that content type."""
    def turn(connection):
        connection.head(status, [("Content-Length", len(body))], content_type)
        connection.send(body)
        return True
    return turn


def cut(data):
    """A turn whose stream is broken off."""
    def turn(connection):
        connection.begin_stream()
        connection.chunk(data)
        return False
    return turn


class Translating(E2E):
    def setUp(self):
        super().setUp()
        self.started = {}

    def over(self, server, *turns):
        """A gateway before a server of that form, whose script is these turns; there is one of each form in a test."""
        if server not in self.started:
            upstream = self.upstream()
            options = {"surfaces": [server.name], "api_key": "sk-operator"}
            self.started[server] = upstream, self.serve(upstream, upstream_options=options)
        upstream, _ = self.started[server]
        upstream.turns[:], upstream.requests[:] = turns, []
        return self.started[server]

    def ask(self, client, server, body, *turns):
        upstream, gateway = self.over(server, *turns)
        return client.ask(gateway, body), upstream

    def asked(self):
        """Each pair, with a hosted tool and without one, streamed and not; in turn, since they share the code."""
        for place, (client, server) in enumerate(PAIRS):
            for number, stream in enumerate((False, True)):
                make = plain if (place + number) % 2 else client.body
                with self.subTest(client=client.name, server=server.name, stream=stream, tools=make is not plain):
                    yield (client, server, make(client, stream) if make is plain else make(stream))


class Failures(Translating):
    """Told in the client's form, with the upstream's status and words."""

    def look(self, client, told, status, message):
        self.assertEqual((told.status, told.error), (status, message), told.reply.body)
        wanted = TYPES.get(status, ("server_error", "api_error"))[client is MESSAGES]
        self.assertEqual(told.reply.error["type"], wanted)
        self.assertEqual(told.reply.json.get("type"), "error" if client is MESSAGES else None)

    def refused(self, status, wanted_status=None, message=BUSY, wanted=BUSY, headers=(), tries=1):
        for client, server, body in self.asked():
            turns = [server.failure(status, message, headers)] * tries
            told, upstream = self.ask(client, server, body, *turns)
            self.look(client, told, wanted_status or status, wanted)
            self.assertEqual(len(upstream.requests), tries)
            yield told

    def test_the_gateways_own_key_that_is_refused_is_no_fault_of_the_clients(self):
        for told in self.refused(401, 502, "no such key sk-operator", "The model server refused the gateway's own credentials."):
            self.assertNotIn(b"sk-operator", told.reply.body)

    def test_a_request_that_is_refused(self):
        list(self.refused(400, message="that is no request", wanted="that is no request"))

    def test_a_model_that_is_not_there(self):
        list(self.refused(404, message="no such model", wanted="no such model"))

    def test_a_limit_keeps_what_it_says_of_when_to_come_back(self):
        for told in self.refused(429, headers=[("Retry-After", "30")]):
            self.assertEqual(told.reply.get("retry-after"), "30")

    def test_a_server_that_fails_is_asked_once_more(self):
        list(self.refused(500, headers=[("Retry-After", "0")], tries=2))

    def test_an_error_that_is_a_page_keeps_its_status(self):
        page = b"<html><body>Bad gateway, sk-operator</body></html>"
        for client, server, body in self.asked():
            told, _ = self.ask(client, server, body, *[as_type("text/html", 403, page)])
            self.assertEqual((told.status, told.error), (403, "The model server answered with status 403."), told.reply.body)
            self.assertNotIn(b"html", told.reply.body)

    def test_a_page_where_an_answer_was_awaited_is_the_upstreams_fault(self):
        for client, server, body in self.asked():
            told, _ = self.ask(client, server, body, *always(as_type("text/html", 200, b"<html>Log in</html>")))
            self.assertEqual(told.status, 502, told.reply.body)
            self.assertRegex(told.error, "^The upstream's answer cannot be understood: ")

    def test_a_failure_at_the_start_of_a_stream_is_a_status(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                told, _ = self.ask(client, server, plain(client, True), *always(Stream(error_event(server, BUSY))))
                self.look(client, told, 502 if server is CHAT else 529, BUSY)

    def test_a_failure_within_a_stream_comes_behind_what_was_said(self):
        self.within(lambda server: error_event(server, BUSY), BUSY)

    def test_a_stream_that_ends_before_its_answer_is_a_failure(self):
        self.within(lambda server: b"", "The upstream's stream ended before its answer was whole")

    def within(self, rest, message):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                start, _ = begun(server, "Half an")
                told, upstream = self.ask(client, server, plain(client, True), Stream(start + rest(server)))
                self.assertEqual((told.status, told.error), (200, message), told.reply.body)
                self.assertIn(b"Half an", told.reply.body)
                self.assertEqual(len(upstream.requests), 1, "what was told is not told again")

    def test_a_stream_that_is_cut_is_a_failure(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                start, _ = begun(server, "Half an")
                told, _ = self.ask(client, server, plain(client, True), cut(start))
                self.assertEqual((told.status, told.error), (200, BROKEN), told.reply.body)

    def test_a_whole_answer_that_is_cut_is_a_failure(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"id\":"
                told, _ = self.ask(client, server, plain(client), *always(Bytes(half)))
                self.look(client, told, 502, BROKEN)


class Streams(Translating):
    def test_text_is_passed_on_as_it_comes(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                go_on = threading.Event()

                def turn(connection, parts=begun(server, "The first"), go_on=go_on):
                    connection.begin_stream()
                    connection.chunk(parts[0])
                    self.assertTrue(go_on.wait(60), "the client has seen the first part")
                    connection.chunk(parts[1])
                    connection.end()
                    return True
                _, gateway = self.over(server, turn)
                with Wire(gateway) as wire:
                    wire.post(plain(client, True), client.path)
                    lines = lines_of(wire.stream())
                    seen = next(line for line in lines if b"The first" in line)
                    self.assertNotIn(b"END", seen)
                    go_on.set()
                    self.assertIn(b"END", b"".join(lines))

    def test_a_client_that_leaves_ends_the_upstreams_answer(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                closed, seen = threading.Event(), []

                def turn(connection, start=begun(server, "The first")[0], closed=closed, seen=seen):
                    connection.begin_stream()
                    connection.chunk(start)
                    seen.append(connection.wait_closed())
                    closed.set()
                    return False
                _, gateway = self.over(server, turn)
                with Wire(gateway) as wire:
                    wire.post(plain(client, True), client.path)
                    next(line for line in lines_of(wire.stream()) if b"The first" in line)
                self.assertTrue(closed.wait(60))
                self.assertEqual(seen, [True])


def said(server, body):
    """(role, parts) of what went up, the system's texts first: a part is a text or an object."""
    system = body.get("system", [])
    messages = [{"role": "system", "content": system}] if system else []
    found = []
    for message in messages + body["messages"]:
        content = message["content"]
        parts = [content] if isinstance(content, str) else content
        found.append((message["role"], [part["text"] if isinstance(part, dict) and part["type"] == "text" else part
                                        for part in parts]))
    return found


def with_image(client, text, url, data):
    """A message of the user's: text, an image by its URL, and one as data."""
    inline = f"data:image/png;base64,{data}"
    if client is CHAT:
        parts = [{"type": "text", "text": text}, *[{"type": "image_url", "image_url": {"url": one}} for one in (url, inline)]]
    elif client is RESPONSES:
        parts = [{"type": "input_text", "text": text}, *[{"type": "input_image", "image_url": one} for one in (url, inline)]]
    else:
        sources = [{"type": "url", "url": url}, {"type": "base64", "media_type": "image/png", "data": data}]
        parts = [{"type": "text", "text": text}, *[{"type": "image", "source": source} for source in sources]]
    return {"role": "user", "content": parts}


def images_of(server, url, data):
    if server is CHAT:
        return [{"type": "image_url", "image_url": {"url": one}} for one in (url, f"data:image/png;base64,{data}")]
    return [{"type": "image", "source": {"type": "url", "url": url}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]


class Requests(Translating):
    """What goes up of a request without a hosted tool, and what comes back."""

    def test_a_text_and_its_answer(self):
        for client, server in PAIRS:
            for stream in (False, True):
                with self.subTest(client=client.name, server=server.name, stream=stream):
                    body = plain(client, stream, text="Hello «you»")
                    make = server.module.streamed if stream else server.module.answer
                    told, upstream = self.ask(client, server, body, make("Grüß Gott 🌞.", usage=(7, 3)))
                    self.assertEqual((told.status, told.texts, told.finish, told.usage), (200, ["Grüß Gott 🌞."], "stop", (7, 3)))
                    (request,) = upstream.requests
                    self.assertEqual(request.target, server.path)
                    self.assertEqual(said(server, request.json), [("user", ["Hello «you»"])])
                    self.assertNotIn("tools", request.json)

    def test_the_clients_own_functions_and_their_results(self):
        for client, server in PAIRS:
            for stream in (False, True):
                with self.subTest(client=client.name, server=server.name, stream=stream):
                    make = server.module.streamed if stream else server.module.answer
                    calls = [("call_a", "get_stock", {"part": "A-7"}), ("call_b", "get_stock", {"part": "B-8"})]
                    upstream, gateway = self.over(server, make("Let me look.", calls=calls, usage=(9, 9)),
                                                  make("5 of each.", usage=(9, 9)))
                    body = plain(client, stream, functions=True)
                    told = client.ask(gateway, body)
                    self.assertEqual([call[1:] for call in told.calls], [call[1:] for call in calls])
                    self.assertEqual((told.texts, told.finish), (["Let me look."], "calls"))
                    after = client.ask(gateway, client.continued(body, told, "5"))
                    self.assertEqual(after.texts, ["5 of each."], after.reply.body)
                    self.look_at_history(server, upstream.requests[1].json, calls)

    def look_at_history(self, server, body, calls):
        """Both calls and both results, by the same ids, behind each other."""
        went, results = server.module.calls_of(body), server.module.results_of(body)
        self.assertEqual([call[1:] for call in went], [call[1:] for call in calls])
        self.assertEqual([text for _, text in results], ["5", "5"])
        self.assertEqual([call_id for call_id, _, _ in went], [call_id for call_id, _ in results])
        self.assertEqual(len({call_id for call_id, _ in results}), 2)
        roles = [message["role"] for message in body["messages"]]
        self.assertEqual(roles, ["user", "assistant", *(["tool"] * 2 if server is CHAT else ["user"])])

    def test_images_by_url_and_as_data(self):
        url = "https://pictures.test/a.png"
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                body = plain(client)
                body["input" if client is RESPONSES else "messages"] = [with_image(client, "What is it?", url, PIXEL)]
                told, upstream = self.ask(client, server, body, server.module.answer("A pixel."))
                self.assertEqual(told.texts, ["A pixel."], told.reply.body)
                self.assertEqual(said(server, upstream.requests[0].json),
                                 [("user", ["What is it?", *images_of(server, url, PIXEL)])])

    def test_what_the_system_says(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                body = plain(client, text="Hi")
                if client is MESSAGES:
                    body["system"] = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
                elif client is RESPONSES:
                    body["instructions"] = "Be brief."
                else:
                    body["messages"].insert(0, {"role": "developer", "content": "Be brief."})
                told, upstream = self.ask(client, server, body, server.module.answer("Hi."))
                self.assertEqual(told.texts, ["Hi."], told.reply.body)
                self.assertEqual(said(server, upstream.requests[0].json), [("system", ["Be brief."]), ("user", ["Hi"])])

    def test_where_to_stop(self):
        for client, server, field, stop in ((CHAT, MESSAGES, "stop", "END"), (CHAT, MESSAGES, "stop", ["END", "FIN"]),
                                            (MESSAGES, CHAT, "stop_sequences", ["END", "FIN"])):
            with self.subTest(client=client.name, stop=stop):
                how = {"stop": "stop_sequence"} if server is MESSAGES else {}
                told, upstream = self.ask(client, server, {**plain(client), field: stop}, server.module.answer("So", **how))
                self.assertEqual((told.texts, told.finish), (["So"], "stop"), told.reply.body)
                self.assertEqual(upstream.requests[0].json["stop_sequences" if server is MESSAGES else "stop"],
                                 [stop] if isinstance(stop, str) else stop)

    def test_an_answer_that_another_continues_is_in_the_request(self):
        for server in (CHAT, MESSAGES):
            with self.subTest(server=server.name):
                upstream, gateway = self.over(server, server.module.answer("One."), server.module.answer("Two."))
                first = RESPONSES.ask(gateway, plain(RESPONSES, text="Say one."))
                body = {**plain(RESPONSES, text="And two."), "previous_response_id": first.final["id"]}
                second = RESPONSES.ask(gateway, body)
                self.assertEqual(second.texts, ["Two."], second.reply.body)
                self.assertEqual(second.final["previous_response_id"], first.final["id"])
                self.assertEqual(said(server, upstream.requests[1].json),
                                 [("user", ["Say one."]), ("assistant", ["One."]), ("user", ["And two."])])

    def test_a_result_goes_up_right_behind_its_call_whatever_the_client_said_between(self):
        calls = [{"type": "function_call", "call_id": f"call_{n}", "name": "get_stock", "arguments": "{}"} for n in "ab"]
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
        results = [{"type": "function_call_output", "call_id": "call_a", "output": [picture]},
                   {"type": "function_call_output", "call_id": "call_b", "output": "b"}]
        given = [{"role": "user", "content": "Look."}, *calls, {"role": "user", "content": "Hurry!"}, results[0],
                 {"role": "developer", "content": "No hurry."}, results[1], {"role": "user", "content": "Well?"}]
        for server in (CHAT, MESSAGES):
            with self.subTest(server=server.name):
                body = {**plain(RESPONSES, functions=True), "input": given}
                told, upstream = self.ask(RESPONSES, server, body, server.module.answer("Five."))
                self.assertEqual(told.texts, ["Five."], told.reply.body)
                went = upstream.requests[0].json
                if server is MESSAGES:
                    kinds = [[part["type"] for part in message["content"]] for message in went["messages"]]
                    self.assertEqual(kinds, [["text"], ["tool_use"] * 2, ["tool_result"] * 2 + ["text"] * 2])
                else:  # a picture is shown behind the results
                    self.assertEqual([message["role"] for message in went["messages"]],
                                     ["user", "assistant", "tool", "tool", "user", "user", "system", "user"])
                    self.assertEqual(went["messages"][4]["content"][1]["type"], "image_url")

    def test_headers_are_those_of_the_servers_api(self):
        sent = {"anthropic-version": "2023-06-01", "anthropic-beta": "x", "openai-beta": "y", "x-stainless-lang": "js",
                "x-api-key": "client", "Authorization": "Bearer client"}
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                upstream, gateway = self.over(server, server.module.answer("Hi."))
                self.assertEqual(client.ask(gateway, plain(client), headers=sent).texts, ["Hi."])
                get = upstream.requests[0].get
                self.assertEqual((get("authorization"), get("x-api-key"), get("anthropic-version")),
                                 ("Bearer sk-operator", None, None) if server is CHAT else (None, "sk-operator", "2023-06-01"))
                self.assertEqual([get(name) for name in ("anthropic-beta", "openai-beta", "x-stainless-lang")], [None] * 3)


class Memory(Translating):
    def test_what_is_said_again_at_a_streams_end_counts_as_held(self):
        """Responses have a text four times at its end: of 150 KB that is more than a key's share holds beside what is kept."""
        def large(connection):
            connection.begin_stream()
            for _ in range(30):
                connection.chunk(chat_upstream.events(chat_upstream.chunk({"content": "y" * 5000}), end=False))
            connection.chunk(chat_upstream.events(chat_upstream.chunk({}, "stop"),
                                                  chat_upstream.chunk(usage={"prompt_tokens": 1, "completion_tokens": 1})))
            connection.end()
            return True
        upstream = self.upstream(forever=large)
        gateway = self.serve(upstream, auth=KEYS, server={"memory_budget": "4MiB"}, upstream_options={"surfaces": ["chat"]})
        told = RESPONSES.ask(gateway, plain(RESPONSES, True), key=A)
        self.assertEqual(told.status, 200)
        self.assertRegex(told.error or "it was held", "^This request needs more than 1048576 bytes")
        poll(lambda: metrics(gateway, SCRAPER)["sandgate_memory_held_bytes"] == 0, "nothing to be held")


if __name__ == "__main__":
    main()
