// perf: the loop written by hand reads typed arrays as the code that it stands for would.
import { performance } from 'node:perf_hooks';
import type { Core, RequestEnd, RouteOutcome, RouteRequest } from '../../../packages/core/src/index.ts';
import { createCore } from '../../../packages/core/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import type { PolicyProgram } from '../../../packages/policy/src/index.ts';
import { parsedRequest } from '../../../packages/testkit/src/index.ts';
import type { PipelineFigures, PipelineJob, PipelineSubject } from './pipeline.bench.ts';

/** A process of the pipeline bench: measures one subject, as `PipelineJob` in its only argument says, and prints `PipelineFigures`. */

const END: RequestEnd = {
  outcome: 'ok',
  status: 200,
  upstreamStatus: 200,
  ttftMs: 1,
  durationMs: 2,
  promptTokens: Number.NaN,
  cachedTokens: Number.NaN,
  outputTokens: Number.NaN,
};

function policy(size: number, affinity: boolean): PolicyProgram {
  const endpoints = Array.from({ length: size }, (_, i) => `"http://10.0.${i >> 8}.${i & 255}:8000"`).join(', ');
  const text = `
define tier "A" { model: "m", gpu: "H100", model_size: 8B, endpoints: [${endpoints}] }
route "long" when prompt_tokens > 32k to tier "A" by least_tokens
route "gold" when header["x-tier"] == "gold" to tier "A" by least_tokens
route "tools" when tools > 10 to tier "A" by least_tokens
route "images" when images > 0 and not stream to tier "A" by least_tokens
default to tier "A" where under_load(9500%) by least_tokens${affinity ? ' with affinity session' : ''}
`;
  const { program, diagnostics } = compilePolicy({ path: 'bench.route', text, manifests: [], checkOptions: () => [] });
  if (program === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return program;
}

/** One batch of decisions and then of as many ends, so that the fleet's load stays where it is. Gives the milliseconds of each. */
interface Subject {
  readonly name: string;
  batch(count: number): { readonly decideMs: number; readonly endMs: number };
}

function requests(): RouteRequest[] {
  return Array.from({ length: 64 }, (_, i) => ({
    id: `r-${i}`,
    parsed: parsedRequest({ model: 'm', messages: 'x'.repeat(200 + 31 * i) }),
    headers: { 'x-session-id': `s-${i}` },
    receivedAtMs: 0,
    deadlineMs: Infinity,
  }));
}

const memory = (shared: boolean): { readonly allocate: (bytes: number) => ArrayBuffer | SharedArrayBuffer } => ({
  allocate: (bytes) => (shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes)),
});

function viaCore(name: string, size: number, affinity: boolean, shared: boolean): Subject {
  const core: Core = createCore({
    clock: { now: () => performance.now(), epochMs: () => Date.now() },
    scheduler: { setTimer: () => () => {} },
    capacity: 1024,
    ...memory(shared),
  });
  core.activate(core.prepare(policy(size, affinity)));
  const asked = requests();
  let next = 0;
  const decide = (): RouteOutcome => {
    const outcome = core.router.route(asked[next++ & 63]!);
    if (outcome instanceof Promise || outcome.kind === 'refuse') throw new Error(`${name}: not forwarded`);
    return outcome;
  };
  const end = (outcome: RouteOutcome | undefined): void => {
    if (outcome?.kind === 'forward') outcome.finish(END);
  };
  return inBatches(name, size, decide, end);
}

/** What the loop written by hand takes on an endpoint and gives back. */
interface HandLease {
  readonly slot: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  released: boolean;
}

/**
 * The same decision as somebody would write it for this one policy: the same five conditions on the same requests, the same `where` and
 * score over columns of the same kinds, the least with ties by a hash of endpoint and seed, and a lease that holds and gives back the same
 * amounts. No shortlist, no clock, no limits, no health, no retries, no record.
 */
