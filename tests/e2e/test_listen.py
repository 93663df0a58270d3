"""Where the gateway serves: several addresses at once, of IPv4, IPv6 and Unix sockets, and what of it is refused at the start."""
import http.client
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import unittest

from client import UnixConnection, body_of, request_on
from harness import BINARY, E2E, PATIENCE, main, run, to_yaml

MODEL = {"upstreams": [{"name": "m", "plugin": "mock", "models": ["mock"]}]}
OPEN = {"auth": {"mode": "none"}, **MODEL}
KEYS = {"auth": {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}]}, **MODEL}


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


class Listen(E2E):
    def listening(self, *entries, base=OPEN, server=None, **options):
        config = {**base, "server": {"listen": list(entries), **(server or {})}}
        return self.gateway(config, arguments=(), **options)

    def written(self, config):
        path = self.path("config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_yaml(config) + "\n")
        return path

    def refused(self, *entries, base=OPEN, server=None):
        gateway = self.listening(*entries, base=base, server=server, serve=False)
        gateway.stopped = True
        self.assertEqual(gateway.wait_end(), 1)
        return gateway.log()

    def chat(self, connection):
        try:
            return request_on(connection, "POST", "/v1/chat/completions", body_of(tools=(), text="hello"))
        finally:
            connection.close()

    def tcp(self, address):
        host, port = re.fullmatch(r"\[?([^]]+)\]?:(\d+)", address).groups()
        return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)

    def test_all_addresses_of_a_list_are_served_and_logged(self):
        path, name = self.path("gateway.sock"), f"sandgate-e2e-{os.getpid()}"
        six = ["[::1]:0"] if has_ipv6() else []
        gateway = self.listening("127.0.0.1:0", *six, "unix:" + path, "unix:@" + name)
        self.assertEqual(gateway.address, gateway.addresses[0])
        self.assertEqual(gateway.wait_event("serving")["addresses"], str(len(gateway.addresses)))
        self.assertEqual(gateway.addresses[-2:], ["unix:" + path, "unix:@" + name])
        for address in gateway.addresses[:-2]:
            self.assertEqual(self.chat(self.tcp(address)).status, 200, address)
        self.assertEqual(self.chat(UnixConnection(path)).status, 200)
        self.assertEqual(self.chat(UnixConnection("\0" + name)).status, 200)
        # One is answered by another loop than the next, whose line may be the first.
        clients = [event["client"].rsplit(":", 1)[0] for event in gateway.wait_events("request", len(gateway.addresses))]
        self.assertEqual(sorted(clients), ["127.0.0.1", *(["[::1]"] if six else []), "unix", "unix"])

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6")
    def test_all_of_ipv4_and_all_of_ipv6_stand_beside_each_other_at_one_port(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        gateway = self.listening(f"0.0.0.0:{port}", f"[::]:{port}", base=KEYS)
        self.assertEqual(gateway.addresses, [f"0.0.0.0:{port}", f"[::]:{port}"])
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, port), timeout=PATIENCE) as sock:
                sock.sendall(b"GET /health/live HTTP/1.0\r\n\r\n")
                self.assertTrue(sock.recv(1000).startswith(b"HTTP/1.1 200 "), host)

    def test_a_name_stands_for_all_of_its_addresses(self):
        gateway = self.listening("localhost:0")
        hosts = {address.rsplit(":", 1)[0] for address in gateway.addresses}
        self.assertIn("127.0.0.1", hosts)
        self.assertLessEqual(hosts, {"127.0.0.1", "[::1]"})
        named = {row[4][0] for row in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
        self.assertEqual("[::1]" in hosts, "::1" in named and has_ipv6())
        for address in gateway.addresses:
            self.assertEqual(self.chat(self.tcp(address)).status, 200, address)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "only root can give a process names of its own")
    def test_a_name_of_other_machines_is_refused(self):
        hosts = self.path("hosts")
        pathlib.Path(hosts).write_text("240.0.0.1 elsewhere\n240.0.0.2 elsewhere\n", encoding="ascii")
        own_names = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/hosts && shift && exec "$@"', "sh", hosts]
        path = self.written({**KEYS, "server": {"listen": ["elsewhere:4000"]}})
        done = subprocess.run([*own_names, BINARY, "check", "--config", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("server: 'listen' names 'elsewhere', of whose addresses this machine has none", done.stderr)

    def test_the_file_of_a_unix_socket_has_its_mode_and_goes_with_the_gateway(self):
        path = self.path("mode.sock")
        gateway = self.listening("unix:" + path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
        gateway.stop()
        self.assertFalse(os.path.exists(path))
        self.listening("unix:" + path, server={"socket_mode": "0600"})
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_a_gateway_that_was_killed_does_not_keep_the_next_one_from_starting(self):
        path = self.path("stale.sock")
        gateway = self.listening("unix:" + path)
        gateway.stopped = True
        gateway.signal(signal.SIGKILL)
        gateway.wait_end()
        self.assertTrue(os.path.exists(path))
        self.listening("unix:" + path)
        self.assertEqual(self.chat(UnixConnection(path)).status, 200)
        log = self.refused("unix:" + path)
        self.assertIn(f"sandgate: cannot listen on unix:{path}: Address already in use (is another server running there?)", log)
        self.assertEqual(self.chat(UnixConnection(path)).status, 200, "the first is not disturbed")

    def test_without_authentication_each_address_must_be_local(self):
        log = self.refused("127.0.0.1:0", "0.0.0.0:4001")
        self.assertRegex(log, r":\d+:\d+: auth: mode 'none' at 0\.0\.0\.0:4001 would let everybody who reaches it run code")
        self.assertEqual(log.count("would let everybody"), 1)

    def test_a_page_of_another_site_is_refused_at_a_unix_socket_too(self):
        path = self.path("host.sock")
        self.listening("unix:" + path)
        connection = UnixConnection(path)
        self.assertEqual(request_on(connection, "GET", "/v1/models", headers={"Host": "evil.example"}).status, 403)
        self.assertEqual(request_on(connection, "GET", "/v1/models", headers={"Host": "localhost"}).status, 200)
        connection.close()

    def test_what_is_wrong_is_told_at_its_entry(self):
        long = "unix:/" + "x" * 120
        for entry, message in (
                ("unix:relative.sock", "server: 'listen' must be unix: and an absolute path, or @ and a name, of at most 107 bytes, "
                                       "not 'unix:relative.sock'"),
                (long, f"of at most 107 bytes, not '{long}'"),
                ("[::ffff:127.0.0.1]:4001", "server: 'listen' has '[::ffff:127.0.0.1]', which is an IPv4 address as IPv6 writes it: write "
                                            "127.0.0.1:4001"),
                ("127.0.0.1:4000", "server: 'listen' has '127.0.0.1:4000' beside 127.0.0.1:4000, which meet: leave one of them out")):
            path = self.written({**OPEN, "server": {"listen": ["127.0.0.1:4000", entry]}})
            done = subprocess.run([BINARY, "check", "--config", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
            line, column = self.place(path, f"- {entry}" if entry != "127.0.0.1:4000" else None)
            self.assertEqual(done.stderr.splitlines()[0].split(": ", 1)[0], f"{path}:{line}:{column}")
            self.assertIn(message, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def places(self):
        """(path of a Unix socket, what is wrong with it)"""
        taken, folder = self.path("taken"), self.path("no-folder")
        pathlib.Path(taken).write_text("mine", encoding="ascii")
        return ((taken, "something that is no socket has this name: move it away, or choose another path"),
                (self.folder, "something that is no socket has this name: move it away, or choose another path"),
                (folder + "/gateway.sock", f"its folder '{folder}' is not there: make it, for the user that runs the gateway "
                                           "(systemd does with RuntimeDirectory=)"),
                (taken + "/gateway.sock", f"its folder '{taken}' is not there: "))

    def test_a_check_sees_where_a_socket_cannot_be(self):
        for path, problem in self.places():
            for server in ({"listen": ["127.0.0.1:0", "unix:" + path]}, {"listen": "127.0.0.1:0", "admin": "unix:" + path}):
                config = self.written({**OPEN, "server": server})
                lines = pathlib.Path(config).read_text(encoding="utf-8").splitlines()
                place = next(i for i, line in enumerate(lines) if path in line)
                for command in ("check", "serve"):
                    status, _, said = run(command, "--config", config)
                    self.assertEqual(status, 1)
                    self.assertRegex(said, f"^{config}:{place + 1}:[0-9]+: cannot listen on unix:{path}: ")
                    self.assertIn(problem, said)
                    self.assertIn(f"sandgate: 1 problem in {config}", said)
            status, _, said = run("serve", "--config", self.written(OPEN), "--listen", "unix:" + path)
            self.assertEqual(status, 1)
            self.assertTrue(said.startswith(f"sandgate: cannot listen on unix:{path}: "), said)
            self.assertIn(problem, said)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_a_check_sees_a_folder_that_may_not_be_written(self):
        os.chmod(self.folder, 0o755)
        nobody = pwd.getpwnam("nobody").pw_uid
        command = ("setpriv", f"--reuid={nobody}", "--clear-groups", "--inh-caps=-all", str(BINARY))
        if subprocess.run([*command, "version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("another user cannot reach this build's folder")
        path = self.path("gateway.sock")
        config = self.written({**OPEN, "server": {"listen": "unix:" + path}})
        for word in ("check", "serve"):
            done = subprocess.run([*command, word, "--config", config], capture_output=True, text=True, timeout=PATIENCE,
                                  env=self.environment(), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"cannot listen on unix:{path}: the running user {nobody} may not write in its folder '{self.folder}': "
                          f"let that user or its group, or choose another", done.stderr)

    def test_a_check_beside_a_gateway_that_listens_there_is_good(self):
        gateway = self.listening("unix:" + self.path("used.sock"))
        self.assertEqual(run("check", "--config", str(gateway.config_path))[0], 0)

    def test_what_is_only_run_needs_no_place_for_sockets(self):
        config = self.written({**OPEN, "server": {"listen": "unix:" + self.path("nowhere") + "/s"}, "sandboxes": [{"name": "box", "plugin": "mock"}]})
        status, out, _ = run("run", "--config", config, "--sandbox", "box", "print(6 * 7)")
        self.assertEqual((status, out.strip()), (0, "42"))

    def place(self, path, text):
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        at = [i for i, line in enumerate(lines) if (text or "- 127.0.0.1:4000") in line.replace('"', "")][-1]
        return at + 1, lines[at].index("- ") + 3

    def test_lists_without_an_address_or_with_too_many_are_refused(self):
        self.assertIn("server: 'listen' is empty: it needs at least one address such as 127.0.0.1:4000", self.refused())
        self.assertIn("server: 'listen' comes to more than 16 addresses: leave some out",
                      self.refused(*[f"127.0.0.1:{port}" for port in range(4001, 4018)]))

    def test_a_mode_that_is_none_is_refused(self):
        for mode in ("0888", "066", "0460", "rw-rw----", "01777"):
            log = self.refused("127.0.0.1:0", server={"socket_mode": mode})
            self.assertIn(f"server: 'socket_mode' must be a mode such as 0660 that lets its owner write, not '{mode}'", log)


if __name__ == "__main__":
    main()
