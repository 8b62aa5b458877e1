// The contract suite returns plain checks, so that any runner can loop over them; this one is Node's own.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { toManifest } from '@signalbox/plugin-api';
import { candidates, checkPlugin, requestView, scorerContract, setupContext } from '@signalbox/testkit';
import plugin from 'signalbox-scorer-least-grams';

for (const packageOptions of [{}, { grams_per_kwh: 50, regions: { eu: 250, us: 400 } }]) {
  for (const check of scorerContract(plugin, 'least_grams', { packageOptions })) {
    test(`${check.name} with ${JSON.stringify(packageOptions)}`, (t) => {
      const result = check.run();
      if (result !== undefined) t.diagnostic(result.note);
    });
  }
}

test('the plugin is well formed, and its manifest is what the code gives', () => {
  assert.deepEqual(checkPlugin(plugin), []);
  const written = JSON.parse(readFileSync(new URL('../manifest.json', import.meta.url), 'utf8'));
  assert.deepEqual(written, JSON.parse(JSON.stringify(toManifest(plugin))));
});

/** Costs of endpoints for a request of 1000 prompt and 100 output tokens, which is 2 seconds of work at 100 tokens/s. */
function costs(endpoints, options = { grams_per_kwh: 400, regions: { eu: 250 } }) {
  const scorer = plugin.provides.scorer.least_grams.setup(setupContext(undefined, { options }));
  const out = new Float64Array(endpoints.length);
  scorer.score(requestView({ prompt_tokens: 1000, output_tokens: 100 }), candidates(endpoints), out);
  return [...out];
}

test('the cost is watts · seconds · grams for each kWh', () => {
  const [eu, elsewhere] = costs([
    { power: 700, throughput: 100, region: 'eu' },
    { power: 700, throughput: 100 },
  ]);
  assert.ok(Math.abs(eu - (700 * 2 * 250) / 3.6e6) < 1e-12);
  assert.ok(Math.abs(elsewhere - (700 * 2 * 400) / 3.6e6) < 1e-12);
});

test('unknown power or throughput gives an unknown cost', () => {
  assert.deepEqual(costs([{ power: 700 }, { throughput: 100 }, {}]), [NaN, NaN, NaN]);
});
