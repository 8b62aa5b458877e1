import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../packages/gateway/src/gateway.ts';
import { RawClient } from '../../packages/proxy/src/client.fixture.ts';
import type { DecisionRecord } from '../../packages/telemetry/src/index.ts';
import { CHAT, DONE, streaming } from './support/wire.fixture.ts';

const STALL_MS = 2_000;

/**
 * A model server on a thread of its own, which goes on while the gateway's thread stands still: the head at once, the first event after
 * 300 ms, and an event each 100 ms for 4 s.
 */
const SERVER = `
const { createServer } = require('node:http');
const { parentPort } = require('node:worker_threads');
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    parentPort.postMessage('asked');
    let sent = 0;
    setTimeout(function next() {
      response.write('data: {"model":"m","choices":[{"index":0,"delta":{"content":"' + sent + ' "}}]}\\n\\n');
      if (++sent < 40) setTimeout(next, 100);
      else response.end('data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n');
    }, 300);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

/** Stops this thread, and with it the gateway's event loop. */
function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
}

test.each(['waiting for the first event', 'streaming'] as const)(
  'F15: a stall of 2 s beyond every timeout while %s is no timeout of the server',
  async (phase) => {
    const worker = new Worker(SERVER, { eval: true });
    const [port] = (await once(worker, 'message')) as [number];
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-stall-'));
    const policyPath = join(folder, 'policy.route');
    writeFileSync(
      policyPath,
      `define tier "t" { model: "m", endpoints: ["http://127.0.0.1:${port}"] }\ndefault to tier "t" with retry 0, first_token 1s, idle 1s`,
    );
    const records: DecisionRecord[] = [];
    const gateway = await startGateway({
      policyPath,
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      onDecision: (record) => records.push(record),
    });
    const client = new RawClient(Number(new URL(gateway.url).port));
    onTestFinished(async () => {
      client.destroy();
      await gateway.stop({ graceMs: 0 });
      await worker.terminate();
      rmSync(folder, { recursive: true, force: true });
    });

    const asked = once(worker, 'message');
    client.post(CHAT, streaming());
    await asked;
    if (phase === 'streaming') await client.until((text) => text.includes('data: '));
    stall();
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(answer.body.endsWith(DONE)).toBe(true);
    expect(answer.body.match(/"content"/g)).toHaveLength(40);
    await expect.poll(() => records.length).toBe(1);
    expect(records[0]).toMatchObject({ status: 200, code: '', attempts: [{ outcome: 'ok' }] });
    expect(gateway.endpoints()[0]?.healthy).toBe(true);
    expect((await fetch(`${gateway.adminUrl}/livez`)).status).toBe(200);
  },
);
