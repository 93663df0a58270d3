"""The hosted search on Responses with the real binary and the mock search: its items and citations, whole and streamed, beside
code, kept and come back to; and with the unmodified official clients."""
import responses_upstream
import strict_responses
from client import get, post
from forms import RESPONSES as FORM
from harness import ROOT, main
from official import Official
from responses_upstream import answer, calls_of, results_of, streamed
from searching import SEARCH, Searching

CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
SOURCES = "web_search_call.action.sources"
SAID = "42 pages? One: ([SQLite](https://sqlite.org/))."
WHOLE = {"type": "search", "query": "learn sql", "queries": ["learn sql"]}
FOUND = [{"type": "url", "url": "https://sqlite.org/"}, {"type": "url", "url": "https://sqlite.org/docs.html"}]
UNKNOWN = " Whether there are results is not known."


def search(*queries):
    return [(f"call_{i}", "web_search", {"query": query}) for i, query in enumerate(queries)]


class WebSearchResponses(Searching):
    def turns(self, stream, *turns):
        """A gateway whose upstream makes these turns: a text, or a list of calls."""
        turn = streamed if stream else answer
        self.up = self.upstream(*[turn(one) if isinstance(one, str) else turn(calls=one) for one in turns])
        return self.up

    def ask(self, gateway, stream=False, text="x", tools=(SEARCH, CODE), **more):
        body = {"model": "mock", "input": text, "tools": list(tools), "stream": stream, **more}
        reply = post(gateway, FORM.path, body)
        self.assertEqual(reply.status, 200, reply.body)
        return strict_responses.check(reply.body) if stream else strict_responses.check_response(reply.json)

    def told(self, request):
        return [text for _, text in results_of(self.up.requests[request].json)]

    def cited(self, response):
        """(cited text, URL) of each citation of the last item."""
        part = response["output"][-1]["content"][0]
        return [(part["text"][a["start_index"]:a["end_index"]], a["title"], a["url"]) for a in part["annotations"]]

    # ---- items and citations ----

    def test_c030_the_models_query_is_searched_and_its_pages_are_cited(self):
        text = "Perform a web search for the query given by the tool. (unrelated filler: zebra crossing)"
        for stream in (False, True):
            for include in ([], [SOURCES]):
                gateway = self.start(self.turns(stream, search("learn sql"), SAID))
                response = self.ask(gateway, stream, text, include=include)
                self.assertEqual([item["type"] for item in response["output"]], ["web_search_call", "message"])
                found = response["output"][0]
                self.assertEqual((found["id"][:5], found["status"]), ("ws_sg", "completed"))
                self.assertEqual(found["action"], {**WHOLE, "sources": FOUND} if include else WHOLE)
                self.assertEqual(self.cited(response), [("([SQLite](https://sqlite.org/))", "SQLite", "https://sqlite.org/")])
                self.assertEqual(self.searched(), ["learn sql"])
                self.assertIn("1. SQLite\n   URL: https://sqlite.org/\n", self.told(1)[0])
                self.assertEqual(response["tools"], [SEARCH, CODE])

    def test_c112_citations_count_code_points(self):
        for stream in (False, True):
            gateway = self.start(self.turns(stream, search("weather"), "🌦 東京は晴れ [1] ok"))
            response = self.ask(gateway, stream)
            self.assertEqual(self.cited(response), [("[1]", "Wetter", "https://wetter.example/tokyo")])

    def test_code_and_searches_in_one_turn_and_turn_by_turn(self):
        run = [("call_c", "code_interpreter", {"code": "print(6 * 7)"})]
        for stream in (False, True):
            for turns in ([search("sql") + run + [("call_n", "web_search", {"query": "nothing"})]],
                          [search("sql"), run, search("nothing")]):
                gateway = self.start(self.turns(stream, *turns, SAID))
                response = self.ask(gateway, stream, include=[SOURCES, "code_interpreter_call.outputs"])
                first, ran, last, said = response["output"]
                self.assertEqual((first["action"]["sources"], last["action"]["sources"]), (FOUND, []))
                self.assertEqual(ran["outputs"], [{"type": "logs", "logs": "42\n"}])
                self.assertEqual(said["content"][0]["text"], SAID)
                self.assertEqual(len(self.cited(response)), 1)
                told = self.told(len(turns))
                self.assertIn("\n1. SQLite\n", told[0])
                self.assertEqual(told[1], "42")
                self.assertIn("found no pages", told[2])
                self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_a_search_that_fails_is_a_failed_item_and_the_model_knows(self):
        for stream in (False, True):
            for options, label in (({"fault": "refuse"}, "[search failed] The search failed."),
                                   ({"fault": "hang", "search_timeout": "100ms"}, "[timed out] The search took too long.")):
                gateway = self.start(self.turns(stream, search("q"), "Not known."), {"rules": [], **options})
                response = self.ask(gateway, stream, include=[SOURCES])
                failed, said = response["output"]
                self.assertEqual((failed["status"], failed["action"]),
                                 ("failed", {"type": "search", "query": "q", "queries": ["q"], "sources": []}))
                self.assertEqual(said["content"][0]["annotations"], [])
                self.assertEqual(self.told(1), [label + UNKNOWN])

    def test_a_search_over_a_limit_and_one_without_a_query_are_failed_items(self):
        for stream in (False, True):
            wrong = [("call_w", "web_search", {"q": 1})]
            gateway = self.start(self.turns(stream, search("sql", "more") + wrong, "ok"), {"max_per_request": 1})
            response = self.ask(gateway, stream)
            items = response["output"][:3]
            self.assertEqual([item["status"] for item in items], ["completed", "failed", "failed"])
            self.assertEqual([item["action"]["queries"] for item in items], [["sql"], ["more"], []])
            self.assertEqual(self.searched(), ["sql"])

    def test_the_clients_limit_of_calls_counts_searches(self):
        gateway = self.start(self.turns(False, search("sql", "nothing"), "ok"))
        response = self.ask(gateway, max_tool_calls=1)
        self.assertEqual([item["type"] for item in response["output"]], ["web_search_call", "message"])
        self.assertEqual(self.searched(), ["sql"])

    # ---- what the client asks ----

    def test_the_clients_domains_hold(self):
        for kind in ("web_search", "web_search_2025_08_26", "web_search_preview"):
            for filters in ({"allowed_domains": ["a.org"]}, {"blocked_domains": ["b.org"]}):
                gateway = self.start(self.turns(False, search("both"), "ok"), {"ignores_domains": True})
                response = self.ask(gateway, tools=[{"type": kind, "filters": filters}], include=[SOURCES])
                self.assertEqual(response["output"][0]["action"]["sources"], [{"type": "url", "url": "https://www.a.org/1"}])
                self.assertNotIn("b.org", self.told(1)[0])

    def test_an_option_that_cannot_be_heeded_is_refused(self):
        gateway = self.start(self.upstream())
        reply = post(gateway, FORM.path, {"model": "mock", "input": "x", "tools": [{**SEARCH, "search_context_size": "huge"}]})
        self.assertEqual((reply.status, reply.error["param"], reply.error["message"]),
                         (400, "tools[0].search_context_size",
                          'tools[0].search_context_size must be "low", "medium" or "high"'))

    def test_the_search_can_be_forced(self):
        gateway = self.start(self.turns(False, search("sql"), "ok"))
        response = self.ask(gateway, tool_choice={"type": "web_search"})
        self.assertEqual([request.json["tool_choice"] for request in self.up.requests],
                         [{"type": "function", "name": "web_search"}, "auto"])
        self.assertEqual(response["tool_choice"], {"type": "web_search"})

    # ---- what comes back ----

    def test_a_conversation_goes_on_with_what_was_found(self):
        """By the response, by references and by the items themselves the model gets what it was told then."""
        for stream in (False, True):
            gateway = self.start(self.turns(stream, search("learn sql"), SAID, "a", "b", "c"))
            first = self.ask(gateway, stream)
            told, message = self.told(1), first["output"][1]
            items = [{"role": "user", "content": "x"}, *first["output"], {"role": "user", "content": "and?"}]
            references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
            for i, more in enumerate(({"text": "and?", "previous_response_id": first["id"]}, {"text": items},
                                      {"text": [items[0], *references, items[-1]]}), start=2):
                self.ask(gateway, stream, **more)
                body = self.up.requests[i].json
                self.assertEqual([(name, arguments) for _, name, arguments in calls_of(body)],
                                 [("web_search", {"query": "learn sql"})])
                self.assertEqual(self.told(i), told)
                self.assertIn(message["content"][0]["annotations"][0], body["input"][3]["content"][0]["annotations"])
            self.assertEqual(self.searched(), ["learn sql"])

    def test_a_kept_answer_shows_sources_to_who_asks_for_them(self):
        gateway = self.start(self.turns(False, search("learn sql"), SAID))
        first = self.ask(gateway)
        path = f"/v1/responses/{first['id']}"
        self.assertEqual(get(gateway, path).json, first)
        later = get(gateway, f"{path}?include[]={SOURCES}").json
        self.assertEqual(later["output"][0]["action"], {**WHOLE, "sources": FOUND})
        again = strict_responses.check(get(gateway, f"{path}?stream=true&include[]={SOURCES}").body)
        self.assertEqual(again["output"], later["output"])

    def test_the_example_searches_natively_and_its_model_takes_the_history(self):
        """The model of the example checks what it is sent, as strict servers do; its text repeats what was found."""
        gateway = self.gateway((ROOT / "examples" / "search.yaml").read_text(encoding="utf-8"))
        for stream in (False, True):
            first = self.ask(gateway, stream, "Search the web for: SQLite", include=[SOURCES])
            urls = [source["url"] for source in first["output"][0]["action"]["sources"]]
            self.assertIn("https://sqlite.org/", urls)
            cited = self.cited(first)
            self.assertEqual([url for _, _, url in cited], urls)
            self.assertEqual([text for text, _, _ in cited], urls)
            own = [{"role": "user", "content": "x"}, *first["output"], {"role": "user", "content": "Thanks."}]
            for more in ({"text": "Thanks.", "previous_response_id": first["id"]}, {"text": own}):
                self.assertEqual(self.ask(gateway, stream, **more)["output"][0]["type"], "message")


class OfficialSearch(Official, Searching):
    """OpenAI's client and the `ai` package."""
    form = responses_upstream

    def check(self, program, *parts, texts=(SAID,)):
        self.program = program
        upstream = self.upstream(streamed(calls=search("learn sql")), *[streamed(text) for text in texts])
        self.node(self.start(upstream), *parts)
        self.assertEqual(self.searched(), ["learn sql"])
        return upstream.requests[-1].json

    def test_openai_reads_a_search_and_its_citation(self):
        for part in ("search", "search_stream", "search_accumulate"):
            with self.subTest(part):
                self.check("responses.mjs", part)

    def test_ai_reads_a_search_and_its_source(self):
        for part in ("whole", "stream"):
            with self.subTest(part):
                self.check("ai.mjs", "responses_search", part)

    def test_ai_sends_a_search_back(self):
        body = self.check("ai.mjs", "responses_search", "conversation", texts=(SAID, "Again: 42."))
        self.assertEqual([(name, arguments) for _, name, arguments in calls_of(body)], [("web_search", {"query": "learn sql"})])
        self.assertIn("1. SQLite\n   URL: https://sqlite.org/\n", results_of(body)[0][1])


if __name__ == "__main__":
    main()
