import { expect, test } from 'vitest';
import { RawClient } from '../../packages/proxy/src/client.fixture.ts';
import { faultBed, type FaultBed } from './support/fault-bed.fixture.ts';
import type { Act } from './support/fault-upstream.fixture.ts';
import {
  ANSWER,
  CHAT,
  chunk,
  DONE,
  event,
  json,
  LAST_CHUNK,
  plain,
  STREAM_HEAD,
  streamed,
} from './support/wire.fixture.ts';

const full = process.env['SIGNALBOX_FAULTS'] === 'full';
const REQUESTS = full ? 100_000 : 3_000;
const AT_ONCE = 64;

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const policy = (origins: readonly string[]): string => `
  define gateway { models: ["auto"] }
  define limit "per user" { key: user, tokens: 500M/min, requests: 50M/min, concurrency: 60 }
  define tier "a" { model: "m", endpoints: ${JSON.stringify(origins.slice(0, 3))} max_requests: 20 ejection: { duration: 200ms } }
  define tier "b" { model: "n", endpoints: ${JSON.stringify(origins.slice(3))} max_requests: 40 ejection: { duration: 200ms } }
  reject "busy" when over_limit("per user") with status 429, message "slow down"
  default to tier "a" by least_tokens with affinity session,
    retry 2 (on: [connect, error, saturated, rate_limited, first_token, timeout]), first_token 400ms, idle 400ms, attempt_timeout 2s, timeout 6s,
    fallback tier "b" (on: [connect, error, saturated, rate_limited, timeout, first_token])
  else queue with max_wait 1s`;

/** Some answer, good or bad, cut and delayed anywhere. */
function someAnswer(random: () => number, stream: boolean): readonly Act[] {
  const dice = random();
  const events = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, i) => event(`${i}é`)).join('');
  const whole = Buffer.from(events + DONE);
  if (dice < 0.45) return stream ? streamed(whole) : plain(ANSWER);
  if (dice < 0.5)
    return plain({ error: { message: 'x' } }, [400, 404, 408, 422, 429, 500, 502, 503][Math.floor(random() * 8)]);
  if (dice < 0.53) return plain({}, 429, ['retry-after: 0']);
  if (dice < 0.56) return plain({}, 503, [`retry-after: ${Math.floor(random() * 2)}`]);
  if (dice < 0.6) return ['hang'];
  if (dice < 0.63) return ['reset'];
  if (dice < 0.66) return ['close'];
  if (dice < 0.68) return [{ send: 'garbage\r\n\r\n' }, 'close'];
  if (dice < 0.7) return [{ send: json(200, ANSWER) + json(200, { stray: true }) }];
  if (dice < 0.72) return streamed('data: {"error":{"message":"x","code":503}}\n\n');
  if (dice < 0.74) return streamed(`${event('a')}data: {"error":{"message":"x"}}\n\n`);
  if (dice < 0.76) return [...plain(ANSWER), 'close'];
  const wire = stream
    ? Buffer.concat([Buffer.from(STREAM_HEAD), chunk(whole), Buffer.from(LAST_CHUNK)])
    : Buffer.from(json(200, ANSWER));
  const cut = Math.floor(random() * wire.length);
  const end = (['reset', 'close', 'half-close', 'hang'] as const)[Math.floor(random() * 4)] ?? 'hang';
  if (dice < 0.9) return [{ send: wire.subarray(0, cut) }, end];
  return [{ send: wire, piece: 1 + Math.floor(random() * 60) }];
}

interface Tally {
  readonly outcomes: Map<string, number>;
  readonly wrong: string[];
}

