"""sandgate as it is installed (cmake --install), with the examples built outside the tree against that: by find_package() and
by pkg-config, each used in a gateway that runs from there."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from client import Wire, body_of, chat, post
from harness import BUILD, E2E, ROOT, main, poll, run
from upstream import answer, code

A, B, C = "key-of-team-a", "key-of-team-b", "key-of-nobody"
KEYS = {"mode": "keys", "keys": [{"name": "team-a", "key": A}, {"name": "team-b", "key": B}, {"name": "else", "key": C}]}
RULES = [{"identity": "team-a", "models": ["mock"], "max_tokens": 100, "at_once": 1},
         {"identity": "team-*", "models": ["mock", "other*"]}]


def done(*command, **options):
    """Runs a tool to its end; what it wrote."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


class Installed(E2E):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="sandgate-installed-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, True)
        cls.prefix = cls.work / "moved"
        done("cmake", "--install", BUILD, "--prefix", cls.work / "prefix")
        os.rename(cls.work / "prefix", cls.prefix)  # nothing in it may know where it was put
        for example in ("plugin", "hook"):
            done("cmake", "-S", ROOT / "examples" / example, "-B", cls.work / example, f"-DCMAKE_PREFIX_PATH={cls.prefix}",
                 "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
            done("cmake", "--build", cls.work / example)
            done("cmake", "--install", cls.work / example)
        cls.binary = cls.prefix / "bin" / "sandgate"

    def installed(self, upstream, **sections):
        return self.serve(upstream, gateway_options={"binary": self.binary}, **sections)


class Tree(Installed):
    def test_what_was_installed_is_found_and_described(self):
        code_, out, _ = run("plugins", binary=self.binary)
        self.assertEqual(code_, 0)
        for name in ("code_interpreter", "echo", "mock", "policy"):
            self.assertRegex(out, rf"(?m)^{name}\b")
        code_, out, _ = run("describe", "policy", binary=self.binary)
        self.assertEqual(code_, 0)
        for option in ("rules", "identity", "models", "max_tokens", "at_once"):
            self.assertIn(option, out)

    def test_pkg_config_says_how_a_plugin_is_built_and_where_it_goes(self):
        [pc] = self.prefix.rglob("sandgate.pc")
        env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent)}
        header = (ROOT / "core" / "include" / "sandgate" / "plugin.h").read_text()
        abi = ".".join(re.search(rf"#define SG_ABI_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR"))
        self.assertEqual(done("pkg-config", "--modversion", "sandgate", env=env).strip(), abi)
        folder = done("pkg-config", "--variable=plugindir", "sandgate", env=env).strip()
        self.assertEqual(pathlib.Path(folder).resolve(), (self.prefix / "lib" / "sandgate").resolve())
        built = self.work / "parrot.so"
        flags = done("pkg-config", "--cflags", "sandgate", env=env).split()
        done("cc", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,defs", *flags, "-o", built,
             ROOT / "examples" / "plugin" / "echo.c")
        code_, out, _ = run("describe", "parrot", "--plugin-path", str(self.work), binary=self.binary)
        self.assertEqual(code_, 0)
        self.assertIn("greeting", out)


class Provider(Installed):
    def test_the_example_provider_keeps_what_it_was_given(self):
        upstream = self.upstream(code("a = 1"), code("b = 2"), answer("done"))
        gateway = self.installed(upstream, sandboxes=[{"name": "parrot", "plugin": "echo", "greeting": "before: "}],
                                 interceptors=[{"plugin": "code_interpreter", "sandbox": "parrot"}])
        self.assertEqual(chat(gateway, "x", "some-session").text, "done")
        told = [m["content"] for m in upstream.requests[2].json["messages"] if m["role"] == "tool"]
        self.assertEqual(told[1].strip(), "before: a = 1")
        self.assertNotIn("before", told[0])

    def test_its_limit_of_containers_is_the_operators_to_read(self):
        upstream = self.upstream(code("a"), answer("one"), code("b"), answer("two"))
        gateway = self.installed(upstream, sandboxes=[{"name": "parrot", "plugin": "echo", "containers_max": 1}],
                                 interceptors=[{"plugin": "code_interpreter", "sandbox": "parrot"}])
        self.assertEqual(chat(gateway, "x", "first").text, "one")
        self.assertEqual(chat(gateway, "x", "second").text, "two")
        told = [m["content"] for m in upstream.requests[3].json["messages"] if m["role"] == "tool"][-1]
        self.assertIn("[sandbox unavailable]", told)
        self.assertIn("echo (parrot): no room for another container; raise containers_max",
                      gateway.wait_event("service_failed")["message"])


