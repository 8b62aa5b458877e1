import { describe, expect, test } from 'vitest';
import { compilePolicy } from '../compile.ts';
import { renderText } from '../diagnostics/render-text.ts';
import { networkProblem } from './network-address.ts';

describe('a network', () => {
  test.each([
    '10.0.0.0/8',
    '0.0.0.0/0',
    '192.0.2.7',
    '192.0.2.7/32',
    '255.255.255.255',
    '172.16.0.0/12',
    '::/0',
    '::1',
    'fd00::/8',
    '2001:DB8::/32',
    '::ffff:192.0.2.7',
    '2001:db8:0:0:1:0:0:1/128',
  ])('%s is one', (text) => {
    expect(networkProblem(text)).toBeUndefined();
  });

  test.each([
    ['', /is no IP address/],
    ['localhost', /is no IP address/],
    ['10.0.0', /is no IP address/],
    ['10.0.0.0.0', /is no IP address/],
    ['10.0.0.256', /is no IP address/],
    ['010.0.0.1', /is no IP address/],
    ['10.0.0.1.', /is no IP address/],
    ['0x0a.0.0.1', /is no IP address/],
    ['[::1]', /is no IP address/],
    ['fe80::1%eth0', /is no IP address/],
    ['1::2::3', /is no IP address/],
    ['12345::', /is no IP address/],
    [' 10.0.0.0/8', /is no IP address/],
    ['10.0.0.0/', /from 0 to 32/],
    ['10.0.0.0/33', /from 0 to 32/],
    ['10.0.0.0/08', /from 0 to 32/],
    ['10.0.0.0/-1', /from 0 to 32/],
    ['10.0.0.0/8/8', /from 0 to 32/],
    ['fd00::/129', /from 0 to 128/],
  ])('%j is none', (text, problem) => {
    expect(networkProblem(text)?.problem).toMatch(problem);
  });

  test.each([
    ['10.0.0.1/8', '`10.0.0.0/8`'],
    ['192.168.1.130/25', '`192.168.1.128/25`'],
    ['fd00::1/8', '`fd00::/8`'],
    ['2001:db8::8000:0:0:0/64', '`2001:db8::/64`'],
  ])('%s has bits behind its prefix: the network is named', (text, network) => {
    const fault = networkProblem(text);
    expect(fault?.problem).toMatch(/bits behind its prefix/);
    expect(fault?.help).toContain(network);
  });
});

test('a list of trusted proxies is told apart item by item, each at its place', () => {
  const text =
    'define gateway { trusted_proxies: ["10.0.0.0/8", "10.0.0.1/8", "proxy.local"] }\ndefine tier "t" { model: "m", endpoints: ["http://h:1"] }\ndefault to tier "t"';
  const { program, diagnostics, sources } = compilePolicy({
    path: 'p.route',
    text,
    manifests: [],
    checkOptions: () => [],
  });
  expect(program).toBeUndefined();
  expect(diagnostics.map(({ code, span }) => [code, text.slice(span.start, span.end)])).toEqual([
    ['E0514', '"10.0.0.1/8"'],
    ['E0514', '"proxy.local"'],
  ]);
  const shown = renderText(diagnostics, sources, { color: false });
  expect(shown).toMatch(/^ *1 \|.*"10\.0\.0\.1\/8"/m);
  expect(shown).toMatch(/\^{12}/);
});
