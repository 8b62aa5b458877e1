import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compilePolicy, diffPolicies, renderDiff, renderText, withAnalysis } from '../../packages/policy/src/index.ts';
import type { PolicyProgram } from '../../packages/policy/src/index.ts';
import { repositoryRoot } from './source-files.ts';

const page = readFileSync(join(repositoryRoot, 'docs/reference/analysis.md'), 'utf8');
const blocks = [...page.matchAll(/^```text\n([\s\S]*?)^```/gm)].map(([, text = '']) => text.trimEnd());

test('the finding on the page of the analysis is what its policy gives', () => {
  const text = /^```route-bad\n([\s\S]*?)^```/m.exec(page)?.[1] ?? '';
  const { diagnostics, sources } = withAnalysis(compilePolicy({ path: 'policy.route', text }));
  expect(renderText(diagnostics, sources, { color: false })).toContain(blocks[0]);
});

test('the difference on the page is what a rule with another limit gives', () => {
  const compile = (limit: number): PolicyProgram => {
    const tiers = ['8B', '70B'].map(
      (name, at) => `define tier "${name}" { model: "m", endpoints: ["http://10.0.0.${at}:1"] }`,
    );
    const rules = `route "hard" when complexity > ${limit} to tier "70B"\ndefault to tier "8B"`;
    const { program } = compilePolicy({ path: 'policy.route', text: `${tiers.join('\n')}\n${rules}` });
    if (program === undefined) throw new Error('the policy does not compile');
    return program;
  };
  expect(renderDiff(diffPolicies(compile(50), compile(60))).trimEnd()).toBe(blocks[1]);
});
