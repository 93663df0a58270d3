#!/usr/bin/env python3
"""Writes docs/man/sandgate.1 from `sandgate --help` and that of each command, and docs/man/sandgate.yaml.5 from the tables of
options that `sandgate describe` prints.

    scripts/manual_pages.py BINARY            writes the pages
    scripts/manual_pages.py BINARY --check    fails, and shows how they differ, where a page says something else
"""
import pathlib
import re

import described

PAGES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "man"
USAGE_OPTION = re.compile(r"^  (?P<option>--[a-z-]+(?: [A-Z:]+)?)  *(?P<text>\S.*)$")
COMMAND = re.compile(r"^  (?P<name>[a-z]+)  +(?P<text>\S.*)$", re.M)

SYNOPSIS = r"""sandgate \- gateway that gives every language model hosted tools
.SH SYNOPSIS
.B sandgate
.I COMMAND
.RI [ OPTION ...]
.SH DESCRIPTION
Stands between programs that use the client libraries of OpenAI or Anthropic and any model server, and gives every model the hosted
tools
.B code_interpreter
and
.BR web_search .
What it serves, and how, stands in one file:
.BR sandgate.yaml (5).
"""

AFTER = r""".SH SIGNALS
.TP
.BR SIGTERM ", " SIGINT
Ends: what is in progress may finish for
.IR server.drain ,
then all containers are deleted. A second one ends the process at once, with exit status 1.
.SH FILES
.TP
.I config.yaml
Read where no
.B \-\-config
is given.
.TP
.I /etc/sandgate/config.yaml
Read by the service
.BR sandgate.service .
.SH SEE ALSO
.BR sandgate.yaml (5)
"""

SYNTAX = r"""sandgate.yaml \- configuration file of sandgate
.SH DESCRIPTION
One YAML file.
.B sandgate check --config
.I FILE
says all that is wrong with it, each with its line and what would be right. Unknown keys are errors; a key without a value is as if it
were not there.
.PP
Durations are written 250ms, 30s, 5m, 2h, 1d; sizes 64KiB, 512MiB, 1GiB.
.PP
"${NAME}" anywhere in a text reads the environment, and so does a whole value os.environ/NAME; $${ is a literal ${. A variable that is
not set is an error. Secrets are never printed.
.PP
Relative paths are relative to the file.
"""

PLUGINS = r""".SH PLUGINS
An entry of
.IR upstreams ", " sandboxes ", " searches " or " interceptors
that names a plugin takes that plugin's options beside the section's own. Those that come with sandgate:
"""


def escaped(text):
    """Text for roff: nothing in it is a request, a hyphen that is typed stays one, and no quotes become others."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga").replace("…", "...")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def head(name, number, version):
    return f'.TH {name} {number} "" "sandgate {version}" "sandgate"\n.ad l\n.SH NAME\n'


def command(binary, name, summary):
    usage, _, rest = described.say(binary, name, "--help").partition("\n")
    lines = [f".SS {escaped(usage.removeprefix('usage: '))}"]
    is_option = False
    text = rest.strip("\n") or f"{summary[0].upper()}{summary[1:]}."
    for line in text.splitlines():
        option = USAGE_OPTION.match(line)
        if option:
            lines += [".TP", f".B {escaped(option['option'])}", escaped(option["text"])]
        elif not line:
            lines.append(".PP")
        else:
            lines += [".PP"] if is_option and not line.startswith(" ") else []
            lines.append(escaped(line.strip()))
        is_option = option is not None or (is_option and line.startswith(" "))
    return "\n".join(lines) + "\n"


def command_page(binary, version):
    found = COMMAND.finditer(described.say(binary, "--help"))
    commands = "".join(command(binary, line["name"], line["text"]) for line in found)
    return head("SANDGATE", 1, version) + SYNOPSIS + ".SH COMMANDS\n" + commands + AFTER


def option_lines(options):
    lines = []
    for option in options:
        lines += [".TP", rf".BR {escaped(option.path)} \ ({escaped(option.kind).replace(' ', chr(92) + ' ')})",
                  escaped(option.help)]
        if option.default:
            lines.append(rf"Default: {escaped(option.default)}.")
    return "".join(line + "\n" for line in lines or ["No options."])


def configuration_page(binary, version):
    page = head("SANDGATE.YAML", 5, version) + SYNTAX
    for section in described.core(binary):
        page += f".SH {section.name.upper()}\n{escaped(section.prose)}\n" + option_lines(section.options)
    page += PLUGINS
    for name in described.plugins(binary):
        for kind in described.plugin(binary, name):
            page += f".SS {escaped(name)}, {kind.name}\n{escaped(kind.prose)}\n" + option_lines(kind.options)
    return page + ".SH SEE ALSO\n.BR sandgate (1)\n"


def main():
    binary, check = described.arguments(__doc__)
    version = described.say(binary, "version").split()[1]
    described.keep(PAGES / "sandgate.1", command_page(binary, version), check)
    described.keep(PAGES / "sandgate.yaml.5", configuration_page(binary, version), check)


main()
