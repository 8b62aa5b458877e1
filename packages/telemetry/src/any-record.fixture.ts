import * as fc from 'fast-check';
import type { DecisionRecord } from './decision-record.ts';

const number = fc.oneof(fc.integer({ min: 0 }), fc.double({ noDefaultInfinity: true }));
const text = fc.string({ maxLength: 8 });
const value = fc.oneof(number, text, fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 3 }));
const named = <Item>(item: fc.Arbitrary<Item>, most: number): fc.Arbitrary<{ [name: string]: Item }> =>
  // Catalogue names; not `__proto__`.
  fc.dictionary(fc.stringMatching(/^[a-z][a-z_.]{0,9}$/), item, { maxKeys: most });

/** Any record, those that are larger than usual among them. */
export const anyRecord: fc.Arbitrary<DecisionRecord> = fc
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
        decided: fc.record({
          admission: text,
          step: fc.integer({ min: -1, max: 9 }),
          fallback: fc.integer({ min: -1, max: 9 }),
          candidates: fc.nat(),
        }),
      },
      { requiredKeys: ['signals', 'dropped', 'shortlist', 'attempts'] },
    ),
  )
  .map(([texts, numbers, parts]) => ({ v: 1, ...texts, ...numbers, ...parts }));
