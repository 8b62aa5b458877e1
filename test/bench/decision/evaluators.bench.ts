// perf: the baseline reads typed arrays as the code that it stands for would.
import { createEvaluators } from '../../../packages/policy/src/index.ts';
import type { Column, EvaluationHost, Evaluators, Expression } from '../../../packages/policy/src/index.ts';
import type { BenchPart, Suite } from '../report.ts';
import { mixedGuard, numericGuard, program, score, whens } from './evaluators-program.ts';
import type { Subject } from './measure.ts';
import { sampleCase } from './measure.ts';

const SIZES = [8, 64, 1000] as const;
const BY_HAND = 'written by hand';

const pool: Suite = {
  name: 'decision-evaluators',
  title: '`where` and `by` in the evaluators alone: guard, four-term score, the least',
  figures: [{ key: 'ns', label: 'CPU ns / decision', digits: 0 }],
  compared: 'ns',
  baselines: [BY_HAND],
  goals: [{ subject: 'generated', figure: 'ns', atMost: 3, times: BY_HAND }],
};

const conditions: Suite = {
  ...pool,
  name: 'decision-conditions',
  title: 'The `when`s of five rules down to the first that holds',
  goals: [],
};

interface Fleet {
  readonly numbers: readonly Float64Array[];
  readonly region: readonly (string | undefined)[];
  readonly healthy: readonly boolean[];
  readonly slots: Int32Array;
}

/** Columns of made-up contents, the same in each run. */
function fleetOf(size: number): Fleet {
  let state = 12_345;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const column = (scale: number, floor = 0): Float64Array =>
    Float64Array.from({ length: size }, () => floor + random() * scale);
  return {
    numbers: [column(20_000), column(4000), column(40), column(120), column(3000, 300), column(1)],
    region: Array.from({ length: size }, () => (random() < 0.7 ? 'eu' : 'us')),
    healthy: Array.from({ length: size }, () => random() < 0.9),
    slots: Int32Array.from({ length: size }, (_, index) => index),
  };
}

function hostOf(fleet: Fleet): EvaluationHost {
  const columns: readonly Column[] = [
    ...fleet.numbers,
    fleet.region as unknown as Column,
    fleet.healthy as unknown as Column,
  ];
  return {
    n: Float64Array.of(72, 2400, Number.NaN, Number.NaN),
    v: [undefined, undefined, 'eu', 'interactive-7'],
    column: (index) => columns[index] ?? [],
    pool: () => ({ slots: fleet.slots, length: fleet.slots.length }),
  };
}

function evaluated(name: string, evaluators: Evaluators, where: Expression, fleet: Fleet): Subject {
  const host = hostOf(fleet);
  const { slots } = fleet;
  const filter = evaluators.filter(where);
  const rank = evaluators.score(score);
  const kept = new Int32Array(slots.length);
  const costs = new Float64Array(slots.length);
  const decide = (): number => {
    const count = filter(host, slots, slots.length, kept);
    rank(host, kept, count, costs);
    let best = -1;
    let least = Infinity;
    for (let position = 0; position < count; position++) {
      const cost = costs[position]!;
      if (cost < least) {
        least = cost;
        best = kept[position]!;
      }
    }
    return best;
  };
  return repeated(name, decide, fleet);
}

/** Calls `decide` with the fleet's load moving on between calls, as it does in service. */
function repeated(name: string, decide: () => number, fleet: Fleet): Subject {
  const [queued = new Float64Array(0)] = fleet.numbers;
  return {
    name,
    run: (times) => {
      let sum = 0;
      for (let time = 0; time < times; time++) {
        const best = decide();
        sum += best;
        if (best >= 0) queued[best] = (queued[best]! + 977) % 20_000;
      }
      return sum;
    },
  };
}

