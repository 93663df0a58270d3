// Faults that a test scripts: POST /_stub/faults with one, or a list of them.
//
//     { "at": "api" | "interpreter" | "envd", "method": "POST", "path": REGULAR EXPRESSION, "skip": 0, "times": 1, … }
//
// says which requests it holds for; the first that fits does. What happens is one of
//
//     { "status": 503, "headers": {}, "body": text or JSON }    this answer; nothing was done
//     { "do": "reset" }      the connection is reset before an answer; nothing was done
//     { "do": "hang" }       never an answer; nothing was done
//     { "do": "lost" }       it was done, then the connection is reset before the answer
//     { "do": "lost_hang" }  it was done, never an answer
//     { "do": "cut" }        it was done, half of the answer comes, then a reset
//     { "do": "slow", "ms": 300 }       everything as always, later
//     { "do": "port_closed" }           the sandbox is there, but the server in it is not
//     { "do": "kill" }                  the sandbox ends just before
//     { "do": "patch", "patch": {} }    the JSON answer with these members, null ones left out
import { endSandbox, json } from './shared.mjs';

const faults = [];

export function addFaults(asked) {
  for (const one of [asked].flat()) {
    faults.push({ skip: 0, times: 1, ...one, path: new RegExp(one.path ?? '') });
  }
}

function due(request, at, url) {
  const fault = faults.find((one) => one.at === at && (one.method ?? request.method) === request.method && one.times > 0 && one.path.test(url.pathname));
  if (fault && fault.skip > 0) {
    fault.skip -= 1;
    return undefined;
  }
  if (fault) {
    fault.times -= 1;
  }
  return fault;
}

// Lets `work` write an answer that nobody gets as it was meant: `finish(status, headers, body)` has it instead.
function intercepted(response, work, finish) {
  const { writeHead, end } = response;
  let head = [200, {}];
  response.writeHead = (status, headers = {}) => { head = [status, headers]; return response; };
  response.end = (body = '') => {
    Object.assign(response, { writeHead, end });
    finish(head[0], head[1], Buffer.from(body));
  };
  work();
}

function answer(response, { status, headers, body = '' }) {
  const isText = typeof body === 'string';
  const text = isText ? body : JSON.stringify(body);
  const type = !isText ? 'application/json' : text.startsWith('<') ? 'text/html' : 'text/plain';
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

function patched(response, work, patch) {
  intercepted(response, work, (status, headers, body) => {
    const whole = Object.entries({ ...JSON.parse(body), ...patch }).filter(([, value]) => value !== null);
    json(response, status, Object.fromEntries(whole));
  });
}

function cut(response, work) {
  intercepted(response, work, (status, headers, body) => {
    response.writeHead(status, { ...headers, 'content-length': body.length });
    response.write(body.subarray(0, body.length / 2), () => response.socket.resetAndDestroy());
  });
}

const acts = {
  reset: ({ request }) => request.socket.resetAndDestroy(),
  hang: () => {},
  lost: ({ request, response, work }) => intercepted(response, work, () => request.socket.resetAndDestroy()),
  lost_hang: ({ response, work }) => intercepted(response, work, () => {}),
  cut: ({ response, work }) => cut(response, work),
  slow: ({ fault, work }) => setTimeout(work, fault.ms),
  patch: ({ fault, response, work }) => patched(response, work, fault.patch),
  port_closed({ response, sandbox, port }) {
    const message = 'The sandbox is running but port is not open';
    json(response, 502, { sandboxId: sandbox.sandboxID, message, port, code: 502 });
  },
  kill({ response, sandbox }) {
    sandbox.open.delete(response);
    endSandbox(sandbox, 'kill');
    json(response, 502, { sandboxId: sandbox.sandboxID, message: 'The sandbox was not found', code: 502 });
  },
};

// Carries out `work`, or what the script has for this request.
export function faulted(request, response, at, url, work, sandbox) {
  const fault = due(request, at, url);
  if (!fault) {
    return work();
  }
  if (fault.status) {
    return answer(response, fault);
  }
  return acts[fault.do]({ request, response, fault, work, sandbox, port: at === 'envd' ? 49983 : 49999 });
}
