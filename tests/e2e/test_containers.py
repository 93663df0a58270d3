"""Containers that a client names: by the id that an answer has told it, on the two surfaces that tell one (chat:
test_sessions.py). Who may, for how long, and what is said where it is not there; and that what is another's is answered like
what never was."""
import re
import socket

from client import Wire, encode, post, request
from forms import MESSAGES, RESPONSES, Obedient
from harness import E2E, PATIENCE, in_parallel, main, poll
from test_operations import metrics

A, B = "key-of-team-a", "key-of-team-b"
KEYS = {"mode": "keys", "keys": [{"name": "a", "key": A}, {"name": "b", "key": B}]}
KEPT, SHORT = {"keep": "5m"}, {"keep": "1s"}
GONE = "earlier variables and files are gone"


class Talkative(Obedient):
    """Where 42 has come out it says more than lies in the buffers of two sockets."""

    def __call__(self, connection):
        is_result, text = self.form.last(connection.request.json)
        if is_result and text.strip() == "42":
            return self.form.turn(connection.request.json, "word " * (2 << 20))
        return super().__call__(connection)


class Containers:
    """On the surface of `form`."""

    def ways(self):
        return [(self.form, False), (self.form, True)]

    def model(self, form, **options):
        return self.serve(self.upstream(forever=Obedient(form)), **options)

    def ask(self, form, gateway, source, container=None, session=None, stream=False, key=None):
        body = form.body(stream, source)
        if session:
            body["metadata"] = form.metadata(session)
        return form.ask(gateway, form.in_container(body, container) if container else body, key=key)

    def run_code(self, form, gateway, *arguments, **options):
        told = self.ask(form, gateway, *arguments, **options)
        self.assertEqual(told.status, 200, told.reply.body)
        return told

    def check_missing(self, told, container):
        self.assertEqual((told.status, told.error), (404, f"Container with id '{container}' not found. It may have expired."))
        error = told.reply.error
        self.assertEqual((error["type"], error.get("code", "container_not_found")),
                         ("not_found_error" if told.reply.json.get("type") else "invalid_request_error", "container_not_found"))

    def c053_the_id_that_an_answer_tells_finds_its_variables_again(self):  # C053
        for form, stream in self.ways():
            gateway = self.model(form, sandbox=KEPT)
            first = form.container(self.run_code(form, gateway, "y = 5", stream=stream))
            self.assertRegex(first, "^(cntr|container)_[A-Za-z0-9_-]+$")
            self.assertLessEqual(len(first), 64)
            again = self.run_code(form, gateway, "print(y)", first, stream=stream)
            self.assertEqual((again.texts, form.container(again)), (["5"], first))
            self.assertEqual(len(gateway.journal.of("create")), 1)

    def c053_anothers_container_is_answered_like_one_that_never_was(self):  # C053
        for form, stream in self.ways():
            gateway = self.model(form, sandbox=KEPT, auth=KEYS)
            own = form.container(self.run_code(form, gateway, "y = 5", key=A))
            never = own[:-8] + "00000000"
            refused = self.ask(form, gateway, "print(y)", own, stream=stream, key=B)
            unknown = self.ask(form, gateway, "print(y)", never, stream=stream, key=B)
            self.check_missing(refused, own)
            self.check_missing(unknown, never)
            self.assertEqual(len(refused.reply.body), len(unknown.reply.body))
            self.assertEqual(sorted(name for name, _ in refused.reply.fields), sorted(name for name, _ in unknown.reply.fields))
            self.assertEqual(self.run_code(form, gateway, "print(y)", own, key=A).texts, ["5"])
            self.assertEqual((len(gateway.journal.of("create")), len(gateway.journal.of("run"))), (1, 2))

    def test_a_session_does_not_lead_to_anothers_container_either(self):
        for form, _ in self.ways():
            gateway = self.model(form, auth=KEYS)
            own = form.container(self.run_code(form, gateway, "y = 5", session="s", key=A))
            self.check_missing(self.ask(form, gateway, "print(y)", own, "s", key=B), own)
            self.assertIn("NameError", self.run_code(form, gateway, "print(y)", session="s", key=B).texts[0])

    def test_a_kept_container_is_free_for_the_next_request_before_an_answer_has_gone(self):
        """A client may go on as soon as it has all of the answer, which the gateway notices later."""
        form = self.form
        gateway = self.serve(self.upstream(forever=Talkative(form)), sandbox=KEPT)
        first = form.body(False, "x = 41")
        told = form.ask(gateway, first)
        with socket.socket() as bare:
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            bare.settimeout(PATIENCE)
            bare.connect(("127.0.0.1", gateway.port))
            with Wire.of(bare) as slow:
                slow.post(form.continued(first, told, text="print(x + 1)"), form.path)
                gateway.wait_events("turn", 4)
                poll(lambda: metrics(gateway)["sandgate_leases"] == 0, "the container to be free")
                self.assertEqual(len([event for event in gateway.events("request") if event["path"] == form.path]), 1,
                                 "its answer is still on its way")
                self.assertEqual(form.ask(gateway, form.continued(first, told, text="print(x + 2)")).texts, ["43"])
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_a_named_container_wins_over_the_session(self):
        for form, stream in self.ways():
            gateway = self.model(form, sandbox=KEPT)
            of_session = form.container(self.run_code(form, gateway, "x = 1", session="s", stream=stream))
            named = form.container(self.run_code(form, gateway, "x = 2", stream=stream))
            self.assertEqual(self.run_code(form, gateway, "print(x)", named, "s", stream=stream).texts, ["2"])
            self.assertEqual(self.run_code(form, gateway, "print(x)", session="s", stream=stream).texts, ["1"])
            self.assertEqual(self.run_code(form, gateway, "print(x)", of_session, stream=stream).texts, ["1"])
            self.assertEqual(len(gateway.journal.of("create")), 2)

    def b27_b52_without_keep_it_goes_with_its_answer(self):
        for form, stream in self.ways():
            gateway = self.model(form)
            told = self.run_code(form, gateway, "x = 1", stream=stream)
            gateway.journal.wait("destroy")
            first = form.container(told)
            if form is MESSAGES:
                self.assertIsNone(first, "an id that leads nowhere is not told")
                continue
            self.check_missing(self.ask(form, gateway, "print(x)", first, stream=stream), first)
            self.assertEqual(len(gateway.journal.of("create")), 1)

    def c052_an_expired_container_in_the_history_is_replaced_and_one_that_is_demanded_is_not(self):  # C052
        for form, stream in self.ways():
            gateway = self.model(form, sandbox=SHORT)
            body = form.body(stream, "x = 5")
            told = form.ask(gateway, body)
            first = form.container(told)
            gateway.journal.wait("destroy")
            history = form.continued(body, told, text="print(6)")
            history.pop("container", None)  # which is how Messages demands one
            after = form.ask(gateway, history)
            self.assertEqual(after.status, 200, after.reply.body)
            self.assertTrue(after.texts[0].endswith("6"), after.texts)
            self.assertNotEqual(form.container(after), first)
            self.assertEqual(len(gateway.journal.of("create")), 2)
            self.check_missing(form.ask(gateway, form.in_container(history, first)), first)

    def test_a_kept_container_is_found_by_the_history_for_as_long_as_it_is_kept(self):
        for form, stream in self.ways():
            gateway = self.model(form, sandbox=KEPT)
            body = form.body(stream, "x = 41")
            ids, texts = set(), []
            for source in ("print(x + 1)", "print(x + 2)", "print(x + 3)", "print(x + 4)"):
                told = form.ask(gateway, body)
                ids.add(form.container(told))
                texts.append(told.texts[0])
                body = form.continued(body, told, text=source)
            self.assertEqual(texts[1:], ["42", "43", "44"])
            self.assertEqual((len(ids), len(gateway.journal.of("create")), gateway.journal.of("destroy")), (1, 1, []))
            in_session = {**body, "metadata": form.metadata("s")}
            self.assertIn("NameError", form.ask(gateway, in_session).texts[0], "a session has one of its own")
            self.assertEqual(gateway.journal.of("destroy"), [], "and leaves the other alone")
            self.assertEqual(form.ask(gateway, body).texts, ["45"])

    def test_requests_that_name_one_container_use_it_one_after_the_other(self):
        for form in (self.form,):
            rules = [{"when": "slow", "stdout": "done", "delay": "200ms"}]
            gateway = self.model(form, sandbox=KEPT, rules=rules)
            first = form.container(self.run_code(form, gateway, "x = 1"))
            texts = in_parallel(4, lambda i: self.run_code(form, gateway, "slow" if i % 2 else "print(x)", first).texts[0])
            self.assertEqual(texts, ["1", "done", "1", "done"])
            self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_kept_containers_count_and_give_way(self):
        for form in (self.form,):
            gateway = self.model(form, sandbox=KEPT, sessions={"max_containers": 2})
            ids = [form.container(self.run_code(form, gateway, f"x = {i}")) for i in range(3)]
            self.assertEqual(max(gateway.journal.live()), 2)
            self.check_missing(self.ask(form, gateway, "print(x)", ids[0]), ids[0])
            self.assertEqual(self.run_code(form, gateway, "print(x)", ids[2]).texts, ["2"])

    def test_a_sessions_end_ends_what_its_container_is_named_by(self):
        for form in (self.form,):
            gateway = self.model(form)
            first = form.container(self.run_code(form, gateway, "x = 1", session="s"))
            self.assertEqual(request(gateway, "DELETE", "/v1/sessions/s").status, 200)
            self.check_missing(self.ask(form, gateway, "print(x)", first), first)

    def test_ids_that_are_none_are_refused_before_anything_is_done(self):
        """Of every kind; what a client has sent is in the answer escaped and cut, or not at all."""
        for form in (self.form,):
            upstream = self.upstream()
            gateway = self.serve(upstream, auth=KEYS)
            for container in ("x", "cntr_", "container_", "cntr_sg" + "0" * 31, "cntr_sg" + "0" * 33, "cntr_sg\u0000x", "a\u0000b",
                              "cntr_\r\nX-Evil: 1", "\u001b[2J", "cntr_" + "z" * 100000, "../../x", "💥" * 40, 5, True, [], ["x"],
                              {"id": 5}, {"id": ["x"]}, {"id": {}}, 1e400):
                raw = encode(form.in_container(form.body(False, "x"), container))
                reply = post(gateway, form.path, raw.replace(b"Infinity", b"1e400"), key=A)
                self.assertIn(reply.status, (400, 404), (container, reply.body))
                self.assertIn("container", reply.error["message"].lower(), container)
                self.assertLess(len(reply.body), 1000, container)
                self.assertIsNone(re.search(rb"[\x00-\x1f]", reply.body.strip()), (container, reply.body))
                self.assertIsNone(reply.get("x-evil"))
            self.assertEqual((upstream.requests, gateway.journal.lines()), ([], []))


