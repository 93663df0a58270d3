"""Responses clients that keep no items of ours (Codex): they come back with their calls and results alone, and the upstream
finds the answer whole again, with our calls and results where they stood. Over an upstream of this API and over ones of chat and
messages, streamed and whole; byte for byte the same each time. Nothing is put in twice, guessed, or given to another identity."""
import json

import messages_upstream
import strict_responses
import upstream as chat_upstream
from client import post
from forms import RESPONSES as FORM
from harness import main
from responses_upstream import answer, calls_of, events, events_of, items_of, results_of, streamed
from searching import SEARCH, Searching
from upstream import Stream

TOOL = {"type": "code_interpreter", "container": {"type": "auto"}}
STOCK = {"type": "function", "name": "get_stock", "parameters": {"type": "object", "properties": {"part": {"type": "string"}}}}
PATCH = {"type": "custom", "name": "apply_patch"}
KNOWN = {"message": ("type", "role", "content"), "reasoning": ("type", "summary", "encrypted_content"),
         "function_call": ("type", "name", "arguments", "call_id"), "custom_tool_call": ("type", "name", "input", "call_id")}
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}


def ours(source, call_id):
    return call_id, "code_interpreter", {"code": source}


def theirs(part, call_id):
    return call_id, "get_stock", {"part": part}


MIXED = [ours("print(x + 1)", "call_0"), theirs("A", "call_1"), ours("print(x + 2)", "call_2"), theirs("B", "call_3")]


def kept(response, known=KNOWN):
    """The items that such a client keeps, without their ids."""
    return [{key: item[key] for key in known[item["type"]] if key in item} for item in response["output"] if item["type"] in known]


def came(items):
    """Results of the calls among them."""
    return [{"type": f"{item['type']}_output", "call_id": item["call_id"], "output": f"{n} left"}
            for n, item in enumerate(item for item in items if item["type"].endswith("_call"))]


def said(items):
    """Items in short: what a call or a result of it is about."""
    short = {"function_call": lambda i: i["name"] + i["arguments"], "function_call_output": lambda i: "= " + i["output"].strip(),
             "custom_tool_call": lambda i: i["name"] + i["input"], "custom_tool_call_output": lambda i: "= " + i["output"],
             "reasoning": lambda i: i["encrypted_content"]}
    return [short.get(i.get("type"), lambda i: i["content"][0]["text"])(i) for i in items]


def events_of_custom(response):
    """Of an answer whose first item is a call of a custom tool, with its input as events of its own."""
    created, going, added, done, *rest = events_of(response)
    item = done["item"]
    within = {"item_id": item["id"], "output_index": done["output_index"]}
    added = {**added, "item": {**item, "status": "in_progress", "input": ""}}
    return [created, going, added, {"type": "response.custom_tool_call_input.delta", **within, "delta": item["input"]},
            {"type": "response.custom_tool_call_input.done", **within, "input": item["input"]}, done, *rest]