function byHand(guard: 'numbers' | 'mixed', fleet: Fleet): Subject {
  const [none = new Float64Array(0)] = fleet.numbers;
  const [queued = none, decode = none, inflight = none, depth = none, throughput = none, kv = none] = fleet.numbers;
  const { region, healthy, slots } = fleet;
  const numbers = (): number => {
    let best = -1;
    let least = Infinity;
    for (let position = 0; position < slots.length; position++) {
      const slot = slots[position]!;
      if (kv[slot]! < 0.9 && depth[slot]! < 100) {
        const cost =
          (0.1 * queued[slot]! + decode[slot]! + 200 * inflight[slot]! + 50 * depth[slot]!) / throughput[slot]!;
        if (cost < least) {
          least = cost;
          best = slot;
        }
      }
    }
    return best;
  };
  const mixed = (): number => {
    let best = -1;
    let least = Infinity;
    for (let position = 0; position < slots.length; position++) {
      const slot = slots[position]!;
      if (region[slot] === 'eu' && healthy[slot] === true && kv[slot]! < 0.9) {
        const cost =
          (0.1 * queued[slot]! + decode[slot]! + 200 * inflight[slot]! + 50 * depth[slot]!) / throughput[slot]!;
        if (cost < least) {
          least = cost;
          best = slot;
        }
      }
    }
    return best;
  };
  return repeated(BY_HAND, guard === 'numbers' ? numbers : mixed, fleet);
}

function rules(name: string, evaluators: Evaluators): Subject {
  const host = hostOf(fleetOf(8));
  const predicates = whens.map((when) => evaluators.predicate(when));
  return {
    name,
    run: (times) => {
      let sum = 0;
      for (let time = 0; time < times; time++) {
        host.n[0] = 40 + (time & 63);
        let first = 0;
        while (first < predicates.length && !predicates[first]!(host)) first++;
        sum += first;
      }
      return sum;
    },
  };
}

function rulesByHand(): Subject {
  const request = { complexity: 0, promptTokens: 2400, region: 'eu', kind: 'interactive-7' };
  const batch = /^batch-/u;
  const first = (): number => {
    if (batch.test(request.kind)) return 0;
    if (request.promptTokens > 32_000 && request.region !== 'us') return 1;
    if (request.region === 'us' || request.region === 'ca' || request.region === 'mx') return 2;
    if (request.region === 'eu' && request.complexity > 80) return 3;
    return request.complexity > 50 ? 4 : 5;
  };
  return {
    name: BY_HAND,
    run: (times) => {
      let sum = 0;
      for (let time = 0; time < times; time++) {
        request.complexity = 40 + (time & 63);
        sum += first();
      }
      return sum;
    },
  };
}

/** `where` and `by` over 8, 64 and 1,000 endpoints, and five rules: generated code and the interpreter against a loop over the same columns. */
export const run: BenchPart = (report, { rounds, smoke }) => {
  const generated = createEvaluators(program, { mode: 'generated' });
  const interpreted = createEvaluators(program, { mode: 'interpreted' });
  const options = { rounds: smoke ? 1 : rounds, slices: smoke ? 3 : 21, sliceMs: smoke ? 2 : 10 };
  report.suite(pool);
  for (const size of SIZES) {
    for (const [guard, where] of [
      ['numbers', numericGuard],
      ['mixed', mixedGuard],
    ] as const) {
      // Each subject has columns of its own: what one learns of a fleet must not help another.
      const subjects = [
        byHand(guard, fleetOf(size)),
        evaluated('generated', generated, where, fleetOf(size)),
        evaluated('interpreted', interpreted, where, fleetOf(size)),
      ];
      report.progress(`${size} endpoints, ${guard}`);
      sampleCase(
        report,
        { suite: pool.name, case: `${size} endpoints, ${guard === 'numbers' ? 'numeric' : 'mixed'} guard`, subjects },
        options,
      );
    }
  }
  report.suite(conditions);
  report.progress('five rules');
  const subjects = [rulesByHand(), rules('generated', generated), rules('interpreted', interpreted)];
  sampleCase(report, { suite: conditions.name, case: 'five rules', subjects }, options);
};