class OnMessages(Containers, E2E):
    form = MESSAGES


class OnResponses(Containers, E2E):
    form = RESPONSES

    def c052_the_model_is_told_what_is_lost_only_where_its_history_shows_it(self):  # C052
        form = self.form
        gateway = self.model(form, sandbox=SHORT)
        body = form.body(False, "x = 5")
        told = form.ask(gateway, body)
        gateway.journal.wait("destroy")
        self.assertIn(GONE, form.ask(gateway, form.continued(body, told, text="print(6)")).texts[0])
        self.assertEqual(form.ask(gateway, form.body(False, "print(6)")).texts, ["6"])

    def test_a_container_in_the_history_goes_on_where_it_is_there_still(self):
        for stream in (False, True):
            form = self.form
            gateway = self.model(form, sandbox=KEPT)
            body = form.body(stream, "x = 5")
            told = form.ask(gateway, body)
            self.assertEqual(form.ask(gateway, form.continued(body, told, text="print(x)")).texts, ["5"])
            self.assertEqual(len(gateway.journal.of("create")), 1)

    def test_a_history_leads_nobody_into_anothers_container(self):
        form = self.form
        gateway = self.model(form, sandbox=KEPT, auth=KEYS)
        body = form.body(False, "x = 5")
        told = form.ask(gateway, body, key=A)
        other = form.ask(gateway, form.continued(body, told, text="print(x)"), key=B)
        self.assertEqual(other.status, 200, other.reply.body)
        self.assertIn("NameError", other.texts[0])
        self.assertNotEqual(form.container(other), form.container(told))


if __name__ == "__main__":
    main()
