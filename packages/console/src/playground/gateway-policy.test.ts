import { expect, test } from 'vitest';
import { readGatewayPolicy, versionInForce } from './gateway-policy.ts';

test('the version in force is the one that is said to be', () => {
  const versions = [
    { id: 'a', state: 'kept' },
    { id: 'b', state: 'in_force' },
  ];
  expect(versionInForce({ policy: 'b', versions })).toBe('b');
  for (const report of [null, {}, { versions: [] }, { versions: [{ state: 'in_force' }] }, { versions: 'b' }])
    expect(versionInForce(report)).toBeUndefined();
});

test('its main file is taken, and its imports are named', () => {
  expect(readGatewayPolicy({ sources: { 'main.route': 'x', 'tiers.route': 'y' } })).toEqual({
    text: 'x',
    imports: ['tiers.route'],
  });
  for (const detail of [null, {}, { sources: {} }, { sources: { a: 3 } }])
    expect(readGatewayPolicy(detail)).toBeUndefined();
});
