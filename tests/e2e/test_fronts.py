"""Conversations of ten turns as Open WebUI, LibreChat, Codex and Claude Code have them (fronts.py), with nothing going wrong, and
with what goes wrong in a working day in their midst: the container's time is over, it made room for another, the model server
is busy, a limit of the key is reached, the gateway is started again. A conversation keeps its variables or its model is told,
in the documented words, that they are gone; nothing of another conversation or user is seen; requests beside the conversation
make no sandbox; and there are never more sandboxes than the configuration says."""
import collections
import contextlib
import functools
import os
import re
import threading

from client import get
from fronts import FRONTS, NEW, REPLACED, SLOW, Conversation, Model, Refused
from harness import E2E, ROOT, Journal, in_parallel, main, poll

ID_FROM = ["header:x-openwebui-chat-id", "header:x-conversation-id", "header:x-claude-code-session-id", "prompt_cache_key",
           "metadata.user_id", "metadata.session_id"]
KEY = {front.name: f"key-of-{front.name}" for front in FRONTS}
SET = 4  # so many steps set x and y; what goes wrong, goes wrong behind them


def with_each_front(**options):
    """Runs a test with a gateway and a conversation for each front end, one after the other."""
    def decorate(test):
        @functools.wraps(test)
        def one_by_one(self):
            for front in FRONTS:
                with self.subTest(front=front.name):
                    test(self, self.chat(front, self.open(**options)))
        return one_by_one
    return decorate


class Stage(E2E):
    def open(self, sessions=None, limits=None, sandbox=None, upstream=None, keeps=False, **sections):
        """A gateway for all four, whose configuration outlives it; `keeps`: so do its sandboxes."""
        if keeps:
            sandbox = {"state": self.path("boxes"), **(sandbox or {})}
            sessions = {"on_shutdown": "keep", "state_file": self.path("sessions.json"), **(sessions or {})}
            os.mkdir(sandbox["state"])
        self.model = Model()
        self.up = self.upstream(forever=self.model)
        self.journal = Journal(self.path("sandbox.journal"))
        keys = [{"name": front.name, "key": KEY[front.name], **(limits or {}),
                 **({"user_from": f"header:{front.user_header.lower()}"} if front.speaks_for_users else {})} for front in FRONTS]
        self.config = {
            "auth": {"keys": keys},
            "upstreams": [{"name": "up", "base_url": self.up.url + "/v1", "models": ["mock"], "other_tools": "drop", **(upstream or {})}],
            "sandboxes": [{"name": "box", "plugin": "mock", "journal": str(self.journal.path),
                           "rules": [{"when": SLOW, "delay": "30s"}], **(sandbox or {})}],
            "sessions": {"id_from": ID_FROM, **(sessions or {})},
            "interceptors": [{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}], **sections}
        self.journals = [] if keeps else [self.journal]  # what is kept balances in the end alone
        return self.begin()

    def begin(self):
        return self.gateway(self.config, journals=self.journals, upstream_ports=[self.up.port])

    def chat(self, front, gateway, number=1000, user="ann", chat="c1"):
        return Conversation(front, gateway, KEY[front.name], user, chat, number)


    def play(self, talk, steps):
        for step in steps:
            told = talk.step(step)
            self.assertEqual(told, talk.wanted(step), step)

    @contextlib.contextmanager
    def held(self, talk):
        """A request of the conversation that the model answers when it is told to."""
        gate, arrived = threading.Event(), threading.Event()
        self.addCleanup(gate.set)
        answer, self.up.forever = self.up.forever, lambda connection: (arrived.set(), gate.wait(60), self.model(connection))[2]
        asking = threading.Thread(target=lambda: talk.ask("Thanks."))
        asking.start()
        self.assertTrue(arrived.wait(60))
        self.up.forever = answer

        def release():
            gate.set()
            asking.join()
        yield release
        release()

    def sessions(self, talk):
        headers = {talk.front.user_header: talk.words["user"]} if talk.front.speaks_for_users else {}
        return [s["id"] for s in get(talk.gateway, "/v1/sessions", key=talk.key, headers=headers).json["data"]]


