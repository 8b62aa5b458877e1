import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Explanation } from '../../packages/core/src/index.ts';
import { signalbox, startSignalbox } from './support/command.fixture.ts';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let bed: Bed;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-explain-'));
  bed = await startBed({
    engines: [{}, {}],
    policy: ([first, second]) => `
define gateway { audit: { file: "audit.ndjson" } }
define tier "t" { model: "sim", endpoints: ["${first}", "${second}"] }
reject "no tools" when tools > 0
route "many" when questions > 2 and not stream to tier "t" where inflight_requests < 5 by least_tokens
default to tier "t" by least_tokens`,
  });
  writeFileSync(join(folder, 'request.json'), JSON.stringify(body('so? so? so?')));
});
afterAll(async () => {
  await bed.stop();
  rmSync(folder, { recursive: true, force: true });
});

const body = (content: string, more: object = {}): object => ({
  model: 'sim',
  messages: [{ role: 'user', content }],
  max_tokens: 2,
  ...more,
});

async function ask(id: string, given: object): Promise<void> {
  await (
    await fetch(`${bed.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': id },
      body: JSON.stringify(given),
    })
  ).text();
}

const run = (...args: string[]): ReturnType<typeof signalbox> => signalbox(['explain', ...args], folder);

describe('a request, decided on the live fleet', () => {
  test('it shows the real endpoints, one of them cordoned, and sends nothing', async () => {
    await fetch(`${bed.gateway.adminUrl}/-/endpoints/t/1/cordon`, { method: 'POST' });
    const before = bed.gateway.decisions(100).length;
    const { code, out, err } = await run('--admin', bed.gateway.adminUrl, 'request.json');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^→ t\/2 \(tier "t"\) by route "many"\n/);
    expect(out).toContain('  ✗ reject "no tools" when tools > 0\n      false   tools > 0   (tools = 0)\n');
    expect(out).toContain('     t/1  draining\n');
    expect(bed.gateway.decisions(100)).toHaveLength(before);
    await fetch(`${bed.gateway.adminUrl}/-/endpoints/t/1/uncordon`, { method: 'POST' });
  });

  test('the listener gives the same text as the command, which runs in a process of its own', async () => {
    const given = JSON.stringify(body('so? so? so?'));
    const post = { method: 'POST', headers: { accept: 'text/plain', 'content-type': 'application/json' }, body: given };
    const text = await (await fetch(`${bed.gateway.adminUrl}/-/explain`, post)).text();
    const command = startSignalbox(['explain', '--admin', bed.gateway.adminUrl, '-'], folder);
    command.child.stdin.end(given);
    expect(await command.ended).toBe(0);
    expect(command.out()).toBe(text);
  });
});

describe('a decision that was made', () => {
  test('a running gateway explains it from its memory, by the rules of the version that made it', async () => {
    await ask('asked/1', body('so? so? so?'));
    const { code, out, err } = await run('--admin', bed.gateway.adminUrl, '--request', 'asked/1');
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('  request asked/1 of ');
    expect(out).toContain('decided again by what was recorded, with the same outcome');
    expect(out).toContain(
      '  ✓ route "many" when questions > 2 and not stream\n      true    questions > 2   (questions = 3)\n',
    );
    expect(out).toMatch(/1\. t\/[12] {2}least_tokens [\d.e-]+ {2}picked/);
    const answer = await fetch(`${bed.gateway.adminUrl}/-/explain?request=asked%2F1`);
    const { explanation } = (await answer.json()) as { readonly explanation: Explanation };
    expect(explanation).toMatchObject({
      outcome: 'forward',
      route: 'many',
      record: { requestId: 'asked/1', status: 200 },
    });
    const json = await run('--admin', bed.gateway.adminUrl, '--request', 'asked/1', '--json');
    expect(JSON.parse(json.out)).toEqual(explanation);
    expect(await run('--admin', bed.gateway.adminUrl, '--request', 'nobody')).toMatchObject({
      code: 1,
      err: expect.stringContaining('signalbox explain --audit FILE --request ID') as string,
    });
  });

  test('an audit file explains it, with the rules where the policy is given', async () => {
    await ask('kept-1', body('so? so? so?'));
    await ask('kept-2', body('x', { tools: [{ type: 'function', function: { name: 'f' } }] }));
    await ask('kept-2', body('x', { tools: [{ type: 'function', function: { name: 'f' } }] }));
    const audit = bed.path('audit.ndjson');
    await eventually(() => readFileSync(audit, 'utf8').split('"kept-2"').length === 3, 'the audit lines');
    const alone = await run('--audit', audit, '--request', 'kept-1');
    expect([alone.code, alone.err]).toEqual([0, '']);
    expect(alone.out).toContain('its rules are not shown: no policy is given that made it');
    expect(alone.out).toMatch(/attempts: t\/[12] ok 200\n/);
    const withRules = await run(bed.policyPath, '--audit', audit, '--request', 'kept-1');
    expect(withRules.out).toContain('decided again by what was recorded, with the same outcome');
    expect(withRules.out).toContain('true    questions > 2   (questions = 3)');
    const refused = await run(bed.policyPath, '--audit', audit, '--request', 'kept-2');
    expect(refused.err).toBe('2 requests have the id "kept-2"; this is the last of them\n');
    expect(refused.out).toMatch(/^✗ 429 rejected\n/);
    expect(refused.out).toContain('  ✓ reject "no tools" when tools > 0\n      true    tools > 0   (tools = 1)\n');
    expect(await run('--audit', audit, '--request', 'nobody')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/no request "nobody" is in .*audit\.ndjson \(\d+ lines\)/) as string,
    });
  });

  test('after a reload the record stands alone, and says that the rules are those of another policy where one is given', async () => {
    await ask('before', body('so? so? so?'));
    const old = readFileSync(bed.policyPath, 'utf8');
    bed.writePolicy(old.replace('questions > 2', 'questions > 3'));
    await fetch(`${bed.gateway.adminUrl}/-/reload`, { method: 'POST' });
    const { out } = await run(bed.policyPath, '--audit', bed.path('audit.ndjson'), '--request', 'before');
    expect(out).toMatch(/the rules are those of policy [0-9a-f]{12}, which did not make this decision/);
    expect(out).toContain('decided again by what was recorded, it comes to tier "t" by "default"');
    const live = await run('--admin', bed.gateway.adminUrl, '--request', 'before');
    expect(live.out).toContain('its rules are not shown: no policy is given that made it');
  });
});

test.for([
  [['--request', 'x'], '--request needs --audit FILE or --admin URL: where to look'],
  [['--audit', 'a'], '--audit needs --request ID: which request'],
  [['--audit', 'a', '--admin', 'http://127.0.0.1:1', '--request', 'x'], '--audit and --admin are two places to look'],
  [['policy.route'], 'expected FILE REQUEST.json'],
  [['--admin', 'http://127.0.0.1:1'], 'expected FILE REQUEST.json'],
  [['--admin', 'http://127.0.0.1:1', '--request', 'x', 'policy.route'], 'expected FILE REQUEST.json'],
] as const)('wrong usage is told: %j', async ([args, message]) => {
  const { code, err } = await run(...args);
  expect(code).toBe(2);
  expect(err).toContain(message);
});
