"""Front ends as they are seen from a gateway: what each sends (tests/data/fronts, written from its public description), the
history as each keeps it, and a model that does what a user's text says. What a conversation does is a list of steps there:

  say    a text that needs no tool              run   code, and `told`: what the model is told of it
  call   the model calls the client's function  both  … and code, in one turn
  again  the last answer is thrown away, and asked for once more
  edit   the message of an earlier turn is written anew: what came after it is gone from the history
  leave  the user stops the answer while code runs

and `sides`: requests that the front end makes beside it, with the same ids. {user}, {chat}, {tag}, {x}, {x1} and {text} stand for
a conversation's own; {tag} is a word that no other conversation has, {x} a number, {x1} the next one."""
import itertools
import json
import re
import threading

from client import Wire, encode, post
from forms import FORMS, Told
from harness import ROOT
from upstream import Status, text_of

FOLDER = ROOT / "tests" / "data" / "fronts"
NAMES = ("open_webui", "librechat", "codex", "claude_code")
FORM = {form.name: form for form in FORMS}
SLOW = "stay_a_while"
REPLACED = "[The sandbox of this session was lost and has been replaced: earlier variables and files are gone.]"
NEW = "[This is a new sandbox: variables and files of earlier runs in this conversation, if there were any, are gone.]"


def filled(value, words):
    """A piece of a description with a conversation's own words in it."""
    if isinstance(value, dict):
        return {key: filled(inner, words) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, words) for inner in value]
    return re.sub(r"\{([a-z0-9]+)\}", lambda m: words[m[1]], value) if isinstance(value, str) else value


class Front:
    behind_the_first = ()  # what it says itself behind the user's first words

    def __init__(self, name):
        self.name = name
        for key, value in json.loads((FOLDER / f"{name}.json").read_text()).items():
            setattr(self, key, value)
        self.form = FORM[self.form]
        self.session_header = next(key for key, value in self.headers.items() if value == "{chat}")
        self.user_header = "X-OpenWebUI-User-Id" if name == "open_webui" else "x-user-id"


FRONTS = [Front(name) for name in NAMES]


# ---- the model ----

def form_of(path):
    return next(form for form in FORMS if path.split("?")[0].startswith(form.path))


def results_behind_the_user(body):
    """Texts of the results that came after the user's last words."""
    found = []
    for item in reversed(body.get("messages") or body.get("input")):
        if item.get("role") == "tool":
            found.append(text_of(item["content"]))
        elif item.get("type") == "function_call_output":
            found.append(text_of(item["output"]))
        elif item.get("role") == "user":
            content = item["content"]
            blocks = [] if isinstance(content, str) else [b for b in content if b["type"] == "tool_result"]
            found += [text_of(block.get("content", "")) for block in reversed(blocks)]
            if not blocks:
                break
    return [text.strip() for text in reversed(found)]


def last_words(body):
    """Of the user."""
    content = next(item["content"] for item in reversed(body.get("messages") or body["input"]) if item.get("role") == "user")
    return content if isinstance(content, str) else content[-1]["text"]


class Model:
    """For `forever` of an upstream: all three forms, any number of conversations at once."""

    THOUGHTS = {"responses": {"reasoning": "Hm.", "encrypted": "sealed"}, "messages": {"thinking": "Hm."}, "chat": {}}

    def __init__(self):
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.refusals = []  # [words, how often, behind a run, header]
        self.offered = {}   # verb → was the code tool offered?

    def refuse(self, words, times=1, behind_a_run=False, retry_after="30"):
        """The next requests with these words get 429."""
        with self.lock:
            self.refusals.append([words.encode(), times, behind_a_run, [("Retry-After", retry_after)]])

    def refusal(self, raw, has_results):
        with self.lock:
            for one in self.refusals:
                if one[1] > 0 and one[0] in raw and one[2] == has_results:
                    one[1] -= 1
                    return one[3]
        return None

    def __call__(self, connection):
        body, path = connection.request.json, connection.request.target
        if "count_tokens" in path:
            return {"input_tokens": 42}
        form = form_of(path)
        results = results_behind_the_user(body)
        headers = self.refusal(connection.request.body, bool(results))
        if headers is not None:
            return form.failure(429, "the model is busy", headers)
        return self.turn(form, body, results)

    def turn(self, form, body, results):
        make = form.module.streamed if body.get("stream") else form.module.answer
        thoughts = {"usage": (10, 5), **(self.THOUGHTS[form.name] if body.get("thinking") or body.get("reasoning") else {})}
        if results:
            return make(f"It is: {' | '.join(results)}", **thoughts)
        verb, _, rest = last_words(body).partition(": ")
        self.offered[verb] = form.offers_code(body)
        calls = []
        if verb in ("Run", "Wait"):
            calls = [(f"call_{next(self.numbers)}", form.code_tool(body), {"code": rest})]
        elif verb in ("Call", "Both"):
            given = json.loads(rest)
            calls = [(f"call_{next(self.numbers)}", form.code_tool(body), {"code": given["code"]})] if verb == "Both" else []
            calls.append((f"call_{next(self.numbers)}", given["name"], given["arguments"]))
        return make("I wait." if verb == "Wait" else None if calls else '{"title": "Yes"}', calls=calls, **thoughts)


# ---- a conversation ----

class Refused(AssertionError):
    """The answer was an error."""

    def __init__(self, told):
        super().__init__(f"{told.status}: {told.reply.body[:400]}")
        self.told = told


