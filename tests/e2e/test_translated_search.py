"""Searches and code over a model server that speaks another API than the client: what each client is shown of them, and what it
cites, is what it sees over a server of its own. Some rows of test_web_search_together.py, each over all pairs."""
import re

import test_web_search_together as together
from forms import CHAT, FORMS, MESSAGES
from harness import main
from scenarios import Call, Say
from test_translated import PAIRS

PLAYED = ("both kinds in one turn happen in the order of the calls", "turns that alternate",
          "a search that fails lets code go on", "the client's own limit of searches",
          "a client's function beside both, and the next request with its result")


class TranslatedSearch(together.SearchingAndRunning):
    """One test for each row, pair and way."""

    def test_c026_all_clients_get_one_search_and_the_same_text_of_both_kinds_of_servers(self):
        text = "A small database: https://sqlite.org/."
        row = {"turns": [Call(together.find("sql")), Say(text)], "told": [together.SQL], "texts": [text], "searches": 1, "runs": 0,
               "happened": [("search", "sql", "ok"), ("text", text)], "cites": [("https://sqlite.org/", "https://sqlite.org/")]}
        for form in FORMS:
            for server in (CHAT, MESSAGES):
                with self.subTest(client=form.name, server=server.name):
                    self.play(form, False, row, server)


def add(name, row, client, server, stream):
    def test(self):
        self.play(client, stream, row, server)
    words = re.sub(r"[^a-z]+", "_", name)
    test.__name__ = f"test_{words}__{client.name}_over_{server.name}{'_streamed' if stream else ''}"
    setattr(TranslatedSearch, test.__name__, test)


for number, title in enumerate(PLAYED):
    for place, pair in enumerate(PAIRS):
        add(title, together.ROWS[title], *pair, (number + place) % 2 == 0)

if __name__ == "__main__":
    main()
