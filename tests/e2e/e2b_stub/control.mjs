// The control plane: sandboxes are made, listed, prolonged, paused and ended. Both forms of create and connect, /sandboxes
// and /v2/sandboxes, as clients of different age use them.
import { randomBytes } from 'node:crypto';
import { done, endSandbox, json, live, note, refuse, sandboxes } from './shared.mjs';
import { newContexts } from './interpreter.mjs';
import { newTree } from './tree.mjs';

const VERSION = '0.6.4'; // of envd; the template envd-X.Y.Z has another

function view(sandbox) {
  const { sandboxID, templateID, envdVersion, envdAccessToken, trafficAccessToken } = sandbox;
  return { sandboxID, templateID, alias: templateID, clientID: '6532622b', envdVersion, envdAccessToken, trafficAccessToken, domain: null };
}

function detail(sandbox) {
  const { metadata, state, autoPause, autoResume } = sandbox;
  return {
    ...view(sandbox), metadata, state, cpuCount: 2, memoryMB: 512, diskSizeMB: 1024,
    startedAt: new Date(sandbox.created).toISOString(), endAt: new Date(sandbox.end).toISOString(),
    lifecycle: { autoResume, onTimeout: autoPause ? 'pause' : 'kill' },
  };
}

function newSandbox(asked, isV2) {
  const life = asked.timeout ?? (isV2 ? 300 : 15);
  const { templateID, metadata = {}, envVars = {}, network = {} } = asked;
  const isSecure = Boolean(asked.secure || isV2);
  return {
    sandboxID: `i${randomBytes(10).toString('hex')}`, templateID, metadata, envVars, network, life,
    envdVersion: /^envd-/.test(templateID) ? templateID.slice(5) : VERSION, state: 'running',
    envdAccessToken: isSecure ? `ea_${randomBytes(20).toString('hex')}` : undefined,
    trafficAccessToken: network.allowPublicTraffic === false ? `ta_${randomBytes(20).toString('hex')}` : null,
    created: Date.now(), end: Date.now() + life * 1000, autoPause: Boolean(asked.autoPause),
    autoResume: Boolean(asked.autoResume?.enabled), runs: 0, open: new Set(), contexts: newContexts(), tree: newTree(),
    processes: new Map(), nextPid: 100, allowsInternet: asked.allow_internet_access,
  };
}

function create(response, asked, isV2) {
  const invalid = (message) => refuse(response, 400, message);
  if (typeof asked.templateID !== 'string') {
    return invalid('validation error: templateID is missing');
  }
  if (asked.templateID === 'nope') {
    return refuse(response, 404, "template 'nope' not found");
  }
  if (asked.timeout !== undefined && !(Number.isInteger(asked.timeout) && asked.timeout > 0)) {
    return invalid('Timeout must be greater than 0');
  }
  if (asked.network?.allowPublicTraffic === false && !asked.secure && !isV2) {
    return invalid('You cannot create a sandbox without public access unless you enable secure envd access.');
  }
  const sandbox = newSandbox(asked, isV2);
  sandboxes.set(sandbox.sandboxID, sandbox);
  note({ made: sandbox.sandboxID });
  return json(response, 201, view(sandbox));
}

// The keys and values of the filter have been encoded once more than a query's usually are.
function wantedMetadata(url) {
  const pairs = [...new URLSearchParams(url.searchParams.get('metadata') ?? '')];
  return pairs.map((pair) => pair.map(decodeURIComponent));
}

function list(response, url, isV2) {
  const states = url.searchParams.get('state')?.split(',') ?? (isV2 ? ['running', 'paused'] : ['running']);
  const wanted = wantedMetadata(url);
  const found = [...sandboxes.keys()].map(live).filter(Boolean)
    .filter((one) => states.includes(one.state) && wanted.every(([key, value]) => one.metadata[key] === value))
    .sort((a, b) => b.created - a.created);
  if (!isV2) {
    return json(response, 200, found.map(detail));
  }
  const limit = Math.min(Number(url.searchParams.get('limit') || 100), 100);
  const from = Number(Buffer.from(url.searchParams.get('nextToken') ?? '', 'base64url').toString().split('__')[1] ?? 0);
  const next = Buffer.from(`2026-01-01T00:00:00Z__${from + limit}`).toString('base64url');
  const headers = { 'x-total-running': String(found.length) };
  if (from + limit < found.length) {
    headers['x-next-token'] = next;
  }
  return json(response, 200, found.slice(from, from + limit).map(detail), headers);
}

function connect(response, sandbox, asked, isV2) {
  if (!isV2 && !(asked.timeout > 0)) {
    return refuse(response, 400, 'validation error: timeout is missing');
  }
  const wasPaused = sandbox.state === 'paused';
  const end = Date.now() + (asked.timeout ?? 300) * 1000;
  Object.assign(sandbox, { state: 'running', end: wasPaused ? end : Math.max(sandbox.end, end) });
  return json(response, wasPaused ? 201 : 200, view(sandbox));
}

function pause(response, sandbox) {
  if (sandbox.state === 'paused') {
    return refuse(response, 409, `Error pausing sandbox - sandbox '${sandbox.sandboxID}' is already paused`);
  }
  sandbox.state = 'paused';
  return done(response);
}

function setTimeoutOf(response, sandbox, asked) {
  if (!(asked.timeout > 0)) {
    return refuse(response, 400, 'Timeout must be greater than 0');
  }
  Object.assign(sandbox, { end: Date.now() + asked.timeout * 1000, life: asked.timeout });
  return done(response);
}

function refresh(response, sandbox, asked) {
  sandbox.end = Math.max(sandbox.end, Date.now() + Math.max(15, asked.duration ?? 0) * 1000);
  return done(response);
}

const METRICS = { cpuCount: 2, cpuUsedPct: 0.5, memUsed: 1, memTotal: 2, memCache: 0, diskUsed: 1, diskTotal: 2 };
const routes = {
  'GET ': (response, sandbox) => json(response, 200, detail(sandbox)),
  'GET metrics': (response) => json(response, 200, [{ timestamp: new Date().toISOString(), timestampUnix: Math.floor(Date.now() / 1000), ...METRICS }]),
  'DELETE ': (response, sandbox) => { endSandbox(sandbox, 'delete'); done(response); },
  'POST connect': connect,
  'POST pause': pause,
  'POST timeout': setTimeoutOf,
  'POST refreshes': refresh,
};

export function control(request, response, url, body) {
  if (!/^e2b_[0-9a-f]+$/.test(request.headers['x-api-key'] ?? '')) {
    return refuse(response, 401, 'Invalid API key, please visit https://example.com for more information.\nInvalid API key format');
  }
  let asked;
  try {
    asked = body.length ? JSON.parse(body) : {};
  } catch (error) {
    return refuse(response, 400, `validation error: ${error.message}`);
  }
  const isV2 = url.pathname.startsWith('/v2/');
  const [, , id, verb = '', ...rest] = url.pathname.replace(/^\/v2/, '').split('/');
  if (id === undefined && request.method === 'POST') {
    return create(response, asked, isV2);
  }
  if (id === undefined && request.method === 'GET') {
    return list(response, url, isV2);
  }
  const work = rest.length ? undefined : routes[`${request.method} ${verb}`];
  if (!work) {
    return refuse(response, 404, 'no matching operation was found');
  }
  const sandbox = live(id.split('-')[0]);
  if (!sandbox) {
    return refuse(response, 404, `Sandbox "${id}" doesn't exist or you don't have access to it`);
  }
  return work(response, sandbox, asked, isV2);
}
