import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createDecisionLog, createLogger } from '../../packages/telemetry/src/index.ts';
import { signalbox, signalboxWithInput, startSignalbox } from './support/command.fixture.ts';
import type { Bed, BedOptions } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const ACME_KEY = 'sbx-acme-0123456789abcdefghijklmnopqrstuvwxyz';
const GLOBEX_KEY = 'sbx-globex-0123456789abcdefghijklmnopqrstuvw';
const FREE_KEY = 'sbx-free-0123456789abcdefghijklmnopqrstuvwxyz';
const UPSTREAM_KEY = 'upstream-0123456789abcdefghijklmnopqrstuvwxyz';
const KEYS = `${sha256(ACME_KEY)} tenant=acme name=ci\n${sha256(FREE_KEY)}\n`;

const policy = ([a, b]: readonly string[]): string => `
  define gateway { models: ["auto"], keys: { file: "keys.txt" }, audit: { file: "audit.ndjson" } }
  define tenant "acme" { class: high, region: "eu" }
  define tenant "globex" { keys: ["${sha256(GLOBEX_KEY)}"], region: "us" }
  define tier "eu" { model: "sim", endpoints: ["${a}"], key: { file: "upstream.txt" } }
  define tier "us" { model: "sim", endpoints: ["${b}"], key: { file: "upstream.txt" } }
  route "ci" when api_key.name == "ci" and priority == "high" to tier "eu" with affinity session
  route "us" when tenant.id == "globex" and tenant.region == "us" to tier "us" with affinity session
  route "prompted" when user == "nobody" and prompt contains "x" to tier "us"
  default to any with affinity session`;

let bed: Bed | undefined;
afterEach(async () => {
  await bed?.stop();
  bed = undefined;
});

async function start(more: Partial<BedOptions> = {}): Promise<Bed> {
  bed = await startBed({
    engines: [{ apiKey: UPSTREAM_KEY }, { apiKey: UPSTREAM_KEY }],
    policy,
    files: { 'keys.txt': KEYS, 'upstream.txt': `${UPSTREAM_KEY}\n` },
    ...more,
  });
  return bed;
}

interface Asked {
  readonly key?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: object;
}

function ask({ gateway }: Bed, { key, headers = {}, body = {} }: Asked = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'hello' }], max_tokens: 1, ...body }),
  });
}

const upstreamRequests = ({ engines }: Bed): number =>
  engines.reduce((sum, engine) => sum + engine.requests.count(), 0);

/** Sends bytes and gives all that comes back until the end. */
function raw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.on('close', () => resolve(text));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error),
    );
    socket.write(bytes);
  });
}

test('S1: a missing, wrong, cut, lengthened, misplaced or huge key gets the same 401, before anything reaches a model server', async () => {
  const at = await start();
  const wrong: readonly Asked[] = [
    {},
    { key: '' },
    { key: 'sk-wrong' },
    { key: ACME_KEY.slice(0, -1) },
    { key: `${ACME_KEY}x` },
    { key: ACME_KEY.toUpperCase() },
    { key: sha256(ACME_KEY) },
    { key: 'x'.repeat(15_000) },
    { headers: { authorization: `Basic ${Buffer.from(ACME_KEY).toString('base64')}` } },
    { headers: { cookie: `key=${ACME_KEY}` } },
    { headers: { 'x-api-key': `${ACME_KEY} y` } },
    { key: 'sk-wrong', headers: { 'x-api-key': ACME_KEY } },
    { body: { api_key: ACME_KEY } },
  ];
  const answers = await Promise.all(wrong.map((one) => ask(at, one)));
  const texts = new Set(await Promise.all(answers.map((answer) => answer.text())));
  expect(answers.map(({ status }) => status)).toEqual(wrong.map(() => 401));
  expect(texts.size).toBe(1);
  expect(JSON.parse([...texts][0] ?? '')).toEqual({
    error: {
      message: 'The API key is missing or not known. Send one as `Authorization: Bearer KEY`.',
      type: 'authentication_error',
      param: null,
      code: 'invalid_api_key',
    },
  });
  expect(answers.every((answer) => answer.headers.get('www-authenticate') === 'Bearer')).toBe(true);
  for (const path of ['/v1/models', '/v1/models/auto', '/v1/embeddings', '/v1/messages']) {
    const isModels = path.startsWith('/v1/models');
    const answer = await fetch(
      at.gateway.url + path,
      isModels ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    );
    expect([path, answer.status]).toEqual([path, 401]);
  }
  const huge = await raw(
    at.gateway.url,
    `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${'x'.repeat(1 << 20)}\r\n\r\n`,
  );
  expect(huge).toMatch(/^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer\r\n/s);
  expect(huge.slice(huge.indexOf('\r\n\r\n') + 4)).toBe([...texts][0]);
  expect(upstreamRequests(at)).toBe(0);
  expect(await (await fetch(`${at.gateway.adminUrl}/metrics`)).text()).toMatch(
    /signalbox_requests_total\{[^}]*code="401",reason="invalid_api_key"\} 1\d/,
  );
});

