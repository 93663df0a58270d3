// The code interpreter of a sandbox: contexts that keep variables, and /execute, whose answer is a line of JSON for each thing
// that happens. Code is a few words of Python (python.mjs), or one line that asks for something else:
//
//     !slow        nothing but keepalives until the client leaves; then it is interrupted
//     !stubborn    likewise, but it goes on when the client has left: later calls of this context get keepalives only, until
//                  the context is restarted
//     !flood       output without end
//     !die         some output, then the sandbox ends
//     !reset       some output, then a reset;  !cut: the stream just ends, without end_of_execution;  !break: so does the
//                  connection, amid the chunked answer
//     !silent      some output, then nothing more, and the connection stays open;  !idle: likewise with keepalives, and the
//                  interpreter is free for others
//     !kept        end_of_execution comes, but the connection stays open
//     !hang        never a status line
//     !restarting  the interpreter's process ends, as by os._exit(): variables are gone
//     !502 !404 !400 !500 !403 !429   the refusals that E2B's proxy and server give before they run anything
//     !rich !nan !blank !unknown !crlf !big !split   answers of rare form
//
// Two calls of one context never run at once: the second waits in silence. A call that comes within a moment of a client's
// leaving is lost, as with E2B: keepalives for ever.
import { randomUUID } from 'node:crypto';
import { PythonError, repr, runPython } from './python.mjs';
import { endSandbox, json, note } from './shared.mjs';

const KEEPALIVE_MS = 100;
const RACE_MS = 400;
const STAMP = '2026-01-01T00:00:00.000000+00:00';
const LANGUAGES = { js: 'javascript', ts: 'typescript' };
const KNOWN = ['python', 'javascript', 'typescript', 'bash', 'r', 'java'];
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function newContext(language, cwd = '/home/user', isDefault = false) {
  return { id: randomUUID(), language, cwd, isDefault, variables: new Map(), count: 0, running: null, waiting: [], leftAt: 0, isStuck: false };
}

export function newContexts() {
  const made = ['python', 'javascript'].map((language) => newContext(language, '/home/user', true));
  return new Map(made.map((context) => [context.id, context]));
}

function plain(response, status, text) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}

