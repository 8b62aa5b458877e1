/**
 * Time per call of the per-request functions, in microseconds (the median of 15 rounds).
 * Run: `node --conditions=@signalbox/source packages/chwbl/bench/rendezvous.ts`
 */
import { createBound, createRanker, firstInOrder, firstWithinBound, hashParts, hashString } from '@signalbox/chwbl';
import type { CandidateColumns } from '@signalbox/chwbl';

const KEYS = Array.from({ length: 512 }, (_, index) => hashString(`session-${index}`));

function candidatesOf(length: number, weightOf: (slot: number) => number): CandidateColumns {
  const hashes = Array.from({ length }, (_, slot) => hashString(`http://10.0.${slot >> 8}.${slot & 255}:8000`));
  return {
    hashHi: Uint32Array.from(hashes, (hash) => hash.hi),
    hashLo: Uint32Array.from(hashes, (hash) => hash.lo),
    weights: Float64Array.from(hashes, (_, slot) => weightOf(slot)),
    slots: Int32Array.from(hashes.keys()),
    length,
  };
}

function microsecondsPerCall(call: (round: number) => unknown): number {
  const calls = 2000;
  const rounds: number[] = [];
  for (let round = 0; round < 15; round++) {
    const startMs = performance.now();
    for (let index = 0; index < calls; index++) call(index);
    rounds.push(((performance.now() - startMs) * 1000) / calls);
  }
  return rounds.toSorted((one, other) => one - other)[7] ?? Number.NaN;
}

function report(name: string, call: (round: number) => unknown): void {
  process.stdout.write(`${microsecondsPerCall(call).toFixed(3).padStart(10)} µs  ${name}\n`);
}

function keyAt(index: number): { hi: number; lo: number } {
  return KEYS[index & 511] ?? { hi: 0, lo: 0 };
}

report('hashString, 17 characters', (index) => hashString(`user-123-conv-${index}`));
report('hashParts, tenant and session', (index) => hashParts(['tenant-a', `session-${index}`]));
const kilobyte = 'x'.repeat(1024);
report('hashString, 1 KB', () => hashString(kilobyte));

for (const length of [8, 64, 1000]) {
  for (const [mix, weightOf] of [
    ['equal weights', () => 1],
    ['mixed weights', (slot: number) => 1 + (slot % 7)],
  ] as const) {
    const candidates = candidatesOf(length, weightOf);
    const loads = Int32Array.from({ length }, (_, slot) => (slot * 7919) % 13);
    const amounts = Float64Array.from(loads, (load) => load * 211.5);
    const requests = createBound(1.25);
    const tokens = createBound(1.25, 'tokens');
    const ranker = createRanker(length);
    const out = new Int32Array(3);
    report(`firstInOrder, ${length} nodes, ${mix}`, (index) => firstInOrder(candidates, keyAt(index)));
    report(`firstWithinBound, ${length} nodes, ${mix}, requests`, (index) =>
      firstWithinBound(candidates, keyAt(index), loads, requests),
    );
    report(`firstWithinBound, ${length} nodes, ${mix}, tokens`, (index) =>
      firstWithinBound(candidates, keyAt(index), amounts, tokens),
    );
    report(`ranker.top(3), ${length} nodes, ${mix}`, (index) => ranker.top(candidates, keyAt(index), 3, out));
    report(`ranker.begin and 3 × next, ${length} nodes, ${mix}`, (index) => {
      ranker.begin(candidates, keyAt(index));
      return ranker.next() + ranker.next() + ranker.next();
    });
  }
}
