"""The hosted search on chat as clients ask for it and read its answers: what they ask is heeded, the answer cites what it names,
and the limits of client and operator hold. The mock search plays the service, a scripted server the model."""
import re

from client import chat
from harness import main
from searching import SEARCH, Searching
from upstream import answer, streamed

KEYS = {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}, {"name": "b", "key": "key-of-team-b"}]}
PAGES = [{"when": "Lyon", "hits": ["Weather | https://weather.test/lyon | Sunny. | 2026-11-30"]},
         {"when": "many", "hits": [f"Page {i} | https://p{i}.{'a' if i % 2 else 'b'}.test/x | {'long ' * 500}" for i in range(20)]}]


def calls(*queries, call="c"):
    return [(f"{call}{i}", "web_search", {"query": query}) for i, query in enumerate(queries)]


def results_of(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "tool"]


class ChatSearching(Searching):
    def begin(self, *turns, search=None, **options):
        self.up = self.upstream(*turns)
        return self.start(self.up, {"rules": PAGES, **(search or {})}, **options)

    def told(self, tools=(), search=None, **asked):
        """What the model is told of one search for which the client asks so."""
        gateway = self.begin(answer(calls=calls("many")), answer("ok"), search=search)
        reply = chat(gateway, "x", tools=tools, **asked)
        self.assertEqual((reply.status, reply.text), (200, "ok"), reply.body)
        return results_of(self.up.requests[1])[0]


class Options(ChatSearching):
    def test_the_domains_of_the_client_hold_whatever_the_service_does(self):
        for filters, last in (({"allowed_domains": ["a.test"]}, "a"), ({"blocked_domains": ["a.test"]}, "b")):
            for ignores in (False, True):
                text = self.told([{**SEARCH, "filters": filters}], search={"ignores_domains": ignores})
                urls = re.findall(r"URL: https://p\d+\.(\w)\.test", text)
                self.assertTrue(urls, text)
                self.assertEqual(set(urls), {last}, text)

    def test_the_context_size_says_how_many_hits_and_how_much_of_each(self):
        sizes = {}
        for size, hits in (("low", 3), ("medium", 5), ("high", 10)):
            in_entry = self.told([{**SEARCH, "search_context_size": size}])
            in_options = self.told(web_search_options={"search_context_size": size})
            for text in (in_entry, in_options):
                self.assertTrue(text.startswith(f"{hits} search results."), text[:80])
            sizes[size] = len(re.search(r"\n   ((?:long )+)", in_entry)[1])
        self.assertLess(sizes["low"], sizes["medium"])
        self.assertLess(sizes["medium"], sizes["high"])

    def test_what_cannot_be_heeded_is_refused_before_anything_is_asked(self):
        gateway = self.begin()
        for asked, param in (({"tools": [{**SEARCH, "filters": {"allowed_domains": "a.test"}}]}, "tools[0].filters.allowed_domains"),
                             ({"tools": (), "web_search_options": {"search_context_size": "tiny"}},
                              "web_search_options.search_context_size")):
            reply = chat(gateway, "x", **asked)
            self.assertEqual((reply.status, reply.error["param"], reply.error["type"]), (400, param, "invalid_request_error"))
        self.assertEqual(self.up.requests, [])


