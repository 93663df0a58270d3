"""Restart without loss (`sessions.on_shutdown: keep`): one gateway ends, the next takes its sessions up. The mock sandbox, whose
containers outlive the process in a folder (`state`), is the provider; its journal, which both gateways write on, is the
witness. What is looked at is what the client and the model see: variables that are still there, or the word that they are
not."""
import hashlib
import json
import os
import pathlib
import pwd
import signal
import stat
import subprocess
import unittest

from client import Wire, body_of, chat, get, post, request
from harness import BINARY, PATIENCE, E2E, Journal, main, poll, run, to_yaml
from test_sessions import A, B, KEYS, Script

STATE_BYTES_MAX, HANDLE_BYTES_MAX = 64 << 20, 4096  # of kept.h and limits.h
LOST = "[The sandbox of this session was lost and has been replaced: earlier variables and files are gone.]\n"


class Restart(E2E):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.folder, "sessions.json")
        self.boxes = os.path.join(self.folder, "boxes")
        os.mkdir(self.boxes)
        self.journal = Journal(os.path.join(self.folder, "sandbox.journal"))
        self.model = self.upstream(forever=Script())

    def config(self, sandbox=None, sessions=None, **sections):
        box = {"name": "box", "plugin": "mock", "journal": str(self.journal.path), "state": self.boxes, **(sandbox or {})}
        box = {key: value for key, value in box.items() if value is not None}
        kept = {"on_shutdown": "keep", "state_file": self.state, **(sessions or {})}
        return {"auth": {"mode": "none"}, "upstreams": [{"name": "up", "base_url": self.model.url + "/v1", "models": ["mock"]}],
                "sandboxes": [box], "interceptors": [{"plugin": "code_interpreter", "sandbox": box["name"]}],
                "sessions": {key: value for key, value in kept.items() if value is not None}, **sections}

    def start(self, **options):
        return self.gateway(self.config(**options), upstream_ports=[self.model.port])

    def run_code(self, gateway, source, session=None, key=None, **more):
        reply = chat(gateway, source, session, key=key, **more)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.text

    def sessions(self, gateway, key=None):
        return {one["id"]: one for one in get(gateway, "/v1/sessions", key=key).json["data"]}

    def leave(self, *assignments, **options):
        """A gateway that has ended and left sessions `s0`, `s1` … behind, with a variable each."""
        gateway = self.start(**options)
        for i, assignment in enumerate(assignments or ("x = 5",)):
            self.run_code(gateway, assignment, f"s{i}", key=A if "auth" in options else None)
        gateway.stop()
        return gateway

    def check_new(self, gateway, words):
        """Nothing was taken up: the session is a new one, and nobody speaks of a loss."""
        refused = gateway.wait_event("state_refused")
        self.assertEqual((refused["message"], refused["set_aside"]), (words, "as FILE.bad"))
        self.assertTrue(os.path.lexists(self.state + ".bad"))
        self.assertRegex(self.run_code(gateway, "print(x)", "s0"), r"\[exception\] NameError")
        self.assertEqual(self.journal.labels("load"), [])

    # ---- what goes on ----

    def test_a_session_goes_on_with_its_container_after_a_restart(self):
        first = self.start()
        self.run_code(first, "x = 5", "s")
        before = self.sessions(first)["s"]
        first.stop()
        self.assertEqual(stat.S_IMODE(os.stat(self.state).st_mode), 0o600)
        self.assertEqual([(e["containers"], e["losses"]) for e in first.events("state_kept")], [("1", "0")])
        second = self.start()
        self.assertEqual(self.run_code(second, "print(x)", "s"), "5")
        after = self.sessions(second)["s"]
        self.assertEqual((after["container_id"], after["created_at"]), (before["container_id"], before["created_at"]))
        self.assertEqual((len(self.journal.of("create")), self.journal.of("destroy")), (1, []))
        taken = second.wait_event("state_taken_up")
        self.assertEqual((taken["containers"], taken["evicted"], taken["not_taken"]), ("1", "0", "0"))

    def test_without_keep_nothing_is_written_and_all_is_deleted(self):
        first = self.start(sessions={"on_shutdown": None, "state_file": None})
        self.run_code(first, "x = 5", "s")
        first.stop()
        self.assertEqual(sorted(self.journal.labels("create")), sorted(self.journal.ended()))
        second = self.start()
        self.assertRegex(self.run_code(second, "print(x)", "s"), r"\[exception\] NameError")

    def test_a_third_process_goes_on_where_the_second_did_not_touch_it(self):
        self.leave("x = 5")
        self.start().stop()
        third = self.start()
        self.assertEqual(self.run_code(third, "print(x)", "s0"), "5")

    def test_what_the_gateway_was_killed_with_goes_on_too(self):
        first = self.start(sessions={"state_every": "100ms"})
        self.run_code(first, "x = 5", "s")
        container = self.sessions(first)["s"]["container_id"]
        poll(lambda: os.path.exists(self.state) and container in pathlib.Path(self.state).read_text(), "the state to be written")
        first.stopped = True
        first.signal(signal.SIGKILL)
        first.wait_end()
        second = self.start()
        self.assertEqual(self.run_code(second, "print(x)", "s"), "5")
        self.assertEqual(self.sessions(second)["s"]["container_id"], container)

    def test_what_was_ended_before_the_gateway_was_killed_does_not_come_back(self):
        first = self.start(sessions={"state_every": "100ms"})
        self.run_code(first, "x = 5", "s")
        poll(lambda: os.path.exists(self.state), "the state to be written")
        self.assertEqual(request(first, "DELETE", "/v1/sessions/s").status, 200)
        self.journal.wait("destroy")
        poll(lambda: not os.path.exists(self.state), "the state to be removed, as nothing is left")
        first.stopped = True
        first.signal(signal.SIGKILL)
        first.wait_end()
        second = self.start()
        self.assertEqual(self.sessions(second), {})

    def test_a_kept_container_is_found_by_its_id(self):
        def ask(gateway, text, **tool):
            body = {"model": "mock", "input": f"Run this Python code and tell me the result: {text}",
                    "tools": [{"type": "code_interpreter", "container": {"type": "auto"}, **tool}]}
            reply = post(gateway, "/v1/responses", body)
            self.assertEqual(reply.status, 200, reply.body)
            return reply.json
        options = {"sandbox": {"keep": "5m"}, "upstreams": [{"name": "mock", "plugin": "mock", "models": ["mock"]}]}
        first = self.start(**options)
        call = [item for item in ask(first, "x = 5")["output"] if item["type"] == "code_interpreter_call"][0]
        first.stop()
        second = self.start(**options)
        told = ask(second, "print(x)", container=call["container_id"])
        self.assertIn("5", told["output"][-1]["content"][0]["text"])
        self.assertEqual(len(self.journal.of("create")), 1)

    def test_idle_time_goes_on_while_the_gateway_is_down(self):
        self.leave("x = 5")
        before = json.loads(pathlib.Path(self.state).read_text())["state"]["containers"][0]["used"]
        second = self.start()
        left = self.sessions(second)["s0"]
        self.assertEqual(left["last_used_at"], before // 1000)

    def test_one_whose_idle_time_is_over_is_deleted_at_the_start(self):
        self.leave("x = 5")
        self.start(sessions={"idle_timeout": "1s"})
        self.journal.wait("destroy")
        self.assertEqual(self.journal.labels("destroy"), self.journal.labels("create"))

    def test_identities_of_passed_on_keys_are_known_again(self):
        upstreams = [{"name": "up", "base_url": self.model.url + "/v1", "models": ["mock"], "passthrough": True}]
        options = {"auth": {"mode": "passthrough"}, "upstreams": upstreams}
        first = self.start(**options)
        self.run_code(first, "x = 5", "s", key="sk-anns-own-key-at-the-upstream")
        first.stop()
        self.assertNotIn("sk-anns", pathlib.Path(self.state).read_text())
        second = self.start(**options)
        self.assertEqual(self.run_code(second, "print(x)", "s", key="sk-anns-own-key-at-the-upstream"), "5")
        self.assertRegex(self.run_code(second, "print(x)", "s", key="sk-bobs"), "NameError")

    # ---- whose it is ----

    def test_nobody_reaches_anothers_kept_session(self):
        first = self.start(auth=KEYS)
        self.run_code(first, "x = 5", "s", key=A)
        container = self.sessions(first, A)["s"]["container_id"]
        first.stop()
        second = self.start(auth=KEYS)
        self.assertEqual(self.sessions(second, B), {})
        self.assertEqual(request(second, "DELETE", f"/v1/sessions/{container}", key=B).status, 404)
        self.assertRegex(self.run_code(second, "print(x)", "s", key=B), "NameError")
        self.assertEqual(self.run_code(second, "print(x)", "s", key=A), "5")

    def test_caps_that_are_lower_now_hold(self):
        self.leave("x = 0", "x = 1", "x = 2")
        second = self.start(sessions={"per_identity": 1})
        self.journal.wait("destroy", 2)
        self.assertEqual(sorted(self.journal.labels("destroy")), sorted(self.journal.labels("create")[:2]))
        self.assertEqual(set(self.sessions(second)), {"s2"})
        self.assertEqual(self.run_code(second, "print(x)", "s2"), "2")
        self.assertEqual(second.wait_event("state_taken_up")["evicted"], "2")

    def test_a_keys_own_cap_that_is_lower_now_holds(self):
        keys = {"mode": "keys", "keys": [{"name": "a", "key": A, "per_identity": 2}, {"name": "b", "key": B}]}
        self.leave("x = 0", "x = 1", "x = 2", auth=KEYS)
        second = self.start(auth=keys)
        self.journal.wait("destroy")
        self.assertEqual(set(self.sessions(second, A)), {"s1", "s2"})

    # ---- what is lost is told ----

    def test_a_container_that_ended_meanwhile_is_told_and_replaced(self):
        self.leave("x = 5")
        for name in os.listdir(self.boxes):
            os.unlink(os.path.join(self.boxes, name))
        second = self.start()
        self.assertEqual(self.run_code(second, "print(7)", "s0"), LOST.strip() + "\n7")
        self.assertEqual(self.run_code(second, "print(8)", "s0"), "8")
        self.assertEqual(len(self.journal.of("create")), 2)

    def test_another_account_is_not_asked_for_the_containers(self):
        self.leave("x = 5")
        others = os.path.join(self.folder, "others")
        os.mkdir(others)
        second = self.start(sandbox={"state": others})
        refused = second.wait_event("container_not_taken_up")
        self.assertRegex(refused["reason"], "plugin or account, or auth.mode, is another one now")
        self.assertEqual(self.run_code(second, "print(7)", "s0"), LOST.strip() + "\n7")
        self.assertEqual((self.journal.labels("load"), self.journal.labels("destroy")), ([], []))

    def test_another_mode_of_authentication_takes_nothing_up(self):
        self.leave("x = 5")
        second = self.start(auth={"mode": "keys", "keys": [{"name": "anonymous", "key": A}]})
        self.assertRegex(second.wait_event("container_not_taken_up")["reason"], "auth.mode")
        self.assertEqual(self.sessions(second, A), {})

    def test_a_sandbox_that_is_gone_is_told_in_the_log(self):
        self.leave("x = 5")
        second = self.start(sandbox={"name": "other"})
        refused = second.wait_event("container_not_taken_up")
        self.assertEqual(refused["reason"], "there is no sandbox of that name any more; its provider ends it")
        self.assertEqual(refused["sandbox"], "box")
        self.assertRegex(self.run_code(second, "print(x)", "s0"), r"\[exception\] NameError", "it is another sandbox's")

    def test_sessions_of_a_sandbox_that_ends_with_the_process_are_told_their_loss(self):
        first = self.leave("x = 5", sandbox={"state": None})
        self.assertRegex(first.wait_event("nothing_outlives")["message"], "no sandbox here outlives the gateway")
        self.assertEqual(self.journal.labels("destroy"), self.journal.labels("create"))
        second = self.start(sandbox={"state": None})
        self.assertEqual(self.run_code(second, "print(7)", "s0"), LOST.strip() + "\n7")
        self.assertEqual(self.run_code(second, "print(8)", "s0"), "8")

    def test_a_run_that_the_end_cuts_short_leaves_its_session_as_it_was_before(self):
        hang = {"rules": [{"when": "forever", "fault": "hang"}]}
        first = self.start(sandbox=hang, server={"drain": "0s"})
        self.run_code(first, "x = 5", "s")
        wire = self.ask_in_the_background(first, "forever", "s")
        self.journal.wait("run", 2)
        first.stop(quiet=False)
        wire.close()
        second = self.start(sandbox=hang)
        self.assertEqual(self.run_code(second, "print(x)", "s"), "5")
        self.assertEqual(self.journal.of("interrupt"), [f"interrupt {self.journal.labels('create')[0]}"])

    def ask_in_the_background(self, gateway, source, session):
        wire = Wire(gateway)
        wire.post(body_of(source, session))
        return wire

    # ---- files that are not as they were written ----

    def test_a_file_that_was_changed_is_not_taken_up(self):
        self.leave("x = 5")
        text = pathlib.Path(self.state).read_text()
        pathlib.Path(self.state).write_text(text.replace('"is_used":true', '"is_used":false'))
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' is not taken up: its digest does not fit: it was cut or changed")

    def test_a_file_that_was_cut_is_not_taken_up(self):
        self.leave("x = 5")
        text = pathlib.Path(self.state).read_text()
        pathlib.Path(self.state).write_text(text[:len(text) // 2])
        gateway = self.start()
        told = gateway.wait_event("state_refused")["message"]
        self.assertRegex(told, f"^sessions.state_file: '{self.state}' is not taken up: .* at byte [0-9]+")
        self.check_new(gateway, told)

    def test_a_file_of_another_version_is_not_taken_up(self):
        self.leave("x = 5")
        pathlib.Path(self.state).write_text('{"sandgate_state":2,"form":"another"}')
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' is not taken up: it is of version 2, and this gateway reads 1")

    def test_a_file_that_others_may_read_is_not_taken_up(self):
        self.leave("x = 5")
        os.chmod(self.state, 0o640)
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' has mode 0640, so that others may have read or "
                                     "changed it: sessions in it are not taken up; it must be 0600")

    def test_a_file_of_another_user_is_not_taken_up(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        self.leave("x = 5")
        os.chown(self.state, 65534, 65534)
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' belongs to user 65534 and not to the running "
                                     "user 0: sessions in it are not taken up; run the gateway as one user")

    def test_a_link_is_not_followed(self):
        self.leave("x = 5")
        os.rename(self.state, self.state + ".away")
        os.symlink(self.state + ".away", self.state)
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' is a link, which is not followed: sessions in it are not taken up")
        self.assertTrue(os.path.exists(self.state + ".away"))

    def test_a_file_that_has_another_name_too_is_not_taken_up(self):
        self.leave("x = 5")
        os.link(self.state, self.state + ".other")
        self.check_new(self.start(), f"sessions.state_file: '{self.state}' is no plain file of one name: sessions in it are not taken up")

    def test_a_start_that_fails_leaves_the_file_for_the_next(self):
        self.leave("x = 5")
        config = pathlib.Path(self.folder, "taken.yaml")
        config.write_text(to_yaml(self.config()) + "\n")
        status, _, said = run("serve", "--config", str(config), "--listen", f"127.0.0.1:{self.model.port}")
        self.assertEqual(status, 1, said)
        self.assertEqual(self.run_code(self.start(), "print(x)", "s0"), "5")

    def test_two_gateways_do_not_have_one_file(self):
        first = self.start()
        self.run_code(first, "x = 5", "s")
        config = pathlib.Path(self.folder, "second.yaml")
        config.write_text(to_yaml(self.config()) + "\n")
        status, _, said = run("serve", "--config", str(config), "--listen", "127.0.0.1:0")
        self.assertEqual(status, 1)
        self.assertIn(f"sessions.state_file: another gateway uses '{self.state}': give each a file of its own, or end that one first", said)
        self.assertEqual(self.run_code(first, "print(x)", "s"), "5")

    def test_a_lock_that_was_removed_is_taken_anew(self):
        first = self.start(sessions={"state_every": "10ms"})
        self.run_code(first, "x = 5", "s")
        os.unlink(self.state + ".lock")
        told = first.wait_event("state_lock_retaken")
        self.assertEqual((told["level"], told["message"]), ("warn", "the file of the lock was removed: leave it where it is, for it keeps "
                                                            "a second gateway out"))
        config = pathlib.Path(self.folder, "second.yaml")
        config.write_text(to_yaml(self.config()) + "\n")
        status, _, said = run("serve", "--config", str(config), "--listen", "127.0.0.1:0")
        self.assertEqual(status, 1)
        self.assertIn("another gateway uses", said)
        first.stop()
        self.assertEqual(self.run_code(self.start(), "print(x)", "s"), "5")
        self.assertEqual(len(first.events("state_lock_retaken")), 1)

    def test_whose_lock_was_taken_by_another_writes_no_more(self):
        """It came before the first had looked again; the file is the one's whose lock has the name."""
        first = self.start(sessions={"state_every": "0s"})
        self.run_code(first, "x = 5", "s")
        os.unlink(self.state + ".lock")
        second = self.start(sessions={"state_every": "10ms"})
        self.run_code(second, "y = 6", "t")
        poll(lambda: os.path.exists(self.state), "the state of the second to be written")
        first.stop()
        self.assertEqual(first.wait_event("sessions_not_kept")["error"],
                         f"sessions.state_file: the lock of '{self.state}' was removed while this gateway had it, and another gateway has "
                         "it now: nothing is written; end one of the two")
        self.assertTrue(os.path.exists(self.state), "it is not the first's to remove")
        second.stop()
        self.assertEqual(self.run_code(self.start(), "print(y)", "t"), "6")

    def test_where_the_file_cannot_be_written_all_is_deleted(self):
        first = self.start(sessions={"state_every": "0s"})
        self.run_code(first, "x = 5", "s")
        os.mkdir(self.state)  # what replaces it fails
        first.stop()
        self.assertEqual(first.wait_event("sessions_not_kept")["error"],
                         f"sessions.state_file: '{self.state}' cannot be written: Is a directory")
        self.assertEqual(self.journal.labels("destroy"), self.journal.labels("create"))

    def test_writing_that_fails_is_told_once_and_so_is_that_it_works_again(self):
        first = self.start(sessions={"state_every": "10ms"})
        os.mkdir(self.state)  # what replaces it fails
        self.run_code(first, "x = 5", "s")
        failed = first.wait_event("state_write_failed")
        self.assertEqual(failed["level"], "error")
        # While the container is being made there is nothing to write, and what was written is to go.
        self.assertRegex(failed["message"], f"^sessions.state_file: '{self.state}' cannot be (written|removed): Is a directory$")
        self.run_code(first, "x = 6", "s")
        os.rmdir(self.state)
        self.assertEqual(first.wait_event("state_write_recovered")["level"], "info")
        self.assertEqual((len(first.events("state_write_failed")), len(first.events("state_write_recovered"))), (1, 1))
        first.stop()
        self.assertEqual(self.run_code(self.start(), "print(x)", "s"), "6")

    def fill_state(self, left):
        """Has the state file of one session say that there are thousands, whose handles are as long as any: `left` bytes less
        than such a file may have."""
        state = json.loads(pathlib.Path(self.state).read_text())["state"]
        like = {**state["containers"][0], "handle": "HANDLE", "session": "SESSION", "id": "cntr_sgNUMBER"}
        pattern = json.dumps(like, separators=(",", ":"))

        def one(number, length):
            handle = f"mock:{number + 1000}:".encode().ljust(length, b"x").hex()
            return pattern.replace("HANDLE", handle).replace("SESSION", f"{number:08x}".encode().hex()).replace("NUMBER", f"{number:032x}")
        frame = '{"sandgate_state":1,"sha256":"%s","state":%s}\n'
        inner = '{"containers":[\n%s],"notices":[]}'
        room = STATE_BYTES_MAX - left - len(frame % ("0" * 64, inner % ""))
        longest = len(one(0, HANDLE_BYTES_MAX)) + len(",\n")
        count, rest = divmod(room, longest)
        spare = longest - rest  # one more, and so many bytes less in the last two
        entries = [one(number, HANDLE_BYTES_MAX) for number in range(count - 1)]
        entries += [one(count - 1 + i, HANDLE_BYTES_MAX - spare // 4) for i in range(2)]
        text = inner % ",\n".join(entries)
        pathlib.Path(self.state).write_text(frame % (hashlib.sha256(text.encode()).hexdigest(), text))
        return count + 1

    def test_more_than_a_state_file_may_have_is_not_written(self):
        self.leave("x = 5")
        many = self.fill_state(left=500)
        caps = {"per_identity": 100000, "max_containers": 100000, "max_containers_total": 100000}
        second = self.start(sessions={"state_every": "10ms", **caps})
        self.assertEqual(second.wait_event("state_taken_up")["containers"], str(many))
        poll(lambda: os.path.exists(self.state), "what just fits to be written")
        self.run_code(second, "x = 6", "s" * 256)
        self.assertEqual(second.wait_event("state_write_failed")["message"],
                         f"sessions.state_file: the state of all sessions has more than {STATE_BYTES_MAX} bytes")
        self.assertLess(os.stat(self.state).st_size, STATE_BYTES_MAX)
        second.stopped = True  # at its end it would delete thousands that there never were
        second.signal(signal.SIGKILL)
        second.wait_end()

    # ---- what an operator is told at the start ----

    def test_options_that_do_not_fit_are_told(self):
        os.chmod(self.boxes, 0o777)
        for sessions, words in (
                ({"state_file": None}, "sessions: 'on_shutdown: keep' needs 'state_file: PATH' (systemd with StateDirectory= gives one by "
                                       "itself)"),
                ({"on_shutdown": None}, "sessions: 'state_file' means something with 'on_shutdown: keep' only"),
                ({"state_file": "sessions.lock"}, "sessions: 'state_file' may not end in .lock, which has a meaning beside it: choose "
                 "another name"),
                ({"state_file": ""}, "sessions: 'state_file' is empty: name a file, or leave it out under systemd with StateDirectory="),
                ({"state_file": "none/sessions.json"}, f"sessions.state_file: the folder '{self.folder}/none' cannot be opened: No such file "
                                                       "or directory; make it, for the user that runs the gateway"),
                ({"state_file": self.boxes}, f"sessions.state_file: '{self.boxes}' is a folder: name a file in it"),
                ({"state_file": self.boxes + "/"}, f"sessions.state_file: '{self.boxes}/' must name a file, in at most 240 bytes"),
                ({"state_file": self.boxes + "/s.json"}, f"sessions.state_file: {self.boxes} may be written by others (mode 0777), who could "
                                                         "change the gateway's sessions: chmod go-w")):
            with self.subTest(words):
                config = pathlib.Path(self.folder, "wrong.yaml")
                config.write_text(to_yaml(self.config(sessions=sessions)) + "\n")
                for command in (("serve", "--listen", "127.0.0.1:0"), ("check",)):
                    status, _, said = run(*command, "--config", str(config))
                    self.assertNotEqual(status, 0)
                    self.assertIn(words, said)
                    self.assertRegex(said, r"wrong\.yaml:\d+:\d+: sessions")

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_a_folder_that_only_others_may_write_is_told(self):
        folder = os.path.join(self.folder, "roots")
        os.mkdir(folder, 0o755)
        os.chmod(self.folder, 0o755)
        config = pathlib.Path(self.folder, "other.yaml")
        config.write_text(to_yaml(self.config(sessions={"state_file": folder + "/s.json"})) + "\n")
        nobody = pwd.getpwnam("nobody")
        prefix = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--inh-caps=-all", str(BINARY))
        if subprocess.run([*prefix, "version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("another user cannot reach this build's folder")
        for command in (("serve", "--listen", "127.0.0.1:0"), ("check",)):
            done = subprocess.run([*prefix, *command, "--config", str(config)], capture_output=True, text=True, timeout=PATIENCE,
                                  env=self.environment(), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"sessions.state_file: the folder '{folder}' may not be written by the running user {nobody.pw_uid}: "
                          f"chown {nobody.pw_uid} '{folder}', or choose another", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can check for another user")
    def test_root_checks_for_the_user_whose_the_folder_is(self):
        """Its own gateway would be refused there all the same, and so is one whose folder others may write."""
        folder, nobody = os.path.join(self.folder, "theirs"), pwd.getpwnam("nobody").pw_uid
        os.mkdir(folder, 0o700)
        os.chown(folder, nobody, -1)
        config = pathlib.Path(self.folder, "theirs.yaml")
        config.write_text(to_yaml(self.config(sessions={"state_file": folder + "/s.json"})) + "\n")
        self.assertEqual(run("check", "--config", str(config))[0], 0)
        status, _, said = run("serve", "--config", str(config), "--listen", "127.0.0.1:0")
        self.assertEqual(status, 1)
        self.assertIn(f"sessions.state_file: {folder} belongs to user {nobody}, who could change the gateway's sessions", said)
        os.chmod(folder, 0o770)
        status, _, said = run("check", "--config", str(config))
        self.assertEqual(status, 1)
        self.assertIn(f"{folder} may be written by others (mode 0770)", said)

    def test_a_check_beside_the_gateway_that_has_the_file_is_good(self):
        first = self.start()
        status, _, said = run("check", "--config", str(first.config_path))
        self.assertEqual((status, said), (0, ""))

    def test_systemd_gives_the_folder(self):
        config = self.config(sessions={"state_file": None})
        folders = f"{self.folder}/lib:{self.folder}/other"
        os.mkdir(f"{self.folder}/lib", 0o700)
        first = self.gateway(config, env={"STATE_DIRECTORY": folders}, upstream_ports=[self.model.port])
        self.run_code(first, "x = 5", "s")
        first.stop()
        self.assertTrue(os.path.exists(f"{self.folder}/lib/sessions.json"))


if __name__ == "__main__":
    main()
