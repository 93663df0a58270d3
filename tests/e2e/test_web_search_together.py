"""Code and search in one request, in every API form, streamed and not: one table of what the model does and what must come of it.
What is streamed is read by the strict readers.

A row has `turns`, what the upstream says (scenarios.py); what else it names must hold:

  search, sandbox, sections, functions   configuration of the mock search and sandbox, and of the gateway; the client's function
  uses       the most searches that the client allows
  told       the results that the upstream's last request carries: a text, or a regular expression
  happened   what the client is shown in its order: (kind, what, "ok", "failed" or "not run"), or ("text", what) in the forms
             that keep texts of turns apart
  texts      one for each turn that has text
  cites      (URL, the part of the text that cites it) of the whole answer
  searches, runs                         how many queries and programs the services got
  calls, then                            of the client's function; the row of the request that brings its result"""
import json
import re

from forms import CHAT, FORMS, MESSAGES, RESPONSES
from harness import main
from scenario_stage import Player
from scenarios import INVALID, LIMIT, NOT_MADE, Call, Say
from searching import SEARCH, Searching

PAGES = [{"when": "sql", "hits": ["SQLite | https://sqlite.org/ | A small database. | 2024-05-23"]},
         {"when": "docs", "hits": ["Docs | https://sqlite.org/docs.html | All of them."]},
         {"when": "stuck", "fault": "hang"}, {"when": "broken", "fault": "refuse"}, {"when": "nothing", "hits": []}]
SQL, DOCS = re.compile(r"\n1\. SQLite\n   URL: https://sqlite\.org/\n"), re.compile(r"\n1\. Docs\n")
NONE = re.compile("^The search found no pages")
FAILED, STUCK = (f"[{label} Whether there are results is not known." for label in (
    "search failed] The search failed.", "timed out] The search took too long."))


def find(query):
    return "web_search", {"query": query}


ROWS = {
    "both kinds in one turn happen in the order of the calls": {  # C029
        "turns": [Call(find("sql"), (None, {"code": "print(7)"}), find("nothing")), Say("Seven.")],
        "told": [SQL, "7", NONE], "texts": ["Seven."], "searches": 2, "runs": 1, "cites": [],
        "happened": [("search", "sql", "ok"), ("code", "print(7)", "ok"), ("search", "nothing", "ok"), ("text", "Seven.")]},
    "code before searches in one turn": {
        "turns": [Call((None, {"code": "print(7)"}), find("sql"), find("docs")), Say("https://sqlite.org/docs.html, 7.")],
        "told": ["7", SQL, DOCS], "searches": 2, "runs": 1, "texts": ["https://sqlite.org/docs.html, 7."],
        "cites": [("https://sqlite.org/docs.html", "https://sqlite.org/docs.html")],
        "happened": [("code", "print(7)", "ok"), ("search", "sql", "ok"), ("search", "docs", "ok"),
                     ("text", "https://sqlite.org/docs.html, 7.")]},
    "turns that alternate": {
        "turns": [Call(find("sql"), text="I search."), Call((None, {"code": "x = 41"}), text="I compute."), Call(find("docs")),
                  Call((None, {"code": "print(x + 1)"})), Say("🌦 42, see [the site](https://sqlite.org/).")],
        "told": [SQL, "[no output]", DOCS, "42"], "searches": 2, "runs": 2,
        "texts": ["I search.", "I compute.", "🌦 42, see [the site](https://sqlite.org/)."],
        "cites": [("https://sqlite.org/", "[the site](https://sqlite.org/)")],
        "happened": [("text", "I search."), ("search", "sql", "ok"), ("text", "I compute."), ("code", "x = 41", "ok"),
                     ("search", "docs", "ok"), ("code", "print(x + 1)", "ok"),
                     ("text", "🌦 42, see [the site](https://sqlite.org/).")]},
    "a search that fails lets code go on": {
        "turns": [Call(find("broken"), (None, {"code": "print(1)"})), Call((None, {"code": "print(2)"})), Say("1 and 2.")],
        "told": [FAILED, "1", "2"], "texts": ["1 and 2."], "searches": 1, "runs": 2, "cites": [],
        "happened": [("search", "broken", "failed"), ("code", "print(1)", "ok"), ("code", "print(2)", "ok"), ("text", "1 and 2.")]},
    "a search that is stuck is a result like others": {  # C110
        "turns": [Call(find("stuck")), Call((None, {"code": "print(1)"})), Say("Without it.")],
        "search": {"search_timeout": "1s"}, "told": [STUCK, "1"], "texts": ["Without it."], "searches": 1, "runs": 1,
        "happened": [("search", "stuck", "failed"), ("code", "print(1)", "ok"), ("text", "Without it.")]},
    "a sandbox that cannot be made lets searches go on": {
        "turns": [Call((None, {"code": "print(1)"}), find("sql")), Say("As found [1].")], "sandbox": {"create_fault": "refuse"},
        "told": [NOT_MADE, SQL], "texts": ["As found [1]."], "searches": 1, "runs": 0, "cites": [("https://sqlite.org/", "[1]")],
        "happened": [("code", "print(1)", "failed"), ("search", "sql", "ok"), ("text", "As found [1].")]},
    "searches that are used up are no end of code": {
        "turns": [Call(find("sql")), Call(find("docs"), (None, {"code": "print(1)"})), Say("One.")],
        "search": {"max_per_request": 1}, "told": [SQL, re.compile(r"^\[search limit\] A request may search 1 times"), "1"],
        "texts": ["One."], "searches": 1, "runs": 1,
        "happened": [("search", "sql", "ok"), ("search", "docs", "failed"), ("code", "print(1)", "ok"), ("text", "One.")]},
    "the client's own limit of searches": {
        "turns": [Call(find("sql"), find("docs"), (None, {"code": "print(1)"})), Say("One.")], "uses": 1,
        "told": [SQL, re.compile(r"^\[search limit\] The client allows 1 searches"), "1"], "texts": ["One."], "searches": 1, "runs": 1,
        "happened": [("search", "sql", "ok"), ("search", "docs", "failed"), ("code", "print(1)", "ok"), ("text", "One.")]},
    "a limit of calls counts both kinds": {
        "turns": [Call(find("sql"), (None, {"code": "print(1)"}), find("docs")), Say("So far.")],
        "sections": {"loop": {"max_calls": 2}}, "told": [SQL, "1", LIMIT], "texts": ["So far."], "searches": 1, "runs": 1,
        "happened": [("search", "sql", "ok"), ("code", "print(1)", "ok"), ("search", "docs", "not run"), ("text", "So far.")]},
    "arguments that are wrong search nothing": {
        "turns": [Call(("web_search", {"q": "sql"}), (None, {"code": "print(1)"})), Say("One.")],
        "told": [INVALID, "1"], "texts": ["One."], "searches": 0, "runs": 1, "calls": []},
    "a client's function beside both, and the next request with its result": {
        "turns": [Call(find("sql"), (None, {"code": "print(7)"}), ("get_stock", {"part": "A-7"})), Say("7, 5 and SQLite.")],
        "functions": True, "calls": ["get_stock"], "searches": 1, "runs": 1, "texts": [],
        "happened": [("search", "sql", "ok"), ("code", "print(7)", "ok")],
        "then": {"told": [re.compile("SQLite"), "7", "5"], "texts": ["7, 5 and SQLite."], "calls": [], "searches": 1, "runs": 1}},
}


