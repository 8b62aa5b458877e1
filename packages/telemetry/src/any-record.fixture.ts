import * as fc from 'fast-check';
import type { DecisionRecord } from './decision-record.ts';
import { ROW, RowRecord } from './row-record.ts';

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

const name = fc.stringMatching(/^[a-z][a-z_.]{0,9}$/);
const names = (most: number) =>
  fc.uniqueArray(fc.record({ name, numeric: fc.boolean() }), { selector: (one) => one.name, maxLength: most });

/** Any record over a row, those with more places than usual among them. Its signals are none of those that may go unread. */
export const anyRowRecord: fc.Arbitrary<RowRecord> = fc
  .tuple(anyRecord, names(40), names(4), names(6), fc.nat(8))
  .chain(([record, signals, parts, properties, listed]) => {
    const count = (of: readonly { readonly numeric: boolean }[], numeric: boolean): number =>
      of.filter((one) => one.numeric === numeric).length;
    const numbers = count(signals, true) + listed * (1 + parts.length + count(properties, true));
    const head = { minLength: ROW.first - 1, maxLength: ROW.first - 1 };
    const others = count(signals, false) + listed * count(properties, false);
    return fc
      .tuple(
        fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), head),
        fc.array(number, { minLength: numbers, maxLength: numbers }),
        text,
        fc.array(
          fc.oneof(
            value.filter((one) => one !== null),
            fc.constant(undefined),
          ),
          {
            minLength: others,
            maxLength: others,
          },
        ),
        fc.array(text, { minLength: 2 * listed, maxLength: 2 * listed }),
      )
      .map(([rest, values, admission, given, endpoints]) => {
        const left = [...given];
        const take = (of: readonly { readonly numeric: boolean }[]) => left.splice(0, count(of, false));
        const texts = [admission, ...take(signals)];
        for (let place = 0; place < listed; place++)
          texts.push(...endpoints.slice(2 * place, 2 * place + 2), ...take(properties));
        const made = new RowRecord(
          {
            signals: signals.map((signal) => ({ ...signal, late: 0 })),
            place: { parts: parts.map((part) => part.name), properties },
            numbers: [listed, ...rest, ...values],
            others: texts,
          },
          record,
        );
        const { verdict, servedModel, tier, endpoint, status, code, shed } = record;
        const { ttftMs, durationMs, inputTokens, cachedTokens, outputTokens } = record;
        const end = { verdict, servedModel, tier, endpoint, status, code, ttftMs, durationMs };
        const tokens = { inputTokens, cachedTokens, outputTokens };
        return Object.assign(made, end, tokens, shed === undefined ? {} : { shed });
      });
  });
