// The JavaScript kernel's second half: takes requests from the socket and has them evaluated in the main thread.

import { Session } from 'node:inspector/promises';
import * as nodeModule from 'node:module';
import { Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { importable } from './imports.mjs';

// Of node's own experiments, which are ours to know about; code warns in its own thread.
process.emitWarning = () => {};

const MAX_ANSWER = 64 * 1024 * 1024;
const socket = new Socket({ fd: workerData.descriptor, readable: true, writable: true });

// Set while code runs: ends the wait for it.
let interrupted = null;
let isStopping = false;
let received = Buffer.alloc(0);
const waiting = [];
let isBusy = false;

socket.on('data', (data) => {
  received = Buffer.concat([received, data]);
  while (received.length >= 4 && received.length >= 4 + received.readUInt32BE()) {
    const size = received.readUInt32BE();
    const request = JSON.parse(received.subarray(4, 4 + size).toString());
    received = received.subarray(4 + size);
    if (request.interrupt) interrupt();
    else {
      waiting.push(request);
      work();
    }
  }
});
// The server is gone.
socket.on('end', () => process.exit(0));
socket.on('error', () => process.exit(0));

async function work() {
  if (isBusy) return;
  isBusy = true;
  while (waiting.length) {
    const request = waiting.shift();
    try {
      await execute(request);
    } catch (error) {
      const { name = 'Error', message = String(error), stack = String(error) } = error;
      send({ type: 'error', name, value: message, traceback: stack });
    }
    send({ type: 'done' });
  }
  isBusy = false;
}

function send(answer) {
  let data = Buffer.from(JSON.stringify(answer));
  if (data.length > MAX_ANSWER) {
    const text = `a result of ${data.length >> 20} MiB was left out: it is too large to send, write it to a file instead`;
    data = Buffer.from(JSON.stringify({ type: 'result', text, is_main_result: false }));
  }
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  socket.write(Buffer.concat([size, data]));
}

// --- executing

async function execute({ code, set, own }) {
  const stop = new Promise((resolve) => (interrupted = resolve));
  send({ type: 'started' });
  const before = await variables(set, own);
  try {
    const evaluated = evaluate(prepared(code));
    // What is ended by force fails; that is not for the client.
    const unlessStopped = evaluated.catch((error) => (isStopping ? stop : Promise.reject(error)));
    const answer = await Promise.race([unlessStopped, stop]);
    if (answer) send(answer);
  } finally {
    // A caller that is about to end this evaluation must not end the next one.
    if (isStopping) await stop;
    interrupted = null;
    isStopping = false;
    await variables(before, {});
  }
}

function prepared(code) {
  const script = workerData.language === 'typescript' ? nodeModule.stripTypeScriptTypes(code, { mode: 'transform' }) : code;
  return importable(script);
}

/** Evaluates a script as a console does: it may await, declare again, and its last value is the result. */
async function evaluate(expression) {
  const reply = await inspector('Runtime.evaluate', { expression, replMode: true, generatePreview: false });
  if (reply.exceptionDetails) return await failure(reply.exceptionDetails);
  const text = await rendered(reply.result);
  return text === undefined ? null : { type: 'result', text, is_main_result: true };
}

async function rendered(value) {
  if (value.type === 'undefined') return undefined;
  if (value.type === 'string') return value.value;
  if (!value.objectId) return value.unserializableValue ?? String(value.value);
  const render = 'function () { return process.getBuiltinModule("util").inspect(this, { depth: 4, maxArrayLength: 1000 }); }';
  return await call(value, render);
}

async function failure(details) {
  const thrown = details.exception;
  if (!thrown?.objectId || thrown.subtype !== 'error') {
    const text = thrown ? ((await rendered(thrown)) ?? 'undefined') : details.text;
    return { type: 'error', name: 'Error', value: text, traceback: `Uncaught ${text}` };
  }
  const read = 'function () { return { name: String(this.name), value: String(this.message), stack: String(this.stack) }; }';
  const { name, value, stack } = await call(thrown, read);
  return { type: 'error', name, value, traceback: ownFrames(stack) };
}

/** The part of a stack that is the code's: what called it is ours. */
function ownFrames(stack) {
  const lines = stack.split('\n');
  const end = lines.findIndex((line) => /^\s+at .*(node:inspector|[/]node[/]main\.mjs)/.test(line));
  return lines.slice(0, end < 0 ? undefined : end).join('\n');
}

async function call(object, functionDeclaration) {
  const { objectId } = object;
  const reply = await inspector('Runtime.callFunctionOn', { functionDeclaration, objectId, returnByValue: true });
  await inspector('Runtime.releaseObject', { objectId });
  if (reply.exceptionDetails) return undefined;
  return reply.result.value;
}

/**
 * Ends what runs: by not waiting any longer if it waits, by force if it computes.
 *
 * Force is used only while the main thread does not answer, one use at a time: when nothing computes it would hit what
 * comes next instead.
 */
async function interrupt() {
  const stop = interrupted;
  if (!stop || isStopping) return;
  isStopping = true;
  // Only now: node does not exit while another thread is connected.
  const interrupter = new Session();
  interrupter.connectToMainThread();
  let force = null;
  // Longer each time: on a busy machine one that does nothing may be slow to say so.
  for (let delayMs = 50; ; delayMs = Math.min(2 * delayMs, 2000)) {
    const isAnswering = await answers(delayMs);
    if (isAnswering && !force) break;
    if (!isAnswering) {
      const used = () => (force = null);
      force ??= interrupter.post('Runtime.terminateExecution').then(used, used);
      // For the children it may be waiting for.
      process.kill(-process.pid, 'SIGINT');
    }
    await Promise.race([force, pause(100)]);
  }
  interrupter.disconnect();
  const text = 'the code was interrupted';
  stop({ type: 'error', name: 'KeyboardInterrupt', value: text, traceback: `KeyboardInterrupt: ${text}` });
}

/** Whether the main thread answers in this time. */
function answers(milliseconds) {
  const answered = inspector('Runtime.evaluate', { expression: '0' }).then(
    () => true,
    () => false,
  );
  return Promise.race([answered, pause(milliseconds)]);
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(() => resolve(false), milliseconds));
}

// --- the inspector of the main thread

const pendingRequests = new Map();
let count = 0;

function inspector(method, parameters) {
  const id = ++count;
  parentPort.postMessage({ id, method, parameters });
  return new Promise((resolve, reject) => pendingRequests.set(id, { resolve, reject }));
}

parentPort.on('message', ({ id, error, reply }) => {
  const { resolve, reject } = pendingRequests.get(id);
  pendingRequests.delete(id);
  if (error) reject(new Error(error));
  else resolve(reply);
});

// --- variables

/** Sets variables of the main thread; returns what those of this execution were before, with null for none. */
async function variables(changed, own) {
  if (!Object.keys(changed).length && !Object.keys(own).length) return {};
  const expression = `((changed, own) => {
    const apply = (all) => {
      for (const [name, value] of Object.entries(all)) {
        if (value === null) delete process.env[name];
        else process.env[name] = value;
      }
    };
    apply(changed);
    const before = Object.fromEntries(Object.keys(own).map((name) => [name, process.env[name] ?? null]));
    apply(own);
    return before;
  })(${JSON.stringify(changed)}, ${JSON.stringify(own)})`;
  const reply = await inspector('Runtime.evaluate', { expression, returnByValue: true });
  return reply.result?.value ?? {};
}
