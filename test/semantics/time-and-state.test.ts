import { describe, expect, test } from 'vitest';
import { bench, decide, errors, inBothModes, tiers, truth, value } from './support/bench.fixture.ts';

const utc = (text: string): { readonly epochMs: number } => ({ epochMs: Date.parse(`${text}Z`) });

describe('time', () => {
  test('`hour` and `weekday` go by UTC unless a zone is written', () => {
    // 2026-03-02 is a Monday.
    expect(value('hour', {}, utc('2026-03-02T23:30'))).toBe(23);
    expect(value('weekday', {}, utc('2026-03-02T23:30'))).toBe('mon');
    expect(value('hour(zone: "Europe/Berlin")', {}, utc('2026-03-02T23:30'))).toBe(0);
    expect(value('weekday(zone: "Europe/Berlin")', {}, utc('2026-03-02T23:30'))).toBe('tue');
    expect(value('hour(zone: "America/New_York")', {}, utc('2026-03-02T23:30'))).toBe(18);
    expect(value('hour(zone: "Asia/Kolkata")', {}, utc('2026-03-02T23:30'))).toBe(5);
  });

  test('a bare `hour` goes by `timezone` of the gateway', () => {
    const definitions = 'define gateway { timezone: "Asia/Tokyo" }\n';
    expect(value('hour', {}, { ...utc('2026-03-02T23:30'), definitions })).toBe(8);
    expect(value('hour(zone: "UTC")', {}, { ...utc('2026-03-02T23:30'), definitions })).toBe(23);
    expect(truth('within("tue 08:00-09:00")', {}, { ...utc('2026-03-02T23:30'), definitions })).toBe('true');
  });

  test('summer time is minded', () => {
    const berlin = 'hour(zone: "Europe/Berlin")';
    expect(value(berlin, {}, utc('2026-03-29T00:59'))).toBe(1);
    expect(value(berlin, {}, utc('2026-03-29T01:00'))).toBe(3);
    expect(value(berlin, {}, utc('2026-10-25T00:59'))).toBe(2);
    expect(value(berlin, {}, utc('2026-10-25T01:00'))).toBe(2);
  });

  test.each([
    // Start included, end not.
    ['mon-fri 09:00-17:00', '2026-03-02T09:00', 'true'],
    ['mon-fri 09:00-17:00', '2026-03-02T16:59', 'true'],
    ['mon-fri 09:00-17:00', '2026-03-02T17:00', 'false'],
    ['mon-fri 09:00-17:00', '2026-03-02T08:59', 'false'],
    ['mon-fri 09:00-17:00', '2026-03-07T12:00', 'false'],
    // Over midnight it belongs to the day on which it starts: Friday's night ends on Saturday, and Sunday has none.
    ['mon-fri 22:00-06:00', '2026-03-02T22:00', 'true'],
    ['mon-fri 22:00-06:00', '2026-03-03T05:59', 'true'],
    ['mon-fri 22:00-06:00', '2026-03-03T06:00', 'false'],
    ['mon-fri 22:00-06:00', '2026-03-07T05:59', 'true'],
    ['mon-fri 22:00-06:00', '2026-03-07T22:30', 'false'],
    ['mon-fri 22:00-06:00', '2026-03-02T05:00', 'false'],
    ['mon-fri 22:00-06:00', '2026-03-08T23:00', 'false'],
    ['sat,sun', '2026-03-07T00:00', 'true'],
    ['sat,sun', '2026-03-06T23:59', 'false'],
    ['fri-mon', '2026-03-08T12:00', 'true'],
    ['fri-mon', '2026-03-04T12:00', 'false'],
    ['08:00-12:00', '2026-03-07T08:00', 'true'],
    ['00:00-24:00', '2026-03-07T23:59', 'true'],
  ])('within("%s") at %s is %s', (window, at, expected) => {
    expect(truth(`within("${window}")`, {}, utc(at))).toBe(expected);
  });

  test('a window has a zone', () => {
    const night = 'within("mon-fri 22:00-06:00", zone: "Europe/Berlin")';
    expect(truth(night, {}, utc('2026-03-02T21:00'))).toBe('true');
    expect(truth(night, {}, utc('2026-03-02T20:59'))).toBe('false');
    expect(truth(night, {}, utc('2026-03-07T04:59'))).toBe('true');
    expect(truth(night, {}, utc('2026-03-07T05:00'))).toBe('false');
  });

  test.each(['mon-foo 08:00-09:00', '8-9', '25:00-26:00', '09:00', '09:00-09:00', '08:00-09:00 mon', ''])(
    'the window "%s" is an error',
    (window) => {
      expect(errors(`${tiers({ a: 1 })}route when within("${window}") to tier "a"\ndefault reject`)).toEqual(['E0327']);
    },
  );

  test('an unknown zone is an error', () => {
    expect(errors(`${tiers({ a: 1 })}route when hour(zone: "Mars/Base") > 5 to tier "a"\ndefault reject`)).toEqual([
      'E0327',
    ]);
    expect(errors(`define gateway { timezone: "Mars/Base" }\n${tiers({ a: 1 })}default to tier "a"`)).not.toEqual([]);
  });

  test('the clock is read for each request', async () => {
    await inBothModes(
      `${tiers({ a: 2 })}route when hour >= 12 to endpoint "a/2"\ndefault to endpoint "a/1"`,
      (made) => {
        expect(made.send()).toBe('a/1');
        made.time.advance(60_000);
        expect(made.send()).toBe('a/2');
      },
      utc('2026-03-02T11:59'),
    );
  });
});

