// envd of a sandbox: its files by plain HTTP, and by Connect in JSON folders and processes (shell.mjs). A secured sandbox's
// envd wants its token, or for a file the signature made of it.
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { compareVersions, done, json, refuse } from './shared.mjs';
import { processCall } from './process.mjs';
import { below, entryOf, isFolder, makeFolders, move, nameOf, remove, resolvePath, writeFile } from './tree.mjs';

function signatureOf(path, operation, user, token, expires) {
  const text = [path, operation, user, token, ...(expires ? [expires] : [])].join(':');
  return `v1_${createHash('sha256').update(text).digest('base64').replace(/=+$/, '')}`;
}

function isAllowed(request, url, sandbox) {
  const given = request.headers['x-access-token'];
  if (!sandbox.envdAccessToken || url.pathname === '/health' || given === sandbox.envdAccessToken) {
    return true;
  }
  const query = (name) => url.searchParams.get(name) ?? '';
  const operation = request.method === 'GET' ? 'read' : 'write';
  const expires = query('signature_expiration');
  const right = signatureOf(query('path'), operation, query('username'), sandbox.envdAccessToken, expires);
  return url.pathname === '/files' && given === undefined && query('signature') === right && (!expires || Number(expires) * 1000 > Date.now());
}

// Before 0.4.0 envd knows no user of its own.
function hasUser(request, url, sandbox) {
  const isNeeded = compareVersions(sandbox.envdVersion, '0.4.0') < 0;
  return !isNeeded || url.searchParams.get('username') || /^Basic /.test(request.headers.authorization ?? '');
}

function download(response, tree, path) {
  if (!tree.has(path)) {
    return refuse(response, 404, `path '${path}' does not exist`);
  }
  if (isFolder(tree, path)) {
    return refuse(response, 400, `path '${path}' is a directory`);
  }
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-disposition': 'inline', vary: 'Accept-Encoding' });
  return response.end(tree.get(path));
}

// The parts named "file" of a form: [name of the file, content].
function partsOf(body, type) {
  const boundary = /boundary="?([^";]+)/.exec(type)[1];
  const found = [];
  for (const part of body.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const end = part.indexOf('\r\n\r\n');
    const head = /name="file"; filename="([^"]*)"/.exec(part.slice(0, end));
    if (head) {
      found.push([Buffer.from(head[1], 'latin1').toString(), Buffer.from(part.slice(end + 4, -2), 'latin1')]);
    }
  }
  return found;
}

function upload(request, response, body, sandbox, given) {
  const type = request.headers['content-type'] ?? '';
  const content = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  const isPlain = type.startsWith('application/octet-stream') && compareVersions(sandbox.envdVersion, '0.5.7') >= 0;
  if (!isPlain && !type.startsWith('multipart/form-data')) {
    return refuse(response, 400, `unsupported content type: ${type}`);
  }
  const parts = isPlain ? [[given, content]] : partsOf(content, type);
  const written = parts.map(([name, bytes]) => [resolvePath(given ?? name), bytes]);
  for (const [path, bytes] of written) {
    if (!writeFile(sandbox.tree, path, bytes)) {
      return refuse(response, 400, `path is a directory: ${path}`);
    }
  }
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  return response.end(JSON.stringify(written.map(([path]) => ({ path, name: nameOf(path), type: 'file' }))));
}

function files(request, response, url, body, sandbox) {
  const given = url.searchParams.get('path') ?? undefined;
  return request.method === 'GET'
    ? download(response, sandbox.tree, resolvePath(given ?? ''))
    : upload(request, response, body, sandbox, given);
}

const CODES = { invalid_argument: 400, unauthenticated: 401, not_found: 404, already_exists: 409 };
const fail = (response, code, message) => json(response, CODES[code], { code, message });

const folders = {
  ListDir(response, tree, path, asked) {
    if (!isFolder(tree, path)) {
      return tree.has(path)
        ? fail(response, 'invalid_argument', `path is not a directory: ${path}`)
        : fail(response, 'not_found', `path not found: ${path}`);
    }
    return json(response, 200, { entries: below(tree, path, asked.depth || 1).map((one) => entryOf(tree, one)) });
  },
  MakeDir(response, tree, path) {
    if (tree.has(path)) {
      return fail(response, isFolder(tree, path) ? 'already_exists' : 'invalid_argument', `already exists: ${path}`);
    }
    makeFolders(tree, path);
    return json(response, 200, { entry: entryOf(tree, path) });
  },
  Stat: (response, tree, path) => (tree.has(path)
    ? json(response, 200, { entry: entryOf(tree, path) })
    : fail(response, 'not_found', `file not found: ${path}`)),
  Remove(response, tree, path) {
    remove(tree, path);
    return json(response, 200, {});
  },
  Move(response, tree, path, asked) {
    const to = resolvePath(asked.destination);
    if (!tree.has(path)) {
      return fail(response, 'not_found', `source not found: ${path}`);
    }
    move(tree, path, to);
    return json(response, 200, { entry: entryOf(tree, to) });
  },
};

function connectCall(request, response, url, body, sandbox) {
  const [, service, method] = url.pathname.split('/');
  if (service === 'process.Process') {
    return processCall(request, response, method, body, sandbox);
  }
  if (service !== 'filesystem.Filesystem' || !folders[method]) {
    return refuse(response, 404, `no such route ${url.pathname}`);
  }
  const asked = JSON.parse(body);
  return folders[method](response, sandbox.tree, resolvePath(asked.path ?? asked.source ?? ''), asked);
}

export function envd(request, response, url, body, sandbox) {
  if (!isAllowed(request, url, sandbox)) {
    return refuse(response, 401, 'unauthorized access, please provide a valid access token or method signing if supported');
  }
  if (url.pathname === '/health') {
    return done(response);
  }
  if (url.pathname === '/envs') {
    return json(response, 200, sandbox.envVars);
  }
  if (!hasUser(request, url, sandbox)) {
    return url.pathname === '/files' ? refuse(response, 401, 'no user specified') : fail(response, 'unauthenticated', 'no user specified');
  }
  return url.pathname === '/files' ? files(request, response, url, body, sandbox) : connectCall(request, response, url, body, sandbox);
}
