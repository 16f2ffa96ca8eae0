// Starts a Lean program on the portable toolchain:
//   node boot.js MODULE [ARGUMENT...]   a compiled module
//   node boot.js --run FILE             a source file, in the slow way (to compile the builder itself, once)
//
// MODULE's `main` is run by Lean's interpreter on the main thread. `lean --run` would elaborate the program on worker threads,
// where every file operation is a round trip to this one; calling initialize, importModules and run_main ourselves starts in a
// fifth of the time.
//
// LEANGUARD_PORTABLE   the installation: js/lean.js, js/lean.wasm, lib/
// LEANGUARD_LEAN_PATH  folders with .olean files, separated by ':', searched after the core library
// LEANGUARD_FRAMED=1   (always set here, for the program) what the program prints reaches stdout only as frames: U+001E, a line,
//                      a newline; a frame is passed on without its mark and followed by an empty line. Everything else, which
//                      is this build of Lean talking to itself, is dropped.
// LEANGUARD_DEBUG=1    ... or goes to stderr, with the time of each step
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { Worker } = require('worker_threads');

const home = path.join(process.env.LEANGUARD_PORTABLE, 'js');
const library = path.join(process.env.LEANGUARD_PORTABLE, 'lib');
const [, , moduleName, ...programArguments] = process.argv;
const slow = moduleName === '--run';
const debug = process.env.LEANGUARD_DEBUG === '1';
const pause = new Int32Array(new SharedArrayBuffer(4));
const started = performance.now();
const lap = (what) => debug && say(`[boot] ${what} ${(performance.now() - started).toFixed(0)} ms\n`);

process.env.LEANGUARD_FRAMED = '1';
if (slow) process.env.LEANGUARD_THREADS = '2'; // `lean --run` stands still unless its threads are there beforehand

// ---- stdin, stdout, stderr ------------------------------------------------------------------------------------------------

function writeAll(fd, bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

// Whoever started us may never read stderr, and a full pipe would block: at most this much is written, all told.
let stderrLeft = debug ? Infinity : 8192;
function say(text) {
  const bytes = Buffer.from(text).subarray(0, stderrLeft);
  stderrLeft -= bytes.length;
  try {
    writeAll(2, bytes);
  } catch {
    // stderr is closed: nobody to tell
  }
}

const MARK = 0x1e;
const NEWLINE = 0x0a;
let frame = null; // the pieces of the frame being received, or null outside one
let noise = ''; // the end of what was dropped, shown when the program ends badly

function drop(bytes) {
  if (bytes.length === 0) return;
  const text = Buffer.from(bytes).toString('utf8');
  if (debug) say(text);
  else noise = (noise + text).slice(-4096);
}

function receive(bytes) {
  for (let at = 0; at < bytes.length;) {
    if (frame === null) {
      const mark = bytes.indexOf(MARK, at);
      drop(bytes.subarray(at, mark < 0 ? bytes.length : mark));
      if (mark < 0) return;
      frame = [];
      at = mark + 1;
    }
    const end = bytes.indexOf(NEWLINE, at);
    frame.push(Buffer.from(bytes.subarray(at, end < 0 ? bytes.length : end))); // a copy: this is Lean's memory
    if (end < 0) return;
    frame.push(Buffer.from('\n\n'));
    writeAll(1, Buffer.concat(frame));
    frame = null;
    at = end + 1;
  }
}

function readInput(target) {
  for (;;) {
    try {
      return fs.readSync(0, target, 0, target.length);
    } catch (error) {
      if (error.code === 'EOF') return 0;
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 2);
    }
  }
}

function replaceStreams(FS) {
  const bytes = (buffer, offset, length) => new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);
  const replace = (fd, operations) => {
    const stream = FS.streams[fd];
    stream.stream_ops = { ...stream.stream_ops, ...operations };
  };
  // Reads end where what has arrived ends, so that a request is handed over at once.
  // Lean's memory is shared between threads, which readSync refuses: read into a buffer of our own.
  let staging = Buffer.alloc(65536);
  replace(0, {
    read: (_stream, buffer, offset, length) => {
      if (staging.length < length) staging = Buffer.alloc(length);
      const count = readInput(staging.subarray(0, length));
      bytes(buffer, offset, length).set(staging.subarray(0, count));
      return count;
    },
  });
  replace(1, { write: (_stream, buffer, offset, length) => (receive(bytes(buffer, offset, length)), length), fsync: () => 0 });
  replace(2, { write: (_stream, buffer, offset, length) => (drop(bytes(buffer, offset, length)), length), fsync: () => 0 });
}

function fail(text) {
  say(`${debug ? '' : noise}\nleanguard: the Lean program ended badly: ${text}\n`); // last, where it is read
  process.exit(70);
}
const explain = (error) => {
  // Thrown by Emscripten when a worker thread has crashed, so that the event loop gets to the message that tells why.
  if (error === 'unwind') setTimeout(() => fail('a thread of it crashed'), 2000);
  else fail(`${(error && error.errno) || ''} ${(error && error.stack) || error}`);
};
process.on('uncaughtException', explain);
process.on('unhandledRejection', explain);

// ---- the parent ------------------------------------------------------------------------------------------------------------

// Closed stdin ends a program that waits for input; one that is busy has to be stopped when nobody is left to read its answer.
new Worker(
  `const { workerData } = require('worker_threads');
   setInterval(() => { if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL'); }, 500);`,
  { eval: true, workerData: process.ppid },
).unref();

// ---- Lean's objects (lean.h, 32-bit) -----------------------------------------------------------------------------------------

