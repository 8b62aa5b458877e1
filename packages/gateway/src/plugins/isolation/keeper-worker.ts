/**
 * The thread that keeps the process of one isolated plugin package: starts it, relays calls, ends it when it hangs or grows, and starts it
 * anew with back-off and with the same instances. The gateway's own thread waits on shared memory for what this thread relays, so nothing
 * here runs a plugin's code.
 */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { FromProcess, KeeperData, LogLine, Reply, SetupData, ToKeeper, ToProcess } from './messages.ts';
import { ANSWERS, AWAY, LOG_LEVELS, STATE, UP } from './messages.ts';

type Asked = Extract<ToProcess, { readonly seq: number }>;

/** Someone waits for the reply of this `seq`. */
type Waiting = (reply: Reply) => void;

const TICK_MS = 100;
/** Notes under way to a process that takes none; more are dropped. */
const MOST_NOTES = 1000;
const MOST_LINES_A_TICK = 20;
/** A process that was up for so long has failed for the first time again. */
const FORGIVEN_AFTER_MS = 30_000;
const PAGE_BYTES = 4096;

const { entry, limits, shared, answers } = workerData as KeeperData;
const port = parentPort!;
const setups = new Map<number, SetupData>();
const early: ToKeeper[] = [];
let child: ChildProcess | undefined;
let waiting = new Map<number, Waiting>();
let ownSeq = -1;
let failures = 0;
let upSinceMs = Number.NaN;
let heardMs = 0;
let notes = 0;
let lines = 0;
let first = true;

const log = (level: LogLine['level'], message: string): void => port.postMessage({ type: 'log', level, message });

/** Asks the process for something of the keeper's own. Rejects when the process fails or takes longer than `setupMs`. */
function ask(of: ChildProcess, make: (seq: number) => Asked): Promise<unknown> {
  const seq = ownSeq--;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => (waiting.delete(seq), reject(new Error(`no answer within ${limits.setupMs} ms`))),
      limits.setupMs,
    );
    waiting.set(seq, (reply) => {
      clearTimeout(timer);
      if (reply.ok) resolve(reply.value);
      else reject(new Error(reply.message));
    });
    of.send(make(seq), ignore);
  });
}

/** A failed send is a process that has ended, which its own event tells. */
const ignore = (): void => {};

