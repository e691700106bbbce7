// The JavaScript kernel's first half, in the thread where the code runs: what code finds there besides node's own.
//
// The other half, worker.mjs, has the socket. It has code evaluated here through node's inspector, as a browser's console
// does, and can end code that never returns because it does not run in this thread. The inspector is asked from here and
// not across threads: the thread that ends an evaluation must not find the inspector still busy with it.

import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

// Must survive: an error in a timer ends neither the process nor what the user has built up in it.
const report = (error) => console.error(error);

/**
 * Lets a stream print at once. What was printed has to be in the pipe before the other half says that the code is done,
 * and a stream that was writing when code was ended by force would wait for ever.
 */
function print(stream) {
  stream._handle?.setBlocking?.(true);
  stream.write = (chunk, encoding, callback) => {
    const data = typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk;
    for (let place = 0; place < data.length; ) place += writeSync(stream.fd, data, place);
    const done = typeof encoding === 'function' ? encoding : callback;
    if (done) process.nextTick(done);
    return true;
  };
}

/** Starts the kernel. `load` imports modules as seen from the context's directory. */
export function start(load, language, descriptor) {
  const hidden = { enumerable: false, configurable: true, writable: true };
  const here = `${process.cwd()}/`;
  Object.defineProperties(globalThis, {
    require: { value: createRequire(here), ...hidden },
    module: { value: { exports: {} }, ...hidden },
    __dirname: { value: process.cwd(), ...hidden },
    __filename: { value: `${here}code.js`, ...hidden },
    __sandyardImport: { value: load, ...hidden },
  });
  print(process.stdout);
  print(process.stderr);
  process.on('uncaughtException', report);
  process.on('unhandledRejection', report);
  // Interrupts are the other half's work; the signal is for children.
  process.on('SIGINT', () => {});
  process.argv.length = 1;
  process.execArgv.length = 0;
  const worker = new Worker(new URL('worker.mjs', import.meta.url), {
    workerData: { language, descriptor },
    execArgv: [],
  });
  const session = new Session();
  session.connect();
  worker.on('message', ({ id, method, parameters }) => {
    session.post(method, parameters, (error, reply) => worker.postMessage({ id, error: error?.message, reply }));
  });
  worker.on('error', (error) => {
    console.error(error);
    process.exit(1);
  });
  worker.on('exit', (code) => process.exit(code));
}
