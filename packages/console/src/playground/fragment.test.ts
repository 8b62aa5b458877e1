import fc from 'fast-check';
import { deflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { readFragment, writeFragment } from './fragment.ts';
import { EMPTY_STATE } from './state.ts';

const states = fc.record({
  policy: fc.string({ unit: 'grapheme', maxLength: 300 }),
  body: fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
  headers: fc.string(),
  tenant: fc.string(),
  time: fc.constant('2026-01-05T12:00'),
  fleet: fc.dictionary(
    fc.string().filter((name) => name !== '__proto__'),
    fc.dictionary(
      fc.string().filter((name) => name !== '__proto__'),
      fc.string(),
    ),
  ),
});

const linkOf = (content: string): string => `v1.${deflateRawSync(content).toString('base64url')}`;

test('what a link holds comes back as it was', async () => {
  await fc.assert(
    fc.asyncProperty(states, async (state) => {
      const fragment = await writeFragment(state);
      expect(fragment).toMatch(/^v1\.[\w-]+$/);
      const read = await readFragment(`#${fragment}`);
      expect(read.kind === 'state' && JSON.parse(JSON.stringify(read.state))).toEqual(
        JSON.parse(JSON.stringify(state)),
      );
    }),
    { numRuns: 200 },
  );
});

test('a page without a fragment has no link', async () => {
  expect(await readFragment('')).toEqual({ kind: 'none' });
  expect(await readFragment('#')).toEqual({ kind: 'none' });
});

test('a link cut or changed at any place is unreadable or another state, and never an exception', async () => {
  const fragment = await writeFragment({ ...EMPTY_STATE, policy: 'default to tier "8B"', fleet: { a: { b: '9k' } } });
  for (let at = 0; at < fragment.length; at++) {
    for (const changed of [fragment.slice(0, at), `${fragment.slice(0, at)}~${fragment.slice(at + 1)}`]) {
      const read = await readFragment(changed);
      expect(read.kind).toBe(changed === '' ? 'none' : 'unreadable');
    }
  }
  await fc.assert(
    fc.asyncProperty(fc.string(), async (text) => {
      expect((await readFragment(`#${text}`)).kind).toBe(text.replace(/^#/, '') === '' ? 'none' : 'unreadable');
    }),
  );
});

test.each([
  ['other JSON', linkOf('[1, 2]'), /damaged/],
  ['a fleet that is none', linkOf('{"policy":"","fleet":{"a":{"b":1}}}'), /damaged/],
  ['no UTF-8', `v1.${deflateRawSync(Buffer.from([0x22, 0xff, 0x22])).toString('base64url')}`, /damaged/],
  ['a later version', 'v2.AAAA', /another version of the playground \(v2; this one reads v1\)/],
  ['something else', 'section-3', /not one that the playground made/],
  ['32 MB of blanks in 32 KB', linkOf(`{"policy":"${' '.repeat(32 * 2 ** 20)}"}`), /damaged/],
  ['a text without end', `v1.${'A'.repeat(2 ** 21)}`, /longer than any link/],
])('%s is said to be unreadable', async (_name, fragment, message) => {
  const read = await readFragment(fragment);
  expect(read.kind === 'unreadable' && read.message).toMatch(message);
  expect(read.kind === 'unreadable' && read.message).toMatch(/what you had is untouched/);
});

test('fields that an older page did not write have their defaults', async () => {
  expect(await readFragment(linkOf('{"policy":"x"}'))).toEqual({
    kind: 'state',
    state: { ...EMPTY_STATE, policy: 'x' },
  });
});
