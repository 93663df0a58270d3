// A few words of a shell, over the files of the sandbox: echo WORDS [> FILE] [>&2], cat FILE, ls [FOLDER], pwd, true, false,
// exit N, joined by && and ; and line breaks. $NAME is one of the environment variables. And for tests:
//
//     sleep N   keepalives until somebody ends the process       flood   output without end
//     cut       output, then the stream ends without an end      die     output, then the sandbox ends
//     reset     output, then a reset
import { below, isFile, isFolder, nameOf, resolvePath, writeFile } from './tree.mjs';

const wordsOf = (text, environment) => (text.match(/"[^"]*"|'[^']*'|\S+/g) ?? [])
  .map((word) => (word[0] === "'" ? word.slice(1, -1) : word.replace(/^"(.*)"$/s, '$1').replace(/\$(\w+)/g, (_, name) => environment[name] ?? '')));

function echo(one, world, words) {
  const at = words.findIndex((word) => word === '>' || word === '>&2');
  const text = `${(at < 0 ? words : words.slice(0, at)).join(' ')}\n`;
  if (words[at] === '>') {
    return writeFile(world.tree, resolvePath(words[at + 1]), Buffer.from(text)) ? 0 : 1;
  }
  one.print(text, words[at] === '>&2' ? 'stderr' : 'stdout');
  return 0;
}

function cat(one, world, [name]) {
  const path = resolvePath(name);
  if (!isFile(world.tree, path)) {
    one.print(`cat: ${name}: No such file or directory\n`, 'stderr');
    return 1;
  }
  one.print(world.tree.get(path));
  return 0;
}

function ls(one, world, [name = '.']) {
  const path = resolvePath(name);
  if (!isFolder(world.tree, path)) {
    one.print(`ls: cannot access '${name}': No such file or directory\n`, 'stderr');
    return 2;
  }
  one.print(below(world.tree, path, 1).map((entry) => `${nameOf(entry)}\n`).join(''));
  return 0;
}

function flood(one) {
  const { response } = one;
  const fill = () => {
    while (!one.isOver && !response.destroyed && one.print('x'.repeat(32768)));
  };
  response.on('drain', fill);
  fill();
}

const RUNS_ON = null;
const commands = {
  echo, cat, ls,
  pwd: (one) => { one.print('/home/user\n'); return 0; },
  true: () => 0,
  false: () => 1,
  sleep: (one) => { one.keepAlive(); return RUNS_ON; },
  flood: (one) => { flood(one); return RUNS_ON; },
  cut: (one) => { one.print('so far\n'); one.response.end(); return RUNS_ON; },
  reset: (one) => { one.print('so far\n'); setTimeout(() => one.response.socket?.resetAndDestroy(), 20); return RUNS_ON; },
};

// Runs the command line of the process; `end` ends the sandbox.
export function runShell(one, world, end) {
  let status = 0;
  for (const [, joint, text] of one.command.matchAll(/(^|&&|;|\n)((?:"[^"]*"|'[^']*'|(?!&&)[^;\n])*)/g)) {
    const [name, ...words] = wordsOf(text, world.environment);
    if (name === undefined || (joint === '&&' && status !== 0)) {
      continue;
    }
    if (name === 'exit') {
      return one.exit(Number(words[0] ?? status));
    }
    if (name === 'die') {
      one.print('so far\n');
      return setTimeout(() => end('kill'), 20);
    }
    const work = commands[name];
    if (!work) {
      one.print(`bash: line 1: ${name}: command not found\n`, 'stderr');
    }
    status = work ? work(one, world, words) : 127;
    if (status === RUNS_ON) {
      return undefined;
    }
  }
  return one.exit(status);
}