test('a key is taken as bearer token, x-api-key or api-key, and is not sent on', async () => {
  const at = await start();
  for (const headers of [
    { authorization: `Bearer ${ACME_KEY}` },
    { authorization: `bearer  ${ACME_KEY}` },
    { 'x-api-key': ACME_KEY },
    { 'api-key': ACME_KEY },
  ]) {
    // The engine answers 401 to any key but its own.
    expect((await ask(at, { headers })).status).toBe(200);
  }
  const models = await fetch(`${at.gateway.url}/v1/models`, { headers: { 'x-api-key': FREE_KEY } });
  expect(models.status).toBe(200);
  expect(
    ((await models.json()) as { readonly data: readonly { readonly id: string }[] }).data.map(({ id }) => id),
  ).toEqual(['auto', 'sim']);
});

test("a tenant's fields and class, and the key's name, decide the route; records name the tenant", async () => {
  const at = await start();
  const routeOf = async (key: string): Promise<readonly (string | null)[]> => {
    const { headers } = await ask(at, { key });
    return [headers.get('x-signalbox-route'), headers.get('x-signalbox-tier')];
  };
  expect(await routeOf(ACME_KEY)).toEqual(['ci', 'eu']);
  expect(await routeOf(GLOBEX_KEY)).toEqual(['us', 'us']);
  expect((await routeOf(FREE_KEY))[0]).toBe('default');
  await eventually(() => at.gateway.decisions(9).length === 3, 'the records');
  expect(
    at.gateway
      .decisions(9)
      .map(({ tenant }) => tenant)
      .toReversed(),
  ).toEqual(['acme', 'globex', '']);
  expect(at.gateway.decisions(9).at(-1)?.signals).toMatchObject({ 'api_key.name': 'ci', priority: 'high' });
});

test('bug-79: two tenants with one session name share no affinity key, two keys of one tenant do', async () => {
  const second = 'sbx-acme-second-key';
  const at = await start({
    files: { 'keys.txt': `${KEYS}${sha256(second)} tenant=acme name=other\n`, 'upstream.txt': UPSTREAM_KEY },
  });
  for (const key of [ACME_KEY, second, GLOBEX_KEY, FREE_KEY])
    await (await ask(at, { key, headers: { 'x-session-id': 's-1' } })).text();
  await eventually(() => at.gateway.decisions(9).length === 4, 'the records');
  const [acme, other, globex, free] = at.gateway
    .decisions(9)
    .map(({ keys }) => keys.affinity)
    .toReversed();
  expect(acme).toMatch(/^[0-9a-f]{16}$/);
  expect(other).toBe(acme);
  expect(new Set([acme, globex, free]).size).toBe(3);
});

