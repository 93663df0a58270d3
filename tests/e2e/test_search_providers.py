"""The search providers over real HTTP: a server on loopback plays each service, and its faults, behind the real gateway. A
probe's tool searches and tells the model what was found; a scripted model server plays the upstream."""
import http.server
import json
import threading
import urllib.parse

from client import chat
from harness import BUILD, E2E, main
from upstream import answer

FOLDER = str(BUILD / "tests" / "e2e")
KEY = "key-0123456789"
HIT = {"title": "T", "url": "https://a.example/", "snippet": "S", "date": "2024-03-05"}
PLAIN = {"results": [{"title": "T", "url": "https://a.example/", "content": "S", "publishedDate": "2024-03-05T00:00:00",
                      "text": "S", "snippet": "S", "date": "2024-03-05", "published_date": "Tue, 05 Mar 2024 10:00:00 GMT"}]}
# provider → its name in messages, method, path, the header with the key, an answer
SERVICES = {
    "searxng": ("SearXNG", "GET", "/search", ("authorization", "Bearer " + KEY), PLAIN),
    "brave": ("Brave", "GET", "/res/v1/web/search", ("x-subscription-token", KEY), {"query": {}, "web": {"results": [
        {"title": "<strong>T</strong>", "url": "https://a.example/", "description": "S", "page_age": "2024-03-05T00:00:00"}]}}),
    "tavily": ("Tavily", "POST", "/search", ("authorization", "Bearer " + KEY), PLAIN),
    "exa": ("Exa", "POST", "/search", ("x-api-key", KEY), PLAIN),
    "serper": ("Serper", "POST", "/search", ("x-api-key", KEY), {"searchParameters": {}, "organic": [
        {"title": "T", "link": "https://a.example/", "snippet": "S", "date": "Mar 5, 2024"}]}),
    "perplexity": ("Perplexity", "POST", "/search", ("authorization", "Bearer " + KEY), PLAIN),
}


class Service:
    """Gives the answers of a script, (status, headers, body, how many of its bytes are sent), and keeps what it was asked."""

    def __init__(self, *script):
        self.script, self.asked = list(script), []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                service.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, headers, text, sent = service.script.pop(0)
                data = text.encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[:sent])
                self.close_connection = sent is not None

            do_GET = do_POST = answer

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def reply(body, status=200, sent=None, **headers):
    text = body if isinstance(body, str) else json.dumps(body)
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, text, sent


class SearchProviders(E2E):
    def service(self, *script):
        service = Service(*script)
        self.addCleanup(service.close)
        return service

    def search(self, provider, service, times=1, **options):
        """Searches by the model: the gateway, and what the model was told of each."""
        upstream = self.upstream(*[answer(calls=[("c", "probe", {"what": "search"})]), answer("ok")] * times)
        entry = {"name": "web", "plugin": provider, "base_url": service.url, "api_key": KEY, **options}
        gateway = self.serve(upstream, server={"plugin_path": [FOLDER]}, searches=[entry],
                             interceptors=[{"plugin": "probe_search", "search": "web"}],
                             gateway_options={"upstream_ports": [upstream.port, service.port]})
        for _ in range(times):
            self.assertEqual(chat(gateway, "x", tools=({"type": "web_search"},)).text, "ok")
        return gateway, [m["content"] for request in upstream.requests for m in request.json["messages"] if m["role"] == "tool"]

    def test_each_service_is_asked_and_its_hits_are_told(self):
        for provider, (_, method, path, (header, value), body) in SERVICES.items():
            with self.subTest(provider):
                service = self.service(reply(body))
                gateway, [told] = self.search(provider, service)
                self.assertEqual(json.loads(told), HIT)
                [(asked, target, headers, sent)] = service.asked
                where = urllib.parse.urlsplit(target)
                self.assertEqual((asked, where.path), (method, path))
                self.assertEqual(headers[header], value)
                query = json.loads(sent) if method == "POST" else dict(urllib.parse.parse_qsl(where.query))
                self.assertEqual(query.get("q", query.get("query")), "x")
                self.assertNotIn(KEY, target)
                self.assertNotIn(KEY, gateway.log())

    def test_each_fault_is_an_error_for_the_model_and_has_its_cause_in_the_log(self):
        faults = [
            (reply("<html><title>Just a moment...</title></html>"), "with a page that asks for a human"),
            (reply("<html>hello</html>"), "with a page of HTML instead of JSON"),
            (reply(""), "answers with nothing (200)"),
            (reply('{"results": [{"url": "https://a.exa'), "ends too early"),
            (reply(PLAIN, sent=20), "broke off amid its answer"),
            (reply("{}", status=401), "does not let us in (401)"),
            (reply("{}", status=429, Retry_After="60"), "limits how often it is asked (429); it wants rest for 60 s"),
        ]
        for provider, (name, *_) in SERVICES.items():
            service = self.service(*[script for script, _ in faults])
            gateway, told = self.search(provider, service, times=len(faults))
            lines = gateway.wait_events("service_failed", len(faults))
            self.assertEqual((len(service.asked), len(told)), (len(faults), len(faults)))
            for (_, message), line, words in zip(faults, lines, told):
                with self.subTest(provider=provider, message=message):
                    self.assertIn(name, line["message"])
                    self.assertIn(message, line["message"])
                    self.assertRegex(words, r"^\[.+\] The tool failed\.")

    def test_a_service_that_does_not_answer_is_a_timeout(self):
        began, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)

        service = self.service()

        def wait(self):
            began.set()
            over.wait()

        service.server.RequestHandlerClass.do_GET = wait
        gateway, [told] = self.search("searxng", service, timeout="200ms")
        self.assertTrue(began.is_set())
        self.assertIn("did not answer in time", gateway.wait_event("service_failed")["message"])
        self.assertRegex(told, r"^\[.+\] ")

    def test_a_busy_service_is_asked_once_more(self):
        service = self.service(reply("{}", status=429, Retry_After="1"), reply(PLAIN))
        _, [told] = self.search("tavily", service)
        self.assertEqual(json.loads(told), HIT)
        self.assertEqual(len(service.asked), 2)
        self.assertEqual(service.asked[0], service.asked[1])

    def test_the_key_is_not_carried_to_another_host(self):
        other = self.service()
        service = self.service(reply("", status=302, Location=other.url + "/search"))
        gateway, _ = self.search("exa", service)
        self.assertIn("sends elsewhere (302), which is not followed", gateway.wait_event("service_failed")["message"])
        self.assertEqual(other.asked, [])

    def test_a_service_that_is_not_there_is_named_in_the_log(self):
        service = self.service()
        service.close()
        gateway, [told] = self.search("searxng", service)
        self.assertIn("SearXNG cannot be reached", gateway.wait_event("service_failed")["message"])
        self.assertRegex(told, r"^\[.+\] ")


if __name__ == "__main__":
    main()
