// The kernel of a JavaScript or TypeScript context.
//
// Runs inside a function of the bootstrap's, which gives `control` (the guest's socket, as a descriptor),
// `require` and `load` (an import() that works). The frames are those of python/driver.py. Cells are evaluated by V8's own REPL mode,
// through an inspector session of this process: let and const may be declared again, await works at
// the top level, and the value of the last expression comes back. One long file, because it is handed over as one.
'use strict';
const inspector = require('inspector');
const net = require('net');
const nodeModule = require('module');
const path = require('path');
const url = require('url');
const util = require('util');
const vm = require('vm');

const session = new inspector.Session();
session.connect();
const socket = new net.Socket({fd: control, readable: true, writable: true});
const inner = Object.create(null);  // what the code around a cell needs of us
let running = null;                 // {count, fail, finish, ...} of the cell that runs

function sendEvent(event) {
  const data = Buffer.from(JSON.stringify(event));
  socket.write(Buffer.concat([Buffer.from(`event ${data.length}\n`), data]));
}

// --- from a cell to a script: what only modules may say is said otherwise

// The places of `import` and `export` that are neither in a string, a comment nor a template.
function findWords(code) {
  const token =
      /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|[\w$.#]+|[^]/g;
  const words = [];
  let depth = 0;
  let fresh = true;  // a statement may begin here
  for (const found of code.matchAll(token)) {
    const text = found[0];
    const word = text.match(/^(?:import\.meta|import|export)(?=\.|$)/);
    if (word) words.push({at: found.index, text: word[0], isStatement: fresh && depth === 0});
    if (/^\/[/*]/.test(text)) continue;
    if ('({['.includes(text)) ++depth;
    if (')}]'.includes(text)) --depth;
    if (/^\s$/.test(text)) {
      if (text === '\n') fresh = true;
      continue;
    }
    fresh = text === ';' || text === '}';
  }
  return words;
}

const kImport =
    /^import\s+(?:(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|\{([^}]*)\}\s*)?from\s*)?(['"])((?:(?!\4).)+)\4(?:\s*(?:with|assert)\s*(\{[^}]*\}))?\s*;?/;
const kExport = /^export\s*(?:\{[^}]*\}|\*(?:\s*as\s+[\w$]+)?)\s*(?:from\s*(['"])((?:(?!\1).)+)\1)?\s*;?/;

function importText(found) {
  const [, standard, all, named, , name, attributes] = found;
  const load = `await $hearth.load(${JSON.stringify(name)}${attributes ? `, {with: ${attributes}}` : ''})`;
  const lines = [];
  const fields = (named || '').replace(/\/\/[^\n]*|\/\*[^]*?\*\//g, '').split(',').map((field) => field.trim()).filter(Boolean)
      .filter((field) => !field.startsWith('type '))
      .map((field) => field.replace(/\s+as\s+/, ': '));
  if (standard) fields.unshift(`default: ${standard}`);
  if (all) lines.push(`const ${all} = ${load}`);
  if (fields.length > 0) lines.push(`const {${fields.join(', ')}} = ${load}`);
  if (lines.length === 0) lines.push(load);
  return lines.join('; ') + ';';
}

function toScript(code) {
  if (!/\b(?:import|export)\b/.test(code)) return code;
  let script = '';
  let end = 0;
  for (const word of findWords(code)) {
    if (word.at < end) continue;
    const rest = code.slice(word.at);
    let from = null;
    let to = '';
    if (word.text === 'import.meta') {
      [from, to] = [rest.match(/^import\.meta/), '$hearth.meta'];
    } else if (word.text === 'import' && (from = rest.match(/^import\s*\(/))) {
      to = '$hearth.load(';
    } else if (word.text === 'import' && word.isStatement && (from = rest.match(kImport))) {
      to = importText(from);
    } else if (word.text === 'export' && word.isStatement && (from = rest.match(kExport))) {
      to = from[2] ? `await $hearth.load(${JSON.stringify(from[2])});` : '';
    } else if (word.isStatement && (from = rest.match(/^export\s+(?:default\s+)?(?!\{|\*)/))) {
      to = '';
    }
    if (!from) continue;
    script += code.slice(end, word.at) + to;
    end = word.at + from[0].length;
  }
  return script + code.slice(end);
}

// Relative names are meant from where the kernel is now.
function here() {
  return path.join(process.cwd(), 'cell.js');
}

// Attributes were called `assert` before they were called `with`; each version of node looks for its own word.
inner.load = (name, options) => {
  name = String(name);
  if (options?.with || options?.assert) {
    const attributes = options.with || options.assert;
    options = {...options, with: attributes, assert: attributes};
  }
  if (/^\.{0,2}\//.test(name)) name = url.pathToFileURL(path.resolve(name)).href;
  else if (!/^[a-z]+:/.test(name) && !nodeModule.builtinModules.includes(name)) {
    try {
      name = url.pathToFileURL(nodeModule.createRequire(here()).resolve(name)).href;
    } catch {
      // a package for import only: the loader finds it from where the kernel began
    }
  }
  return load(name, options);
};
Object.defineProperty(inner, 'meta', {
  get: () => ({url: url.pathToFileURL(here()).href, filename: here(), dirname: process.cwd()})});

// --- TypeScript

function tryRequire(name) {
  for (const base of [here(), path.join(path.dirname(process.execPath), '../lib/node_modules/x.js'),
                      '/usr/lib/node_modules/x.js', '/usr/local/lib/node_modules/x.js', '/usr/share/nodejs/x.js']) {
    try {
      return nodeModule.createRequire(base)(name);
    } catch {
      // not from there
    }
  }
  return null;
}

let stripper = null;
function findStripper() {
  if (nodeModule.stripTypeScriptTypes) {
    process.removeAllListeners('warning');
    return (code) => {
      try {
        return nodeModule.stripTypeScriptTypes(code, {mode: 'transform'});
      } catch (error) {
        if (error.code === 'ERR_INVALID_ARG_VALUE') return nodeModule.stripTypeScriptTypes(code);
        throw error;
      }
    };
  }
  let tool;
  if ((tool = tryRequire('typescript'))) {
    const options = {target: 'esnext', module: 'esnext', isolatedModules: true, verbatimModuleSyntax: true};
    return (code) => tool.transpile(code, options);
  }
  if ((tool = tryRequire('esbuild'))) {
    const tsconfigRaw = {compilerOptions: {verbatimModuleSyntax: true}};
    return (code) => tool.transformSync(code, {loader: 'ts', target: 'esnext', tsconfigRaw}).code;
  }
  if ((tool = tryRequire('sucrase'))) {
    const options = {transforms: ['typescript'], disableESTransforms: true, keepUnusedImports: true};
    return (code) => tool.transform(code, options).code;
  }
  const error = new Error(`TypeScript needs node 22.13 or later (this is ${process.version}), ` +
                          "or one of the packages 'typescript', 'esbuild' and 'sucrase'");
  error.stack = `Error: ${error.message}`;  // where we noticed is nobody's business
  throw error;
}

function withoutTypes(code) {
  stripper = stripper || findStripper();
  return stripper(code);
}

// --- rich results: what ijavascript calls `$$`, and the methods it asks values for

const keys = {
  'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'image/svg+xml': 'svg', 'image/png': 'png',
  'image/jpeg': 'jpeg', 'application/pdf': 'pdf', 'text/latex': 'latex', 'application/json': 'json',
  'application/javascript': 'javascript'};
const methods = {'text/html': '_toHtml', 'image/svg+xml': '_toSvg', 'image/png': '_toPng', 'image/jpeg': '_toJpeg'};

function bundleOf(value) {
  const bundle = {'text/plain': textOf(value)};
  if (value === null || !['object', 'function'].includes(typeof value)) return bundle;
  const ask = (method) => {
    try {
      return typeof value[method] === 'function' ? value[method]() : undefined;
    } catch {
      return undefined;  // it cannot show itself this way
    }
  };
  for (const [mime, method] of Object.entries(methods)) bundle[mime] = ask(method);
  const whole = ask('_toMime');
  return typeof whole === 'object' ? Object.assign(bundle, whole) : bundle;
}

function sendResult(bundle, isMain) {
  const event = {type: 'result'};
  const extra = {};
  for (const [mime, content] of Object.entries(bundle)) {
    if (content === undefined || content === null) continue;
    const plain = content instanceof Uint8Array ? Buffer.from(content).toString('base64') : content;
    if (keys[mime]) event[keys[mime]] = plain;
    else extra[mime] = plain;
  }
  try {
    sendEvent({...event, is_main_result: isMain, extra});
  } catch {
    sendEvent({type: 'result', text: textOf(bundle), is_main_result: isMain, extra: {}});  // no JSON can be made of it
  }
}

// What is shown is the cell's result, in the place of its value; with `more`, others will follow.
function show(bundle, more = false) {
  sendResult(bundle, !more);
  if (more || running === null) return;
  running.isShown = true;
  if (running.waits && running.isEvaluated) running.finish();
}

const display = {
  mime: show,
  sendResult: (value, more) => show(bundleOf(value), more),
  sendError: (error) => running?.fail(error),
  // The cell lasts until something is shown or done() is called.
  async: (waits = true) => {
    if (running !== null) running.waits = waits;
  },
  done: () => {
    if (running?.waits && running.isEvaluated) running.finish();
    else display.async(false);
  },
};
for (const name of ['text', 'html', 'svg', 'png', 'jpeg', 'json']) {
  const mime = Object.keys(keys).find((each) => keys[each] === name);
  display[name] = (content, more) => show({[mime]: content}, more);
}

// --- running a cell

// Gives {value} or {error, failed} to `done`; the inspector hands out a name for the value, not the value.
function evaluate(script, done) {
  session.post('Runtime.evaluate',
               {expression: script, replMode: true, awaitPromise: true, objectGroup: 'cell', silent: false},
               (failure, reply) => {
    if (failure) return done({error: new Error(failure.message), failed: true});
    const thrown = reply.exceptionDetails;
    unwrap(thrown ? thrown.exception || {type: 'string', value: thrown.text} : reply.result, (value) => {
      session.post('Runtime.releaseObjectGroup', {objectGroup: 'cell'});
      done(thrown ? {error: value, failed: true} : {value});
    });
  });
}

function unwrap(remote, done) {
  if (remote.objectId === undefined) {
    if (remote.unserializableValue === undefined) return done(remote.value);
    const text = remote.unserializableValue;
    return done(text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text));
  }
  session.post('Runtime.callFunctionOn',
               {objectId: remote.objectId, functionDeclaration: 'function() { $hearth.taken = this; }'},
               () => {
    const value = inner.taken;
    inner.taken = undefined;
    // `this` of a sloppy function is an object: primitives do not come this way, except symbols.
    done(remote.type === 'symbol' ? value.valueOf() : value);
  });
}

function textOf(value) {
  const text = typeof value === 'string' ? value : util.inspect(value, {maxArrayLength: null, depth: 4});
  return text;
}

// From here on a stack is ours: what called the cell.
const kOurs = /^\s*(?:at )?.*(?:Session\.post|\[eval\]|node:inspector)/;

function traceOf(error) {
  const lines = String(error.stack || error).split('\n');
  const ours = lines.findIndex((line) => /^\s+at /.test(line) && kOurs.test(line));
  return (ours < 0 ? lines : lines.slice(0, ours)).join('\n');
}

// Also where cells look at it themselves. Who wants stacks of another form sets his own.
Error.prepareStackTrace = (error, frames) => {
  const lines = frames.map((frame) => String(frame));
  const ours = lines.findIndex((line) => kOurs.test(line));
  let head;
  try {
    head = Error.prototype.toString.call(error);
  } catch {
    head = 'Error';
  }
  return [head, ...(ours < 0 ? lines : lines.slice(0, ours)).map((line) => `    at ${line}`)].join('\n');
};

function errorEvent(error) {
  if (!(error instanceof Error)) {
    const text = textOf(error);
    return {type: 'error', name: 'Error', value: text, traceback: `Uncaught ${text}`};
  }
  return {type: 'error', name: String(error.name), value: String(error.message), traceback: traceOf(error)};
}

function setVariables(block) {
  for (const entry of block.toString().split('\0')) {
    const equals = entry.indexOf('=');
    if (equals > 0) process.env[entry.slice(0, equals)] = entry.slice(equals + 1);
    else if (entry) delete process.env[entry];
  }
}

function interrupted() {
  const error = new Error('The cell was interrupted');
  error.name = 'Interrupted';
  error.stack = 'Interrupted: The cell was interrupted';
  return error;
}

// As _, unless a cell has one of its own.
let remembered;
function remember(value) {
  if (Object.is(globalThis._, remembered)) globalThis._ = remembered = value;
}

function runCell(cell) {
  setVariables(cell.sets);
  const state = {count: cell.count, isOver: false, isEvaluated: false, isShown: false, waits: false};
  const finish = (tell) => {
    if (state.isOver) return;  // interrupted before, and finished after all
    state.isOver = true;
    running = null;
    setVariables(cell.resets);
    try {
      tell();
    } catch (error) {
      sendEvent(errorEvent(error));  // a value that cannot be shown
    }
    socket.write(`end ${cell.count} 0\n`);
    next();
  };
  state.fail = (error) => finish(() => sendEvent(errorEvent(error)));
  state.finish = (value) => finish(() => {
    if (value === undefined) return;
    remember(value);
    if (!state.isShown) sendResult(bundleOf(value), true);
  });
  running = state;
  inner.run = () => {
    const code = cell.code.toString();
    const script = toScript(cell.language === 'typescript' ? withoutTypes(code) : code);
    evaluate(script, ({value, error, failed}) => {
      state.isEvaluated = true;
      if (failed) return state.fail(error);
      if (state.waits && !state.isShown) return;
      // `main()` at the end of a cell: what it will give is meant, and the cell lasts until then.
      if (util.types.isPromise(value)) Promise.prototype.then.call(value, state.finish, state.fail);
      else state.finish(value);
    });
  };
  try {
    // An endless loop in the cell can be interrupted because this script can.
    vm.runInThisContext('$hearth.run()', {breakOnSigint: true});
  } catch (error) {
    running?.fail(error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interrupted() : error);
  }
}

// --- what comes in

let pieces = [];
let have = 0;
let cells = [];
let open = null;  // a cell whose bytes are still coming

function next() {
  if (running === null && cells.length > 0) setImmediate(() => {
    if (running === null && cells.length > 0) runCell(cells.shift());
  });
}

function take(data, count) {
  return [data.subarray(0, count), data.subarray(count)];
}

function read() {
  while (true) {
    if (open === null) {
      let data = Buffer.concat(pieces);
      const end = data.indexOf(10);
      if (end < 0) return;
      const words = data.subarray(0, end).toString().split(' ');
      data = data.subarray(end + 1);
      pieces = [data];
      have = data.length;
      if (words[0] === 'interrupt' && running?.count === words[1]) running.fail(interrupted());
      if (words[0] !== 'run') continue;
      open = {count: words[1], language: words[2], sizes: words.slice(3, 6).map(Number)};
    }
    const [sets, resets, code] = open.sizes;
    if (have < sets + resets + code) return;
    let data = Buffer.concat(pieces);
    [open.sets, data] = take(data, sets);
    [open.resets, data] = take(data, resets);
    [open.code, data] = take(data, code);
    pieces = [data];
    have = data.length;
    cells.push(open);
    open = null;
    if (running === null) runCell(cells.shift());
  }
}

socket.on('data', (data) => {
  pieces.push(data);
  have += data.length;
  read();
});
socket.on('end', () => process.exit(0));
socket.on('error', () => process.exit(0));

// Interrupts what loops, see runCell(). For what waits the guest says `interrupt` as well: a signal may
// come late, when another cell runs.
process.on('SIGINT', () => {});
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => console.error(`Uncaught ${error instanceof Error ? traceOf(error) : textOf(error)}`));
}

Object.defineProperty(globalThis, '$hearth', {value: inner, enumerable: false});
Object.defineProperty(globalThis, '$$', {value: display, enumerable: false, writable: true, configurable: true});
Object.defineProperty(globalThis, 'require', {
  value: Object.assign((name) => nodeModule.createRequire(here())(name), {resolve: (name) => nodeModule.createRequire(here()).resolve(name), cache: require.cache}),
  enumerable: false, writable: true, configurable: true});
globalThis.module = {exports: {}};
globalThis.exports = globalThis.module.exports;
for (const name of nodeModule.builtinModules) {
  if (/[/_]/.test(name) || name in globalThis) continue;
  Object.defineProperty(globalThis, name, {
    get: () => require(name),
    set: (value) => Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: true}),
    enumerable: false, configurable: true});
}
delete globalThis.__dirname;
delete globalThis.__filename;
socket.write('ready\n');
