import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyRecord } from './any-record.fixture.ts';
import { createDecisionHistory } from './decision-history.ts';
import type { DecisionRecord } from './decision-record.ts';

test('what is taken apart comes back as it was, newest first, and the oldest make room', () => {
  fc.assert(
    fc.property(fc.array(anyRecord, { maxLength: 12 }), fc.integer({ min: 1, max: 6 }), (records, capacity) => {
      const history = createDecisionHistory(capacity);
      for (const record of records) history.add(structuredClone(record));
      const kept = records.slice(-capacity).toReversed();
      expect(history.recent(100)).toEqual(kept);
      expect(history.recent(2)).toEqual(kept.slice(0, 2));
      for (const id of ['a', 'b', 'c', 'd'])
        expect(history.find(id)).toEqual(kept.find((record) => record.requestId === id));
    }),
  );
});

test('records of one outline after another keep their names apart, and their order', () => {
  const [sample] = fc.sample(anyRecord, { seed: 7, numRuns: 1 });
  const history = createDecisionHistory(8);
  const withSignals = (signals: DecisionRecord['signals']): DecisionRecord => ({
    ...sample!,
    signals,
    shortlist: [],
    dropped: {},
  });
  const given = [{ a: 1, b: 2 }, { b: 3, a: 4 }, { a: 5 }, { a: 6, b: 7, c: null }, {}, { a: 8, b: 9 }];
  for (const signals of given) history.add(withSignals(signals));
  expect(history.recent(8).map(({ signals }) => Object.entries(signals))).toEqual(
    given.map((one) => Object.entries(one)).toReversed(),
  );
});
