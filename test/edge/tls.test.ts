import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BODY, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-tls-'));

/** A certificate for localhost, and its key. */
function certificate(name: string): { readonly cert: string; readonly key: string } {
  const at = (file: string): string => join(folder, `${name}.${file}`);
  const made = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(' ');
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', [...made, ...names, '-keyout', at('key'), '-out', at('cert')], { stdio: 'ignore' });
  return { cert: readFileSync(at('cert'), 'utf8'), key: readFileSync(at('key'), 'utf8') };
}

const first = certificate('first');
const second = certificate('second');
let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed({
    gateway: 'tls: { cert: "tls.cert", key: "tls.key" }',
    files: { 'tls.cert': first.cert, 'tls.key': first.key },
  });
});
afterAll(async () => {
  await bed.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Said {
  readonly status: number | null;
  readonly out: string;
}

/** What `openssl s_client` makes of the listener; its client end accepts whatever is asked for. */
async function sClient(...options: readonly string[]): Promise<Said> {
  const target = ['-connect', `127.0.0.1:${bed.port}`, '-servername', 'localhost'];
  const child = spawn('openssl', ['s_client', ...target, '-cipher', 'DEFAULT@SECLEVEL=0', ...options]);
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stdin.on('error', () => undefined).end();
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, out };
}

async function open(): Promise<TLSSocket> {
  const socket = connect({ port: bed.port, host: '127.0.0.1', servername: 'localhost', ca: [first.cert, second.cert] });
  await once(socket, 'secureConnect');
  return socket;
}
const subject = async (): Promise<string> => {
  const socket = await open();
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
};
async function ask(socket: TLSSocket): Promise<string> {
  socket.write(post('', BODY));
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString('latin1').slice(0, 12);
}

test.each(['-tls1_2', '-tls1_3'])('S10: openssl %s is served', async (version) => {
  const { out, status } = await sClient(version);
  expect(status).toBe(0);
  expect(out).toMatch(/Cipher is (?!\(NONE\))/);
});

test.each(['-tls1', '-tls1_1'])('S10: openssl %s is refused by the listener for its version', async (version) => {
  const { out, status } = await sClient(version);
  expect(status).not.toBe(0);
  expect(out).toMatch(/alert protocol version/);
  expect(out).toContain('Cipher is (NONE)');
});

test.each(['RC4', 'aNULL', 'eNULL', '3DES', 'EXPORT'])('S10: no cipher of the kind %s is agreed on', async (kind) => {
  const { out } = await sClient('-tls1_2', '-cipher', `${kind}@SECLEVEL=0`);
  expect(out).toMatch(/Cipher is \(NONE\)|no cipher match|handshake failure/);
  expect(out).not.toMatch(/Cipher is (?!\(NONE\))/);
});

test('S10: clear text to the TLS listener is no request', async () => {
  bed.upstream.take();
  await expect(fetch(`http://127.0.0.1:${bed.port}/v1/models`)).rejects.toThrow('fetch failed');
  expect(bed.upstream.take()).toEqual([]);
});

test('S10: a new certificate is served when its files change, with no restart and no connection cut', async () => {
  const old = await open();
  expect(await ask(old)).toBe('HTTP/1.1 200');
  expect(await subject()).toBe('first');
  writeFileSync(join(bed.folder, 'tls.cert'), second.cert);
  writeFileSync(join(bed.folder, 'tls.key'), second.key);
  await expect.poll(subject, { timeout: 10_000 }).toBe('second');
  expect(await ask(old)).toBe('HTTP/1.1 200');
  expect(old.getPeerCertificate().subject.CN).toBe('first');
  old.destroy();
});

test('S10: a certificate that does not fit its key is refused with its reason, and the last good one goes on', async () => {
  const before = await subject();
  writeFileSync(join(bed.folder, 'tls.key'), before === 'first' ? second.key : first.key);
  const report = await bed.gateway.reload();
  expect(report).toMatchObject({ ok: false });
  expect(report.text).toMatch(/TLS files tls\.cert and tls\.key do not make a listener: .*key values mismatch/);
  expect(await subject()).toBe(before);
  writeFileSync(join(bed.folder, 'tls.cert'), 'no certificate');
  expect((await bed.gateway.reload()).text).toMatch(/both in PEM/);
  expect(await subject()).toBe(before);
});
