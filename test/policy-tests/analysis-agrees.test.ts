import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runPolicyTests } from '../../packages/core/src/index.ts';
import { analysePolicy } from '../../packages/policy/src/index.ts';
import { plugins } from '../semantics/support/bench.fixture.ts';
import { condition, policyText } from './support/arbitrary-policy.fixture.ts';
import { compileChecked } from './support/checked-policy.fixture.ts';

const outcome = fc.constantFrom(
  'to tier "a"',
  'to tier "c"',
  'to endpoint "b/1"',
  'route "r0"',
  'route "r0" to tier "b"',
  'default',
  'reject',
  'queue',
  'admit',
);
const ensure = fc.tuple(fc.option(condition, { nil: undefined }), fc.constantFrom('never', 'always'), outcome);

test('what analysis proves, no decision of the pipeline contradicts', () => {
  const found = { proved: 0, refuted: 0, shown: 0, not_proved: 0 };
  fc.assert(
    fc.property(policyText, fc.array(ensure, { minLength: 4, maxLength: 4 }), (text, ensures) => {
      const written = ensures.map(
        ([when, mode, what], index) =>
          `ensure "e${index}"${when === undefined ? '' : ` when ${when}`} ${mode} ${what}\n`,
      );
      const policy = compileChecked(text + written.join(''));
      const analysis = analysePolicy(policy.program, { checks: policy.checks });
      // Without verdicts each is searched.
      const { ensures: searched } = runPolicyTests({ ...policy, plugins, requests: 60 });
      const contradicted = searched.flatMap(({ verdict, claim, witness }, index) => {
        const proved = analysis.ensures[index]?.verdict ?? 'not_proved';
        found[proved]++;
        if (proved === 'refuted' && verdict === 'refuted') found.shown++;
        return proved === 'proved' && verdict === 'refuted' ? [`${claim}: ${witness ?? ''}`] : [];
      });
      expect(contradicted).toEqual([]);
    }),
    { numRuns: 60 },
  );
  process.stdout.write(`ensures: ${JSON.stringify(found)}\n`);
  expect(found.proved).toBeGreaterThan(5);
  expect(found.shown).toBeGreaterThan(5);
});
