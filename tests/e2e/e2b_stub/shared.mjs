// What the parts of the stub share: the sandboxes that there are, the journal, and how answers are written.
export const sandboxes = new Map(); // by id

export const note = (what) => console.log(JSON.stringify(what));

export function json(response, status, value, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(value === undefined ? '' : JSON.stringify(value));
}

export const refuse = (response, code, message, headers) => json(response, code, { code, message }, headers);

export function done(response, status = 204) {
  response.writeHead(status);
  response.end();
}

// What goes on in it is cut off, as when its machine goes away.
export function endSandbox(sandbox, by) {
  sandboxes.delete(sandbox.sandboxID);
  note({ ended: sandbox.sandboxID, by });
  for (const response of sandbox.open) {
    response.socket?.resetAndDestroy();
  }
}

// One that is there; its timeout is looked at when somebody asks.
export function live(id) {
  const sandbox = sandboxes.get(id);
  if (sandbox?.state === 'running' && Date.now() > sandbox.end) {
    if (sandbox.autoPause) {
      sandbox.state = 'paused';
    } else {
      endSandbox(sandbox, 'timeout');
      return undefined;
    }
  }
  return sandbox;
}

// What a version says: [major, minor, patch] of a before, at or behind those of b, as below 0, 0 and above.
export function compareVersions(a, b) {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}
