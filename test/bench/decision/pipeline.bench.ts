// perf: the baseline reads typed arrays as the code that it stands for would.
import type { Core, RequestEnd, RouteOutcome, RouteRequest } from '../../../packages/core/src/index.ts';
import { createCore } from '../../../packages/core/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import type { PolicyProgram } from '../../../packages/policy/src/index.ts';
import { parsedRequest } from '../../../packages/testkit/src/index.ts';
import type { BenchPart, Suite } from '../report.ts';

const SIZES = [8, 64, 1000] as const;
const BY_HAND = 'written by hand';
const PLAIN = 'token-aware';
const AFFINITY = 'with affinity';

const suite: Suite = {
  name: 'decision-pipeline',
  title:
    'A whole decision with its lease: signals, five rules, `where`, token-aware score, shortlist, reserve, on shared memory',
  figures: [
    { key: 'ns', label: 'CPU ns / decision', digits: 0 },
    { key: 'endNs', label: 'CPU ns / end and record', digits: 0 },
  ],
  compared: 'ns',
  baselines: [BY_HAND],
  goals: [
    { subject: PLAIN, case: '8 endpoints', figure: 'ns', atMost: 500 },
    { subject: PLAIN, case: '64 endpoints', figure: 'ns', atMost: 3000 },
    { subject: PLAIN, case: '1000 endpoints', figure: 'ns', atMost: 20_000 },
    { subject: AFFINITY, case: '1000 endpoints', figure: 'ns', atMost: 60_000 },
  ],
};

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

function subject(name: string, size: number, affinity: boolean): Subject {
  const core: Core = createCore({
    clock: { now: () => performance.now(), epochMs: () => Date.now() },
    scheduler: { setTimer: () => () => {} },
    capacity: 1024,
    allocate: (bytes) => new SharedArrayBuffer(bytes),
  });
  core.activate(core.prepare(policy(size, affinity)));
  const asked = requests();
  const held: RouteOutcome[] = [];
  let next = 0;
  const decide = (): RouteOutcome => {
    const outcome = core.router.route(asked[next++ & 63]!);
    if (outcome instanceof Promise || outcome.kind === 'refuse') throw new Error(`${name}: not forwarded`);
    return outcome;
  };
  const end = (outcome: RouteOutcome | undefined): void => {
    if (outcome?.kind === 'forward') outcome.finish(END);
  };
  for (let i = 0; i < 4 * size; i++) held.push(decide());
  return {
    name,
    batch(count) {
      const fresh: RouteOutcome[] = [];
      const start = cpuMs();
      for (let i = 0; i < count; i++) fresh.push(decide());
      const middle = cpuMs();
      for (const outcome of fresh) {
        held.push(outcome);
        end(held.shift());
      }
      return { decideMs: middle - start, endMs: cpuMs() - middle };
    },
  };
}

/** The same choice as a loop over the same columns: guard, cost, least, reserve. No rules, no signals, no record. */
function byHand(size: number): Subject {
  const buffer = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);
  const queued = new Int32Array(buffer(4 * size));
  const decode = new Int32Array(buffer(4 * size));
  const inflight = new Int32Array(buffer(4 * size));
  const throughput = new Float64Array(buffer(8 * size)).fill(2500);
  const slots = Int32Array.from({ length: size }, (_, i) => i);
  const held: number[] = [];
  let next = 0;
  const decide = (): number => {
    const prompt = 50 + 8 * (next++ & 63);
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      const load = (0.1 * queued[slot]! + decode[slot]!) / throughput[slot]!;
      if (!(load < 95)) continue;
      const cost = (0.1 * (queued[slot]! + prompt) + decode[slot]! + 256) / throughput[slot]!;
      if (cost < least) {
        least = cost;
        best = slot;
      }
    }
    Atomics.add(inflight, best, 1);
    Atomics.add(queued, best, prompt);
    Atomics.add(decode, best, 256);
    held.push(best, prompt);
    return best;
  };
  const end = (): void => {
    const slot = held.shift() ?? 0;
    const prompt = held.shift() ?? 0;
    Atomics.sub(inflight, slot, 1);
    Atomics.sub(queued, slot, prompt);
    Atomics.sub(decode, slot, 256);
  };
  for (let i = 0; i < 4 * size; i++) decide();
  return {
    name: BY_HAND,
    batch(count) {
      const start = cpuMs();
      for (let i = 0; i < count; i++) decide();
      const middle = cpuMs();
      for (let i = 0; i < count; i++) end();
      return { decideMs: middle - start, endMs: cpuMs() - middle };
    },
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Decisions at 8, 64 and 1,000 endpoints, four requests in flight at each, on shared memory. */
export const run: BenchPart = (report, { rounds, smoke }) => {
  report.suite(suite);
  const batch = smoke ? 20 : 500;
  const batches = smoke ? 2 : 40;
  for (const size of SIZES) {
    report.progress(`${size} endpoints, whole decisions`);
    const subjects = [byHand(size), subject(PLAIN, size, false), subject(AFFINITY, size, true)];
    const warm = smoke ? 1 : Math.max(4, Math.ceil(40_000 / batch / Math.sqrt(size)));
    for (const one of subjects) for (let i = 0; i < warm; i++) one.batch(batch);
    for (let round = 0; round < (smoke ? 1 : rounds); round++) {
      const figures = subjects.map(() => ({ ns: [] as number[], endNs: [] as number[] }));
      for (let turn = 0; turn < batches * subjects.length; turn++) {
        const index = (turn + Math.floor(turn / subjects.length) + round) % subjects.length;
        const took = subjects[index]?.batch(batch);
        if (took === undefined) continue;
        figures[index]?.ns.push((took.decideMs * 1e6) / batch);
        figures[index]?.endNs.push((took.endMs * 1e6) / batch);
      }
      subjects.forEach((one, index) => {
        const { ns = [], endNs = [] } = figures[index] ?? {};
        report.sample({
          suite: suite.name,
          case: `${size} endpoints`,
          subject: one.name,
          round,
          figures: { ns: median(ns), endNs: median(endNs) },
        });
      });
    }
  }
};
