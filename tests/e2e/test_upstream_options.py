"""What an upstream's entry may say beyond its address: headers of the operator's, how often a call is repeated, and every mistake
in the files that it names, with its place."""
import os
import pathlib
import shutil
import subprocess
import unittest

from authority import Authority
from client import TOOL, body_of, post
from harness import E2E, main, run
from upstream import Status, answer, code

PATH = "/v1/chat/completions"
LATER = Status(429, headers=[("Retry-After-Ms", "0")])


class Headers(E2E):
    def serve_with(self, headers, *turns, env=None, **options):
        upstream = self.upstream(*turns)
        gateway = self.serve(upstream, upstream_options={"headers": headers, **options}, gateway_options={"env": env})
        return gateway, upstream

    def test_they_go_up_with_every_request_in_place_of_the_clients(self):
        headers = {"X-Team": "blue", "OpenAI-Beta": "ours", "User-Agent": "gate/1", "X-Key": "${TEAM_KEY}"}
        gateway, upstream = self.serve_with(headers, code("print(1)"), answer("ok"), answer("ok"), env={"TEAM_KEY": "k-12345678"})
        sent = {"openai-beta": "clients", "x-team": "clients", "anthropic-beta": "clients"}
        for tools in ([TOOL], []):
            self.assertEqual(post(gateway, PATH, body_of("x", tools=tools), headers=sent).text, "ok")
        self.assertEqual(len(upstream.requests), 3)
        for request in upstream.requests:
            names = [name.lower() for name, _ in request.fields]
            self.assertEqual(len(names), len(set(names)), request.fields)
            self.assertEqual([request.get(name) for name in ("x-team", "openai-beta", "user-agent", "x-key", "anthropic-beta")],
                             ["blue", "ours", "gate/1", "k-12345678", "clients"])
        self.assertNotIn("k-12345678", gateway.log())

    def test_a_key_in_a_header_of_its_own_is_as_secret_as_an_api_key(self):
        """As servers want it that know no Authorization."""
        def shows(status, words):
            return Status(status, {"error": {"message": words, "code": "x"}})
        for tools in ([TOOL], []):
            gateway, upstream = self.serve_with({"api-key": "secret-of-the-operator"}, shows(400, "bad key secret-of-the-operator"),
                                                shows(400, "bad other"), shows(401, "secret-of-the-op**"))
            replies = [post(gateway, PATH, body_of("x", tools=tools)) for _ in range(3)]
            self.assertEqual([request.get("api-key") for request in upstream.requests], ["secret-of-the-operator"] * 3)
            self.assertEqual([request.get("authorization") for request in upstream.requests], [None] * 3)
            self.assertEqual([(reply.status, reply.error["message"]) for reply in replies], [
                (400, "The model server answered with status 400; its words held the gateway's own credentials and are kept back."),
                (400, "bad other"), (502, "The model server refused the gateway's own credentials.")])
            self.assertNotIn("secret-of", gateway.log())

    def test_a_scheme_in_front_of_a_key_hides_nothing(self):
        gateway, _ = self.serve_with({"Authorization": "Basic c2VjcmV0OnNlY3JldA"},
                                     Status(400, {"error": {"message": "what is c2VjcmV0OnNlY3JldA?"}}))
        reply = post(gateway, PATH, body_of("x", tools=[]))
        self.assertEqual(reply.status, 400)
        self.assertNotIn("c2Vj", reply.body.decode())


