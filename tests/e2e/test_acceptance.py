"""The acceptance script against the shipped examples, as an operator runs it, and against a gateway with two keys."""
import os
import socket
import subprocess

from harness import E2E, ROOT, main
from upstream import Status

SCRIPT = ROOT / "scripts" / "acceptance.sh"


class Acceptance(E2E):
    def accept(self, gateway, **env):
        done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "SANDGATE_URL": gateway.url, **env})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "all hold")
        return done.stdout.splitlines()

    def start_example(self, name):
        gateway = self.gateway((ROOT / "examples" / name).read_text(encoding="utf-8"))
        gateway.fds_before += 64  # sessions keep their containers
        return gateway

    def test_the_local_example_with_real_python(self):
        self.assertEqual(len(self.accept(self.start_example("local.yaml"))), 9)

    def test_the_offline_example(self):
        self.assertEqual(len(self.accept(self.start_example("offline.yaml"))), 9)

    def test_two_keys(self):
        gateway = self.serve(auth={"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"},
                                                            {"name": "b", "key": "key-of-team-b"}]})
        lines = self.accept(gateway, SANDGATE_KEY="key-of-team-a", SANDGATE_KEY2="key-of-team-b")
        self.assertEqual(len(lines), 10)
        self.assertIn("ok    another key with the same session id does not see it", lines)

    def test_it_fails_where_sessions_do_not_hold(self):
        gateway = self.serve(interceptors=[{"plugin": "code_interpreter", "sandbox": "box", "enabled": False}])
        done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "SANDGATE_URL": gateway.url})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("did not hold", done.stdout)

    def test_no_check_holds_where_the_model_answers_with_errors(self):
        gateway = self.serve(self.upstream(forever=Status(400, {"error": {"message": "no such luck"}})))
        done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "SANDGATE_URL": gateway.url})
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, lines[-1]), (1, "8 did not hold"), done.stdout)
        self.assertTrue(lines[0].startswith("FAIL  without the tool nothing is run: "), lines[0])
        self.assertIn("no such luck", lines[0])
        self.assertEqual(done.stderr, "")


class Quickstart(E2E):
    def test_an_upstream_where_nobody_answers_is_said_in_one_line_before_anything_is_done(self):
        with socket.socket() as nobody:  # bound and not listening: connections are refused
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
            for url in (f"http://127.0.0.1:{port}/v1", f"https://user:word@127.0.0.1:{port}", f"http://[::1]:{port}/v1"):
                done = subprocess.run([str(ROOT / "scripts" / "quickstart.sh"), "--once"], capture_output=True, text=True,
                                      timeout=120, check=False, env={**os.environ, "UPSTREAM": url, "MODEL": "m"})
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                host = "::1" if "[" in url else "127.0.0.1"
                self.assertEqual(done.stderr, f"failed: nobody answers at {host} port {port}, where UPSTREAM points: start "
                                              "the model server, or correct UPSTREAM\n")


if __name__ == "__main__":
    main()
