import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BODY, CHAT, expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';
import { answerOk } from './support/recording-upstream.ts';

let bed: EdgeBed;
let connections = 0;
/** A server that no request may ever reach. */
const canary = createServer((socket) => {
  connections++;
  socket.destroy();
});
let evil = '';
beforeAll(async () => {
  bed = await startEdgeBed();
  canary.listen(0, '127.0.0.1');
  await once(canary, 'listening');
  evil = `127.0.0.1:${(canary.address() as AddressInfo).port}`;
});
afterEach(async () => {
  bed.upstream.respond = answerOk;
  await expectQuiet(bed);
  expect(connections).toBe(0);
});
afterAll(async () => {
  canary.close();
  await bed.stop();
});

describe('S2: no upstream address comes from a client', () => {
  it.each(['api_base', 'base_url', 'api_url', 'endpoint', 'host', 'url', 'custom_host', 'proxy'])(
    'bug-77: %s in the body is a field like any other',
    async (field) => {
      const body = JSON.stringify({
        ...(JSON.parse(BODY) as object),
        [field]: `http://${evil}/v1`,
        extra_body: { [field]: `http://${evil}` },
      });
      expect((await exchange(bed.port, post('', body))).statuses).toEqual([200]);
      expect(bed.upstream.take().map((request) => request.body)).toEqual([body]);
    },
  );

  it.each([
    'Host',
    'X-Forwarded-Host',
    'X-Gateway-Destination-Endpoint',
    'X-Signalbox-Endpoint',
    'X-Portkey-Custom-Host',
    'X-Original-Host',
    'Referer',
    'Origin',
    'X-Envoy-Original-Dst-Host',
  ])('the header %s does not choose it', async (name) => {
    const text = name === 'Host' ? post().replace('Host: x', `Host: ${evil}`) : post(`${name}: ${evil}\r\n`);
    expect((await exchange(bed.port, text)).statuses).toEqual([200]);
    expect(bed.upstream.take()).toHaveLength(1);
  });

  it.each([
    ['absolute form', () => post('', BODY, `http://${evil}${CHAT}`), 400],
    ['a network path', () => post('', BODY, `//${evil}${CHAT}`), 404],
    ['user information', () => post('', BODY, `/@${evil}${CHAT}`), 404],
    ['a tunnel', () => `CONNECT ${evil} HTTP/1.1\r\nHost: ${evil}\r\n\r\n`, 400],
    ['a query', () => post('', BODY, `${CHAT}?api_base=http://${evil}`), 200],
  ] as const)('%s does not choose it', async (_name, text, status) => {
    expect((await exchange(bed.port, text())).statuses).toEqual([status]);
  });

  it('addresses of images are the engine’s business and are not fetched', async () => {
    const content = [
      { type: 'image_url', image_url: { url: `http://${evil}/x.png` } },
      { type: 'text', text: 'what is it' },
    ];
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
    expect((await exchange(bed.port, post('', body))).statuses).toEqual([200]);
  });
});

describe('S2: no upstream address comes from an upstream', () => {
  it.each([300, 301, 302, 303, 304, 307, 308])(
    '%i is an error of the upstream, not followed and not passed on',
    async (status) => {
      bed.upstream.respond = (_request, socket) =>
        socket.write(
          `HTTP/1.1 ${status} X\r\nlocation: http://${evil}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n`,
        );
      const answer = await exchange(bed.port, post());
      expect(answer.statuses).toEqual([502]);
      expect(answer.text).not.toContain(evil);
      expect(bed.upstream.take().length).toBeGreaterThan(0);
    },
  );

  it('Alt-Svc, Link and Refresh are not followed', async () => {
    bed.upstream.respond = (_request, socket) =>
      socket.write(
        `HTTP/1.1 200 OK\r\nalt-svc: h2="${evil}"\r\nlink: <http://${evil}/>; rel=preconnect\r\nrefresh: 0; url=http://${evil}/\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
      );
    expect((await exchange(bed.port, post())).statuses).toEqual([200]);
  });

  it('an unasked switch of protocols is an error of the upstream', async () => {
    bed.upstream.respond = (_request, socket) =>
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
      );
    const answer = await exchange(bed.port, post(), { limitMs: 5_000 });
    expect(answer.statuses).toEqual([502]);
  });
});
