import { expect, test } from 'vitest';
import { runPolicyTests } from '../../packages/core/src/index.ts';
import { analysePolicy, compilePolicy } from '../../packages/policy/src/index.ts';
import { manifests, plugins } from '../semantics/support/bench.fixture.ts';

const MAIN = `define gateway { listen: "0.0.0.0:8080", admin: "127.0.0.1:9901" }

define tier "8B"  { model: "llama-3.1-8b",  gpu: "L4",   endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "llama-3.1-70b", gpu: "H100", gpu_count: 4, endpoints: ["http://10.0.0.21:8000", "http://10.0.0.22:8000"] }
define tier "us"  { model: "llama-3.1-8b",  endpoints: ["http://10.0.0.31:8000"] }

route "hard" when complexity > 50 to tier "70B" by least_tokens with affinity session
default to tier "8B" by least_tokens
`;

const TESTS = `import "./main.route"

ensure "EU data stays in the EU" when tenant.region == "eu" never to tier "us"

test "a hard prompt goes to the least loaded 70B" {
  given complexity = 72, session = "s-1"
  given endpoint "gpu-a" { tier: "70B", queued_tokens: 9k }
  given endpoint "gpu-b" { tier: "70B", queued_tokens: 2k }
  expect route "hard" to endpoint "gpu-b"
}
`;

test('the tests of the language design run as they stand there', () => {
  const { program, checks } = compilePolicy({
    path: 'main.test.route',
    text: TESTS,
    readFile: (path) => (path === 'main.route' ? MAIN : undefined),
    manifests,
  });
  if (program === undefined || checks === undefined) throw new TypeError('the example compiles');
  const verdicts = analysePolicy(program, { checks }).ensures;
  const report = runPolicyTests({ program, checks, plugins, verdicts });
  expect(report.tests.map(({ passed, unmet }) => [passed, unmet])).toEqual([[true, []]]);
  expect(report.ensures.map(({ verdict, tried }) => [verdict, tried])).toEqual([['proved', 0]]);
});