class Hook(Installed):
    def policed(self, upstream):
        entry = {"name": "up", "base_url": upstream.url + "/v1", "models": ["*"]}
        return self.installed(upstream, auth=KEYS, upstreams=[entry], interceptors=[
            {"plugin": "policy", "rules": RULES}, {"plugin": "code_interpreter", "sandbox": "box"}])

    def check_refused(self, reply, status, message):
        self.assertEqual(reply.status, status, reply.body)
        self.assertIn(message, reply.error["message"])

    def test_models_are_for_those_whose_rule_has_them(self):
        upstream = self.upstream(forever=answer("fine"))
        gateway = self.policed(upstream)
        self.assertEqual(chat(gateway, text="x", key=A).text, "fine")
        self.assertEqual(chat(gateway, text="x", model="other-1", key=B).text, "fine")
        self.check_refused(chat(gateway, text="x", model="other-1", key=A), 403, "This key may not use the model 'other-1'.")
        self.check_refused(chat(gateway, text="x", model="third", key=B), 403, "This key may not use the model 'third'.")
        self.check_refused(chat(gateway, text="x", key=C), 403, "This key may use nothing here.")
        self.check_refused(post(gateway, "/v1/chat/completions", b'{"model":"mock","messages":[],"mod\\u0065l":"third"}', key=B),
                           400, "model")
        self.assertEqual(len(upstream.requests), 2)

    def test_tokens_are_limited_and_the_limit_is_put_in_where_none_is_asked_for(self):
        upstream = self.upstream(forever=answer("fine"))
        gateway = self.policed(upstream)
        for asked in ({"max_tokens": 101}, {"max_completion_tokens": 1000}, {"max_tokens": 51, "n": 2}, {"n": 101},
                      {"max_tokens": 1, "max_output_tokens": 101}):
            self.check_refused(chat(gateway, text="x", tools=(), key=A, **asked), 403, "This key may have 100 tokens an answer at most.")
        for asked in (None, "many", -1):
            self.check_refused(chat(gateway, text="x", key=A, max_tokens=asked), 400, "'max_tokens' must be a number here.")
        self.assertEqual(upstream.requests, [])
        raw = json.dumps(body_of(text="x", tools=(), max_tokens=100, key=1.0)).encode()
        self.assertEqual(post(gateway, "/v1/chat/completions", raw, key=A).status, 200)
        self.assertEqual(upstream.requests[0].body, raw, "what keeps to it is not touched")
        for path, member, more in (("/v1/chat/completions", "max_tokens", {"messages": []}),
                                   ("/v1/responses", "max_output_tokens", {"input": "x"})):
            raw = json.dumps({"model": "mock", **more}).encode()
            self.assertEqual(post(gateway, path, raw, key=A).status, 200)
            self.assertEqual(upstream.requests[-1].body, b'{"%s":100,' % member.encode() + raw[1:])
        self.assertEqual(chat(gateway, text="x", tools=(), key=A, n=4).status, 200)
        self.assertEqual(upstream.requests[-1].json["max_tokens"], 25, "all choices together")
        self.assertEqual(post(gateway, "/v1/embeddings", {"model": "mock", "input": "x", "max_tokens": 1}, key=A).status, 200)
        self.assertEqual(chat(gateway, text="x", tools=(), key=B, max_tokens=10 ** 6).status, 200)

    def test_requests_at_a_time_are_counted_until_they_end_however_they_do(self):
        upstream = self.upstream(lambda connection: connection.wait_closed() and False, forever=answer("fine"))
        gateway = self.policed(upstream)
        with Wire(gateway) as wire:
            wire.post(body_of(text="x", tools=()), fields=[f"Authorization: Bearer {A}"])
            upstream.next_request()
            self.check_refused(chat(gateway, text="x", tools=(), key=A), 429, "This key has 1 requests in progress, its limit.")
            self.assertEqual(chat(gateway, text="x", tools=(), key=B).text, "fine")
        gateway.wait_event("request", lambda event: event["status"] == "499")
        poll(lambda: chat(gateway, text="x", tools=(), key=A).status == 200, "the place of the one that left")
        for _ in range(100):  # one after another, each by a connection of its own: never two at a time
            self.assertEqual(chat(gateway, text="x", tools=(), key=A).status, 200)
        self.assertEqual(chat(gateway, text="x", tools=(), model="no", key=A).status, 403)
        self.assertEqual(chat(gateway, text="x", tools=(), key=A).status, 200, "refusals hold no place")


if __name__ == "__main__":
    main()