// ASCII only, as E2B's server writes.
const lineOf = (event) => `${JSON.stringify(event).replace(/[\u0080-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;

class Run {
  constructor(sandbox, context, response, code, environment) {
    Object.assign(this, { sandbox, context, response, code, environment, isOver: false });
  }

  say(event) {
    this.response.write(lineOf(event));
  }

  print(text, type = 'stdout') {
    this.say({ type, text, timestamp: STAMP });
  }

  keepAlive() {
    const timer = setInterval(() => this.say({ type: 'keepalive' }), KEEPALIVE_MS);
    this.response.on('close', () => clearInterval(timer));
  }

  error(name, value, traceback = '') {
    this.say({ type: 'error', name, value, traceback });
  }

  end() {
    this.say({ type: 'end_of_execution' });
    this.response.end();
    this.leave();
  }

  leave() {
    if (!this.isOver) {
      this.isOver = true;
      this.context.running = null;
      startNext(this.context);
    }
  }

  begin() {
    this.context.count += 1;
    this.sandbox.runs += 1;
    this.say({ type: 'number_of_executions', execution_count: this.context.count });
  }

  raise(error) {
    const { pythonName: name, line, message } = error;
    const head = `${'-'.repeat(75)}${name.padEnd(42)}Traceback (most recent call last)`;
    const shown = this.code.split('\n')[line - 1];
    this.error(name, message, `${head}Cell In[${this.context.count}], line ${line}\n----> ${line} ${shown}\n${name}: ${message}`);
  }

  python() {
    const { context, sandbox, environment } = this;
    const world = { variables: context.variables, tree: sandbox.tree, environment: { ...sandbox.envVars, ...environment }, out: this };
    try {
      const value = runPython(this.code, world);
      if (value !== undefined) {
        this.say({ type: 'result', text: repr(value).replace(/^'(.*)'$/s, '$1'), extra: {}, is_main_result: true });
      }
    } catch (error) {
      if (!(error instanceof PythonError)) {
        throw error;
      }
      this.raise(error);
    }
  }
}

const rich = [
  { type: 'result', text: '<Figure>', png: PNG, chart: { type: 'line', title: 'A', elements: [] }, extra: {}, is_main_result: false },
  {
    type: 'result', text: '   a\n0  1', html: '<table></table>', latex: '$x$', json: { a: [1, null] }, data: { a: [1] },
    extra: { 'application/x-own': 'own' }, is_main_result: true,
  },
];

const GOES_ON = Symbol('goes on');

// What lines that ask for something else do.
const oddities = {
  slow: (run) => { run.keepAlive(); return GOES_ON; },
  stubborn: (run) => { run.print('working\n'); run.keepAlive(); run.isStubborn = true; return GOES_ON; },
  flood(run) {
    const fill = () => {
      while (!run.response.destroyed && run.response.write(lineOf({ type: 'stdout', text: `${'x'.repeat(65535)}\n`, timestamp: STAMP })));
    };
    run.response.on('drain', fill);
    fill();
    return GOES_ON;
  },
  die(run) { run.print('so far\n'); setTimeout(() => endSandbox(run.sandbox, 'kill'), 20); return GOES_ON; },
  reset(run) { run.print('so far\n'); setTimeout(() => run.response.socket?.resetAndDestroy(), 20); return GOES_ON; },
  break(run) { run.print('so far\n'); setTimeout(() => run.response.socket?.end(), 20); return GOES_ON; },
  silent(run) { run.print('so far\n'); return GOES_ON; },
  idle(run) { run.print('so far\n'); run.keepAlive(); run.leave(); return GOES_ON; },
  kept(run) { run.print('all\n'); run.say({ type: 'end_of_execution' }); run.leave(); return GOES_ON; },
  cut(run) { run.print('so far\n'); run.response.end(); run.leave(); return GOES_ON; },
  restarting(run) {
    run.context.variables.clear();
    run.context.count = 0;
    run.error('ContextRestarting', 'Context was restarted');
  },
  rich: (run) => rich.forEach((event) => run.say(event)),
  nan: (run) => run.response.write('{"type": "result", "text": "x", "data": {"a": [NaN, Infinity]}, "extra": {}, "is_main_result": true}\n'),
  blank(run) { run.response.write('\n'); run.print('behind a blank line\n'); },
  unknown(run) { run.say({ type: 'brand_new', x: 1 }); run.print('behind an unknown event\n'); },
  crlf: (run) => run.response.write('{"type": "stdout", "text": "crlf\\n"}\r\n'),
  big: (run) => run.print(`${'x'.repeat(5_000_000)}\n`),
  split(run) {
    const bytes = Buffer.from(lineOf({ type: 'stdout', text: 'piece by piece é 😀\n', timestamp: STAMP }));
    let at = 0;
    const timer = setInterval(() => {
      if (at < bytes.length) {
        run.response.write(bytes.subarray(at, ++at));
      } else {
        clearInterval(timer);
        run.end();
      }
    }, 1);
    return GOES_ON;
  },
};

function work(run) {
  run.begin();
  const odd = oddities[run.code.startsWith('!') ? run.code.slice(1).trim() : ''];
  const outcome = odd ? odd(run) : run.python();
  if (outcome !== GOES_ON) {
    run.end();
  }
}

function startNext(context) {
  if (context.running || context.isStuck) {
    return;
  }
  const run = context.waiting.shift();
  if (run) {
    context.running = run;
    work(run);
  }
}

// The client has left amid a run: the kernel is interrupted, which stubborn code does not heed.
function left(run) {
  const { context } = run;
  context.waiting = context.waiting.filter((one) => one !== run);
  if (context.running === run) {
    context.isStuck = Boolean(run.isStubborn);
    context.leftAt = Date.now();
    run.leave();
  }
}

function refusals(sandbox) {
  const id = { sandboxId: sandbox.sandboxID };
  const missing = "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing";
  const busy = 'The sandbox has too many concurrent incoming connections (limit: 10)';
  return {
    '!502': [502, { ...id, message: 'The sandbox was not found', code: 502 }],
    '!403': [403, { ...id, message: missing, code: 403 }],
    '!429': [429, { ...id, message: busy, code: 429, connectionLimit: 10 }],
    '!404': [404, 'Context x not found'],
    '!400': [400, 'Only one of context_id or language can be provided'],
    '!500': [500, 'boom'],
  };
}

function contextOf(sandbox, { context_id: id, language }) {
  if (id) {
    return sandbox.contexts.get(id);
  }
  const wanted = (language ?? 'python').trim().toLowerCase();
  const name = LANGUAGES[wanted] ?? wanted;
  const found = [...sandbox.contexts.values()].find((one) => one.isDefault && one.language === name);
  if (found || !KNOWN.includes(name)) {
    return found;
  }
  const made = newContext(name, '/home/user', true);
  sandbox.contexts.set(made.id, made);
  return made;
}

function execute(response, sandbox, asked) {
  const refusal = refusals(sandbox)[asked.code];
  if (refusal) {
    return typeof refusal[1] === 'string' ? plain(response, ...refusal) : json(response, ...refusal);
  }
  if (asked.context_id && asked.language) {
    return plain(response, 400, 'Only one of context_id or language can be provided');
  }
  const context = contextOf(sandbox, asked);
  if (!context) {
    return asked.context_id ? plain(response, 404, `Context ${asked.context_id} not found`) : plain(response, 500, 'no such kernel');
  }
  if (asked.code === '!hang') {
    return undefined;
  }
  response.writeHead(200);
  response.flushHeaders();
  const run = new Run(sandbox, context, response, asked.code, asked.env_vars);
  if (context.isStuck || Date.now() - context.leftAt < RACE_MS) {
    note({ lost: context.isStuck ? 'stuck' : 'race' });
    return run.keepAlive();
  }
  response.on('close', () => left(run));
  context.waiting.push(run);
  return startNext(context);
}

function restart(context) {
  const run = context.running;
  Object.assign(context, { variables: new Map(), count: 0, isStuck: false, leftAt: 0 });
  note({ restarted: context.language });
  if (run) {
    run.error('WebSocketError', 'The connections was lost, rerun the code to get the results');
    run.error('UnexpectedEndOfExecution', 'Connection to the execution was closed before the execution was finished');
    run.end();
  }
}

const shown = ({ id, language, cwd }) => ({ id, language, cwd });

function contexts(request, response, url, asked, sandbox) {
  const [, , id, verb] = url.pathname.split('/');
  if (id === undefined && request.method === 'GET') {
    return json(response, 200, [...sandbox.contexts.values()].map(shown));
  }
  if (id === undefined) {
    const language = asked.language ?? 'python';
    if (!KNOWN.includes(language)) {
      return plain(response, 500, `Failed to create context: {"message": "The '${language}' kernel is not available."}`);
    }
    const made = newContext(language, asked.cwd);
    sandbox.contexts.set(made.id, made);
    return json(response, 200, shown(made));
  }
  const context = sandbox.contexts.get(id);
  if (!context) {
    return plain(response, 404, `Context ${id} not found`);
  }
  if (verb === 'restart') {
    restart(context);
  } else {
    sandbox.contexts.delete(id);
  }
  return json(response, 200, null);
}

export function interpreter(request, response, url, body, sandbox) {
  if (url.pathname === '/health') {
    return json(response, 200, 'OK');
  }
  if (body.length && !/^application\/json\b/.test(request.headers['content-type'] ?? '')) {
    return json(response, 422, { detail: [{ type: 'model_attributes_type', loc: ['body'], msg: 'Input should be a valid dictionary' }] });
  }
  const asked = body.length ? JSON.parse(body) : {};
  if (url.pathname === '/execute') {
    return execute(response, sandbox, asked);
  }
  return /^\/contexts(\/|$)/.test(url.pathname) ? contexts(request, response, url, asked, sandbox) : json(response, 404, { detail: 'Not Found' });
}
