"""Responses with the real binary: answers that are kept and come back by their ids, and what Responses alone has. The wire itself
is held by the unit tests (test_responses_*.c), what all surfaces share by test_scenarios.py and test_surfaces.py."""
import json

import strict_responses
from client import Wire, get, parse_events, post, request
from forms import RESPONSES as FORM
from forms import Obedient
from harness import E2E, main
from responses_upstream import (answer, calls_of, code, events, events_of, items_of, reasoning_item, results_of, streamed, text_of,
                                tools_of)
from upstream import Status, Stream

A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}
PATH = FORM.path
TOOL = {"type": "code_interpreter", "container": {"type": "auto"}}
GONE = "earlier variables and files are gone"
OUTPUTS = "code_interpreter_call.outputs"


class Responses(E2E):
    def ask(self, gateway, text="x", key=None, **more):
        body = {"model": "mock", "input": text, "tools": [TOOL], **more}
        return post(gateway, PATH, body, key=key)

    def answered(self, gateway, *arguments, **more):
        """The response, however it was told."""
        reply = self.ask(gateway, *arguments, **more)
        self.assertEqual(reply.status, 200, reply.body)
        return strict_responses.check(reply.body) if more.get("stream") else strict_responses.check_response(reply.json)

    def refused(self, reply, status, message, param=None, code=None):
        self.assertEqual((reply.status, reply.error["message"], reply.error["param"], reply.error["code"]),
                         (status, message, param, code))