test('keys are rotated by editing the list: no restart, no request lost, and a list with an error changes nothing', async () => {
  const at = await start({
    engines: [
      { apiKey: UPSTREAM_KEY, speed: { tokensPerSecond: 40, prefillTokensPerSecond: 1e6 } },
      { apiKey: UPSTREAM_KEY },
    ],
  });
  const status = async (key: string): Promise<number> => {
    const answer = await ask(at, { key });
    await answer.text();
    return answer.status;
  };
  const stream = await ask(at, { key: ACME_KEY, body: { stream: true, max_tokens: 40, ignore_eos: true } });
  const text = stream.text();
  const next = 'sbx-the-next-key';

  writeFileSync(at.path('keys.txt'), `${KEYS}${sha256(next)} tenant=acme name=ci\n`);
  await eventually(async () => (await status(next)) === 200, 'the new key is let in');
  expect(await status(ACME_KEY)).toBe(200);
  expect(at.reloads.at(-1)).toMatchObject({ ok: true, changed: false, keysChanged: true, keys: 4 });
  const again = await fetch(`${at.gateway.adminUrl}/-/reload`, { method: 'POST' });
  expect(await again.json()).toMatchObject({ ok: true, changed: false, keysChanged: false, keys: 4 });

  const typo = 'sk-typed-into-the-wrong-file';
  writeFileSync(at.path('keys.txt'), `${sha256(next)} tenant=acme\n${typo}\n`);
  await eventually(() => at.reloads.at(-1)?.ok === false, 'the broken list is refused');
  expect(at.reloads.at(-1)?.text).toMatch(
    /the API keys of the file keys\.txt are not in order: line 2 does not begin with the SHA-256 hash/,
  );
  expect(JSON.stringify(at.reloads)).not.toContain(typo);
  expect(await status(ACME_KEY)).toBe(200);

  writeFileSync(at.path('keys.txt'), `${sha256(next)} tenant=acme name=ci\n`);
  await eventually(async () => (await status(ACME_KEY)) === 401, 'the old key is let in no more');
  expect(await status(next)).toBe(200);
  expect(await text).toMatch(/data: \[DONE\]\n\n$/);
});

test('a gateway that others can reach does not start without keys, unless it is told to', async () => {
  const keyless = (): string =>
    'define tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "a"';
  const on = (listen: string, open: boolean): Promise<Bed> =>
    startBed({ engines: [], policy: keyless, gateway: { listen, open } });
  await expect(on('0.0.0.0:0', false)).rejects.toThrow(
    /anyone could call: the policy asks for no API keys, and 0\.0\.0\.0 is listened on.*signalbox key new.*--open/s,
  );
  await expect(on('[::]:0', false)).rejects.toThrow(/anyone could call/);
  await expect(on(':0', false)).rejects.toThrow(/every address is listened on/);
  for (const [listen, open] of [
    ['127.0.0.1:0', false],
    ['localhost:0', false],
    ['0.0.0.0:0', true],
  ] as const) {
    const opened = await on(listen, open);
    await opened.stop();
  }
  const at = await start({ gateway: { listen: '0.0.0.0:0' } });
  at.writePolicy(keyless());
  await eventually(() => at.reloads.at(-1)?.ok === false, 'a reload that opens the door is refused');
  expect(at.reloads.at(-1)?.text).toMatch(/anyone could call/);
  expect((await fetch(`${at.gateway.url.replace('0.0.0.0', '127.0.0.1')}/v1/models`)).status).toBe(401);
});

test('serve says why it does not start open, and starts open with --open', async () => {
  const at = await start();
  at.writePolicy('define tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "a"\n');
  const args = ['serve', at.policyPath, '--listen', '0.0.0.0:0', '--admin', '127.0.0.1:0'];
  const refused = startSignalbox(args);
  expect(await refused.ended).toBe(1);
  expect(refused.err()).toMatch(
    /^signalbox serve: anyone could call: .* start with --open if the network keeps strangers out\.\n$/,
  );
  const open = startSignalbox([...args, '--open']);
  await open.saw('"listening"');
  open.child.kill('SIGINT');
  expect(await open.ended).toBe(0);
});

