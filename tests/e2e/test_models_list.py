"""GET /v1/models: both vendors' forms, pages, and upstreams' own lists, asked for by one request at a time and kept."""
import signal
import threading

from client import Wire, get, request
from harness import E2E, PATIENCE, in_parallel, main, poll
from upstream import Status

ANTHROPIC = {"anthropic-version": "2023-06-01"}


def listing(*names):
    return Status(200, {"object": "list", "data": [{"id": name, "created": 1764400000} for name in names]})


class ModelsList(E2E):
    def begin(self, *turns, forever=None, upstreams=(), models=("p-*",), **options):
        self.up = self.upstream(*turns, forever=forever)
        own = {"name": "up", "base_url": self.up.url, "models": list(models), **options}
        return self.gateway({"auth": {"mode": "none"}, "upstreams": [own, *upstreams]}, upstream_ports=[u.port for u in self.upstreams])

    @staticmethod
    def ids(gateway, path="/v1/models", **options):
        return [m["id"] for m in get(gateway, path, **options).json["data"]]

    def test_a_list_is_asked_for_once_within_its_time(self):
        gateway = self.begin(listing("p-1", "q"), listing("p-2"))
        self.assertEqual([self.ids(gateway) for _ in range(5)], [["p-1"]] * 5)
        self.assertEqual(len(self.up.requests), 1)
        self.assertEqual(get(gateway, "/v1/models/p-1").json, {"id": "p-1", "object": "model", "created": 1764400000,
                                                               "owned_by": "sandgate"})

    def test_without_keeping_it_is_asked_for_each_time(self):
        gateway = self.begin(listing("p-1"), listing("p-2"), models_cache="0s")
        self.assertEqual([self.ids(gateway) for _ in range(2)], [["p-1"], ["p-2"]])

    def test_many_that_come_at_once_ask_once(self):
        gate = threading.Event()

        def late(_connection):
            gate.wait(60)
            return listing("p-1")
        gateway = self.begin(late, forever=listing("another"))
        got = []

        def one(i):
            if i == 0:
                self.up.next_request()  # of one of the others
                gate.set()
            else:
                got.append(self.ids(gateway))
        in_parallel(9, one)
        self.assertEqual(got, [["p-1"]] * 8)
        self.assertEqual(len(self.up.requests), 1)

    def test_an_old_list_serves_while_there_is_no_new_one(self):
        gateway = self.begin(listing("p-1"), forever=Status(500), models_cache="1ms")
        self.assertEqual([self.ids(gateway) for _ in range(4)], [["p-1"]] * 4)
        self.assertEqual(len(self.up.requests), 2, "the failure was not asked for again at once")
        self.assertEqual(gateway.wait_event("models_unknown")["message"], "status 500")
        self.assertEqual(len(gateway.events("models_unknown")), 1)

    def test_a_client_that_leaves_while_it_asks_leaves_the_others_to_it(self):
        gate = threading.Event()
        self.addCleanup(gate.set)

        def never(_connection):
            gate.wait(60)
            return False
        gateway = self.begin(never, listing("p-1"))
        with Wire(gateway) as wire:
            wire.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.up.next_request()
        self.assertEqual(self.ids(gateway), ["p-1"])

    def test_who_has_less_time_than_the_one_that_asks_goes_without_the_list(self):
        gate = threading.Event()
        self.addCleanup(gate.set)

        def late(_connection):
            gate.wait(60)
            return listing("p-1")
        gateway = self.begin(late, models=["exact", "p-*"])
        with Wire(gateway) as wire:
            wire.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.up.next_request()
            self.assertEqual(self.ids(gateway, headers={"X-Stainless-Timeout": "11"}), ["exact"])
            unknown = gateway.wait_event("models_unknown")
            self.assertEqual((unknown["upstream"], unknown["message"]), ("up", "its list of models did not come in time"))
            gate.set()
            self.assertEqual(wire.answer().status, 200)

    def side_by_side(self, count, turn, **server):
        """A gateway with so many upstreams, each of which answers by turn(its number, connection)."""
        ups = [self.upstream(forever=lambda connection, i=i: turn(i, connection)) for i in range(count)]
        entries = [{"name": f"up{i}", "base_url": up.url, "models": [f"p{i}-*"]} for i, up in enumerate(ups)]
        return ups, self.gateway({"auth": {"mode": "none"}, "upstreams": entries, "server": server}, upstream_ports=[up.port for up in ups])

    def test_upstreams_are_asked_side_by_side(self):
        """Each answers once all were asked, the last first."""
        count = 8
        turns = [threading.Event() for _ in range(count + 1)]
        all_asked = threading.Barrier(count)
        turns[count].set()

        def one(i, _connection):
            all_asked.wait(PATIENCE)
            turns[i + 1].wait(PATIENCE)
            turns[i].set()
            return listing(f"p{i}-1", "other")
        _, gateway = self.side_by_side(count, one)
        self.assertEqual(self.ids(gateway), [f"p{i}-1" for i in range(count)])
        self.assertEqual(gateway.events("models_unknown"), [])

    def test_more_upstreams_than_are_asked_at_a_time_are_asked_all(self):
        ups, gateway = self.side_by_side(40, lambda i, _: listing(f"p{i}-1"))
        self.assertEqual(self.ids(gateway), [f"p{i}-1" for i in range(40)])
        self.assertEqual([len(up.requests) for up in ups], [1] * 40)

    def test_a_client_that_leaves_is_asked_for_no_longer(self):
        closed = threading.Semaphore(0)

        def silent(_, connection):
            self.assertTrue(connection.wait_closed(PATIENCE))
            closed.release()
        ups, gateway = self.side_by_side(20, silent)
        with Wire(gateway) as wire:
            wire.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            poll(lambda: sum(len(up.requests) for up in ups) == 16, "as many to be asked as are at a time")
        for _ in range(16):
            self.assertTrue(closed.acquire(timeout=PATIENCE))
        line = gateway.wait_event("request")
        self.assertEqual((line["status"], line["message"]), ("499", "given up while upstreams were asked for their models"))
        self.assertEqual(gateway.events("models_unknown"), [], "nobody is told of what a client's leaving has ended")
        self.assertEqual(sum(len(up.requests) for up in ups), 16)

    def test_the_gateways_end_ends_the_asking(self):
        def silent(_, connection):
            self.assertTrue(connection.wait_closed(PATIENCE))
        ups, gateway = self.side_by_side(3, silent, drain="100ms")
        with Wire(gateway) as wire:
            wire.send(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            poll(lambda: sum(len(up.requests) for up in ups) == 3, "all to be asked")
            gateway.signal()
            reply = wire.answer()
        self.assertEqual((reply.status, reply.error["message"]), (503, "The gateway is shutting down."))
        gateway.stop(quiet=False)

    def test_what_is_no_list_is_told(self):
        gateway = self.begin(forever=Status(200, {"object": "error"}), models=["exact", "p-*"])
        self.assertEqual(self.ids(gateway), ["exact"])
        self.assertEqual(gateway.wait_event("models_unknown")["message"], "it gave no list of models")

    def test_another_key_or_address_is_asked_anew(self):
        gateway = self.begin(listing("p-1"), listing("p-2"), api_key="sk-1")
        self.assertEqual(self.ids(gateway), ["p-1"])
        text = gateway.config_path.read_text()
        gateway.config_path.write_text(text.replace("sk-1", "sk-2"))
        gateway.signal(signal.SIGHUP)
        gateway.wait_event("reloaded")
        self.assertEqual(self.ids(gateway), ["p-2"])
        self.assertEqual([r.get("authorization") for r in self.up.requests], ["Bearer sk-1", "Bearer sk-2"])

    def test_anthropics_form_and_its_pages(self):
        names = [f"m{i}" for i in range(25)]
        gateway = self.begin(models=names)

        def page(query=""):
            got = get(gateway, "/v1/models" + query, headers=ANTHROPIC).json
            self.assertEqual(set(got), {"data", "has_more", "first_id", "last_id"})
            ids = [m["id"] for m in got["data"]]
            self.assertEqual((got["first_id"], got["last_id"]), (ids[0], ids[-1]) if ids else (None, None))
            return ids, got["has_more"]
        self.assertEqual(page(), (names[:20], True))
        self.assertEqual(page("?after_id=m19"), (names[20:], False))
        self.assertEqual(page("?after_id=m24"), ([], False))
        self.assertEqual(page("?limit=25"), (names, False))
        self.assertEqual(page("?limit=3&before_id=m5"), (names[2:5], True))
        self.assertEqual(page("?before_id=m2"), (names[:2], False))
        self.assertEqual(page("?after_id=m3&limit=1&beta=true"), (["m4"], True))
        one = get(gateway, "/v1/models/m3", headers=ANTHROPIC).json
        self.assertEqual(one, {"type": "model", "id": "m3", "display_name": "m3", "created_at": "1970-01-01T00:00:00Z"})
        self.assertEqual(len(self.ids(gateway, "/v1/models?limit=3")), 25, "OpenAI's list has no pages")

    def test_a_page_that_there_is_not_is_refused_in_anthropics_form(self):
        gateway = self.begin(models=["m"])
        for query, message in (("limit=0", "'limit' must be 1 to 1000."), ("limit=1001", "'limit' must be 1 to 1000."),
                               ("limit=x", "'limit' must be 1 to 1000."), ("limit=", "'limit' must be 1 to 1000."),
                               ("after_id=n", "'after_id' is the id of no model here."),
                               ("before_id=%6e", "'before_id' is the id of no model here.")):
            got = get(gateway, f"/v1/models?{query}", headers=ANTHROPIC)
            self.assertEqual((got.status, got.json["type"], got.error["type"], got.error["message"]),
                             (400, "error", "invalid_request_error", message))
        missing = get(gateway, "/v1/models/none", headers=ANTHROPIC)
        self.assertEqual((missing.status, missing.error["type"]), (404, "not_found_error"))

    def test_a_model_that_two_upstreams_list_is_there_once_and_a_long_list_is_whole(self):
        names = [f"p-{i}" for i in range(3000)]
        other = self.upstream(forever=listing(*names[2990:], "p-more"))
        gateway = self.begin(forever=listing(*names), upstreams=[{"name": "two", "base_url": other.url, "models": ["p-*"]}])
        self.assertEqual(self.ids(gateway), [*names, "p-more"])
        self.assertEqual(request(gateway, "HEAD", "/v1/models").status, 200)


if __name__ == "__main__":
    main()