function byHand(size: number, shared: boolean): Subject {
  const { allocate } = memory(shared);
  const ints = (): Int32Array => new Int32Array(allocate(4 * size));
  const inflightRequests = ints();
  const inflightTokens = ints();
  const waitingRequests = ints();
  const queuedTokens = ints();
  const decodeTokens = ints();
  const hashes = ints().map((_, i) => Math.imul(i + 1, 0x9e3779b1));
  const throughput = new Float64Array(allocate(8 * size)).fill(2500);
  const slots = Int32Array.from({ length: size }, (_, i) => i);
  const add = shared
    ? (column: Int32Array, slot: number, amount: number): number => Atomics.add(column, slot, amount)
    : (column: Int32Array, slot: number, amount: number): number => (column[slot] = column[slot]! + amount);
  const asked = requests();
  let next = 0;
  let seed = 0;
  const ruleOf = ({ parsed, headers }: RouteRequest, promptTokens: number): number => {
    if (promptTokens > 32_000) return 0;
    if (headers['x-tier'] === 'gold') return 1;
    if (parsed.tools > 10) return 2;
    if (parsed.images > 0 && !parsed.stream) return 3;
    return 4;
  };
  const hashOf = (slot: number): number => Math.imul(hashes[slot]! ^ seed, 0x85ebca6b) >>> 0;
  const decide = (): HandLease => {
    const request = asked[next++ & 63]!;
    const promptTokens = Math.ceil(request.parsed.promptChars / 4);
    const outputTokens = request.parsed.maxTokens < 256 ? request.parsed.maxTokens : 256;
    const guarded = ruleOf(request, promptTokens) === 4;
    seed = (seed + 1) | 0;
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      const speed = throughput[slot]!;
      const queued = queuedTokens[slot]!;
      const decoding = decodeTokens[slot]!;
      if (guarded && !((0.1 * queued + decoding) / speed < 95)) continue;
      const cost = (0.1 * (queued + promptTokens) + decoding + outputTokens) / speed;
      if (cost < least || (cost === least && hashOf(slot) > hashOf(best))) {
        least = cost;
        best = slot;
      }
    }
    if (best < 0) throw new Error('no endpoint');
    add(inflightRequests, best, 1);
    add(inflightTokens, best, promptTokens + outputTokens);
    add(waitingRequests, best, 1);
    add(queuedTokens, best, promptTokens);
    add(decodeTokens, best, outputTokens);
    return { slot: best, promptTokens, outputTokens, released: false };
  };
  const end = (lease: HandLease | undefined): void => {
    if (lease === undefined || lease.released) return;
    lease.released = true;
    const { slot, promptTokens, outputTokens } = lease;
    add(waitingRequests, slot, -1);
    add(queuedTokens, slot, -promptTokens);
    add(inflightRequests, slot, -1);
    add(inflightTokens, slot, -(promptTokens + outputTokens));
    add(decodeTokens, slot, -outputTokens);
  };
  return inBatches('by hand', size, decide, end);
}

/** Four leases in flight for each endpoint, and batches of decisions and then of as many ends, oldest first. */
function inBatches<Held>(
  name: string,
  size: number,
  decide: () => Held,
  end: (held: Held | undefined) => void,
): Subject {
  let held: Held[] = [];
  for (let i = 0; i < 4 * size; i++) held.push(decide());
  return {
    name,
    batch(count) {
      const start = cpuMs();
      for (let i = 0; i < count; i++) held.push(decide());
      const middle = cpuMs();
      for (let i = 0; i < count; i++) end(held[i]);
      const endMs = cpuMs() - middle;
      held = held.slice(count);
      return { decideMs: middle - start, endMs };
    },
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Batches in a row of which only the last counts, so that what the operating system did in between is not measured. */
const TURN = 4;

const job = JSON.parse(process.argv[2] ?? '{}') as PipelineJob;
const make: { readonly [name in PipelineSubject]: () => Subject } = {
  'written by hand': () => byHand(job.size, job.shared),
  'token-aware': () => viaCore('token-aware', job.size, false, job.shared),
  'with affinity': () => viaCore('with affinity', job.size, true, job.shared),
};
const subject = make[job.subject]();
for (let i = 0; i < job.warmUp; i++) subject.batch(job.batch);
const decideNs: number[] = [];
const endNs: number[] = [];
for (let turn = 0; turn < job.turns; turn++) {
  for (let i = 1; i < TURN; i++) subject.batch(job.batch);
  const took = subject.batch(job.batch);
  decideNs.push((took.decideMs * 1e6) / job.batch);
  endNs.push((took.endMs * 1e6) / job.batch);
}
const figures: PipelineFigures = { ns: median(decideNs), endNs: median(endNs) };
process.stdout.write(JSON.stringify(figures));