class Fronts(Stage):
    @with_each_front()
    def test_ten_turns_keep_their_variables_in_one_sandbox(self, talk):
        self.assertEqual(len(talk.front.turns), 10)
        self.play(talk, talk.front.turns)
        self.assertEqual(len(self.journal.of("create")), 1, self.journal.lines())
        self.assertEqual(len(self.sessions(talk)), 1)
        self.assertIn(talk.words["chat"], self.sessions(talk)[0])
        self.assertNotIn("sandbox", " ".join(talk.answers), "nothing was lost, and nothing is said to be")

    def play_on(self, talk):
        """The rest of a conversation whose variables are there."""
        self.play(talk, talk.front.turns[SET:])

    def after_a_loss(self, talk, note):
        """The model is told of the loss before anything else, once; what it sets anew is kept, and the conversation goes on."""
        told = talk.run("print(x)")
        self.assertTrue(told.startswith(f"{note}\n"), told)
        self.assertIn("[exception] NameError: name 'x' is not defined", told)
        self.assertEqual(talk.run(f"x = {talk.words['x']}; y = x * 2"), "[no output]")
        self.play_on(talk)

    @with_each_front(upstream={"surfaces": ["chat"]})
    def test_a_model_server_that_speaks_chat_alone_will_do(self, talk):
        self.play(talk, [{**step, "sides": []} for step in talk.front.turns])
        self.assertEqual({request.target for request in self.up.requests}, {"/v1/chat/completions"})
        self.assertEqual(len(self.journal.of("create")), 1)

    @with_each_front()
    def test_requests_beside_the_conversation_make_no_sandbox(self, talk):
        talk.ask(f"Hello, this is {talk.tag}.")
        for name in talk.front.side:
            talk.side(name)
        self.assertEqual(self.journal.lines(), [])
        self.assertEqual(self.sessions(talk), [])

    @with_each_front(sessions={"idle_timeout": "1s"})
    def test_a_sandbox_whose_time_is_over_is_told_of(self, talk):
        talk.run("x = 1; y = 2")
        self.journal.wait("destroy")
        told = talk.run("z = 3")
        self.assertEqual(told, f"{REPLACED}\n[no output]", "also where nothing is missed yet")

    @with_each_front(sessions={"per_identity": 1})
    def test_a_sandbox_that_made_room_for_another_chat_is_told_of(self, talk):
        self.play(talk, talk.front.turns[:SET])
        other = self.chat(talk.front, talk.gateway, 5000, chat="c2")
        self.assertEqual(other.run("x = 7; print(x)"), "7")
        self.after_a_loss(talk, REPLACED)
        self.assertLessEqual(max(self.journal.live()), 1)

    @with_each_front(sandbox={"rules": [{"when": "will_die", "fault": "die"}, {"when": SLOW, "delay": "30s"}]})
    def test_a_sandbox_that_dies_is_told_of(self, talk):
        self.play(talk, talk.front.turns[:SET])
        self.assertIn("[sandbox failed]", talk.run("will_die"))
        self.after_a_loss(talk, REPLACED)

    @with_each_front()
    def test_after_a_restart_the_model_is_told_that_variables_are_gone(self, talk):
        self.play(talk, talk.front.turns[:SET])
        talk.gateway.stop()
        talk.gateway = self.begin()
        self.after_a_loss(talk, NEW)
        self.assertEqual(len(self.journal.of("create")), 2)

    @with_each_front(keeps=True)
    def test_a_restart_that_keeps_sandboxes_is_not_noticed(self, talk):
        self.play(talk, talk.front.turns[:SET])
        talk.gateway.stop()
        talk.gateway = self.begin()
        self.play_on(talk)
        self.assertEqual(len(self.journal.of("create")), 1)
        self.assertEqual(self.journal.of("destroy"), [])

    @with_each_front()
    def test_a_copy_of_a_conversation_begins_with_a_new_sandbox_and_is_told(self, talk):
        """A fork, a clone: the history of one conversation under the id of another."""
        self.play(talk, talk.front.turns[:SET])
        copy = self.chat(talk.front, talk.gateway, chat="c2")
        copy.rounds = list(talk.rounds)
        self.after_a_loss(copy, NEW)
        self.play_on(talk)

    @with_each_front()
    def test_a_busy_model_costs_no_variables(self, talk):
        """429 with a time that the gateway does not wait: the front end shows it, and the user asks again."""
        self.play(talk, talk.front.turns[:SET])
        self.model.refuse(talk.tag)
        with self.assertRaises(Refused) as refused:
            talk.run("print(x)")
        told = refused.exception.told
        self.assertEqual((told.status, told.reply.get("retry-after")), (429, "30"))
        self.play_on(talk)
        self.assertEqual(len(self.journal.of("create")), 1)

    @with_each_front()
    def test_a_model_that_is_busy_for_a_moment_is_asked_again_and_nobody_notices(self, talk):
        self.play(talk, talk.front.turns[:SET])
        self.model.refuse(talk.tag, retry_after="0")
        self.play_on(talk)
        self.assertEqual(len(talk.gateway.events("upstream_retry")), 1)

    @with_each_front()
    def test_a_model_that_is_busy_behind_a_run_costs_no_variables_and_runs_nothing_twice(self, talk):
        self.play(talk, talk.front.turns[:SET])
        runs = len(self.journal.of("run"))
        self.model.refuse(talk.tag, behind_a_run=True)
        with self.assertRaises(Refused) as refused:
            talk.run("y = y + 0")
        self.assertIn("busy", refused.exception.told.error)
        self.assertEqual(len(self.journal.of("run")), runs + 1)
        self.play_on(talk)

    @with_each_front(limits={"in_flight": 1})
    def test_a_limit_of_the_key_costs_no_variables(self, talk):
        """The user's second window asks while the first is being answered: 429, and once more when that has ended. Who asks one
        thing after the other is never over the limit."""
        self.play(talk, talk.front.turns[:SET])
        other = self.chat(talk.front, talk.gateway, 5000, chat="c2")
        with self.held(talk) as release:
            with self.assertRaises(Refused) as refused:
                other.run("x = 8; print(x)")
            self.assertEqual((refused.exception.told.status, refused.exception.told.reply.get("retry-after")), (429, "1"))
            release()
        self.assertEqual(other.run("x = 8; print(x)"), "8")
        # A request that its client has left is over as soon as the gateway sees that: after a step of this kind it may be too soon.
        self.play(talk, [step for step in talk.front.turns[SET:] if "leave" not in step])

    @with_each_front()
    def test_chats_and_users_see_nothing_of_each_other(self, talk):
        self.play(talk, talk.front.turns[:SET])
        beside = [self.chat(talk.front, talk.gateway, 5000, chat="c2")]
        if talk.front.speaks_for_users:  # else each has a key of their own
            beside.append(self.chat(talk.front, talk.gateway, 6000, user="bob"))
        for other in beside:
            self.assertRegex(other.run("print(x)"), r"^Traceback[^[]*\[exception\] NameError: name 'x' is not defined$")
            self.play(other, talk.front.turns)
        self.play_on(talk)
        self.assertEqual(len(self.journal.of("create")), 1 + len(beside))

    def test_one_id_under_every_key_is_a_conversation_of_each(self):
        """The id of a chat is worth nothing to whoever has another key, whatever field carries it."""
        gateway = self.open()
        talks = [self.chat(front, gateway, 1000 * i, chat="the-same") for i, front in enumerate(FRONTS, 1)]
        for talk in talks:
            talk.run(f"x = {talk.words['x']}")
        self.assertEqual([talk.run("print(x)") for talk in talks], ["1000", "2000", "3000", "4000"])
        self.assertEqual(len(self.journal.of("create")), len(FRONTS))


