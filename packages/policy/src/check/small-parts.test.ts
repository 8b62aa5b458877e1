import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkOptionsPlainly } from './check-options.ts';
import { hashParts, sha256 } from './content-hash.ts';
import { isListenAddress, normaliseAddress } from './endpoint-address.ts';
import { resolveImportPath } from './load-files.ts';
import { isTimeZone, normaliseWindow } from './time-window.ts';
import { arithmeticType, formatNumber } from './value-types.ts';

describe('the content hash', () => {
  test('is SHA-256, as node has it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
        expect(sha256(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'));
      }),
    );
    for (const length of [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 1000]) {
      const text = 'x'.repeat(length);
      expect(sha256(text)).toBe(createHash('sha256').update(text).digest('hex'));
    }
  });

  test('tells apart parts that join to one text', () => {
    expect(hashParts(['ab', 'c'])).not.toBe(hashParts(['a', 'bc']));
    expect(hashParts(['1:a'])).not.toBe(hashParts(['1', 'a']));
  });
});

describe('addresses of endpoints (bug-28)', () => {
  test.each([
    ['http://10.0.0.1:8000', 'http://10.0.0.1:8000'],
    ['http://10.0.0.1:8000/', 'http://10.0.0.1:8000'],
    ['http://10.0.0.1:8000/v1', 'http://10.0.0.1:8000'],
    ['http://10.0.0.1:8000/v1/', 'http://10.0.0.1:8000'],
    ['https://Host.example:443/base//v1//', 'https://host.example/base'],
    ['http://h/v1beta', 'http://h/v1beta'],
    ['http://[::1]:80/models/v1', 'http://[::1]/models'],
  ])('%s', (text, url) => {
    expect(normaliseAddress(text)).toEqual({ url });
  });

  test.each([
    '10.0.0.1',
    'ftp://x',
    'http://u:p@h',
    'http://h?x=1',
    'http://h#x',
    'http://',
    'http://a b',
    'http://h?',
  ])('%s is refused', (text) => {
    expect(normaliseAddress(text)).toHaveProperty('problem');
  });

  test('listeners are host and port', () => {
    for (const text of ['0.0.0.0:8080', '[::1]:9901', ':80', 'localhost:0']) expect(isListenAddress(text)).toBe(true);
    for (const text of ['8080', 'localhost', '::1:80', 'h:70000', 'http://h:80'])
      expect(isListenAddress(text)).toBe(false);
  });
});

describe('windows of time', () => {
  test.each([
    ['mon-fri 22:00-06:00', 'mon,tue,wed,thu,fri 22:00-06:00'],
    ['22:00-6:00', 'mon,tue,wed,thu,fri,sat,sun 22:00-06:00'],
    ['sat-mon', 'mon,sat,sun 00:00-24:00'],
    ['fri,mon 9:00-17:30', 'mon,fri 09:00-17:30'],
    ['SUN 00:00-24:00', 'sun 00:00-24:00'],
  ])('%s', (text, window) => {
    expect(normaliseWindow(text)).toBe(window);
  });

  test.each([
    '',
    'moon',
    'mon 25:00-26:00',
    'mon 10:00',
    '10:00-10:00',
    '10:00-11:00 mon',
    'mon 10:00-24:30',
    'mon tue 10:00-11:00',
    'mon-',
  ])('%s is refused', (text) => {
    expect(normaliseWindow(text)).toHaveProperty('problem');
  });

  test('zones are those of the runtime', () => {
    expect(isTimeZone('Europe/Berlin')).toBe(true);
    expect(isTimeZone('Europe/Berln')).toBe(false);
  });
});

test.each([
  ['shared/a.route', './b.route', 'shared/b.route'],
  ['shared/a.route', '../b.route', 'b.route'],
  ['a.route', '../b.route', undefined],
  ['a.route', '/etc/passwd', undefined],
  ['a.route', 'http://x/y.route', undefined],
  ['a.route', 'C:\\x.route', undefined],
  ['a.route', 'x\\y.route', undefined],
  ['/srv/p/a.route', 'b/./c.route', '/srv/p/b/c.route'],
  ['a.route', '', undefined],
  ['a.route', '.', undefined],
])('from %s the import %s leads to %s', (from, path, expected) => {
  expect(resolveImportPath(from, path)).toBe(expected);
});

const no = { left: false, right: false };

test.each([
  ['percent', '*', 'count', no, 'count'],
  ['percent', '*', 'number', { left: false, right: true }, 'percent'],
  ['number', '*', 'percent', { left: true, right: false }, 'percent'],
  ['percent', '*', 'number', no, 'number'],
  ['duration', '/', 'duration', no, 'number'],
  ['count', '/', 'duration', no, 'rate'],
  ['bytes', '/', 'duration', no, 'rate'],
  ['rate', '*', 'duration', no, 'count'],
  ['count', '/', 'rate', no, 'duration'],
  ['duration', '*', 'duration', no, undefined],
  ['money', '*', 'money', no, undefined],
  ['money', '/', 'number', no, 'money'],
  ['duration', '+', 'count', no, undefined],
  ['count', '+', 'number', no, 'count'],
  ['string', '+', 'string', no, undefined],
] as const)('%s %s %s', (left, op, right, constant, expected) => {
  expect(arithmeticType(op, left, right, constant)).toBe(expected);
});

test('numbers are written with their unit', () => {
  expect(formatNumber(0.9, 'percent')).toBe('90%');
  expect(formatNumber(0.07, 'percent')).toBe('7%');
  expect(formatNumber(0.5, 'duration')).toBe('500ms');
  expect(formatNumber(5, 'duration')).toBe('5s');
});

test('the plain option checker reports each violation with its pointer', () => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: 'integer', minimum: 1, maximum: 5 },
      b: { type: 'array', items: { type: 'string', minLength: 2 }, maxItems: 1 },
      c: { type: 'string', enum: ['x', 'y'] },
      d: {
        type: 'object',
        properties: { e: { type: 'number', exclusiveMinimum: 0 } },
        required: ['f'],
        additionalProperties: false,
      },
      g: { type: 'string', pattern: '^a+$' },
    },
    required: ['z'],
    additionalProperties: false,
  } as const;
  const problems = checkOptionsPlainly(schema, {
    a: 0.5,
    b: ['q', 'long'],
    c: 'z',
    d: { e: 0, x: 1 },
    g: 'b',
    constructor: 1,
  });
  expect(problems.map(({ pointer, keyword }) => `${pointer} ${keyword}`)).toEqual([
    ' required',
    '/a type',
    '/b maxItems',
    '/b/0 minLength',
    '/c enum',
    '/d required',
    '/d/e exclusiveMinimum',
    '/d additionalProperties',
    '/g pattern',
    ' additionalProperties',
  ]);
  expect(checkOptionsPlainly(schema, { z: 1, a: 2 }).map(({ keyword }) => keyword)).toEqual(['additionalProperties']);
});
