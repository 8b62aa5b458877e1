import { expect, test } from 'vitest';
import { createRendezvous, createRing } from '../../../packages/chwbl/src/index.ts';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, json, plain } from '../support/wire.fixture.ts';

// The library's own tests hold the properties in full; these are the reported cases.
const keys = Array.from({ length: 2_000 }, (_, i) => `key-${i}`);
const nodes = (...ids: readonly string[]): { id: string }[] => ids.map((id) => ({ id }));

test('bug-53: names that run into each other share no point, and a removal leaves none behind', () => {
  const ring = createRing({ nodes: nodes('m-1', 'm-11', 'a', 'bc', 'ab', 'c') });
  expect(new Set(keys.map((key) => ring.pick(key))).size).toBe(6);
  const without = createRing({ nodes: nodes('m-11', 'a', 'bc', 'ab', 'c') });
  for (const key of keys) {
    const home = ring.pick(key);
    if (home !== 'm-1') expect(without.pick(key)).toBe(home);
  }
});

test('bug-54: with hundreds of replicas that are idle or nearly so, some endpoint always fits', () => {
  const ids = Array.from({ length: 400 }, (_, i) => `r${i}`);
  const ring = createRing({ nodes: nodes(...ids) });
  for (const load of [0, 1]) {
    const loads = new Map(ids.map((id, i) => [id, i < 200 ? load : 0]));
    for (const key of keys.slice(0, 200)) expect(ring.pick(key, loads, { bound: 1 })).toBeDefined();
  }
});

test('bug-55: one hot key overflows to its next choices while no endpoint holds more than the bound', async () => {
  const bed = await faultBed({ upstreams: 4, policy: oneTier('', 'default to tier "tier" with affinity session') });
  const clients = Array.from({ length: 40 }, () => bed.client().post(CHAT, chat(), ['x-session-id: hot']));
  const held = (): number[] => bed.upstreams.map(({ requests }) => requests.length);
  await bed.until(() => held().reduce((a, b) => a + b) === 40, 'all forty');
  for (const got of held()) expect(got).toBeLessThanOrEqual(Math.ceil((1.25 * 41) / 4) + 1);
  for (const upstream of bed.upstreams) for (const { socket } of upstream.requests) socket.write(json(200, ANSWER));
  for (const one of clients) expect((await one.answer()).status).toBe(200);
});

test('bug-56: removing an endpoint moves its keys alone, and all of them come back with it', () => {
  for (const make of [createRing, createRendezvous]) {
    const before = make({ nodes: nodes('a', 'b', 'c', 'd') });
    const without = make({ nodes: nodes('a', 'b', 'd') });
    const after = make({ nodes: nodes('d', 'c', 'b', 'a') });
    for (const key of keys) {
      const home = before.pick(key);
      if (home !== 'c') expect(without.pick(key)).toBe(home);
      expect(after.pick(key)).toBe(home);
    }
  }
});

test('bug-57: "user": inside of prompt text is no key', async () => {
  const bed = await faultBed({
    policy: oneTier('', 'reject "evil" when user == "evil" with status 403, message "no"\ndefault to tier "tier"'),
  });
  bed.upstream.onRequest = () => plain(ANSWER);
  const one = bed.client();
  const content = '{"user":"evil"} \\"user\\":\\"evil\\"';
  expect(
    (await one.post(CHAT, chat({ messages: [{ role: 'user', content }], metadata: { user: 'evil' } })).answer()).status,
  ).toBe(200);
  expect((await one.post(CHAT, chat({ user: 'evil' })).answer()).status).toBe(403);
});
