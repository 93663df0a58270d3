"""HTTPS of the gateway's own: versions, resumption, clients' certificates, what is refused at the start and at the handshake, and
certificates that change while it serves. Clients are Python's ssl, curl and openssl; certificates are made by openssl(1).
That HTTP is the same over TLS is shown by the other files, run with SANDGATE_TEST_TLS=1."""
import hashlib
import http.client
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import unittest
import warnings

from certificates import HAS_OPENSSL, Authority, openssl
from client import UnixConnection, Wire, body_of, get, request_on
from harness import BINARY, E2E, PATIENCE, ROOT, main, poll, to_yaml
from upstream import answer

OPEN = {"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["mock"]}]}


@unittest.skipUnless(HAS_OPENSSL, "THERE IS NO openssl: NOTHING WAS TESTED HERE")
class TlsCase(E2E):
    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()
        cls.addClassCleanup(shutil.rmtree, cls.authority.folder, True)
        cls.pair = cls.authority.sign("localhost")

    def files(self, pair=None):
        """Copies of a certificate and its key, which the test may change."""
        certificate, key = pathlib.Path(self.path("certificate.pem")), pathlib.Path(self.path("key.pem"))
        self.put(certificate, key, pair or self.pair)
        return certificate, key

    @staticmethod
    def put(certificate, key, pair):
        shutil.copy(pair[0], certificate)
        shutil.copy(pair[1], key)

    def config(self, files, **tls):
        return {**OPEN, "server": {"tls": {"certificate": str(files[0]), "key": str(files[1]), **tls}}}

    def secure(self, files=None, context=None, tls=None, config=None, **options):
        self.served = files or self.files()
        return self.gateway({**self.config(self.served, **(tls or {})), **(config or {})},
                            tls=context or self.authority.context(), **options)

    def handshake(self, gateway, context=None, session=None):
        """(version, was it resumed, session, subject) of a connection that has asked something."""
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as bare:
            with (context or gateway.tls).wrap_socket(bare, server_hostname="localhost", session=session) as sock:
                sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                data = b""
                while piece := sock.recv(65536):
                    data += piece
                assert data.startswith(b"HTTP/1.1 200 "), data
                subject = dict(pair[0] for pair in sock.getpeercert()["subject"])
                return sock.version(), sock.session_reused, sock.session, subject["commonName"]

    def refused_handshake(self, gateway, context, kind):
        """What the client and the log say of a handshake that fails."""
        count = len(gateway.events("handshake_failed"))
        with self.assertRaises((ssl.SSLError, ConnectionError)) as raised:
            self.handshake(gateway, context)
        event = gateway.wait_events("handshake_failed", count + 1)[count]
        self.assertEqual(event["kind"], kind, event)
        self.assertRegex(event["client"], r"^127\.0\.0\.1:\d+$")
        return str(raised.exception), event

    def counted(self, gateway, kind, name="sandgate_tls_handshakes_total"):
        reply = get(gateway, "/metrics")
        return int(re.search(rf'^{name}\{{kind="{kind}"\}} (\d+)$', reply.body.decode(), re.M)[1])


class Handshakes(TlsCase):
    def test_1_2_and_1_3_are_spoken_and_what_is_older_is_not(self):
        gateway = self.secure()
        self.assertEqual(gateway.wait_event("serving")["tls"], "yes")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.authority.context(version, version)
            self.assertEqual(self.handshake(gateway, context)[0], version.name.replace("_", "."))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old = self.authority.context(ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1)
        old.set_ciphers("DEFAULT@SECLEVEL=0")
        said, _ = self.refused_handshake(gateway, old, "version")
        self.assertIn("protocol version", said.lower())
        self.assertEqual(self.counted(gateway, "version", "sandgate_tls_handshake_failures_total"), 1)

    def test_1_3_alone_where_the_operator_wants_it(self):
        gateway = self.secure(tls={"min_version": "1.3"})
        self.assertEqual(self.handshake(gateway)[0], "TLSv1.3")
        self.refused_handshake(gateway, self.authority.context(most=ssl.TLSVersion.TLSv1_2), "version")

    def test_only_ciphers_with_forward_secrecy_are_spoken(self):
        gateway = self.secure()
        context = self.authority.context(most=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers("AES128-GCM-SHA256:AES128-SHA")
        self.refused_handshake(gateway, context, "other")

    def test_sessions_are_resumed_until_another_certificate_comes(self):
        gateway = self.secure()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.authority.context(version, version)
            _, first, session, _ = self.handshake(gateway, context)
            _, second, again, _ = self.handshake(gateway, context, session)
            self.assertEqual((first, second), (False, True), version)
            gateway.signal(signal.SIGHUP)
            gateway.wait_events("reloaded", 1 if version is ssl.TLSVersion.TLSv1_2 else 2)
            self.assertFalse(self.handshake(gateway, context, again)[1], version)
        self.assertEqual(self.counted(gateway, "resumed"), 2)

    def test_http_1_1_is_all_that_is_agreed_upon(self):
        gateway = self.secure()
        for offered, agreed in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1")):
            context = self.authority.context()
            context.set_alpn_protocols(offered)
            with Wire(gateway) as bare, context.wrap_socket(socket.create_connection(("127.0.0.1", gateway.port)),
                                                            server_hostname="localhost") as sock:
                self.assertEqual(sock.selected_alpn_protocol(), agreed)
                self.assertIsNone(bare.sock.selected_alpn_protocol())
        context = self.authority.context()
        context.set_alpn_protocols(["h2"])
        said, _ = self.refused_handshake(gateway, context, "other")
        self.assertIn("no application protocol", said.lower().replace("_", " "))

    def test_http_without_tls_is_told_what_is_wrong(self):
        gateway = self.secure()
        for method in ("GET", "DELETE", "OPTIONS"):
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
            reply = request_on(connection, method, "/v1/models")
            connection.close()
            self.assertEqual((reply.status, reply.get("content-type"), reply.body),
                             (400, "text/plain", b"This address speaks HTTPS: write https:// in place of http://.\n"))
        self.assertEqual([event["kind"] for event in gateway.wait_events("handshake_failed", 3)], ["http"] * 3)

    def test_what_is_no_tls_at_all_is_closed(self):
        gateway = self.secure()
        for raw in (b"\x16\x03\x01\xff\xff" + b"x" * 200, b"\0" * 100, b"get / http/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as sock:
                sock.sendall(raw)
                data = b""
                try:
                    while piece := sock.recv(1000):
                        data += piece
                except ConnectionError:
                    pass
                self.assertNotIn(b"HTTP", data)
        self.assertEqual(get(gateway, "/health/live").status, 200)

    def test_a_handshake_that_does_not_go_on_is_cut_off(self):
        gateway = self.secure()
        hello = client_hello()
        silent, half = (socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) for _ in range(2))
        half.sendall(hello[:50])
        for sock in (silent, half):
            self.assertEqual(sock.recv(100), b"", "closed without a word")
            sock.close()
        self.assertEqual([event["kind"] for event in gateway.wait_events("handshake_failed", 2)], ["timeout"] * 2)
        self.assertEqual(gateway.events("request"), [])

    def test_clients_that_only_begin_keep_nobody_out(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard != resource.RLIM_INFINITY and hard < 4000:
            self.skipTest("too few descriptors")
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard) if hard > 0 else 4000, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        gateway = self.secure()
        loops = int(gateway.wait_event("serving")["loops"])
        beginners = []
        for _ in range(256 * loops + 300):
            beginners.append(socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE))
        for _ in range(20):
            self.assertEqual(get(gateway, "/health/live").status, 200)
        kinds = {event["kind"] for event in gateway.events("handshake_failed")}
        self.assertLessEqual(kinds, {"left", "timeout"}, "those that wait give way; nobody is turned away")
        self.assertGreaterEqual(len(gateway.events("handshake_failed")), 300)
        for sock in beginners:
            sock.close()

    def test_renegotiation_is_refused(self):
        gateway = self.secure()
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port}", "-tls1_2", "-CAfile",
                               str(self.authority.ca)], input="R\n", capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertIn("no renegotiation", done.stderr)
        self.assertIn("Compression: NONE", done.stdout)

    @unittest.skipUnless(shutil.which("curl"), "THERE IS NO curl: NOTHING WAS TESTED HERE")
    def test_curl_is_served(self):
        gateway = self.secure()
        done = subprocess.run(["curl", "-sS", "--http2", "--cacert", str(self.authority.ca), "-w", " %{http_version} %{ssl_verify_result}",
                               f"https://localhost:{gateway.port}/health/live", f"https://localhost:{gateway.port}/health/live"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.stdout, done.stderr), ('{"status":"ok"}\n 1.1 0' * 2, ""))


