"""Requests that two servers could read in two ways. tests/data/smuggling.json holds each as bytes (U+0000 to U+00FF, a
character a byte) and the statuses of all that the gateway answers; a plain request (PROBE) that ends the connection is sent
behind every one, so an answer more or less shows where the next request was looked for.

The same bytes go to Node's HTTP server and to nginx, as a proxy. Where one of them takes less than the gateway does, the row
has to say why that is right: `node` or `nginx` hold the reason. A server that is not on this machine is left out, and said so."""
import concurrent.futures
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys

from client import Wire
from harness import E2E, ROOT, main, poll
from upstream import answer

PROBE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ROWS = json.loads((ROOT / "tests" / "data" / "smuggling.json").read_text(encoding="utf-8"))
HERE = pathlib.Path(__file__).resolve().parent
NGINX = """daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ }}
http {{
    access_log off;
    client_header_timeout 5s;
    client_body_timeout 5s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen unix:{folder}/front.sock;
        location / {{ proxy_pass http://unix:{folder}/back.sock; }}
    }}
    server {{
        listen unix:{folder}/back.sock;
        location / {{ return 200; }}
    }}
}}
"""


def statuses(connect, raw):
    """Of every answer to these bytes, interim ones aside, until the server closes."""
    data = b""
    with connect() as sock:
        sock.settimeout(120)
        try:
            sock.sendall(raw)
        except ConnectionError:
            pass  # refused before all was sent
        try:
            while piece := sock.recv(65536):
                data += piece
        except ConnectionError:
            pass  # closed with bytes of ours unread
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([2-9]\d\d) ", data)]


def taken(answers):
    return sum(status < 400 for status in answers)


class Smuggling(E2E):
    def ask_all(self, connect):
        def one(row):
            return statuses(connect, row["raw"].encode("latin-1") + PROBE)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return dict(zip((row["name"] for row in ROWS), pool.map(one, ROWS)))

    def start(self, command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            process.stdin.close()
            process.terminate()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        return process

    def node(self):
        if shutil.which("node") is None:
            return None
        port = int(self.start(["node", str(HERE / "parsing_server.mjs")]).stdout.readline())
        return lambda: socket.create_connection(("127.0.0.1", port))

    def nginx(self):
        program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        if program is None:
            return None
        config = pathlib.Path(self.folder, "nginx.conf")
        config.write_text(NGINX.format(folder=self.folder), encoding="utf-8")
        self.start([program, "-e", "stderr", "-p", self.folder, "-c", str(config)])

        def connect():
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(f"{self.folder}/front.sock")
            except OSError:
                sock.close()
                return None
            return sock
        poll(lambda: (sock := connect()) and (sock.close() or True), "nginx to listen")
        return connect

    def test_names_are_unique(self):
        names = [row["name"] for row in ROWS]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_every_request_is_taken_or_refused_as_it_is_written_down(self):
        gateway = self.serve(self.upstream(forever=answer("ok")))
        found = self.ask_all(lambda: Wire(gateway).sock)
        wrong = [f"{row['name']}: {found[row['name']]}, not {row['answers']}" for row in ROWS
                 if found[row["name"]] != row["answers"]]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def check_against(self, server, connect):
        if connect is None:
            self.skipTest(f"{server} is not on this machine: not compared with it")
        found = self.ask_all(connect)
        laxer = [row for row in ROWS if taken(row["answers"]) > taken(found[row["name"]])]
        without = [f"{row['name']}: {server} answers {found[row['name']]}, the gateway {row['answers']}"
                   for row in laxer if not row.get(server)]
        self.assertEqual(without, [], f"taken without a reason though {server} refuses:\n" + "\n".join(without))
        stricter = sum(taken(row["answers"]) < taken(found[row["name"]]) for row in ROWS)
        print(f"{server}: of {len(ROWS)} requests it takes {stricter} that the gateway refuses, and refuses {len(laxer)} that "
              "the gateway takes", file=sys.stderr)

    def test_node_takes_what_the_gateway_takes(self):
        self.check_against("node", self.node())

    def test_nginx_takes_what_the_gateway_takes(self):
        self.check_against("nginx", self.nginx())


if __name__ == "__main__":
    main()
