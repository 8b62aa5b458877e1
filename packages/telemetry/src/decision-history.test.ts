import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDecisionHistory } from './decision-history.ts';
import type { DecisionRecord } from './decision-record.ts';

const number = fc.oneof(fc.integer({ min: 0 }), fc.double({ noDefaultInfinity: true }));
const text = fc.string({ maxLength: 8 });
const value = fc.oneof(number, text, fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 3 }));
const named = <Item>(item: fc.Arbitrary<Item>, most: number): fc.Arbitrary<{ [name: string]: Item }> =>
  // Catalogue names; not `__proto__`.
  fc.dictionary(fc.stringMatching(/^[a-z][a-z_.]{0,9}$/), item, { maxKeys: most });

/** Any record, those that are larger than usual among them. */
const anyRecord: fc.Arbitrary<DecisionRecord> = fc
  .tuple(
    fc.record({
      requestId: fc.constantFrom('a', 'b', 'c', 'd'),
      traceId: text,
      tenant: text,
      model: text,
      path: text,
      policy: text,
      route: text,
      servedModel: text,
      tier: text,
      endpoint: text,
      code: text,
      verdict: fc.constantFrom('routed', 'rejected', 'refused'),
      stream: fc.boolean(),
      reasons: fc.array(text, { maxLength: 4 }),
      keys: fc.record({ affinity: fc.option(text), split: fc.option(text) }),
    }),
    fc.record({
      timeMs: number,
      seed: number,
      generation: number,
      queuedMs: number,
      decideMs: number,
      status: number,
      ttftMs: number,
      durationMs: number,
      inputTokens: number,
      cachedTokens: number,
      outputTokens: number,
    }),
    fc.record(
      {
        signals: named(value, 40),
        dropped: named(number, 3),
        shortlist: fc.array(
          fc.record({
            endpoint: text,
            tier: text,
            score: number,
            parts: named(number, 4),
            properties: named(value, 6),
          }),
          { maxLength: 8 },
        ),
        attempts: fc.array(
          fc.record({ tier: text, endpoint: text, outcome: text, status: number, durationMs: number }),
          { maxLength: 20 },
        ),
        shed: fc.record({ queue: text, class: text }),
      },
      { requiredKeys: ['signals', 'dropped', 'shortlist', 'attempts'] },
    ),
  )
  .map(([texts, numbers, parts]) => ({ v: 1, ...texts, ...numbers, ...parts }));

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
