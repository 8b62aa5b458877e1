import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compilePolicy } from '@signalbox/policy';
import type { Definitions } from '@signalbox/policy';
import { keyLine, parseKeyList } from './key-list.ts';
import { createKeyRing, UNKNOWN_KEY } from './key-ring.ts';
import { loadKeys } from './load-keys.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const A = sha256('key-a');
const B = sha256('key-b');

function definitions(text: string): Definitions {
  const { program, diagnostics } = compilePolicy({
    path: 'p.route',
    text: `${text}\ndefine tier "t" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "t"`,
    readFile: () => undefined,
    manifests: [],
    resolvePlugin: () => ({ error: 'none' }),
    checkOptions: () => [],
    nowEpochMs: 0,
  });
  if (program === undefined) throw new Error(JSON.stringify(diagnostics));
  return program.definitions;
}

test('a list has a hash, a tenant and a name on each line, in any order of fields, with comments and blank lines', () => {
  const list = parseKeyList(
    `\uFEFF# rotated in May\r\n\r\n${A.toUpperCase()}   name="night batch" tenant=acme # the old one\n  sha256:${B}\t\n`,
  );
  expect(list).toEqual({
    entries: [
      { hash: A, tenant: 'acme', name: 'night batch', place: 'line 3' },
      { hash: B, tenant: undefined, name: B.slice(0, 8), place: 'line 4' },
    ],
    faults: [],
  });
  expect(parseKeyList(`${A} tenant=x; ${B} name=y`).entries.map(({ tenant, name }) => [tenant, name])).toEqual([
    ['x', A.slice(0, 8)],
    [undefined, 'y'],
  ]);
});

test('a line written by a command is read back as it was meant', () => {
  const label = fc.option(fc.stringMatching(/^[^\p{Cc}"#;]{1,40}$/u), { nil: undefined });
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9a-f]{64}$/), label, label, (hash, tenant, name) => {
      expect(parseKeyList(keyLine(hash, tenant, name))).toEqual({
        entries: [{ hash, tenant, name: name ?? hash.slice(0, 8), place: 'line 1' }],
        faults: [],
      });
    }),
  );
});

test('what is wrong in a list is told by line, and never by what stands there', () => {
  const secret = 'sk-live-0123456789abcdef';
  const { entries, faults } = parseKeyList(
    [
      secret,
      A.slice(1),
      `${A} ${secret}`,
      `${A} tenant=`,
      `${A} name=x name=${secret}`,
      `${A} name="${secret}`,
      B,
    ].join('\n'),
  );
  expect(entries.map(({ hash }) => hash)).toEqual([B]);
  expect(faults.map((fault) => /line \d/.exec(fault)?.[0])).toEqual([
    'line 1',
    'line 2',
    'line 3',
    'line 4',
    'line 5',
    'line 6',
  ]);
  expect(faults[0]).toMatch(/signalbox key hash/);
  expect(faults.join()).not.toContain('0123456789');
  fc.assert(
    fc.property(fc.stringMatching(/^[!-~]{16,60}$/), (key) => {
      const told = parseKeyList(key).faults.join();
      expect(told.includes(key)).toBe(false);
    }),
  );
});

test('a ring finds the holder of each of its keys and of no other text', () => {
  const keys = Array.from({ length: 2000 }, (_, i) => `key-${i}`);
  const ring = createKeyRing(
    keys.map((key, i) => ({ hash: sha256(key), tenant: i % 2 === 0 ? 'even' : undefined, name: key })),
  );
  expect(keys.map((key) => ring.identify(key))).toEqual(
    keys.map((key, i) => ({ kind: 'known', apiKeyName: key, ...(i % 2 === 0 ? { tenant: 'even' } : {}) })),
  );
  for (const wrong of [
    undefined,
    '',
    'key-',
    'key-00',
    ' key-1',
    'key-1 ',
    'KEY-1',
    sha256('key-1'),
    'key-1'.repeat(200_000),
  ]) {
    expect(ring.identify(wrong)).toBe(UNKNOWN_KEY);
  }
  fc.assert(fc.property(fc.string(), (text) => (ring.identify(text) !== UNKNOWN_KEY) === keys.includes(text)));
});

test('rings of the same keys have the same fingerprint in whatever order, and any difference shows', () => {
  const one = { hash: A, tenant: 'a', name: 'x' };
  const two = { hash: B, tenant: undefined, name: 'y' };
  const { fingerprint } = createKeyRing([one, two]);
  expect(createKeyRing([two, one]).fingerprint).toBe(fingerprint);
  for (const other of [[one], [one, { ...two, tenant: 'a' }], [{ ...one, name: 'z' }, two]]) {
    expect(createKeyRing(other).fingerprint).not.toBe(fingerprint);
  }
});

test('keys come from tenants and from the list together; without either there is no ring', () => {
  const policy = definitions(
    `define gateway { keys: { env: "KEYS" } }\ndefine tenant "acme" { keys: ["sha256:${A}"] }`,
  );
  const ring = loadKeys(policy, () => `${B} tenant=acme name=ci`);
  expect(ring?.identify('key-a')).toEqual({ kind: 'known', tenant: 'acme', apiKeyName: A.slice(0, 8) });
  expect(ring?.identify('key-b')).toEqual({ kind: 'known', tenant: 'acme', apiKeyName: 'ci' });
  expect(loadKeys(definitions('define tenant "acme" { weight: 2 }'), () => undefined)).toBeUndefined();
});

test.each([
  ['', undefined, 'keys_unreadable', /the file keys\.txt is missing, empty or not readable/],
  ['', '# nobody', 'keys_invalid', /are none, so that nobody could call/],
  ['', `${B} tenant=acmee`, 'keys_invalid', /line 1 names a tenant that the policy does not define: "acmee"/],
  ['', `${B}\n\n${B} name=again`, 'keys_invalid', /line 3 repeats the key of line 1/],
  [`define tenant "acme" { keys: ["${A}"] }`, A, 'keys_invalid', /line 1 repeats the key of tenant "acme"/],
  ['', `nonsense\n${B}`, 'keys_invalid', /line 1 does not begin with the SHA-256 hash/],
  ['', 'x\n'.repeat(9), 'keys_invalid', /line 5 .*; and 4 more$/],
])('a list that is not in order is refused whole: %s %s', (text, list, code, message) => {
  const policy = definitions(`define gateway { keys: { file: "keys.txt" } }\n${text}`);
  expect(() => loadKeys(policy, () => list)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) as string }),
  );
});