class Citations(ChatSearching):
    def ask(self, stream, text, show_runs=False):
        """(the content, its annotations, the last of the stream's chunks) of an answer with this text behind a search."""
        searching = calls("Lyon weather today")
        turns = (streamed(calls=searching), streamed(text)) if stream else (answer(calls=searching), answer(text))
        gateway = self.begin(*turns, show_runs=show_runs)
        reply = chat(gateway, "x", tools=(SEARCH,), stream=stream)
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(self.searched(), ["Lyon weather today"], "one search")
        self.assertNotIn(b"tool_calls", reply.body)
        if not stream:
            message = reply.json["choices"][0]["message"]
            self.assertEqual(reply.finish, "stop")
            return message["content"], message.get("annotations"), message.get("executed_tools")
        choices = [choice for event in reply.events[:-1] for choice in event["choices"]]
        self.assertEqual([c["finish_reason"] for c in choices if c["finish_reason"]], ["stop"])
        told = {name: [c["delta"][name] for c in choices if name in c["delta"]] for name in ("annotations", "executed_tools")}
        for name, lists in told.items():
            self.assertLessEqual(len(lists), 1, name)
        return reply.stream_text, *(lists[0] if lists else None for lists in told.values())

    def c003_c112_a_search_is_carried_out_and_cited_streamed_or_not(self):  # C003, C112
        text = "🌦 リヨンは晴れ [1], so says [Weather](https://weather.test/lyon). 🌞"
        for stream in (False, True):
            content, annotations, runs = self.ask(stream, text)
            self.assertEqual(content, text)
            self.assertIsNone(runs)
            self.assertEqual([(a["type"], a["url_citation"]["title"], a["url_citation"]["url"]) for a in annotations],
                             [("url_citation", "Weather", "https://weather.test/lyon")] * 2)
            self.assertEqual([text[a["url_citation"]["start_index"]:a["url_citation"]["end_index"]] for a in annotations],
                             ["[1]", "[Weather](https://weather.test/lyon)"])

    def test_an_answer_that_names_no_page_has_no_list(self):
        for stream in (False, True):
            self.assertEqual(self.ask(stream, "Sunny [7], https://other.test/lyon."), ("Sunny [7], https://other.test/lyon.", None,
                                                                                      None))

    def test_searches_are_listed_where_runs_are_shown(self):
        for stream in (False, True):
            _, _, [run] = self.ask(stream, "Sunny.", show_runs=True)
            self.assertRegex(run.pop("id"), "^ws_sg[0-9a-f]{32}$")
            self.assertEqual(run, {"index": 0, "type": "web_search", "container_id": None,
                                   "arguments": '{"query": "Lyon weather today"}',
                                   "output": "Weather\nhttps://weather.test/lyon\nSunny.\n"})

    def test_an_answer_that_comes_back_is_taken_without_its_citations(self):
        turns = (answer(calls=calls("Lyon")), answer("Sunny [1]."), answer("ok"))
        gateway = self.begin(*turns)
        reply = chat(gateway, "x", tools=(SEARCH,))
        message = reply.json["choices"][0]["message"]
        self.assertTrue(message["annotations"])
        again = chat(gateway, tools=(SEARCH,), messages=[{"role": "user", "content": "x"}, message, {"role": "user", "content": "y"}])
        self.assertEqual(again.text, "ok")
        self.assertEqual(self.up.requests[2].json["messages"][1], {"role": "assistant", "content": "Sunny [1]."})


class Limits(ChatSearching):
    def refused(self, uses, search, *queries):
        """How many of the searches were made, and what the model was told of the others."""
        tool = {**SEARCH, "max_uses": uses} if uses else SEARCH
        gateway = self.begin(answer(calls=calls(*queries)), answer("ok"), search=search)
        self.assertEqual(chat(gateway, "x", tools=(tool,)).text, "ok")
        return len(self.searched()), [t for t in results_of(self.up.requests[1]) if t.startswith("[search limit]")]

    def test_of_the_clients_limit_and_the_operators_the_lower_one_holds(self):
        theirs = "[search limit] The client allows 1 searches in this request, and they are used up: answer with what you have."
        ours = "[search limit] A request may search 2 times, and that is used up: answer with what you have."
        for uses, search, made, said in ((1, {}, 1, theirs), (1, {"max_per_request": 2}, 1, theirs),
                                         (3, {"max_per_request": 2}, 2, ours), (None, {"max_per_request": 2}, 2, ours)):
            done, refused = self.refused(uses, search, "a", "b", "c")
            self.assertEqual(done, made)
            self.assertEqual(len(refused), 3 - made)
            for text in refused:
                self.assertTrue(text.startswith(said), text)

    def test_a_limit_is_no_end_the_model_answers_streamed_too(self):
        gateway = self.begin(streamed(calls=calls("Lyon")), streamed(calls=calls("b", call="d")), streamed("As found [1]."))
        reply = chat(gateway, "x", tools=({**SEARCH, "max_uses": 1},), stream=True)
        self.assertEqual(reply.stream_text, "As found [1].")
        cited = [c["delta"]["annotations"] for e in reply.events[:-1] for c in e["choices"] if "annotations" in c["delta"]]
        self.assertEqual([[a["url_citation"]["url"] for a in one] for one in cited], [["https://weather.test/lyon"]],
                         "a refused search makes no number ambiguous")

    def test_each_identity_has_its_searches_within_a_minute(self):
        gateway = self.begin(*[answer(calls=calls(q)) if q else answer("ok") for q in ("a", "", "b", "", "c", "", "d", "")],
                             search={"per_minute": 1}, auth=KEYS)
        for key in ("a", "a", "b", "b"):
            self.assertEqual(chat(gateway, "x", tools=(SEARCH,), key=f"key-of-team-{key}").text, "ok")
        told = [results_of(request)[0] for request in self.up.requests[1::2]]
        limited = r"^\[search limit\] 1 searches a minute are allowed; the next is in \d+ s"
        self.assertEqual([bool(re.search(limited, text)) for text in told], [False, True, False, True], told)
        self.assertEqual(self.searched(), ["a", "c"])


if __name__ == "__main__":
    main()