class Restless:
    """A conversation whose user tries again where the front end shows an error, and whose model sets variables anew where it is
    told that they are gone."""

    def __init__(self, case, talk, busy):
        """`busy`: how many of its front end's conversations are in a step at a time; the users of the others are reading."""
        self.case, self.talk, self.busy, self.losses = case, talk, busy, 0
        # The answer that called the function may have told of a loss: who asked all over again would not hear of it.
        talk.insist = self.stubborn
        numbers = re.escape(talk.words["x"]), re.escape(talk.words["x1"])
        self.own = re.compile(rf"\b({'|'.join(numbers)})\b")

    def stubborn(self, act):
        """Does it until it is not refused; only limits and what the model server fails with may refuse it."""
        def once():
            try:
                return [act()]
            except Refused as refused:
                told = refused.told
                self.case.assertTrue(told.status in (429, 424) or "busy" in (told.error or ""), refused)
                return None
        return poll(once, "an answer that is none of 429")[0]

    def play(self, steps):
        for step in steps:
            with self.busy:
                self.play_step(step)
                for name in step.get("sides", []):
                    self.stubborn(lambda name=name: self.talk.side(name))

    def play_step(self, step):
        alone, wanted = {**step, "sides": []}, self.talk.wanted(step)
        while (told := self.stubborn(lambda: self.talk.step(alone))) != wanted:
            self.case.assertRegex(told, "^(\\[stderr\\]\n)?(" + "|".join(re.escape(note) for note in (REPLACED, NEW)) + ")\n", step)
            self.check_own(told)
            self.losses += 1
            self.case.assertLess(self.losses, 30, "at most one in a step, but for a machine that stands still")
            alone = {key: value for key, value in step.items() if key not in ("edit", "sides")}  # that is done
            if "again" in alone or "edit" in step:
                alone = {"again": alone.get("again", alone.get("run"))}
            self.check_own(self.stubborn(lambda: self.talk.run("x = {x}; y = x * 2; z = y + 1".format(**self.talk.words))))

    def check_own(self, told):
        """No number of another conversation's."""
        self.case.assertEqual(re.findall(r"\b\d{4,}\b", self.own.sub("", told)), [], told)


