import { expect, test } from 'vitest';
import { inBothModes, tiers } from './support/bench.fixture.ts';

const a = tiers({ a: 1, b: 1 });

test('an `admit … with priority` decides whom an overloaded gateway refuses', async () => {
  const policy = `${a}admit "paying" when header["plan"] == "gold" with priority high
admit "batch" when header["plan"] == "batch" with priority low
default to tier "a"`;
  await inBothModes(policy, (bench) => {
    const sent = (plan: string, asked?: string): string =>
      bench.send({ headers: { plan, ...(asked === undefined ? {} : { 'x-priority': asked }) } });
    bench.core.shed(1);
    expect([sent('gold'), sent('none'), sent('batch')]).toEqual(['a/1', 'a/1', '503 shed']);
    // What the caller says of itself counts where the policy says nothing.
    expect([sent('gold', 'low'), sent('none', 'low')]).toEqual(['a/1', '503 shed']);
    bench.core.shed(2);
    expect([sent('gold'), sent('none'), sent('batch')]).toEqual(['a/1', '503 shed', '503 shed']);
    bench.core.shed(3);
    expect(sent('gold')).toBe('503 shed');
    bench.core.shed(0);
    expect(sent('batch')).toBe('a/1');
    const [refused] = bench.records.filter(({ code }) => code === 'shed');
    expect(refused).toMatchObject({ status: 503, reasons: ['shed'], shed: { queue: '', class: 'low' }, attempts: [] });
    expect(bench.core.status().leasesOpen).toBe(0);
  });
});

test('the priority of the destination or of the queue that takes a request goes before that of its admission', async () => {
  const policy = `${a}admit "paying" when header["plan"] == "gold" with priority high
route "batch" when stream to tier "a" with priority low
route "line" when json_schema to tier "a" where false else queue with priority critical
default to tier "b"`;
  await inBothModes(policy, (bench) => {
    bench.core.shed(2);
    const gold = { headers: { plan: 'gold' } };
    expect(bench.send(gold)).toBe('b/1');
    expect(bench.send({ ...gold, stream: true })).toBe('503 shed');
    expect(bench.send()).toBe('503 shed');
  });
});

test('a request that a rule rejects is told so, and one that waits already is not shed', async () => {
  const policy = `${tiers({ a: 1 }, 'max_requests: 1')}reject when stream with status 403
default to tier "a" else queue with max_wait 10s`;
  await inBothModes(policy, async (bench) => {
    const first = bench.forward();
    const waiting = bench.route({ headers: { 'x-priority': 'low' } });
    bench.core.shed(3);
    expect(bench.send({ stream: true })).toBe('403 rejected');
    expect(bench.send()).toBe('503 shed');
    const last = { outcome: 'ok' as const, status: 200, upstreamStatus: 200, ttftMs: 1, durationMs: 2 };
    first.finish({ ...last, promptTokens: 1, cachedTokens: 0, outputTokens: 1 });
    const outcome = await waiting;
    expect(outcome.kind).toBe('forward');
    if (outcome.kind === 'forward') outcome.finish({ ...last, promptTokens: 1, cachedTokens: 0, outputTokens: 1 });
  });
});
