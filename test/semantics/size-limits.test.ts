import { describe, expect, test } from 'vitest';
import { bench, compile, errors, MODES, program, tiers } from './support/bench.fixture.ts';

const a = tiers({ a: 1 });
const policy = (condition: string): string => `${a}route when ${condition} to tier "a"\ndefault reject`;
const many = (part: string, separator: string, count: number): string =>
  Array.from({ length: count }, () => part).join(separator);

/** Compiles a policy and decides one request in both modes: none of it may throw. */
function runs(text: string): string {
  const compiled = program(text);
  const [generated, interpreted] = MODES.map((mode) => {
    const made = bench(text, { mode, compiled });
    const result = made.send();
    made.core.close();
    return result;
  });
  expect(interpreted).toBe(generated);
  return generated ?? '';
}

describe('each limit has its own error, and never a crash', () => {
  test('a file of more than 1 MiB', () => {
    expect(errors(`${a}#${'x'.repeat(1024 * 1024)}\ndefault to tier "a"`)).toEqual(['E0140']);
    expect(errors(`#${'é'.repeat(600 * 1024)}\n${a}default to tier "a"`)).toEqual(['E0140']);
    expect(errors(`#${'x'.repeat(1000 * 1024)}\n${a}default to tier "a"`)).toEqual([]);
  });

  test('more than 20,000 rules', () => {
    const rules = (count: number): string => `${a}${many('route when stream to any', '\n', count - 1)}\ndefault reject`;
    expect(errors(rules(20_001))).toEqual(['E0141']);
    expect(errors(rules(20_000))).toEqual([]);
  });

  test('20,000 rules run', () => {
    const text = `${a}${Array.from({ length: 19_999 }, (_, i) => `route when turns==${i + 2} to any`).join('\n')}\ndefault to tier "a"`;
    expect(runs(text)).toBe('a/1');
  });

  test('brackets and groups nested more than 64 deep', () => {
    expect(errors(policy(`${'('.repeat(64)}stream${')'.repeat(64)}`))).toEqual([]);
    expect(errors(policy(`${'('.repeat(65)}stream${')'.repeat(65)}`))).toEqual(['E0142']);
    expect(errors(policy(`${'('.repeat(20_000)}stream${')'.repeat(20_000)}`))).toEqual(['E0142']);
    const groups = (count: number): string =>
      `${a}${Array.from({ length: count }, (_, i) => `group "${i}" when stream {`).join(' ')} route when stream to any ${'}'.repeat(count)}\ndefault reject`;
    expect(errors(groups(64))).toEqual([]);
    expect(errors(groups(65))).toEqual(['E0142']);
    expect(runs(groups(64))).toBe('429 rejected');
  });

  test('a list of more than 10,000 items', () => {
    const list = (count: number): string =>
      policy(`model in [${Array.from({ length: count }, (_, i) => `"n${i}"`).join(',')}]`);
    expect(errors(list(10_000))).toEqual([]);
    expect(errors(list(10_001))).toEqual(['E0143']);
    expect(runs(list(10_000))).toBe('429 rejected');
  });

  test.each([
    ['not ', (n: number) => `${'not '.repeat(n)}stream`],
    ['- ', (n: number) => `${'- '.repeat(n)}turns < 5`],
    ['+', (n: number) => `${many('turns', '+', n + 1)} > 5`],
    ['*', (n: number) => `${many('turns', '*', n + 1)} > 5`],
    ['/', (n: number) => `${many('turns', '/', n + 1)} > 5`],
    ['??', (n: number) => `(${many('max_tokens', '??', n + 1)}) > 5`],
    ['?? of sums', (n: number) => `(${many('max_tokens+1', '??', n)}) > 5`],
  ] as const)('a chain of `%s` of more than 256', (_operator, of) => {
    expect(errors(policy(of(250)))).toEqual([]);
    expect(runs(policy(of(250)))).toMatch(/^(a\/1|429 rejected)$/);
    for (const length of [300, 1000, 20_000]) expect(errors(policy(of(length))), String(length)).toEqual(['E0142']);
  });

  test('conditions side by side are not nested: any number of them runs', () => {
    for (const operator of [' and ', ' or ']) {
      expect(runs(policy(many('turns == 7', operator, 20_000)))).toBe('429 rejected');
      expect(runs(policy(many('(session == "x" or stream)', operator, 5_000)))).toBe('429 rejected');
    }
  });

  test('long argument lists and lists with members from the request run', () => {
    expect(runs(policy(`min(${many('turns', ',', 20_000)}) > 5`))).toBe('429 rejected');
    expect(runs(policy(`max(${many('1', ',', 20_000)}) > 5`))).toMatch(/a\/1|429 rejected/);
    expect(runs(policy(`model in [${many('session', ',', 10_000)}]`))).toBe('429 rejected');
  });

  test('long chains of else, targets, arms, modifiers, scores and tie-breakers run', () => {
    expect(
      runs(`${a}default to tier "a" where stream ${many('else to tier "a" where stream', ' ', 5_000)} else reject`),
    ).toBe('429 rejected');
    expect(runs(`${a}default to tier "a" by ${many('least_tokens', '+', 250)}`)).toBe('a/1');
    expect(errors(`${a}default to tier "a" by ${many('least_tokens', '+', 5_000)}`)).toEqual(['E0142']);
    expect(runs(`${a}default to tier "a" by ${many('lowest(weight)', ' then ', 2_000)}`)).toBe('a/1');
    expect(
      runs(`${a}default to tier "a" with ${Array.from({ length: 5_000 }, (_, i) => `header "x-${i}" "y"`).join(', ')}`),
    ).toBe('a/1');
    const names = Array.from({ length: 60 }, (_, i) => `t${i}`);
    expect(
      runs(
        `${tiers(Object.fromEntries(names.map((name) => [name, 1])))}default to ${names.map((name) => `tier "${name}"`).join(', ')} by declared_order`,
      ),
    ).toBe('t0/1');
  });

  test('deep regular expressions and long ones', () => {
    const matching = (source: string): string => policy(`prompt matches r"${source}"`);
    expect(errors(matching(`${'('.repeat(64)}a${')'.repeat(64)}`))).toEqual([]);
    expect(runs(matching(`${'('.repeat(64)}hello${')'.repeat(64)}`))).toBe('a/1');
    expect(errors(matching(`${'('.repeat(65)}a${')'.repeat(65)}`))).toEqual(['E0330']);
    expect(errors(matching(`${'('.repeat(5_000)}a${')'.repeat(5_000)}`))).toEqual(['E0330']);
    expect(runs(matching('a'.repeat(10_000)))).toBe('429 rejected');
    expect(errors(matching('a'.repeat(40_000)))).toEqual(['E0330']);
    expect(errors(matching('a{30000}'))).toEqual(['E0330']);
    expect(errors(matching('(a{1000}){1000}'))).toEqual(['E0330']);
    expect(runs(matching(many('(a|b)', '', 2_000)))).toBe('429 rejected');
    expect(runs(matching(many('word', '|', 3_000)))).toBe('429 rejected');
  });

  test('what the compiler takes as a pattern can be searched for', () => {
    for (const source of [
      '(?i:a)',
      '(?<n>a)',
      '(?:a|b)+c',
      '[^\\d\\s]',
      '\\p{L}+',
      '\\u{1F600}',
      'a{2,}?',
      '(?-i:a)',
      '\\bx\\B',
      '[\\]]',
      '(?<a>x)|(?<b>y)',
    ]) {
      const text = policy(`prompt matches r"${source.replaceAll('\\\\', '\\')}"`);
      if (errors(text).length === 0) expect(runs(text), source).toMatch(/a\/1|429/);
      else expect(errors(text), source).toEqual([expect.stringMatching(/E033[01]/)]);
    }
  });

  test('lets that stand for lets', () => {
    const doubling = Array.from({ length: 40 }, (_, i) => `let x${i + 1} = x${i} + x${i}`).join('\n');
    expect(errors(`${a}let x0 = turns\n${doubling}\nroute when x40 > 5 to any\ndefault reject`)).toContain('E0142');
    const chain = (count: number): string =>
      `${a}let x0 = turns\n${Array.from({ length: count }, (_, i) => `let x${i + 1} = x${i} + 1`).join('\n')}\nroute when x${count} > 5 to any\ndefault reject`;
    expect(errors(chain(15_000))).toContain('E0142');
    expect(runs(chain(390))).toBe('a/1');
    const coalesced = `${a}let x0 = max_tokens\n${Array.from({ length: 300 }, (_, i) => `let x${i + 1} = x${i} ?? x${i}`).join('\n')}\nroute when x300 > 5 to any\ndefault reject`;
    expect(errors(coalesced)).toContain('E0142');
  });

  test('the same at every depth that is allowed: what compiles can be evaluated and explained', () => {
    const deepest = `${a}let x0 = turns\n${Array.from({ length: 390 }, (_, i) => `let x${i + 1} = x${i} + 1`).join('\n')}
route when ${many('x390', ' + ', 40)} > 5 to tier "a" where ${'not '.repeat(200)}(queued_tokens ${many('+ x390', ' ', 10)} > 5)\ndefault reject`;
    const result = compile(deepest);
    if (result.program === undefined) expect(result.diagnostics.map(({ code }) => code)).toContain('E0142');
    else {
      runs(deepest);
      expect(() => bench(deepest).explain()).not.toThrow();
    }
  });
});