class Bytes(TlsCase):
    def test_large_bodies_pass_in_both_directions(self):
        said = "".join(random.Random(7).choices("abcdefgh \n\"", k=3 * 1024 * 1024))
        upstream = self.upstream(answer(said), answer(said))
        gateway = self.secure(config={"upstreams": [{"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}]},
                              upstream_ports=[upstream.port])
        asked = said[::-1]
        for tools in ((), None):
            body = body_of(tools=tools or (), text=asked)
            connection = http.client.HTTPSConnection("127.0.0.1", gateway.port, timeout=PATIENCE, context=gateway.tls)
            reply = request_on(connection, "POST", "/v1/chat/completions", body)
            connection.close()
            self.assertEqual(reply.status, 200)
            self.assertEqual(digest(reply.text), digest(said))
            self.assertEqual(digest(upstream.requests[-1].json["messages"][0]["content"]), digest(asked))

    def test_a_client_that_reads_slowly_gets_all_of_it(self):
        said = "".join(random.Random(8).choices("0123456789", k=2 * 1024 * 1024))
        upstream = self.upstream(answer(said))
        gateway = self.secure(config={"upstreams": [{"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"]}]},
                              upstream_ports=[upstream.port])
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the gateway's writes have to wait
        bare.settimeout(PATIENCE)
        bare.connect(("127.0.0.1", gateway.port))
        with Wire.of(gateway.tls.wrap_socket(bare, server_hostname="localhost")) as wire:
            wire.post(body_of(tools=(), text="hello"), fields=("Connection: close",))
            self.assertEqual(digest(wire.answer().text), digest(said))

    def test_a_client_that_leaves_in_the_middle_ends_its_code(self):
        for leave in (Wire.close, Wire.reset, Wire.half_close):
            gateway = self.serve_code()
            wire = Wire(gateway)
            wire.post(body_of("6 * 7"))
            gateway.journal.wait("run")
            leave(wire)
            gateway.journal.wait("destroy")
            wire.close()

    def serve_code(self):
        self.served = self.files()
        return self.serve(rules=[{"when": "6 \\* 7", "fault": "hang"}], server=self.config(self.served)["server"],
                          gateway_options={"tls": self.authority.context()})

    def test_the_end_is_told_before_the_connection_closes(self):
        gateway = self.secure()
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as bare:
            with gateway.tls.wrap_socket(bare, server_hostname="localhost", suppress_ragged_eofs=False) as sock:
                sock.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                data = b""
                while piece := sock.recv(1000):  # without close_notify this raises SSLEOFError
                    data += piece
        self.assertTrue(data.endswith(b'{"status":"ok"}\n'), data)

    def test_a_unix_socket_beside_it_is_bare(self):
        path = self.path("bare.sock")
        files = self.files()
        config = self.config(files)
        config["server"]["listen"] = ["127.0.0.1:0", "unix:" + path]
        gateway = self.gateway(config, tls=self.authority.context(), arguments=())
        self.assertEqual(get(gateway, "/health/live").status, 200)
        connection = UnixConnection(path)
        self.assertEqual(request_on(connection, "GET", "/health/live").status, 200)
        connection.close()
        self.assertEqual([event.get("tls") for event in gateway.events("listening")], ["yes", None])
        self.assertEqual(gateway.wait_event("serving")["tls"], "yes")
        config["server"]["listen"] = "unix:" + self.path("alone.sock")
        alone = self.gateway(config, arguments=(), tls=self.authority.context())
        self.assertNotIn("tls", alone.wait_event("serving"), "nobody speaks it there")

    def test_thousands_of_handshakes_that_are_cut_anywhere_leave_nothing(self):
        """The harness looks for descriptors, LeakSanitizer for memory, when the gateway has ended."""
        gateway = self.secure()
        chance, hello = random.Random(2026), client_hello()
        count = int(os.environ.get("SANDGATE_TLS_CUTS", "2000"))
        seeds = [chance.getrandbits(32) for _ in range(count)]
        threads = [threading.Thread(target=self.cut_some, args=(gateway, hello, seeds[i::8])) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(get(gateway, "/health/live").status, 200)
        poll(lambda: self.settled(gateway) >= count, lambda: f"{count} ends, not {self.settled(gateway)}")
        self.assertGreater(self.counted(gateway, "full"), count // 4)
        self.assertGreater(self.counted(gateway, "left", "sandgate_tls_handshake_failures_total"), count // 8)

    def settled(self, gateway):
        reply = get(gateway, "/metrics").body.decode()
        return sum(int(n) for n in re.findall(r"^sandgate_tls_handshake\w*_total\{\S+ (\d+)$", reply, re.M))

    def cut_some(self, gateway, hello, seeds):
        for seed in seeds:
            chance = random.Random(seed)
            sock = socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE)
            try:
                self.cut_one(gateway, sock, hello, chance)
            except (OSError, ssl.SSLError):
                pass  # the gateway has cut it
            finally:
                sock.close()

    @staticmethod
    def cut_one(gateway, sock, hello, chance):
        way = chance.randrange(4)
        if way == 0:  # in the ClientHello
            sock.sendall(hello[:chance.randrange(len(hello))])
        elif way == 1:  # behind it, with something that is wrong in it
            changed = bytearray(hello)
            changed[chance.randrange(len(hello))] ^= 1 << chance.randrange(8)
            sock.sendall(changed)
            sock.settimeout(5)
            sock.recv(chance.randrange(1, 3000))
        else:  # in a request, or in its answer
            secure = gateway.tls.wrap_socket(sock.dup(), server_hostname="localhost")
            raw = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            secure.sendall(raw[:chance.randrange(len(raw))] if way == 2 else raw)
            if way == 3:
                secure.recv(chance.randrange(1, 400))
            secure.close()
        if chance.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


class Clients(TlsCase):
    def with_certificate(self, pair):
        context = self.authority.context()
        context.load_cert_chain(*pair)
        return context

    def test_clients_need_a_certificate_of_the_authority_that_is_named(self):
        other = Authority(self.folder, "other")
        gateway = self.secure(tls={"client_ca": str(self.authority.ca)}, context=self.with_certificate(self.authority.sign("alice")))
        self.assertEqual(self.handshake(gateway)[0], "TLSv1.3")
        for most in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            stranger = self.authority.context(most=most)
            self.refused_handshake(gateway, stranger, "certificate")
            stranger.load_cert_chain(*other.sign("mallory"))
            self.refused_handshake(gateway, stranger, "certificate")
        self.assertEqual(self.counted(gateway, "certificate", "sandgate_tls_handshake_failures_total"), 4)

    def test_why_a_clients_certificate_is_refused_is_told_on_both_sides(self):
        """A client of TLS 1.3 has sent its request before it is told."""
        gateway = self.secure(tls={"client_ca": str(self.authority.ca)}, context=self.with_certificate(self.authority.sign("alice")))
        gone = self.with_certificate(self.authority.sign("gone", days=-1))
        stranger = self.with_certificate(Authority(self.folder, "other").sign("mallory"))
        for most in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            gone.maximum_version = stranger.maximum_version = most
            nobody = self.authority.context(most=most)
            said, event = self.refused_handshake(gateway, gone, "certificate")
            self.assertIn("certificate expired", said)
            self.assertEqual(event["reason"], "certificate verify failed: certificate has expired")
            said, event = self.refused_handshake(gateway, stranger, "certificate")
            self.assertIn("unknown ca", said)
            self.assertEqual(event["reason"], "certificate verify failed: unable to get local issuer certificate")
            said, event = self.refused_handshake(gateway, nobody, "certificate")
            self.assertIn("certificate required" if most is ssl.TLSVersion.TLSv1_3 else "handshake failure", said)
            self.assertEqual(event["reason"], "peer did not return a certificate")

    def test_a_session_of_before_opens_nothing_once_the_authority_has_changed(self):
        alice = self.with_certificate(self.authority.sign("alice"))
        authorities = pathlib.Path(self.path("authorities.pem"))
        shutil.copy(self.authority.ca, authorities)
        gateway = self.secure(tls={"client_ca": str(authorities)}, context=alice)
        session = self.handshake(gateway)[2]
        self.assertTrue(self.handshake(gateway, session=session)[1])
        other = Authority(self.folder, "other")
        shutil.copy(other.ca, authorities)
        gateway.signal(signal.SIGHUP)
        gateway.wait_event("reloaded")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.handshake(gateway, session=session)
        gateway.tls = self.authority.context()
        gateway.tls.load_cert_chain(*other.sign("bob"))
        self.assertEqual(get(gateway, "/health/live").status, 200)


class Certificates(TlsCase):
    def reload(self, gateway, event="reloaded"):
        count = len(gateway.events(event))
        gateway.signal(signal.SIGHUP)
        return gateway.wait_events(event, count + 1)[count]

    def test_another_certificate_is_taken_without_a_word_to_those_who_are_connected(self):
        gateway = self.secure()
        first = gateway.wait_event("certificate")
        self.assertEqual((first["level"], first["subject"]), ("info", "CN=localhost,O=Tests"))
        self.assertRegex(first["not_after"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertIn(first["days"], ("364", "365"))
        connection = http.client.HTTPSConnection("127.0.0.1", gateway.port, timeout=PATIENCE, context=gateway.tls)
        self.assertEqual(request_on(connection, "GET", "/health/live").status, 200)
        self.put(*self.served, self.authority.sign("renewed", days=90, kind="rsa"))
        self.reload(gateway)
        self.assertEqual(gateway.events("certificate")[-1]["subject"], "CN=renewed,O=Tests")
        self.assertEqual(self.handshake(gateway)[3], "renewed")
        old = connection.sock
        self.assertEqual(request_on(connection, "GET", "/health/live").status, 200)
        self.assertIs(connection.sock, old, "the connection of before goes on")
        connection.close()
        reply = get(gateway, "/metrics").body.decode()
        self.assertIn(re.search(r"^sandgate_tls_certificate_days (\d+)$", reply, re.M)[1], ("89", "90"))

    def test_a_certificate_without_its_key_changes_nothing(self):
        gateway = self.secure()
        shutil.copy(self.authority.sign("renewed")[0], self.served[0])
        told = self.reload(gateway, "reload_problem")
        self.assertEqual(told["place"], f"{gateway.config_path}:11:10")
        self.assertEqual(told["message"], "server.tls: 'key' is not the key of the certificate (the first in its file)")
        gateway.wait_event("reload_failed")
        self.assertEqual(self.handshake(gateway)[3], "localhost")

    def test_tls_that_comes_or_goes_needs_a_restart(self):
        gateway = self.secure()
        text = gateway.config_path.read_text()
        gateway.config_path.write_text(re.sub(r"server:.*", "server: {}\n", text, flags=re.S))
        self.reload(gateway)
        self.assertEqual(gateway.wait_event("needs_restart")["option"], "server.tls")
        self.assertEqual(self.handshake(gateway)[0], "TLSv1.3")
        self.assertIn("sandgate_tls_certificate_days", get(gateway, "/metrics").body.decode())
        bare = self.gateway({**OPEN, "server": {"drain": "30s"}}, tls=False)
        bare.config_path.write_text(text.replace("server:\n", "server:\n  drain: 30s\n"))
        self.reload(bare)
        self.assertEqual(bare.wait_event("needs_restart")["option"], "server.tls")
        self.assertEqual(bare.events("certificate"), [])
        self.assertNotIn("sandgate_tls", get(bare, "/metrics").body.decode())

    def check(self, config):
        path = pathlib.Path(self.path("config.yaml"))
        path.write_text(to_yaml(config) + "\n")
        done = subprocess.run([BINARY, "check", "--config", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stderr.replace(str(path), "F")

    def test_what_is_wrong_with_the_files_is_told_at_the_start(self):
        rows = (
            (lambda c, k: k.chmod(0o644), "key", "may be read by everybody on this machine (mode 0644): chmod o-rw '{key}'"),
            (lambda c, k: k.chmod(0o620), "key", "{key} may be written by others (mode 0620), who could change whom the gateway is "
                                                 "taken for: chmod go-w '{key}'"),
            (lambda c, k: k.unlink(), "key", "cannot be opened: '{key}': No such file or directory"),
            (lambda c, k: c.unlink(), "certificate", "cannot be opened: '{certificate}': No such file or directory"),
            (lambda c, k: (c.unlink(), c.mkdir()), "certificate", "is no regular file: '{certificate}'"),
            (lambda c, k: c.write_text("nothing"), "certificate", "holds no certificate (PEM, '-----BEGIN CERTIFICATE'): '{certificate}'"),
            (lambda c, k: c.write_text(c.read_text() + c.read_text().replace("MII", "xII")), "certificate",
             "has a certificate (number 2) that cannot be read: '{certificate}': "),
            (lambda c, k: k.write_text("nothing"), "key", "holds no private key that can be read (PEM, '-----BEGIN PRIVATE KEY'): '{key}'"),
            (lambda c, k: openssl("ec", "-in", self.pair[1], "-aes256", "-passout", "pass:secret", "-out", k), "key",
             "is protected by a passphrase, which nobody could give: write it without one: '{key}'"),
            (lambda c, k: shutil.copy(self.authority.ca_key, k), "key", "is not the key of the certificate (the first in its file)"),
        )
        for change, option, message in rows:
            certificate, key = self.files()
            change(certificate, key)
            code, said = self.check(self.config((certificate, key)))
            wanted = message.format(certificate=certificate, key=key)
            self.assertEqual(code, 1, message)
            self.assertRegex(said.splitlines()[0], rf"^F:\d+:\d+: server\.tls: '{option}' {re.escape(wanted)}")
            self.assertEqual(len(said.splitlines()), 2, said)

    def test_certificates_that_nobody_takes_are_told(self):
        """Also as one of those behind the first, and at a reload, which changes nothing then."""
        authority = self.authority
        parameters = pathlib.Path(self.path("dsa.pem"))
        openssl("genpkey", "-genparam", "-algorithm", "DSA", "-pkeyopt", "dsa_paramgen_bits:2048", "-out", parameters)
        short, sha1 = authority.sign_itself("short", "rsa:1024"), authority.sign_by_sha1("sha1")
        dsa = authority.sign_itself("dsa", f"dsa:{parameters}")
        rows = ((short, "whose key is too short for TLS of today, RSA of 1024 bits: make one of 2048 bits or more, or on the curve P-256"),
                (sha1, "that was signed with a digest that is too weak for TLS of today, such as SHA-1: have it signed with SHA-256"),
                (dsa, "whose key is of a kind that TLS of today has no use for (DSA): make one of RSA or on the curve P-256"))
        gateway = self.secure()
        for pair, message in rows:
            for number in (1, 2):
                if number == 2 and pair is dsa:
                    continue  # it makes no difference what kind of key an authority has
                certificate, key = self.files(pair if number == 1 else None)
                if number == 2:
                    certificate.write_text(certificate.read_text() + pair[0].read_text())
                code, said = self.check(self.config((certificate, key)))
                self.assertEqual(code, 1, said)
                self.assertRegex(said.splitlines()[0], r"^F:\d+:\d+: server\.tls: 'certificate' "
                                 + re.escape(f"has a certificate (number {number}) {message}: '{certificate}'") + "$")
                self.assertEqual(len(said.splitlines()), 2, said)
            self.put(*self.served, pair)
            gateway.signal(signal.SIGHUP)
            poll(lambda: gateway.events("reload_problem") and message in gateway.events("reload_problem")[-1]["message"],
                 "the problem to be told")
        self.assertEqual(get(gateway, "/health/live").status, 200)

    def test_a_curve_that_hardly_any_client_knows_is_spoken_of(self):
        warning = "the certificate's key is on the curve secp256k1, which hardly any client takes: make one on P-256"
        files = self.files(self.authority.sign_itself("curve", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"))
        self.assertEqual(self.check(self.config(files)), (0, f"sandgate: server.tls: {warning}\n"))
        told = self.secure(files).wait_event("certificate")
        self.assertEqual((told["level"], told["message"]), ("warn", warning))
        for curve in ("P-256", "P-384", "P-521"):
            files = self.files(self.authority.sign_itself(curve, "ec", "-pkeyopt", f"ec_paramgen_curve:{curve}"))
            self.assertEqual(self.check(self.config(files)), (0, ""))
        self.assertEqual(self.check(self.config(self.files(self.authority.sign_itself("ed", "ed25519")))), (0, ""))

    def test_what_is_wrong_with_the_clients_authorities_is_told(self):
        certificate, key = self.files()
        authorities = pathlib.Path(self.path("authorities.pem"))
        for text, message in (("", "holds no certificate (PEM, '-----BEGIN CERTIFICATE'): "),
                              (self.authority.ca.read_text() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                               "has a certificate (number 2) that cannot be read: ")):
            authorities.write_text(text)
            _, said = self.check(self.config((certificate, key), client_ca=str(authorities)))
            self.assertIn(f"server.tls: 'client_ca' {message}'{authorities}'", said)
        authorities.write_text(self.authority.ca.read_text())
        authorities.chmod(0o666)
        _, said = self.check(self.config((certificate, key), client_ca=str(authorities)))
        self.assertIn("may be written by others (mode 0666), who could change who may connect", said)

    def test_keys_of_the_section_are_checked(self):
        certificate, key = self.files()
        _, said = self.check({**OPEN, "server": {"tls": {"certificate": str(certificate)}}})
        self.assertIn("server.tls: 'key' is required", said)
        _, said = self.check(self.config((certificate, key), min_version="1.1"))
        self.assertIn("server.tls: 'min_version' must be", said)
        _, said = self.check(self.config((certificate, key), cert="x"))
        self.assertIn("server.tls: unknown key 'cert'", said)

    def test_a_certificate_that_ends_soon_or_has_ended_is_spoken_of_and_served(self):
        soon, gone = self.files(self.authority.sign("soon", days=10)), self.files(self.authority.sign("gone", days=-1))
        code, said = self.check(self.config(soon))
        self.assertEqual(code, 0)
        self.assertRegex(said, r"^sandgate: server\.tls: the certificate expires on 20\S+Z: renew it, then send SIGHUP\n$")
        code, said = self.check(self.config(gone))
        self.assertEqual((code, said), (0, "sandgate: server.tls: the certificate has expired on 2021-01-01T00:00:00Z: clients will "
                                           "refuse it\n"))
        gateway = self.secure(gone)
        told = gateway.wait_event("certificate")
        self.assertEqual((told["level"], told["message"]),
                         ("warn", "the certificate has expired on 2021-01-01T00:00:00Z: clients will refuse it"))
        self.assertLess(int(told["days"]), -365)
        said, event = self.refused_handshake(gateway, self.authority.context(), "refused")
        self.assertIn("expired", event["reason"])
        self.assertIn("expired", said)
        self.assertEqual(self.check(self.config(self.files(self.authority.sign("later", days=16)))), (0, ""))

    def test_the_example_is_good_with_files_beside_it(self):
        folder = pathlib.Path(self.folder, "example")
        folder.mkdir()
        for name in ("tls.yaml", "keys.yaml"):
            shutil.copy(ROOT / "examples" / name, folder)
        self.put(folder / "fullchain.pem", folder / "privkey.pem", self.pair)
        done = subprocess.run([BINARY, "check", "--config", folder / "tls.yaml"], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def digest(text):
    return len(text), hashlib.sha256(text.encode()).hexdigest()


def client_hello():
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


if __name__ == "__main__":
    main()