class Stored(Responses):
    def conversation(self, stream=False, **options):
        """A gateway whose model runs what it is told, and a first answer in which it did."""
        upstream = self.upstream(forever=Obedient(FORM))
        gateway = self.serve(upstream, **options)
        return gateway, upstream, self.answered(gateway, "print(6*7)", stream=stream)

    def missing(self, reply, response_id):
        self.refused(reply, 404, f"Response with id '{response_id}' not found.")

    def previous_missing(self, reply, response_id):
        self.refused(reply, 400, f"Previous response with id '{response_id}' not found.", "previous_response_id",
                     "previous_response_not_found")

    def test_a_chain_of_three_answers_goes_up_whole(self):
        """What the upstream is sent is what it would be sent if the client had kept the history itself."""
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream)
            second = self.answered(gateway, "print(1)", stream=stream, previous_response_id=first["id"])
            seen = len(upstream.requests)
            third = self.answered(gateway, "print(2)", stream=stream, previous_response_id=second["id"])
            body = upstream.requests[seen].json
            self.assertNotIn("previous_response_id", body)
            self.assertIs(body["store"], False, "the upstream keeps nothing")
            kinds = [item.get("type", "message") for item in items_of(body)]
            self.assertEqual(kinds, ["message", "function_call", "function_call_output", "message"] * 2 + ["message"])
            self.assertEqual([arguments for _, _, arguments in calls_of(body)], [{"code": "print(6*7)"}, {"code": "print(1)"}])
            results = results_of(body)
            self.assertEqual([text.split("\n")[-1] for _, text in results], ["42", "1"])
            self.assertEqual([i for i, _ in results], [i for i, _, _ in calls_of(body)])
            self.assertEqual(len({i for i, _ in results}), 2, "each call has an id of its own")
            said = [text_of(item["content"]) for item in items_of(body) if item.get("role") == "user"]
            self.assertEqual(said, ["print(6*7)", "print(1)", "print(2)"])
            self.assertEqual([r["previous_response_id"] for r in (first, second, third)], [None, first["id"], second["id"]])
            self.assertEqual(len({first["id"], second["id"], third["id"]}), 3)

    def test_one_answer_may_be_continued_twice(self):
        gateway, upstream, first = self.conversation()
        one = self.answered(gateway, "print(1)", previous_response_id=first["id"])
        other = self.answered(gateway, "print(2)", previous_response_id=first["id"])
        self.assertNotEqual(one["id"], other["id"])
        said = [text_of(item["content"]) for item in items_of(upstream.requests[-1].json) if item.get("role") == "user"]
        self.assertEqual(said, ["print(6*7)", "print(2)"])

    def test_a_chain_goes_on_without_the_tool(self):
        """What we have run is told as text then, and nothing of ours is offered."""
        for tools in ([], None):
            gateway, upstream, first = self.conversation()
            reply = post(gateway, PATH, {"model": "mock", "input": "and?", "previous_response_id": first["id"],
                                         **({} if tools is None else {"tools": tools})})
            self.assertEqual(reply.status, 200, reply.body)
            body = upstream.requests[2].json
            self.assertEqual((calls_of(body), tools_of(body)), ([], []))
            self.assertIn("print(6*7)", json.dumps(body["input"]))
            self.assertIn("42", json.dumps(body["input"]))

    def test_what_is_anothers_is_answered_like_what_never_was(self):
        gateway, upstream, first = self.conversation_of(A)
        item = first["output"][0]["id"]
        seen = len(upstream.requests)
        for own, never in ((first["id"], "resp_sg" + "0" * 32), (item, "ci_sg" + "0" * 32)):
            for response_id in (own, never):
                self.previous_missing(self.ask(gateway, key=B, previous_response_id=response_id), response_id)
                for method, path in (("GET", ""), ("GET", "?stream=true"), ("DELETE", ""), ("GET", "/input_items"),
                                     ("POST", "/cancel")):
                    path = f"/v1/responses/{response_id}{'' if path[:1] == '?' else path}{path if path[:1] == '?' else ''}"
                    self.missing(request(gateway, method, path, key=B), response_id)
                reply = self.ask(gateway, [{"type": "item_reference", "id": response_id}], key=B)
                self.assertEqual(reply.status, 400 if reply.error["param"] == "input[0]" else 404)
            replies = [self.ask(gateway, [{"type": "item_reference", "id": i}], key=B) for i in (own, never)]
            self.assertEqual(*[(r.status, r.body.replace(own.encode(), b"ID").replace(never.encode(), b"ID")) for r in replies])
        self.assertEqual(len(upstream.requests), seen)
        self.assertEqual(get(gateway, f"/v1/responses/{first['id']}", key=A).json["id"], first["id"], "nothing was deleted")

    def conversation_of(self, key):
        upstream = self.upstream(forever=Obedient(FORM))
        gateway = self.serve(upstream, auth=KEYS)
        return gateway, upstream, self.answered(gateway, "print(6*7)", key=key)

    def test_an_answer_is_told_again_as_it_was(self):
        for stream in (False, True):
            upstream = self.upstream(forever=Obedient(FORM))
            gateway = self.serve(upstream)
            for include in ([], [OUTPUTS]):
                first = self.answered(gateway, "print(6*7)", stream=stream, include=include)
                asked = "&".join(f"include[]={value}" for value in include)
                again = get(gateway, f"/v1/responses/{first['id']}?{asked}")
                self.assertEqual((again.status, again.json), (200, first))
                outputs = first["output"][0]["outputs"]
                self.assertEqual(outputs, [{"type": "logs", "logs": "42\n"}] if include else None)

    def test_an_answer_is_streamed_again_from_any_of_its_events(self):
        for stream in (False, True):
            gateway, _, first = self.conversation(stream)
            path = f"/v1/responses/{first['id']}?stream=true"
            whole = get(gateway, path)
            self.assertTrue(whole.get("content-type").startswith("text/event-stream"))
            self.assertEqual(strict_responses.check(whole.body), first)
            numbers = [event["sequence_number"] for event in whole.events]
            self.assertEqual(numbers, list(range(len(numbers))))
            for after in (0, 3, len(numbers) - 2):
                rest = get(gateway, f"{path}&starting_after={after}").events
                self.assertEqual(rest, whole.events[after + 1:])
            for after in (len(numbers) - 1, 4000):  # of a live stream in smaller pieces: its end is told in any case
                rest = get(gateway, f"{path}&starting_after={after}").events
                self.assertEqual([(e["type"], e["sequence_number"]) for e in rest], [("response.completed", after + 1)])
                self.assertEqual(rest[0]["response"], first)

    def test_odd_queries_harm_nobody(self):
        gateway, _, first = self.conversation()
        path = f"/v1/responses/{first['id']}"
        whole = get(gateway, path + "?stream=true").events
        for query in ("-1", "x", "", "1e3", "99999999999999999999999", "%00", "9223372036854775807", "0x1", "9007199254740993"):
            reply = get(gateway, f"{path}?stream=true&starting_after={query}")
            self.assertEqual((reply.status, parse_events(reply.body)[-1]["response"]["id"]), (200, first["id"]), query)
        for query in ("stream=false", "stream=TRUE", "&&&", "=", "include[]=", "include=" + OUTPUTS, "%zz=1", "unknown=1",
                      "&".join(["include[]=x"] * 40)):
            reply = get(gateway, f"{path}?{query}")
            self.assertEqual((reply.status, reply.json["id"]), (200, first["id"]), query)
        self.assertEqual(len(whole), whole[-1]["sequence_number"] + 1)

    def test_a_deleted_answer_is_gone_for_whoever_comes_back_to_it(self):
        for stream in (False, True):
            gateway, _, first = self.conversation(stream)
            second = self.answered(gateway, "print(1)", stream=stream, previous_response_id=first["id"])
            path = f"/v1/responses/{first['id']}"
            deleted = request(gateway, "DELETE", path)
            self.assertEqual((deleted.status, deleted.json), (200, {"id": first["id"], "object": "response", "deleted": True}))
            for again in (request(gateway, "DELETE", path), get(gateway, path), get(gateway, path + "/input_items"),
                          post(gateway, path + "/cancel", {})):
                self.missing(again, first["id"])
            self.previous_missing(self.ask(gateway, previous_response_id=first["id"]), first["id"])
            self.previous_missing(self.ask(gateway, previous_response_id=second["id"]), first["id"])
            self.assertEqual(get(gateway, f"/v1/responses/{second['id']}").json, second)

    def test_an_answer_that_is_deleted_while_another_continues_it_is_read_to_its_end(self):
        upstream = self.upstream(forever=Obedient(FORM))
        gateway = self.serve(upstream, rules=[{"when": "slow", "stdout": "done", "delay": "500ms"}])
        first = self.answered(gateway, "print(6*7)")
        with Wire(gateway) as wire:
            wire.post({"model": "mock", "input": "slow", "tools": [TOOL], "previous_response_id": first["id"]}, PATH)
            gateway.journal.wait("run", 2)
            self.assertEqual(request(gateway, "DELETE", f"/v1/responses/{first['id']}").status, 200)
            second = wire.answer().json
        self.assertEqual([text.split("\n")[-1] for _, text in results_of(upstream.requests[-1].json)], ["42", "done"])
        self.previous_missing(self.ask(gateway, previous_response_id=second["id"]), first["id"])

    def test_a_chain_has_an_end(self):
        """257 answers: what is sent back grows with each, and stays bounded."""
        gateway = self.serve(self.upstream(forever=lambda connection: answer("ok")))
        last = None
        for i in range(258):
            reply = self.ask(gateway, f"{i}", **({"previous_response_id": last} if last else {}))
            if reply.status != 200:
                break
            last = reply.json["id"]
        self.assertEqual((i, reply.status, reply.error["message"]), (257, 400, "More than 256 responses before this one"))

    def test_store_false_keeps_nothing(self):
        for stream in (False, True):
            upstream = self.upstream(forever=Obedient(FORM))
            gateway = self.serve(upstream)
            first = self.answered(gateway, "print(6*7)", stream=stream, store=False)
            self.assertIs(first["store"], False)
            self.missing(get(gateway, f"/v1/responses/{first['id']}"), first["id"])
            self.previous_missing(self.ask(gateway, previous_response_id=first["id"]), first["id"])
            item = first["output"][-1]["id"]
            self.refused(self.ask(gateway, [{"type": "item_reference", "id": item}]), 404, f"Item with id '{item}' not found.",
                         "input")

    def test_a_failed_answer_is_not_kept(self):
        turns = [streamed("First.", calls=[("a", "code_interpreter", {"code": "print(1)"})]), *[Status(500)] * 2]
        gateway = self.serve(self.upstream(*turns))
        failed = self.answered(gateway, stream=True)
        self.assertEqual((failed["status"], failed["error"]["code"]), ("failed", "failed_after_run"))
        self.missing(get(gateway, f"/v1/responses/{failed['id']}"), failed["id"])
        item = failed["output"][0]["id"]
        self.refused(self.ask(gateway, [{"type": "item_reference", "id": item}]), 404, f"Item with id '{item}' not found.", "input")

    def test_references_stand_for_their_items(self):
        for stream in (False, True):
            gateway, upstream, first = self.conversation(stream)
            run, message = (item["id"] for item in first["output"])
            asked = get(gateway, f"/v1/responses/{first['id']}/input_items").json["data"][0]["id"]
            seen = len(upstream.requests)
            self.answered(gateway, [{"type": "item_reference", "id": asked}, {"type": "item_reference", "id": run}, {"id": message},
                                    {"role": "user", "content": "print(7)"}], stream=stream)
            body = upstream.requests[seen].json
            self.assertEqual([item.get("type", "message") for item in items_of(body)],
                             ["message", "function_call", "function_call_output", "message", "message"])
            self.assertEqual([text_of(item["content"]) for item in items_of(body) if "role" in item],
                             ["print(6*7)", "42", "print(7)"])
            self.assertEqual([text for _, text in results_of(body)], ["42"])
            self.assertNotIn("item_reference", json.dumps(body))

    def test_a_chain_finds_its_container_again_where_it_is_kept(self):
        for keep, wanted in (("5m", "^5$"), ("0s", f"{GONE}(.*\n)*.*NameError")):
            for stream in (False, True):
                upstream = self.upstream(forever=Obedient(FORM))
                gateway = self.serve(upstream, sandbox={"keep": keep})
                first = self.answered(gateway, "x = 5", stream=stream)
                if keep == "0s":
                    gateway.journal.wait("destroy")
                second = self.answered(gateway, "print(x)", stream=stream, previous_response_id=first["id"])
                self.assertRegex(second["output"][-1]["content"][0]["text"], wanted)
                same = first["output"][0]["container_id"] == second["output"][0]["container_id"]
                self.assertEqual((same, len(gateway.journal.of("create"))), (keep == "5m", 1 if keep == "5m" else 2))

    def test_an_answer_that_is_not_kept_may_follow_one_that_is(self):
        gateway, upstream, first = self.conversation()
        second = self.answered(gateway, "print(1)", previous_response_id=first["id"], store=False)
        self.assertEqual([text.split("\n")[-1] for _, text in results_of(upstream.requests[-1].json)], ["42", "1"])
        self.missing(get(gateway, f"/v1/responses/{second['id']}"), second["id"])
        self.assertEqual(self.answered(gateway, "print(2)", previous_response_id=first["id"])["status"], "completed")

    def test_paths_of_every_kind_are_answered(self):
        gateway, _, first = self.conversation_of(A)
        path = f"/v1/responses/{first['id']}"
        for method, odd, status in (("PUT", path, 405), ("POST", path, 405), ("DELETE", path + "/input_items", 405),
                                    ("GET", path + "/cancel", 405), ("GET", path + "/else", 404), ("GET", path + "/", 404),
                                    ("GET", path[:-1], 404), ("GET", path + "x", 404), ("GET", path + "%00", 400),
                                    ("GET", path.upper().replace("/V1/RESPONSES", "/v1/responses"), 404),
                                    ("GET", "/v1/responses/" + "x" * 3000, 404), ("DELETE", "/v1/responses/%2e%2e", 400),
                                    ("GET", path.replace("resp", "%72esp"), 200)):
            reply = request(gateway, method, odd, key=A)
            self.assertEqual(reply.status, status, (method, odd[:100], reply.body))
            self.assertTrue(status == 200 or len(reply.body) < 500)
        for key in (None, "sk-wrong"):
            self.assertEqual({request(gateway, m, path, key=key).status for m in ("GET", "DELETE")}, {401})
        self.assertEqual(get(gateway, path, key=A).json, first)

    def test_the_input_is_listed_in_pages(self):
        gateway = self.serve(self.upstream(forever=Obedient(FORM)))
        said = [{"role": "user", "content": f"print({i})"} for i in range(5)]
        first = self.answered(gateway, said)
        path = f"/v1/responses/{first['id']}/input_items"

        def page(query=""):
            listed = get(gateway, path + query).json
            self.assertEqual(listed["object"], "list")
            return [item["content"][0]["text"] for item in listed["data"]], listed
        texts, listed = page()
        self.assertEqual(texts, [f"print({i})" for i in (4, 3, 2, 1, 0)])
        self.assertEqual({(i["type"], i["status"], i["content"][0]["type"]) for i in listed["data"]},
                         {("message", "completed", "input_text")})
        self.assertEqual((listed["first_id"], listed["last_id"], listed["has_more"]),
                         (listed["data"][0]["id"], listed["data"][-1]["id"], False))
        texts, listed = page("?limit=2&order=asc")
        self.assertEqual((texts, listed["has_more"]), (["print(0)", "print(1)"], True))
        texts, listed = page(f"?limit=2&order=asc&after={listed['last_id']}")
        self.assertEqual((texts, listed["has_more"]), (["print(2)", "print(3)"], True))
        for query, param in (("?limit=0", "limit"), ("?limit=101", "limit"), ("?limit=x", "limit"), ("?order=up", "order"),
                             ("?after=none", "after")):
            reply = get(gateway, path + query)
            self.assertEqual((reply.status, reply.error["param"]), (400, param))

    def test_the_oldest_answers_go_where_an_identity_keeps_too_much(self):
        """64 MiB are kept for an identity; those of another are nothing to it."""
        upstream = self.upstream(forever=lambda connection: answer("ok"))
        gateway = self.serve(upstream, auth=KEYS)
        others = self.answered(gateway, key=B)["id"]
        ids = [self.answered(gateway, "x" * 900_000, key=A)["id"] for _ in range(76)]
        there = [get(gateway, f"/v1/responses/{i}", key=A).status for i in ids]
        self.assertEqual(there, sorted(there, reverse=True), "the oldest have gone")
        self.assertEqual((there[0], there[-1]), (404, 200))
        self.assertAlmostEqual(there.count(200), 74, delta=3)
        self.previous_missing(self.ask(gateway, key=A, previous_response_id=ids[0]), ids[0])
        self.assertEqual(get(gateway, f"/v1/responses/{others}", key=B).status, 200)

    def test_a_restart_forgets_and_says_so(self):
        gateway, upstream, first = self.conversation()
        self.previous_missing(self.ask(self.serve(upstream), previous_response_id=first["id"]), first["id"])

    def test_an_answer_cannot_be_cancelled_when_it_is_over(self):
        gateway, _, first = self.conversation()
        self.refused(post(gateway, f"/v1/responses/{first['id']}/cancel", {}), 400, "Cannot cancel a synchronous response.")

    def test_previous_response_ids_of_every_kind_are_answered(self):
        upstream = self.upstream()
        gateway = self.serve(upstream)
        for given in (5, True, [], {}, ["resp_x"]):
            self.refused(self.ask(gateway, previous_response_id=given), 400, "previous_response_id must be a string",
                         "previous_response_id")
        for given in ("x", "", "resp_sg\0", "resp_\r\nX: 1", "\x1b[2J", "r" * 100000, "💥" * 60):
            reply = self.ask(gateway, previous_response_id=given)
            self.assertEqual((reply.status, reply.error["code"]), (400, "previous_response_not_found"), given)
            self.assertLess(len(reply.body), 2000)
        self.assertEqual(upstream.requests, [])


