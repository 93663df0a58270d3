"""Places on disk that collide or cannot be: a file that the gateway writes may be nobody else's. Told by `check` and by `serve`
alike, before anything is written; each file is afterwards what it was."""
import os
import pathlib
import socket
import unittest

from certificates import HAS_OPENSSL, Authority
from harness import E2E, main, run, to_yaml


class Places(E2E):
    def setUp(self):
        super().setUp()
        self.place = pathlib.Path(self.folder)
        self.config = self.place / "gate.yaml"
        self.keys = self.place / "keys.yaml"
        self.keys.write_text("- { name: a, key: key-of-team-a }\n")
        self.keys.chmod(0o600)

    def write(self, **sections):
        whole = {"auth": {"mode": "none"}, "upstreams": [{"name": "m", "plugin": "mock", "models": ["m"]}], **sections}
        self.config.write_text(to_yaml(whole) + "\n")

    def files(self):
        """All there is, with what says whether it is another by now. A start that gets as far as the lock would leave that."""
        return {str(path): (path.lstat().st_ino, path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
                for path in self.place.rglob("*")}

    def refused(self, words, serve=("--listen", "127.0.0.1:0"), **sections):
        self.write(**sections)
        before = self.files()
        for command in (("check",), ("serve", *serve)):
            status, _, said = run(*command, "--config", str(self.config))
            self.assertEqual(status, 1, (command, words, said))  # where `check` has it good, `serve` would go on
            self.assertIn(words, said)
            self.assertRegex(said, r"gate\.yaml:\d+:\d+: ")
        self.assertEqual(self.files(), before)

    def good(self, **sections):
        """Not for `check` alone: it is served by."""
        self.write(**sections)
        status, _, said = run("check", "--config", str(self.config))
        self.assertEqual((status, said), (0, ""))
        self.gateway(self.config.read_text()).stop()

    @staticmethod
    def keep(state, **more):
        return {"on_shutdown": "keep", "state_file": str(state), **more}

    def meets(self, written, other, option="sessions: 'state_file'"):
        return f"{option} would write '{written}', which is also {other}: give each a file of its own"

    # ---- the state file and others ----

    def test_the_state_file_is_not_the_configuration(self):
        words = self.meets(self.config, "the configuration file")
        self.refused(words, sessions=self.keep(self.config))
        self.refused(words, sessions=self.keep("gate.yaml"))
        link = self.place / "link.yaml"
        link.symlink_to(self.config)
        self.refused(self.meets(link, "the configuration file"), sessions=self.keep(link))
        link.unlink()
        os.link(self.config, link)  # by another name, the same file
        self.refused(self.meets(link, "the configuration file"), sessions=self.keep(link))

    def test_the_state_file_is_not_the_file_of_the_keys(self):
        auth = {"mode": "keys", "keys_file": "keys.yaml"}
        self.refused(self.meets(self.keys, "'auth.keys_file'"), auth=auth, sessions=self.keep(self.keys))
        by_link = self.place / "by"
        by_link.symlink_to(self.place)
        self.refused(self.meets(by_link / "keys.yaml", "'auth.keys_file'"), auth=auth, sessions=self.keep(by_link / "keys.yaml"))

    def test_files_beside_the_state_file_are_taken_too(self):
        for end in (".lock", ".new", ".bad"):
            keys = self.place / f"s.json{end}"
            self.keys.rename(keys)
            self.keys = keys
            self.refused(self.meets(keys, "'auth.keys_file'"), auth={"mode": "keys", "keys_file": str(keys)},
                         sessions=self.keep(self.place / "s.json"))

    def test_the_state_file_is_no_accounting_whether_it_is_there_or_not(self):
        state = self.place / "s.json"
        self.refused(self.meets(state, "'accounting.file'"), sessions=self.keep(state), accounting={"file": "./s.json"})
        self.refused(self.meets(state, "'accounting.audit'"), sessions=self.keep(state), accounting={"audit": "./s.json"})
        self.refused(self.meets(f"{state}.new", "'accounting.audit'"), sessions=self.keep(state), accounting={"audit": "s.json.new"})
        state.touch(0o600)
        self.refused(self.meets(state, "'accounting.file'"), sessions=self.keep(state), accounting={"file": "s.json"})

    def test_the_file_of_the_service_s_folder_is_looked_at_too(self):
        self.write(sessions={"on_shutdown": "keep"}, accounting={"file": "sessions.json"})
        for command in ("check", "serve"):
            status, _, said = run(command, "--config", str(self.config), env={"STATE_DIRECTORY": self.folder})
            self.assertEqual(status, 1)
            self.assertIn(self.meets(self.place / "sessions.json", "'accounting.file'"), said)

    def test_the_state_file_is_no_socket(self):
        path = self.place / "gate.sock"
        for option, server in (("listen", {"listen": f"unix:{path}"}), ("listen", {"listen": ["127.0.0.1:0", f"unix:{path}"]}),
                               ("admin", {"listen": "127.0.0.1:0", "admin": f"unix:{path}"})):
            self.refused(self.meets(path, f"'server.{option}'"), serve=(), server=server, sessions=self.keep(path))
        left = socket.socket(socket.AF_UNIX)
        self.addCleanup(left.close)
        left.bind(str(path))  # of a process that was killed
        self.refused(self.meets(path, "'server.listen'"), serve=(), server={"listen": f"unix:{path}"}, sessions=self.keep(path))
        self.refused(f"sessions.state_file: '{path}' is a socket, a pipe or a device and not a file: choose another name",
                     sessions=self.keep(path))

    @unittest.skipUnless(HAS_OPENSSL, "openssl(1) makes the certificates")
    def test_the_state_file_is_no_file_of_tls(self):
        authority = Authority(self.place)
        certificate, key = authority.sign("localhost")
        tls = {"certificate": str(certificate), "key": str(key), "client_ca": str(authority.ca)}
        for option, path in tls.items():
            self.refused(self.meets(path, f"'server.tls.{option}'"), server={"listen": "127.0.0.1:0", "tls": tls}, sessions=self.keep(path))
        up = {"name": "up", "base_url": "https://127.0.0.1:1/v1", "models": ["m"], "ca_file": str(authority.ca),
              "client_certificate": str(certificate), "client_key": str(key)}
        plain = {"name": "plain", "plugin": "mock", "models": ["n"]}
        for option in ("ca_file", "client_certificate", "client_key"):
            self.refused(self.meets(up[option], f"'{option}' of an upstream"), upstreams=[plain, up], sessions=self.keep(up[option]))

    # ---- accounting and others ----

    def test_accounting_is_written_into_nothing_else(self):
        auth = {"mode": "keys", "keys_file": "keys.yaml"}
        for option in ("file", "audit"):
            name = f"accounting: '{option}'"
            self.config.touch(0o600)
            self.refused(self.meets(self.config, "the configuration file", name), accounting={option: "gate.yaml"})
            self.refused(self.meets(self.keys, "'auth.keys_file'", name), auth=auth, accounting={option: "keys.yaml"})
            path = self.place / "gate.sock"
            self.refused(self.meets(path, "'server.listen'", name), serve=(), server={"listen": f"unix:{path}"},
                         accounting={option: str(path)})

    def test_accounting_and_audit_are_two_files_by_whatever_names(self):
        by_link = self.place / "by"
        by_link.symlink_to(self.place)
        self.refused("accounting: 'audit' must be another file than 'file': who settles accounts need not read what clients say",
                     accounting={"file": str(self.place / "new"), "audit": str(by_link / "new")})

    def test_files_of_their_own_are_good(self):
        os.mkdir(self.place / "sub")
        os.symlink(self.place / "s.json.other", self.place / "elsewhere")
        self.good(sessions=self.keep(self.place / "s.json"), auth={"mode": "keys", "keys_file": str(self.keys)},
                  accounting={"file": str(self.place / "sub" / "s.json"), "audit": str(self.place / "s.json.newer")})
        self.good(accounting={"file": "/dev/null"})

    # ---- what is in the way ----

    def test_folders_in_the_way_of_the_files_beside_it_are_told(self):
        state = self.place / "s.json"
        for end in (".lock", ".new", ".bad"):
            folder = self.place / f"s.json{end}"
            folder.mkdir()
            self.refused(f"sessions.state_file: '{folder}' is a folder, where the gateway has a file of its own beside '{state}': "
                         "remove it, or choose another name", sessions=self.keep(state))
            folder.rmdir()

    def test_a_lock_that_is_no_file_is_told(self):
        state, lock = self.place / "s.json", self.place / "s.json.lock"
        words = f"sessions.state_file: '{state}.lock' is no plain file and cannot be the lock of '{state}': remove it, or choose another name"
        lock.symlink_to(self.place / "anything")
        self.refused(words, sessions=self.keep(state))
        lock.unlink()
        os.mkfifo(lock)
        self.refused(words, sessions=self.keep(state))
        lock.unlink()
        (self.place / "s.json.new").symlink_to(self.place / "anything")  # is replaced
        self.good(sessions=self.keep(state))

    # ---- links ----

    def test_a_link_for_accounting_that_leads_nowhere_is_told(self):
        link = self.place / "link"
        for option in ("file", "audit"):
            for target in ("/no/such/folder/x", "no-such-folder/x", str(self.place / "none" / "x")):
                link.symlink_to(target)
                self.refused(f"accounting: '{option}' is a link into a folder that is not there, or not for the gateway to look into: "
                             "make it, or remove the link", accounting={option: "link"})
                link.unlink()
            link.symlink_to("link")
            self.refused(f"accounting: '{option}' is a link that leads to no place: remove it", accounting={option: "link"})
            link.unlink()

    def test_a_link_to_a_file_that_can_be_made_is_followed(self):
        """Over another link, each relative to its own folder."""
        (self.place / "sub").mkdir()
        (self.place / "link").symlink_to("sub/second")
        (self.place / "sub" / "second").symlink_to("../sub/made")
        self.good(accounting={"file": str(self.place / "link")})
        self.assertTrue((self.place / "sub" / "made").is_file())
        self.refused(self.meets(self.place / "link2", "'accounting.file'"), sessions=self.keep(self.place / "link2"),
                     accounting={"file": "link2"})


if __name__ == "__main__":
    main()
