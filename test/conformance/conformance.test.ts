import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { CASES } from './cases.ts';
import { startSignalbox, type Product } from './products.ts';
import { runCase, settle } from './run-cases.ts';

let signalbox: Product;
beforeAll(async () => {
  signalbox = await startSignalbox();
});
afterEach(async () => {
  expect(await settle(signalbox)).toBe(true);
});
afterAll(() => signalbox.stop());

it.each(CASES)('bug-$id: $behaviour', async (one) => {
  expect(await runCase(signalbox, one)).toEqual({ mark: 'pass', note: '' });
});

it('the cases cover each area that can be seen from outside', () => {
  expect(new Set(CASES.map(({ id }) => id)).size).toBe(CASES.length);
  expect(CASES.length).toBeGreaterThanOrEqual(25);
  expect([...new Set(CASES.map(({ area }) => area))]).toEqual([
    'stream',
    'disconnect',
    'headers',
    'payload',
    'routing',
    'security',
  ]);
});
