import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ANSWER, CHAT, chat, rig, type Rig } from '../../packages/proxy/src/rig.fixture.ts';
import { json } from '../../packages/proxy/src/upstream.fixture.ts';

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

interface Slow {
  readonly text: () => string;
  readonly closed: Promise<number>;
  readonly socket: Socket;
}

/** Sends `head`, then `drip` every 20 ms for as long as the peer takes it. `closed` gives how long the peer stood it. */
function slowly(port: number, head: string, drip: string): Slow {
  const socket = connect({ port, host: '127.0.0.1' });
  open.push(socket);
  let text = '';
  const began = performance.now();
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  if (head !== '') socket.write(head);
  const timer = drip === '' ? undefined : setInterval(() => socket.write(drip), 20);
  const closed = new Promise<number>((resolve) =>
    socket.once('close', () => {
      clearInterval(timer);
      resolve(performance.now() - began);
    }),
  );
  return { text: () => text, closed, socket };
}

const LIMITS = { headersTimeoutMs: 300, requestTimeoutMs: 600, keepAliveTimeoutMs: 400 };
const strict = (): Promise<Rig> => rig(undefined, { limits: LIMITS });

describe('slow clients are cut in time, and cost the others nothing', () => {
  it.each([
    ['a head that never ends', 'GET /v1/models HTTP/1.1\r\nhost: x\r\n', 'a: b\r\n'],
    ['a head that stops', 'GET /v1/models HTTP/1.1\r\nhost', ''],
    ['a request line that drips', 'GET /', 'a'],
    ['line ends before a request', '', '\r\n'],
  ])('%s is answered 408', async (_name, head, drip) => {
    const { port, proxy } = await strict();
    const slow = slowly(port, head, drip);
    const tookMs = await slow.closed;
    expect(tookMs).toBeGreaterThan(LIMITS.headersTimeoutMs - 50);
    expect(tookMs).toBeLessThan(LIMITS.headersTimeoutMs * 10);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(slow.text()).toContain('"error"');
    expect(proxy.stats.live).toBe(0);
  });

  it('a connection that says nothing is closed', async () => {
    const { port } = await strict();
    expect(await slowly(port, '', '').closed).toBeLessThan(LIMITS.headersTimeoutMs * 10);
  });

  it.each([
    [
      'a body that drips',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n`,
      'x',
    ],
    [
      'chunks that drip',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
      '1\r\nx\r\n',
    ],
    [
      'a chunk extension that drips',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1`,
      ';a',
    ],
    [
      'a body that never comes',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n`,
      '',
    ],
  ])('%s is answered 408', async (_name, head, drip) => {
    const { port, proxy, router, upstream } = await strict();
    const slow = slowly(port, head, drip);
    const tookMs = await slow.closed;
    expect(tookMs).toBeGreaterThan(LIMITS.requestTimeoutMs - 100);
    expect(tookMs).toBeLessThan(LIMITS.requestTimeoutMs * 10);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
    await expect.poll(() => proxy.stats).toMatchObject({ live: 0, timers: 0 });
    expect({ leases: router.leases, requests: upstream.requests.length }).toEqual({ leases: 0, requests: 0 });
  });

  it('endless trailers are cut', async () => {
    const { port, proxy } = await strict();
    const slow = slowly(
      port,
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n0\r\n`,
      `a: ${'b'.repeat(2000)}\r\n`,
    );
    expect(await slow.closed).toBeLessThan(LIMITS.requestTimeoutMs * 10);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 4(?:08|31|00) /);
    await expect.poll(() => proxy.stats.live).toBe(0);
  });

  it('endless chunk extensions are cut by their size', async () => {
    const { port, proxy } = await strict();
    const slow = slowly(
      port,
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1`,
      `;${'a'.repeat(4000)}`,
    );
    expect(await slow.closed).toBeLessThan(LIMITS.requestTimeoutMs * 10);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 4(?:08|13|31|00) /);
    await expect.poll(() => proxy.stats.live).toBe(0);
  });

  it('an idle kept-alive connection is closed', async () => {
    const { port, upstream, client } = await strict();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client().post(CHAT, chat());
    await one.answer();
    await one.closed();
    expect(port).toBeGreaterThan(0);
  });

  it('200 slow clients do not hold up a quick one', async () => {
    const { port, upstream, client } = await strict();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const slow = Array.from({ length: 200 }, () => slowly(port, 'GET /v1/models HTTP/1.1\r\nhost: x\r\n', 'a: b\r\n'));
    for (let i = 0; i < 20; i++) expect((await client().post(CHAT, chat()).answer()).status).toBe(200);
    const ends = await Promise.all(slow.map(({ closed }) => closed));
    expect(Math.max(...ends)).toBeLessThan(LIMITS.headersTimeoutMs * 10);
  });
});
