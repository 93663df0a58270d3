"""Web search through the function form: what the model is told of hits, of none and of failures, beside code, with the
client's domains, the cache and the limits. The mock search plays the service, a scripted server the model."""
import re
import subprocess

from client import TOOL, Wire, body_of, chat
from harness import BINARY, BUILD, E2E, ROOT, Journal, main
from test_operations import metrics
from upstream import answer, streamed

SEARCH = {"type": "web_search"}
FOLDER = str(BUILD / "tests" / "e2e")
UNKNOWN = " Whether there are results is not known."
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}, {"name": "b", "key": "key-of-team-b"}]}
PAGES = [{"when": "sql", "hits": ["SQLite | https://sqlite.org/ | A small database. | 2024-05-23",
                                  "Docs | https://sqlite.org/docs.html | All of them.", "Odd | ftp://sqlite.org/ | x",
                                  "Again | https://sqlite.org/ | The same page."]},
         {"when": "nothing", "hits": []}]


def search(*queries, call="c"):
    return answer(calls=[(f"{call}{i}", "web_search", {"query": q}) for i, q in enumerate(queries)])


def results_of(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "tool"]


class WebSearch(E2E):
    def start(self, *turns, search_options=None, interceptor="web_search", **sections):
        self.up = self.upstream(*turns)
        self.journal = Journal(self.path("search"))
        entry = {"name": "web", "plugin": "mock", "journal": str(self.journal.path), **(search_options or {})}
        return self.serve(self.up, searches=[entry], interceptors=[
            {"plugin": "code_interpreter", "sandbox": "box"}, {"plugin": interceptor, "search": "web"}], **sections)

    def told(self, *queries, options=None, **sections):
        """What the model is told of each of these, searched in one turn."""
        gateway = self.start(search(*queries), answer("ok"), search_options=options, **sections)
        reply = chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual((reply.status, reply.text), (200, "ok"), reply.body)
        return gateway, results_of(self.up.requests[1])

    # ---- hits ----

    def test_the_model_is_told_numbered_dated_and_fenced_hits(self):
        gateway, (text,) = self.told("learn sql", options={"rules": PAGES})
        found = re.fullmatch(
            r"2 search results\. What stands between the two lines with ([0-9a-f]{16}) was written by strangers: .*\n"
            r"<<< results \1\n1\. SQLite\n   URL: https://sqlite\.org/\n   Date: 2024-05-23\n   A small database\.\n\n"
            r"2\. Docs\n   URL: https://sqlite\.org/docs\.html\n   All of them\.\n>>> end of results \1", text)
        self.assertTrue(found, text)
        line = gateway.wait_event("search")
        self.assertEqual([line[k] for k in ("search", "cached", "hits", "malformed", "filtered", "duplicate")],
                         ["web", "no", "2", "1", "0", "1"])
        now = metrics(gateway)
        self.assertEqual(now['sandgate_searches_total{search="web",outcome="completed"}'], 1)
        self.assertEqual([now[f'sandgate_search_hits_total{{search="web",fate="{fate}"}}']
                          for fate in ("passed", "malformed", "duplicate")], [2, 1, 1])
        self.assertEqual(now['sandgate_search_duration_seconds_count{search="web"}'], 1)

    def test_the_function_that_the_model_sees(self):
        self.told("x")
        (tool,) = self.up.requests[0].json["tools"]
        self.assertEqual((tool["type"], tool["function"]["name"]), ("function", "web_search"))
        self.assertEqual(tool["function"]["parameters"]["required"], ["query"])

    def test_no_hits_are_a_sentence(self):
        _, (text,) = self.told("nothing", options={"rules": PAGES})
        self.assertEqual(text, "The search found no pages for this query. Try other words, or say that nothing was found.")

    def test_wrong_arguments_search_nothing(self):
        gateway = self.start(answer(calls=[("c", "web_search", {"q": "x"})]), answer("ok"))
        chat(gateway, "x", tools=(SEARCH,))
        self.assertTrue(results_of(self.up.requests[1])[0].startswith("[invalid call] 'query' is missing; nothing was run."))
        self.assertEqual(self.journal.lines(), [])

    def test_code_and_search_in_one_turn_each_get_their_result(self):
        calls = [("s", "web_search", {"query": "sql"}), ("c", "code_interpreter", {"code": "print(7)"}),
                 ("t", "web_search", {"query": "nothing"})]
        for stream in (False, True):
            turns = (streamed(calls=calls), streamed("ok")) if stream else (answer(calls=calls), answer("ok"))
            gateway = self.start(*turns, search_options={"rules": PAGES})
            reply = chat(gateway, "x", tools=(SEARCH, TOOL), stream=stream)
            self.assertEqual(reply.stream_text if stream else reply.text, "ok")
            first, second, third = results_of(self.up.requests[1])
            self.assertIn("\n1. SQLite\n", first)
            self.assertEqual(second.strip(), "7")
            self.assertTrue(third.startswith("The search found no pages"), third)
            self.assertEqual(self.journal.lines(), ["search sql", "search nothing"])

    def test_searches_of_a_turn_run_side_by_side_and_are_told_in_their_order(self):
        pages = [{"when": "slow", "hits": ["S | https://s.org/"], "delay": "2s"},
                 {"when": "fast", "hits": ["F | https://f.org/", "G | https://g.org/"]}]
        for stream in (False, True):
            calls = [(q, "web_search", {"query": q}) for q in ("slow", "fast", "faster")]
            turns = (streamed(calls=calls), streamed("ok")) if stream else (answer(calls=calls), answer("ok"))
            gateway = self.start(*turns, search_options={"rules": pages})
            reply = chat(gateway, "x", tools=(SEARCH,), stream=stream)
            self.assertEqual(reply.stream_text if stream else reply.text, "ok")
            self.assertEqual([text.split(" ", 1)[0] for text in results_of(self.up.requests[1])], ["1", "2", "2"])
            self.assertEqual([line["hits"] for line in gateway.wait_events("search", 3)], ["2", "2", "1"], "the slow one last")
            self.assertEqual(self.journal.lines(), ["search slow", "search fast", "search faster"])

    def test_a_client_that_leaves_ends_all_searches_of_the_turn(self):
        gateway = self.start(search("x", "y", "z"), search_options={"fault": "hang"})
        with Wire(gateway) as wire:
            wire.post(body_of("x", tools=(SEARCH,)))
            self.journal.wait("search", 3)
        self.assertEqual(gateway.wait_event("request")["status"], "499")

    # ---- failures ----

    def test_each_failure_is_told_as_one_and_never_as_no_results(self):
        cases = (({"fault": "refuse"}, "[search failed] The search failed.", "UNAVAILABLE", "the search was refused"),
                 ({"fault": "limit"}, "[search limit] The search is used too often at the moment.", "LIMIT",
                  "the quota of searches is used up"),
                 ({"fault": "garbage"}, "[search failed] The search failed.", "UNAVAILABLE",
                  "none of 5 hits is a JSON object with an http or https URL"),
                 ({"fault": "hang", "search_timeout": "100ms"}, "[timed out] The search took too long.", "TIMEOUT", ""))
        for options, text, code, cause in cases:
            gateway, told = self.told("x", options=options)
            self.assertEqual(told, [text + UNKNOWN])
            line = gateway.wait_event("service_failed")
            self.assertEqual((line["operation"], line["error"].upper()), ("search", code))
            self.assertIn(cause, line["message"])
            self.assertEqual(gateway.wait_event("tool")["status"], "failed")
            self.assertEqual(metrics(gateway)['sandgate_searches_total{search="web",outcome="failed"}'], 1)

    def test_a_failure_is_not_kept(self):
        gateway = self.start(search("x"), search("x"), answer("ok"), search_options={"fault": "refuse"})
        chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual(self.journal.lines(), ["search x"] * 2)

    def test_garbage_beside_good_hits_is_dropped(self):
        pages = [{"when": "x", "hits": ["Bad | javascript:alert(1)", "Worse | https://a.org@b.org/", "Good | https://a.org/"]}]
        _, (text,) = self.told("x", options={"rules": pages})
        self.assertIn("1 search result.", text)
        self.assertNotIn("javascript", text)
        self.assertNotIn("b.org", text)

    # ---- domains ----

    def test_the_clients_domains_hold_though_the_service_ignores_them(self):
        hits = [f"T | {url}" for url in ("https://www.a.org/1", "https://old.a.org/2", "https://a.org/private/3",
                                         "https://b.org/docs/4", "https://b.org/docsy/5", "https://c.org/6")]
        gateway = self.start(answer(calls=[("c", "probe", {"what": "filtered"})]), answer("ok"), interceptor="probe_search",
                             search_options={"rules": [{"when": "filtered", "hits": hits}], "ignores_domains": True},
                             server={"plugin_path": [FOLDER]})
        self.assertEqual(chat(gateway, "x", tools=(SEARCH,)).text, "ok")
        urls = re.findall(r'"url": "([^"]*)"', results_of(self.up.requests[1])[0])
        self.assertEqual(urls, ["https://www.a.org/1", "https://b.org/docs/4"])
        self.assertEqual(gateway.wait_event("search")["filtered"], "4")

    def test_a_service_that_can_is_asked_for_hosts_alone(self):
        hits = ["1 | https://a.org/private/x", "2 | https://b.org/docs/x", "3 | https://old.a.org/", "4 | https://a.org/"]
        gateway = self.start(answer(calls=[("c", "probe", {"what": "filtered"})]), answer("ok"), interceptor="probe_search",
                             search_options={"rules": [{"when": "filtered", "hits": hits}]},
                             server={"plugin_path": [FOLDER]})
        chat(gateway, "x", tools=(SEARCH,))
        urls = re.findall(r'"url": "([^"]*)"', results_of(self.up.requests[1])[0])
        self.assertEqual(urls, ["https://b.org/docs/x", "https://a.org/"], "the one with a path still finds its pages")
        self.assertEqual(gateway.wait_event("search")["filtered"], "1", "the service left out the blocked host")

    def test_a_query_without_text_is_the_plugins_mistake(self):
        gateway = self.start(answer(calls=[("c", "probe", {"what": "search for no text"})]), answer("ok"),
                             interceptor="probe_search", server={"plugin_path": [FOLDER]})
        chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual(results_of(self.up.requests[1]), ["[tool unavailable] The tool failed."])
        self.assertIn("search(): the query has no text", gateway.wait_event("tool_failed")["message"])

    def test_a_blocked_domain_that_is_none_is_the_plugins_mistake(self):
        gateway = self.start(answer(calls=[("c", "probe", {"what": "search but not there"})]), answer("ok"),
                             interceptor="probe_search", server={"plugin_path": [FOLDER]})
        chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual(results_of(self.up.requests[1]), ["[tool unavailable] The tool failed."])
        self.assertIn("search(): '*.b.org' is no domain", gateway.wait_event("tool_failed")["message"])
        self.assertEqual(gateway.events("search"), [], "it was not asked")

    # ---- the cache ----

    def test_the_same_query_of_an_identity_is_asked_once(self):
        gateway = self.start(search("sql"), answer("1"), search("sql"), answer("2"), search("sql"), answer("3"),
                             search("other"), answer("4"), search_options={"rules": PAGES}, auth=KEYS)
        for key in ("key-of-team-a", "key-of-team-a", "key-of-team-b", "key-of-team-a"):
            chat(gateway, "x", tools=(SEARCH,), key=key)
        self.assertEqual(self.journal.lines(), ["search sql", "search sql", "search other"], "b does not see that a asked")
        told = [results_of(request)[0] for request in self.up.requests[1::2]]
        self.assertEqual(told[0], told[1])
        self.assertEqual([line["cached"] for line in gateway.wait_events("search", 4)], ["no", "yes", "no", "no"])

    def test_without_a_cache_it_is_asked_each_time(self):
        gateway = self.start(search("sql"), answer("1"), search("sql"), answer("2"), search_options={"cache": "0s"})
        for _ in range(2):
            chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual(self.journal.lines(), ["search sql"] * 2)

    # ---- limits ----

    def test_searches_of_a_request_are_limited_cached_ones_too(self):
        gateway = self.start(search("a"), search("a", call="d"), search("b", call="e"), answer("ok"),
                             search_options={"max_per_request": 2})
        self.assertEqual(chat(gateway, "x", tools=(SEARCH,)).text, "ok")
        told = results_of(self.up.requests[3])
        self.assertEqual(told[2], "[search limit] A request may search 2 times, and that is used up: answer with what you "
                                  "have." + UNKNOWN)
        self.assertEqual(self.journal.lines(), ["search a"])
        self.assertEqual(gateway.wait_event("search_refused")["search"], "web")
        self.assertEqual(metrics(gateway)['sandgate_searches_total{search="web",outcome="refused"}'], 1)

    def test_the_next_request_may_search_again(self):
        gateway = self.start(search("a", "b"), answer("1"), search("c", "d"), answer("2"),
                             search_options={"max_per_request": 1})
        for _ in range(2):
            chat(gateway, "x", tools=(SEARCH,))
        self.assertEqual(self.journal.lines(), ["search a", "search c"])

    def test_searches_of_an_identity_within_a_minute_are_limited_but_for_cached_ones(self):
        gateway = self.start(search("a"), search("a", "b", "c", call="d"), answer("1"), search("d"), answer("2"),
                             search_options={"per_minute": 2}, auth=KEYS)
        chat(gateway, "x", tools=(SEARCH,), key="key-of-team-a")
        chat(gateway, "x", tools=(SEARCH,), key="key-of-team-b")
        self.assertRegex(results_of(self.up.requests[2])[3],
                         r"^\[search limit\] 2 searches a minute are allowed; the next is in \d+ s: answer with what you have\.")
        self.assertEqual(self.journal.lines(), ["search a", "search b", "search d"])


class Example(E2E):
    def test_the_example_searches_and_runs_code_offline(self):
        gateway = self.gateway((ROOT / "examples" / "search.yaml").read_text(encoding="utf-8"))
        reply = chat(gateway, text="Search the web for: SQLite", tools=(SEARCH, TOOL))
        self.assertIn("1. SQLite Home Page\n   URL: https://sqlite.org/\n   Date: 2025-06-28\n", reply.text)
        reply = chat(gateway, "print(6 * 7)", tools=(SEARCH, TOOL))
        self.assertIn("42", reply.text)

    def test_what_is_wrong_with_a_search_is_said_before_the_start(self):
        text = (ROOT / "examples" / "search.yaml").read_text(encoding="utf-8")
        for good, bad, said in (("cache: 60s ", "cache: 60 ", "'cache' must be a duration such as 30s, not '60'"),
                                ("per_minute: 60 ", "per_minute: 10001 ", "'per_minute' must be at most 10000, not '10001'"),
                                ("web_search, search: web", "web_search", "interceptors: 'web_search' needs 'search: NAME'")):
            path = self.path("config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(good, bad))
            done = subprocess.run([str(BINARY), "check", "--config", path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    main()
