#!/usr/bin/env python3
"""The benchmark's two ends: bench_load against servers that answer in odd ways, since an error that it does not count would
make a figure; bench_upstream against bench_load. Called with the folder of both programs."""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1))
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sandgate-bench-test-"))
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Server(threading.Thread):
    """Answers each request on each connection by `answer(connection, number of the request in all)`."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.count, self.connections, self.bodies = answer, 0, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while (data := connection.recv(65536)):
                    self.bodies.append(data.partition(b"\r\n\r\n")[2])
                    self.count += 1
                    if self.answer(connection, self.count) == "close":
                        return
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def load(port, *options, body='{"model":"m"}'):
    path = WORK / "body.json"
    path.write_text(body)
    done = subprocess.run([FOLDER / "bench_load", "--port", str(port), "--body", path, *map(str, options)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    begin, end, said = done.stdout.splitlines()
    assert (begin, end) == ("begin", "end")
    return json.loads(said)


def by_server(answer, *options, **more):
    server = Server(answer)
    try:
        return load(server.port, *options, **more), server
    finally:
        server.close()


class Load(unittest.TestCase):
    def test_answers_are_counted_and_timed(self):
        said, server = by_server(lambda c, n: c.sendall(OK), "--once", "--ids", 50, "--connections", 5)
        self.assertEqual((said["answers"], said["errors"], server.count, server.connections), (50, 0, 50, 5))
        self.assertEqual(said["whole"]["count"], 50)
        self.assertLessEqual(said["whole"]["p50_us"], said["whole"]["p99_us"])

    def test_numbers_are_used_once_each(self):
        _, server = by_server(lambda c, n: c.sendall(OK), "--once", "--ids", 20, "--connections", 4, body='{"id":"%%%%%%%%"}')
        self.assertEqual(sorted(server.bodies), [b'{"id":"%08d"}' % i for i in range(20)])

    def test_chunks_in_single_bytes_are_read_with_their_times(self):
        def answer(connection, _):
            stamp = f"data: @{time.monotonic_ns()}@\n\n".encode()
            text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (len(stamp), stamp) * 2 + b"0\r\n\r\n"
            for i in range(len(text)):
                connection.sendall(text[i:i + 1])
        said, _ = by_server(answer, "--once", "--ids", 3)
        self.assertEqual((said["answers"], said["errors"], said["chunks"]), (3, 0, 6))
        self.assertEqual((said["passage"]["count"], said["first_passage"]["count"]), (6, 3))
        self.assertGreater(said["passage"]["p50_us"], 0)

    def test_a_server_that_says_close_is_no_error(self):
        def answer(connection, _):
            connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return "close"
        said, server = by_server(answer, "--once", "--ids", 4)
        self.assertEqual((said["answers"], said["errors"], server.connections), (4, 0, 4))

    def test_another_status_is_an_error(self):
        def answer(connection, number):
            connection.sendall(OK if number != 2 else OK.replace(b"200 OK", b"502 Bad"))
        said, _ = by_server(answer, "--once", "--ids", 3)
        self.assertEqual((said["answers"], said["errors"], said["error"]), (2, 1, "status 502"))

    def test_a_connection_that_breaks_in_an_answer_is_an_error(self):
        def answer(connection, number):
            connection.sendall(OK if number != 2 else OK[:-1])
            return "close" if number == 2 else None
        said, _ = by_server(answer, "--once", "--ids", 3)
        self.assertEqual((said["answers"], said["errors"], said["error"]), (2, 1, "the connection was closed"))

    def test_what_is_no_http_is_an_error(self):
        def answer(connection, number):
            connection.sendall(OK if number != 1 else OK + b"more than was announced")
        said, _ = by_server(answer, "--once", "--ids", 2)
        self.assertEqual((said["errors"], said["error"]), (1, "an answer that is no HTTP"))

    def test_a_request_without_an_answer_is_an_error(self):
        said, _ = by_server(lambda c, n: None, "--seconds", 0.1, "--drain", 0.1, "--connections", 3)
        self.assertEqual((said["answers"], said["errors"], said["error"]), (0, 3, "no answer in time"))


class Upstream(unittest.TestCase):
    def setUp(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([FOLDER / "bench_upstream", "--port", str(self.port), "--rate", "1000",
                                         "--chunks", "20", "--wait-ms", "100-300"])
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                self.assertIsNone(self.process.poll())
                time.sleep(0.01)

    def tearDown(self):
        self.assertIsNone(self.process.poll(), "the upstream has ended")
        self.process.terminate()
        self.process.wait()

    def test_streams_have_all_their_chunks(self):
        said = load(self.port, "--once", "--ids", 6, "--connections", 3, body='{"model":"stream"}')
        self.assertEqual((said["answers"], said["errors"], said["chunks"]), (6, 0, 120))

    def test_streams_that_are_cut_do_it_no_harm(self):
        for _ in range(3):
            said = load(self.port, "--cut", "--seconds", 0.1, "--warm", 0, "--connections", 50, body='{"model":"stream"}')
            self.assertEqual(said["errors"], 0)

    def test_waiting_takes_the_time_that_was_asked_for(self):
        said = load(self.port, "--once", "--ids", 40, "--connections", 40, body='{"model":"wait"}')
        self.assertEqual((said["answers"], said["errors"]), (40, 0))
        self.assertGreaterEqual(said["first"]["p50_us"], 100_000)

    def test_a_tool_is_called_and_its_result_looked_at(self):
        for body, errors in (('{"model":"tool"}', 0), ('{"model":"tool","messages":[{"role":"tool","content":"42"}]}', 0),
                             ('{"model":"tool","messages":[{"role":"tool","content":"41"}]}', 1)):
            said = load(self.port, "--once", "--ids", 1, body=body)
            self.assertEqual(said["errors"], errors, body)


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        for left in WORK.iterdir():
            left.unlink()
        WORK.rmdir()
