#!/usr/bin/env python3
"""Writes docs/configuration.md, and the table of fields in docs/translation.md, from what the program itself says: `sandgate
describe core`, `describe translation` and `describe` of each plugin.

    scripts/configuration_docs.py BINARY            writes the pages
    scripts/configuration_docs.py BINARY --check    fails, and shows how they differ, where a page says something else
"""
import pathlib
import re

import described

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
PAGE, TRANSLATION = DOCS / "configuration.md", DOCS / "translation.md"
FIELDS = re.compile(r"(<!-- made by scripts/configuration_docs.py -->\n).*?(<!-- end -->\n)", re.S)
FIELD = re.compile(r"^  (?P<name>[\w.*\[\]]+): (?P<fates>[^|]*?)(?: \| (?P<note>.*))?$")

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
- SIGHUP reads keys (`auth.keys`, `auth.keys_file`), `upstreams`, `models` and the files of `server.tls` again; everything else needs a new process.

| section | what it is for |
| --- | --- |
"""

PLUGINS = """
## Plugins

An entry of `upstreams`, `sandboxes`, `searches` or `interceptors` that names a plugin takes that plugin's options beside the
section's own. `sandgate plugins` lists what is installed.
"""


def cell(text):
    return text.replace("|", "\\|")


def row(option):
    shown = f"`{option.default}`" if option.default else ""
    return f"| `{option.path}` | {cell(option.kind)} | {cell(shown)} | {cell(option.help)} |"


def table(options):
    if not options:
        return "No options.\n"
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *map(row, options)]) + "\n"


def core(binary):
    listed, pages = [], []
    for section in described.core(binary):
        listed.append(f"| [`{section.name}`](#{section.name.replace('.', '')}) | {cell(section.prose)} |")
        pages.append(f"\n## {section.name}\n\n{section.prose}\n\n{table(section.options)}")
    return "\n".join(listed) + "\n" + "".join(pages)


def plugin(binary, name):
    page = f"\n### {name}\n"
    for kind in described.plugin(binary, name):
        page += f"\nAs {'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}: {kind.prose}\n\n{table(kind.options)}"
    return page


def fields(binary):
    """A table for each API: its fields, and what becomes of them over each other one."""
    lines = []
    for line in described.say(binary, "describe", "translation").splitlines():
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


def main():
    binary, check = described.arguments(__doc__)
    page = HEAD + core(binary) + PLUGINS + "".join(plugin(binary, name) for name in described.plugins(binary))
    described.keep(PAGE, page, check)
    text = TRANSLATION.read_text(encoding="utf-8")
    described.keep(TRANSLATION, FIELDS.sub(lambda found: found[1] + fields(binary) + found[2], text), check)


main()
