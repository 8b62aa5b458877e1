import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { queryObjects } from 'node:v8';
import { Client } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { EndpointPools, type ConnectionAware } from './endpoint-pools.ts';

const CALLS = 40;

/** Calls at once, each of which has a connection of its own; resolves with the statuses when all have ended. */
async function callAtOnce(pools: EndpointPools, origin: string): Promise<number[]> {
  const target = { origin, basePath: '', headers: [], ca: undefined, engine: 'auto' };
  return Promise.all(
    Array.from({ length: CALLS }, () => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      let status = 0;
      const handler: ConnectionAware = {
        connection: undefined,
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => void (status = statusCode),
        onResponseData: () => undefined,
        onResponseEnd: () => resolve(status),
        onResponseError: (_controller, error) => reject(error),
      };
      pools.dispatch(target, { origin, path: '/', method: 'GET' }, handler, 0);
      return promise;
    }),
  );
}

test('connections that have closed leave no clients behind, however many there were at once', async () => {
  const waiting: (() => void)[] = [];
  const server = createServer((_request, response) => {
    waiting.push(() => response.writeHead(200, { connection: 'close' }).end('x'));
    if (waiting.length === CALLS) for (const answer of waiting.splice(0)) answer();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const pools = new EndpointPools(60_000);
  onTestFinished(async () => {
    await pools.destroy();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // A few may stay reachable from what was called last.
  const before = queryObjects(Client, { format: 'count' });
  for (let round = 0; round < 3; round++) {
    expect(await callAtOnce(pools, origin)).toEqual(Array.from({ length: CALLS }, () => 200));
    await expect
      .poll(() => queryObjects(Client, { format: 'count' }) - before, { timeout: 20_000 })
      .toBeLessThan(CALLS / 10);
  }
});
