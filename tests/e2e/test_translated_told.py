"""What a client is told besides the answer when its upstream speaks another API: rate limits, the field that an error is about, the
pages that the upstream cites, the count of tokens; and which words refuse what cannot be carried."""
import datetime
import json

import messages_upstream
import upstream as chat_upstream
from client import post
from forms import CHAT, MESSAGES, RESPONSES
from harness import E2E, main
from test_translated import PAIRS
from test_translated_edges import Translating, plain
from upstream import Status, Stream

NOW = datetime.datetime.now(datetime.timezone.utc)
SOON = (NOW + datetime.timedelta(hours=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
OPENAI = {"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "99", "x-ratelimit-reset-requests": "6m0s",
          "x-ratelimit-limit-tokens": "4000", "x-ratelimit-remaining-tokens": "many", "x-ratelimit-reset-tokens": "1.5s"}
ANTHROPIC = {"anthropic-ratelimit-requests-limit": "100", "anthropic-ratelimit-requests-remaining": "99",
             "anthropic-ratelimit-requests-reset": SOON, "anthropic-ratelimit-tokens-limit": "4000",
             "anthropic-ratelimit-tokens-remaining": "-1", "anthropic-ratelimit-tokens-reset": "tomorrow",
             "anthropic-ratelimit-input-tokens-limit": "3000"}


def told_limits(reply):
    return {name: value for name, value in reply.fields if "ratelimit" in name}


def answer_with(server, headers):
    def turn(connection):
        body = json.dumps(server.module.answer("Hi.")).encode()
        connection.head(200, [("Content-Length", len(body)), *headers.items()])
        connection.send(body)
        return True
    return turn


class Limits(Translating):
    def look(self, client, server, told):
        limits = {name.lower(): value for name, value in told_limits(told.reply).items()}
        if client is RESPONSES and server is CHAT:  # one vendor's
            self.assertEqual(limits, OPENAI)
        elif server is CHAT:
            reset = limits.pop("anthropic-ratelimit-requests-reset"), limits.pop("anthropic-ratelimit-tokens-reset")
            self.assertEqual(limits, {"anthropic-ratelimit-requests-limit": "100", "anthropic-ratelimit-requests-remaining": "99",
                                      "anthropic-ratelimit-tokens-limit": "4000"})
            times = [datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in reset]
            self.assertTrue(all(time >= NOW for time in times), reset)
            self.assertEqual(round((times[0] - times[1]).total_seconds(), -1), 360, reset)
        else:
            self.assertRegex(limits.pop("x-ratelimit-reset-requests"), r"^(1799|1800|17\d\d)m\d+s$")
            self.assertEqual(limits, {"x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": "99",
                                      "x-ratelimit-limit-tokens": "4000"})

    def test_rate_limits_are_told_as_the_clients_api_has_them(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                headers = OPENAI if server is CHAT else ANTHROPIC
                told, _ = self.ask(client, server, plain(client), answer_with(server, headers))
                self.assertEqual(told.texts, ["Hi."], told.reply.body)
                self.look(client, server, told)

    def test_so_are_those_of_a_refusal_which_says_when_to_come_back(self):
        for client, server in PAIRS:
            with self.subTest(client=client.name, server=server.name):
                headers = {**(OPENAI if server is CHAT else ANTHROPIC), "Retry-After": "30", "request-id": "theirs"}
                told, _ = self.ask(client, server, plain(client), server.failure(429, headers=headers.items()))
                self.assertEqual((told.status, told.reply.get("retry-after")), (429, "30"))
                self.assertRegex(told.reply.get("request-id"), "^req_")
                self.look(client, server, told)


class Fields(Translating):
    """An upstream names the field of its own request."""

    def test_the_field_of_an_error_is_the_clients(self):
        rows = [(RESPONSES, CHAT, "max_tokens", "max_output_tokens"), (RESPONSES, CHAT, "messages[2].content", "input"),
                (RESPONSES, CHAT, "response_format.json_schema", None), (RESPONSES, CHAT, "tools[0].function", "tools"),
                (RESPONSES, CHAT, "messages_of_mine", None), (CHAT, MESSAGES, "system", "messages"),
                (CHAT, MESSAGES, "max_tokens", "max_completion_tokens"), (RESPONSES, MESSAGES, "system.0", "instructions")]
        for client, server, theirs, ours in rows:
            with self.subTest(client=client.name, server=server.name, field=theirs):
                error = {"message": "No.", "type": "invalid_request_error", "param": theirs, "code": None}
                body = {**plain(client), client.limit if client is not CHAT else "max_completion_tokens": 20}
                told, _ = self.ask(client, server, body, Status(400, {"type": "error", "error": error}))
                self.assertEqual((told.status, told.error), (400, "No."), told.reply.body)
                self.assertEqual(told.reply.error["param"], ours)


class Refusals(Translating):
    def test_what_is_refused_without_a_hosted_tool_is_refused_for_the_translation(self):
        where = "in a request to a model whose server speaks another API"
        rows = [(CHAT, {"n": 2}, "n", "'n' cannot be carried to the API of this model's server. Leave it out, or have the operator "
                                      "list it in 'drop_params'."),
                (RESPONSES, {"background": True}, "background", f"background cannot be true {where}: nothing runs behind the answer."),
                (RESPONSES, {"conversation": "conv_1"}, "conversation",
                 f"conversation has no meaning {where}: say previous_response_id, or send the whole input.")]
        for client, more, field, message in rows:
            with self.subTest(field=field):
                told, upstream = self.ask(client, MESSAGES, {**plain(client), **more})
                self.assertEqual((told.status, told.error, told.reply.error["param"]), (400, message, field))
                self.assertEqual(upstream.requests, [])


class Cited(Translating):
    """Pages that the upstream names by itself."""
    PAGES = [{"type": "url_citation", "url_citation": {"url": "https://e.org/a", "title": "A", "start_index": 0, "end_index": 5}}]
    BLOCKS = [{"type": "text", "text": "It is", "citations": [
        {"type": "web_search_result_location", "url": "https://e.org/a", "title": "A", "cited_text": "x", "encrypted_index": "y"}]},
              {"type": "text", "text": " so."}]

    def turn(self, server, stream):
        if server is CHAT and stream:
            return Stream(chat_upstream.events(chat_upstream.chunk({"role": "assistant", "content": "It is so."}),
                                               chat_upstream.chunk({"annotations": self.PAGES}), chat_upstream.chunk({}, "stop")))
        if server is CHAT:
            return chat_upstream.answer("It is so.", annotations=self.PAGES)
        whole = {**messages_upstream.answer("x"), "content": self.BLOCKS}
        if not stream:
            return whole
        events = list(messages_upstream.events_of(messages_upstream.answer("x")))
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}}
        cited = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta",
                                                                      "citation": self.BLOCKS[0]["citations"][0]}}
        stop = {"type": "content_block_stop", "index": 0}
        more = [{"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
                messages_upstream.delta(1, "text_delta", "text", " so."), {"type": "content_block_stop", "index": 1}]
        return Stream(messages_upstream.events(events[0], start, cited, messages_upstream.delta(0, "text_delta", "text", "It is"),
                                               stop, *more, *events[-2:]))

    def cited(self, client, told):
        """(url, title, start, end) of each citation that the client has."""
        if client is MESSAGES:
            found = [one for block in told.final["content"] for one in block.get("citations") or []]
            return [(one["url"], one["title"], 0, 5) for one in found if one["type"] == "web_search_result_location"]
        if client is RESPONSES:
            found = [one for item in told.final["output"] for part in item.get("content", []) for one in part["annotations"]]
        else:
            found = [one["url_citation"] for one in told.annotations]
        return [(one["url"], one["title"], one["start_index"], one["end_index"]) for one in found]

    def test_they_are_cited_as_the_clients_api_does(self):
        for client, server in PAIRS:
            for stream in (False, True):
                with self.subTest(client=client.name, server=server.name, stream=stream):
                    told, _ = self.ask(client, server, plain(client, stream), self.turn(server, stream))
                    self.assertEqual("".join(told.texts), "It is so.", told.reply.body)
                    told.annotations = annotations_of(told) if client is CHAT else None
                    self.assertEqual(self.cited(client, told), [("https://e.org/a", "A", 0, 5)], told.reply.body)


def annotations_of(told):
    """Of a chat client: those of its message, or of all its chunks."""
    body = told.reply.body.decode()
    if not body.startswith("data:"):
        return json.loads(body)["choices"][0]["message"].get("annotations", [])
    chunks = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
    return [one for chunk in chunks for choice in chunk["choices"] for one in choice["delta"].get("annotations", [])]


class Counted(E2E):
    """Tokens are counted where the upstream's API can, in its own form."""
    BODY = {"model": "mock", "instructions": "Be brief.", "input": "hi", "max_output_tokens": 20, "temperature": 0.5,
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}

    def over(self, surface, *turns):
        upstream = self.upstream(*turns)
        return upstream, self.serve(upstream, upstream_options={"surfaces": [surface], "api_key": "sk-operator"})

    def test_a_server_of_messages_counts_for_a_client_of_responses(self):
        upstream, gateway = self.over("messages", {"input_tokens": 17})
        reply = post(gateway, "/v1/responses/input_tokens", self.BODY)
        self.assertEqual((reply.status, reply.json), (200, {"object": "response.input_tokens", "input_tokens": 17}))
        asked = upstream.requests[0]
        self.assertEqual((asked.target, asked.get("x-api-key")), ("/v1/messages/count_tokens", "sk-operator"))
        self.assertEqual(sorted(asked.json), ["messages", "model", "system", "tools"])
        self.assertEqual(asked.json["tools"], [{"name": "f", "input_schema": {"type": "object"}}])

    def test_its_refusal_and_its_nonsense_are_told_as_ever(self):
        _, gateway = self.over("messages", Status(400, {"type": "error", "error": {"type": "x", "message": "No."}}), {"tokens": 1})
        reply = post(gateway, "/v1/responses/input_tokens", self.BODY)
        self.assertEqual((reply.status, reply.error["message"]), (400, "No."))
        reply = post(gateway, "/v1/responses/input_tokens", self.BODY)
        self.assertEqual((reply.status, reply.error["message"]),
                         (502, "The upstream's answer cannot be understood: it has no count of tokens"))

    def test_what_cannot_be_counted_is_refused_by_its_field(self):
        _, gateway = self.over("messages")
        reply = post(gateway, "/v1/responses/input_tokens", {**self.BODY, "prompt": {"id": "p"}})
        self.assertEqual((reply.status, reply.error["param"]), (400, "prompt"))

    def test_a_server_of_chat_cannot_count(self):
        upstream, gateway = self.over("chat")
        message = "The tokens of a request to 'mock' cannot be counted: the API of this model's server has nothing for it."
        for path, body, kind in (("/v1/messages/count_tokens", {"model": "mock", "messages": []}, "not_found_error"),
                                 ("/v1/responses/input_tokens", self.BODY, "invalid_request_error")):
            reply = post(gateway, path, body)
            self.assertEqual((reply.status, reply.error["type"], reply.error["message"]), (404, kind, message), path)
        self.assertEqual(upstream.requests, [])


if __name__ == "__main__":
    main()