describe('alarms', () => {
  const alarm = (keys: string): string =>
    `${tiers({ a: 1 }, 'max_requests: 10').replace('a/1', 'a/1')}define alarm "hot" { ${keys} }
route when alarm.hot to tier "a" with model "hot"
route when not alarm.hot to tier "a" with model "cold"
default to tier "a" with model "unknown"`;
  const model = (made: ReturnType<typeof bench>): string => {
    const forward = made.forward();
    forward.finish({
      outcome: 'client_abort',
      status: 499,
      upstreamStatus: 0,
      ttftMs: Number.NaN,
      durationMs: 0,
      promptTokens: Number.NaN,
      cachedTokens: Number.NaN,
      outputTokens: Number.NaN,
    });
    return forward.attempt.model ?? '';
  };
  const held = (inflightRequests: number): { readonly 'a/1': { readonly inflightRequests: number } } => ({
    'a/1': { inflightRequests },
  });

  test('goes on once its condition has held for as long as it says, and off when `until` holds', async () => {
    await inBothModes(alarm('when: cluster.saturation > 85%, until: cluster.saturation < 70%, for: 5s'), (made) => {
      expect(model(made)).toBe('cold');
      made.set(held(9));
      made.time.advance(4500);
      expect(model(made)).toBe('cold');
      made.time.advance(1000);
      expect(model(made)).toBe('hot');
      // Between the two it stays on.
      made.set(held(8));
      made.time.advance(10_000);
      expect(model(made)).toBe('hot');
      made.set(held(6));
      made.time.advance(500);
      expect(model(made)).toBe('cold');
    });
  });

  test('counts anew when its condition breaks off', async () => {
    await inBothModes(alarm('when: cluster.saturation > 85%, for: 5s'), (made) => {
      made.set(held(9));
      made.time.advance(4000);
      made.set(held(1));
      made.time.advance(500);
      made.set(held(9));
      made.time.advance(4000);
      expect(model(made)).toBe('cold');
      made.time.advance(1500);
      expect(model(made)).toBe('hot');
    });
  });

  test('without `until` is off when the condition ends, without `for` on at once', async () => {
    await inBothModes(alarm('when: cluster.saturation > 85%'), (made) => {
      made.set(held(9));
      made.time.advance(300);
      expect(model(made)).toBe('hot');
      made.set(held(1));
      made.time.advance(300);
      expect(model(made)).toBe('cold');
    });
  });

  test('may aggregate endpoints and read the time, but no request', () => {
    const policy = (when: string): string =>
      `${tiers({ a: 1 })}define alarm "x" { when: ${when} }\nroute when alarm.x to tier "a"\ndefault reject`;
    expect(errors(policy('max(queued_tokens, tier "a") > 5k'))).toEqual([]);
    expect(errors(policy('hour > 5 and within("mon-fri")'))).toEqual([]);
    expect(errors(policy('complexity > 5'))).toEqual(['E0338']);
    expect(errors(policy('session exists'))).toEqual(['E0338']);
  });

  test('an unknown alarm is an error', () => {
    expect(errors(`${tiers({ a: 1 })}route when alarm.hot to tier "a"\ndefault reject`)).toEqual(['E0225']);
  });
});

