"""What cpack makes: the packages' contents and scripts, the gateway as it lies in them, bash completion, manual pages."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from client import chat
from harness import BINARY, BUILD, E2E, ROOT, main, run

PACKAGES = shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps") and shutil.which("file") and shutil.which("cpack")


def done(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@unittest.skipUnless(PACKAGES, "no tools that make Debian packages here")
class Package(E2E):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="sandgate-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, True)
        done("cpack", "-B", cls.work, "-D", "CPACK_STRIP_FILES=OFF", cwd=BUILD)
        [cls.gateway_deb] = cls.work.glob("sandgate_*.deb")
        [cls.plugin_deb] = cls.work.glob("sandgate-dev_*.deb")
        cls.root = cls.work / "root"
        done("dpkg-deb", "--extract", cls.gateway_deb, cls.root)

    def test_the_package_holds_what_a_service_needs_and_depends_on_the_libraries(self):
        for path in ("usr/bin/sandgate", "usr/lib/sandgate/local.so", "usr/lib/sandgate/libexec/local-broker",
                     "usr/lib/systemd/system/sandgate.service", "usr/lib/systemd/system/sandgate.socket",
                     "usr/share/man/man1/sandgate.1.gz", "usr/share/man/man5/sandgate.yaml.5.gz",
                     "usr/share/bash-completion/completions/sandgate", "usr/share/doc/sandgate/copyright"):
            self.assertTrue((self.root / path).is_file(), path)
        docs = self.root / "usr/share/doc/sandgate"
        named = re.findall(r"docs/[\w-]+\.md", (docs / "README.md").read_text())
        self.assertEqual([path for path in named if not (docs / path).is_file()], [])
        self.assertGreater(len(named), 5)
        depends = done("dpkg-deb", "--field", self.gateway_deb, "Depends")
        for name in ("libcurl", "libevent-core", "libyaml", "libcjson", "libidn2", "adduser"):
            self.assertIn(name, depends)
        self.assertFalse((self.root / "usr/include").exists(), "the header belongs to sandgate-dev")
        self.assertIn("./usr/include/sandgate/plugin.h", done("dpkg-deb", "--contents", self.plugin_deb))

    def test_a_changed_configuration_survives_an_upgrade_and_only_its_readers_see_it(self):
        self.assertEqual(done("dpkg-deb", "--info", self.gateway_deb, "conffiles"), "/etc/sandgate/config.yaml\n")
        self.assertEqual((self.root / "etc/sandgate/config.yaml").stat().st_mode & 0o777, 0o640)

    def test_its_scripts_are_programs_of_sh_without_mistakes(self):
        control = self.work / "control"
        done("dpkg-deb", "--control", self.gateway_deb, control)
        for name in ("postinst", "prerm", "postrm"):
            self.assertEqual((control / name).stat().st_mode & 0o777, 0o755)
            done("sh", "-n", control / name)
            done(control / name, "abort-upgrade")  # nothing to do; must not fail

    def test_the_unit_starts_what_the_package_installs(self):
        unit = (self.root / "usr/lib/systemd/system/sandgate.service").read_text()
        self.assertIn("\nExecStart=/usr/bin/sandgate serve --config /etc/sandgate/config.yaml\n", unit)
        self.assertNotIn("/usr/local", unit)
        source = (ROOT / "packaging" / "sandgate.service").read_text()
        self.assertEqual(unit, source.replace("/usr/local/bin/", "/usr/bin/"))

    def test_the_gateway_in_it_serves_with_the_configuration_in_it(self):
        binary, config = self.root / "usr/bin/sandgate", self.root / "etc/sandgate/config.yaml"
        code, out, err = run("check", "--config", str(config), binary=binary)
        self.assertEqual((code, err), (0, ""), out)
        gateway = self.gateway(config.read_text(), binary=binary)
        shown = chat(gateway, "print(6 * 7)").text
        self.assertIn("42", shown)


class Completion(unittest.TestCase):
    def complete(self, *words):
        script = ROOT / "packaging" / "sandgate.bash-completion"
        asked = " ".join(f"'{word}'" for word in words)
        return done("bash", "-c", f"compopt() {{ :; }}; source '{script}'; COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; "
                    "_sandgate; printf '%s\\n' \"${COMPREPLY[@]}\"",
                    env={**os.environ, "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}).split()

    def test_it_knows_every_command_and_every_option_that_help_names(self):
        commands = [line.split()[0] for line in done(BINARY, "--help").splitlines() if line.startswith("  ")]
        self.assertEqual(set(self.complete("sandgate", "")), {*commands, "--help"})
        for command in commands:
            usage = done(BINARY, command, "--help")
            options = {line.split()[0] for line in usage.splitlines() if line.startswith("  --")}
            options |= {word.strip("[]") for word in usage.splitlines()[0].split() if word.strip("[").startswith("--")}
            self.assertEqual(set(self.complete("sandgate", command, "--")), options | {"--help"}, command)

    def test_it_offers_the_plugins_that_are_installed_to_describe(self):
        self.assertEqual(self.complete("sandgate", "describe", "code_"), ["code_interpreter"])
        self.assertEqual(self.complete("sandgate", "describe", "tr"), ["translation"])


class Manual(unittest.TestCase):
    def test_the_manual_pages_say_what_the_program_says(self):
        done(sys.executable, "-B", ROOT / "scripts" / "manual_pages.py", BINARY, "--check")

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_the_manual_pages_are_set_without_a_warning(self):
        for page in (ROOT / "docs" / "man").iterdir():
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=True)
            self.assertEqual(result.stderr, "", page)


main()
