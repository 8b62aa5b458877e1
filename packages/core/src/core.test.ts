import { expect, test } from 'vitest';
import { compare, constant, destination, OK, ProgramBuilder, route, testCore, tier } from './program.fixture.ts';

test('a request goes to the endpoint with the least token work, and its lease counts at once', () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 3, { model: 'm' })],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
    }),
  );
  const forwards = Array.from({ length: 6 }, () => t.forward());
  expect(forwards.map((one) => one.attempt.endpoint).toSorted()).toEqual(['A/1', 'A/1', 'A/2', 'A/2', 'A/3', 'A/3']);
  expect(t.core.endpoints().map((row) => row.inflightRequests)).toEqual([2, 2, 2]);
  for (const one of forwards) one.finish(OK);
  expect(
    t.core.endpoints().map((row) => [row.inflightRequests, row.inflightTokens, row.queuedTokens, row.decodeTokens]),
  ).toEqual([
    [0, 0, 0, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
  expect(t.core.status()).toMatchObject({ leasesOpen: 0, leasesStarted: 6, leaseFaults: 0 });
});

test('the first rule whose condition is known true decides', () => {
  const b = new ProgramBuilder();
  const program = b.program({
    tiers: [tier('A', 1, { model: 'm' }), tier('B', 1, { model: 'm' })],
    routes: [
      route(
        'long',
        [destination('B', [b.leastTokens()])],
        compare('>', b.signal('prompt_tokens', 'count'), constant(100)),
      ),
      route('default', [destination('A', [b.leastTokens()])]),
    ],
  });
  const t = testCore(program);
  expect(t.forward().attempt.tier).toBe('A');
  expect(t.forward({ body: { text: 'x'.repeat(1000) } }).attempt.tier).toBe('B');
});

test('shedding refuses the lowest classes at the door, says when to come back, and ends when told', () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
  );
  const low = { headers: { 'x-priority': 'low' } };
  t.core.shed(1);
  const refusal = t.refuse(low);
  expect(refusal).toMatchObject({ status: 503, code: 'shed', retryAfterSeconds: 2 });
  refusal.finish();
  expect(t.records[0]).toMatchObject({ code: 'shed', shed: { queue: '', class: 'low' }, attempts: [] });
  t.forward().finish(OK);
  t.core.shed(2);
  expect(t.refuse().code).toBe('shed');
  t.core.shed(0);
  t.forward(low).finish(OK);
  for (const level of [-1, 4, 0.5, Number.NaN]) expect(() => t.core.shed(level)).toThrow(RangeError);
  expect(t.core.status()).toMatchObject({ leasesOpen: 0, leaseFaults: 0 });
});
