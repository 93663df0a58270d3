"""What the gateway has to do, whatever the API form and whether streamed or not: one row a scenario (design: the loop's rules).
test_scenarios.py runs each row six times.

A row has `turns`, what the upstream says (Say, Run, Fail, Both), and what must come of it; what a row does not name is not
looked at:

  request    options of Form.body: choice, functions, tokens_max
  names_none True: the request names no tool at all
  asks_for   "one_call" or "as_json": more members of the request, by the names that forms.py has for them
  sandbox, rules, sections, upstream     configuration, as E2E.serve takes it
  status, error, code                    of the answer, or of the error within a stream
  texts      one for each turn that has text
  runs       how many were run; made: how many containers
  told       the results that the upstream's last request carries; a regular expression, or text
  shown      (code, "ok" or "failed", what was printed) of each run, where the form shows runs
  finish, usage, calls (names)
  answers    "the other way": the upstream streams where a whole answer was asked for, and the other way round
  choices    the tool choice of each request that the upstream got; offered: whether each had the code tool
  limits     the token limit of each request
  then       for answers with calls of the client's functions: the row of the request that brings their results
"""
import re

LIMIT = "[limit reached: answer with what you have]"
NO_WORDS = "The tools were used as often as this request allows, and the model gave no answer in words."
NOT_MADE = "[sandbox unavailable] The sandbox could not be made."
SILENT = "[no output]"
ALWAYS = {"interceptors": [{"plugin": "code_interpreter", "sandbox": "box", "offer": "always"}]}
INVALID = re.compile(r"^\[invalid call\]")
BROKEN = '{"code": "print(\'a\nb\')"'
RETRY_AT_ONCE = [("Retry-After", "0")]


class Say:
    def __init__(self, text, usage=(10, 5), finish=None):
        self.text, self.calls, self.usage, self.finish = text, [], usage, finish


class Run(Say):
    """Calls of the code tool, one for each source; with a text before them, or none."""

    def __init__(self, *sources, text=None, usage=(10, 5), finish=None):
        super().__init__(text, usage, finish)
        self.calls = list(sources)


class Both(Say):
    """A call of the code tool and one of the client's function."""

    def __init__(self, source, text=None, usage=(10, 5)):
        super().__init__(text, usage)
        self.calls = [source, ("get_stock", {"part": "A-7"})]


class Call(Say):
    """Calls of functions by their names: (name, arguments). No name: the code tool, with arguments that need not be right."""

    def __init__(self, *calls, text=None, usage=(10, 5)):
        super().__init__(text, usage)
        self.calls = list(calls)


class Fail:
    def __init__(self, status, message="the model is busy", headers=()):
        self.status, self.message, self.headers = status, message, list(headers)


