#!/usr/bin/env python3
"""Holds today's plugin header against a frozen one of an older minor: structs may have grown at their end, enums and macros
by new names, and nothing else may differ. First it shows that it sees each kind of difference.

    header_compare.py FROZEN TODAY
"""
import re
import sys
import unittest

BY_VALUE = {"sg_map", "sg_list"}  # stand in other structs as they are, and so may not grow
OWN = {"SG_ABI_MINOR", "SG_PLUGIN_SET"}  # the minor grows; the set is written by the plugin's own header


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


class Header:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
        self.macros = {m[1]: plain(m[2]) for m in re.finditer(r"^[ \t]*#define (\w+)(.*)$", text, re.M)}
        text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
        self.structs = {m[1]: [plain(one) for one in m[2].split(";") if one.strip()]
                        for m in re.finditer(r"struct\s+(\w+)\s*\{([^{}]*)\}\s*;", text)}
        self.enums = {m[1]: self.numbered(m[2]) for m in re.finditer(r"enum\s+(\w+)\s*\{([^{}]*)\}\s*;", text)}

    @staticmethod
    def numbered(body):
        """Names and values, whether written or counted."""
        found, value = {}, -1
        for one in filter(None, map(plain, body.split(","))):
            name, _, written = map(str.strip, one.partition("="))
            value = int(written, 0) if written else value + 1
            found[name] = value
        return found

    @property
    def minor(self):
        return int(self.macros["SG_ABI_MINOR"])


def struct_differences(old, new):
    for name, members in old.structs.items():
        now = new.structs.get(name)
        if now is None:
            yield f"struct {name} is gone"
        elif now[:len(members)] != members:
            yield f"struct {name} begins otherwise than it did"
        elif len(now) > len(members) and name in BY_VALUE:
            yield f"struct {name} has grown, and stands in others by value"
        elif len(now) > len(members) and new.minor == old.minor:
            yield f"struct {name} has grown without a new minor"


def enum_differences(old, new):
    for name, values in old.enums.items():
        now = new.enums.get(name, {})
        for word, value in values.items():
            if word != "SG_STRUCT_COUNT" and now.get(word) != value:
                yield f"{word} was {value} and is {now.get(word)}"
        if len(now) > len(values) and new.minor == old.minor:
            yield f"enum {name} has grown without a new minor"


def differences(frozen, today):
    """What an author who built against the frozen header could not live with."""
    old, new = Header(frozen), Header(today)
    found = list(struct_differences(old, new)) + list(enum_differences(old, new))
    for name, value in old.macros.items():
        if name not in OWN and new.macros.get(name) != value:
            found.append(f"{name} was '{value}' and is '{new.macros.get(name)}'")
    if new.minor < old.minor:
        found.append(f"the minor was {old.minor} and is {new.minor}")
    return found


class Compare(unittest.TestCase):
    frozen = today = ""

    def changed(self, before, after, minor=False):
        self.assertIn(before, self.frozen, "the test needs it to be there")
        text = self.frozen.replace(before, after, 1)
        if minor:
            text = re.sub(r"(#define SG_ABI_MINOR )(\d+)", lambda m: m[1] + str(int(m[2]) + 1), text)
        return differences(self.frozen, text)

    def test_todays_header_keeps_what_was_promised(self):
        self.assertEqual(differences(self.frozen, self.today), [])
        old = Header(self.frozen)
        self.assertGreaterEqual(len(old.structs), 20, "all structs were read")
        self.assertEqual(len(old.structs["sg_http_request"]), 9)
        self.assertEqual(old.enums["sg_code"]["SG_E_GONE_BEFORE"], 11)
        self.assertEqual(old.enums["sg_struct"]["SG_STRUCT_LIST"], 19)
        self.assertEqual(old.macros["SG_ON_LOOP"], "(1u << 0)")

    def test_comments_and_space_do_not_matter(self):
        self.assertEqual(self.changed("int64_t timeout_ms;", "int64_t   timeout_ms ; /* in ms */"), [])

    def test_what_grows_at_the_end_with_a_minor_is_fine(self):
        self.assertEqual(self.changed("uint32_t fds_per_container;", "uint32_t fds_per_container; int x;", True), [])
        self.assertEqual(self.changed("SG_OUT_EXCEPTION =\n        11", "SG_OUT_EXCEPTION =\n        11, SG_OUT_NEW", True), [])
        self.assertEqual(self.changed("    SG_STRUCT_COUNT\n", "    SG_STRUCT_NEW,\n    SG_STRUCT_COUNT\n", True), [])

    def test_what_grows_without_a_minor_is_seen(self):
        self.assertEqual(self.changed("uint32_t fds_per_container;", "uint32_t fds_per_container; int x;"),
                         ["struct sg_sandbox_ops has grown without a new minor"])

    def test_what_moves_changes_or_goes_is_seen(self):
        for before, after, minor, message in (
                ("const char *code; ", "int more; const char *code; ", True, "struct sg_run begins otherwise than it did"),
                ("size_t code_len;", "uint32_t code_len;", True, "struct sg_run begins otherwise than it did"),
                ("struct sg_query {", "struct sg_question {", True, "struct sg_query is gone"),
                ("    size_t count;\n};", "    size_t count; int x;\n};", True,
                 "struct sg_map has grown, and stands in others by value"),
                ("SG_E_TIMEOUT = 6", "SG_E_TIMEOUT = 60", True, "SG_E_TIMEOUT was 6 and is 60"),
                ("SG_STRUCT_HOST,\n", "SG_STRUCT_HOST,\n SG_STRUCT_NEW,\n", True, "SG_STRUCT_PLUGIN was 1 and is 2"),
                ("#define SG_ABI_MAJOR 1", "#define SG_ABI_MAJOR 2", True, "SG_ABI_MAJOR was '1' and is '2'"),
                ("#define SG_SECRET (1u << 1)", "#define SG_SECRET (1u << 4)", True, "SG_SECRET was '(1u << 1)' and is '(1u << 4)'")):
            self.assertIn(message, self.changed(before, after, minor))


if __name__ == "__main__":
    Compare.frozen, Compare.today = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
