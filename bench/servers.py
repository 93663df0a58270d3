"""The processes of the benchmark: started on loopback, each pinned to its core, read from /proc, ended on every way out.

Every process dies with this one (PR_SET_PDEATHSIG), so that a killed run leaves nothing either. nginx runs as one process
for the same reason (`master_process off`): it is the same event loop, without the parent that would outlive us.
"""
import ctypes
import http.client
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import time

TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE_SECONDS = 30
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

NGINX = """worker_processes 1; master_process off; daemon off; pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 32768; }}
http {{
  access_log {work}/nginx.log; keepalive_requests 1000000000; client_max_body_size 32m; client_body_buffer_size 1m;
  client_body_temp_path {work}/n1; proxy_temp_path {work}/n2; fastcgi_temp_path {work}/n3;
  uwsgi_temp_path {work}/n4; scgi_temp_path {work}/n5;
  proxy_http_version 1.1; proxy_set_header Connection "";
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://up; }} }}
  server {{ listen 127.0.0.1:{stream_port} backlog=4096; location / {{ proxy_pass http://up; proxy_buffering off; }} }}
{more}}}
"""

# The same server over TLS, and what stands before a server under measurement there, on the load's core, as its client: it
# keeps its connections, or makes one for each request, without taking up an earlier one's session.
NGINX_TLS = """  server {{ listen 127.0.0.1:{port} ssl backlog=4096; location / {{ proxy_pass http://up; }}
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.3; }}
"""
NGINX_CLIENT = """  upstream kept {{ server 127.0.0.1:{server}; keepalive 512; keepalive_requests 1000000000; }}
  upstream new {{ server 127.0.0.1:{server}; }}
  proxy_ssl_session_reuse off; proxy_ssl_protocols TLSv1.3;
  server {{ listen 127.0.0.1:{kept} backlog=4096; location / {{ proxy_pass https://kept;
    proxy_set_header Host localhost; proxy_set_header Connection ""; }} }}
  server {{ listen 127.0.0.1:{new} backlog=4096; location / {{ proxy_pass https://new;
    proxy_set_header Host localhost; proxy_set_header Connection close; }} }}
"""

SANDGATE = """auth: {auth}
upstreams:
  - {{ name: up, base_url: "http://127.0.0.1:{upstream}/v1", models: ["*"] }}
  - {{ name: of_chat, base_url: "http://127.0.0.1:{upstream}/v1", models: [of-chat, stream], surfaces: [chat] }}
sandboxes: [ {{ name: box, plugin: mock }} ]
interceptors: [ {{ plugin: code_interpreter, sandbox: box }} ]
sessions: {{ idle_timeout: 24h, per_identity: 100000, max_containers: 100000, max_containers_total: 100000 }}
"""

# Keys for sandgate: open, one without a limit, one with all of them, and one whose users have theirs too. Limits that no
# load reaches cost as much as others.
LIMITS = "requests_per_minute: 1000000, runs_per_minute: 1000000, in_flight: 100000"
USER_LIMITS = "user_requests_per_minute: 1000000, user_runs_per_minute: 1000000, user_in_flight: 100000"
KEY = "key-of-the-load"
AUTHS = {"open": "{ mode: none }",
         "a key": f"{{ keys: [ {{ name: a, key: {KEY} }} ] }}",
         "with limits": f"{{ keys: [ {{ name: a, key: {KEY}, {LIMITS} }} ] }}",
         "limits of users": f'{{ keys: [ {{ name: a, key: {KEY}, {LIMITS}, {USER_LIMITS}, user_from: "header:x-user" }} ] }}'}

# Its own server listens on all addresses of the machine.
LOOPBACK = """const net = require("net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === "number" ? listen.call(this, port, "127.0.0.1", ...rest.filter((r) => typeof r === "function"))
    : listen.call(this, typeof port === "object" && port.port ? { ...port, host: "127.0.0.1" } : port, ...rest);
};
"""


class Failed(Exception):
    """What ends the run, in words for whoever started it."""


def cores():
    """The cores of the server, of the upstream and of the load: the last two share one where there are two."""
    usable = sorted(os.sched_getaffinity(0))
    return {"server": usable[-1], "load": usable[0], "upstream": usable[1] if len(usable) > 2 else usable[0],
            "all": set(usable), "count": len(usable)}


def raise_descriptor_limit(wanted):
    """Raises the limit of open files as far as the machine lets us; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(hard, wanted), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            return limit
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port():
    """Below the range from which the kernel takes ports for outgoing connections."""
    while True:
        port = random.randrange(12000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def spawn(command, cores_allowed, **rest):
    """A process that is pinned to these cores and dies with this one."""
    parent = os.getpid()

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.sched_setaffinity(0, cores_allowed)

    return subprocess.Popen(command, preexec_fn=prepare, stdin=subprocess.DEVNULL, **rest)


class Server:
    """One server under measurement, or the upstream."""

    def __init__(self, name, command, port, core, log, environment=None):
        self.name, self.port, self.log_path = name, port, log
        self.headers = {}
        self.stream_port = port
        with open(log, "ab") as out:
            self.process = spawn(command, {core}, stdout=out, stderr=out, env=environment)
        self.pid = self.process.pid

    def wait_until_it_accepts(self):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended at once: {self.last_words()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if time.monotonic() > end:
                    raise Failed(f"{self.name} does not listen: {self.last_words()}") from None
                time.sleep(0.02)

    def last_words(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")[-600:].strip() or "(it said nothing)"

    def pids(self):
        """The process and what it started."""
        found, wave = [], [self.pid]
        while wave:
            pid = wave.pop()
            found.append(pid)
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    wave += [int(child) for child in
                             pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
            except OSError:
                continue
        return found

    def cpu_us(self):
        """User and system time of all threads, so far."""
        total = 0
        for pid in self.pids():
            fields = stat_fields(pid)
            total += int(fields[11]) + int(fields[12])
        return total * TICK_US

    def threads(self):
        return sum(int(stat_fields(pid)[17]) for pid in self.pids())

    def rss_bytes(self):
        return sum(int(stat_fields(pid)[21]) for pid in self.pids()) * PAGE

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def stat_fields(pid):
    """/proc/PID/stat behind the name: [0] is the state."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2:].split()