SCENARIOS = {
    "plain text": {
        "turns": [Say("Just words.")], "texts": ["Just words."], "runs": 0, "made": 0, "finish": "stop", "usage": (10, 5),
        "shown": [], "offered": [True]},
    "one run": {
        "turns": [Run("print(6*7)"), Say("It is 42.")], "texts": ["It is 42."], "runs": 1, "made": 1, "told": ["42"],
        "shown": [("print(6*7)", "ok", "42")], "finish": "stop", "choices": ["auto", "auto"]},
    "text before a run": {
        "turns": [Run("print(1)", text="Let me see."), Say("One.")], "texts": ["Let me see.", "One."], "runs": 1, "told": ["1"]},
    "two runs over two turns share one container": {  # B10, C056
        "turns": [Run("x = 20"), Run("print(x + 1)"), Say("21")], "texts": ["21"], "runs": 2, "made": 1, "told": [SILENT, "21"],
        "shown": [("x = 20", "ok", ""), ("print(x + 1)", "ok", "21")]},
    "two parallel calls in one turn": {
        "turns": [Run("print(1)", "print(2)"), Say("1 and 2")], "texts": ["1 and 2"], "runs": 2, "made": 1, "told": ["1", "2"],
        "shown": [("print(1)", "ok", "1"), ("print(2)", "ok", "2")]},
    "forced choice becomes auto": {  # C019, C021
        "turns": [Run("print(1)"), Say("One.")], "request": {"choice": "forced"}, "texts": ["One."], "runs": 1,
        "choices": ["forced", "auto"], "offered": [True, True]},
    "choice none runs nothing": {
        "turns": [Say("No tools.")], "request": {"choice": "none"}, "texts": ["No tools."], "runs": 0, "made": 0,
        "choices": ["none"], "offered": [True], "finish": "stop"},
    "limit reached": {
        "turns": [Run("print(1)"), Run("print(2)"), Say("Only one.")], "sections": {"loop": {"max_calls": 1}},
        "texts": ["Only one."], "runs": 1, "told": ["1", LIMIT], "choices": ["auto"] * 3, "offered": [True] * 3},
    "limit reached and the model calls again": {
        "turns": [Run("print(1)"), Run("print(2)"), Run("print(3)"), Run("print(4)")], "sections": {"loop": {"max_calls": 1}},
        "texts": [NO_WORDS], "runs": 1, "told": ["1", LIMIT, LIMIT], "choices": ["auto", "auto", "auto", "none"], "calls": [],
        "finish": "stop"},
    "repetition": {
        "turns": [Run("print(1)"), Run("print(1)"), Run("print(1)"), Say("Still 1.")], "texts": ["Still 1."], "runs": 3,
        "told": ["1", "1", LIMIT]},
    "last turn without tools": {
        "turns": [Run("print(1)"), Say("As far as I got.")], "sections": {"loop": {"max_turns": 2}},
        "upstream": {"last_turn": "remove"}, "texts": ["As far as I got."], "runs": 1, "offered": [True, False]},
    "last turn with tool choice none": {
        "turns": [Run("print(1)"), Say("As far as I got.")], "sections": {"loop": {"max_turns": 2}},
        "texts": ["As far as I got."], "runs": 1, "choices": ["auto", "none"], "offered": [True, True]},
    "failing code told": {  # B34
        "turns": [Run("print(nothing)"), Say("There is no such name.")], "texts": ["There is no such name."], "runs": 1,
        "told": [re.compile("NameError: name 'nothing' is not defined")],
        "shown": [("print(nothing)", "ok", re.compile("NameError"))]},
    "four calls in one turn run in their order": {  # C063
        "turns": [Run("v = 1", "v += 1", "v += 1", "print(v)"), Say("3")], "texts": ["3"], "runs": 4, "made": 1,
        "told": [SILENT, SILENT, SILENT, "3"], "shown": [("v = 1", "ok", ""), ("v += 1", "ok", ""), ("v += 1", "ok", ""),
                                                         ("print(v)", "ok", "3")]},
    "parallel calls switched off": {
        "turns": [Run("print(1)", "print(2)"), Say("One.")], "asks_for": "one_call", "texts": ["One."], "runs": 1, "told": ["1"],
        "shown": [("print(1)", "ok", "1")]},
    "a client's function behind a call of ours is dropped where one call is asked for": {
        "turns": [Both("print(1)"), Say("One.")], "request": {"functions": True}, "asks_for": "one_call", "texts": ["One."],
        "runs": 1, "told": ["1"], "calls": [], "finish": "stop"},
    "text before a run is dropped where JSON is asked for": {
        "turns": [Run("print(1)", text="Let me see."), Say('{"a": 1}')], "asks_for": "as_json", "texts": ['{"a": 1}'], "runs": 1,
        "told": ["1"]},
    "a turn that says it has stopped and has calls": {  # C042
        "turns": [Run("print(1)", finish="stop"), Say("One.")], "texts": ["One."], "runs": 1, "told": ["1"], "finish": "stop"},
    "an upstream that answers the other way": {  # B17
        "turns": [Run("print(1)", text="Now."), Say("One.")], "answers": "the other way", "texts": ["Now.", "One."], "runs": 1,
        "told": ["1"], "shown": [("print(1)", "ok", "1")], "usage": (20, 10)},
    "an upstream that cannot stream with tools": {  # B17, B18
        "turns": [Run("print(1)", text="Now."), Say("One.")], "upstream": {"stream": "replay"}, "texts": ["Now.", "One."],
        "runs": 1, "told": ["1"], "shown": [("print(1)", "ok", "1")], "usage": (20, 10), "finish": "stop"},
    "a tool that is always offered": {
        "turns": [Run("print(1)"), Say("One.")], "names_none": True, "sections": ALWAYS, "texts": ["One."], "runs": 1,
        "told": ["1"], "shown": [("print(1)", "ok", "1")], "offered": [True, True], "finish": "stop"},
    "always is not where the client wants no tools": {
        "turns": [Say("No.")], "names_none": True, "request": {"choice": "none"}, "sections": ALWAYS, "texts": ["No."], "runs": 0,
        "offered": [False], "choices": ["none"]},
    "a tool that is never offered where none is named": {  # B08, B16
        "turns": [Say("Hi.")], "names_none": True, "texts": ["Hi."], "runs": 0, "made": 0, "shown": [], "offered": [False]},
    "arguments that are broken": {  # C043, B35
        "turns": [Call((None, BROKEN)), Run("print(8)"), Say("Mended.")], "texts": ["Mended."], "runs": 1, "told": [INVALID, "8"],
        "finish": "stop", "calls": []},
    "arguments that are no object": {  # B35
        "turns": [Call((None, "[1]")), Call((None, '"print(1)"')), Call((None, "null")), Say("No.")], "texts": ["No."], "runs": 0,
        "made": 0, "told": [INVALID] * 3, "finish": "stop"},
    "arguments without code": {  # B35
        "turns": [Call((None, {})), Call((None, {"code": 5})), Call((None, {"kode": "print(1)"})), Say("No.")], "texts": ["No."],
        "runs": 0, "made": 0, "told": [INVALID] * 3, "finish": "stop"},
    "code in fences": {  # C045
        "turns": [Run("```python\nprint(2)\n```"), Run('print("a```b")'), Say("Fine.")], "texts": ["Fine."], "runs": 2,
        "told": ["2", "a```b"]},
    "arguments in fences": {  # C045
        "turns": [Call((None, '```json\n{"code":"print(1)"}\n```')), Say("One.")], "texts": ["One."], "runs": 1, "told": ["1"]},
    "output over the cap": {  # C083
        "turns": [Run("big"), Say("Long.")], "rules": [{"when": "big", "stdout": "0123456789" * 6500}], "texts": ["Long."],
        "runs": 1, "told": [re.compile(r"^0123456789.{12000,17000}0123456789$", re.S)]},
    "a sandbox that dies in the run": {  # B29
        "turns": [Run("bad"), Say("It died.")], "rules": [{"when": "bad", "fault": "die"}], "texts": ["It died."], "runs": 1,
        "told": [re.compile(r"^\[sandbox ")], "shown": [("bad", "failed", "")]},
    "a sandbox whose answer is cut": {  # B29
        "turns": [Run("bad"), Say("Cut.")], "rules": [{"when": "bad", "fault": "cut"}], "texts": ["Cut."], "runs": 1,
        "told": [re.compile(r"\[sandbox ")], "shown": [("bad", "failed", re.compile(""))]},
    "sandbox unavailable told": {
        "turns": [Run("print(1)"), Say("No sandbox.")], "sandbox": {"create_fault": "refuse"}, "texts": ["No sandbox."],
        "runs": 0, "told": [NOT_MADE], "shown": [("print(1)", "failed", "")]},
    "mixed turn with a client function, and the next request with its result": {
        "turns": [Both("x = 41"), Run("print(x)"), Say("41 and 5.")], "request": {"functions": True}, "texts": [],
        "calls": ["get_stock"], "runs": 1, "finish": "calls", "shown": [("x = 41", "ok", "")],
        "then": {"texts": ["41 and 5."], "told": [re.compile(r"^(\[no output\])?$"), "5", "41"], "made": 1, "runs": 2,
                 "calls": [], "shown": [("print(x)", "ok", "41")], "finish": "stop"}},
    "usage summed": {  # C017
        "turns": [Run("print(1)", usage=(100, 20)), Say("ok", usage=(180, 50))], "usage": (280, 70), "texts": ["ok"]},
    "usage of the last turn where the upstream is configured so": {
        "turns": [Run("print(1)", usage=(100, 20)), Say("ok", usage=(180, 50))], "upstream": {"usage": "last"},
        "usage": (180, 50), "texts": ["ok"]},
    "upstream failing before a run": {
        "turns": [Fail(503, headers=RETRY_AT_ONCE)] * 2, "status": 503, "error": "the model is busy", "runs": 0},
    "upstream refusing before a run": {
        "turns": [Fail(400, "that is no request")], "status": 400, "error": "that is no request", "runs": 0},
    "upstream failing after a run": {  # B32
        "turns": [Run("print(1)"), *[Fail(429, headers=RETRY_AT_ONCE)] * 2], "status": 424, "error": "the model is busy",
        "code": "failed_after_run", "runs": 1},
    "client's token limit bounds the sum": {
        "turns": [Run("print(1)", usage=(10, 60)), Say("cut", usage=(20, 40), finish="length")], "request": {"tokens_max": 100},
        "texts": ["cut"], "finish": "length", "limits": [100, 40], "runs": 1},
    "a call that the token limit has cut runs nothing": {
        "turns": [Run("print(1)", text="Now", usage=(10, 20), finish="length")], "request": {"tokens_max": 20}, "runs": 0,
        "finish": "length", "texts": ["Now"], "calls": []},
}

