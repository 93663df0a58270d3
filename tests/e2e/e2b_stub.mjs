// A small service that speaks E2B's protocol, for tests: the control plane (e2b_stub/control.mjs), and for each sandbox envd
// (envd.mjs, process.mjs) and the code interpreter (interpreter.mjs), all behind one port. No packages; Node 18 and later.
//
//     node e2b_stub.mjs [CERTIFICATE KEY]      https with the two files, else http; a free port of 127.0.0.1
//
// It ends with its standard input. On standard output one JSON line for what happens: {"up": PORT} first, then every request
// {"m", "url", "host", "h": HEADERS, "body", "ms": when, by a clock that only goes on}, {"made": ID}, {"ended": ID, "by": …},
// {"closed": URL} where a client left before its answer was whole, {"stub_error": …} for the stub's own mistakes.
//
// What goes wrong is scripted at run time (faults.mjs): POST /_stub/faults. GET /_stub/sandboxes lists what is there, with how
// many contexts each has and in how many of them code ran; POST /_stub/kill ends sandboxes as E2B does at their timeout; what is
// posted to /_stub/note becomes a line of the output. Code and commands may also ask for a fault (interpreter.mjs, shell.mjs).
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { control } from './e2b_stub/control.mjs';
import { envd } from './e2b_stub/envd.mjs';
import { addFaults, faulted } from './e2b_stub/faults.mjs';
import { interpreter } from './e2b_stub/interpreter.mjs';
import { endSandbox, json, live, note, refuse, sandboxes } from './e2b_stub/shared.mjs';

const [certificate, key] = process.argv.slice(2);

function steer(request, response, body) {
  const asked = body.length ? JSON.parse(body) : {};
  if (request.url === '/_stub/faults') {
    addFaults(asked);
  } else if (request.url === '/_stub/note') {
    note(asked);
  } else if (request.url === '/_stub/kill') {
    for (const sandbox of [...sandboxes.values()]) {
      endSandbox(sandbox, 'kill');
    }
  }
  const fields = ['sandboxID', 'templateID', 'metadata', 'envVars', 'created', 'life', 'runs'];
  const shown = [...sandboxes.values()].map((one) => ({
    ...Object.fromEntries(fields.map((name) => [name, one[name]])),
    contexts: one.contexts.size, used: [...one.contexts.values()].filter((context) => context.count > 0).length,
  }));
  json(response, 200, shown);
}

// E2B's proxy: the sandbox and its port by the host's name, else by two headers.
function addressed(request) {
  const named = /^(\d+)-([a-z0-9]+)\./.exec(request.headers.host ?? '');
  const [port, id] = named ? named.slice(1) : [request.headers['e2b-sandbox-port'], request.headers['e2b-sandbox-id']];
  return port || id ? { port: Number(port), id, isWhole: Boolean(port && id) } : null;
}

function proxy(request, response, url, body, { port, id, isWhole }) {
  if (!isWhole) {
    response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' });
    return response.end('missing header\n');
  }
  const sandbox = live(id);
  const unreachable = (message, more) => json(response, 502, { sandboxId: id, message, ...more, code: 502 });
  if (sandbox?.state === 'paused' && sandbox.autoResume) {
    sandbox.state = 'running';
  }
  if (sandbox?.state !== 'running') {
    return unreachable('The sandbox was not found');
  }
  sandbox.open.add(response);
  response.on('close', () => sandbox.open.delete(response));
  if (port === 49983) {
    return faulted(request, response, 'envd', url, () => envd(request, response, url, body, sandbox), sandbox);
  }
  const token = request.headers['e2b-traffic-access-token'];
  if (sandbox.trafficAccessToken && token !== sandbox.trafficAccessToken) {
    const how = token ? 'is invalid' : 'is missing';
    const message = `Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' ${how}`;
    return json(response, 403, { sandboxId: id, message, code: 403 });
  }
  if (port !== 49999) {
    return unreachable('The sandbox is running but port is not open', { port });
  }
  return faulted(request, response, 'interpreter', url, () => interpreter(request, response, url, body, sandbox), sandbox);
}

function route(request, response, body) {
  if (request.url.startsWith('/_stub/')) {
    return steer(request, response, body);
  }
  const url = new URL(request.url, 'http://stub');
  const text = body.toString().slice(0, 4096);
  note({ m: request.method, url: request.url, host: request.headers.host, h: request.headers, body: text, ms: performance.now() });
  response.on('close', () => response.writableFinished || note({ closed: request.url }));
  const to = addressed(request);
  if (to) {
    return proxy(request, response, url, body, to);
  }
  if (!/^\/(v2\/)?sandboxes\b/.test(url.pathname)) {
    response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' });
    return response.end('Invalid host\n');
  }
  return faulted(request, response, 'api', url, () => control(request, response, url, body));
}

function take(request, response) {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('error', () => {});
  response.on('error', () => {});
  request.on('end', () => {
    try {
      route(request, response, Buffer.concat(pieces));
    } catch (error) {
      note({ stub_error: String(error.stack) });
      if (!response.headersSent) {
        refuse(response, 500, String(error));
      }
    }
  });
}

const server = certificate
  ? https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, take)
  : http.createServer(take);
server.listen(0, '127.0.0.1', () => note({ up: server.address().port }));
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();
