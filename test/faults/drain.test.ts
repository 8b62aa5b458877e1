import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../e2e/support/gateway.fixture.ts';
import { replaceFile } from '../soak/policies.ts';
import { ask, type Ask, type Outcome } from '../soak/support/ask.ts';
import { startGateway, type GatewayUnderTest } from '../soak/support/gateway-under-test.ts';
import { MODEL } from '../soak/support/seeded-answer.ts';
import { startSeededUpstream, type SeededUpstream } from '../soak/support/seeded-upstream.ts';

/*
 * Signals on a real process under load. The times are real too, and short; what is told apart by them lies seconds apart.
 */
const PACE_MS = 50;
const LIMIT_MS = 60_000;

interface Bed {
  readonly gateway: GatewayUnderTest;
  readonly upstream: SeededUpstream;
  readonly ask: (request: Partial<Ask>) => Promise<Outcome>;
  /** Streams of which an event has come. */
  readonly begun: () => number;
}

async function startBed(drain: string): Promise<Bed> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-drain-'));
  const policyPath = join(folder, 'drain.route');
  const upstream = await startSeededUpstream('tier');
  replaceFile(
    policyPath,
    `define gateway { drain: ${drain} }
     define tier "tier" { model: "${MODEL}", endpoints: ["${upstream.url}"] }
     default to tier "tier"`,
  );
  const gateway = await startGateway({ policyPath, fromSource: true });
  const agent = new Agent({ keepAlive: true });
  let seed = 0;
  const begun = new Set<number>();
  onTestFinished(async () => {
    agent.destroy();
    gateway.signal('SIGKILL');
    await gateway.ended;
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    gateway,
    upstream,
    begun: () => begun.size,
    ask: (request) => {
      const own = ++seed;
      return ask({
        port: gateway.port,
        agent,
        seed: own,
        tokens: 5,
        paceMs: PACE_MS,
        stream: false,
        onEvent: () => begun.add(own),
        ...request,
      });
    },
  };
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const faultsOf = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ fault }) => fault);
const none = (outcomes: readonly Outcome[]): string[] => outcomes.map(() => '');

/**
 * Asks one plain request after another until the gateway has stopped listening. The system resets a connection that it had taken and the
 * gateway had not, at the moment at which listening ends: as good as refused, if the next one is.
 */
async function askUntilRefused(bed: Bed): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (;;) {
    const outcome = await bed.ask({ paceMs: 5 });
    if (outcome.fault.includes('ECONNREFUSED')) {
      if (outcomes.at(-1)?.fault.includes('no answer: read ECONNRESET') === true) outcomes.pop();
      return outcomes;
    }
    outcomes.push(outcome);
  }
}

test('SIGTERM under load: not ready at once, still accepting for a while, and no request of that time or before fails', async () => {
  const bed = await startBed('{ accept: 2s, grace: 20s }');
  const streams = times(50, () => bed.ask({ stream: true, tokens: 80 }));
  await eventually(() => bed.begun() === 50, 'the streams run', LIMIT_MS);
  const before = times(20, () => bed.ask({ paceMs: 500 }));
  await eventually(() => bed.upstream.received() === 70, 'the plain requests run', LIMIT_MS);
  expect(await bed.gateway.status('/readyz')).toBe(200);
  bed.gateway.signal('SIGTERM');
  await eventually(async () => (await bed.gateway.status('/readyz')) === 503, 'readyz says no', LIMIT_MS);
  const lateStreams = times(10, () => bed.ask({ stream: true, tokens: 40 }));
  const lame = await askUntilRefused(bed);
  expect(lame.length).toBeGreaterThan(5);
  expect(faultsOf(lame)).toEqual(none(lame));
  expect(lame.filter(({ closes }) => !closes)).toEqual([]);
  const all = await Promise.all([...streams, ...before, ...lateStreams]);
  expect(faultsOf(all)).toEqual(none(all));
  expect(await bed.gateway.ended).toBe(0);
  expect(bed.upstream.open()).toBe(0);
});

test('a stream that is longer than the grace gets an error event and ends; those that fit are whole; exit code 0', async () => {
  const bed = await startBed('{ accept: 0s, grace: 6s }');
  const short = times(10, () => bed.ask({ stream: true, tokens: 20 }));
  const long = times(10, () => bed.ask({ stream: true, tokens: 10_000 }));
  await eventually(() => bed.begun() === 20, 'the streams run', LIMIT_MS);
  bed.gateway.signal('SIGTERM');
  const whole = await Promise.all(short);
  expect(faultsOf(whole)).toEqual(none(whole));
  for (const { fault } of await Promise.all(long)) {
    expect(fault).toMatch(/^truncated: the framing did not end/);
    expect(fault).toMatch(/data: \{"error":\{[^\n]*"code":"draining"\}\}\n\n$/);
  }
  expect(await bed.gateway.ended).toBe(0);
  await eventually(() => bed.upstream.open() === 0, 'the endpoint is freed', LIMIT_MS);
});

test('a second SIGTERM ends it at once', async () => {
  const bed = await startBed('{ accept: 1000s, grace: 1000s }');
  const stream = bed.ask({ stream: true, tokens: 10_000 });
  await eventually(() => bed.begun() === 1, 'the stream runs', LIMIT_MS);
  bed.gateway.signal('SIGTERM');
  await eventually(() => bed.gateway.errorText().includes('accepting for 1000 s'), 'it drains', LIMIT_MS);
  bed.gateway.signal('SIGTERM');
  expect(await bed.gateway.ended).toBe(0);
  expect((await stream).fault).not.toBe('');
  await eventually(() => bed.upstream.open() === 0, 'the endpoint is freed', LIMIT_MS);
});

test('SIGKILL frees the endpoint and ends every stream without a proper end', async () => {
  const bed = await startBed('{}');
  const streams = times(50, () => bed.ask({ stream: true, tokens: 10_000 }));
  await eventually(() => bed.begun() === 50, 'the streams run', LIMIT_MS);
  expect(bed.upstream.open()).toBe(50);
  bed.gateway.signal('SIGKILL');
  expect(await bed.gateway.ended).toBe('SIGKILL');
  for (const { fault } of await Promise.all(streams)) expect(fault).toMatch(/^truncated: the framing did not end/);
  await eventually(() => bed.upstream.open() === 0, 'the endpoint is freed', LIMIT_MS);
});