class Retries(E2E):
    def ask(self, retries, *turns, **body):
        upstream = self.upstream(*turns)
        options = {} if retries is None else {"retries": retries}
        gateway = self.serve(upstream, upstream_options=options)
        return gateway, upstream, post(gateway, PATH, body_of("x", **body))

    def test_so_often_and_no_oftener(self):
        for retries, calls in ((0, 1), (None, 2), (1, 2), (3, 4)):
            for stream in (False, True):
                gateway, upstream, reply = self.ask(retries, *[LATER] * calls, answer("never"), stream=stream)
                self.assertEqual((reply.status, len(upstream.requests)), (429, calls), retries)
                self.assertEqual(len(gateway.events("upstream_retry")), calls - 1)

    def test_one_that_is_good_is_the_last(self):
        _, upstream, reply = self.ask(5, LATER, LATER, LATER, answer("fourth"), answer("never"))
        self.assertEqual((reply.text, len(upstream.requests)), ("fourth", 4))

    def test_each_turn_has_its_own(self):
        _, upstream, reply = self.ask(1, LATER, code("print(1)"), LATER, answer("ok"))
        self.assertEqual((reply.text, len(upstream.requests)), ("ok", 4))

    def test_the_pause_grows(self):
        gateway, _, _ = self.ask(3, *[Status(500)] * 4)
        waits = [int(line["wait_ms"]) for line in gateway.wait_events("upstream_retry", 3)]
        for wait, least in zip(waits, (200, 400, 800)):
            self.assertTrue(least <= wait < least + 400, waits)

    def test_a_relayed_request_that_was_not_sent_is_repeated_as_often(self):
        upstream = self.upstream()
        upstream.close()
        gateway = self.serve(upstream, upstream_options={"retries": 2})
        self.assertEqual(post(gateway, PATH, body_of("x", tools=[])).status, 502)
        self.assertEqual(len(gateway.wait_events("upstream_retry", 2)), 2)


