import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const KEYS = { red: 'key-red', blue: 'key-blue', grey: 'key-grey', anyone: 'key-anyone' } as const;
type Holder = keyof typeof KEYS;

let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed({
    gateway: 'models: ["auto", "secret-model"], keys: { file: "keys" }',
    statements: `define tenant "red" { keys: ["${sha256(KEYS.red)}"], models: ["m", "auto"] }
define tenant "blue" { models: ["secret-model", "not-there"] }
define tenant "grey" { keys: ["${sha256(KEYS.grey)}"], models: [] }`,
    files: { keys: `${sha256(KEYS.blue)} tenant=blue\n${sha256(KEYS.anyone)}\n` },
  });
});
afterEach(() => expect(bed.gateway.inflight()).toBe(0));
afterAll(() => bed.stop());

const bearer = (holder: Holder): string => `Authorization: Bearer ${KEYS[holder]}\r\nX-Request-Id: fixed\r\n`;
const get = (holder: Holder, path: string) =>
  exchange(bed.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n${bearer(holder)}\r\n`);
const chat = (holder: Holder, model: string) =>
  exchange(bed.port, post(bearer(holder), JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })));
/** All of an answer but the times in it. */
const shown = ({ statuses, headers, bodies }: Awaited<ReturnType<typeof get>>): object => {
  const [{ date: _date, 'server-timing': _timing, ...rest } = {}] = headers;
  return { statuses, headers: rest, bodies };
};

describe('S12: models', () => {
  test.each([
    ['red', ['auto', 'm']],
    ['blue', ['secret-model']],
    ['grey', []],
    ['anyone', ['auto', 'm', 'secret-model']],
  ] as const)('/v1/models lists those that %s may use, and no others', async (holder, models) => {
    const { bodies } = await get(holder, '/v1/models');
    const { data } = JSON.parse(bodies[0] ?? '') as { readonly data: readonly { readonly id: string }[] };
    expect(data.map(({ id }) => id).toSorted()).toEqual(models);
    for (const { id } of data) expect((await get(holder, `/v1/models/${id}`)).statuses).toEqual([200]);
  });

  test.each(['red', 'blue', 'grey'] as const)(
    'a model that is not for %s is answered as one that does not exist, to the last header and byte',
    async (holder) => {
      const hidden = holder === 'blue' ? 'm' : 'secret-model';
      expect((await get('anyone', `/v1/models/${hidden}`)).statuses).toEqual([200]);
      expect(shown(await get(holder, `/v1/models/${hidden}`))).toEqual(
        shown(await get(holder, '/v1/models/does-not-exist')),
      );
      bed.upstream.take();
      const refused = await chat(holder, hidden);
      expect(refused.statuses).toEqual([404]);
      expect(JSON.parse(refused.bodies[0] ?? '')).toMatchObject({ error: { code: 'model_not_found', param: 'model' } });
      expect(shown(refused)).toEqual(shown(await chat(holder, 'does-not-exist')));
      expect(bed.upstream.take()).toEqual([]);
    },
  );

  test('what a tenant may use is routed, and a list that is edited takes effect on reload', async () => {
    expect((await chat('red', 'm')).statuses).toEqual([200]);
    expect((await chat('blue', 'm')).statuses).toEqual([404]);
    await bed.reload({
      gateway: 'models: ["auto", "secret-model"], keys: { file: "keys" }',
      statements: `define tenant "red" { keys: ["${sha256(KEYS.red)}"], models: ["auto"] }\ndefine tenant "blue" { }`,
    });
    expect((await chat('red', 'm')).statuses).toEqual([404]);
    expect((await chat('blue', 'm')).statuses).toEqual([200]);
  });
});