function leanObjects(Module) {
  const x = Module.wasmExports;
  const words = () => new Uint32Array(Module.wasmMemory.buffer);
  const octets = () => new Uint8Array(Module.wasmMemory.buffer);
  const string = (text) => {
    const encoded = Buffer.from(text + '\0');
    const at = x.malloc(encoded.length);
    octets().set(encoded, at);
    return x.lean_mk_string(at);
  };
  const constructor = (tag, fields, scalars = []) => {
    const size = 8 + 4 * fields.length + scalars.length;
    const at = x.malloc(size + 8);
    words()[at >> 2] = 0; // not counted: these few objects live as long as the process
    octets().set([size & 255, size >> 8, fields.length, tag], at + 4);
    words().set(fields, (at >> 2) + 2);
    octets().set(scalars, at + 8 + 4 * fields.length);
    return at;
  };
  const array = (items) => {
    const at = x.malloc(16 + 4 * items.length);
    words().set([0, 0, items.length, items.length, ...items], at >> 2);
    octets()[at + 7] = 246;
    return at;
  };
  const list = (items) => items.reduceRight((tail, item) => constructor(1, [item, tail]), 1);
  const name = (text) => text.split('.').reduce((parent, part) => x.lean_name_mk_string(parent, string(part)), 1);
  const constant = (symbol) => words()[x[symbol].value >> 2];
  const result = (io, what) => {
    if (octets()[io + 7] !== 0) {
      x.lean_io_result_show_error(io);
      fail(`${what} failed`);
    }
    return words()[(io >> 2) + 2];
  };
  return { x, words, string, constructor, array, list, name, constant, result };
}

// The main thread's stack in Lean's memory has 64 KiB, below it lie Lean's variables, and nothing checks where it ends. Deep recursion
// wrote over them. With a large one, the other stack ends first, V8's own, which is checked.
const STACK_BYTES = 64 << 20;

function enlargeStack({ wasmExports: x }) {
  const end = (x.malloc(STACK_BYTES) + 15) & ~15;
  const base = (end + STACK_BYTES - 32) & ~15;
  x.emscripten_stack_set_limits(base, end);
  x._emscripten_stack_restore(base);
}

const RUN_MAIN = '_ZN4lean2ir8run_mainERKNS_16elab_environmentERKNS_7optionsERKNS_8list_refINS_10string_refEEE';

function runProgram(Module) {
  const { x, words, string, constructor, array, list, name, constant, result } = leanObjects(Module);
  replaceStreams(Module.FS);
  lap('runtime');
  x.lean_initialize();
  lap('initialized');
  const folders = ['/lib/lean', ...(process.env.LEANGUARD_LEAN_PATH || '').split(':').filter(Boolean)];
  result(x.l_Lean_initSearchPath(string('/'), list(folders.map(string))), 'setting the search path');
  x.lean_enable_initializer_execution();
  x.lean_io_mark_end_initialization();
  x.lean_init_task_manager_using(1); // elaboration makes promises, which need a task manager
  const options = constant('l_Lean_Options_empty');
  const imports = array([constructor(0, [name(moduleName)], [0, 1, 0])]);
  const trust = 1024;
  const environment = result(
    x.l_Lean_importModules(imports, options, trust, array([]), 0, 1, 2, constant('l_Lean_NameSet_empty')),
    `importing ${moduleName}`,
  );
  lap('imported');
  const references = x.malloc(16);
  words().set([environment, options, list(programArguments.map(string))], references >> 2);
  const code = x[RUN_MAIN](references, references + 4, references + 8);
  lap('main done');
  process.exit(code);
}

// ---- lean.js -----------------------------------------------------------------------------------------------------------------

if (!moduleName) fail('usage: node boot.js MODULE [ARGUMENT...]');

globalThis.Module = {
  noInitialRun: !slow,
  arguments: slow ? process.argv.slice(2) : [],
  thisProgram: '/bin/lean',
  locateFile: (file) => path.join(home, file),
  mainScriptUrlOrBlob: path.join(home, 'lean.js'), // worker threads load this file
  aside: (text) => drop(Buffer.from(text)),
  onAbort: (what) => fail(String(what)),
  preRun: [() => {
    const { FS, NODEFS, ENV } = Module;
    // What the program may see of our environment. This build writes a profile where it is started, unless told otherwise.
    Object.assign(ENV, process.env, { LLVM_PROFILE_FILE: '/dev/null', LEAN_PATH: '/lib/lean' });
    const mount = (root, at) => {
      FS.mkdirTree(at);
      FS.mount(NODEFS, { root }, at);
    };
    // Paths are the same inside and outside. `lean --run` mounts two folders itself.
    const left = ['dev', 'proc', 'sys', 'lib', ...(slow ? ['home', 'tmp'] : [])];
    for (const entry of fs.readdirSync('/')) {
      if (left.includes(entry)) continue;
      try {
        const root = fs.realpathSync('/' + entry);
        if (fs.statSync(root).isDirectory()) mount(root, '/' + entry);
      } catch {
        // not ours to read
      }
    }
    mount(library, '/lib/lean');
    if (slow) process.env.LEAN_PATH = '/lib/lean';
    else FS.chdir(process.cwd());
  }],
  onRuntimeInitialized: () => {
    enlargeStack(Module);
    if (slow) replaceStreams(Module.FS);
    else runProgram(Module);
  },
};

const file = path.join(home, 'lean.js');
const source = fs.readFileSync(file, 'utf8');
new vm.Script(`(function(require,module,__filename,__dirname,exports){${source}\n})`, { filename: file })
  .runInThisContext()(require, { exports: {} }, file, home, {});
