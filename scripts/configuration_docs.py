#!/usr/bin/env python3
"""Writes docs/configuration.md, and the table of fields in docs/translation.md, from what the program itself says: `sandgate
describe core`, `describe translation` and `describe` of each plugin.

    scripts/configuration_docs.py BINARY            writes the pages
    scripts/configuration_docs.py BINARY --check    fails, and shows how they differ, where a page says something else
"""
import difflib
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
PAGE, TRANSLATION = DOCS / "configuration.md", DOCS / "translation.md"
FIELDS = re.compile(r"(<!-- made by scripts/configuration_docs.py -->\n).*?(<!-- end -->\n)", re.S)
FIELD = re.compile(r"^  (?P<name>\w+): (?P<fates>[^|]*?)(?: \| (?P<note>.*))?$")

HEAD = """# Configuration

One YAML file, by default `config.yaml`; `sandgate check --config FILE` says all that is wrong with it, each with its line
and what would be right. `config.yaml.example` is a whole one to start from.

This page is made from the program's own tables by `scripts/configuration_docs.py`; a test fails when they differ.
`sandgate describe core` and `sandgate describe PLUGIN` print the same for the version that is installed.

- Unknown keys are errors. A key without a value is as if it were not there.
- Durations are written `250ms`, `30s`, `5m`, `2h`, `1d`; sizes `64KiB`, `512MiB`, `1GiB`.
- `"${NAME}"` anywhere in a text reads the environment, and so does a whole value `os.environ/NAME`; `$${` is a literal `${`.
  A variable that is not set is an error. Secrets are never printed.
- Relative paths are relative to the file.
- SIGHUP reads the keys again (`auth.keys`, `auth.keys_file`); everything else needs a new process.

| section | what it is for |
| --- | --- |
"""

PLUGINS = """
## Plugins

An entry of `upstreams`, `sandboxes`, `searches` or `interceptors` that names a plugin takes that plugin's options beside the
section's own. `sandgate plugins` lists what is installed.
"""

OPTION = re.compile(r"^(?P<indent> *)(?P<name>[a-z0-9_]+): (?P<words>.+)$")


def describe(binary, name):
    done = subprocess.run([binary, "describe", name], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{binary} describe {name} failed:\n{done.stderr}")
    return done.stdout


def plugins(binary):
    done = subprocess.run([binary, "plugins"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{binary} plugins failed:\n{done.stderr}")
    return [line.split()[0] for line in done.stdout.splitlines()]


def cell(text):
    return text.replace("|", "\\|")


def row(path, words, text):
    parts = words.split("; ")
    facts = [part for part in parts[1:] if not part.startswith("default ")]
    default = next((part[8:] for part in parts if part.startswith("default ")), "")
    kind = ", ".join([parts[0], *facts])
    shown = f"`{default}`" if default else ""
    return f"| `{path}` | {cell(kind)} | {cell(shown)} | {cell(text)} |"


def table(lines):
    """The options of one section; those of a list's items carry the names of what they are in."""
    rows, path = [], []
    at = 0
    while at < len(lines):
        option = OPTION.match(lines[at])
        if option is None:
            sys.exit(f"not an option: {lines[at]!r}")
        depth = (len(option["indent"]) - 2) // 6
        path = path[:depth] + [option["name"]]
        name = "[].".join(path)
        rows.append(row(name, option["words"], lines[at + 1].strip()))
        at += 2
    if not rows:
        return "No options.\n"
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


def block_parts(text):
    """A description: its first line, the lines of prose, those of options."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.endswith("options:")), len(lines))
    prose = [line for line in lines[1:start] if line]
    options = [line for line in lines[start + 1:] if line]
    return lines[0], prose, options


def core(binary):
    blocks = re.split(r"\n\n(?=[a-z]+\n)", describe(binary, "core").rstrip("\n"))
    listed, pages = [], []
    for block in blocks:
        name, prose, options = block_parts(block)
        listed.append(f"| [`{name}`](#{name}) | {cell(' '.join(prose))} |")
        pages.append(f"\n## {name}\n\n{' '.join(prose)}\n\n{table(options)}")
    return "\n".join(listed) + "\n" + "".join(pages)


def plugin(binary, name):
    page = f"\n### {name}\n"
    for block in re.split(r"\n\n(?=[a-z0-9_]+ [^ ]+ \([a-z]+\)\n)", describe(binary, name).rstrip("\n")):
        first, prose, options = block_parts(block)
        kind = first[first.rindex("(") + 1:-1]
        said = [line for line in prose if not line.startswith("configured by ")]
        page += f"\nAs {'an' if kind[0] in 'aeiou' else 'a'} {kind}: {' '.join(said)}\n\n{table(options)}"
    return page


def fields(binary):
    """A table for each API: its fields, and what becomes of them over each other one."""
    lines = []
    for line in describe(binary, "translation").splitlines():
        field = FIELD.match(line)
        if field is None:
            lines += ["", f"Requests of {line.rstrip(':')}:", ""]
            is_first = True
            continue
        fates = [fate.split(" ", 2)[1:] for fate in field["fates"].split("; ")]
        if is_first:
            lines += ["| field | " + " | ".join(f"over {target}" for target, _ in fates) + " | |",
                      "| --- |" + " --- |" * (len(fates) + 1)]
            is_first = False
        lines.append(f"| `{field['name']}` | " + " | ".join(fate for _, fate in fates) + f" | {cell(field['note'] or '')} |")
    return "\n".join(lines[1:]) + "\n"


def compare(path, found, wanted):
    if found != wanted:
        name = f"docs/{path.name}"
        sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), name, "what the program says"))
        sys.exit(f"{name} says something else than the program: run scripts/configuration_docs.py BINARY")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    binary = sys.argv[1]
    page = HEAD + core(binary) + PLUGINS + "".join(plugin(binary, name) for name in plugins(binary))
    text = TRANSLATION.read_text(encoding="utf-8")
    made = FIELDS.sub(lambda found: found[1] + fields(binary) + found[2], text)
    if len(sys.argv) == 2:
        PAGE.write_text(page, encoding="utf-8")
        TRANSLATION.write_text(made, encoding="utf-8")
        return
    compare(PAGE, PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", page)
    compare(TRANSLATION, text, made)


main()
