import { expect, test } from 'vitest';
import { compilePolicy } from '../compile.ts';
import type { PolicyProgram } from '../ir.ts';
import { analysePolicy } from './analyse-policy.ts';
import { diffPolicies } from './diff-policies.ts';

/*
 * Ceilings far above what is expected (1,000 rules in one to two seconds), so that nothing depends on the machine; the figures are printed,
 * and measured in test/bench.
 */

const RULES = 1000;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'main.route', text });
  if (program === undefined) throw new Error(diagnostics[0]?.message ?? '');
  return program;
}

const policy = (last = ''): string =>
  [
    ...Array.from(
      { length: RULES },
      (_, index) =>
        `route "r${index}" when complexity > ${index % 100} and priority in ["low", "high"] and turns > ${index % 17} and tenant.id == "t${index % 200}" to any`,
    ),
    last,
    'default to any',
  ].join('\n');

test('a thousand rules are analysed and compared within the budget of each question', () => {
  const program = compile(policy());
  const start = cpuMs();
  const { rules, unconfirmed } = analysePolicy(program);
  const analysed = cpuMs();
  const { moves } = diffPolicies(program, compile(policy('route "new" when stream to any else reject')));
  const compared = cpuMs();
  console.info(
    `${RULES} rules: analysed in ${Math.round(analysed - start)} ms and compared in ${Math.round(compared - analysed)} ms of CPU`,
  );
  expect(rules.filter(({ verdict }) => verdict === 'not_proved')).toEqual([]);
  expect(rules.filter(({ verdict }) => verdict === 'shadowed').length).toBeGreaterThan(100);
  expect(unconfirmed).toBe(0);
  expect(moves).toMatchObject([{ region: 'stream', to: { label: 'new' } }]);
  expect(analysed - start).toBeLessThan(30_000);
  expect(compared - analysed).toBeLessThan(30_000);
}, 180_000);

test('past its budget a question is not proved, and says so', () => {
  const { rules, diagnostics } = analysePolicy(
    compile('route "a" when stream to any\nroute "b" when not stream and turns > 1 to any\ndefault to any'),
    { budget: 1 },
  );
  expect(rules.find(({ label }) => label === 'b')).toMatchObject({
    verdict: 'not_proved',
    reason: 'budget of 1 steps used up',
  });
  expect(diagnostics).toEqual([]);
});

test('conditions nested as deep as the language lets them are decided or given up, never a crash', () => {
  const deep = Array.from({ length: 30 }).reduce<string>(
    (inner) => `(stream == (reasoning == ${inner}))`,
    'json_schema',
  );
  const { rules } = analysePolicy(compile(`route "deep" when ${deep} to any\ndefault to any`));
  expect(rules.map(({ label }) => label)).toEqual(['deep', 'default']);
  const wide = (parts: number): string | undefined => {
    const condition = Array.from({ length: parts }, (_, at) => `(turns != ${at} or tools != ${at})`).join(' and ');
    return analysePolicy(compile(`route "wide" when ${condition} to any\ndefault to any`)).rules[0]?.verdict;
  };
  expect(wide(100)).toBe('reachable');
  expect(['reachable', 'not_proved']).toContain(wide(3000));
}, 60_000);
