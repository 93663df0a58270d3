"""Every text that an operator or a client can be told by core/gateway and core/main.c stands in some test, so that none
is changed or lost unseen. A text counts as matched where its longest literal piece stands in a test's source."""
import re
import unittest

from harness import ROOT, main

TELLING = re.compile(r"\b(error_set|error_set_param|error_context|conf_problem|usage_error|refuse|fprintf|log_begin|printf|"
                     r"error_vset|tool_refuse|arena_printf)\s*\(")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|j|z|t)?[diouxXscp%]")
# Told only where the machine is out of something that a test cannot take away from it, or where our own code is wrong.
NOT_TO_BE_HAD = {
    "no thread can be made for loop ": "no threads left",
    "start_failed": "asked for by the test of the port in use",
    "loop_failed": "libcurl cannot be set up",
    "The request is too large for this gateway's plugins.": "no memory left",
    "The request is too large for this model's plugin.": "no memory left",
    "the run was given up": "an interrupted command says so by its exit code",
    "there is no state": "what a first start finds, which is told to nobody",
    "the request has ended": "only in the moment between a client's leaving and a plugin's asking",
}


def calls_with_texts(source):
    """The literal texts within each telling call, up to its closing parenthesis."""
    for match in TELLING.finditer(source):
        depth, at = 1, match.end()
        while depth > 0 and at < len(source):
            if source[at] == '"':
                at = STRING.match(source, at).end()
                continue
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        inside = source[match.end():at]
        joined = re.sub(r'"\s*\n?\s*"', "", inside)
        for text in STRING.findall(joined):
            yield match[1], text.replace('\\n', "\n").replace('\\"', '"')


def pieces(text):
    return [piece.strip("\n") for piece in CONVERSION.split(text)]


class Messages(unittest.TestCase):
    def test_every_message_stands_in_a_test(self):
        tests = "\n".join(path.read_text(encoding="utf-8") for folder in ("e2e", "unit", "plugin") for path in
                          sorted((ROOT / "tests" / folder).glob("*.*")) if path.suffix in (".py", ".c", ".mjs")
                          and path.name != "test_messages.py")
        tests = re.sub(r'"\s*\n\s*r?f?"', "", tests).replace("\\", "")
        missing, count = [], 0
        for path in [*sorted((ROOT / "core" / "gateway").glob("*.c")), ROOT / "core" / "main.c"]:
            for function, text in calls_with_texts(path.read_text(encoding="utf-8")):
                longest = max(pieces(text), key=len).replace("\\", "")
                if len(longest) < 12 or longest in NOT_TO_BE_HAD or function in ("printf", "arena_printf") and "{" in text:
                    continue
                count += 1
                if longest not in tests:
                    missing.append(f"{path.name}: {function}: {longest}")
        self.assertGreater(count, 60, "the texts are no longer found in the source")
        self.assertEqual(missing, [], "\n".join(missing))


if __name__ == "__main__":
    main()
