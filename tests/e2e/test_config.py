"""The command line and the configuration file: every problem is reported in one run, each with its place and what would
be right. The texts stand here as operators see them."""
import os
import pathlib
import re

from harness import BUILD, E2E, ROOT, main, run

GOOD = """auth: { mode: none }
upstreams:
  - { name: mock, plugin: mock, models: [mock] }
sandboxes:
  - { name: box, plugin: mock }
interceptors:
  - { plugin: code_interpreter, sandbox: box }
"""
UPSTREAM = "  - { name: mock, plugin: mock, models: [mock] }\n"


class Config(E2E):
    def check(self, text, env=None):
        """(exit code, standard output, problems without the file's name) of `sandgate check`."""
        path = pathlib.Path(self.path("config.yaml"))
        path.write_text(text, encoding="utf-8")
        code, out, err = run("check", "--config", str(path), env=env)
        lines = [line.replace(str(path), "F") for line in err.splitlines()]
        return code, out.replace(str(path), "F"), lines

    def problems(self, text, env=None):
        code, out, lines = self.check(text, env)
        self.assertEqual((code, out), (1, ""), (text, lines))
        counted = re.fullmatch(r"sandgate: (\d+) problems? in F", lines[-1])
        self.assertTrue(counted, lines)
        self.assertEqual(int(counted[1]), len(lines) - 1)
        return lines[:-1]

    def test_a_good_file_is_called_good(self):
        self.assertEqual(self.check(GOOD), (0, "F: good: 1 upstream, 1 sandbox, 0 searches, 1 interceptor\n", []))
        more = GOOD.replace("interceptors:", "  - { name: box2, plugin: mock }\ninterceptors:")
        self.assertIn("1 upstream, 2 sandboxes, 0 searches, 1 interceptor\n", self.check(more)[1])

    def test_the_shipped_files_are_good(self):
        for name in ("config.yaml.example", "examples/e2b.yaml", "examples/files.yaml", "examples/local.yaml", "examples/models.yaml",
                     "examples/offline.yaml", "examples/search.yaml", "examples/team.yaml"):
            code, out, err = run("check", "--config", str(ROOT / name), env={"E2B_API_KEY": "e2b_" + "0" * 40})
            self.assertEqual((code, err), (0, ""), name)
            self.assertIn("good", out)

    def test_all_problems_are_reported_in_one_run_with_their_place(self):
        text = """server:
  listen: 127.0.0.1:4000
  drain: 5
  lisen: x
upstream:
  - {}
auth:
  mode: maybe
upstreams:
  - { name: a, models: [m] }
  - { name: a, base_url: "ftp://x", models: [m], surfaces: [chat, talk] }
sandboxes:
  - { name: box, plugin: mok }
interceptors:
  - { plugin: code_interpreter, sandbox: bax, upstreams: [b] }
loop: { max_turns: 1 }
sessions: { idle_timeout: 10, id_from: [user] }
"""
        found = self.problems(text)
        self.assertEqual(len(found), 13, "\n".join(found))
        expected = [
            (r"F:3:10: .*'drain' must be a duration such as 30s, not '5'; its unit is missing, as in 5s", "wrong form"),
            (r"F:4:3: server: unknown key 'lisen'; did you mean 'listen'\?", "the nearest name"),
            (r"F:5:1: unknown section 'upstream'; did you mean 'upstreams'\?", "section"),
            (r"F:8:9: auth: 'mode' must be one of keys, none, passthrough, not 'maybe'", "choice"),
            (r"F:10:5: upstream 'a' needs exactly one of 'base_url' and 'plugin'", "either"),
            (r"F:11:\d+: upstream 'a': 'surfaces' may hold chat, responses and messages, not 'talk'", "surface"),
            (r"F:11:\d+: upstream 'a': 'base_url' must be a URL such as https://api\.openai\.com/v1, without user, query or "
             r"fragment", "URL"),
            (r"F:11:\d+: upstreams: 'a' is used twice \(first in line 10\)", "twice"),
            (r"F:13:26: plugin 'mok': there is no mok\.so in .*; did you mean 'mock'\?", "plugin"),
            (r"F:15:\d+: interceptors: there is no sandbox 'bax'; did you mean 'box'\?", "sandbox"),
            (r"F:15:\d+: interceptors: there is no upstream 'b'.*", "upstream"),
            (r"F:16:20: loop: 'max_turns' must be at least 2, not '1'", "bound"),
            (r"F:17:27: sessions: 'idle_timeout' must be a duration such as 30s, not '10'; its unit is missing, as in 10s", "duration")]
        for pattern, what in expected:
            self.assertTrue(any(re.fullmatch(pattern, line) for line in found), f"{what}: {pattern}\n" + "\n".join(found))

    def check_one(self, text, pattern, env=None):
        found = self.problems(text, env)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], pattern + "$")

    def test_a_mistake_in_one_key_hides_none_in_another(self):
        keys = ('auth:\n  keys:\n    - { name: a, key: "${NOT_SET_ANYWHERE}" }\n    - { name: b, key: short }\n'
                "    - { name: c, sha256: 12 }\n    - { name: d }\n    - { name: e, key: long-enough, use: x }\n")
        found = self.problems(GOOD.replace("auth: { mode: none }\n", keys))
        found.sort()
        self.assertEqual([int(line.split(":")[1]) for line in found], [3, 4, 5, 6, 7], found)
        for line, part in zip(found, ("NOT_SET_ANYWHERE", "key 'b' is shorter than 8", "64 hexadecimal digits", "exactly one of", "use")):
            self.assertIn(part, line)

    def b38_an_unknown_sandbox_is_named_with_what_there_is(self):
        upstreams = "auth: { mode: none }\nupstreams:\n" + UPSTREAM
        self.check_one(GOOD.replace("sandbox: box", "sandbox: other"),
                       r"^F:7:42: interceptors: there is no sandbox 'other'; there is box")
        self.check_one(upstreams + "interceptors:\n  - { plugin: code_interpreter, sandbox: other }\n",
                       r"interceptors: there is no sandbox 'other'; none is configured")
        self.check_one(GOOD + "  - { plugin: code_interpreter, sandbox: box, search: web }\n",
                       r"interceptors: there is no search 'web'; none is configured")
        self.check_one(GOOD.replace("sandbox: box }", "sandbox: box, upstreams: [mok] }"),
                       r"interceptors: there is no upstream 'mok'; did you mean 'mock'\?")

    def b39_an_interceptor_without_its_sandbox_says_what_it_needs(self):
        self.check_one(GOOD.replace(", sandbox: box", ""), r"^F:7:5: interceptors: 'code_interpreter' needs 'sandbox: NAME'")

    def b43_settings_are_read_and_a_disabled_interceptor_is_still_checked(self):
        code, out, _ = self.check(GOOD.replace("sandbox: box }", "sandbox: box, enabled: false, upstreams: [mock] }"))
        self.assertEqual((code, out), (0, "F: good: 1 upstream, 1 sandbox, 0 searches, 0 interceptors\n"))
        self.check_one(GOOD.replace("sandbox: box }", "sandbox: none_such, enabled: false }"),
                       "there is no sandbox 'none_such'; there is box")

    def test_sections_of_the_wrong_kind(self):
        self.check_one("auth: { mode: none }\nupstreams:\n" + UPSTREAM + "searches: 5\n",
                       r"^F:4:11: 'searches' must be a list of entries such as '- \{ name: … \}'")
        self.check_one("auth: { mode: none }\nupstreams:\n" + UPSTREAM + "  - 5\n",
                       r"^F:4:5: an entry of 'upstreams' must be a map such as \{ name: … \}")
        self.check_one("- 1\n", r"^F:1:1: must be a map of keys and values, not a list")
        self.check_one("auth: { mode: none }\n", r"there is no upstream: add one under 'upstreams:'")
        self.check_one("auth: { mode: none }\nzebra: 1\nupstreams:\n" + UPSTREAM,
                       r"^F:2:1: unknown section 'zebra'; there are server, auth, upstreams, models, sandboxes, searches, sessions, "
                       r"loop, interceptors, accounting")

    def test_names(self):
        for name in ("a b", "ä", "x/y", "a" * 65):
            self.check_one(GOOD.replace("name: mock,", f"name: \"{name}\","),
                           r"a name is 1 to 64 letters, digits, '_', '-' and '.', not '.*'")

    def test_offers(self):
        self.check_one(GOOD.replace("sandbox: box }", "sandbox: box, offer: never }"),
                       r"interceptors: 'offer' must be requested, always or \{ models: \[ … \] \}")
        for offer in ("requested", "always", "{ models: [a, b*] }"):
            self.assertEqual(self.check(GOOD.replace("sandbox: box }", f"sandbox: box, offer: {offer} }}"))[0], 0)

    def test_the_memory_budget_is_a_part_or_a_size(self):
        for value in ("1%", "100%", "1MiB", "512MiB"):
            self.assertEqual(self.check(f"server: {{ memory_budget: {value} }}\n" + GOOD)[0], 0, value)
        for value in ("0%", "101%", "99999999999999999999%", "-5%", "5 %", "half", "1023KiB", "25", ""):
            self.check_one(f"server: {{ memory_budget: \"{value}\" }}\n" + GOOD,
                           r"^F:1:26: server: 'memory_budget' must be 1% to 100%, or a size of at least 1MiB such as 2GiB, "
                           f"not '{value}'")

    def test_keys(self):
        def auth(entry):
            return f"auth:\n  keys:\n    - {entry}\nupstreams:\n" + UPSTREAM
        self.check_one(auth("{ name: a }"), r"^F:3:7: auth: key 'a' needs exactly one of 'sha256' and 'key'")
        self.check_one(auth("{ name: a, key: long-enough, sha256: x }"), r"auth: key 'a' needs exactly one of 'sha256' and 'key'")
        self.check_one(auth("{ name: a, sha256: abc }"),
                       r"auth: 'sha256' of key 'a' must be 64 hexadecimal digits \(make it with: printf %s KEY \| sha256sum\)")
        self.check_one(auth("{ name: a, key: short }"), r"auth: key 'a' is shorter than 8 characters")
        self.check_one(auth("{ key: long-enough-key }"), r"^F:3:7: auth: 'keys\[0\]\.name' is required: text")
        self.check_one(auth("{ name: a, key: long-enough }").replace("auth:\n", "auth:\n  mode: none\n"),
                       r"^F:4:5: auth: mode 'none' lets everybody in, whatever 'keys' says: leave one of the two out")
        self.check_one(auth("{ name: a, key: \"\" }"), r"^F:3:7: auth: key 'a' is empty")
        missing = (r"auth: mode 'keys' needs at least one entry in 'keys' or in 'keys_file'; for a gateway that only this machine can reach, "
                   r"'mode: none' is possible")
        self.check_one(auth("{ name: a, key: long-enough, use: admin }"),
                       "^F:3:5: auth: no key here is good for requests, so that no client could come in: add one without 'use'")
        self.check_one("upstreams:\n" + UPSTREAM, missing)
        self.check_one("auth: { mode: keys }\nupstreams:\n" + UPSTREAM, "^F:1:7: " + missing)

    def test_secrets_come_from_the_environment_and_are_never_shown(self):
        text = "auth:\n  keys:\n    - { name: a, key: \"${TEST_KEY}\" }\nupstreams:\n" + UPSTREAM
        self.assertEqual(self.check(text, {"TEST_KEY": "a-good-long-key"})[0], 0)
        self.check_one(text, r"auth: 'keys\[0\]\.key': the environment variable 'TEST_KEY' is not set")
        code, _, lines = self.check(text, {"TEST_KEY": "s3cret"})
        self.assertEqual(code, 1)
        self.assertNotIn("s3cret", "\n".join(lines))

    def test_session_sources(self):
        self.check_one(GOOD + "sessions: { id_from: [metadata.user] }\n",
                       r"sessions: 'id_from' may hold metadata\.session_id, litellm_metadata\.session_id, metadata\.user_id, "
                       r"prompt_cache_key and header:NAME, not 'metadata\.user'")
        for good in ("\"header:x-s\", metadata.session_id", "prompt_cache_key, metadata.user_id"):
            self.assertEqual(self.check(GOOD + f"sessions: {{ id_from: [{good}] }}\n")[0], 0)

    def test_a_plugin_of_another_kind(self):
        self.check_one(GOOD.replace("{ name: box, plugin: mock }", "{ name: box, plugin: code_interpreter }"),
                       r"plugin 'code_interpreter' has no sandbox in it \(it is loaded from .*code_interpreter\.so\)")

    def test_options_of_a_plugin_are_checked_where_they_stand(self):
        found = self.problems(GOOD.replace("plugin: mock }", "plugin: mock, dely: 1s, create_delay: soon }"))
        self.assertEqual(len(found), 2, found)
        self.assertRegex(found[0] + found[1], r"F:5:\d+: box: unknown key 'dely'.*'delay'")
        self.assertRegex(found[0] + found[1], r"F:5:\d+: box: 'create_delay' must be a duration such as 30s, not 'soon'")

    def test_broken_yaml_says_where(self):
        for text in ("a: [1, 2\n", "a: {b: c\nd: e\n", "\tx: 1\n", "a: \"unfinished\n", "a: *alias\n", "a: &x 1\n", "a: !tag 1\n"):
            self.assertRegex(self.problems(text)[0], r"^F:\d+:\d+: ", text)
        self.assertIn("duplicate key", " ".join(self.problems(GOOD + "auth: { mode: none }\n")))

    def test_a_file_that_is_not_there(self):
        code, out, err = run("check", "--config", "/nowhere/config.yaml")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("/nowhere/config.yaml: cannot be opened: No such file or directory", err)
        code, _, err = run("check", config=self.folder)
        self.assertEqual(code, 1)
        self.assertIn("config.yaml: cannot be opened", err)

    def test_check_looks_at_the_address_too(self):
        self.check_one(GOOD + "server: { listen: \"0.0.0.0:80\" }\n",
                       r"^F:8:19: auth: mode 'none' at 0\.0\.0\.0:80 would let everybody who reaches it run code: listen at "
                       r"127\.0\.0\.1, set keys, or say 'insecure: true'")
        self.check_one(GOOD + "server: { listen: nonsense }\n",
                       r"^F:8:19: server: 'listen' must be an address and port such as 127\.0\.0\.1:4000, not 'nonsense'")
        found = self.problems(GOOD + "server: { listen: nonsense }\nloop: { max_turns: 1 }\n")
        self.assertEqual(len(found), 2, "beside what else is wrong")

    def folder_with(self, text):
        pathlib.Path(self.folder, "config.yaml").write_text(text, encoding="utf-8")
        return self.folder

    def write(self, text):
        path = pathlib.Path(self.path("config.yaml"))
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_a_plugin_folder_of_ones_own_is_relative_to_the_file(self):
        folder = pathlib.Path(self.folder, "mine")
        folder.mkdir(mode=0o755)
        (folder / "own.so").write_bytes((BUILD / "lib" / "sandgate" / "mock.so").read_bytes())
        os.chmod(self.folder, 0o755)
        text = GOOD.replace("{ name: box, plugin: mock }", "{ name: box, plugin: own }") + "server: { plugin_path: [mine] }\n"
        code, _, err = run("check", "--config", self.write(text))
        self.assertEqual(code, 0, err)
        os.chmod(folder, 0o777)
        code, _, err = run("check", "--config", "./config.yaml", config=self.folder_with(
            text.replace("plugin: own", "plugin: on").replace("[mine]", "[\"./nowhere\"]")))
        self.assertIn("plugin 'on': there is no on.so in nowhere (no such folder)", err, "as it was written")
        code, _, err = run("check", "--config", self.write(text))
        self.assertEqual(code, 1, "a folder that others can write to is not trusted")
        self.assertIn("may be written by others (mode 0777), who could change what the gateway runs: chmod go-w", err)

    # ---- the command line ----

    def test_usage(self):
        usage = "usage: sandgate COMMAND [OPTION …]"
        code, out, err = run()
        self.assertEqual((code, out, err.splitlines()[0]), (2, "", usage))
        for word in ("--help", "-h", "help"):
            code, out, err = run(word)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("  serve      serve with a configuration file", out)
            self.assertIn("  check      check a configuration file and the plugins that it names, and say what is wrong", out)
            self.assertIn("  plugins    list the plugins that are installed", out)
            self.assertIn("  describe   print a plugin's kinds and options", out)
            self.assertIn("  version    print the version", out)
            self.assertIn("Each takes --help.", out)
        for command, first in (("serve", "usage: sandgate serve [--config FILE] [--listen ADDRESS]"),
                               ("check", "usage: sandgate check [--config FILE]"),
                               ("plugins", "usage: sandgate plugins [--plugin-path FOLDER]"),
                               ("describe", "usage: sandgate describe PLUGIN [--plugin-path FOLDER]"),
                               ("version", "usage: sandgate version")):
            code, out, err = run(command, "--help")
            self.assertEqual((code, out.splitlines()[0], err), (0, first, ""))

    def test_wrong_command_lines_are_2_and_say_what_is_wrong(self):
        for arguments, message in (
                (("sevre",), "sandgate: there is no command 'sevre'; see sandgate --help"),
                (("serve", "--nope"), "sandgate serve: there is no option '--nope'; see sandgate serve --help"),
                (("serve", "-x"), "sandgate serve: there is no option '-x'; see sandgate serve --help"),
                (("serve", "--config"), "sandgate serve: a value is missing for '--config'; see sandgate serve --help"),
                (("check", "file"), "sandgate check: takes no argument, not 'file'; see sandgate check --help"),
                (("describe",), "sandgate describe: name one plugin; see sandgate describe --help"),
                (("describe", "a", "b"), "sandgate describe: name one plugin; see sandgate describe --help")):
            self.assertEqual(run(*arguments), (2, "", message + "\n"))

    def test_version(self):
        for word in ("version", "--version"):
            code, out, err = run(word)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r"^sandgate \d+\.\d+\.\d+ \(plugin ABI 1\.\d+\)\n$")

    def test_plugins_and_describe(self):
        code, out, err = run("plugins")
        self.assertEqual((code, err), (0, ""))
        kinds = {line.split()[0]: line.split()[2:] for line in out.splitlines()}
        self.assertEqual(sorted(kinds["mock"]), ["sandbox", "search", "upstream"])
        self.assertEqual(kinds["code_interpreter"], ["interceptor"])
        self.assertEqual(kinds["local"], ["sandbox"])
        self.assertEqual(kinds["web_search"], ["interceptor"])
        for name, words in (("mock", ("create_fault", "journal")), ("code_interpreter", ("shown", "16KiB")),
                            ("local", ("memory", "512MiB"))):
            code, out, err = run("describe", name)
            self.assertEqual((code, err), (0, ""))
            for word in words:
                self.assertIn(word, out)
        code, out, err = run("describe", "core")
        self.assertEqual((code, err), (0, ""))
        named = re.findall(r"The (?:sandbox provider|search provider|interceptor): ([a-z0-9_, ]+), or one of your own\.", out)
        self.assertEqual(named, ["e2b, local, mock", "brave, exa, mock, perplexity, searxng, serper, tavily",
                                 "code_interpreter, web_search"], "plugins that are there")
        code, out, err = run("describe", "mok")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("sandgate: ", err)
        self.assertIn("mok", err)

    def test_a_bad_plugin_in_the_list_is_named_and_the_rest_is_listed(self):
        folder = pathlib.Path(self.folder, "bad")
        folder.mkdir(mode=0o755)
        (folder / "broken.so").write_bytes(b"\x7fELF garbage")
        code, out, err = run("plugins", "--plugin-path", str(folder))
        self.assertEqual(code, 1)
        self.assertIn("broken.so", err)
        self.assertIn("mock", out)


if __name__ == "__main__":
    main()
