"""Gateways that search and run code, with a journal of what was searched, for tests of the hosted search on an API form."""
from harness import E2E, Journal

SEARCH = {"type": "web_search"}
# What is found: two pages, none, two of which one is elsewhere.
PAGES = [{"when": "sql", "hits": ["SQLite | https://sqlite.org/ | A small database. | 2024-05-23",
                                  "Docs | https://sqlite.org/docs.html | All of them."]},
         {"when": "nothing", "hits": []},
         {"when": "weather", "hits": ["Wetter | https://wetter.example/tokyo | Sonnig."]},
         {"when": "both", "hits": ["In | https://www.a.org/1 | x", "Out | https://b.org/2 | y"]}]


class Searching(E2E):
    def start(self, upstream, search=None, show_runs=False, **sections):
        """In front of this upstream; what was searched stands in self.journal."""
        self.journal = Journal(self.path("search.journal"))
        entry = {"name": "web", "plugin": "mock", "journal": str(self.journal.path), "rules": PAGES, **(search or {})}
        return self.serve(upstream, searches=[entry], interceptors=[
            {"plugin": "code_interpreter", "sandbox": "box", "show_runs": show_runs},
            {"plugin": "web_search", "search": "web", "show_runs": show_runs}], **sections)

    def searched(self):
        """The queries, in order."""
        return [line.removeprefix("search ") for line in self.journal.lines()]