class Turns(Responses):
    def serve_turns(self, *turns, **options):
        upstream = self.upstream(*turns)
        return self.serve(upstream, **options), upstream

    def test_max_tool_calls_is_kept_to(self):
        for stream in (False, True):
            make = streamed if stream else answer
            calls = [("a", "code_interpreter", {"code": "print(1)"}), ("b", "code_interpreter", {"code": "print(2)"})]
            for most, runs in ((0, 0), (1, 1), (2, 2)):
                gateway, upstream = self.serve_turns(make(calls=calls), make("ok"), make("ok"))
                response = self.answered(gateway, stream=stream, max_tool_calls=most)
                self.assertEqual(len(gateway.journal.of("run")), runs)
                kinds = [item["type"] for item in response["output"]]
                self.assertEqual(kinds, ["code_interpreter_call"] * runs + ["message"], "what may not run is not shown")
                self.assertEqual(response["max_tool_calls"], most)

    def test_max_tool_calls_that_is_no_number_is_refused(self):
        gateway, upstream = self.serve_turns()
        for most in (-1, 1.5, "1", True, [], {}, 1e30):
            self.refused(self.ask(gateway, max_tool_calls=most), 400, "max_tool_calls must be a whole number, 0 or more",
                         "max_tool_calls")
        self.assertEqual(upstream.requests, [])

    def c035_c037_reasoning_goes_back_as_it_came(self):  # C035, C037
        """Within a request, and in the next one by previous_response_id: strict servers refuse a call without its reasoning."""
        for stream in (False, True):
            make = streamed if stream else answer
            call = [("call_1", "code_interpreter", {"code": "print(1)"})]
            gateway, upstream = self.serve_turns(make("Let me see.", calls=call, reasoning="Hm.", encrypted="gAAAA-1"),
                                                 make("One.", reasoning="So.", encrypted="gAAAA-2"), make("Two."))
            first = self.answered(gateway, stream=stream, include=["reasoning.encrypted_content"])
            wanted = {key: value for key, value in reasoning_item("Hm.", 0, "gAAAA-1").items() if key != "id"}
            second = items_of(upstream.requests[1].json)
            self.assertEqual([item.get("type", "message") for item in second],
                             ["message", "reasoning", "message", "function_call", "function_call_output"])
            self.assertEqual({k: v for k, v in second[1].items() if k not in ("id", "status")}, wanted)
            self.answered(gateway, "more", stream=stream, previous_response_id=first["id"])
            third = items_of(upstream.requests[2].json)
            self.assertEqual([item["encrypted_content"] for item in third if item.get("type") == "reasoning"],
                             ["gAAAA-1", "gAAAA-2"])
            self.assertEqual([item["type"] for item in first["output"]],
                             ["reasoning", "message", "code_interpreter_call", "reasoning", "message"])

    def odd(self, change):
        """A streamed turn with two calls, its events changed, and what came of it."""
        whole = answer(calls=[("a", "code_interpreter", {"code": "print(1)"}), ("b", "code_interpreter", {"code": "print(2)"})])
        changed = [change(json.loads(json.dumps(event))) for event in events_of(whole)]
        gateway, upstream = self.serve_turns(Stream(events(*[e for e in changed if e is not None])), streamed("ok"))
        response = self.answered(gateway, stream=True, include=[OUTPUTS])
        self.assertEqual([text for _, text in results_of(upstream.requests[1].json)], ["1", "2"])
        self.assertEqual([(item["code"], item["outputs"][0]["logs"]) for item in response["output"][:2]],
                         [("print(1)", "1\n"), ("print(2)", "2\n")])
        self.assertEqual(len(gateway.journal.of("run")), 2)

    def c040_calls_without_indexes_stay_apart(self):  # C040
        self.odd(lambda event: {k: v for k, v in event.items() if k != "output_index"})

    def c041_calls_under_one_index_stay_apart(self):  # C041
        self.odd(lambda event: {**event, "output_index": 0} if "output_index" in event else event)

    def c041_calls_without_item_ids_stay_apart(self):  # C041
        self.odd(lambda event: {k: v for k, v in event.items() if k != "item_id"})

    def c039_interleaved_calls_of_the_client_keep_their_arguments(self):  # C039
        calls = [("call_f", "f", {"a": 1, "b": [2, 3]}), ("call_g", "g", {"part": "A-7"})]
        whole = list(events_of(answer(calls=calls)))
        first, second = ([e for e in whole if e.get("output_index") == i] for i in (0, 1))
        used = min(len(first), len(second)) - 3  # what is left: the last deltas, arguments.done, item.done
        mixed = [e for pair in zip(first[:used], second[:used]) for e in pair]
        stream = [*whole[:2], *mixed, *second[used:], *first[used:], whole[-1]]
        functions = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in "fg"]
        gateway, _ = self.serve_turns(Stream(events(*stream)))
        response = self.answered(gateway, stream=True, tools=[TOOL, *functions])
        self.assertEqual([(item["call_id"].split("_", 2)[2], item["name"], json.loads(item["arguments"]))
                          for item in response["output"]], calls, "each id carries the upstream's")
        self.assertEqual(gateway.journal.lines(), [])

    def test_calls_that_are_only_told_whole_run_once(self):
        self.odd(lambda event: event if event["type"] in ("response.created", "response.completed") else None)

    def test_calls_whose_pieces_are_left_out_run_once(self):
        self.odd(lambda event: None if event["type"].endswith(".delta") else event)

    def c088_outputs_are_there_where_they_are_asked_for(self):  # C088, C087
        for stream in (False, True):
            for include in ([], [OUTPUTS]):
                make = streamed if stream else answer
                rules = [{"when": "plot", "stdout": "done\n", "image": True}]
                gateway, _ = self.serve_turns(make(calls=[("a", "code_interpreter", {"code": "plot()"})]), make("ok"), rules=rules)
                outputs = self.answered(gateway, stream=stream, include=include)["output"][0]["outputs"]
                if not include:
                    self.assertIsNone(outputs)
                    continue
                self.assertEqual([output["type"] for output in outputs], ["logs", "image"])
                self.assertEqual(outputs[0]["logs"], "done\n")
                self.assertTrue(outputs[1]["url"].startswith("data:image/png;base64,iVBOR"), outputs[1]["url"][:40])

    def b14_no_output_is_an_empty_list(self):
        for stream in (False, True):
            make = streamed if stream else answer
            gateway, _ = self.serve_turns(make(calls=[("a", "code_interpreter", {"code": "x = 1"})]), make("ok"))
            self.assertEqual(self.answered(gateway, stream=stream, include=[OUTPUTS])["output"][0]["outputs"], [])

    def b42_input_is_text_a_list_or_absent(self):
        for given, sent in (({"input": "x"}, 1), ({"input": [{"role": "user", "content": "x"}]}, 1), ({"input": []}, 0), ({}, 0),
                            ({"input": None}, 0)):
            gateway, upstream = self.serve_turns(code("print(1)"), answer("ok"))
            reply = post(gateway, PATH, {"model": "mock", "tools": [TOOL], **given})
            self.assertEqual(reply.status, 200, (given, reply.body))
            self.assertEqual([item.get("type", "message") for item in items_of(upstream.requests[1].json)],
                             ["message"] * sent + ["function_call", "function_call_output"], given)
        gateway, upstream = self.serve_turns()
        for given in (5, True, {}, {"role": "user"}, 1e30):
            self.refused(self.ask(gateway, given), 400, "input must be a string or an array", "input")
        self.assertEqual(upstream.requests, [])


if __name__ == "__main__":
    main()
