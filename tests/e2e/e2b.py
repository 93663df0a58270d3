"""A service that speaks E2B's protocol, under the test's control (e2b_stub.mjs), and gateways that use it by the plugin e2b.

A gateway reaches it as an operator would E2B itself: by `domain`, with the API at https://api.e2b.localhost:PORT and each
sandbox at a name of its own below e2b.localhost, or by `api_url` and `sandbox_url` in plain http. All names below .localhost
are this machine. The stub's journal is the witness of what was asked, with what headers.
"""
import http.client
import json
import pathlib
import re
import shutil
import ssl
import subprocess
import threading
import unittest

from client import chat, post
from forms import CHAT, MESSAGES
from harness import E2E, ROOT, poll
from upstream import Status

STUB = ROOT / "tests" / "e2e" / "e2b_stub.mjs"
API_KEY = "e2b_" + "0123456789abcdef" * 2 + "01234567"
TOOLS = {"python": ("code_interpreter", "code"), "bash": ("bash_code_execution", "command"),
         "edit": ("text_editor_code_execution", None)}
LOST = "[The sandbox of this session was lost and has been replaced: earlier variables and files are gone.]\n"
REFUSED = "[sandbox unavailable] The sandbox could not be made."
BROKEN = "[sandbox failed] The sandbox failed while this ran: it may have had effects."


def make_certificate(folder):
    """(certificate, key) of an authority of its own, good for localhost and what is below e2b.localhost."""
    certificate, key = pathlib.Path(folder, "certificate.pem"), pathlib.Path(folder, "key.pem")
    names = "subjectAltName=DNS:localhost,DNS:*.localhost,DNS:e2b.localhost,DNS:*.e2b.localhost,IP:127.0.0.1"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost", "-addext", names],
                   check=True, capture_output=True)
    return certificate, key


