import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Bed } from '../e2e/support/gateway.fixture.ts';
import { startBed } from '../e2e/support/gateway.fixture.ts';

let bed: Bed;
beforeAll(async () => {
  bed = await startBed({
    engines: [{}, {}],
    policy: ([a, b]) => `
      define tier "a" { model: "sim", endpoints: ["${a}", "${b}"] }
      reject "long" when prompt_tokens > 1k
      default to tier "a" by least_tokens`,
  });
});
afterAll(() => bed.stop());

test('promtool finds nothing wrong with /metrics after traffic of every kind', async () => {
  const ask = (body: unknown): Promise<Response> =>
    fetch(`${bed.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const messages = [{ role: 'user', content: 'hello' }];
  for (const body of [
    { model: 'sim', messages },
    { model: 'sim', messages, stream: true },
    { model: 'nothing', messages },
    { model: 'sim', messages: [] },
    { model: 'sim', messages: [{ role: 'user', content: 'word '.repeat(5000) }] },
  ]) {
    await (await ask(body)).arrayBuffer();
  }
  const text = await (await fetch(`${bed.gateway.adminUrl}/metrics`)).text();
  expect(text).toMatch(/signalbox_requests_total\{.*code="200"/);
  expect(text).toMatch(/signalbox_requests_total\{.*code="404"/);
  expect(text).toMatch(/signalbox_requests_total\{.*code="400"/);
  expect(text).toMatch(/signalbox_requests_total\{.*code="429"/);
  const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  expect(promtool.error).toBeUndefined();
  expect({ status: promtool.status, said: promtool.stdout + promtool.stderr }).toEqual({ status: 0, said: '' });
});