async function oneRequest(bed: FaultBed, random: () => number, tally: Tally): Promise<void> {
  const stream = random() < 0.6;
  const one = new RawClient(bed.port);
  const body = {
    model: random() < 0.5 ? 'auto' : 'm',
    messages: [{ role: 'user', content: 'x'.repeat(Math.floor(random() * 2_000)) }],
    user: `u${Math.floor(random() * 3)}`,
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  };
  const text = JSON.stringify(body);
  const leaves = random();
  if (leaves < 0.05) one.post(CHAT, text.slice(0, 40), [`content-length-was: ${text.length}`]);
  else one.post(CHAT, body, random() < 0.5 ? [`x-session-id: s${Math.floor(random() * 20)}`] : []);
  if (leaves < 0.25) {
    // Leaves at some turn of the loop, by FIN or RST, or stops reading first.
    if (random() < 0.2) one.socket.pause();
    for (let i = Math.floor(random() * 40); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
    if (random() < 0.5) one.socket.resetAndDestroy();
    else one.socket.end();
    one.socket.resume();
  }
  const answer = await Promise.race([one.answer().catch(() => one.closed()), one.closed()]);
  one.destroy();
  let outcome = 'gone';
  if (answer !== undefined) {
    outcome = `${answer.status}${answer.complete ? '' : ' cut'}`;
    const { body: got, status, complete } = answer;
    if (status === 200 && complete) {
      const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true;
      if (isStream ? !got.endsWith(DONE) : !got.endsWith('}}')) tally.wrong.push(`a silent cut: ${got.slice(-80)}`);
      if (got.includes('stray')) tally.wrong.push(`bytes of another answer: ${got}`);
    } else if (status !== 200 && complete && JSON.parse(got) === undefined) tally.wrong.push('no JSON');
    if (!complete && leaves >= 0.25 && !got.includes('"error"'))
      tally.wrong.push(`cut without an error event: ${status} ${got.slice(-80)}`);
  } else if (leaves >= 0.25) tally.wrong.push('closed without an answer');
  tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + 1);
}

test(`${REQUESTS} requests with random faults and aborts leave every counter at zero`, async () => {
  const seed = Number(process.env['SIGNALBOX_SEED'] ?? 20_251_129);
  const random = randomFrom(seed);
  const bed = await faultBed({ upstreams: 5, policy, seed });
  for (const upstream of bed.upstreams) {
    upstream.onRequest = ({ body }) => {
      if (upstream.requests.length > 100) upstream.requests.length = 0;
      return someAnswer(random, body.includes('"stream":true'));
    };
    // Some connections are never read.
    upstream.onConnection = () => random() > 0.01;
  }
  const tally: Tally = { outcomes: new Map(), wrong: [] };
  let started = 0;
  let running = 0;
  const worker = async (): Promise<void> => {
    while (started < REQUESTS) {
      started++;
      running++;
      await oneRequest(bed, random, tally);
      running--;
    }
  };
  const workers = Promise.all(Array.from({ length: AT_ONCE }, worker));
  await new Promise((resolve) => setImmediate(resolve));
  const progressMs = 30_000;
  let lastStarted = 0;
  let lastAt = performance.now();
  while (running > 0 || started < REQUESTS) {
    await bed.time.advance(2);
    if (started !== lastStarted) {
      lastStarted = started;
      lastAt = performance.now();
    }
    if (performance.now() - lastAt > progressMs && running === 0) break;
    if (performance.now() - lastAt > progressMs) throw new Error(`${running} requests hang after ${started}`);
  }
  await workers;
  await bed.quiet();
  expect(tally.wrong).toEqual([]);
  const statuses = [...tally.outcomes].toSorted(([, a], [, b]) => b - a);
  process.stdout.write(
    `${REQUESTS} requests, seed ${seed}: ${statuses.map(([what, count]) => `${what} ${count}`).join(', ')}\n`,
  );
  const attempts = bed.decisions.flatMap((record) => record.attempts);
  const reasons = [...Map.groupBy(attempts, ({ outcome }) => outcome)].map(
    ([reason, all]) => `${reason} ${all.length}`,
  );
  process.stdout.write(`${bed.core.status().leasesStarted} leases: ${reasons.join(', ')}\n`);
  expect(tally.outcomes.get('200') ?? 0).toBeGreaterThan(REQUESTS / 4);
  for (const reason of [
    'ok',
    'connect',
    'error',
    'saturated',
    'rate_limited',
    'client_abort',
    'upstream_disconnected',
  ]) {
    expect([reason, attempts.some(({ outcome }) => outcome === reason)]).toEqual([reason, true]);
  }
});
