"""Running the unmodified official clients from npm against a gateway: programs in clients/, at the versions of its
package.json, which scripts/test.sh installs into the build folder."""
import os
import shutil
import subprocess
import unittest

from harness import BUILD, E2E, ROOT

MODULES = BUILD / "npm" / "node_modules"
PROGRAMS = ROOT / "tests" / "e2e" / "clients"
SKIP = f"THE OFFICIAL CLIENTS ARE NOT AT {MODULES}: scripts/test.sh installs them; NOTHING WAS TESTED HERE"


@unittest.skipUnless((MODULES / "openai").exists() and shutil.which("node"), SKIP)
class Official(E2E):
    program = None  # in clients/
    openai, anthropic = "openai", "@anthropic-ai/sdk"

    def node(self, gateway, *parts):
        done = subprocess.run(
            ["node", str(PROGRAMS / self.program), *parts], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "CLIENTS": str(MODULES), "GATEWAY": gateway.url,
                 "OPENAI_MODULE": str(MODULES / self.openai), "OPENAI_BASE_URL": gateway.url + "/v1", "OPENAI_API_KEY": "none",
                 "ANTHROPIC_MODULE": str(MODULES / self.anthropic), "ANTHROPIC_BASE_URL": gateway.url,
                 "ANTHROPIC_API_KEY": "none"})
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ok"), f"{parts}\n{done.stdout}{done.stderr}")
