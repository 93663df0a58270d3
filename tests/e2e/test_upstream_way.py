"""How an upstream is reached: certificates of an authority of one's own, a client's certificate, proxies; and that what belongs
to one upstream is never used for another, whatever is kept open. The servers and proxies are the test's own."""
import os
import pathlib
import shutil
import signal
import unittest

from authority import Authority
from client import body_of, get, post
from harness import E2E, main
from proxy import Proxy
from upstream import answer, streamed

PATH = "/v1/chat/completions"
BROKEN = "The model server could not be reached or broke off its answer."
TOOL = {"type": "code_interpreter"}


@unittest.skipUnless(shutil.which("openssl"), "THERE IS NO openssl: NOTHING WAS TESTED HERE")
class Way(E2E):
    def setUp(self):
        super().setUp()
        self.proxies = []

    def _end(self):
        super()._end()
        for proxy in self.proxies:
            proxy.close()

    def proxy(self, **options):
        proxy = Proxy(**options)
        self.proxies.append(proxy)
        return proxy

    def folder_of(self, name):
        path = self.path(name)
        os.mkdir(path)
        return path

    def authority(self, name="authority"):
        return Authority(self.folder_of(name), name)

    def gateway_of(self, entries, upstreams, env=None):
        """A gateway with these upstreams; everything that they listen at counts as theirs."""
        ports = [one.port for one in [*upstreams, *self.proxies]]
        box = {"name": "box", "plugin": "mock"}
        return self.gateway({"auth": {"mode": "none"}, "upstreams": entries, "sandboxes": [box],
                             "interceptors": [{"plugin": "code_interpreter", "sandbox": "box"}]},
                            upstream_ports=ports, env=env)

    def one(self, upstream, options=None, **more):
        entry = {"name": "up", "base_url": upstream.url + "/v1", "models": ["mock"], **(options or {})}
        return self.gateway_of([entry], [upstream], **more)

    def expect_ok(self, gateway, model="mock", **options):
        reply = post(gateway, PATH, body_of("x", model=model, **options))
        self.assertEqual((reply.status, reply.text), (200, "ok"), gateway.log()[-2000:])

    def expect_broken(self, gateway, cause, **options):
        """The client hears nothing of the servers behind; the log does."""
        reply = post(gateway, PATH, body_of("x", **options))
        self.assertEqual((reply.status, reply.error["message"]), (502, BROKEN))
        line = gateway.wait_event("request", lambda event: event["request"] == reply.get("x-request-id"))
        self.assertRegex(line["cause"], cause)

    # ---- certificates ----

    def test_an_authority_of_ones_own_is_trusted(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        gateway = self.one(upstream, {"ca_file": str(authority.certificate)})
        for tools in ([], [TOOL]) * 4:
            self.expect_ok(gateway, tools=tools)
        self.assertLess(len({request.peer_port for request in upstream.requests}), 8, "connections are kept")

    def test_a_relative_path_is_the_configurations(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        gateway = self.one(upstream, {"ca_file": os.path.relpath(authority.certificate, os.path.join(self.folder, "any"))})
        self.expect_ok(gateway)

    def test_another_authority_is_not_trusted(self):
        authority, other = self.authority(), self.authority("other")
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        cause = rf"^cannot set up TLS with 127\.0\.0\.1:{upstream.port}: .*certificate"
        for options in ({}, {"ca_file": str(other.certificate)}):
            for tools in ([], [TOOL]):
                self.expect_broken(self.one(upstream, options), cause, tools=tools)
        self.assertEqual(upstream.requests, [])

    def test_the_name_in_the_certificate_counts(self):
        authority = self.authority()
        certificate = authority.issue("named", "DNS:elsewhere.test")
        context = authority.server()
        context.load_cert_chain(*certificate)
        upstream = self.upstream(forever=answer("ok"), tls=context)
        self.expect_broken(self.one(upstream, {"ca_file": str(authority.certificate)}), "^cannot set up TLS with 127")

    def test_a_server_that_asks_is_shown_the_certificate(self):
        authority, clients = self.authority(), self.authority("clients")
        upstream = self.upstream(forever=answer("ok"), tls=authority.server(clients=clients))
        certificate, key = clients.issue("gateway")
        os.chmod(key, 0o600)
        options = {"ca_file": str(authority.certificate)}
        gateway = self.one(upstream, {**options, "client_certificate": str(certificate), "client_key": str(key)})
        self.expect_ok(gateway)
        self.assertEqual([request.certificate for request in upstream.requests], ["gateway"])
        self.expect_broken(self.one(upstream, options), "^(broken exchange with|cannot set up TLS with|127.0.0.1:[0-9]+ closed) ")
        self.assertEqual(len(upstream.requests), 1)

    def test_upstreams_with_different_certificates_share_no_connection(self):
        """Nor a TLS session, which would speak for the certificate that began it."""
        authority, clients = self.authority(), self.authority("clients")
        upstream = self.upstream(forever=answer("ok"), tls=authority.server(clients=clients))
        entries = []
        for name in ("a", "b"):
            certificate, key = clients.issue(name)
            os.chmod(key, 0o600)
            entries.append({"name": name, "base_url": upstream.url + "/v1", "models": [name], "ca_file": str(authority.certificate),
                            "client_certificate": str(certificate), "client_key": str(key)})
        entries.append({**entries[0], "name": "c", "models": ["c"]})  # the same certificate: the connection is good for both
        gateway = self.gateway_of(entries, [upstream])
        for model in "abcabcab":
            self.expect_ok(gateway, model)
        self.assertEqual("".join(request.certificate for request in upstream.requests), "abaabaab")

    def test_trust_of_one_upstream_is_none_of_another(self):
        """The connection that one has open is not taken by one that would not have trusted it."""
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        entries = [{"name": "a", "base_url": upstream.url + "/v1", "models": ["a"], "ca_file": str(authority.certificate)},
                   {"name": "b", "base_url": upstream.url + "/v1", "models": ["b"]}]
        gateway = self.gateway_of(entries, [upstream])
        for _ in range(3):
            self.expect_ok(gateway, "a")
            self.expect_broken(gateway, "^cannot set up TLS with", model="b")

    # ---- read again ----

    def reload(self, gateway, event="reloaded"):
        count = len(gateway.events(event))
        gateway.signal(signal.SIGHUP)
        return gateway.wait_events(event, count + 1)[count]

    def test_a_certificate_that_was_replaced_is_in_force_after_sighup(self):
        """For new requests at once: a connection that the old one made is not used any more."""
        authority, clients = self.authority(), self.authority("clients")
        upstream = self.upstream(forever=answer("ok"), tls=authority.server(clients=clients))
        certificate, key = pathlib.Path(self.path("shown.pem")), pathlib.Path(self.path("shown-key.pem"))

        def show(name):
            for source, target in zip(clients.issue(name), (certificate, key)):
                target.write_bytes(source.read_bytes())
            os.chmod(key, 0o600)
        show("before")
        gateway = self.one(upstream, {"ca_file": str(authority.certificate), "client_certificate": str(certificate), "client_key": str(key)})
        self.expect_ok(gateway)
        show("after")
        self.expect_ok(gateway)  # nothing is read before it is asked for
        told = self.reload(gateway)
        self.assertEqual((told["upstreams_changed"], told["upstreams_changed_names"]), ("1", "up"))
        self.expect_ok(gateway)
        self.assertEqual(self.reload(gateway)["upstreams_changed"], "0")
        self.assertEqual([request.certificate for request in upstream.requests], ["before", "before", "after"])

    def test_a_file_that_is_wrong_changes_nothing(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        trusted = pathlib.Path(self.path("trusted.pem"))
        trusted.write_bytes(authority.certificate.read_bytes())
        gateway = self.one(upstream, {"ca_file": str(trusted), "headers": {"x-team": "blue"}})
        gateway.config_path.write_text(gateway.config_path.read_text().replace("blue", "red"))
        trusted.write_text("nothing")
        self.assertEqual(self.reload(gateway, "reload_failed")["problems"], "1")
        problem = gateway.events("reload_problem")[0]
        self.assertRegex(problem["place"], r"/config\.yaml:\d+:\d+$")
        self.assertEqual(problem["message"],
                         f"upstream 'up': 'ca_file' holds no certificate (PEM, '-----BEGIN CERTIFICATE'): '{trusted}'")
        for _ in range(4):
            self.expect_ok(gateway)
        trusted.write_bytes(authority.certificate.read_bytes())
        self.reload(gateway)
        self.expect_ok(gateway)
        self.assertEqual([request.get("x-team") for request in upstream.requests], ["blue"] * 4 + ["red"])

    # ---- proxies ----

    def test_a_proxy_makes_the_tunnel_and_looks_the_name_up(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        proxy = self.proxy()
        target = f"model.invalid:{upstream.port}"
        gateway = self.one(upstream, {"base_url": f"https://{target}/v1", "ca_file": str(authority.certificate),
                                      "api_key": "sk-of-the-operator", "proxy": f"http://gate:p%40ss%3Aword@localhost:{proxy.port}"},
                           env={"no_proxy": "*", "https_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"})
        self.expect_ok(gateway, tools=[])
        self.expect_ok(gateway, tools=[TOOL])
        self.assertEqual({(tunnel.target, tunnel.user) for tunnel in proxy.tunnels}, {(target, "gate:p@ss:word")})
        self.assertNotIn(b"sk-of-the-operator", proxy.tunnels[0].head)
        for request in upstream.requests:
            self.assertEqual(request.get("authorization"), "Bearer sk-of-the-operator")
            self.assertIsNone(request.get("proxy-authorization"))
        for secret in ("p%40ss", "p@ss"):
            self.assertNotIn(secret, gateway.log())

    def test_what_a_proxy_says_about_a_tunnel_is_not_the_servers_answer(self):
        upstream = self.upstream(streamed("ok"), answer("ok"))
        proxy = self.proxy()
        gateway = self.one(upstream, {"base_url": f"http://model.invalid:{upstream.port}/v1", "proxy": f"http://127.0.0.1:{proxy.port}"})
        reply = post(gateway, PATH, body_of("x", stream=True, tools=[]))
        self.assertEqual((reply.status, reply.stream_text, reply.get("x-proxy")), (200, "ok", None))
        self.assertEqual([tunnel.target for tunnel in proxy.tunnels], [f"model.invalid:{upstream.port}"], "plain http too")

    def test_the_environments_proxies_are_never_used(self):
        upstream = self.upstream(forever=answer("ok"))
        proxy = self.proxy()
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")
        self.expect_ok(self.one(upstream, env={name: f"http://127.0.0.1:{proxy.port}" for name in names}))
        self.assertEqual(proxy.tunnels, [])

    def test_a_socks_proxy_looks_the_name_up(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        proxy = self.proxy(socks=True)
        gateway = self.one(upstream, {"base_url": f"https://model.invalid:{upstream.port}/v1", "ca_file": str(authority.certificate),
                                      "proxy": f"socks5h://gate:secret@127.0.0.1:{proxy.port}"})
        self.expect_ok(gateway)
        self.assertEqual([(tunnel.target, tunnel.user) for tunnel in proxy.tunnels], [(f"model.invalid:{upstream.port}", "gate:secret")])

    def test_a_proxy_that_speaks_tls_is_trusted_by_ca_file(self):
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        proxy = self.proxy(tls=authority.server("proxy"))
        options = {"base_url": f"https://model.invalid:{upstream.port}/v1", "proxy": f"https://gate:secret@127.0.0.1:{proxy.port}"}
        self.expect_ok(self.one(upstream, {**options, "ca_file": str(authority.certificate)}))
        self.assertEqual([tunnel.user for tunnel in proxy.tunnels], ["gate:secret"])
        self.expect_broken(self.one(upstream, options), "^(cannot set up TLS with|no tunnel to) model")
        self.assertEqual(len(proxy.tunnels), 1, "no password goes to a proxy that is not trusted")

    def test_users_of_one_proxy_share_no_tunnel(self):
        """Not every libcurl tells them apart by itself."""
        authority = self.authority()
        upstream = self.upstream(forever=answer("ok"), tls=authority.server())
        proxy = self.proxy()
        entries = [{"name": user, "base_url": f"https://model.invalid:{upstream.port}/v1", "models": [user],
                    "ca_file": str(authority.certificate), "proxy": f"http://{user}:secret@127.0.0.1:{proxy.port}"} for user in "abcdefgh"]
        gateway = self.gateway_of(entries, [upstream])
        models = "abcdefgh" * 4 + "aabb"
        for model in models:
            self.expect_ok(gateway, model)
        users = [proxy.by_port()[request.peer_port].user for request in upstream.requests]
        self.assertEqual(users, [f"{model}:secret" for model in models])

    def test_a_proxy_that_refuses_is_told_as_one(self):
        answered = b"HTTP/1.1 407 Who Are You\r\nContent-Length: 11\r\n\r\nhost secret"
        upstream = self.upstream(forever=answer("ok"))
        proxy = self.proxy(refuse=answered)
        gateway = self.one(upstream, {"base_url": f"http://model.invalid:{upstream.port}/v1", "proxy": f"http://127.0.0.1:{proxy.port}"})
        cause = rf"^no tunnel to model\.invalid:{upstream.port} \(through the proxy 127\.0\.0\.1:{proxy.port}\): .*407"
        for tools in ([], [TOOL]):
            before = len(proxy.tunnels)
            self.expect_broken(gateway, cause, tools=tools)
            self.assertEqual(len(proxy.tunnels) - before, 2, "nothing was sent: it is tried again")
        self.assertEqual(upstream.requests, [])

    def test_a_proxy_that_is_not_there_is_told_as_one(self):
        upstream = self.upstream(forever=answer("ok"))
        gateway = self.one(upstream, {"proxy": "http://127.0.0.1:1", "retries": 0})
        self.expect_broken(gateway, rf"^cannot connect to 127\.0\.0\.1:{upstream.port} \(through the proxy 127\.0\.0\.1:1\): ")
        self.assertEqual(upstream.requests, [])

    def test_a_proxy_that_says_nothing_has_the_time_to_connect(self):
        upstream = self.upstream(forever=answer("ok"))
        proxy = self.proxy(refuse=b"")
        gateway = self.one(upstream, {"proxy": f"http://127.0.0.1:{proxy.port}", "connect_timeout": "300ms", "retries": 0})
        reply = post(gateway, PATH, body_of("x"))
        self.assertEqual((reply.status, reply.error["message"]), (504, "The model server did not answer in time."))
        self.assertRegex(gateway.wait_event("request")["cause"],
                         rf"^no connection to 127\.0\.0\.1:{upstream.port} \(through the proxy 127\.0\.0\.1:{proxy.port}\) within 300 ms")

    def test_the_list_of_models_goes_the_same_way(self):
        authority = self.authority()
        upstream = self.upstream(forever={"data": [{"id": "mock-1"}]}, tls=authority.server())
        proxy = self.proxy()
        gateway = self.one(upstream, {"base_url": f"https://model.invalid:{upstream.port}/v1", "ca_file": str(authority.certificate),
                                      "proxy": f"http://127.0.0.1:{proxy.port}", "models": ["mock*"], "headers": {"X-Team": "blue"}})
        self.assertEqual([model["id"] for model in get(gateway, "/v1/models").json["data"]], ["mock-1"])
        self.assertEqual([request.get("x-team") for request in upstream.requests], ["blue"])


if __name__ == "__main__":
    main()
