import { expect, test } from 'vitest';
import { newRequestId } from './request-id.ts';

test('request ids are UUIDs of version 4 in which every other bit varies, and none comes twice', () => {
  const ids = Array.from({ length: 1000 }, newRequestId);
  for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(new Set(ids).size).toBe(ids.length);
  for (let place = 0; place < 36; place++) {
    const digits = new Set(ids.map((id) => id[place]));
    expect([place, digits.size]).toEqual([place, [8, 13, 18, 23, 14].includes(place) ? 1 : place === 19 ? 4 : 16]);
  }
});
