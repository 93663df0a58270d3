"""What the program says of itself (--help, `plugins`, `describe`), read into plain values for the pages that are made from it."""
import difflib
import re
import subprocess
import sys
from dataclasses import dataclass, field

OPTION = re.compile(r"^(?P<indent> *)(?P<name>[a-z0-9_]+): (?P<words>.+)$")
HERE = re.compile(r"^\n?on this machine, .*\n", re.M)  # what a plugin found there: not for pages
KIND = re.compile(r"\n\n(?=[a-z0-9_]+ [^ ]+ \([a-z]+\)\n)")


@dataclass
class Option:
    path: str  # as keys[].name: the names of the lists that it is in, and its own
    kind: str  # "text, required": its type and what else is to be said of its values
    default: str
    help: str


@dataclass
class Section:
    """A section of the file, or one kind of a plugin."""
    name: str
    prose: str
    options: list = field(default_factory=list)


def say(binary, *arguments):
    done = subprocess.run([binary, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{binary} {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def plugins(binary):
    return [line.split()[0] for line in say(binary, "plugins").splitlines()]


def options(lines):
    """Of one section; those of a list's items carry the names of what they are in."""
    found, path = [], []
    for head, text in zip(lines[::2], lines[1::2]):
        option = OPTION.match(head)
        if option is None:
            sys.exit(f"not an option: {head!r}")
        path = path[:(len(option["indent"]) - 2) // 6] + [option["name"]]
        parts = option["words"].split("; ")
        facts = [part for part in parts[1:] if not part.startswith("default ")]
        default = next((part[8:] for part in parts if part.startswith("default ")), "")
        found.append(Option("[].".join(path), ", ".join([parts[0], *facts]), default, text.strip()))
    return found


def block(text):
    """A description: its first line, lines of prose, then options."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.endswith("options:")), len(lines))
    prose = " ".join(line for line in lines[1:start] if line and not line.startswith("configured by "))
    return lines[0], prose, options([line for line in lines[start + 1:] if line])


def core(binary):
    """The sections of the file."""
    return [Section(*block(text)) for text in re.split(r"\n\n(?=[a-z.]+\n)", say(binary, "describe", "core").rstrip("\n"))]


def plugin(binary, name):
    """What the plugin is: a section for each of its kinds, named by it."""
    sections = []
    for text in KIND.split(HERE.sub("", say(binary, "describe", name)).rstrip("\n")):
        first, prose, found = block(text)
        sections.append(Section(first[first.rindex("(") + 1:-1], prose, found))
    return sections


def keep(path, page, check):
    """Writes the page; or, to check, ends the script where the file says something else."""
    if not check:
        path.write_text(page, encoding="utf-8")
        return
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    if found != page:
        lines = difflib.unified_diff(found.splitlines(True), page.splitlines(True), str(path), "what the program says")
        sys.stdout.writelines(lines)
        sys.exit(f"{path} says something else than the program: run {sys.argv[0]} BINARY")


def arguments(usage):
    """The binary, and whether to check only."""
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(usage)
    return sys.argv[1], len(sys.argv) == 3
