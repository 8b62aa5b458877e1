import { describe, expect, test } from 'vitest';
import { policyBench } from './support/policy-bench.fixture.ts';

const SIMPLE = 'Is Paris in France?';
const HARD = 'Analyze the economic impact of climate change on small island states.';

const policy = (signal: string): string => `
  define tier "7B" { model: "m", endpoints: [{ name: "small", url: "http://10.0.0.1:8000" }] }
  define tier "70B" { model: "m", endpoints: [{ name: "large", url: "http://10.0.0.2:8000" }] }
  route "hard" when ${signal} > 50 to tier "70B"
  default to tier "7B"`;

/** Whether the textbook measure of a message lies within a thousandth of `value`. */
function textbookIs(message: string, value: number): boolean {
  const bench = policyBench(`
    define tier "t" { model: "m", endpoints: ["http://10.0.0.1:8000"] }
    route when complexity.textbook in ${value - 0.001}..${value + 0.001} to tier "t"
    default reject`);
  return bench.send({ messages: message }) === 't/1';
}

describe('12. textbook complexity = 10 · (number of ?) + words ÷ 10', () => {
  test('"Is Paris in France?" is 10.4, so simple', () => {
    expect(textbookIs(SIMPLE, 10.4)).toBe(true);
    expect(policyBench(policy('complexity.textbook')).send({ messages: SIMPLE })).toBe('small');
  });
});

describe('13. "Analyze the economic impact of climate change on small island states."', () => {
  test('is 1.1 by the textbook, so simple', () => {
    expect(textbookIs(HARD, 1.1)).toBe(true);
    expect(policyBench(policy('complexity.textbook')).send({ messages: HARD })).toBe('small');
  });

  test('is hard by the default complexity, which keeps "Is Paris in France?" simple', () => {
    const bench = policyBench(policy('complexity'));
    expect(bench.send({ messages: HARD })).toBe('large');
    expect(bench.send({ messages: SIMPLE })).toBe('small');
  });
});