# ---- what each form shows ----

def of_chat(told):
    """Of the raw answer: what is put together from a stream keeps texts and calls alone."""
    parts = [choice["delta"] for event in told.reply.events if isinstance(event, dict) for choice in event["choices"]] \
        or [told.reply.json["choices"][0]["message"]]
    runs = [run for part in parts for run in part.get("executed_tools", [])]
    kinds = {"code_interpreter": ("code", "code"), "web_search": ("search", "query")}
    shown = [(kinds[run["type"]][0], json.loads(run["arguments"]).get(kinds[run["type"]][1]), None) for run in runs]
    cited = [note["url_citation"] for part in parts for note in part.get("annotations", [])]
    return shown, [(note, told.texts[0]) for note in cited]


def of_responses(told):
    shown, cited = [], []
    for item in told.final["output"]:
        status = "ok" if item.get("status") == "completed" else "failed"
        if item["type"] == "web_search_call":
            shown.append(("search", item["action"]["query"], status))
        elif item["type"] == "code_interpreter_call":
            shown.append(("code", item["code"], status))
        elif item["type"] == "message":
            shown.append(("text", "".join(part["text"] for part in item["content"])))
            cited += [(note, part["text"]) for part in item["content"] for note in part["annotations"]]
    return shown, cited


def of_messages(told):
    shown, cited, called = [], [], {}
    for block in told.final["content"]:
        if block["type"] == "server_tool_use":
            called[block["id"]] = block["input"]
        elif block["type"].endswith("_tool_result"):
            kind, what = ("search", "query") if block["type"] == "web_search_tool_result" else ("code", "code")
            content = block["content"]
            status = "failed" if isinstance(content, dict) and content["type"].endswith("_error") else "ok"
            shown.append((kind, called[block["tool_use_id"]].get(what), status))
        elif block["type"] == "text":
            shown.append(("text", block["text"]))
            cited += [(note, None) for note in block.get("citations") or []]
    return shown, cited


SHOWN = {CHAT: of_chat, RESPONSES: of_responses, MESSAGES: of_messages}
ENTRIES = {CHAT: SEARCH, RESPONSES: SEARCH, MESSAGES: {"type": "web_search_20250305", "name": "web_search"}}


