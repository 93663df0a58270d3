"""The stub of E2B held against E2B's own client from npm: what the plugin's tests take for E2B must be what that client
understands, faults too. The client wants Node 20; on Node 18, which has no require() of ES modules, it runs as well with an
older release of one package that colours text (`overrides` in clients/package.json)."""
import os
import shutil
import subprocess
import unittest

from e2b import API_KEY, Stub
from harness import main
from official import MODULES, PROGRAMS, SKIP


@unittest.skipUnless((MODULES / "@e2b" / "code-interpreter").exists() and shutil.which("node"), SKIP)
class Client(unittest.TestCase):
    def setUp(self):
        self.stub = Stub()
        self.addCleanup(self.stub.close)

    def check(self, part, **env):
        done = subprocess.run(
            ["node", str(PROGRAMS / "e2b.mjs"), part], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "CLIENTS": str(MODULES), "STUB": self.stub.url, "E2B_API_URL": self.stub.url,
                 "E2B_SANDBOX_URL": self.stub.url, "E2B_API_KEY": API_KEY, **env})
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ok"), f"{part}\n{done.stdout}{done.stderr}")
        self.assertEqual(self.stub.journal("stub_error"), [])

    def test_sandboxes_are_made_prolonged_found_again_and_ended(self):
        self.check("life")
        self.assertEqual((len(self.stub.made()), self.stub.ended("delete")), (1, self.stub.made()))

    def test_a_list_comes_in_pages(self):
        self.check("lists")

    def test_code_runs(self):
        self.check("run")

    def test_contexts_are_apart(self):
        self.check("contexts")

    def test_files_are_kept_whatever_the_version(self):
        for template in ("code-interpreter-v1", "envd-0.5.6", "envd-0.3.9"):
            with self.subTest(template):
                self.check("files", TEMPLATE=template)

    def test_commands_run(self):
        self.check("commands")

    def test_refusals_of_a_run(self):
        self.check("refusals")

    def test_a_run_that_was_left(self):
        self.check("left")

    def test_code_that_does_not_end(self):
        self.check("stuck")

    def test_a_sandbox_that_ends_in_use(self):
        self.check("killed")

    def test_creations_that_fail(self):
        self.check("creates")

    def test_traffic_that_is_not_public(self):
        self.check("traffic")


if __name__ == "__main__":
    main()
