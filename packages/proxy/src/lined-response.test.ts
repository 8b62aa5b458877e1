import { createServer, request, type RequestListener, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { LinedResponse, namesAndValues } from './lined-response.ts';

const LINES = 'x-request-id: 1\r\nx-signalbox-route: big: one\r\nserver-timing: queue;dur=0, decide;dur=0.1\r\n';
const OTHERS = ['content-type', 'application/json', 'content-length', '2'];
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function headersOf(answer: RequestListener<typeof IncomingMessage, typeof LinedResponse>): Promise<{
  readonly status: number | undefined;
  readonly raw: readonly string[];
}> {
  const server = createServer({ ServerResponse: LinedResponse }, answer);
  closers.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, agent: false }, (response) => {
      response.resume().once('end', () => resolve({ status: response.statusCode, raw: response.rawHeaders }));
    })
      .once('error', reject)
      .end();
  });
}

/** Without the date, which is that of the moment. */
function undated(raw: readonly string[]): string[] {
  const at = raw.indexOf('Date');
  return raw.filter((_, index) => index !== at && index !== at + 1);
}

describe('LinedResponse', () => {
  test('writes the head that a list of the same headers makes', async () => {
    const lined = await headersOf((_, response) => {
      response.writeLined(201, LINES, OTHERS);
      response.end('{}');
    });
    const listed = await headersOf((_, response) => {
      response.writeHead(201, [...namesAndValues(LINES), ...OTHERS]);
      response.end('{}');
    });
    expect(undated(lined.raw)).toEqual(undated(listed.raw));
    expect(lined.raw.slice(0, 6)).toEqual([
      'x-request-id',
      '1',
      'x-signalbox-route',
      'big: one',
      'server-timing',
      'queue;dur=0, decide;dur=0.1',
    ]);
    expect([lined.status, listed.status]).toEqual([201, 201]);
  });

  test('still checks the other headers', async () => {
    const seen = await headersOf((_, response) => {
      expect(() => response.writeLined(200, LINES, ['x-bad', 'a\r\nx-smuggled: 1'])).toThrow(/Invalid character/);
      response.writeLined(200, '', OTHERS);
      response.end('{}');
    });
    expect(seen.raw).not.toContain('x-smuggled');
    expect(seen.raw).not.toContain('x-request-id');
  });
});
