// process.Process of envd: Start runs a command line of a small shell (shell.mjs) and streams what happens in frames;
// SendSignal ends one, whoever waits for it.
import { endSandbox, json, note } from './shared.mjs';
import { runShell } from './shell.mjs';

const KEEPALIVE_MS = 100;
const STREAM = 'application/connect+json';
const base64 = (text) => Buffer.from(text).toString('base64');

function frame(flags, value) {
  const body = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

class Process {
  constructor(sandbox, response, command) {
    Object.assign(this, { sandbox, response, command, pid: sandbox.nextPid++, timers: [], isOver: false });
    sandbox.processes.set(this.pid, this);
  }

  say(event) {
    return this.response.write(frame(0, { event }));
  }

  print(text, name = 'stdout') {
    return this.say({ data: { [name]: base64(text) } });
  }

  keepAlive() {
    this.timers.push(setInterval(() => this.say({ keepalive: {} }), KEEPALIVE_MS));
  }

  // Its events are over; the stream's own end may say why.
  over(error) {
    if (this.isOver) {
      return;
    }
    this.isOver = true;
    this.timers.forEach(clearInterval);
    this.sandbox.processes.delete(this.pid);
    this.response.end(frame(2, error ? { error } : {}));
  }

  exit(code) {
    const exitCode = code === 0 ? {} : { exitCode: code }; // what is zero is left out
    this.say({ end: { ...exitCode, exited: true, status: `exit status ${code}`, ...(code ? { error: `exit status ${code}` } : {}) } });
    this.over();
  }

  kill(signal) {
    const word = signal === 'SIGNAL_SIGTERM' ? 'terminated' : 'killed';
    note({ killed: this.command, signal });
    this.say({ end: { exitCode: -1, status: `signal: ${word}`, error: `signal: ${word}` } });
    this.over();
  }
}

function refused(response, code, message) {
  response.writeHead(200, { 'content-type': STREAM });
  response.end(frame(2, { error: { code, message } }));
}

function start(request, response, body, sandbox) {
  if (request.headers['content-type'] !== STREAM || body.length < 5 || body.readUInt32BE(1) !== body.length - 5) {
    return json(response, 415, undefined);
  }
  const { process: asked } = JSON.parse(body.subarray(5));
  if (asked.cmd !== '/bin/bash' || !/^-l?c$/.test((asked.args ?? []).at(-2) ?? '')) {
    return refused(response, 'not_found', `fork/exec ${asked.cmd}: no such file or directory`);
  }
  response.writeHead(200, { 'content-type': STREAM });
  const one = new Process(sandbox, response, asked.args.at(-1));
  const limit = Number(request.headers['connect-timeout-ms']);
  if (limit > 0) {
    one.timers.push(setTimeout(() => one.over({ code: 'deadline_exceeded', message: 'context deadline exceeded' }), limit));
  }
  sandbox.runs += 1;
  one.say({ start: { pid: one.pid } });
  const world = { tree: sandbox.tree, environment: { ...sandbox.envVars, ...asked.envs } };
  return runShell(one, world, (by) => endSandbox(sandbox, by));
}

function sendSignal(response, { process: wanted, signal }, sandbox) {
  const found = sandbox.processes.get(wanted?.pid);
  if (!found) {
    return json(response, 404, { code: 'not_found', message: `process with pid ${wanted?.pid} not found` });
  }
  found.kill(signal);
  return json(response, 200, {});
}

export function processCall(request, response, method, body, sandbox) {
  if (method === 'Start') {
    return start(request, response, body, sandbox);
  }
  const asked = JSON.parse(body);
  if (method === 'SendSignal') {
    return sendSignal(response, asked, sandbox);
  }
  const listed = [...sandbox.processes.values()].map(({ pid, command }) => ({ pid, config: { cmd: '/bin/bash', args: ['-l', '-c', command] } }));
  return json(response, 200, method === 'List' ? { processes: listed } : {});
}