class Conversation:
    """One chat of one user in a front end, which keeps the history as that front end does."""

    def __init__(self, front, gateway, key, user, chat, number, transport=None):
        self.front, self.gateway, self.key, self.transport = front, gateway, key, transport
        self.insist = lambda send: send()   # how a function's result is sent, which has the answer before it to lose
        self.words = {"user": user, "chat": chat, "tag": f"chat-{chat}-of-{user}", "x": str(number), "x1": str(number + 1)}
        self.rounds = []    # for each of the user's messages: all that was said from it on
        self.answers = []   # all texts that the user has seen

    @property
    def tag(self):
        return self.words["tag"]

    def headers(self):
        return filled(self.front.headers, self.words)

    def body(self, asked):
        said = [item for one in self.rounds for item in one]
        return {**filled(self.front.body, self.words), self.front.list: [*filled(self.front.opens, self.words), *said, *asked]}

    def send(self, body, path=None):
        if self.transport and not path:
            told = self.transport(self, body)
        else:
            told = Told(post(self.gateway, path or self.front.path, body, headers=self.headers(), key=self.key))
            self.read(told, body)
        if told.status != 200 or told.error:
            raise Refused(told)
        return told

    def read(self, told, body):
        form = self.front.form
        if told.status != 200:
            told.error = told.reply.error["message"]
        elif body.get("stream"):
            form.read_stream(told)
        else:
            form.read(told, told.reply.json)

    def ask(self, text):
        """What the user says, and the model's answer to it, which joins the history."""
        asked = [filled(self.front.asked, {**self.words, "text": text}), *(() if self.rounds else self.front.behind_the_first)]
        told = self.send(self.body(asked))
        self.rounds.append([*asked, *self.kept(told)])
        self.answers += told.texts
        return told

    def kept(self, told):
        """What the front end keeps of an answer."""
        final, keeps = told.final, self.front.keeps
        if keeps == "text":
            return [{"role": "assistant", "content": "".join(told.texts)}]
        if keeps == "messages":
            message = final["choices"][0]["message"]
            return [{key: value for key, value in message.items() if key in ("role", "content", "tool_calls")}]
        if keeps == "blocks":
            return [{"role": "assistant", "content": final["content"]}]
        known = {"message": ("type", "id", "status", "role", "content"), "reasoning": ("type", "id", "summary", "encrypted_content"),
                 "function_call": ("type", "id", "name", "arguments", "call_id")}
        return [{key: item[key] for key in known[item["type"]] if key in item} for item in final["output"] if item["type"] in known]

    def answer_call(self, told, result):
        """The client's function has run: its result goes back, and the model goes on."""
        last, = told.calls
        assert last[1] == self.front.function["name"], told.calls
        came = [filled(self.front.result, {"call": last[0], "text": result})]
        told = self.insist(lambda: self.send(self.body(came)))
        self.rounds[-1] += [*came, *self.kept(told)]
        self.answers += told.texts
        return told

    # ---- steps ----

    def run(self, source):
        """Lets code run: what the model was told of it."""
        return self.result(self.ask(f"Run: {source}"))

    @staticmethod
    def result(told):
        return told.texts[-1].removeprefix("It is: ")

    def side(self, name):
        side = filled(self.front.side[name], self.words)
        told = Told(post(self.gateway, side.get("path", self.front.path), side["body"], headers=self.headers(), key=self.key))
        if told.status != 200:
            raise Refused(told)
        return told

    def leave(self):
        """Stops the answer when its first words are there and code has been called."""
        asked = [filled(self.front.asked, {**self.words, "text": f"Wait: {SLOW}"})]
        fields = [f"{name}: {value}" for name, value in {**self.headers(), "Authorization": f"Bearer {self.key}"}.items()]
        with Wire(self.gateway) as wire:
            wire.post(encode(self.body(asked)), self.front.path, fields)
            seen = b""
            for line in iter(wire.stream().readline, b""):
                seen += line
                if b"." in line and b"wait" in b"".join(re.findall(rb'(?:"content"|"delta"|"text"): ?"([^"]*)', seen)):
                    break
            wire.reset()
        if self.front.keeps == "text":
            self.rounds.append([*asked, {"role": "assistant", "content": "I wait."}])

    def call(self, step):
        given = {**self.front.function, "code": filled(step.get("both", ""), self.words)}
        told = self.ask(f"{'Both' if 'both' in step else 'Call'}: {json.dumps(given)}")
        return self.result(self.answer_call(told, filled(step["result"], self.words)))

    def step(self, step):
        """Does it, and what the front end does beside it; what the model was told of results, if it was."""
        rounds = list(self.rounds)
        try:
            told = self.main_step(step)
        except Refused:
            self.rounds = rounds  # the front end shows the error, and its user tries again
            raise
        for name in step.get("sides", []):
            self.side(name)
        return told

    def main_step(self, step):
        told = None
        if "edit" in step:
            del self.rounds[step["edit"] - 1:]
        if "say" in step:
            self.ask(filled(step["say"], self.words))
        elif "run" in step:
            told = self.run(filled(step["run"], self.words))
        elif "again" in step:
            self.rounds.pop()
            told = self.run(filled(step["again"], self.words))
        elif "leave" in step:
            self.leave()
        else:
            told = self.call(step)
        return told

    def wanted(self, step):
        """What the model must be told in this step where nothing was lost; None: it is told nothing."""
        parts = [filled(step[key], self.words) for key in ("told", "result") if key in step]
        return " | ".join(parts) if parts else None
