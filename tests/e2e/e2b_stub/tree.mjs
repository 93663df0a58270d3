// The files of one sandbox, in memory: a path leads to a file's bytes, or to null for a folder.
const HOME = '/home/user';

export function newTree() {
  return new Map(['/', '/home', HOME, '/tmp'].map((path) => [path, null]));
}

// An absolute path without '.', '..' and double slashes. Relative ones begin in the user's home.
export function resolvePath(path) {
  const whole = path.startsWith('~/') ? `${HOME}/${path.slice(2)}` : path.startsWith('/') ? path : `${HOME}/${path}`;
  const parts = [];
  for (const part of whole.split('/')) {
    if (part === '..') {
      parts.pop();
    } else if (part && part !== '.') {
      parts.push(part);
    }
  }
  return `/${parts.join('/')}`;
}

export const nameOf = (path) => path.slice(path.lastIndexOf('/') + 1);
export const parentOf = (path) => path.slice(0, path.lastIndexOf('/')) || '/';
export const isFolder = (tree, path) => tree.get(path) === null;
export const isFile = (tree, path) => tree.has(path) && tree.get(path) !== null;

// The folder and those above it; false where a file is in the way.
export function makeFolders(tree, path) {
  if (tree.has(path)) {
    return isFolder(tree, path);
  }
  const isMade = makeFolders(tree, parentOf(path));
  if (isMade) {
    tree.set(path, null);
  }
  return isMade;
}

export function writeFile(tree, path, bytes) {
  const isPossible = !isFolder(tree, path) && makeFolders(tree, parentOf(path));
  if (isPossible) {
    tree.set(path, bytes);
  }
  return isPossible;
}

// What is in a folder, down to so many levels, by name.
export function below(tree, path, depth) {
  const prefix = path === '/' ? '/' : `${path}/`;
  return [...tree.keys()].filter((one) => one !== '/' && one.startsWith(prefix) && one.slice(prefix.length).split('/').length <= depth).sort();
}

export function remove(tree, path) {
  for (const one of [path, ...below(tree, path, Infinity)]) {
    tree.delete(one);
  }
}

export function move(tree, from, to) {
  for (const one of [...below(tree, from, Infinity), from]) {
    tree.set(to + one.slice(from.length), tree.get(one));
    tree.delete(one);
  }
}

// As filesystem.Filesystem tells of it.
export function entryOf(tree, path) {
  const isDirectory = isFolder(tree, path);
  return {
    name: nameOf(path), path, type: isDirectory ? 'FILE_TYPE_DIRECTORY' : 'FILE_TYPE_FILE',
    size: String(isDirectory ? 4096 : tree.get(path).length), mode: isDirectory ? 493 : 420,
    permissions: isDirectory ? 'drwxr-xr-x' : '-rw-r--r--', owner: 'user', group: 'user', modifiedTime: '2026-01-02T03:04:05.678Z',
  };
}
