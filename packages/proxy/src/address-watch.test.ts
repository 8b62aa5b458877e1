import { expect, test } from 'vitest';
import { AddressWatch } from './address-watch.ts';

type Callback = (error: NodeJS.ErrnoException | null, found: { address: string; family: number }[]) => void;

function watched(host = 'model.test') {
  const asked: Callback[] = [];
  let moves = 0;
  const watch = new AddressWatch(
    host,
    () => moves++,
    (_host, _options, callback) => asked.push(callback),
  );
  const answer = (...addresses: string[]): void =>
    asked.shift()?.(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    );
  const fail = (): void => asked.shift()?.(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
  return { watch, asked, answer, fail, moves: () => moves };
}

test('a name is looked up each second that it is used, once at a time; an address never', () => {
  const { watch, asked, answer } = watched();
  watch.used(0);
  watch.used(5_000);
  expect(asked).toHaveLength(1);
  answer('10.0.0.1');
  watch.used(999);
  expect(asked).toHaveLength(0);
  watch.used(1_000);
  expect(asked).toHaveLength(1);
  for (const host of ['10.0.0.1', '[::1]']) {
    const fixed = watched(host);
    fixed.watch.used(10_000);
    expect(fixed.asked).toHaveLength(0);
  }
});

test('it has moved when none of its addresses is left, and not while one is, nor when it cannot be resolved', () => {
  const { watch, answer, fail, moves } = watched();
  watch.used(0);
  answer('10.0.0.1', '10.0.0.2');
  watch.used(1_000);
  answer('10.0.0.2', '10.0.0.3');
  watch.used(2_000);
  fail();
  watch.used(3_000);
  answer();
  expect(moves()).toBe(0);
  watch.used(4_000);
  answer('10.0.0.4');
  expect(moves()).toBe(1);
});

test('a name whose addresses change all the time is followed each five seconds', () => {
  const { watch, answer, moves } = watched();
  for (let second = 0; second <= 20; second++) {
    watch.used(second * 1_000);
    answer(`10.0.0.${second}`);
  }
  expect(moves()).toBe(4);
});

test('an address of a metadata service is none', () => {
  const { watch, answer, moves } = watched();
  watch.used(0);
  answer('10.0.0.1');
  watch.used(1_000);
  answer('169.254.169.254');
  expect(moves()).toBe(0);
});
