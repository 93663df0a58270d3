"""Where the scenarios of scenarios.py are played: a client of one form, a model server of the same or of another."""
from harness import E2E, poll
from scenarios import Fail


def scripted(form, turn, number, body):
    """What the upstream says: its turn in the form that was asked for."""
    if isinstance(turn, Fail):
        return form.failure(turn.status, turn.message, turn.headers)
    calls = [(f"call_{number}_{i}", call) if isinstance(call, str) else (f"call_{number}_{i}", *call)
             for i, call in enumerate(turn.calls)]
    return form.turn(body, turn.text, calls, turn.usage, turn.finish)


class Player:
    """The turns of a row, each made when it is asked for."""

    def __init__(self, form, turns, other_way=False):
        self.form, self.turns, self.number, self.other_way = form, list(turns), 0, other_way

    def __call__(self, connection):
        turn = self.turns.pop(0) if self.turns else Fail(500, "the scenario has no turn for this")
        self.number += 1
        body = connection.request.json
        if self.other_way:
            body["stream"] = not body.get("stream")
        return scripted(self.form, turn, self.number, body)


class Stage(E2E):
    def play(self, form, stream, row, server=None):
        """`server`: the form that the upstream speaks, where that is another."""
        self.server = server or form
        upstream = self.upstream(forever=Player(self.server, row["turns"], "answers" in row))
        spoken = {"surfaces": [server.name]} if server else {}
        gateway = self.serve(upstream, rules=row.get("rules", ()), sandbox=row.get("sandbox"),
                             upstream_options={**row.get("upstream", {}), **spoken}, **row.get("sections", {}))
        body = {**form.body(stream, **row.get("request", {})), **(getattr(form, row["asks_for"]) if "asks_for" in row else {})}
        if row.get("names_none"):
            del body["tools"]
        told = form.ask(gateway, body)
        self.look(form, stream, gateway, upstream, row, told)
        if "then" in row:
            seen = len(upstream.requests)
            after = form.ask(gateway, form.continued(body, told, "5"))
            self.look(form, stream, gateway, upstream, {"turns": row["turns"], **row["then"]}, after, seen)
        journal = gateway.journal  # B27, B30, C068: at once, not only when the gateway ends
        poll(lambda: len(journal.ended()) == len(journal.of("create")), lambda: f"an end of each container: {journal.lines()}")

    def look(self, form, stream, gateway, upstream, row, told, seen=0):
        bodies = [request.json for request in upstream.requests[seen:]]
        self.look_at_failure(form, stream, row, told)
        if "texts" in row:
            joined = ["\n\n".join(row["texts"])] if form.name == "chat" and row["texts"] else row["texts"]
            self.assertEqual(told.texts, joined)
        for what in ("finish", "usage"):
            if what in row:
                self.assertEqual(getattr(told, what), row[what], what)
        if "calls" in row:
            self.assertEqual([name for _, name, _ in told.calls], row["calls"])
        if "runs" in row:
            self.assertEqual(len(gateway.journal.of("run")), row["runs"], gateway.journal.lines())
        if "made" in row:
            self.assertEqual(len(gateway.journal.of("create")), row["made"], gateway.journal.lines())
        if "told" in row:
            self.alike([text for _, text in self.server.results(bodies[-1])], row["told"])
        if "choices" in row:
            self.assertEqual([self.choice(form, body) for body in bodies], row["choices"])
        if "offered" in row:
            self.assertEqual([self.server.offers_code(body) for body in bodies], row["offered"])
        if "limits" in row:
            self.assertEqual([body[self.server.limit] for body in bodies], row["limits"])
        if "shown" in row and form.shows_runs:
            self.assertEqual([run[:2] for run in told.shown], [run[:2] for run in row["shown"]])
            self.alike([run[2] for run in told.shown], [run[2] for run in row["shown"]])
        is_replayed = row.get("upstream", {}).get("stream") == "replay"
        for body in bodies:
            if is_replayed:
                self.assertNotIn("stream_options", body)
            self.assertEqual(body.get("stream", False), stream and not is_replayed, "every turn is asked for as the client asked")
            for _, _, arguments in self.server.module.calls_of(body):
                self.assertIsInstance(arguments, dict, "servers refuse a history with other arguments")

    def choice(self, form, body):
        """A server that is asked in another form hears of no choice where it hears of no tools: some refuse that."""
        return "none" if self.server is not form and not body.get("tools") else self.server.choice(body)

    def look_at_failure(self, form, stream, row, told):
        self.assertEqual(told.error, row.get("error"), told.reply.body)
        ran_before = row.get("status") == 424
        if stream and ran_before and told.status == 200:  # something had gone to the client: told within the stream
            self.assertIn(told.code, (row["code"], None) if form.name == "messages" else (row["code"],))
            return
        self.assertEqual(told.status, row.get("status", 200), told.reply.body)
        if ran_before:
            self.assertEqual(told.reply.get("x-should-retry"), "false")
            self.assertIn(told.code, (row["code"], None) if form.name == "messages" else (row["code"],))

    def alike(self, found, wanted):
        """Texts that are the wanted ones, or in which the wanted expressions are found."""
        self.assertEqual(len(found), len(wanted), found)
        for text, one in zip(found, wanted):
            self.assertEqual(text, one) if isinstance(one, str) else self.assertRegex(text, one)
