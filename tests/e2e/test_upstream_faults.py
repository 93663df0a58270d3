"""What is a fault of an upstream and what is not: how an answer that is whole ends, silence in which the client only gets
comments, an error's own body; and that no upstream outlives its request, however much it has to say."""
import json
import time

from client import TOOL, Wire, body_of, parse_events, post, text_of
from harness import E2E, PATIENCE, main, poll
from test_operations import metrics
from upstream import answer, chunk, events, streamed

ENDLESS = events(chunk({"content": "on and on "}, padding="p" * 65536), end=False)
END = b"\r\n0\r\n\r\n"
BYTES_MAX = 16 << 20  # more than lies in all the buffers between an upstream and a client


def faults(gateway):
    """kind → count, of those that were counted."""
    return {name.split('kind="')[1][:-2]: count for name, count in metrics(gateway).items()
            if name.startswith("sandgate_upstream_errors_total") and count}


def goes_on(connection):
    """Events without end; the gateway ends them."""
    connection.begin_stream()
    connection.chunk(events(chunk({"role": "assistant", "content": ""}), end=False))
    while True:
        connection.chunk(ENDLESS)


class Ends(E2E):
    """How the transfer ends behind an answer that is whole."""

    def behind_the_end(self, end, then, stream):
        def turn(connection):
            connection.begin_stream()
            connection.chunk(streamed("", calls=[("c", "code_interpreter", '{"code": "print(1)"}')]).pieces[0])
            return end(connection)
        upstream = self.upstream(turn, *then)
        gateway = self.serve(upstream)
        reply = post(gateway, "/v1/chat/completions", body_of("x", stream=stream))
        return gateway, reply

    def ends(self):
        def stays_open(connection):
            self.assertTrue(connection.wait_closed(), "the gateway ends the transfer")

        def is_cut(_):
            return False

        def is_no_chunk(connection):
            connection.send(b"no chunk at all\r\n")
            return False

        def says_more(connection):
            connection.chunk(b"data: {}\n\n" * 1000)
            return False
        return stays_open, is_cut, is_no_chunk, says_more

    def test_what_comes_behind_a_whole_answer_is_no_fault(self):
        for end in self.ends():
            for stream in (False, True):
                with self.subTest(f"{end.__name__}, {stream}"):
                    gateway, reply = self.behind_the_end(end, [answer("good")], stream)
                    self.assertEqual((reply.status, reply.stream_text if stream else reply.text), (200, "good"))
                    self.assertEqual(faults(gateway), {})

    def test_it_is_not_told_as_the_cause_of_a_later_failure(self):
        for end in self.ends():
            with self.subTest(end.__name__):
                gateway, reply = self.behind_the_end(end, [{"no": "answer"}], False)
                self.assertEqual((reply.status, reply.error["code"]), (424, "failed_after_run"))
                line = gateway.wait_event("request")
                self.assertEqual((line["error"], line.get("cause")), ("UNAVAILABLE", None))

    def test_waiting_with_comments_is_no_fault(self):
        def waits(connection):
            connection.begin_stream()
            connection.chunk(events(chunk({"role": "assistant", "content": "A"}), end=False))
            poll(lambda: seen.count(b": keep-alive\n\n") >= 3, "comments at the client")
            connection.chunk(events(chunk({"content": "B"}), chunk({}, "stop")))
            connection.end()
            return True
        seen = b""
        gateway = self.serve(self.upstream(waits), loop={"keep_alive": "100ms"})
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True))
            response = wire.stream()
            while piece := response.read1(65536):
                seen += piece
        self.assertEqual(text_of(parse_events(seen)), "AB")
        self.assertEqual(faults(gateway), {})


    def test_waiting_for_a_plugin_with_comments_is_no_fault(self):
        gateway = self.serve(upstream_options={"script": [{"text": "slowly", "chunk_delay": "300ms"}]}, loop={"keep_alive": "100ms"})
        reply = post(gateway, "/v1/chat/completions", body_of("x", stream=True))
        self.assertEqual(reply.stream_text, "slowly")
        self.assertGreaterEqual(reply.body.count(b": keep-alive\n\n"), 1)
        self.assertEqual(faults(gateway), {})


class Errors(E2E):
    """An error's own body."""

    def test_one_that_does_not_end_is_told_by_its_status(self):
        def hangs(connection):
            connection.head(400, [("Content-Length", 1000)])
            connection.send(b'{"error":')
            self.assertTrue(connection.wait_closed(), "the gateway ends the transfer")
        gateway = self.serve(self.upstream(hangs), upstream_options={"silence_timeout": "1h"})
        reply = post(gateway, "/v1/chat/completions", body_of("x"))
        self.assertEqual((reply.status, reply.error["message"]), (400, "The model server answered with status 400."))
        self.assertEqual(faults(gateway), {"client_error": 1})
        self.assertEqual(gateway.wait_event("request")["cause"], "the upstream answered 400")

    def test_one_that_is_cut_is_not_a_broken_connection(self):
        def is_cut(connection):
            connection.head(400, [("Content-Length", 1000)])
            connection.send(b'{"error":')
            return False
        upstream = self.upstream(is_cut, answer("a second try"))
        gateway = self.serve(upstream)
        reply = post(gateway, "/v1/chat/completions", body_of("x"))
        self.assertEqual((reply.status, len(upstream.requests)), (400, 1))
        self.assertEqual(faults(gateway), {"client_error": 1})


class Time(E2E):
    """The request's time is over although the upstream always has more: so much that nobody ever waits for it."""

    def read_late(self, tools):
        """A client that has one second, and reads when it is over. What it got, as far as BYTES_MAX."""
        gateway = self.serve(self.upstream(goes_on))
        seen = bytearray()
        with Wire(gateway) as wire:
            wire.post(body_of("x", stream=True, tools=tools), fields=["X-Stainless-Timeout: 11"])
            began = time.monotonic()
            poll(lambda: time.monotonic() > began + 1.5, "the request's time to be over")
            wire.sock.settimeout(PATIENCE)
            while not seen.endswith(END) and len(seen) < BYTES_MAX and (piece := wire.sock.recv(65536)):
                seen += piece
        self.assertLess(len(seen), BYTES_MAX, "it ends")
        return bytes(seen), gateway.wait_event("request")

    def test_an_intercepted_answer_ends_with_an_error_event(self):
        seen, line = self.read_late([TOOL])
        event = json.loads(seen[seen.rindex(b"data: {"):].split(b"\n")[0][6:])
        self.assertEqual(event["error"]["message"], "The request took too long.")
        self.assertTrue(seen.endswith(END))
        self.assertEqual((line["error"], line["cause"]), ("TIMEOUT", "the answer was not over by the request's deadline"))

    def test_a_plugin_that_is_silent_is_late(self):
        gateway = self.serve(upstream_options={"script": [{"fault": "hang"}], "silence_timeout": "1s", "first_byte_timeout": "1s"})
        reply = post(gateway, "/v1/chat/completions", body_of("x"))
        self.assertEqual((reply.status, reply.error["message"]), (504, "The model server did not answer in time."))
        self.assertRegex(gateway.wait_event("request")["cause"], "the plugin was silent for too long")

    def test_a_relayed_answer_is_cut(self):
        seen, line = self.read_late(())
        self.assertFalse(seen.endswith(END))
        self.assertEqual((line["error"], line["message"]), ("TIMEOUT", "The request took too long."))


if __name__ == "__main__":
    main()
