"""Running the unmodified official clients from npm against a gateway: programs in clients/, at the versions of its
package.json, which scripts/test.sh installs into the build folder. And what several of them are asked to do."""
import os
import shutil
import subprocess
import unittest

from harness import BUILD, E2E, ROOT
from upstream import Status, always

MODULES = BUILD / "npm" / "node_modules"
PROGRAMS = ROOT / "tests" / "e2e" / "clients"
SKIP = f"THE OFFICIAL CLIENTS ARE NOT AT {MODULES}: scripts/test.sh installs them; NOTHING WAS TESTED HERE"


def both(call_id, name="code_interpreter", arguments=None):
    """Calls of a tool of ours and of the client's, for a turn of the upstream."""
    return [(f"{call_id}_a", name, arguments or {"code": "print(6 * 7)"}), (f"{call_id}_b", "get_stock", {"part": "A-7"})]


@unittest.skipUnless((MODULES / "openai").exists() and shutil.which("node"), SKIP)
class Official(E2E):
    program = None  # in clients/
    form = None  # the module that writes the upstream's turns and reads what it was sent
    mixed, said = None, None  # the calls of a turn that calls ours and the client's, and its text
    openai, anthropic = "openai", "@anthropic-ai/sdk"

    def node(self, gateway, *parts):
        done = subprocess.run(
            ["node", str(PROGRAMS / self.program), *parts], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "CLIENTS": str(MODULES), "GATEWAY": gateway.url,
                 "OPENAI_MODULE": str(MODULES / self.openai), "OPENAI_BASE_URL": gateway.url + "/v1", "OPENAI_API_KEY": "none",
                 "ANTHROPIC_MODULE": str(MODULES / self.anthropic), "ANTHROPIC_BASE_URL": gateway.url,
                 "ANTHROPIC_API_KEY": "none", **gateway.trusted})
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ok"), f"{parts}\n{done.stdout}{done.stderr}")

    def check_mixed(self, part, turn, stock="5"):
        """The client answers its own call and goes on; `turn` writes the upstream's turns, whole or streamed."""
        upstream = self.upstream(turn(self.said, calls=self.mixed), turn("Stock 5 and 42."))
        self.node(self.serve(upstream), part)
        self.assertEqual(len(upstream.requests), 2)
        self.check_whole(upstream.requests[1].json, stock)

    def check_whole(self, body, stock):
        """A request that has the turn as the upstream made it, and both results."""
        calls, results = self.form.calls_of(body), self.form.results_of(body)
        self.assertEqual([name for _, name, _ in calls], ["code_interpreter", "get_stock"])
        self.assertEqual([text for _, text in results], ["42", stock])
        self.assertEqual([call_id for call_id, _, _ in calls], [call_id for call_id, _ in results])

    def check_kept_container(self):
        """The container of a request is named in the next one."""
        gateway = self.serve(sandbox={"keep": "1m"})
        self.node(gateway, "container")
        self.assertEqual(len(gateway.journal.of("create")), 1)

    def check_one_run(self, *statuses):
        """The upstream fails behind a run: the gateway may try it again, the client gets an answer that it does not repeat."""
        for part in ("failed_after_run", "failed_after_run_in_a_stream"):
            for status in statuses:
                upstream = self.upstream(self.form.code("print(1)", name="code_interpreter"),
                                         *always(Status(status, headers=[("Retry-After", "0")])))
                gateway = self.serve(upstream)
                self.node(gateway, part)
                tries = 1 if status == 409 else 2  # of the gateway's own
                self.assertEqual(len(upstream.requests), 1 + tries, "the client must not repeat it")
                self.assertEqual(len(gateway.journal.of("run")), 1)

    def check_end_by_leaving(self):
        """The client leaves while its code runs."""
        gateway = self.serve(rules=[{"when": "6 * 7", "fault": "hang"}])
        self.node(gateway, "leave")
        gateway.journal.wait("destroy")
        self.assertEqual([event["error"] for event in gateway.events("service_failed") if event["error"] == "TIMEOUT"], [],
                         "the run was ended, and not by its time limit")
