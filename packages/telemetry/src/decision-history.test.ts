import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyRecord, anyRowRecord } from './any-record.fixture.ts';
import { createDecisionHistory } from './decision-history.ts';
import type { DecisionRecord } from './decision-record.ts';
import { ROW, RowRecord } from './row-record.ts';

/** A record as it reads, whatever it is made of. */
const plain = (record: DecisionRecord): DecisionRecord =>
  structuredClone(record instanceof RowRecord ? record.toJSON() : record);

test('what is taken apart comes back as it was, newest first, and the oldest make room', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ arbitrary: anyRowRecord, weight: 4 }, anyRecord), { maxLength: 12 }),
      fc.integer({ min: 1, max: 6 }),
      (records, capacity) => {
        const history = createDecisionHistory(capacity);
        for (const record of records) history.add(record);
        const kept = records.slice(-capacity).toReversed().map(plain);
        expect(history.recent(100)).toEqual(kept);
        expect(history.recent(2)).toEqual(kept.slice(0, 2));
        for (const id of ['a', 'b', 'c', 'd'])
          expect(history.find(id)).toEqual(kept.find((record) => record.requestId === id));
      },
    ),
  );
});

test('records of one layout after another keep their names apart, and their order', () => {
  const [sample] = fc.sample(anyRecord, { seed: 7, numRuns: 1 });
  const history = createDecisionHistory(8);
  const withSignals = (signals: { readonly [name: string]: number }): RowRecord =>
    new RowRecord(
      {
        signals: Object.keys(signals).map((name) => ({ name, numeric: true, late: 0 })),
        place: { parts: [], properties: [] },
        numbers: [...Array.from({ length: ROW.first }, () => 0), ...Object.values(signals)],
        others: [''],
      },
      sample!,
    );
  const given = [{ a: 1, b: 2 }, { b: 3, a: 4 }, { a: 5 }, { a: 6, b: 7, c: 8 }, {}, { a: 8, b: 9 }];
  for (const signals of given) history.add(withSignals(signals));
  expect(history.recent(8).map(({ signals }) => Object.entries(signals))).toEqual(
    given.map((one) => Object.entries(one)).toReversed(),
  );
});