class SearchingAndRunning(Searching):
    def play(self, form, stream, row, server=None):
        """`server`: the form that the upstream speaks, where that is another."""
        self.server = server or form
        upstream = self.upstream(forever=Player(self.server, row["turns"]))
        gateway = self.start(upstream, {"rules": PAGES, **row.get("search", {})}, show_runs=True, sandbox=row.get("sandbox"),
                             upstream_options={"surfaces": [server.name]} if server else None, **row.get("sections", {}))
        entry = {**ENTRIES[form], **({"max_uses": row["uses"]} if "uses" in row else {})}
        body = form.body(stream, functions=row.get("functions", False))
        body["tools"].append(entry)
        told = form.ask(gateway, body)
        self.look(form, gateway, upstream, row, told)
        if "then" in row:
            after = form.ask(gateway, form.continued(body, told, "5"))
            self.look(form, gateway, upstream, row["then"], after)

    def look(self, form, gateway, upstream, row, told):
        self.assertEqual((told.status, told.error), (200, None), told.reply.body)
        glue = "\n\n" if form is CHAT else ""
        self.assertEqual(glue.join(told.texts), glue.join(row["texts"]))
        self.assertEqual([name for _, name, _ in told.calls], row.get("calls", []))
        self.assertEqual(len(self.journal.of("search")), row["searches"], self.journal.lines())
        self.assertEqual(len(gateway.journal.of("run")), row["runs"], gateway.journal.lines())
        if "told" in row:
            found = [text for _, text in self.server.results(upstream.requests[-1].json)]
            self.assertEqual(len(found), len(row["told"]), found)
            for text, wanted in zip(found, row["told"]):
                self.assertEqual(text, wanted) if isinstance(wanted, str) else self.assertRegex(text, wanted)
        shown, cited = SHOWN[form](told)
        if "happened" in row:
            self.assertEqual(shown, wanted_of(form, row["happened"]))
        if "cites" in row:
            self.assertEqual([note["url"] for note, _ in cited], [url for url, _ in row["cites"]])
            self.assertEqual([text[note["start_index"]:note["end_index"]] for note, text in cited if text],
                             [part for _, part in row["cites"]] if form is not MESSAGES else [])


class Together(SearchingAndRunning):
    """One test for each row, form and way."""

    def test_a_service_that_takes_the_connection_and_says_nothing_is_a_result(self):  # C110, by a real provider
        for form in FORMS:
            with self.subTest(form.name):
                service = self.upstream(forever=lambda connection: connection.wait_closed())
                upstream = self.upstream(forever=Player(form, [Call(find("sql")), Say("Without it.")]))
                gateway = self.serve(
                    upstream, interceptors=[{"plugin": "web_search", "search": "web"}],
                    searches=[{"name": "web", "plugin": "searxng", "base_url": service.url, "search_timeout": "1s"}],
                    gateway_options={"upstream_ports": [upstream.port, service.port]})
                body = form.body(False)
                body["tools"] = [ENTRIES[form]]
                told = form.ask(gateway, body)
                self.assertEqual((told.status, told.texts), (200, ["Without it."]), told.reply.body)
                self.assertEqual([text for _, text in form.results(upstream.requests[-1].json)], [STUCK])
                self.assertEqual(len(service.requests), 1)
                self.assertEqual(gateway.wait_event("service_failed")["error"], "TIMEOUT")


class StrictModel(Searching):
    """A model server that refuses whatever its API does not have takes what comes back of searches, cited and not."""

    def play(self, form, stream):
        gateway = self.start(None, {"rules": PAGES}, show_runs=True, upstream_options={"strict": True})
        body = form.body(stream, "Search the web for: sql")
        body["tools"].append(ENTRIES[form])
        for text, answer in ((None, "https://sqlite.org/"), ("Run this Python code: print(7)", "7"),
                             ("Search the web for: docs", "https://sqlite.org/docs.html")):
            if text:
                body = form.continued(body, told, text=text)
            told = form.ask(gateway, body)
            self.assertEqual((told.status, told.error), (200, None), told.reply.body)
            self.assertIn(answer, told.texts[-1])
            cited = [note["url"] for note, _ in SHOWN[form](told)[1]]
            self.assertEqual(cited[:1], [answer] if answer.startswith("https:") else [])
        self.assertEqual(self.searched(), ["sql", "docs"])

    def test_it_takes_a_conversation_with_searches(self):
        for form in FORMS:
            for stream in (False, True):
                with self.subTest(form=form.name, stream=stream):
                    self.play(form, stream)


def wanted_of(form, happened):
    """What of it this form shows, and how it says it."""
    wanted = []
    for entry in happened:
        if entry[0] == "text":
            wanted += [] if form is CHAT else [entry]
        elif form is CHAT:  # lists what has run, and says no more
            wanted += [] if entry[2] == "not run" else [(*entry[:2], None)]
        else:
            wanted.append((*entry[:2], "ok" if entry[2] == "ok" else "failed"))
    return wanted


def add(name, row, form, stream):
    def test(self):
        self.play(form, stream, row)
    test.__name__ = f"test_{re.sub(r'[^a-z]+', '_', name)}__{form.name}{'_streamed' if stream else ''}"
    setattr(Together, test.__name__, test)


for title, described in ROWS.items():
    for each in FORMS:
        for streamed in (False, True):
            add(title, described, each, streamed)

if __name__ == "__main__":
    main()
