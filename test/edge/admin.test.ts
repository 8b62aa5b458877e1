import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectQuiet, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';

let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed();
});
afterEach(() => expectQuiet(bed));
afterAll(() => bed.stop());

const ask = (line: string, host = '127.0.0.1', lines = ''): Promise<number | undefined> =>
  exchange(bed.adminPort, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines}\r\n`).then(
    ({ statuses }) => statuses[0],
  );

test('S7: the admin listener answers to its own names only, so that no page can rebind to it', async () => {
  for (const host of ['localhost', '127.0.0.1', `127.0.0.1:${bed.adminPort}`, '[::1]'])
    expect([host, await ask('GET /-/policy', host)]).toEqual([host, 200]);
  for (const host of [
    'evil.test',
    '127.0.0.1.evil.test',
    'localhost.evil.test:80',
    'evil.test:127.0.0.1',
    '',
    'a@127.0.0.1',
  ])
    expect([host, await ask('GET /-/policy', host)]).toEqual([host, 403]);
});

test('S7: nothing is changed by GET, and a page of another origin may change nothing', async () => {
  expect(await ask('GET /-/reload')).toBe(404);
  expect(await ask('HEAD /-/reload')).toBe(404);
  for (const action of ['cordon', 'drain', 'uncordon']) expect(await ask(`GET /-/endpoints/a/${action}`)).toBe(404);
  expect(await ask('POST /-/reload', '127.0.0.1', 'Origin: http://evil.test\r\nContent-Length: 0\r\n')).toBe(403);
  expect(await ask('POST /-/reload', '127.0.0.1', 'Sec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n')).toBe(403);
  expect(await ask('POST /-/reload', '127.0.0.1', 'Content-Length: 0\r\n')).toBe(200);
});

test('S7: the data plane serves no admin path, and the admin listener no data path', async () => {
  for (const path of [
    '/metrics',
    '/-/reload',
    '/-/policy',
    '/-/decisions',
    '/-/endpoints',
    '/livez',
    '/readyz',
    '/-/explain',
  ]) {
    for (const method of ['GET', 'POST']) {
      const { statuses } = await exchange(
        bed.port,
        `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      );
      expect([method, path, statuses]).toEqual([method, path, [404]]);
    }
  }
  expect(await ask('GET /v1/models')).toBe(404);
  for (const path of ['/-/../-/policy', '/-//policy', '/-/policy/', '/-/policy%00', '/%2d/policy/x', '/-/policy;a'])
    expect([path, await ask(`GET ${path}`)]).toEqual([path, 404]);
});
