import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
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

test('every endpoint of a policy gets an engine, also where no profile says how fast its model is', async () => {
  writeFileSync(
    join(folder, 'own.route'),
    `define tier "own" { model: "in-house", gpu: "H100", endpoints: ["http://own:8000"] }
define tier "8B" { model: "llama-3.1-8b", gpu: "L4", endpoints: ["http://a:8000", "http://b:8000"] }
define tier "bare" { model: "llama-3.1-8b", endpoints: ["http://bare:8000"] }
default to tier "8B" by least_tokens
`,
  );
  const { program, diagnostics } = createPolicyLoader({ cwd: folder, allowPlugins: [] }).load('own.route');
  if (program === undefined) throw new Error(JSON.stringify(diagnostics));
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
