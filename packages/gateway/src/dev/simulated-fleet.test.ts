import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PolicyProgram } from '@signalbox/policy';
import { createPolicyLoader } from '../policy/load-policy.ts';
import { createSimulatedFleet } from './simulated-fleet.ts';
import type { SimulatedFleet } from './simulated-fleet.ts';

let folder: string;
let fleet: SimulatedFleet;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-fleet-'));
  fleet = createSimulatedFleet({ timeScale: 1000 });
});
afterEach(async () => {
  await fleet.close();
  rmSync(folder, { recursive: true, force: true });
});

function load(text: string): PolicyProgram {
  writeFileSync(join(folder, 'own.route'), text);
  const { program, diagnostics } = createPolicyLoader({ cwd: folder, allowPlugins: [] }).load('own.route');
  if (program === undefined) throw new Error(JSON.stringify(diagnostics));
  return program;
}

test('an edit of what an endpoint is gives it another engine, and leaves those of the others', async () => {
  const policy = (model: string, gpu: string): PolicyProgram =>
    load(`define tier "a" { model: "llama-3.1-8b", gpu: "L4", endpoints: ["http://a:8000"] }
define tier "b" { model: "${model}", gpu: "${gpu}", endpoints: ["http://b:8000"] }
default to tier "a" by least_tokens
`);
  await fleet.stand(policy('llama-3.1-8b', 'L4'));
  const first = new Map(fleet.engines);
  await fleet.stand(policy('llama-3.1-8b', 'H100'));
  expect(fleet.engines.get('http://a:8000')).toBe(first.get('http://a:8000'));
  expect(fleet.engines.get('http://b:8000')?.profile?.gpu).toBe('H100-80GB-SXM');
  await fleet.stand(policy('llama-3.1-70b', 'H100'));
  expect(fleet.engines.get('http://b:8000')?.model).toBe('llama-3.1-70b');
  expect(fleet.engines.get('http://a:8000')).toBe(first.get('http://a:8000'));
});

test('every endpoint of a policy gets an engine, also where no profile says how fast its model is', async () => {
  const program = load(
    `define tier "own" { model: "in-house", gpu: "H100", endpoints: ["http://own:8000"] }
define tier "8B" { model: "llama-3.1-8b", gpu: "L4", endpoints: ["http://a:8000", "http://b:8000"] }
define tier "bare" { model: "llama-3.1-8b", endpoints: ["http://bare:8000"] }
default to tier "8B" by least_tokens
`,
  );
  const stood = await fleet.stand(program);
  expect([...fleet.engines].map(([url, { profile }]) => [url, profile?.gpu])).toEqual([
    ['http://own:8000', undefined],
    ['http://a:8000', 'L4-24GB'],
    ['http://b:8000', 'L4-24GB'],
    ['http://bare:8000', undefined],
  ]);
  const urls = stood.definitions.tiers.flatMap(({ endpoints }) => endpoints.map(({ url }) => url));
  expect(urls).toEqual([...fleet.engines.values()].map(({ url }) => url));
  const answers = await Promise.all(urls.map((url) => fetch(`${url}/v1/models`)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});
