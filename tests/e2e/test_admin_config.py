"""GET /admin/config: the settings in force, where they come from and since when; no secret of any kind is in it."""
import pathlib
import re
import signal
import time

from certificates import Authority
from client import get, request
from harness import E2E, main, poll, run, to_yaml
from test_admin import ADMIN, OPERATORS, Door
from upstream import answer

MARK = "SECRET-"  # each planted secret begins so
BOX = [{"name": "box", "plugin": "mock"}]
CODE = [{"plugin": "code_interpreter", "sandbox": "box"}]


def secret_options(*what):
    """Names of options that `sandgate describe` calls secret; those of lists with the list's name."""
    found, path = set(), []
    for line in run("describe", *what)[1].splitlines():
        option = re.match(r"^( *)([a-z0-9_]+): (.*)$", line)
        if option and option[1]:
            path = path[:(len(option[1]) - 2) // 6] + [option[2]]
            if "secret" in option[3].split("; ") or option[3].endswith("; secret"):
                found.add(".".join(path))
    return found


class AdminConfig(E2E):
    def begin(self, config, **options):
        config = {"auth": {"mode": "none"}, "server": {"admin": "127.0.0.1:0"}, "sandboxes": BOX, "interceptors": CODE, **config}
        gateway = self.gateway(config, **options)
        return gateway, Door(gateway)

    def shown(self, door, **options):
        reply = get(door, "/admin/config", **options)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def rewrite(self, gateway, config, event):
        gateway.config_path.write_text(to_yaml(config) + "\n")
        count = len(gateway.events(event))
        gateway.signal(signal.SIGHUP)
        gateway.wait_events(event, count + 1)

    # ---- what is in it ----

    def test_all_sections_are_there_with_what_is_given_and_defaults(self):
        up = self.upstream(forever=answer("ok"))
        entry = {"name": "up", "base_url": up.url + "/v1", "models": ["m-*", "n"], "silence_timeout": "30s", "retries": 3}
        gateway, door = self.begin({"upstreams": [entry], "models": [{"name": "fast", "to": [{"upstream": "up", "model": "n"}]}],
                                    "sandboxes": [{"name": "box", "plugin": "mock", "run_timeout": "5s"}],
                                    "searches": [{"name": "web", "plugin": "mock", "cache": "60s"}],
                                    "interceptors": [{"plugin": "code_interpreter", "sandbox": "box", "offer": {"models": ["m-*"]}},
                                                     {"plugin": "web_search", "search": "web", "enabled": False}],
                                    "loop": {"max_turns": 7}}, upstream_ports=[up.port])
        config = self.shown(door)
        self.assertEqual((config["object"], config["file"]), ("config", str(gateway.config_path)))
        self.assertEqual((config["started_at"], config["reload_failed_at"], config["needs_restart"]), (config["read_at"], None, []))
        settings = config["settings"]
        self.assertEqual(list(settings), ["server", "auth", "upstreams", "models", "sandboxes", "searches", "sessions", "loop", "interceptors",
                                          "accounting"])
        one = settings["upstreams"][0]
        self.assertEqual({key: one[key] for key in entry}, entry)
        self.assertEqual((one["api_key"], one["passthrough"], one["relay_paths"], one["first_byte_timeout"], one["headers"]),
                         (None, False, [], "5m", {}))
        self.assertEqual(settings["models"][0]["to"], [{"upstream": "up", "model": "n", "weight": 1}])
        self.assertEqual((settings["sandboxes"][0]["run_timeout"], settings["searches"][0]["cache"]), ("5s", "60s"))
        self.assertEqual([(i["plugin"], i["enabled"], i["offer"]) for i in settings["interceptors"]],
                         [("code_interpreter", True, {"models": ["m-*"]})], "one that is not enabled is not in force")
        self.assertEqual((settings["loop"]["max_turns"], settings["loop"]["max_calls"], settings["sessions"]["idle_timeout"]), (7, 32, "15m"))
        self.assertEqual((settings["server"]["listen"], settings["server"]["admin"], settings["server"]["tls"]),
                         (["127.0.0.1:0"], "127.0.0.1:0", None), "as the command line has it")
        self.assertEqual(settings["auth"]["mode"], "none")

    def test_each_option_that_describe_knows_is_shown(self):
        up = self.upstream(forever=answer("ok"))
        _, door = self.begin({"upstreams": [{"name": "up", "base_url": up.url}], "models": [{"name": "x", "to": [{"upstream": "up"}]}],
                              "searches": [{"name": "web", "plugin": "mock"}], "accounting": {"file": self.path("lines")}})
        settings = self.shown(door)["settings"]
        text = run("describe", "core")[1]
        blocks = re.split(r"\n\n(?=[a-z.]+\n)", text)
        self.assertEqual(len(blocks), 11)
        for block in blocks:
            name, *lines = block.splitlines()
            options = {option[1] for line in lines if (option := re.match(r"^  ([a-z0-9_]+): ", line))}
            if name != "server.tls":  # there is none
                section = settings[name]
                self.assertLessEqual(options, set(section[0] if isinstance(section, list) else section), name)

    # ---- what is not ----

    def test_no_secret_is_in_it_whatever_option_holds_it(self):
        folder = pathlib.Path(self.path("files"))
        folder.mkdir()
        keys_file = folder / "keys.yaml"
        keys_file.write_text(f"- {{ name: filed, key: {MARK}of-a-keys-file }}\n")
        keys_file.chmod(0o600)
        authority = Authority(folder)
        certificate, certificate_key = authority.sign("server")
        up = self.upstream(forever=answer("ok"))
        searches = {"brave": {}, "exa": {}, "perplexity": {}, "searxng": {"base_url": "http://127.0.0.1:9"}, "serper": {}, "tavily": {}}
        planted = {
            "core": {"key", "sha256", "api_key", "proxy", "headers"},
            "e2b": {"api_key", "env"}, **{name: {"api_key"} for name in searches},
            "code_interpreter": set(), "local": set(), "mock": set(), "web_search": set()}
        self.assertEqual({name.split(".")[-1] for name in secret_options("core")}, planted["core"])
        for name in [line.split()[0] for line in run("plugins")[1].splitlines()]:
            self.assertEqual(secret_options(name), planted[name], "plant the new one below")
        config = {
            "auth": {"mode": "keys", "keys": [{"name": "team", "key": MARK + "of-a-client"}, {"name": "op", "key": ADMIN, "use": "admin"},
                                              {"name": "hashed", "sha256": "5ec2e7" + "0" * 58}, {"name": "env", "key": "${KEY_OF_ENV}"}],
                     "keys_file": str(keys_file)},
            "server": {"admin": "127.0.0.1:0", "tls": {"certificate": str(certificate), "key": str(certificate_key)}},
            "upstreams": [{"name": "up", "base_url": up.url, "models": ["m"], "api_key": MARK + "of-the-operator",
                           "proxy": f"http://user:{MARK}of-a-proxy@127.0.0.1:9", "headers": {"x-own": MARK + "of-a-header"}},
                          {"name": "env", "base_url": "${URL_OF_ENV}", "models": ["n"], "api_key": "os.environ/KEY_OF_ENV"}],
            "sandboxes": [*BOX, {"name": "far", "plugin": "e2b", "api_key": MARK + "of-e2b", "env": {"TOKEN": MARK + "of-code"}}],
            "searches": [{"name": name, "plugin": name, "api_key": MARK + "of-" + name, **more} for name, more in searches.items()],
            "interceptors": CODE}
        environment = {"KEY_OF_ENV": MARK + "of-the-environment", "URL_OF_ENV": "http://SECRET-host.example/v1"}
        gateway = self.gateway(config, env=environment)
        door = Door(gateway)
        door.tls = authority.context()
        raw = get(door, "/admin/config", key=ADMIN)
        self.assertEqual(raw.status, 200, raw.body)
        text = raw.body.decode()
        for hidden in (MARK, "5ec2e7", ADMIN):
            self.assertNotIn(hidden, text)
        settings = raw.json["settings"]
        self.assertEqual([(key["name"], key["key"], key["sha256"]) for key in settings["auth"]["keys"]],
                         [("team", "***", None), ("op", "***", None), ("hashed", None, "***"), ("env", "***", None)])
        self.assertEqual([(key["name"], key["key"]) for key in settings["auth"]["keys_of_keys_file"]], [("filed", "***")])
        one, other = settings["upstreams"]
        self.assertEqual((one["api_key"], one["proxy"], one["headers"]), ("***", "***", {"x-own": "***"}))
        self.assertEqual((other["api_key"], other["base_url"]), ("***", "${URL_OF_ENV}"))
        self.assertEqual((settings["sandboxes"][1]["api_key"], settings["sandboxes"][1]["env"]), ("***", {"TOKEN": "***"}))
        self.assertEqual({search["api_key"] for search in settings["searches"]}, {"***"})
        self.assertEqual(settings["server"]["tls"]["key"], str(certificate_key), "the file's name is no secret")

    # ---- whose it is, and when ----

    def test_it_is_at_the_admin_address_alone_and_for_its_key(self):
        up = self.upstream(forever=answer("ok"))
        keys = {"mode": "keys", "keys": [{"name": "a", "key": "key-of-team-a"}, *OPERATORS]}
        gateway, door = self.begin({"upstreams": [{"name": "up", "base_url": up.url, "models": ["m"]}], "auth": keys})
        self.assertEqual([get(door, "/admin/config", key=key).status for key in (ADMIN, None, "key-of-team-a", "key-of-the-scraper")],
                         [200, 401, 403, 403])
        self.assertEqual([get(gateway, path, key="key-of-team-a").status for path in ("/admin/config", "/v1/admin/config")], [404, 404])
        self.assertEqual(get(gateway, "/admin/config", key=ADMIN).status, 404)
        self.assertEqual([request(door, method, "/admin/config", key=ADMIN).status for method in ("HEAD", "POST", "DELETE")], [200, 405, 405])

    def test_after_a_reload_it_tells_what_is_in_force_now(self):
        one, other = self.upstream(forever=answer("one")), self.upstream(forever=answer("other"))
        keys_file = pathlib.Path(self.path("keys.yaml"))
        keys_file.write_text("- { name: first, key: key-of-first }\n")
        keys_file.chmod(0o600)
        config = {"auth": {"mode": "keys", "keys_file": str(keys_file), "keys": [{"name": "op", "key": ADMIN, "use": "admin"}]},
                  "server": {"admin": "127.0.0.1:0"}, "sandboxes": BOX, "interceptors": CODE, "loop": {"max_turns": 5},
                  "upstreams": [{"name": "up", "base_url": one.url, "models": ["m"]}]}
        gateway = self.gateway(config, upstream_ports=[one.port, other.port])
        door = Door(gateway)
        before = self.shown(door, key=ADMIN)
        keys_file.write_text("- { name: second, key: key-of-second }\n")
        changed = {**config, "loop": {"max_turns": 9}, "server": {"admin": "127.0.0.1:0", "drain": "1s"},
                   "upstreams": [{"name": "new", "base_url": other.url, "models": ["n"]}, {"name": "pretend", "plugin": "mock", "models": ["p"]}]}
        poll(lambda: int(time.time()) > before["started_at"], "another second")
        self.rewrite(gateway, changed, "reloaded")
        now = self.shown(door, key=ADMIN)
        self.assertEqual([u["name"] for u in now["settings"]["upstreams"]], ["new"], "the plugin's needs a restart")
        self.assertEqual([k["name"] for k in now["settings"]["auth"]["keys_of_keys_file"]], ["second"])
        self.assertEqual((now["settings"]["loop"]["max_turns"], now["settings"]["server"]["drain"]), (5, "30s"), "the start's")
        self.assertEqual(sorted(now["needs_restart"]), ["loop.max_turns", "server.drain", "upstreams[1]"])
        self.assertEqual(now["started_at"], before["started_at"])
        self.assertGreater(now["read_at"], before["read_at"])
        self.rewrite(gateway, {**changed, "upstreams": []}, "reload_failed")
        failed = self.shown(door, key=ADMIN)
        self.assertGreaterEqual(failed["reload_failed_at"], now["read_at"])
        self.assertEqual((failed["settings"], failed["read_at"]), (now["settings"], now["read_at"]))
        self.rewrite(gateway, config, "reloaded")
        again = self.shown(door, key=ADMIN)
        self.assertEqual((again["reload_failed_at"], again["needs_restart"]), (None, []))
        self.assertEqual(again["settings"]["upstreams"], before["settings"]["upstreams"])

    def test_of_an_upstream_plugin_the_starts_options_are_in_force(self):
        journal, other = self.path("journal"), self.path("other")
        config = {"auth": {"mode": "none"}, "server": {"admin": "127.0.0.1:0"}, "sandboxes": BOX, "interceptors": CODE,
                  "upstreams": [{"name": "up", "plugin": "mock", "journal": journal, "models": ["m"]}]}
        gateway = self.gateway(config)
        door = Door(gateway)
        config["upstreams"] = [{"name": "up", "plugin": "mock", "journal": other, "models": ["n"]}]
        self.rewrite(gateway, config, "reloaded")
        now = self.shown(door)
        self.assertEqual((now["settings"]["upstreams"][0]["journal"], now["settings"]["upstreams"][0]["models"]), (journal, ["n"]))
        self.assertEqual(now["needs_restart"], ["upstreams[0].journal"])


if __name__ == "__main__":
    main()
