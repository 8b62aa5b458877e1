import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReplayReport } from '../../packages/gateway/src/replay/replay-report.ts';
import { signalbox, signalboxWithHeap } from './support/command.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let folder: string;
let urls: readonly string[];

const tiers = (): string => `
define gateway { audit: { file: "audit.ndjson" } }
define tier "34B" { model: "sim", endpoints: ["${urls[0]}"] }
define tier "70B" { model: "sim", endpoints: ["${urls[1]}", "${urls[2]}"] }
`;
const policy = (from: number): string => `${tiers()}
reject "tools" when tools > 0
route "hard" when questions > ${from} to tier "70B" where queue_depth < 50 by least_tokens
default to tier "34B" by least_tokens
`;
const questions = (count: number): string => Array.from({ length: count }, () => 'so?').join(' ');

/** The audit lines of a gateway that served a few requests over real sockets. */
let lines: readonly string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-replay-'));
  const bed = await startBed({
    engines: [{}, {}, {}],
    policy: (given) => {
      urls = given;
      return policy(4);
    },
  });
  const ask = (id: string, content: string, more: object = {}): Promise<string> =>
    fetch(`${bed.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': id },
      body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content }], max_tokens: 2, ...more }),
    }).then((answer) => answer.text());
  for (let i = 0; i < 4; i++) await ask(`easy-${i}`, questions(1));
  for (let i = 0; i < 3; i++) await ask(`middling-${i}`, questions(5));
  for (let i = 0; i < 2; i++) await ask(`hard-${i}`, questions(8), { stream: true });
  await ask('tools-0', questions(1), { tools: [{ type: 'function', function: { name: 'f' } }] });
  await ask('stranger-0', questions(1), { model: 'nobody' });
  await ask('rubbish-0', questions(1), { messages: 'no' });
  await eventually(
    () => readFileSync(bed.path('audit.ndjson'), 'utf8').split('\n').filter(Boolean).length === 12,
    'twelve audit lines',
  );
  lines = readFileSync(bed.path('audit.ndjson'), 'utf8').split('\n').filter(Boolean);
  await bed.stop();
  writeFileSync(join(folder, 'audit.ndjson'), `${lines.join('\n')}\n`);
  writeFileSync(join(folder, 'old.route'), policy(4));
  writeFileSync(join(folder, 'new.route'), policy(6));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]): ReturnType<typeof signalbox> => signalbox(['replay', ...args], folder);
const report = async (...args: string[]): Promise<ReplayReport> => {
  const { out, err } = await run(...args, '--json');
  expect(err).toBe('');
  return JSON.parse(out) as ReplayReport;
};

describe('signalbox replay', () => {
  test('on the version that made them, decisions come out as they were', async () => {
    const { own, moved, decided, notDecidable, notByPolicy } = await report('audit.ndjson', '--policy', 'old.route');
    expect(own).toEqual({ same: 11, differing: [] });
    expect([decided, moved, notDecidable.count]).toEqual([11, 0, 0]);
    expect(notByPolicy.codes).toEqual([{ code: 'invalid_request', count: 1, examples: ['rubbish-0'] }]);
  });

  test('under another policy it says which move, by tier and by rule, and what is taken for granted', async () => {
    const { code, out, err } = await run('audit.ndjson', '--policy', 'new.route');
    expect([code, err]).toEqual([0, '']);
    expect(out.replace(/policy [0-9a-f]{12}/, 'policy …')).toBe(`\
11 recorded decisions decided again under policy …
  moved to another tier, refused or queued otherwise: 3 (27.3%)
  the same: 8
  no rule had a say: 1 (invalid_request 1)

by tier
  tier "70B"  →  tier "34B"  3  27.3%  e.g. middling-0, middling-1, middling-2

by rule and tier
  tier "70B" by "hard"  →  tier "34B" by "default"  3  27.3%  e.g. middling-0, middling-1, middling-2

of the moves, 3 take for granted that the new tier had an endpoint with room: no record tells
`);
  });

  test('refusals count as moves, another rule to the same tier does not', async () => {
    writeFileSync(
      join(folder, 'other.route'),
      `${tiers()}
       reject "tools" when tools > 0
       reject "too hard" when questions > 7
       route "tough" when questions > 4 to tier "70B" by least_tokens
       default to tier "34B" by least_tokens`,
    );
    const found = await report('audit.ndjson', '--policy', 'other.route');
    expect(found.otherRule).toBe(3);
    expect(found.byTier).toMatchObject([{ from: 'tier "70B"', to: 'reject', count: 2, assumed: 0 }]);
    expect(found.moves.map(({ from, to, count }) => [from, to, count])).toEqual([
      ['tier "70B" by "hard"', 'tier "70B" by "tough"', 3],
      ['tier "70B" by "hard"', 'reject by "too hard"', 2],
    ]);
  });

  test('what was not recorded is named, and nothing is guessed', async () => {
    writeFileSync(
      join(folder, 'reads-more.route'),
      `${tiers()}
       route "long" when turns > 4 to tier "70B" by least_tokens
       default to tier "34B" by least_tokens`,
    );
    const found = await report('audit.ndjson', '--policy', 'reads-more.route');
    expect(found.notDecidable.reasons).toEqual([
      { missing: 'turns', count: 10, examples: ['easy-0', 'easy-1', 'easy-2'] },
    ]);
    expect(found.decided + found.notDecidable.count + found.notByPolicy.count).toBe(12);
  });

  test('torn and foreign lines are counted and named; the rest is read', async () => {
    writeFileSync(
      join(folder, 'torn.ndjson'),
      [lines[0], lines[1]?.slice(0, 40), '', '{"level":"info","msg":"request"}', lines[2], lines[3]?.slice(0, -1)].join(
        '\r\n',
      ),
    );
    const found = await report('torn.ndjson', '--policy', 'old.route');
    expect(found.lines).toEqual({ total: 5, outside: 0, malformed: 3 });
    expect(found.malformed).toEqual([
      { place: 'torn.ndjson:2', problem: 'it is not JSON' },
      { place: 'torn.ndjson:4', problem: '`v` is missing' },
      { place: 'torn.ndjson:6', problem: 'it is not JSON' },
    ]);
    expect(found.decided).toBe(2);
  });

  test('several files, rotated and packed ones among them, are read one after another', async () => {
    writeFileSync(join(folder, 'audit.ndjson.2.gz'), gzipSync(`${lines.slice(0, 5).join('\n')}\n`));
    writeFileSync(join(folder, 'audit.ndjson.1'), `${lines.slice(5, 9).join('\n')}\n`);
    writeFileSync(join(folder, 'rest.ndjson'), `${lines.slice(9).join('\n')}\n`);
    const found = await report('audit.ndjson.2.gz', 'audit.ndjson.1', 'rest.ndjson', '--policy', 'new.route');
    expect(found.files).toEqual([
      { file: 'audit.ndjson.2.gz', lines: 5 },
      { file: 'audit.ndjson.1', lines: 4 },
      { file: 'rest.ndjson', lines: 3 },
    ]);
    expect([found.decided, found.moved]).toEqual([11, 3]);
  });

  test('--since and --until choose by time', async () => {
    const line = (hour: number): string =>
      (lines[0] ?? '').replace(/"time":"[^"]*"/, `"time":"2026-01-02T0${hour}:00:00.000Z"`);
    writeFileSync(join(folder, 'day.ndjson'), [1, 2, 3, 4].map(line).join('\n'));
    const within = ['--since', '2026-01-02T02:00:00Z', '--until', '2026-01-02T04:00:00Z'];
    expect((await report('day.ndjson', '--policy', 'old.route', ...within)).lines).toEqual({
      total: 4,
      outside: 2,
      malformed: 0,
    });
    expect((await report('audit.ndjson', '--policy', 'old.route', '--since', '1h')).lines.outside).toBe(0);
    expect((await run('day.ndjson', '--policy', 'old.route', '--since', 'yesterday')).code).toBe(2);
  });

  test('exit code 1 says that too much moved, or that a record of this very version came out otherwise', async () => {
    expect((await run('audit.ndjson', '--policy', 'new.route', '--max-moved', '27')).code).toBe(1);
    expect((await run('audit.ndjson', '--policy', 'new.route', '--max-moved', '28%')).code).toBe(0);
    const hard = lines.find((line) => line.includes('"hard-0"')) ?? '';
    writeFileSync(join(folder, 'changed.ndjson'), hard.replace(/"questions":\d+/, '"questions":3'));
    const { code, out } = await run('changed.ndjson', '--policy', 'old.route');
    expect(code).toBe(1);
    expect(out).toContain('changed.ndjson:1: request hard-0: it comes to ');
  });

  test('wrong usage, a policy with errors and a file that is not there are told apart', async () => {
    expect(await run('audit.ndjson')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--policy FILE is needed') as string,
    });
    expect((await run('audit.ndjson', '--policy', 'old.route', '--max-moved', 'some')).code).toBe(2);
    writeFileSync(join(folder, 'wrong.route'), 'default to tier "x" by least_tokns');
    expect(await run('audit.ndjson', '--policy', 'wrong.route')).toMatchObject({
      code: 1,
      err: expect.stringContaining('error[') as string,
    });
    expect(await run('absent.ndjson', '--policy', 'old.route')).toMatchObject({
      code: 1,
      err: expect.stringContaining('absent.ndjson') as string,
    });
  });

  test('a large file is read in bounded memory, with its progress on standard error', () => {
    const file = join(folder, 'large.ndjson');
    // 160 MB, where the heap may hold 128.
    const padding = `"signals":{"header[\\"x-long\\"]":"${'x'.repeat(8000)}",`;
    writeFileSync(file, '');
    const block = `${Array.from({ length: 1000 }, (_, i) => (lines[i % 9] ?? '').replace('"signals":{', padding)).join('\n')}\n`;
    for (let i = 0; i < 20; i++) appendFileSync(file, block);
    const { code, out, err } = signalboxWithHeap(
      ['replay', 'large.ndjson', '--policy', 'new.route', '--json'],
      folder,
      128,
    );
    expect(code).toBe(0);
    expect(err).toContain('10,000 lines read, at large.ndjson:10000');
    const found = JSON.parse(out) as ReplayReport;
    expect(found.decided).toBe(20_000);
    expect(found.movedShare).toBeCloseTo(1 / 3, 2);
    rmSync(file);
  }, 240_000);
});
