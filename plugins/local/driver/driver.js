// The side of a box that runs JavaScript: one node that lasts, started by node.py, whose words it speaks on the socket that
// it is given. It gets "number, count of lines, lines" for each cell and answers with "out NUMBER BASE64" and "err" for what is
// printed, "text NUMBER BASE64" for the last value, "error NUMBER BASE64,BASE64,BASE64" for name, value and stack of what was thrown,
// and "done NUMBER 0".
//
// Cells are evaluated in the inspector's REPL mode: names of let and const may be declared again, await works outside of
// functions, and all stays from cell to cell. Like driver.py it shares its process with the user's code and is no boundary.
'use strict';
(() => {
  // Bound now: a cell may declare a class or a constant of one of these names, which hides the global one from here too.
  const { Atomics, BigInt, Error, Int32Array, Number, Object, SharedArrayBuffer, String, Symbol, SyntaxError, Uint8Array,
    globalThis, process, require } = this;
  const fs = require('fs');
  const inspector = require('inspector');
  const util = require('util');
  const vm = require('vm');
  const { AsyncLocalStorage } = require('async_hooks');
  const { Buffer } = require('buffer');
  const Module = require('module');

  const TEXT_MAX = 1 << 20;
  const STACK_LINES = 12;
  const RUN = Symbol('run');
  const TAKE = Symbol('take');
  const CUT = Symbol('cut');
  const PIECE = 1 << 15;
  // What a cell has that does more when node has left its first part.
  const GOES_ON = /\b(?:await|async|then|Promise|nextTick|queueMicrotask)\b/;
  const fd = Number(process.argv[1]);
  const socket = new (require('net').Socket)({ fd });
  const token = fs.openSync(`/proc/self/fd/${process.argv[2]}`, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
  fs.closeSync(Number(process.argv[2]));
  const cuts = Number(process.argv[3]);
  const session = new inspector.Session();
  const cells = new AsyncLocalStorage();
  const trigger = new vm.Script('this[({}).constructor.getOwnPropertySymbols(this).find((s) => s.description === "run")]()');
  let current = 0; // the number of the cell that runs; 0: none
  let last = 0; // the number of the last one that was read
  let isReading = false; // of cells, and within run()
  let isBusy = false; // with the part of a cell that comes before all that it waits for
  let hasEnded = false; // meanwhile, and told when that is over
  let isCut = false; // what kept node busy, and the cell has yet to be told its end
  let post, taken;

  // Written at once, so that what is printed keeps its order with what programs print that code starts.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  let isBroken = false; // an interrupt came amid a line
  function say(kind, number, rest) {
    let data = Buffer.from(`${isBroken ? '\n' : ''}${kind} ${number} ${rest}\n`);
    isBroken = true;
    while (data.length > 0) {
      try {
        data = data.subarray(fs.writeSync(fd, data));
      } catch (error) {
        if (error.code !== 'EAGAIN') {
          process.exit(0); // nobody listens any more
        }
        Atomics.wait(pause, 0, 0, 1);
      }
    }
    isBroken = false;
  }
  const encoded = (text) => Buffer.from(text).toString('base64');
  const sayError = (parts) => say('error', current, parts.map((part) => encoded(part.slice(0, 60000))).join());
  const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

  // ---- what is told of a cell ----

  function inspect(value) {
    try {
      return util.inspect(value).slice(0, TEXT_MAX);
    } catch {
      return '<the value cannot be shown>';
    }
  }

  // The frames of cells; those of this file and of node say nothing.
  function stackOf(error, details) {
    const lines = typeof error.stack === 'string' ? error.stack.split('\n') : [String(error)];
    const first = lines.findIndex((line) => /^ {4}at /.test(line));
    const head = first < 0 ? lines : lines.slice(0, first);
    const frames = (first < 0 ? [] : lines.slice(first)).filter((line) => !/node:|\[eval|evalmachine|<anonymous>$/.test(line));
    if (error instanceof SyntaxError && frames.every((line) => !line.includes('cell-')) && details) {
      frames.unshift(`    at cell-${current}:${details.lineNumber + 1}:${details.columnNumber + 1}`);
    }
    return head.concat(frames.slice(0, STACK_LINES)).join('\n');
  }

  // Node 18 has no code for it.
  const isImport = (error) => error?.code === 'ERR_VM_DYNAMIC_IMPORT_CALLBACK_MISSING' ||
    /^(Cannot use import statement|Invalid host defined options)/.test(error?.message);

  function describe(error, details) {
    if (isImport(error)) {
      return ['ImportError', 'import is not available here: use require()', 'import is not available here: use require()'];
    }
    if (util.types.isNativeError(error) || error instanceof Error) {
      return [String(error.name), String(error.message), stackOf(error, details)];
    }
    return ['Uncaught', inspect(error), `Uncaught ${inspect(error)}`];
  }

  function fail(error, details) {
    let parts;
    try {
      parts = describe(error, details);
    } catch {
      parts = ['Error', '<its text cannot be made>', ''];
    }
    sayError(parts);
  }

  function finish() {
    if (isBusy) {
      hasEnded = true;
      return;
    }
    const number = current;
    current = 0;
    session.post('Runtime.discardConsoleEntries');
    say('done', number, 0);
    if ((process.getActiveResourcesInfo?.().length ?? 0) > resources) {
      startCutter();
    }
  }

  // The value itself, of what the inspector says of it.
  function valueOf(remote) {
    if (remote.objectId !== undefined) {
      session.post('Runtime.callFunctionOn', {
        objectId: remote.objectId,
        functionDeclaration:
          'function () { "use strict"; globalThis[({}).constructor.getOwnPropertySymbols(globalThis).find((s) => s.description === "take")](this); }',
      });
      session.post('Runtime.releaseObject', { objectId: remote.objectId });
      const value = taken;
      taken = undefined;
      return value;
    }
    const text = remote.unserializableValue;
    if (text === undefined) {
      return remote.subtype === 'null' ? null : remote.value;
    }
    return text.endsWith('n') ? BigInt(text.slice(0, -1)) : text === '-0' ? -0 : Number(text);
  }

  function evaluated(number, error, answer) {
    if (number !== current) {
      return; // it was given up
    }
    if (error) {
      fail(new Error(error.message));
    } else if (answer.exceptionDetails) {
      const details = answer.exceptionDetails;
      fail(details.exception ? valueOf(details.exception) : new Error(details.text), details);
    } else if (answer.result.type !== 'undefined') {
      say('text', number, encoded(inspect(valueOf(answer.result))));
    }
    finish();
  }

  function interrupted() {
    isCut = false;
    if (current !== 0) {
      sayError(['Interrupted', 'the code was interrupted', 'Interrupted']);
      finish();
    }
  }

  // ---- running ----

  // A cell that looks like a block may be an object.
  function asExpression(code) {
    if (/^\s*\{[\s\S]*\}\s*$/.test(code)) {
      try {
        new vm.Script(`(${code}\n)`);
        return `(${code}\n)`;
      } catch {
        // it is a block
      }
    }
    return code;
  }

  // While a cell keeps node busy a signal breaks it off, and only then may one be sent: one that comes a moment earlier or later
  // ends node, or is seen in the next cell. So both sides read one byte out of a pipe: the other one before it sends a
  // signal, this one before it goes on. Who finds none knows of the other.
  function runBusy() {
    fs.writeSync(token, 't');
    post();
    try {
      fs.readSync(token, Buffer.alloc(1));
    } catch {
      for (;;) Atomics.wait(pause, 0, 0, 1); // until the signal comes
    }
  }

  // ---- what keeps node busy behind an await, or when its cell has ended ----

  // Nothing that comes is read meanwhile. A thread of its own is told by the other side (node.py) which cell is to be broken off,
  // and has the inspector call this amid the code that runs. As after an error that was met, node must then forget in whose name
  // it ran, or it ends. An order that comes late means a cell that has ended, and nothing is done.
  let cutter;
  let asyncWrap;
  try {
    asyncWrap = process.binding('async_wrap');
  } catch {
    // a node that no longer has it
  }
  function cut(number) {
    if (!isReading && (number === current || number > last)) {
      isCut = true;
      asyncWrap.clearAsyncIdStack();
      session.post('Runtime.terminateExecution');
    }
  }

  // It is connected only while it asks: node would wait for it at its end, and say so.
  function cutterMain() {
    const { Session } = require('inspector');
    const { workerData } = require('worker_threads');
    let isAsking = false;
    const orders = new (require('net').Socket)({ fd: workerData });
    orders.on('data', (data) => {
      const number = Number(String(data).trim().split('\n').pop());
      if (!isAsking) {
        const session = new Session();
        isAsking = true;
        session.connectToMainThread();
        const expression = `this[({}).constructor.getOwnPropertySymbols(this).find((s) => s.description === "cut")](${number})`;
        session.post('Runtime.evaluate', { expression }, () => {
          session.disconnect();
          isAsking = false;
        });
      }
    });
    orders.on('error', () => {});
  }

  // Takes some milliseconds and megabytes, so only once there is something that it may be needed for. Without it all goes on as
  // well: what cannot be broken off ends with node.
  function startCutter() {
    if (cutter === undefined && typeof asyncWrap?.clearAsyncIdStack === 'function') {
      try {
        const { Worker } = require('worker_threads');
        cutter = new Worker(`(${cutterMain})()`, {
          eval: true,
          workerData: cuts,
          resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
        });
        cutter.on('error', () => {});
        cutter.unref();
      } catch {
        cutter = null;
      }
    }
  }

  function run(number, code) {
    current = last = number;
    isCut = false;
    const expression = `${asExpression(code)}\n//# sourceURL=cell-${number}`;
    post = () =>
      cells.run(number, () =>
        session.post('Runtime.evaluate', { expression, replMode: true }, (error, answer) => evaluated(number, error, answer)),
      );
    hidden(RUN, runBusy);
    hidden(TAKE, (value) => {
      taken = value;
    });
    hidden(CUT, cut);
    let isBrokenOff = false;
    isBusy = true;
    hasEnded = false;
    try {
      trigger.runInThisContext({ breakOnSigint: true });
    } catch {
      isBrokenOff = true;
    }
    isBusy = false;
    if (isBrokenOff) {
      interrupted();
    } else if (hasEnded) {
      finish();
    } else if (GOES_ON.test(code)) {
      startCutter();
    }
  }

  // What a cell prints is told in order; what earlier cells have left running prints nowhere: it is not of this one.
  function keepApart(stream, kind) {
    const write = stream.write.bind(stream);
    stream.write = (data, encoding, done) => {
      const cell = cells.getStore();
      const bytes = typeof data === 'string' ? Buffer.from(data, typeof encoding === 'string' ? encoding : 'utf8') : data;
      if (!(bytes instanceof Uint8Array)) {
        return write(data, encoding, done); // which says what is wrong
      }
      for (let at = 0; at < bytes.length && current !== 0 && (cell === undefined || cell === current); at += PIECE) {
        say(kind, current, Buffer.from(bytes.subarray(at, at + PIECE)).toString('base64'));
      }
      const then = typeof encoding === 'function' ? encoding : done;
      if (typeof then === 'function') {
        process.nextTick(then);
      }
      return true;
    };
  }

  function offerModules() {
    const require = Module.createRequire('/home/user/');
    hidden('require', require);
    hidden('module', new Module('cell'));
    for (const name of Module.builtinModules) {
      if (!/[_/]/.test(name) && !(name in globalThis)) {
        Object.defineProperty(globalThis, name, {
          configurable: true,
          get: () => require(name),
          set: (value) => Object.defineProperty(globalThis, name, { configurable: true, enumerable: true, writable: true, value }),
        });
      }
    }
  }

  // ---- what comes ----

  let received = Buffer.alloc(0);
  function takeCell() {
    const ends = [received.indexOf(10)];
    if (ends[0] < 0) {
      return false;
    }
    const number = Number(received.subarray(0, ends[0]));
    const second = received.indexOf(10, ends[0] + 1);
    if (second < 0) {
      return false;
    }
    let end = second;
    for (let left = Number(received.subarray(ends[0] + 1, second)); left > 0; left--) {
      end = received.indexOf(10, end + 1);
      if (end < 0) {
        return false;
      }
    }
    const code = received.subarray(second + 1, end).toString();
    received = received.subarray(end + 1);
    if (number > 0) {
      run(number, code);
    } else if (-number === current) {
      interrupted();
    } else {
      say('done', -number, 0); // it has ended by itself, or by a signal
    }
    return true;
  }

  socket.on('data', (data) => {
    isReading = true;
    received = Buffer.concat([received, data]);
    while (takeCell());
    isReading = false;
  });
  socket.on('end', () => process.exit(0));
  socket.on('error', () => process.exit(0));
  // A signal breaks off what keeps node busy (runBusy); what waits is broken off by a line that says which cell is meant.
  process.on('SIGINT', () => {});
  const tell = (error) => isCut || process.stderr.write(`Uncaught ${util.inspect(error)}\n`);
  process.on('uncaughtException', tell);
  process.on('unhandledRejection', tell);
  process.argv = [process.argv[0]];
  keepApart(process.stdout, 'out');
  keepApart(process.stderr, 'err');
  session.connect();
  offerModules();
  const resources = process.getActiveResourcesInfo?.().length;
  say('shell', 0, process.pid);
})();
