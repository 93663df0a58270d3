"""Keys in a file of their own, and reading them again on SIGHUP: whole or not at all, and without a word to those who work."""
import hashlib
import os
import pathlib
import signal
import socket

from client import Wire, body_of, chat, get
from harness import E2E, main, run, to_yaml
from upstream import answer, code

A, B, C = "key-of-team-a", "key-of-team-b", "key-of-team-c"


def entry(name, key, **options):
    return {"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest(), **options}


class Reload(E2E):
    def keyed(self, *keys, turns=(), auth=None, **options):
        """Serves with these keys in keys.yaml beside the configuration."""
        self.keys_path = pathlib.Path(self.path("keys.yaml"))
        self.write(*keys)
        upstream = self.upstream(*turns, forever=answer("ok"))
        return self.serve(upstream, auth={"mode": "keys", "keys_file": str(self.keys_path), **(auth or {})}, **options)

    def write(self, *keys):
        self.keys_path.write_text(to_yaml(list(keys)) + "\n" if keys else "")

    def reload(self, gateway, event="reloaded"):
        count = len(gateway.events(event))
        gateway.signal(signal.SIGHUP)
        return gateway.wait_events(event, count + 1)[count]

    @staticmethod
    def problem(event):
        return f"{event['place']}: {event['message']}"

    def status(self, gateway, key):
        return get(gateway, "/v1/models", key=key).status

    def test_keys_of_both_places_are_good(self):
        gateway = self.keyed(entry("a", A), auth={"keys": [entry("b", B)]})
        self.assertEqual([self.status(gateway, key) for key in (A, B, C)], [200, 200, 401])
        self.assertEqual(sorted(e["identity"] for e in gateway.wait_events("request", 3) if e["status"] == "200"), ["a", "b"])

    def test_a_key_that_is_added_is_good_and_one_that_is_gone_is_not(self):
        gateway = self.keyed(entry("a", A), entry("b", B, models=["x"]))
        self.write(entry("b", B), entry("c", C))
        told = self.reload(gateway)
        self.assertEqual({k: told.get(k) for k in ("keys", "added", "added_names", "removed", "removed_names", "changed",
                                                   "changed_names", "level")},
                         {"keys": "2", "added": "1", "added_names": "c", "removed": "1", "removed_names": "a",
                          "changed": "1", "changed_names": "b", "level": "info"})
        self.assertEqual([self.status(gateway, key) for key in (A, B, C)], [401, 200, 200])
        for secret in (A, B, C, hashlib.sha256(C.encode()).hexdigest()):
            self.assertNotIn(secret, gateway.log())

    def test_nothing_new_is_told_as_nothing_new(self):
        gateway = self.keyed(entry("a", A))
        told = self.reload(gateway)
        self.assertEqual((told["keys"], told["added"], told["removed"], told["changed"]), ("1", "0", "0", "0"))
        self.assertEqual(gateway.events("needs_restart"), [])

    def test_a_wrong_file_changes_nothing_and_each_problem_is_told_with_its_place(self):
        gateway = self.keyed(entry("a", A))
        self.keys_path.write_text(f"- {{ name: c, key: {C} }}\n- {{ name: d }}\n- {{ name: e, sha256: 12, modles: x }}\n- text\n")
        failed = self.reload(gateway, "reload_failed")
        self.assertEqual((failed["problems"], failed["message"], failed["level"]),
                         ("4", "nothing was changed: what was read before stays in force", "error"))
        self.assertEqual([self.problem(e) for e in gateway.events("reload_problem")], [
            f"{self.keys_path}:3:26: unknown key 'keys[2].modles'; did you mean 'models'?",
            f"{self.keys_path}:4:3: 'keys[3]' must be a map, not text",
            f"{self.keys_path}:2:3: auth: key 'd' needs exactly one of 'sha256' and 'key'",
            f"{self.keys_path}:3:3: auth: 'sha256' of key 'e' must be 64 hexadecimal digits (make it with: printf %s KEY | "
            "sha256sum)"])
        self.assertEqual([self.status(gateway, key) for key in (A, C)], [200, 401])
        self.write(entry("c", C))
        self.reload(gateway)
        self.assertEqual([self.status(gateway, key) for key in (A, C)], [401, 200])

    def test_what_cannot_be_read_or_says_nothing_changes_nothing(self):
        gateway = self.keyed(entry("a", A))
        cases = [("", "auth: mode 'keys' needs at least one entry in 'keys' or in 'keys_file'"),
                 ("name: a\n", "must be a list of entries such as '- { name: … }', not a map"),
                 ("- [\n", "not valid YAML"),
                 (to_yaml([entry("a", A), entry("b", A)]), "auth: the key of 'b' is that of 'a' too (")]
        for text, message in cases:
            self.keys_path.write_text(text)
            self.reload(gateway, "reload_failed")
            self.assertIn(message, gateway.events("reload_problem")[-1]["message"])
        self.keys_path.unlink()
        self.reload(gateway, "reload_failed")
        self.assertEqual(self.problem(gateway.events("reload_problem")[-1]),
                         f"{self.keys_path}: cannot be opened: No such file or directory")
        self.assertEqual(self.status(gateway, A), 200)

    def test_a_file_that_others_may_write_is_refused(self):
        gateway = self.keyed(entry("a", A))
        os.chmod(self.keys_path, 0o646)
        self.reload(gateway, "reload_failed")
        self.assertEqual(self.problem(gateway.events("reload_problem")[-1]),
                         f"{self.keys_path}: {self.keys_path} may be written by others (mode 0646), who could change who may "
                         f"call the gateway: chmod go-w '{self.keys_path}'")
        code_, _, said = run("check", "--config", str(gateway.config_path))
        self.assertEqual(code_, 1)
        self.assertIn("who could change who may call the gateway", said)
        self.keys_path.unlink()
        os.mkfifo(self.keys_path)
        self.reload(gateway, "reload_failed")
        self.assertEqual(self.problem(gateway.events("reload_problem")[-1]), f"{self.keys_path}: is no regular file")

    def test_the_keys_of_the_configuration_itself_are_read_again_and_what_needs_a_restart_is_told(self):
        gateway = self.keyed(entry("a", A), auth={"keys": [entry("b", B)]}, loop={"max_turns": 5})
        text = gateway.config_path.read_text()
        text = text.replace(hashlib.sha256(B.encode()).hexdigest(), hashlib.sha256(C.encode()).hexdigest())
        text = text.replace("max_turns: 5", "max_turns: 6\n  max_calls: 3") + "sessions:\n  per_identity: 3\n"
        text = text.replace("    plugin: mock\n", "", 1)
        gateway.config_path.write_text(text)
        told = self.reload(gateway)
        self.assertEqual((told["added"], told["removed"]), ("1", "1"))
        lines = text.splitlines()
        found = {(e["option"], e["place"]) for e in gateway.events("needs_restart")}

        def place(line, column=1):
            at = next(i for i, one in enumerate(lines) if one.strip() == line)
            return f"{gateway.config_path}:{at + 1}:{column}"
        self.assertEqual(found, {("loop.max_turns", place("max_turns: 6", 14)), ("loop.max_calls", place("max_calls: 3", 3)),
                                 ("sessions", place("sessions:")), ("sandboxes[0].plugin", place("- name: box", 5))})
        self.assertEqual([self.status(gateway, key) for key in (A, B, C)], [200, 401, 200])

    def test_another_mode_needs_a_restart_and_leaves_the_keys(self):
        gateway = self.keyed(entry("a", A))
        gateway.config_path.write_text(gateway.config_path.read_text().replace("mode: keys", "mode: none")
                                       .replace(f"keys_file: {self.keys_path}", ""))
        self.reload(gateway, "needs_restart")
        self.assertEqual(gateway.events("needs_restart")[0]["option"], "auth.mode")
        self.assertEqual([self.status(gateway, key) for key in (A, None)], [200, 401])
        self.assertEqual(gateway.events("reloaded"), [])

    def test_twenty_changes_are_listed_and_the_rest_is_counted(self):
        gateway = self.keyed(entry("a", A), rules=[{"when": f"w{i}", "stdout": "before"} for i in range(25)])
        gateway.config_path.write_text(gateway.config_path.read_text().replace("before", "after"))
        self.reload(gateway)
        told = gateway.events("needs_restart")
        self.assertEqual([e.get("option") for e in told], [f"sandboxes[0].rules[{i}].stdout" for i in range(20)] + [None])
        self.assertEqual(told[-1]["more"], "5")

    def test_a_section_that_there_is_not_is_a_problem(self):
        gateway = self.keyed(entry("a", A))
        gateway.config_path.write_text(gateway.config_path.read_text() + "sesions: {}\n")
        self.reload(gateway, "reload_failed")
        self.assertEqual(gateway.events("reload_problem")[0]["message"], "unknown section 'sesions'; did you mean 'sessions'?")

    def test_a_running_request_keeps_its_key_and_its_container_stays(self):
        gateway = self.keyed(entry("a", A), entry("b", B), turns=(code("slow"), answer("finished")),
                             rules=[{"when": "slow", "delay": "1s"}])
        with Wire(gateway) as wire:
            wire.post(body_of("x", "s"), fields=(f"Authorization: Bearer {A}",))
            gateway.journal.wait("run")
            self.write(entry("b", B))
            self.reload(gateway)
            self.assertEqual(self.status(gateway, A), 401)
            self.assertEqual(wire.answer().text, "finished")
        self.assertEqual(gateway.journal.of("destroy"), [], "the session is idle, and still there")
        self.write(entry("a", A), entry("b", B))
        self.reload(gateway)
        self.assertEqual([s["id"] for s in get(gateway, "/v1/sessions", key=A).json["data"]], ["s"])

    def test_requests_go_on_while_keys_are_read_again_and_again(self):
        gateway = self.keyed(entry("a", A), entry("b", B))
        for i in range(30):
            self.write(entry("a", A), *([entry("b", B)] if i % 2 else []))
            gateway.signal(signal.SIGHUP)
            self.assertEqual(chat(gateway, text="x", tools=(), key=A).status, 200)
        told = self.reload(gateway)
        self.assertEqual(told["keys"], "2")
        self.assertEqual(self.status(gateway, B), 200)

    def test_the_service_manager_is_told(self):
        path = self.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(60)
            gateway = self.keyed(entry("a", A), gateway_options={"env": {"NOTIFY_SOCKET": path}})
            manager.recv(1000)
            gateway.signal(signal.SIGHUP)
            self.assertRegex(manager.recv(1000).decode(), r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
            self.assertEqual(manager.recv(1000).decode(), "READY=1")
            gateway.wait_event("reloaded")
            self.write()
            gateway.signal(signal.SIGHUP)
            manager.recv(1000)
            self.assertEqual(manager.recv(1000).decode(), "READY=1", "what was read before is in force")

    def test_ten_thousand_keys_are_found_as_fast_as_one(self):
        keys = [f"- {{name: k{i}, sha256: {hashlib.sha256(str(i).encode()).hexdigest()}}}" for i in range(9999)]
        gateway = self.keyed(entry("a", A))
        self.keys_path.write_text("\n".join([*keys, to_yaml([entry("a", A)])]) + "\n")
        told = self.reload(gateway)
        self.assertEqual((told["keys"], told["added"]), ("10000", "9999"))
        self.assertEqual([self.status(gateway, key) for key in (A, "9998", "9999")], [200, 200, 401])


if __name__ == "__main__":
    main()
