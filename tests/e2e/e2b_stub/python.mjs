// A few words of Python, enough that a session's variables, files and errors show:
//
//     x = 3; y = (x + 4) * -2      integers with + - * and parentheses, texts in quotes, names
//     print("x is", x)             what it prints goes to `out.print`
//     open("a.txt").read()         a file of the sandbox;  open("a.txt", "w").write("text") makes one
//     os.environ["NAME"]           one of the sandbox's environment variables
//     y + 1                        the last expression's value is the result
//
// Anything else is a SyntaxError.
import { isFile, resolvePath, writeFile } from './tree.mjs';

export class PythonError extends Error {
  constructor(name, value, line) {
    super(value);
    Object.assign(this, { pythonName: name, line });
  }
}

const TOKEN = /\s*(?:(\d+)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(\.?[A-Za-z_][\w.]*)|([-+*()=,[\]])|(#.*))/y;

function tokensOf(line) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (line.slice(TOKEN.lastIndex).trim()) {
    const found = TOKEN.exec(line);
    if (!found) {
      throw new PythonError('SyntaxError', 'invalid syntax');
    }
    const [, number, text, name, sign, comment] = found;
    if (comment === undefined) {
      tokens.push({ number, text, name, sign });
    }
  }
  return tokens;
}

const unquoted = (text) => text.slice(1, -1).replace(/\\(.)/g, (_, one) => ({ n: '\n', t: '\t' })[one] ?? one);
export const repr = (value) => (typeof value === 'string' ? `'${value.replace(/\n/g, '\\n')}'` : String(value));

class Line {
  constructor(tokens, world) {
    Object.assign(this, { tokens, world, at: 0 });
  }

  sign(text) {
    const isThere = this.tokens[this.at]?.sign === text;
    this.at += isThere ? 1 : 0;
    return isThere;
  }

  need(text) {
    if (!this.sign(text)) {
      throw new PythonError('SyntaxError', 'invalid syntax');
    }
  }

  sum() {
    let value = this.product();
    for (;;) {
      if (this.sign('+')) {
        value += this.product();
      } else if (this.sign('-')) {
        value -= this.product();
      } else {
        return value;
      }
    }
  }

  product() {
    let value = this.primary();
    while (this.sign('*')) {
      value *= this.primary();
    }
    return value;
  }

  primary() {
    if (this.sign('-')) {
      return -this.primary();
    }
    if (this.sign('(')) {
      const value = this.sum();
      this.need(')');
      return value;
    }
    const { number, text, name } = this.tokens[this.at++] ?? {};
    if (number !== undefined) {
      return BigInt(number);
    }
    if (text !== undefined) {
      return unquoted(text);
    }
    if (name === undefined) {
      throw new PythonError('SyntaxError', 'invalid syntax');
    }
    return this.named(name);
  }

  named(name) {
    if (name === 'os.environ' && this.sign('[')) {
      const key = this.sum();
      this.need(']');
      if (!(key in this.world.environment)) {
        throw new PythonError('KeyError', repr(key));
      }
      return this.world.environment[key];
    }
    if (name === 'open' && this.sign('(')) {
      return this.opened();
    }
    if (!this.world.variables.has(name)) {
      throw new PythonError('NameError', `name '${name}' is not defined`);
    }
    return this.world.variables.get(name);
  }

  // open(PATH).read() or open(PATH, "w").write(TEXT)
  opened() {
    const shown = this.sum();
    const path = resolvePath(shown);
    const isWriting = this.sign(',') && this.sum() === 'w';
    this.need(')');
    this.at += 1; // .read or .write
    this.need('(');
    if (isWriting) {
      const text = this.sum();
      this.need(')');
      writeFile(this.world.tree, path, Buffer.from(text));
      return BigInt(text.length);
    }
    this.need(')');
    if (!isFile(this.world.tree, path)) {
      throw new PythonError('FileNotFoundError', `[Errno 2] No such file or directory: '${shown}'`);
    }
    return this.world.tree.get(path).toString();
  }

  print() {
    const parts = [];
    this.need('(');
    while (!this.sign(')')) {
      parts.push(String(this.sum()));
      this.sign(',');
    }
    this.world.out.print(`${parts.join(' ')}\n`);
  }

  // The statement's value, if it has one.
  statement() {
    const [first, second] = this.tokens;
    let value;
    if (first.name === 'print' && second?.sign === '(') {
      this.at = 1;
      this.print();
    } else if (first.name && second?.sign === '=') {
      this.at = 2;
      this.world.variables.set(first.name, this.sum());
    } else {
      value = this.sum();
    }
    if (this.at !== this.tokens.length) {
      throw new PythonError('SyntaxError', 'invalid syntax');
    }
    return value;
  }
}

const parted = (text) => text.match(/(?:[^;"'#]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*|["'])+/g) ?? [];

// Runs it in `world`: variables, environment, tree, out. The last statement's value, or undefined. Throws PythonError.
export function runPython(code, world) {
  let value;
  code.split('\n').forEach((text, index) => {
    try {
      for (const part of parted(text)) {
        const tokens = tokensOf(part);
        value = tokens.length ? new Line(tokens, world).statement() : value;
      }
    } catch (error) {
      throw error instanceof PythonError ? new PythonError(error.pythonName, error.message, index + 1) : error;
    }
  });
  return value;
}