class Stub:
    """One running stub."""

    def __init__(self, certificate=None, key=None):
        command = ["node", str(STUB), *([str(certificate), str(key)] if certificate else [])]
        self.certificate = certificate
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.noted, self.changed, self.marks = [], threading.Condition(), 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.port = self.wait(lambda line: "up" in line)["up"]

    def _read(self):
        for raw in self.process.stdout:
            text = raw.decode("utf-8", "replace")
            with self.changed:
                self.noted.append(json.loads(text) if text.startswith("{") else {"stub_error": text})
                self.changed.notify_all()

    def close(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.wait(30)
            self.reader.join()
            self.process.stdout.close()

    @property
    def url(self):
        return f"http{'s' if self.certificate else ''}://localhost:{self.port}"

    # ---- what it has seen ----

    def journal(self, *names):
        """All lines that have one of these members; all lines where none is named. What the stub has seen so far is there, also
        where this process has not come to read it yet."""
        if not self.process.stdin.closed:
            self.marks += 1
            mark = {"mark": self.marks}
            self.ask("POST", "/_stub/note", mark)
            self.wait(lambda line: line == mark)
        with self.changed:
            return [line for line in self.noted if "mark" not in line and (not names or any(name in line for name in names))]

    def wait(self, fits, count=1):
        """The first line that fits, once so many do."""
        def found():
            with self.changed:
                lines = [line for line in self.noted if fits(line)]
            return lines[count - 1:count]
        return poll(found, lambda: f"{count} of a line of the stub's journal: {self.noted[-8:]}")[0]

    def requests(self, path=r"", method=None):
        """Requests that reached it, by the path's beginning as an expression."""
        return [line for line in self.journal("m") if re.match(path, line["url"]) and method in (None, line["m"])]

    def made(self):
        return [line["made"] for line in self.journal("made")]

    def ended(self, by=None):
        return [line["ended"] for line in self.journal("ended") if by in (None, line["by"])]

    def wait_ended(self, count):
        self.wait(lambda line: "ended" in line, count)

    # ---- steering ----

    def ask(self, method, path, body=None):
        if self.certificate:
            trust = ssl.create_default_context(cafile=str(self.certificate))
            connection = http.client.HTTPSConnection("localhost", self.port, context=trust, timeout=60)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def sandboxes(self):
        return self.ask("GET", "/_stub/sandboxes")

    def fault(self, at, **fault):
        """Scripts one (e2b_stub/faults.mjs): at="api", "interpreter" or "envd"; the first requests that fit get it."""
        self.ask("POST", "/_stub/faults", {"at": at, **fault})

    def kill(self):
        """All sandboxes end, as at their timeout."""
        self.ask("POST", "/_stub/kill")


class Script:
    """A model that does what the last user message says, `python …`, `bash …` or `edit JSON`, and answers with what the tool
    told it."""

    def __init__(self):
        self.count = 0

    def __call__(self, connection):
        form = MESSAGES if connection.request.target.endswith("/messages") else CHAT
        is_result, text = form.last(connection.request.json)
        if is_result:
            return Status(200, form.module.answer(text.strip() or "nothing"))
        kind, words = text.split(" ", 1)
        name, key = TOOLS[kind]
        self.count += 1
        call = (f"call_{self.count}", name, {key: words} if key else json.loads(words))
        return Status(200, form.module.answer(calls=[call]))


@unittest.skipUnless(shutil.which("node"), "THERE IS NO node: NOTHING WAS TESTED HERE")
class E2B(E2E):
    def setUp(self):
        super().setUp()
        self.stubs, self.told = [], []

    def stub(self, certificate=None, key=None):
        self.stubs.append(Stub(certificate, key))
        return self.stubs[-1]

    def _end(self):
        """Gateways end first: they delete what they have made, and the stub is the witness."""
        try:
            super()._end()
        finally:
            for stub in self.stubs:
                stub.close()
        for stub in self.stubs:
            self.assertEqual(stub.journal("stub_error"), [])
            self.assertEqual(sorted(stub.made()), sorted(stub.ended()), "sandboxes made, and ended, once each")
            self.check_secrets(stub)

    def plugin_options(self, stub):
        return {"name": "box", "plugin": "e2b", "api_key": API_KEY, "api_url": stub.url, "sandbox_url": stub.url}

    def serve(self, stub, sandbox=None, **sections):
        """A gateway whose model does what it is told, with sandboxes of the stub."""
        upstream = self.upstream(forever=Script())
        config = {"auth": {"mode": "none"}, "upstreams": [{"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}],
                  "sandboxes": [{**self.plugin_options(stub), **(sandbox or {})}],
                  "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}], **sections}
        return self.gateway(config, upstream_ports=[upstream.port, stub.port])

    def tell(self, gateway, words, session=None, **more):
        """What the model was told of that."""
        reply = chat(gateway, text=words, session=session, **more)
        self.told.append(str(reply.fields) + str(reply.body))
        self.assertEqual(reply.status, 200, reply.body)
        return reply.text

    def tell_messages(self, gateway, words, session):
        """Likewise by Messages, whose code execution has a shell and an editor too."""
        body = {"model": "mock", "max_tokens": 1000, "messages": [{"role": "user", "content": words}],
                "tools": [{"type": "code_execution_20250825", "name": "code_execution"}], "metadata": {"session_id": session}}
        reply = post(gateway, "/v1/messages", body)
        self.told.append(str(reply.fields) + str(reply.body))
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["content"][-1]["text"]

    def python(self, gateway, source, session=None, **more):
        return self.tell(gateway, f"python {source}", session, **more)

    def check_secrets(self, stub):
        """The API key reached the API alone; ids and tokens of sandboxes nobody but the stub."""
        for request in stub.journal("m"):
            is_sandbox = re.match(r"\d+-", request["host"]) or "e2b-sandbox-id" in request["h"]
            if is_sandbox or request["h"].get("x-api-key") != API_KEY:
                self.assertNotIn(API_KEY, json.dumps(request))
        seen = "".join([*(gateway.log() for gateway in self.gateways), *self.told,
                        *(str(request.body) for upstream in self.upstreams for request in upstream.requests)])
        self.assertEqual(re.findall(r"e2b_[0-9a-f]{40}|\b[et]a_[0-9a-f]{40}", seen), [])
        self.assertEqual([one for one in stub.made() if one in seen], [])
