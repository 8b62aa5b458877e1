import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';

/** What a caller writes to pass for another. */
const SPOOFED = [
  'X-Forwarded-For: 203.0.113.9',
  'x-forwarded-for: 198.51.100.1, 10.0.0.1',
  'X-Forwarded-Proto: gopher',
  'X-Forwarded-Host: evil.test',
  'X-Forwarded-Prefix: /admin',
  'Forwarded: for=203.0.113.9;proto=gopher',
  'X-Real-IP: 203.0.113.9',
  'True-Client-IP: 203.0.113.9',
];
const lines = (headers: readonly string[]): string => headers.map((header) => `${header}\r\n`).join('');

let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed();
});
afterEach(() => expectQuiet(bed));
afterAll(() => bed.stop());

/** The forwarding headers that reach the upstream, in their order. */
async function forwarded(headers: readonly string[]): Promise<readonly (readonly [string, string])[]> {
  bed.upstream.take();
  expect((await exchange(bed.port, post(lines(headers)))).statuses).toEqual([200]);
  const [request, ...more] = bed.upstream.take();
  expect(more).toEqual([]);
  return (request?.headers ?? []).filter(([name]) => /forwarded|real-ip|true-client|original|envoy/.test(name));
}

describe('S11: forwarding headers', () => {
  test('where no proxy is trusted they are dropped, and none is sent upstream', async () => {
    await bed.reload({});
    expect(await forwarded(SPOOFED)).toEqual([]);
  });

  test('of a peer outside of the listed networks they are dropped, then set by what the connection tells', async () => {
    await bed.reload({ gateway: 'trusted_proxies: ["10.0.0.0/8", "192.0.2.7", "fd00::/8"]' });
    expect(await forwarded(SPOOFED)).toEqual([
      ['x-forwarded-for', '127.0.0.1'],
      ['x-forwarded-proto', 'http'],
      ['x-forwarded-host', 'x'],
    ]);
  });

  test.each(['127.0.0.0/8', '127.0.0.1', '0.0.0.0/0'])(
    'of a peer in %s they pass, and the peer itself is added to the list',
    async (network) => {
      await bed.reload({ gateway: `trusted_proxies: ["10.0.0.0/8", "${network}"]` });
      const headers = await forwarded(SPOOFED);
      expect(headers.filter(([name]) => name === 'x-forwarded-for')).toEqual([
        ['x-forwarded-for', '203.0.113.9, 198.51.100.1, 10.0.0.1, 127.0.0.1'],
      ]);
      expect(headers).toContainEqual(['x-forwarded-proto', 'gopher']);
      expect(headers).toContainEqual(['x-forwarded-host', 'evil.test']);
      expect(headers).toContainEqual(['forwarded', 'for=203.0.113.9;proto=gopher']);
      expect(headers).toContainEqual(['x-real-ip', '203.0.113.9']);
    },
  );

  test('no client can name away what is set for it', async () => {
    await bed.reload({ gateway: 'trusted_proxies: ["10.0.0.0/8"]' });
    const headers = await forwarded(['Connection: x-forwarded-for, x-forwarded-proto', 'X-Forwarded-For: 1.2.3.4']);
    expect(headers).toContainEqual(['x-forwarded-for', '127.0.0.1']);
  });

  test('the list is live: a reload takes a network out, and a wrong one changes nothing', async () => {
    await bed.reload({ gateway: 'trusted_proxies: ["127.0.0.1"]' });
    expect(await forwarded(['X-Real-IP: 1.2.3.4'])).toContainEqual(['x-real-ip', '1.2.3.4']);
    const report = await bed.reload({ gateway: 'trusted_proxies: ["127.0.0.1/8"]' });
    expect(report).toMatchObject({ ok: false });
    expect(report.text).toMatch(/error\[E0514\].*is no network/);
    expect(report.text).toContain('^^^^^^^^^^^^^');
    expect(report.text).toContain('`127.0.0.0/8`');
    expect(await forwarded(['X-Real-IP: 1.2.3.4'])).toContainEqual(['x-real-ip', '1.2.3.4']);
    await bed.reload({ gateway: 'trusted_proxies: []' });
    expect(await forwarded(['X-Real-IP: 1.2.3.4'])).toEqual([]);
  });
});