function start(): void {
  const fromSource = import.meta.url.endsWith('.ts');
  const started = fork(new URL(`./process-worker.${fromSource ? 'ts' : 'js'}`, import.meta.url), [], {
    env: {},
    execArgv: [
      ...(fromSource ? ['--conditions=@signalbox/source'] : []),
      `--max-old-space-size=${limits.heapMb}`,
      '--max-semi-space-size=8',
    ],
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child = started;
  heardMs = performance.now();
  started.on('message', (message) => {
    if (child === started && isFromProcess(message)) heard(message);
  });
  started.on('error', (error) => failed(started, error.message));
  started.on('exit', (code, signal) => failed(started, `its process ended with ${signal ?? code}`));
  for (const stream of [started.stdout, started.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      if (lines++ < MOST_LINES_A_TICK) log('info', text.slice(0, 2000).trimEnd());
    });
  }
  void prepare(started).catch((error: unknown) => failed(started, (error as Error).message));
}

/** Imports the package and sets up again what was set up before. */
async function prepare(started: ChildProcess): Promise<void> {
  const data = await ask(started, (seq) => ({ type: 'import', seq, entry }));
  for (const setup of setups.values()) await ask(started, (seq) => ({ type: 'setup', seq, setup }));
  if (child !== started) return;
  upSinceMs = performance.now();
  Atomics.store(shared, STATE, UP);
  if (first) port.postMessage({ type: 'imported', data });
  else log('info', 'the process of an isolated plugin is back');
  first = false;
  for (const message of early.splice(0)) take(message);
}

/** Whether a message is one of ours: a plugin can send whatever it likes. */
function isFromProcess(message: unknown): message is FromProcess {
  if (typeof message !== 'object' || message === null) return false;
  const { type, seq, level, message: text } = message as { readonly [field: string]: unknown };
  if (type === 'reply') return typeof seq === 'number';
  return type === 'log' && typeof text === 'string' && (LOG_LEVELS as readonly unknown[]).includes(level);
}

function heard(message: FromProcess): void {
  heardMs = performance.now();
  if (message.type === 'log') {
    if (lines++ < MOST_LINES_A_TICK) port.postMessage(message);
    return;
  }
  const done = waiting.get(message.seq);
  waiting.delete(message.seq);
  done?.(message);
}

/** Ends the process, if it is still the one; answers all who wait, and starts another after the back-off. */
function failed(of: ChildProcess | undefined, why: string): void {
  if (child === undefined || child !== of) return;
  child = undefined;
  of.kill('SIGKILL');
  Atomics.store(shared, STATE, AWAY);
  const left = waiting;
  waiting = new Map();
  for (const [seq, done] of left) done({ type: 'reply', seq, ok: false, message: why });
  if (first) {
    // What cannot be imported at all is refused by the gateway, and not tried again.
    port.postMessage({ type: 'import_failed', message: why });
    first = false;
    for (const message of early.splice(0)) take(message);
    return;
  }
  failures = performance.now() - upSinceMs > FORGIVEN_AFTER_MS ? 1 : failures + 1;
  const delayMs = Math.min(limits.mostBackOffMs, limits.backOffMs * 2 ** (failures - 1));
  log('error', `the process of an isolated plugin was ended: ${why}; it starts again in ${delayMs} ms`);
  setTimeout(start, delayMs);
}

function answerSync(reply: Reply): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a message port, which has no origins
  answers.postMessage(reply);
  Atomics.add(shared, ANSWERS, 1);
  Atomics.notify(shared, ANSWERS);
}

function relay(sync: boolean, message: Asked): void {
  const reply = sync ? answerSync : (given: Reply): void => port.postMessage(given);
  if (child === undefined) {
    reply({ type: 'reply', seq: message.seq, ok: false, message: 'its process is away' });
    return;
  }
  waiting.set(message.seq, (given) => {
    if (given.ok && message.type === 'setup') setups.set(message.setup.id, message.setup);
    reply(given);
  });
  child.send(message, ignore);
}

function take(message: ToKeeper): void {
  if (first && message.type !== 'end' && message.type !== 'fail') {
    early.push(message);
    return;
  }
  switch (message.type) {
    case 'ask':
      relay(message.sync, message.message);
      return;
    case 'tell':
      tell(message.message);
      return;
    case 'fail':
      failed(child, message.why);
      return;
    case 'end':
      child?.kill('SIGKILL');
      process.exit();
  }
}

function tell(message: Extract<ToKeeper, { readonly type: 'tell' }>['message']): void {
  if (message.type === 'close') setups.delete(message.id);
  if (child === undefined || (message.type === 'note' && notes >= MOST_NOTES)) return;
  notes++;
  child.send(message, () => notes--);
}

/** Sees to it that the process answers, and that it stays small. */
function watch(): void {
  lines = 0;
  const { pid } = child ?? {};
  if (pid === undefined || first) return;
  const silentMs = performance.now() - heardMs;
  if (silentMs > limits.setupMs + 2 * TICK_MS) failed(child, `it was silent for ${limits.setupMs} ms`);
  else if (residentMb(pid) > limits.residentMb) failed(child, `it took more than ${limits.residentMb} MB`);
  else child?.send({ type: 'ping', seq: ownSeq-- } satisfies ToProcess, ignore);
}

/** Resident memory where Linux tells it, else NaN. */
function residentMb(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 2 ** 20;
  } catch {
    return Number.NaN;
  }
}

port.on('message', take);
process.on('exit', () => child?.kill('SIGKILL'));
setInterval(watch, TICK_MS);
start();
