"""E2B by its domain: https with a certificate of an authority of its own, the API and each sandbox at a name of their own. Wrong
certificates and names that do not answer are told apart in the log, and no host of a sandbox stands in it."""
import shutil
import unittest

from e2b import API_KEY, REFUSED, E2B, make_certificate
from harness import main


@unittest.skipUnless(shutil.which("openssl"), "THERE IS NO openssl: NOTHING WAS TESTED HERE")
class Tls(E2B):
    def plugin_options(self, stub):
        return {"name": "box", "plugin": "e2b", "api_key": API_KEY, "domain": f"e2b.localhost:{stub.port}",
                "ca_file": str(stub.certificate)}

    def test_each_sandbox_has_a_host_of_its_own(self):
        stub = self.stub(*make_certificate(self.folder))
        gateway = self.serve(stub)
        self.assertEqual(self.python(gateway, "x = 5\nprint(x)", "s"), "5")
        self.assertEqual(self.tell_messages(gateway, "bash echo hi > a.txt; cat a.txt", "m"), "hi")
        self.assertEqual(self.tell_messages(gateway, 'edit {"command": "view", "path": "a.txt"}', "m").split(), ["1", "hi"])
        ids = stub.made()
        hosts = {line["host"] for line in stub.journal("m")}
        self.assertEqual(hosts, {f"api.e2b.localhost:{stub.port}", f"49999-{ids[0]}.e2b.localhost:{stub.port}",
                                 f"49983-{ids[1]}.e2b.localhost:{stub.port}"})
        with_key = {line["host"] for line in stub.journal("m") if "x-api-key" in line["h"]}
        self.assertEqual(with_key, {f"api.e2b.localhost:{stub.port}"})
        gateway.stop()
        self.assertEqual(stub.sandboxes(), [])

    def test_a_certificate_that_is_not_trusted_gets_no_key(self):
        stub = self.stub(*make_certificate(self.folder))
        gateway = self.serve(stub, {"ca_file": None})
        self.assertEqual(self.python(gateway, "1", "s"), REFUSED)
        self.assertRegex(gateway.wait_event("service_failed")["message"],
                         r"^e2b \(box\): cannot make a sandbox: E2B's API cannot be trusted (?i:.*(certificate|TLS))")
        self.assertEqual(stub.journal("m"), [])

    def test_a_service_that_is_not_there(self):
        stub = self.stub(*make_certificate(self.folder))
        gateway = self.serve(stub, {"domain": "e2b.localhost:1"})
        self.assertEqual(self.python(gateway, "1", "s"), REFUSED)
        self.assertRegex(gateway.wait_event("service_failed")["message"],
                         r"^e2b \(box\): cannot make a sandbox: E2B's API cannot be reached: cannot connect to api\.e2b\.localhost:1:")
        self.assertEqual(stub.journal("m"), [])

    def test_a_domain_that_has_no_address(self):
        stub = self.stub(*make_certificate(self.folder))
        gateway = self.serve(stub, {"domain": "no-such-host.invalid"})
        self.assertEqual(self.python(gateway, "1", "s"), REFUSED)
        self.assertRegex(gateway.wait_event("service_failed")["message"],
                         r"^e2b \(box\): cannot make a sandbox: E2B's API has no address \(check 'domain', 'api_url' and 'sandbox_url', "
                         r"and the name server\): .*api\.no-such-host\.invalid")
        self.assertEqual(stub.journal("m"), [])


if __name__ == "__main__":
    main()