# Rows for shell commands and files, which Messages alone has.
EDIT = "text_editor_code_execution"
SHELL_SCENARIOS = {
    "one command": {
        "turns": [Run("echo 42"), Say("It is 42.")], "texts": ["It is 42."], "runs": 1, "made": 1, "told": ["42"],
        "shown": [("echo 42", "ok", "42")], "finish": "stop"},
    "two commands in one turn": {
        "turns": [Run("echo 1", "echo 2"), Say("1 and 2")], "texts": ["1 and 2"], "runs": 2, "made": 1, "told": ["1", "2"],
        "shown": [("echo 1", "ok", "1"), ("echo 2", "ok", "2")]},
    "a command that fails is an ordinary result": {
        "turns": [Run("cat nothing.txt"), Say("There is no such file.")], "texts": ["There is no such file."], "runs": 1,
        "told": [re.compile("nothing.txt")], "shown": [("cat nothing.txt", "ok", re.compile("nothing.txt"))]},
    "files that the editor makes are there for commands": {
        "turns": [Call((EDIT, {"command": "create", "path": "notes.txt", "file_text": "hello\n"})), Run("cat notes.txt"),
                  Say("hello")],
        "texts": ["hello"], "runs": 1, "made": 1, "told": [re.compile("notes.txt|created", re.I), "hello"],
        "shown": [("cat notes.txt", "ok", "hello")]},
    "sandbox unavailable told": {
        "turns": [Run("echo 1"), Say("No sandbox.")], "sandbox": {"create_fault": "refuse"}, "texts": ["No sandbox."],
        "runs": 0, "told": [NOT_MADE], "shown": [("echo 1", "failed", "")]},
}
