"""What the sessions of a soak do: random pieces of code, each with what its answer must look like."""
import http.client
import json
import re

TIMED_OUT = r"timed out"  # also what the machine is too busy for; sessions count it, and go no further
TIMEOUT_S = 120  # of one request; a gateway that answers later than that hangs

# What an answer says where a box was lost to something that its own code did not do.
LOST = re.compile(r"ended from outside|crashed with SIGKILL|closed its connection|no longer exists|NameError|"
                  r"broker (ended|gave no answer)|(interpreter|run: it) did not start|exit status 137|a child died of -9|The sandbox failed|variables and files are gone")


REFUSED = re.compile("could not be made|could be had in time")


class Step:
    """One request. `expected`: what its answer must have, or None for any. `ends`: the session's state is gone with it."""

    def __init__(self, name, code, expected, ends=False, shell=False, leaves=False):
        self.name, self.code, self.expected = name, code, expected and re.compile(expected, re.DOTALL)
        self.ends, self.shell, self.leaves = ends, shell, leaves


def steps(random, state):
    """Makers of steps with their weights. `state` is the number that the session's variable `x` has."""
    n = random.randrange(1_000_000)
    sleep = random.choice((0.01, 0.1, 0.5))
    return (
        (10, lambda: Step("state", f"x += 1; print('x is', x, {n} * 3)", rf"x is {state + 1} {n * 3}\b")),
        (3, lambda: Step("file", f"open('f', 'a').write('{n};'); print(open('f').read().endswith('{n};'))", "True")),
        (3, lambda: Step("error", f"raise ValueError('no {n}')", rf"ValueError: no {n}")),
        (2, lambda: Step("output", f"for i in range({random.randrange(1, 4000)}): print('o' * 1000)\nprint('end {n}')", f"end {n}|output cut: ")),
        (1, lambda: Step("flood", "while True: print('f' * 100000)", r"output limit|printed more than")),
        (2, lambda: Step("children", f"import subprocess\nr = subprocess.run('for i in 1 2 3; do sleep {sleep} & done; wait; echo {n}', "
                                     "shell=True, capture_output=True, text=True)\n"
                                     "print(r.stdout if r.returncode == 0 else f'a child died of {r.returncode}')", str(n))),
        (2, lambda: Step("left behind", "import subprocess\nfor _ in range(3): subprocess.Popen(['setsid', 'sleep', '1000'])\nprint('left')",
                         "left")),
        (1, lambda: Step("many processes", "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                                           "try:\n    for _ in range(500):\n        if os.fork() == 0: signal.pause()\n"
                                           "except OSError as e: print('refused', e.errno)", "refused 11", ends=True)),
        (2, lambda: Step("memory", "try: m = bytearray(1 << 30)\nexcept MemoryError: print('no memory')", "no memory|out of memory", ends=True)),
        (1, lambda: Step("memory of children", "import subprocess, sys\nhog = bytearray(b'x') * (60 << 20)\n"
                                               "p = subprocess.run([sys.executable, '-c', 'import signal; hog = bytearray(b\"x\") * (130 << 20); signal.pause()'])\n"
                                               "del hog; print('child', -p.returncode)", "child 9|memory", ends=True)),
        (1, lambda: Step("disk", "try: open('/tmp/d', 'wb').write(bytes(100 << 20))\nexcept (OSError, MemoryError): print('full')\n"
                                 "import os; os.unlink('/tmp/d')", "full|MemoryError")),
        (2, lambda: Step("timeout", "import time; time.sleep(1000)", TIMED_OUT)),
        (1, lambda: Step("deaf", "import signal; import time; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)", "killed", ends=True)),
        (1, lambda: Step("exit", f"import os; os._exit({n % 200})", "exited with status|sandbox failed", ends=True)),
        (1, lambda: Step("crash", "import ctypes; ctypes.string_at(1)", "SIGSEGV|sandbox failed", ends=True)),
        (1, lambda: Step("suicide", "import os; os.kill(os.getpid(), 9)", "SIGKILL|sandbox failed", ends=True)),
        (1, lambda: Step("descriptors", "import os\nfds = []\ntry:\n    while True: fds.append(os.open('/dev/null', 0))\n"
                                        "except OSError as e:\n    for f in fds: os.close(f)\n    print('errno', e.errno)", "errno 24")),
        (1, lambda: Step("to the gateway", "import array, os, socket\ns = socket.socket(fileno=os.dup(3))\n"
                                           "for _ in range(50): s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
                                           "array.array('i', [1] * 100))])", None, ends=True)),
        (1, lambda: Step("garbage", "import os\nfor _ in range(500): os.write(3, os.urandom(200))\nprint('sent')", "sent")),
        (2, lambda: Step("client leaves", "import time; time.sleep(0.3); x += 0", None, leaves=True)),
        (3, lambda: Step("shell", f"echo $(({n} + 1)); ls / | wc -l", str(n + 1), shell=True)),
    )


def choose(random, state):
    table = steps(random, state)
    return random.choices([make for _, make in table], [weight for weight, _ in table])[0]()


class Client:
    """Requests with one key."""

    def __init__(self, port, key):
        self.port = port
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def _connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def _exchange(self, method, path, body=None):
        connection = self._connect()
        try:
            connection.request(method, path, body and json.dumps(body), self.headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @staticmethod
    def body_of(session, step):
        words = "shell command" if step.shell else "Python code and tell me the result"
        body = {"model": "mock", "messages": [{"role": "user", "content": f"Run this {words}: {step.code}"}]}
        if session is not None:
            body["metadata"] = {"session_id": session}
        if step.shell:
            return "/v1/messages", {**body, "max_tokens": 100_000,
                                    "tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}
        return "/v1/chat/completions", {**body, "tools": [{"type": "code_interpreter"}]}

    def run(self, session, step):
        """Status and the text of the answer."""
        path, body = self.body_of(session, step)
        status, raw = self._exchange("POST", path, body)
        if status != 200:
            return status, raw.decode("utf-8", "replace")
        answer = json.loads(raw)
        if step.shell:
            return status, json.dumps(answer["content"])
        return status, answer["choices"][0]["message"]["content"] or ""

    def run_and_leave(self, session, step, after_s):
        """Sends the request and is gone a moment later."""
        path, body = self.body_of(session, step)
        connection = self._connect()
        connection.request("POST", path, json.dumps(body), self.headers)
        connection.sock.settimeout(after_s)
        try:
            connection.sock.recv(1)
        except (TimeoutError, BlockingIOError):
            pass
        connection.close()

    def delete(self, session):
        return self._exchange("DELETE", f"/v1/sessions/{session}")[0]

    def sessions(self):
        return json.loads(self._exchange("GET", "/v1/sessions")[1])["data"]
