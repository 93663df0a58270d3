"""The scenarios of scenarios.py for clients of one API over a model server that speaks only another one: what clients see is what
they see of a server of their own API, to the strict readers too. Each row is played streamed or not, in turn from row to row
and from pair to pair; with ALL=1 in the environment both ways."""
import os
import re

from forms import CHAT, MESSAGES, RESPONSES
from harness import main
from scenario_stage import Stage
from scenarios import SCENARIOS

PAIRS = [(RESPONSES, CHAT), (MESSAGES, CHAT), (CHAT, MESSAGES), (RESPONSES, MESSAGES)]
NO_JSON = "text before a run is dropped where JSON is asked for"


class Translated(Stage):
    """One test for each row and pair."""


def refused(client):
    """Messages has JSON of a schema alone."""
    field = "response_format" if client is CHAT else "text.format"
    return {"turns": [], "asks_for": "as_json", "status": 400, "runs": 0, "made": 0,
            "error": f"'{field}' cannot be carried to the API of this model's server. Leave it out, or have the operator list it "
                     "in 'drop_params'."}


def add(name, row, client, server, stream):
    row = refused(client) if name == NO_JSON and server is MESSAGES else row

    def test(self):
        self.play(client, stream, row, server)
    words = re.sub(r"\W+", "_", name)
    test.__name__ = f"test_{words}__{client.name}_over_{server.name}{'_streamed' if stream else ''}"
    setattr(Translated, test.__name__, test)


for number, (scenario, described) in enumerate(SCENARIOS.items()):
    for place, pair in enumerate(PAIRS):
        for streamed in (False, True):
            if (number + place) % 2 == streamed or os.environ.get("ALL"):
                add(scenario, described, *pair, streamed)

if __name__ == "__main__":
    main()
