import { expect, test } from 'vitest';
import { forwardingRules } from './forwarding-rules.ts';

test('no network: there are no rules', () => {
  expect(forwardingRules([])).toBeUndefined();
});

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.0.0.0/8', '::ffff:10.1.2.3', true],
  ['10.0.0.0/8', '::ffff:11.1.2.3', false],
  ['192.0.2.7', '192.0.2.7', true],
  ['192.0.2.7', '192.0.2.8', false],
  ['192.0.2.7/32', '192.0.2.7', true],
  ['0.0.0.0/0', '203.0.113.9', true],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['fd00::/8', 'fd12:3456::1', true],
  ['fd00::/8', 'fe80::1', false],
  ['::1', '::1', true],
  ['::1', '127.0.0.1', false],
  ['10.0.0.0/8', '', false],
  ['10.0.0.0/8', 'localhost', false],
])('%s and the peer %s: %s', (network, peer, trusted) => {
  expect(forwardingRules(['198.51.100.0/24', network])?.trusts(peer)).toBe(trusted);
});
