import { expect, test } from 'vitest';
import { compilePolicy } from '../compile.ts';

const compile = (text: string) =>
  compilePolicy({
    path: 'p.route',
    text: `${text}\ndefine tier "t" { model: "m", endpoints: ["http://h:1"] }\ndefault to tier "t"`,
    manifests: [],
    checkOptions: () => [],
  });
const definitionsOf = (text: string) => compile(text).program?.definitions;
const codesOf = (text: string): readonly string[] => compile(text).diagnostics.map(({ code }) => code);

test('early_head is a duration of a second or more, in seconds; absent, heads wait for as long as it takes', () => {
  expect(definitionsOf('define gateway { early_head: 1m }')?.gateway.earlyHead).toBe(60);
  expect(definitionsOf('define gateway { }')?.gateway).not.toHaveProperty('earlyHead');
  for (const value of ['999ms', '0s', '40', 'true'])
    expect(codesOf(`define gateway { early_head: ${value} }`), value).toEqual(['E0511']);
});

test('trusted_proxies is a list of networks, one of them, or a name for them, and is reported once where it is wrong', () => {
  const networks = (text: string) => definitionsOf(text)?.gateway.trustedProxies;
  expect(networks('define gateway { trusted_proxies: ["10.0.0.0/8", "::1"] }')).toEqual(['10.0.0.0/8', '::1']);
  expect(networks('define gateway { trusted_proxies: "10.0.0.0/8" }')).toEqual(['10.0.0.0/8']);
  expect(networks('let ours = ["10.0.0.0/8"]\ndefine gateway { trusted_proxies: ours }')).toEqual(['10.0.0.0/8']);
  expect(networks('')).toEqual([]);
  expect(codesOf('define gateway { trusted_proxies: ["10.0.0.0/8", 8] }')).toEqual(['E0511']);
});

test('models of a tenant are a list; without it all are meant, and an empty one means none', () => {
  const models = (text: string) => definitionsOf(text)?.tenants[0]?.models;
  expect(models('define tenant "a" { models: ["m", "auto"] }')).toEqual(['m', 'auto']);
  expect(models('define tenant "a" { models: [] }')).toEqual([]);
  expect(models('define tenant "a" { }')).toBeUndefined();
  expect(codesOf('define tenant "a" { models: 5 }')).toEqual(['E0511']);
});

test('explain_header is off, asked or all; absent, no answer is explained', () => {
  for (const value of ['off', 'asked', 'all'])
    expect(definitionsOf(`define gateway { explain_header: ${value} }`)?.gateway.explainHeader).toBe(value);
  expect(definitionsOf('define gateway { }')?.gateway).not.toHaveProperty('explainHeader');
  expect(codesOf('define gateway { explain_header: sometimes }')).toHaveLength(1);
});