describe('params', () => {
  const definitions =
    'define param "zone" { env: "ZONE", default: "a" }\ndefine param "size" { env: "SIZE", default: 5k }\ndefine param "on" { env: "ON", default: false }\ndefine param "bare" { env: "BARE" }\ndefine param "wait" { env: "WAIT", default: 2s }\ndefine param "share" { env: "SHARE", default: 80% }\ndefine param "gold" { env: "GOLD", default: ["a"] }\n';
  const ask = (expression: string, environment: { readonly [name: string]: string } = {}): unknown =>
    value(expression, {}, { definitions, environment });

  test('are the environment’s, else the default’s', () => {
    expect(ask('param.zone')).toBe('a');
    expect(ask('param.zone', { ZONE: 'b' })).toBe('b');
    expect(ask('param.size')).toBe(5000);
    expect(ask('param.size', { SIZE: '7000' })).toBe(7000);
    expect(ask('param.on')).toBe(false);
    expect(ask('param.on', { ON: 'true' })).toBe(true);
    expect(ask('param.bare')).toBeUndefined();
    expect(ask('param.bare', { BARE: 'x' })).toBe('x');
  });

  test('are written in the environment as in a policy', () => {
    expect(ask('param.size', { SIZE: '7k' })).toBe(7000);
    expect(ask('param.wait', { WAIT: '1500ms' })).toBe(1.5);
    expect(ask('param.wait', { WAIT: '3' })).toBe(3);
    expect(ask('param.share', { SHARE: '95%' })).toBe(0.95);
    expect(ask('param.share', { SHARE: '0.95' })).toBe(0.95);
    expect(ask('param.gold', { GOLD: 'x, y' })).toEqual(['x', 'y']);
    expect(ask('param.gold', { GOLD: '' })).toEqual([]);
  });

  test.each([
    ['size', 'SIZE', 'many'],
    ['size', 'SIZE', '5s'],
    ['wait', 'WAIT', '5k'],
    ['on', 'ON', 'perhaps'],
    ['size', 'SIZE', ''],
  ])('of another form are refused when the policy is loaded: %s by %s=%j', (name, variable, text) => {
    expect(() => ask(`param.${name}`, { [variable]: text })).toThrow(`${variable} is "${text}"`);
  });

  test('have the type of their default', () => {
    const policy = (condition: string): string =>
      `${tiers({ a: 1 })}${definitions}route when ${condition} to tier "a"\ndefault reject`;
    expect(errors(policy('param.size > 5s'))).toEqual(['E0302']);
    expect(errors(policy('param.zone == 5'))).toEqual(['E0301']);
    expect(errors(policy('param.size > turns and param.on and param.zone == "z" and deadline < param.wait'))).toEqual(
      [],
    );
    expect(errors(policy('param.none == 5'))).toEqual(['E0225']);
  });
});

describe('cluster', () => {
  const definitions = tiers({ b: 2 }, 'max_requests: 10').replaceAll('10.0.', '10.5.');
  test('values are of the fleet as it stands', () => {
    const at = (expression: string, fleet: { readonly [endpoint: string]: object } = {}): unknown =>
      value(expression, {}, { definitions, fleet });
    expect(at('cluster.saturation', { 'b/1': { inflightRequests: 5 }, 'b/2': { inflightRequests: 10 } })).toBe(0.75);
    expect(at('cluster.inflight_requests', { 'b/1': { inflightRequests: 5 }, 'a/1': { inflightRequests: 1 } })).toBe(6);
    expect(at('cluster.healthy', { 'b/1': { ejected: true } })).toBeCloseTo(2 / 3, 12);
    expect(at('cluster.queue_depth')).toBe(0);
    expect(at('cluster.requests_per_second')).toBeUndefined();
  });

  test('the arrival rate is that of the last seconds', async () => {
    await inBothModes(
      `${tiers({ a: 2 })}route when cluster.requests_per_second > 4/s to endpoint "a/2"\ndefault to endpoint "a/1"`,
      (made) => {
        for (let i = 0; i < 20; i++) {
          made.send();
          made.time.advance(200);
        }
        expect(made.send()).toBe('a/2');
        made.time.advance(60_000);
        expect(made.send()).toBe('a/1');
      },
    );
  });
});

test('state outside enters as values: the same snapshot gives the same decision', () => {
  const policy = `${tiers({ a: 3 })}default to tier "a" by least_tokens pick weighted`;
  expect(decide(policy, {}, { seed: 3 })).toBe(decide(policy, {}, { seed: 3 }));
});