class ManyAtOnce(Stage):
    """Forty conversations side by side, ten of each front end, of five users each where it has users."""

    TOTAL, OF_A_KEY = 24, 8

    def most(self, gateways):
        """The most sandboxes that a key had at a time. The journal has their order: a loop writes that one was deleted when another
        loop may have made the next already."""
        owner = {event["label"]: event["identity"] for gateway in gateways for event in gateway.events("container_created")}
        now, most = collections.Counter(), 0
        for verb, label in (line.split()[:2] for line in self.journal.lines()):
            now[owner.get(label)] += {"create": 1, "destroy": -1, "die": -1, "expire": -1}.get(verb, 0)
            most = max(most, *now.values())
        return most

    def check_side_by_side(self, of_each, **options):
        """Everything goes wrong: 429 of the server and of the gateway, sandboxes that make room and whose time is over, a restart.
        The gateways before and after that, and how often a sandbox was lost."""
        gateway = self.open(sessions={"max_containers_total": self.TOTAL, "idle_timeout": "3s"},
                            limits={"in_flight": 4, "max_containers": self.OF_A_KEY, "per_identity": self.OF_A_KEY}, **options)
        talks = [self.chat(front, gateway, 10000 + 1000 * i + 100 * k, f"user-{i % 5}", f"chat-{i}")
                 for k, front in enumerate(FRONTS) for i in range(of_each)]
        for talk in talks[::3]:
            self.model.refuse(talk.tag, behind_a_run=True)
        for talk in talks[1::3]:
            self.model.refuse(talk.tag, times=2)
        busy = {front.name: threading.Semaphore(5) for front in FRONTS}
        restless = [Restless(self, talk, busy[talk.front.name]) for talk in talks]
        in_parallel(len(talks), lambda i: restless[i].play(talks[i].front.turns[:SET]))
        gateway.stop()
        after = self.begin()
        for talk in talks:
            talk.gateway = after
        in_parallel(len(talks), lambda i: restless[i].play(talks[i].front.turns[SET:]))
        self.assertLessEqual(max(self.journal.live()), self.TOTAL)
        self.assertEqual([one[1] for one in self.model.refusals], [0] * len(self.model.refusals), "all of it went wrong")
        return gateway, after, sum(one.losses for one in restless)

    def test_forty_conversations_while_everything_goes_wrong(self):
        *gateways, losses = self.check_side_by_side(10)
        self.assertGreaterEqual(losses, 40, "each of them has lost its sandbox at the restart")
        self.assertIn(self.most(gateways), range(1, self.OF_A_KEY + 1))

    def test_conversations_while_everything_goes_wrong_but_sandboxes_outlive_the_restart(self):
        before, after, _ = self.check_side_by_side(4, keeps=True)
        kept = {event["container"] for event in before.events("container_kept")}
        self.assertGreater(len(kept), 0)
        after.stop()