test('bug-80: neither keys nor prompts stand in anything that the gateway emits: logs at every level, records, metrics, admin answers, audit file, error texts', async () => {
  let emitted = '';
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ level: 'trace', destination });
  const wrong = 'sk-wrong-key-that-must-not-be-shown';
  const prompt = 'a prompt that nobody may read';
  const person = 'jane.doe@example.org';
  const at = await start({
    gateway: { logger, onDecision: createDecisionLog({ level: 'trace', destination }) },
  });
  const body = { messages: [{ role: 'user', content: prompt }], user: person, metadata: { user_id: person } };
  const headers = { 'x-session-id': person, cookie: wrong };
  const answers = await Promise.all([
    ask(at, { key: ACME_KEY, body, headers }),
    ask(at, { key: GLOBEX_KEY, body: { ...body, stream: true }, headers }),
    ask(at, { headers: { 'x-api-key': FREE_KEY, ...headers }, body }),
    ask(at, { key: wrong, body, headers }),
    ask(at, { key: ACME_KEY, body: { ...body, model: 'unknown' }, headers }),
    ask(at, { key: ACME_KEY, body: { messages: 7 } }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 401, 404, 400]);
  for (const answer of answers) emitted += JSON.stringify([...answer.headers]);
  for (const answer of answers.slice(3)) emitted += await answer.text();
  await Promise.all(answers.slice(0, 3).map((answer) => answer.text()));
  writeFileSync(at.path('keys.txt'), `${KEYS}${wrong}\n`);
  await eventually(() => at.reloads.at(-1)?.ok === false, 'the list with a plain key is refused');
  const careless = policy(['http://127.0.0.1:8', 'http://127.0.0.1:9'])
    .replace('region: "eu"', `keys: ["${wrong}"], wieght: 2`)
    .replace('{ file: "upstream.txt" }', `"${UPSTREAM_KEY}"`);
  at.writePolicy(careless);
  await eventually(() => at.reloads.at(-1)?.text.includes('E0513') === true, 'a policy with plain keys is refused');
  expect(at.reloads.at(-1)?.text.match(/E0513/g)).toHaveLength(2);
  for (const path of ['/metrics', '/-/decisions', '/-/policy'])
    emitted += await (await fetch(at.gateway.adminUrl + path)).text();
  emitted += JSON.stringify([at.reloads, at.gateway.endpoints(), at.gateway.startFindings]);
  await at.gateway.stop({ graceMs: 0 });
  const audit = readFileSync(at.path('audit.ndjson'), 'utf8');
  expect(audit.trim().split('\n')).toHaveLength(6);
  const logged = lines
    .map((line) => JSON.parse(line) as { readonly msg: string; readonly status: number })
    .filter(({ msg }) => msg === 'request');
  expect(logged.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 200, 400, 401, 404]);
  emitted += lines.join('') + audit;
  expect(emitted).toContain('"request_id"');
  expect(emitted).toContain('invalid_api_key');
  for (const secret of [
    ACME_KEY,
    GLOBEX_KEY,
    FREE_KEY,
    UPSTREAM_KEY,
    wrong,
    sha256(ACME_KEY),
    sha256(GLOBEX_KEY),
    prompt,
    person,
  ]) {
    expect([secret, emitted.includes(secret)]).toEqual([secret, false]);
  }
});

test('key new prints a key once and the line that lets it in; key hash gives the line of a key that one has', async () => {
  const made = await signalbox(['key', 'new', '--tenant', 'acme', '--name', 'night batch'], '.');
  expect(made).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^sha256:[0-9a-f]{64} tenant=acme name="night batch"\n$/) as string,
  });
  const key = /^sbx-[\w-]{43}$/m.exec(made.err)?.[0] ?? '';
  expect(made.out).toContain(sha256(key));
  expect((await signalbox(['key', 'new'], '.')).out).not.toBe((await signalbox(['key', 'new'], '.')).out);
  expect(signalboxWithInput(['key', 'hash', '--tenant', 'acme', '--name', 'night batch'], '.', `${key}\n`).out).toBe(
    made.out,
  );
  expect(signalboxWithInput(['key', 'hash'], '.', '\n')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/expected one key on standard input/) as string,
  });
  expect(await signalbox(['key', 'new', '--tenant', 'a"b'], '.')).toMatchObject({ code: 2 });
  const at = await start({ files: { 'keys.txt': made.out, 'upstream.txt': UPSTREAM_KEY } });
  expect((await ask(at, { key })).status).toBe(200);
});