class Recall(Searching):
    def ask(self, gateway, items, stream=False, key=None, tools=(TOOL, STOCK), **more):
        body = {"model": "mock", "input": items, "tools": list(tools), "stream": stream, "store": False, **more}
        reply = post(gateway, FORM.path, body, key=key)
        self.assertEqual(reply.status, 200, reply.body)
        return strict_responses.check(reply.body) if stream else strict_responses.check_response(reply.json)

    def conversation(self, stream=False, form=None, more=(), **options):
        """A first answer of two turns, the second of which calls two of ours and two of the client's, in turn; behind it the
        upstream says `more`, and that it is done."""
        module = form or FORM.module
        make = module.streamed if stream else module.answer
        thought = {} if form else {"reasoning": "Hm.", "encrypted": "sealed-1"}
        again = {} if form else {"reasoning": "So.", "encrypted": "sealed-2"}
        upstream = self.upstream(make("First.", calls=[ours("x = 20", "call_0")], **thought),
                                 make("Both.", calls=MIXED, **again), *more, forever=lambda _: make("Done."))
        gateway = self.serve(upstream, **options)
        return gateway, upstream, self.ask(gateway, [USER], stream, key=A if "auth" in options else None)

    def sent(self, upstream, number=-1):
        return items_of(upstream.requests[number].json)

    WHOLE = ["x", "sealed-1", "First.", 'code_interpreter{"code": "x = 20"}', "= [no output]", "sealed-2", "Both.",
             'code_interpreter{"code": "print(x + 1)"}', 'get_stock{"part": "A"}',
             'code_interpreter{"code": "print(x + 2)"}', 'get_stock{"part": "B"}', "= 21", "= 0 left", "= 22", "= 1 left"]

    def test_the_next_request_finds_the_answer_whole_again(self):
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream)
            mine = kept(first)
            self.assertEqual([item["type"] for item in mine], ["reasoning", "message"] * 2 + ["function_call"] * 2)
            self.ask(gateway, [USER, *mine, *came(mine)], stream)
            up = self.sent(upstream)
            self.assertEqual(said(up), self.WHOLE)
            calls, results = calls_of(upstream.requests[-1].json), results_of(upstream.requests[-1].json)
            self.assertEqual([i for i, _, _ in calls], [i for i, _ in results], "each result in the place of its call")
            self.assertEqual([calls[2][0], calls[4][0]], ["call_1", "call_3"], "the upstream's own")
            self.assertEqual(len({i for i, _, _ in calls}), 5, "none twice, though the upstream has one twice")
            self.assertNotIn("code_interpreter_call", json.dumps(up))

    def test_over_a_chat_server_it_is_one_turn_again(self):
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream, chat_upstream, upstream_options={"surfaces": ["chat"]})
            mine = kept(first)
            self.ask(gateway, [USER, *mine, *came(mine)], stream)
            up = upstream.requests[-1].json["messages"]
            self.assertEqual([m["role"] for m in up], ["user", "assistant", "tool", "assistant", *["tool"] * 4])
            self.assertEqual([m["content"] for m in up if m["role"] == "assistant"], ["First.", "Both."])
            calls = [[(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in m["tool_calls"]]
                     for m in up if m["role"] == "assistant"]
            self.assertEqual(calls, [[("code_interpreter", {"code": "x = 20"})], [call[1:] for call in MIXED]])
            self.assertEqual([m["content"].strip() for m in up if m["role"] == "tool"],
                             ["[no output]", "21", "0 left", "22", "1 left"])
            self.assertEqual([m["tool_call_id"] for m in up if m["role"] == "tool"],
                             [c["id"] for m in up if m["role"] == "assistant" for c in m["tool_calls"]])

    def test_over_a_server_of_messages_too(self):
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream, messages_upstream, upstream_options={"surfaces": ["messages"]})
            mine = kept(first)
            self.ask(gateway, [USER, *mine, *came(mine)], stream)
            up = [(m["role"], m["content"]) for m in upstream.requests[-1].json["messages"][1:]]
            self.assertEqual([role for role, _ in up], ["assistant", "user"] * 2)
            self.assertEqual([[b["type"] for b in content] for _, content in up],
                             [["text", "tool_use"], ["tool_result"], ["text", *["tool_use"] * 4], ["tool_result"] * 4])
            self.assertEqual([(b["name"], b["input"]) for b in up[2][1][1:]], [call[1:] for call in MIXED])
            self.assertEqual([b["tool_use_id"] for b in up[3][1]], [b["id"] for b in up[2][1][1:]])
            self.assertEqual([text for _, text in messages_upstream.results_of(upstream.requests[-1].json)],
                             ["[no output]", "21", "0 left", "22", "1 left"])

    def test_it_is_the_same_each_time_that_it_comes_back(self):
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream)
            mine = kept(first)
            history = [USER, *mine, *came(mine)]
            for text in ("one", "two", "three"):
                history += kept(self.ask(gateway, history, stream))
                history.append({**USER, "content": [{"type": "input_text", "text": text}]})
            bodies = [request.body for request in upstream.requests[2:]]
            self.assertEqual(said(items_of(json.loads(bodies[0]))), self.WHOLE)
            inputs = [body[body.index(b'"input"'):body.index(b'], "tools"')] for body in bodies]
            for shorter, longer in zip(inputs, inputs[1:]):
                self.assertEqual(longer[:len(shorter)], shorter)
                self.assertGreater(len(longer), len(shorter))

    def test_a_client_that_sends_our_items_has_nothing_put_in_twice(self):
        """By value, with and without results, and by reference."""
        for stream in (False, True):
            for change in (lambda i: i, lambda i: {"type": "item_reference", "id": i["id"]},
                           lambda i: {"id": i["id"]} if i["type"] == "code_interpreter_call" else i):
                gateway, upstream, _ = self.conversation(stream, more=[(streamed if stream else answer)("Both.", calls=MIXED)])
                first = self.ask(gateway, [USER], stream, store=True)
                calls = [item for item in first["output"] if item["type"].endswith("_call") and "name" in item]
                self.ask(gateway, [USER, *map(change, first["output"]), *came(calls)], stream)
                texts = said(self.sent(upstream))
                self.assertEqual([texts.count(f'code_interpreter{{"code": "print(x + {n})"}}') for n in (1, 2)], [1, 1], texts)
                self.assertEqual(len([t for t in texts if t.startswith("= ")]), 4)

    def test_behind_a_previous_response_nothing_is_put_in_twice(self):
        for stream in (False, True):
            gateway, upstream, _ = self.conversation(stream, more=[(streamed if stream else answer)("Both.", calls=MIXED)])
            first = self.ask(gateway, [USER], stream, store=True)
            mine = [item for item in first["output"] if item["type"] == "function_call"]
            for more in ([], kept({"output": mine})):
                self.ask(gateway, [*more, *came(mine)], stream, previous_response_id=first["id"])
                texts = said(self.sent(upstream))
                self.assertEqual([texts.count(f'code_interpreter{{"code": "print(x + {n})"}}') for n in (1, 2)], [1, 1], texts)
                self.assertIn("call_1", [call for call, _ in results_of(upstream.requests[-1].json)])

    def test_a_changed_call_is_left_as_the_client_has_it(self):
        gateway, upstream, first = self.conversation()
        mine = kept(first)
        for change in ({"arguments": '{"part": "C"}'}, {"name": "get_stocks"}, {"arguments": "{"}):
            other = [{**item, **change} if item["type"] == "function_call" and "B" in item["arguments"] else item for item in mine]
            self.ask(gateway, [USER, *other, *came(other)])
            self.assertNotIn("code_interpreter", json.dumps(self.sent(upstream)))
            self.assertEqual([i for i, _ in results_of(upstream.requests[-1].json)], ["call_1", "call_3"])
        spaced = [{**item, "arguments": item["arguments"].replace(" ", "")} if "arguments" in item else item for item in mine]
        self.ask(gateway, [USER, *spaced, *came(spaced)])
        self.assertEqual(len(said(self.sent(upstream))), len(self.WHOLE), "which means the same")

    def test_a_client_without_all_results_gets_nothing_put_in(self):
        gateway, upstream, first = self.conversation()
        mine = kept(first)
        for results in ([], came(mine)[:1], came(mine)[1:]):
            self.ask(gateway, [USER, *mine, *results])
            self.assertNotIn("code_interpreter", json.dumps(self.sent(upstream)))
        for part in (mine[:-1], [*mine[:-2], mine[-1]], [*mine[:-2], mine[-1], mine[-2]]):
            self.ask(gateway, [USER, *part, *came(part)])
            self.assertNotIn("code_interpreter", json.dumps(self.sent(upstream)), "or without all calls, or in another order")

    def test_what_the_client_has_dropped_is_passed_over(self):
        gateway, upstream, first = self.conversation()
        mine = [item for item in kept(first) if item["type"] == "function_call"]
        self.ask(gateway, [USER, *mine, *came(mine)])
        self.assertEqual(said(self.sent(upstream)), [text for text in self.WHOLE if not text.startswith("sealed") and "." not in text])

    def test_results_between_the_calls_have_ours_in_their_places(self):
        gateway, upstream, first = self.conversation()
        mine = kept(first)
        results = came(mine)
        self.ask(gateway, [USER, *mine[:-1], results[0], mine[-1], results[1]])
        self.assertEqual(said(self.sent(upstream))[7:],
                         ['code_interpreter{"code": "print(x + 1)"}', 'get_stock{"part": "A"}', "= 21", "= 0 left",
                          'code_interpreter{"code": "print(x + 2)"}', 'get_stock{"part": "B"}', "= 22", "= 1 left"])

    def test_another_identity_gets_nothing_of_it(self):
        gateway, upstream, first = self.conversation(auth=KEYS)
        mine = kept(first)
        for key, texts in ((B, ["x", "sealed-1", "First.", "sealed-2", "Both.", 'get_stock{"part": "A"}', 'get_stock{"part": "B"}',
                                "= 0 left", "= 1 left"]), (A, self.WHOLE)):
            self.ask(gateway, [USER, *mine, *came(mine)], key=key)
            self.assertEqual(said(self.sent(upstream)), texts)

    def test_forged_ids_have_no_effect(self):
        gateway, upstream, first = self.conversation()
        mine = kept(first)
        for forged in ("call_sg" + "0" * 32, "call_sg" + "0" * 32 + "_call_1", "call_sg", "call_sg" + "g" * 32 + "_x",
                       "responses:" + mine[-1]["call_id"], mine[-1]["call_id"][:38], mine[-1]["call_id"].upper(),
                       mine[-1]["call_id"].replace("_call_3", "_call_4")):
            other = [*mine[:-1], {**mine[-1], "call_id": forged}]
            self.ask(gateway, [USER, *other, *came(other)])
            self.assertNotIn("code_interpreter", json.dumps(self.sent(upstream)), forged)

    def test_ids_of_one_surface_find_nothing_on_another(self):
        """Chat's records lie beside."""
        tools = [TOOL, {"type": "function", "function": {"name": "get_stock"}}]
        for stream in (False, True):
            make = streamed if stream else answer
            turns = [chat_upstream.answer(calls=MIXED), make("Done."), chat_upstream.answer("Done.")]
            gateway, upstream, first = self.conversation(stream, more=turns)
            body = {"model": "mock", "messages": [{"role": "user", "content": "x"}], "tools": tools}
            message = post(gateway, "/v1/chat/completions", body).json["choices"][0]["message"]
            chats = [{"type": "function_call", "call_id": c["id"], **c["function"]} for c in message["tool_calls"]]
            self.ask(gateway, [USER, *chats, *came(chats)], stream)
            self.assertEqual([name for _, name, _ in calls_of(upstream.requests[-1].json)], ["get_stock"] * 2)
            mine = kept(first)[-2:]
            calls = [{"id": c["call_id"], "type": "function", "function": {k: c[k] for k in ("name", "arguments")}} for c in mine]
            results = [{"role": "tool", "tool_call_id": c["id"], "content": "5"} for c in calls]
            reply = post(gateway, "/v1/chat/completions", {**body, "messages": [
                {"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]})
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual([m["role"] for m in upstream.requests[-1].json["messages"]], ["user", "assistant", "tool", "tool"])

    def test_after_a_restart_it_goes_up_as_the_client_has_it(self):
        """Under the upstream's own ids all the same: they are carried along."""
        for stream in (False, True):
            _, upstream, first = self.conversation(stream)
            mine = kept(first)
            self.ask(self.serve(upstream), [USER, *mine, *came(mine)], stream)
            wanted = json.dumps([USER, *mine, *came(mine)])
            for item, own in zip(mine[-2:], ("call_1", "call_3")):
                self.assertRegex(item["call_id"], f"^call_sg[0-9a-f]{{32}}_{own}$")
                wanted = wanted.replace(item["call_id"], own)
            self.assertIn(wanted.encode(), upstream.requests[-1].body)

    def test_a_call_that_nothing_of_ours_stands_beside_is_unchanged(self):
        """In a whole answer its id is the upstream's; in a stream it carries that, and goes up as that."""
        for stream in (False, True):
            make = streamed if stream else answer
            upstream = self.upstream(make(calls=[theirs("A", "call_1")]), make("Done."))
            gateway = self.serve(upstream)
            mine = kept(self.ask(gateway, [USER], stream))
            self.assertEqual(mine[0]["call_id"] == "call_1", not stream)
            self.ask(gateway, [USER, *mine, *came(mine)], stream)
            self.assertEqual(said(self.sent(upstream)), ["x", 'get_stock{"part": "A"}', "= 0 left"])
            self.assertEqual(results_of(upstream.requests[-1].json), [("call_1", "0 left")])

    def test_without_the_tool_it_is_told_in_words(self):
        gateway, upstream, first = self.conversation()
        mine = kept(first)
        self.ask(gateway, [USER, *mine, *came(mine)], tools=[STOCK])
        texts = said(self.sent(upstream))
        self.assertEqual([text.partition("\n")[::2] for text in texts if "code_interpreter" in text],
                         [(f'[code_interpreter was called with {{"code": "{code}"}} and returned:]', told)
                          for code, told in (("x = 20", "[no output]"), ("print(x + 1)", "21\n"), ("print(x + 2)", "22\n"))])
        self.assertEqual([name for _, name, _ in calls_of(upstream.requests[-1].json)], ["get_stock"] * 2)

    def test_its_container_goes_on(self):
        gateway, upstream, first = self.conversation(more=[answer(calls=[ours("print(x + 3)", "call_9")])])
        mine = kept(first)
        gateway.journal.wait("run", 3)
        self.assertEqual(gateway.journal.of("destroy"), [], "it waits")
        self.ask(gateway, [USER, *mine, *came(mine)])
        self.assertEqual(results_of(upstream.requests[-1].json)[-1], ("call_9", "23"))
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_custom_tools_are_calls_of_the_client_too(self):
        for stream in (False, True):
            make = streamed if stream else answer
            patch = {"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "call_1", "name": "apply_patch",
                     "input": "*** Begin"}
            whole = answer(calls=[ours("print(6*7)", "call_0")])
            whole["output"].insert(0, patch)
            upstream = self.upstream(Stream(events(*events_of_custom(whole))) if stream else whole, make("Done."))
            gateway = self.serve(upstream)
            mine = kept(self.ask(gateway, [USER], stream, tools=[TOOL, PATCH]))
            self.assertEqual([item["type"] for item in mine], ["custom_tool_call"])
            self.ask(gateway, [USER, *mine, *came(mine)], stream, tools=[TOOL, PATCH])
            self.assertEqual(said(self.sent(upstream)),
                             ["x", "apply_patch*** Begin", 'code_interpreter{"code": "print(6*7)"}', "= 0 left", "= 42"])
            self.assertEqual([self.sent(upstream)[i]["call_id"] for i in (1, 3)], ["call_1"] * 2)

    def test_items_that_come_back_without_ids_give_way_to_the_calls_that_they_stand_for(self):
        gateway, upstream, first = self.conversation()
        known = {**KNOWN, "code_interpreter_call": ("type", "code", "outputs", "container_id", "status")}
        mine = kept(first, known)
        calls = [item for item in mine if item["type"] == "function_call"]
        self.ask(gateway, [USER, *mine, *came(calls)])
        self.assertEqual(said(self.sent(upstream)), self.WHOLE)
        changed = [{**item, "code": "print(x + 9)"} if item.get("code") == "print(x + 1)" else item for item in mine]
        self.ask(gateway, [USER, *changed, *came(calls)])
        up = self.sent(upstream)
        self.assertEqual([item["code"] for item in up if item["type"] == "code_interpreter_call"], ["print(x + 9)"])
        self.assertEqual(said([item for item in up if item["type"] != "code_interpreter_call"]),
                         [text for text in self.WHOLE if text not in ('code_interpreter{"code": "print(x + 1)"}', "= 21")])

    def test_a_search_that_comes_back_without_its_id_is_put_back_with_its_result(self):
        """So Codex keeps searches; one that stands behind a command's call too."""
        known = {**KNOWN, "web_search_call": ("type", "status", "action")}
        search = "call_0", "web_search", {"query": "both"}
        for form, options in ((None, {}), (chat_upstream, {"upstream_options": {"surfaces": ["chat"]}})):
            module = form or FORM.module
            for calls in ([search, theirs("A", "call_1")], [theirs("A", "call_1"), search]):
                upstream = self.upstream(module.streamed(calls=calls), module.streamed("Done."))
                gateway = self.start(upstream, **options)
                mine = kept(self.ask(gateway, [USER], True, tools=[SEARCH, STOCK]), known)
                self.assertEqual(sorted(item["type"] for item in mine), ["function_call", "web_search_call"])
                results = came([item for item in mine if item["type"] == "function_call"])
                self.ask(gateway, [USER, *mine, *results], True, tools=[SEARCH, STOCK])
                body = upstream.requests[-1].json
                self.assertNotIn("web_search_call", json.dumps(body))
                self.assertEqual([name for _, name, _ in module.calls_of(body)], [name for _, name, _ in calls])
                told = dict(module.results_of(body))
                self.assertEqual([told[i] == "0 left" for i, _, _ in module.calls_of(body)], [c[1] == "get_stock" for c in calls])
                self.assertIn("https://www.a.org/1", "".join(told.values()))


if __name__ == "__main__":
    main()
