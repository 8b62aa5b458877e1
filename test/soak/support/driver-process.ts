/** A client in a process of its own: does one task that its parent sends, reports each second, and sends a tally when it is through. */
import { Agent } from 'node:http';
import { ask, type Ask } from './ask.ts';
import type { DriverTask, Tally } from './driver.ts';
import { randomFrom } from './random.ts';

const TICK_MS = 10;
const FAULTS_KEPT = 20;

const tally: Tally = { whole: 0, left: 0, faults: 0, byVersion: {}, faultTexts: [], events: 0 };
let open = 0;
let stopping = false;
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

async function run(request: Omit<Ask, 'agent' | 'onEvent'>): Promise<void> {
  open++;
  const outcome = await ask({ ...request, agent, onEvent: () => tally.events++ });
  open--;
  if (outcome.kind === 'fault') {
    tally.faults++;
    if (tally.faultTexts.length < FAULTS_KEPT) tally.faultTexts.push(`seed ${request.seed}: ${outcome.fault}`);
    return;
  }
  tally[outcome.kind]++;
  if (outcome.kind === 'left') return;
  const version = `${outcome.policy} ${outcome.tier}`;
  tally.byVersion[version] = (tally.byVersion[version] ?? 0) + 1;
}

/** A request of the mix: streams and plain ones, one in twenty left by its client. */
function someRequest(port: number, seed: number, random: () => number): Omit<Ask, 'agent'> {
  const stream = random() < 0.5;
  const tokens = 5 + Math.floor(random() * 25);
  const paceMs = stream ? 20 + Math.floor(random() * 40) : 5 + Math.floor(random() * 45);
  const leaves = random() < 0.05;
  const leavesAfter = stream ? Math.floor(random() * tokens) : Math.floor(random() * paceMs);
  return { port, seed, tokens, paceMs, stream, ...(leaves ? { leavesAfter } : {}) };
}

/** Calls `start` so many times a second, until told to stop or `limit` calls were made. */
function eachSecond(rate: number, limit: number, start: (index: number) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const beganMs = performance.now();
  let started = 0;
  const timer = setInterval(() => {
    const due = Math.min(limit, ((performance.now() - beganMs) / 1000) * rate);
    while (started < due && !stopping) start(started++);
    if (started < limit && !stopping) return;
    clearInterval(timer);
    resolve();
  }, TICK_MS);
  return promise;
}

async function perform(task: DriverTask): Promise<void> {
  const running: Set<Promise<void>> = new Set();
  const track = (request: Promise<void>): void => {
    running.add(request);
    void request.finally(() => running.delete(request));
  };
  if (task.kind === 'load') {
    const random = randomFrom(task.firstSeed);
    await eachSecond(task.rate, Infinity, (index) => {
      track(run(someRequest(task.port, task.firstSeed + index, random)));
    });
  } else {
    let seed = task.firstSeed;
    const one = async (): Promise<void> => {
      do {
        await run({ port: task.port, seed: seed++, tokens: task.tokens, paceMs: task.paceMs, stream: true });
      } while (task.again && !stopping);
    };
    await eachSecond(task.perSecond, task.streams, () => track(one()));
  }
  await Promise.all(running);
  agent.destroy();
}

async function serve(task: DriverTask): Promise<void> {
  const reports = setInterval(() => process.send?.({ open, events: tally.events, faults: tally.faults }), 1000);
  await perform(task);
  clearInterval(reports);
  process.send?.({ tally });
}

process.on('message', (message: DriverTask | 'stop') => {
  if (message === 'stop') stopping = true;
  else void serve(message);
});
process.once('disconnect', () => process.exit());