class Examples(E2E):
    """The files for both sides, in examples/ and docs/front-ends.md."""

    FILES = ROOT / "examples" / "front-ends"

    @staticmethod
    def listed(text):
        """The places of the conversation's id that a text lists."""
        return re.split(r",\s+", re.search(r"id_from: \[([^]]*)\]", text)[1])

    def settings(self, name):
        """NAME=value and name: value of a file, quotes off."""
        lines = re.findall(r'^(?:export |\s*)([A-Za-z_-]+)\s*(?:=|:)\s*"?([^"\n]+?)"?$', (self.FILES / name).read_text(), re.M)
        return dict(lines)

    def test_documentation_and_examples_list_the_same_places(self):
        for name in ("docs/front-ends.md", "examples/team.yaml"):
            self.assertEqual(self.listed((ROOT / name).read_text()), ID_FROM, name)

    def test_every_front_end_is_told_the_address_and_what_the_gateway_wants(self):
        webui, librechat = self.settings("open-webui.env"), self.settings("librechat.yaml")
        codex, claude = self.settings("codex.toml"), self.settings("claude-code.sh")
        self.assertEqual(webui["ENABLE_FORWARD_USER_INFO_HEADERS"], "true")
        self.assertEqual([librechat[name] for name in ("x-user-id", "x-conversation-id")],
                         ["{{LIBRECHAT_USER_ID}}", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
        self.assertEqual((codex["wire_api"], codex["env_key"]), ("responses", "SANDGATE_KEY"))
        base = "http://127.0.0.1:4000"
        self.assertEqual([webui["OPENAI_API_BASE_URL"], librechat["baseURL"], codex["base_url"], claude["ANTHROPIC_BASE_URL"]],
                         [f"{base}/v1", f"{base}/v1", f"{base}/v1", base])

    def test_the_example_gateway_keeps_a_session_for_each_of_them(self):
        text = (ROOT / "examples" / "team.yaml").read_text()
        gateway = self.gateway(text.replace("keys.yaml        #", f"{ROOT / 'examples' / 'keys.yaml'} #"))
        key = {"open_webui": self.settings("open-webui.env")["OPENAI_API_KEY"],
               "librechat": self.settings("librechat.yaml")["apiKey"],
               "codex": "key-of-alice", "claude_code": self.settings("claude-code.sh")["ANTHROPIC_AUTH_TOKEN"]}
        asked = "Run this Python code and tell me the result: "
        for front in FRONTS:
            talk = Conversation(front, gateway, key[front.name], "ann", f"chat-of-{front.name}", 7)
            talk.ask(asked + "x = 7")
            self.assertEqual(talk.ask(asked + "print(x * 6)").texts[-1].split(), "The result is: 42".split())
        gateway.fds_before += 64  # sessions keep their containers


if __name__ == "__main__":
    main()