@unittest.skipUnless(shutil.which("openssl"), "THERE IS NO openssl: NOTHING WAS TESTED HERE")
class Checked(E2E):
    """`sandgate check` says all that is wrong, with its place; nothing that is secret is said."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.certificate, self.key = self.authority.issue("gateway")
        os.chmod(self.key, 0o600)

    def problems(self, options, base="https://model.test/v1", more=""):
        entry = f"base_url: {base}" if base else "plugin: mock"
        text = (f"auth: {{ mode: none }}\nupstreams:\n  - name: up\n    {entry}\n    models: [mock]\n" +
                "".join(f"    {key}: {value}\n" for key, value in options.items()) + more)
        path = pathlib.Path(self.path("config.yaml"))
        path.write_text(text)
        exit_code, _, err = run("check", "--config", str(path), env={"EMPTY_BUT_SET": ""})
        lines = [line.replace(str(path), "F").replace(self.folder, "D") for line in err.splitlines()]
        self.assertEqual(exit_code, 1 if lines else 0, lines)
        return lines[:-1]

    def expect(self, options, *wanted, **kwargs):
        self.assertEqual(self.problems(options, **kwargs), list(wanted))

    def write(self, name, text, mode=0o600):
        path = pathlib.Path(self.folder, name)
        path.write_text(text)
        os.chmod(path, mode)
        return path

    def test_good_ones(self):
        self.expect({"ca_file": self.authority.certificate, "client_certificate": self.certificate, "client_key": self.key,
                     "proxy": "socks5h://[::1]:1080/", "retries": 5, "headers": '{ x-a: "1" }'})
        os.chmod(self.key, 0o640)  # a group may keep it
        both = self.write("both.pem", self.key.read_text() + self.certificate.read_text() + self.authority.certificate.read_text())
        self.expect({"client_certificate": both, "client_key": both, "proxy": "https://u:p@proxy.test:3128"})
        self.expect({"ca_file": self.authority.certificate, "proxy": "https://proxy.test:1"}, base="http://model.test/v1")
        self.expect({"retries": 0, "headers": "{}"}, base=None)

    def test_files_that_hold_no_certificate(self):
        text = self.certificate.read_text()
        cut = self.write("cut.pem", text + text[:len(text) // 2])
        garbled = self.write("garbled.pem", text.replace("M", "!", 3))
        empty, big = self.write("empty.pem", ""), self.write("big.pem", text + "#" * (1 << 20))
        for option in ("ca_file", "client_certificate"):
            partner = {"client_key": self.key} if option == "client_certificate" else {}
            for path, words in (("none.pem", "cannot be opened: 'D/none.pem': No such file or directory"),
                                (self.folder, "is no regular file: 'D'"), ("/dev/null", "is no regular file: '/dev/null'"),
                                (empty, "holds no certificate (PEM, '-----BEGIN CERTIFICATE'): 'D/empty.pem'"),
                                (self.key, "holds no certificate (PEM, '-----BEGIN CERTIFICATE'): 'D/gateway-key.pem'"),
                                (big, "is larger than 1 MiB: 'D/big.pem'")):
                self.expect({option: path, **partner}, f"F:6:{len(option) + 7}: upstream 'up': '{option}' {words}")
            for path, number in ((cut, 2), (garbled, 1)):
                found = self.problems({option: path, **partner})
                self.assertEqual(len(found), 1, found)
                self.assertIn(f"'{option}' has a certificate (number {number}) that cannot be read: 'D/{path.name}': ", found[0])

    def test_keys(self):
        other, other_key = self.authority.issue("other")
        locked = pathlib.Path(self.folder, "locked.pem")
        subprocess.run(["openssl", "pkey", "-in", self.key, "-aes256", "-passout", "pass:x", "-out", locked], check=True)
        os.chmod(locked, 0o600)
        readable = self.write("readable.pem", self.key.read_text(), 0o644)
        written = self.write("written.pem", self.key.read_text(), 0o620)
        garbled = self.write("garbled.pem", "-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n")
        place = "F:7:17: upstream 'up': 'client_key'"
        for path, words in ((other_key, None), (readable, "may be read by everybody on this machine (mode 0644): chmod o-rw 'D/readable.pem'"),
                            (written, "D/written.pem may be written by others (mode 0620), who could change whom the gateway is taken "
                                      "for: chmod go-w 'D/written.pem'"),
                            (locked, "is protected by a passphrase, which nobody could give: write it without one: 'D/locked.pem'"),
                            (garbled, "holds no private key that can be read (PEM, '-----BEGIN PRIVATE KEY'): 'D/garbled.pem'"),
                            (self.write("cert.pem", self.certificate.read_text()),
                             "holds no private key that can be read (PEM, '-----BEGIN PRIVATE KEY'): 'D/cert.pem'")):
            if path == other_key:
                os.chmod(path, 0o600)
                words = "is not the key of the certificate (the first in its file)"
            self.expect({"client_certificate": self.certificate, "client_key": path}, f"{place} {words}")
        self.expect({"client_certificate": self.certificate}, "F:6:25: upstream 'up': 'client_certificate' needs its 'client_key'")
        self.expect({"client_key": self.key}, "F:6:17: upstream 'up': 'client_key' needs its 'client_certificate'")

    def test_proxies(self):
        for url, words in (("proxy.test:3128", "of a proxy starts with http://, https:// or socks5h://"),
                           ("socks5://proxy.test:1", "of a proxy starts with http://, https:// or socks5h://"),
                           ("http://proxy.test", "of a proxy needs its port, as in http://proxy.test:3128"),
                           ("http://proxy.test:3128/path", "of a proxy ends behind its port"),
                           ("http://proxy.test:99999", "has a port that is not between 1 and 65535"),
                           ("http://:3128", "has no host, or one that is too long"),
                           ("http://hidden@proxy.test:3128", "has user info that is not user:password"),
                           ("http://:hidden@proxy.test:3128", "has user info that is not user:password"),
                           ("http://user:hidden%zz@proxy.test:1", "has a '%' in its user or password that no two hexadecimal digits "
                                                                  "follow: write it as %25"),
                           ("http://user:hidden%0a@proxy.test:1", "has a user or password with characters that may not be there"),
                           ("http://us%3aer:hidden@proxy.test:1", "has a user or password with characters that may not be there"),
                           (f"http://user:{'h' * 256}@proxy.test:1", "has a user or password of more than 255 bytes"),
                           ('"http://user:hidden password@proxy.test:1"',
                            "has spaces, control characters or others that have to be escaped")):
            words = words.replace("http://proxy.test:3128", "http://proxy.lan:3128")
            self.expect({"proxy": url}, f"F:6:12: upstream 'up': 'proxy' cannot be used: the URL {words}")

    def test_headers(self):
        def at(column, name, words):
            return f"F:6:{column}: upstream 'up': 'headers' holds '{name}', which {words}"
        for name, words in (("Host", "is the gateway's to set"), ("content-length", "is the gateway's to set"),
                            ("Content-Type", "is the gateway's to set"), ("accept-encoding", "is the gateway's to set"),
                            ("Connection", "belongs to one connection, and is the gateway's to set"),
                            ("Proxy-Authorization", "belongs to one connection, and is the gateway's to set"),
                            ("idempotency-key", "would make all requests the same one"), ('"x y"', "is not the name of a header")):
            self.expect({"headers": f"{{ {name}: secret-value }}"}, at(14, name.strip('"'), words))
        for value in ('" secret"', '"secret\\n"', '"sec\\u0007ret"'):
            self.expect({"headers": f"{{ x-a: {value} }}"}, at(14, "x-a", "has white space around its value or control characters in it"))
        self.expect({"headers": "{ x-a: a, X-A: b }"}, at(14, "X-A", "is there twice"))
        for name in ("Authorization", "x-api-key"):
            self.expect({"headers": f"{{ {name}: secret }}", "api_key": "k-123456"},
                        at(14, name, "says who you are, as 'api_key' does: leave one out"))
        found = self.problems({"headers": "{ authorization: secret }", "passthrough": "true"})
        self.assertIn(at(14, "authorization", "says who you are, and with 'passthrough' the client does"), found)
        self.expect({"headers": "[ x-a ]"}, "F:6:14: upstreams: 'headers' must be a map of names to texts, not a list")
        found = self.problems({"headers": '{ x-a: "${NOT_SET_ANYWHERE}" }'})
        self.assertEqual(len(found), 1)
        self.assertIn("NOT_SET_ANYWHERE", found[0])

    def test_what_has_no_effect(self):
        plain = "is of no use where 'base_url' is plain http: leave it out, or write https"
        self.expect({"ca_file": self.authority.certificate}, f"F:6:14: upstream 'up': 'ca_file' {plain}", base="http://model.test/v1")
        self.expect({"client_certificate": self.certificate, "client_key": self.key},
                    f"F:6:25: upstream 'up': 'client_certificate' {plain}", f"F:7:17: upstream 'up': 'client_key' {plain}",
                    base="http://model.test/v1")
        plugin = "is of no use with 'plugin', which makes no connection here: leave it out"
        self.expect({"proxy": "http://proxy.test:1"}, f"F:6:12: upstream 'up': 'proxy' {plugin}", base=None)
        self.expect({"headers": "{ x-a: b }"}, f"F:6:14: upstream 'up': 'headers' {plugin}", base=None)
        for value in ("6", "-1"):
            self.assertRegex(self.problems({"retries": value})[0], r"^F:6:14: upstreams: 'retries' must be at (least 0|most 5), not '")

    def test_the_gateway_does_not_start_with_them(self):
        text = ("auth: { mode: none }\nupstreams:\n  - { name: up, base_url: https://model.test/v1, models: [m], ca_file: none.pem }\n")
        path = pathlib.Path(self.path("config.yaml"))
        path.write_text(text)
        exit_code, _, err = run("serve", "--config", str(path))
        self.assertEqual(exit_code, 1)
        self.assertIn("'ca_file' cannot be opened: ", err)


if __name__ == "__main__":
    main()