class Lab:
    """All that runs, and where its files are."""

    def __init__(self, build, work, settings):
        self.build, self.work, self.settings = build, work, settings
        self.cores = cores()
        self.servers = []
        self.upstream = None
        self.portkey_entry = build / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"

    def _start(self, name, command, port, core, environment=None):
        log = self.work / f"{name}-{port}.log"
        server = Server(name, command, port, core, log, environment)
        self.servers.append(server)
        server.wait_until_it_accepts()
        return server

    def start_upstream(self):
        port = free_port()
        command = [self.build / "bench/bench_upstream", "--port", str(port), "--rate", str(self.settings.stream_rate),
                   "--chunks", str(self.settings.stream_chunks), "--wait-ms", "2000-6000"]
        self.upstream = self._start("upstream", command, port, self.cores["upstream"])
        return self.upstream

    def start(self, kind):
        return {"nginx": self.start_nginx, "sandgate": self.start_sandgate, "portkey": self.start_portkey,
                "pump": self.start_pump}[kind]()

    def start_pump(self):
        port = free_port()
        command = [self.build / "bench/bench_pump", "--port", str(port), "--upstream", str(self.upstream.port)]
        return self._start("pump", command, port, self.cores["server"])

    def start_nginx(self, more="", core="server"):
        port, stream_port = free_port(), free_port()
        folder = self.work / f"nginx-{port}"
        folder.mkdir()
        (folder / "nginx.conf").write_text(NGINX.format(work=folder, port=port, stream_port=stream_port,
                                                        upstream=self.upstream.port, more=more))
        command = ["nginx", "-c", folder / "nginx.conf", "-e", folder / "nginx.err", "-p", folder]
        server = self._start("nginx", command, port, self.cores[core])
        server.stream_port, server.log_path = stream_port, folder / "nginx.log"
        return server

    # ---- over TLS ----

    def certificate(self):
        """The folder of cert.pem and key.pem, for localhost: the kind that is usual today."""
        folder = self.work / "certificate"
        if not folder.exists():
            folder.mkdir()
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                            "2", "-subj", "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                           check=True, capture_output=True)
        return folder

    def start_nginx_tls(self):
        """A server, and its port for TLS."""
        port = free_port()
        return self.start_nginx(NGINX_TLS.format(port=port, folder=self.certificate())), port

    def start_sandgate_tls(self):
        folder = self.certificate()
        server = self.start_sandgate(more=f"server: {{ tls: {{ certificate: {folder}/cert.pem, key: {folder}/key.pem }} }}\n")
        return server, server.port

    def start_tls_client(self, server_port):
        """Its ports: with connections that are kept, and with a new one for each request."""
        kept, new = free_port(), free_port()
        self.start_nginx(NGINX_CLIENT.format(server=server_port, kept=kept, new=new), core="load")
        return kept, new

    def start_sandgate(self, auth="open", more=""):
        port = free_port()
        config = self.work / f"sandgate-{port}.yaml"
        config.write_text(SANDGATE.format(upstream=self.upstream.port, auth=AUTHS[auth]) + more)
        command = [self.build / "bin/sandgate", "serve", "--config", config, "--listen", f"127.0.0.1:{port}"]
        server = self._start("sandgate", command, port, self.cores["server"])
        server.headers = {} if auth == "open" else {"authorization": f"Bearer {KEY}", "x-user": "somebody"}
        return server

    def start_portkey(self):
        port = free_port()
        preload = self.work / "loopback.cjs"
        preload.write_text(LOOPBACK)
        command = ["node", "--require", preload, self.portkey_entry, f"--port={port}", "--headless"]
        server = self._start("portkey", command, port, self.cores["server"], {**os.environ, "NODE_ENV": "production"})
        server.headers = {"x-portkey-provider": "openai", "authorization": "Bearer none",
                          "x-portkey-custom-host": f"http://127.0.0.1:{self.upstream.port}/v1"}
        return server

    def stop(self, server):
        server.stop()
        if server in self.servers:
            self.servers.remove(server)

    def stop_all(self):
        for server in reversed(self.servers):
            server.stop()
        self.servers.clear()


def probe(server, body, wanted):
    """One request, so that nothing is measured that does not work."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body, separators=(",", ":")),
                           {"Content-Type": "application/json", **server.headers})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except OSError as error:
        raise Failed(f"{server.name} does not answer ({error}): {server.last_words()}") from None
    finally:
        connection.close()
    if answer.status != 200 or wanted not in text:
        raise Failed(f"{server.name} answers {answer.status}: {text[:300]}")
