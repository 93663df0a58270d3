"""The unmodified official client from npm (`openai`) against the gateway: whole answers, streams, and the client's own
functions beside the code interpreter. scripts/test.sh installs it into the build folder."""
import os
import shutil
import subprocess
import unittest

from harness import BUILD, E2E, ROOT, main
from upstream import answer, code, streamed

CLIENT = BUILD / "npm" / "node_modules" / "openai"
SKIP = f"THE OFFICIAL CLIENT IS NOT AT {CLIENT}: scripts/test.sh installs it; NOTHING WAS TESTED HERE"
PROGRAM = ROOT / "tests" / "e2e" / "official_client.mjs"


@unittest.skipUnless(CLIENT.exists() and shutil.which("node"), SKIP)
class OfficialClient(E2E):
    def node(self, gateway, part):
        done = subprocess.run(["node", str(PROGRAM), part], capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "OPENAI_MODULE": str(CLIENT), "OPENAI_BASE_URL": gateway.url + "/v1",
                                   "OPENAI_API_KEY": "none"})
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ok"), done.stdout + done.stderr)

    def test_a_whole_answer(self):
        self.node(self.serve(), "whole")

    def test_a_stream(self):
        self.node(self.serve(), "stream")

    def test_a_stream_through_the_clients_own_accumulator(self):
        upstream = self.upstream(streamed("Let me see.", calls=[("c", "code_interpreter", {"code": "print(6 * 7)"})],
                                          usage=(10, 2)), streamed("It is 42.", usage=(20, 3)))
        self.node(self.serve(upstream), "accumulate")

    def test_a_client_function_beside_the_code_interpreter(self):
        both = answer("Both.", calls=[("call_up_a", "code_interpreter", {"code": "print(6 * 7)"}),
                                      ("call_up_b", "get_stock", {"part": "A-7"})])
        upstream = self.upstream(both, answer("Stock 5 and 42."))
        gateway = self.serve(upstream)
        self.node(gateway, "mixed")
        self.assertEqual(len(upstream.requests), 2)
        results = [m for m in upstream.requests[1].json["messages"] if m["role"] == "tool"]
        self.assertIn("5", [m["content"] for m in results])

    def test_a_mixed_stream(self):
        both = streamed(calls=[("call_up_a", "code_interpreter", {"code": "print(6 * 7)"}),
                               ("call_up_b", "get_stock", {"part": "A-7"})])
        self.node(self.serve(self.upstream(both)), "mixed_stream")

    def test_errors_are_raised_as_the_client_knows_them(self):
        self.node(self.serve(), "unknown_model")
        upstream = self.upstream(code("print(1)"))
        gateway = self.serve(upstream)
        self.node(gateway, "failed_after_run")
        self.assertEqual(len(upstream.requests), 3, "the gateway tries the turn again, the client nothing")
        self.assertEqual(len(gateway.journal.of("run")), 1)


if __name__ == "__main__":
    main()
