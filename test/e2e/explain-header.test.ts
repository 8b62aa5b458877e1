import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { Bed } from './support/gateway.fixture.ts';
import { startBed } from './support/gateway.fixture.ts';

let bed: Bed;
let engine: Server | undefined;
afterEach(async () => {
  await bed.stop();
  engine?.closeAllConnections();
  engine?.close();
});

async function start(header: string): Promise<void> {
  bed = await startBed({
    engines: [{}],
    policy: ([url]) => `
define gateway { ${header} }
define tier "t" { model: "sim", endpoints: ["${url}"] }
reject "no tools" when tools > 0
route "für alle" when questions >= 0 and not (header["x-note"] == "none") to tier "t" by least_tokens`,
  });
}

async function explained(headers: object = {}, more: object = {}): Promise<string | null> {
  const answer = await fetch(`${bed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content: 'hi' }], max_tokens: 2, ...more }),
  });
  await answer.text();
  return answer.headers.get('x-signalbox-explain');
}
const asking = { 'x-signalbox-explain': '1' };

test('unless the policy allows it, no answer is explained, however it is asked for', async () => {
  await start('');
  expect([await explained(), await explained(asking)]).toEqual([null, null]);
});

test('asked: only requests that ask are answered with it, refusals and streams too', async () => {
  await start('explain_header: asked');
  expect(await explained()).toBe(null);
  expect(await explained({ ...asking, 'x-note': 'x' })).toMatch(
    /^t\/1 by "f%C3%BCr alle"; t\/1 least_tokens=[\d.e-]+; tools=0 .*questions=0$/,
  );
  expect(await explained({ ...asking, 'x-note': 'x' }, { stream: true })).toMatch(/^t\/1 by /);
  expect(await explained(asking, { tools: [{ type: 'function', function: { name: 'f' } }] })).toMatch(
    /^rejected by "no tools"; tools=1/,
  );
});

test('all: every answer has it, in 256 bytes at most, whatever a caller sends', async () => {
  await start('explain_header: all');
  const long = await explained({ 'x-note': `${'ä'.repeat(400)}%` });
  expect(long?.length).toBeGreaterThan(200);
  expect(long?.length).toBeLessThanOrEqual(256);
  expect(long).toMatch(/^[\x20-\x7e]*$/);
  expect(() => decodeURIComponent(long ?? '')).not.toThrow();
});

test('a change of the policy takes effect at once, and the question does not reach the model server', async () => {
  const seen: IncomingHttpHeaders[] = [];
  engine = createServer((request, response) => {
    seen.push(request.headers);
    request.resume().on('end', () => response.end('{}'));
  });
  await new Promise<void>((resolve) => engine?.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const policy = (header: string): string =>
    `define gateway { ${header} }\ndefine tier "t" { model: "sim", endpoints: ["${url}"] }\ndefault to tier "t" by least_tokens`;
  bed = await startBed({ engines: [], policy: () => policy('explain_header: all') });
  expect(await explained(asking)).toMatch(/^t\/1 by "default"/);
  bed.writePolicy(policy('explain_header: off'));
  await bed.gateway.reload();
  expect(await explained(asking)).toBe(null);
  expect(seen).toHaveLength(2);
  for (const headers of seen) expect(headers).not.toHaveProperty('x-signalbox-explain');
});
