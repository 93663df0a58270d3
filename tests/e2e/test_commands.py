"""The commands besides serving: running code from the shell, and making keys."""
import hashlib
import pathlib
import re
import signal
import socket
import subprocess
import unittest

from client import chat
from harness import BINARY, BUILD, E2E, PATIENCE, SANITIZER_WORDS, Journal, main, run, to_yaml
from upstream import answer


class Run(E2E):
    def setUp(self):
        super().setUp()
        self.journal = Journal(self.path("journal"))

    def config(self, **box):
        path = self.path("config.yaml")
        boxes = [{"name": "box", "plugin": "mock", "journal": str(self.journal.path), **box},
                 {"name": "other", "plugin": "mock", "create_fault": "refuse"}]
        pathlib.Path(path).write_text(to_yaml({"auth": {"mode": "none"}, "sandboxes": boxes, "upstreams": [
            {"name": "m", "plugin": "mock", "models": ["m"]}]}))
        return path

    def run_code(self, *arguments, box="box", stdin=None, config=None, **options):
        """(exit code, standard output, standard error)"""
        command = [str(BINARY), "run", "--config", config or self.config(**options), "--sandbox", box, *arguments]
        done = subprocess.run(command, input=stdin if stdin is not None else "", capture_output=True, text=True,
                              timeout=PATIENCE, env=self.environment(), check=False)
        for word in SANITIZER_WORDS:
            self.assertNotIn(word, done.stderr)
        return done.returncode, done.stdout, done.stderr

    def test_it_prints_what_the_code_prints_and_the_last_value(self):
        self.assertEqual(self.run_code("print(1)"), (0, "1\n", ""))
        self.assertEqual(self.run_code("x = 2\nx * 21"), (0, "42\n", ""))
        self.journal.check_balanced(self)
        self.assertEqual(len(self.journal.of("create")), 2)

    def test_standard_error_and_exceptions_go_to_standard_error(self):
        rules = [{"when": "go", "stdout": "out\n", "stderr": "err\n", "error_name": "ValueError", "error_value": "bad"}]
        code, out, err = self.run_code("go", rules=rules)
        self.assertEqual((code, out), (1, "out\n"))
        self.assertTrue(err.startswith("err\n"), err)
        self.assertIn("ValueError: bad\n", err)
        self.journal.check_balanced(self)

    def test_the_code_comes_from_a_file_or_standard_input_too(self):
        path = pathlib.Path(self.path("code.py"))
        path.write_text("print(7)")
        self.assertEqual(self.run_code(str(path)), (0, "7\n", ""))
        self.assertEqual(self.run_code("-", stdin="print(8)"), (0, "8\n", ""))
        self.assertEqual(self.run_code(stdin="print(9)"), (0, "9\n", ""))
        self.assertEqual(self.run_code("nowhere.py"), (2, "", "sandgate run: there is no file 'nowhere.py'\n"))
        big = pathlib.Path(self.path("big.py"))
        big.write_text("#" * (4 << 20) + "\n")
        self.assertEqual(self.run_code(str(big)), (2, "", f"sandgate run: {big} is larger than 4 MiB\n"))

    def test_what_cannot_be_read_is_said_with_the_reason(self):
        path = self.path("socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            self.assertEqual(self.run_code(path),
                             (2, "", f"sandgate run: cannot read {path}: No such device or address\n"))

    def test_a_shell_command_is_run_and_its_failure_is_1_and_said(self):
        self.assertEqual(self.run_code("--language", "bash", "echo hi && ls"), (0, "hi\n", ""))
        self.assertEqual(self.run_code("--language", "bash", "cat nowhere"),
                         (1, "", "cat: nowhere: No such file or directory\n[exit status 1]\n"))
        code, out, err = self.run_code("--language", "perl", "1")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("the mock sandbox runs python and bash, not 'perl'", err)

    def test_a_container_that_cannot_be_deleted_is_said(self):
        code, out, err = self.run_code("print(1)", destroy_fault="refuse")
        self.assertEqual((code, out), (3, "1\n"))
        self.assertEqual(err.splitlines()[-1],
                         "sandgate: the container could not be deleted; it ends by its own life")

    def test_an_interrupt_ends_a_run_whose_output_nobody_takes(self):
        path = self.config(rules=[{"when": "go", "fault": "flood"}])
        command = [str(BINARY), "run", "--config", path, "--sandbox", "box", "go"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.environment()) as process:
            self.assertEqual(len(process.stdout.read(1)), 1)  # the flood has begun; nothing more is taken
            process.send_signal(signal.SIGINT)
            err = process.stderr.read()
            self.assertEqual(process.wait(PATIENCE), 130, err)
        self.journal.check_balanced(self)

    def test_a_sandbox_that_fails_is_3(self):
        code, out, err = self.run_code("print(1)", box="other")
        self.assertEqual((code, out), (3, ""))
        self.assertRegex(err.splitlines()[-1], r"^sandgate: mock \(other\): ")
        code, out, err = self.run_code("go", rules=[{"when": "go", "fault": "hang"}], run_timeout="100ms")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("sandgate: ", err.splitlines()[-1])
        code, out, err = self.run_code("x", config="/nowhere/config.yaml")
        self.assertEqual((code, out, err), (3, "", "/nowhere/config.yaml: cannot be opened: No such file or directory\n"
                                                   "sandgate: 1 problem in /nowhere/config.yaml\n"))

    def test_wrong_command_lines_are_2(self):
        path = self.config()
        self.assertEqual(self.run_code("x", box="othr", config=path),
                         (2, "", f"sandgate run: there is no sandbox 'othr' in {path}; did you mean 'other'?\n"))
        self.assertEqual(self.run_code("x", box="cloud", config=path),
                         (2, "", f"sandgate run: there is no sandbox 'cloud' in {path}; there is box, other\n"))
        self.assertEqual(run("run", "x"), (2, "", "sandgate run: say which sandbox, with --sandbox NAME\n"))
        self.assertEqual(run("run", "--sandbox", "a", "x", "y"),
                         (2, "", "sandgate run: takes one argument; there is also 'y'; see sandgate run --help\n"))
        self.assertEqual(run("run", "--listen", "x:1"),
                         (2, "", "sandgate run: takes no option 'listen'; see sandgate run --help\n"))

    def interrupted(self, number, runs):
        command = [str(BINARY), "run", "--config", self.config(rules=[{"when": "go", "stdout": "begun\n", "delay": "60s"}]),
                   "--sandbox", "box", "go"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment()) as process:
            self.journal.wait("run", runs)
            process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE)
            return process.returncode, err

    def test_an_interrupt_ends_the_run_and_its_container(self):
        for runs, number in ((1, signal.SIGINT), (2, signal.SIGTERM)):
            self.assertEqual(self.interrupted(number, runs), (128 + number, b""))
        self.journal.check_balanced(self)
        self.assertEqual(len(self.journal.of("destroy")), 2)

    def test_a_reader_that_leaves_ends_it(self):
        command = [str(BINARY), "run", "--config", self.config(rules=[{"when": "go", "fault": "flood"}]), "--sandbox", "box", "go"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment()) as process:
            process.stdout.read(10)
            process.stdout.close()
            err = process.stderr.read().decode()
            self.assertEqual(process.wait(PATIENCE), 3)
        self.assertEqual(err.splitlines()[-1], "sandgate: cannot write the output: Broken pipe")
        self.journal.check_balanced(self)

    @unittest.skipUnless((BUILD / "lib/sandgate/local.so").exists(), "the local sandbox is not built")
    def test_real_python_runs_in_the_local_sandbox(self):
        path = self.path("config.yaml")
        pathlib.Path(path).write_text(to_yaml({"auth": {"mode": "none"}, "sandboxes": [{"name": "box", "plugin": "local"}],
                                               "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}]}))
        code, out, err = self.run_code("import sys\nprint('a')\nprint('b', file=sys.stderr)\n6 * 7", config=path)
        if code == 3 and "local" in err:
            self.skipTest(err)
        self.assertEqual((code, out, err), (0, "a\n42\n", "b\n"))


class Keygen(E2E):
    LINE = re.compile(r"    - \{ name: (\S+), sha256: ([0-9a-f]{64}) \}")

    def keygen(self, *arguments):
        code, out, err = run("keygen", *arguments)
        self.assertEqual((code, err), (0, ""))
        key, line = out.splitlines()
        self.assertRegex(key, r"^sg-[A-Za-z0-9_-]{43}$")
        name, digest = self.LINE.fullmatch(line).groups()
        self.assertEqual(digest, hashlib.sha256(key.encode()).hexdigest())
        return key, name, line

    def test_each_key_is_fresh_and_its_line_lets_it_in(self):
        key, name, line = self.keygen("--name", "team-a")
        self.assertEqual(name, "team-a")
        self.assertNotEqual(self.keygen()[0], key)
        self.assertEqual(self.keygen()[1], "client")
        upstream = self.upstream(answer("hello"))
        gateway = self.gateway("auth:\n  keys:\n" + line + "\nupstreams:\n  - { name: up, models: [mock], base_url: "
                               f"'{upstream.url}/v1' }}\n", upstream_ports=[upstream.port])
        self.assertEqual(chat(gateway, tools=(), text="x", key=key).text, "hello")
        self.assertEqual(chat(gateway, tools=(), text="x", key=key[:-1]).status, 401)
        self.assertEqual(gateway.wait_event("request", lambda line: line["status"] == "200")["identity"], "team-a")

    def test_names_that_yaml_would_read_otherwise_are_refused(self):
        for name in ("", "a b", "a: b", "x" * 65, "ä"):
            self.assertEqual(run("keygen", "--name", name),
                             (2, "", "sandgate keygen: a name is 1 to 64 letters, digits, '_', '-' and '.', not "
                                     f"'{name}'\n"))
        self.assertEqual(run("keygen", "team-a"),
                         (2, "", "sandgate keygen: takes no argument, not 'team-a'; see sandgate keygen --help\n"))


if __name__ == "__main__":
    main()
