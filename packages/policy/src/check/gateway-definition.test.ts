import { expect, test } from 'vitest';
import { compilePolicy } from '../compile.ts';

const REST = '\ndefine tier "t" { model: "m", endpoints: ["http://h:1"] }\ndefault to tier "t"';

const compile = (gateway: string) =>
  compilePolicy({
    path: 'policy.route',
    text: `define gateway ${gateway}${REST}`,
    manifests: [],
    checkOptions: () => [],
  });

test('the times of a drain are ten seconds and five minutes, and each can be written alone', () => {
  const drainOf = (gateway: string): unknown => compile(gateway).program?.definitions.gateway.drain;
  expect(drainOf('{}')).toEqual({ accept: 10, grace: 300 });
  expect(drainOf('{ drain: { accept: 500ms } }')).toEqual({ accept: 0.5, grace: 300 });
  expect(drainOf('{ drain: { grace: 1m } }')).toEqual({ accept: 10, grace: 60 });
  expect(drainOf('{ drain: { accept: 0s, grace: 0s } }')).toEqual({ accept: 0, grace: 0 });
});

test.each([
  ['{ drain: 5s }', 'E0511'],
  ['{ drain: { accept: 5 } }', 'E0511'],
  ['{ drain: { grace: -1s } }', 'E0511'],
  ['{ drain: { acept: 5s } }', 'E0209'],
])('%s is refused', (gateway, code) => {
  expect(compile(gateway).diagnostics.map((diagnostic) => diagnostic.code)).toEqual([code]);
});
