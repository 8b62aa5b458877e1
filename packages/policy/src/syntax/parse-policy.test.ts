import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  arbitraryPolicyText,
  arbitraryPolicyWords,
  arbitrarySensiblePolicyText,
  joinWords,
} from './arbitrary.fixture.ts';
import type { ExprNode, RouteNode, StatementNode } from './ast.ts';
import { parsePolicy } from './parse-policy.ts';
import type { ParseResult } from './parse-result.ts';
import { shapeOf } from './shape.fixture.ts';

const parse = (text: string): ParseResult => parsePolicy(text, { file: 'a.route' });
const codes = (text: string): readonly string[] => parse(text).diagnostics.map(({ code }) => code);
const kinds = (text: string): readonly string[] => parse(text).file.statements.map(({ kind }) => kind);

const only = (text: string): StatementNode => {
  const { file, diagnostics } = parse(text);
  expect(diagnostics).toEqual([]);
  expect(file.statements).toHaveLength(1);
  const [node] = file.statements;
  if (node === undefined) throw new Error('no statement');
  return node;
};
const route = (text: string): RouteNode => {
  const node = only(text);
  if (node.kind !== 'route') throw new Error(`a ${node.kind}`);
  return node;
};
const expr = (text: string): ExprNode => {
  const node = only(`let it = ${text}`);
  if (node.kind !== 'let') throw new Error(`a ${node.kind}`);
  return node.value;
};

const examples = new URL('../../fixtures/examples/', import.meta.url);
const exampleNames = readdirSync(examples).filter((name) => name.endsWith('.route'));
const exampleText = (name: string): string => readFileSync(new URL(name, examples), 'utf8');

describe('the examples of the reference', () => {
  it('reads the one-line program', () => {
    const text = 'route when complexity > 50 to tier "70B" by least_tokens with affinity session';
    const node = route(text);
    expect(shapeOf(node)).toMatchObject({
      kind: 'route',
      when: { kind: 'compare', operator: '>', left: { text: 'complexity' }, right: { kind: 'number', value: 50 } },
      destination: {
        targets: [{ name: { text: 'tier' }, label: { value: '70B' } }],
        by: { tiers: [{ kind: 'name', text: 'least_tokens' }] },
        with: { modifiers: [{ name: { text: 'affinity' }, parts: [{ value: { text: 'session' } }] }] },
      },
      otherwise: [],
    });
    expect(node.span).toEqual({ file: 'a.route', start: 0, end: text.length });
  });

  it.each(exampleNames)('reads %s without a finding', (name) => {
    const { file, diagnostics } = parse(exampleText(name));
    expect(diagnostics).toEqual([]);
    expect(file.statements.length).toBeGreaterThan(0);
  });
});

describe('statements', () => {
  it('reads annotations and the doc comment directly above', () => {
    const node = only('## Long prompts.\n##   Indented.\n@owner("x") @allow(W0505, "why")\nroute to any');
    expect(node.doc).toBe('Long prompts.\n  Indented.');
    expect(node.annotations.map(({ name, args }) => [name.text, args?.items.length])).toEqual([
      ['owner', 1],
      ['allow', 2],
    ]);
  });

  it('takes no doc comment from across a blank line or from the end of a line', () => {
    expect(parse('## far\n\nlet a = 1').file.statements[0]?.doc).toBeUndefined();
    expect(parse('let a = 1 ## behind\nlet b = 2').file.statements[1]?.doc).toBeUndefined();
  });

  it('spans a head of keyword and label, and a whole with annotations', () => {
    const text = '@a\nroute "x" when b to any';
    const node = only(text);
    expect(text.slice(node.head.start, node.head.end)).toBe('route "x"');
    expect(node.span.start).toBe(0);
  });

  it('nests groups', () => {
    const { file } = parse(
      'group "a" with timeout 5s {\n group "b" when x { default to any }\n route to any\n}\ndefault to any',
    );
    const [outer] = file.statements;
    expect(outer).toMatchObject({
      kind: 'group',
      statements: [{ kind: 'group', statements: [{ kind: 'default' }] }, { kind: 'route' }],
    });
  });

  it('tells an outcome, a verdict and a statement apart by what stands before', () => {
    expect(kinds('ensure "a" always default admit "b" when x ensure "c" never reject reject "d"')).toEqual([
      'ensure',
      'admission',
      'ensure',
      'admission',
    ]);
    expect(kinds('default reject with status 503 reject when x')).toEqual(['default', 'admission']);
    expect(kinds('test "a" { given x = 1 expect not route "b" expect default expect queue } route to any')).toEqual([
      'test',
      'route',
    ]);
  });

  it('lets reserved words be keys, named arguments and parts of names', () => {
    expect(only('define limit "a" { when: stream, queue: 5, "to": any }')).toMatchObject({
      body: { entries: [{ key: { text: 'when' } }, { key: { text: 'queue' } }, { key: { text: 'to', quoted: true } }] },
    });
    expect(expr('f(when: 5, x.route.default)')).toMatchObject({
      args: { items: [{ name: { text: 'when' } }, { value: { kind: 'name' } }] },
    });
  });

  it('reads objects in lists of objects', () => {
    expect(only('define tier "a" { endpoints: [{ url: "u" }, "v"] key: { env: "K" } }')).toMatchObject({
      body: {
        entries: [{ value: { items: [{ kind: 'object' }, { kind: 'string' }] } }, { value: { kind: 'object' } }],
      },
    });
    expect(codes('route when x in [{ a: 1 }] to any')).toEqual(['E0124']);
  });

  it('puts arguments of a modifier with the word or literal just before', () => {
    expect(
      shapeOf(
        route('route to any with fallback tier "34B" (on: [error]), affinity prefix(2k), retry_after(5s)').destination
          .with,
      ),
    ).toMatchObject({
      modifiers: [
        {
          name: { text: 'fallback' },
          parts: [
            { value: { text: 'tier' } },
            { value: { value: '34B' }, args: { items: [{ name: { text: 'on' } }] } },
          ],
        },
        {
          name: { text: 'affinity' },
          parts: [{ value: { text: 'prefix' }, args: { items: [{ value: { value: 2000 } }] } }],
        },
        { name: { text: 'retry_after' }, args: { items: [{ value: { value: 5 } }] }, parts: [] },
      ],
    });
  });
});

describe('expressions', () => {
  it('bind or, and, not, comparison, ??, sum, product, minus, in this order', () => {
    expect(shapeOf(expr('not a or b and c ?? 1 + 2 * -3 > 4'))).toMatchObject({
      kind: 'or',
      operands: [
        { kind: 'not', operand: { text: 'a' } },
        {
          kind: 'and',
          operands: [
            { text: 'b' },
            {
              kind: 'compare',
              left: {
                kind: 'coalesce',
                operands: [
                  { text: 'c' },
                  { kind: 'arithmetic', operator: '+', right: { operator: '*', right: { kind: 'negate' } } },
                ],
              },
            },
          ],
        },
      ],
    });
  });

  it('associate arithmetic to the left', () => {
    expect(shapeOf(expr('a - b - c'))).toMatchObject({
      operator: '-',
      left: { operator: '-', left: { text: 'a' } },
      right: { text: 'c' },
    });
  });

  it('reads in, not in, ranges, matches, contains, exists, index, call and reference', () => {
    expect(expr('x not in [1, 2]')).toMatchObject({ kind: 'in', negated: true, set: { kind: 'list' } });
    expect(expr('x in 0..250')).toMatchObject({
      kind: 'in',
      negated: false,
      set: { kind: 'range', low: { value: 0 }, high: { value: 250 } },
    });
    expect(expr('x matches r"a\\"b\\d"i')).toMatchObject({ kind: 'matches', regex: { source: 'a"b\\d', flags: 'i' } });
    expect(expr('x contains "a"')).toMatchObject({ kind: 'contains' });
    expect(expr('x exists')).toMatchObject({ kind: 'exists' });
    expect(expr('header["x"]')).toMatchObject({ kind: 'index', object: { text: 'header' } });
    expect(expr('min(x, tier "70B")')).toMatchObject({
      kind: 'call',
      args: { items: [{}, { value: { kind: 'ref', label: { value: '70B' } } }] },
    });
  });

  it.each([
    ['5', 'number', 5],
    ['1_000.5', 'number', 1000.5],
    ['90ms', 'duration', 0.09],
    ['40us', 'duration', 0.00004],
    ['2m', 'duration', 120],
    ['1h', 'duration', 3600],
    ['3d', 'duration', 259_200],
    ['32k', 'count', 32_000],
    ['2Ki', 'count', 2048],
    ['70B', 'count', 70e9],
    ['1.5M', 'count', 1.5e6],
    ['3Mi', 'count', 3 * 1024 ** 2],
    ['1KB', 'bytes', 1000],
    ['2MiB', 'bytes', 2 * 1024 ** 2],
    ['5GB', 'bytes', 5e9],
    ['60/min', 'rate', 1],
    ['200k/min', 'rate', 200_000 / 60],
    ['24/d', 'rate', 24 / 86_400],
    ['95%', 'percent', 0.95],
    ['0.5%', 'percent', 0.005],
    ['$5', 'money', 5],
    ['$0.25', 'money', 0.25],
    ['$3600/h', 'rate', 1],
    ['true', 'bool', true],
  ])('reads %s as %s of %d', (raw, kind, value) => {
    expect(expr(raw)).toMatchObject({ kind, value, raw });
  });

  it('tells a rate from a division', () => {
    expect(expr('60/price')).toMatchObject({ kind: 'arithmetic', operator: '/' });
    expect(expr('60 / s1')).toMatchObject({ kind: 'arithmetic', operator: '/' });
    expect(expr('$5/h')).toMatchObject({ kind: 'rate', of: 'money' });
  });

  it('resolves the escapes of strings', () => {
    expect(expr('"a\\n\\t\\u00e9\\ud83d\\ude00\\"\\\\\\/"')).toMatchObject({ kind: 'string', value: 'a\n\té😀"\\/' });
  });
});

describe('recovery', () => {
  it('leaves the other rules of a file analysed, with one finding for each broken one', () => {
    const text =
      'route "a" when x tier "t"\nroute "b" when y to any\nroute "c" whn y to any\nroute "d" to any by\nlet e = 5\ndefault to any';
    expect(kinds(text)).toEqual(['broken', 'route', 'broken', 'broken', 'let', 'default']);
    expect(codes(text)).toEqual(['E0122', 'E0120', 'E0124']);
  });

  it('does not swallow a misspelled statement word as an argument of the clause above', () => {
    const { file, diagnostics } = parse('route to any with affinity session\ndefualt to any');
    expect(file.statements.map(({ kind }) => kind)).toEqual(['route', 'broken']);
    expect(diagnostics).toMatchObject([
      { code: 'E0121', help: 'did you mean `default`?', span: { start: 35, end: 42 } },
    ]);
  });

  it('leaves a word like a statement word alone where the statement parses as it stands', () => {
    expect(codes('route to any with affinity session\n  tset\n  user')).toEqual([]);
  });

  it('tells of a statement whose first word is lost, and keeps the one above', () => {
    const text = 'route "a" to any with affinity session\n"b" when stream to any';
    expect(kinds(text)).toEqual(['route', 'broken']);
    expect(codes(text)).toEqual(['E0121']);
  });

  it('keeps what a broken statement declares', () => {
    expect(
      parse('let long = \nlet next = 5\ndefine tier "a" { ]\nuse "p" as q {\ndefault').file.statements,
    ).toMatchObject([
      { kind: 'broken', keyword: 'let', name: { text: 'long' } },
      { kind: 'broken', keyword: 'let' },
      { kind: 'broken', keyword: 'define', name: { text: 'tier' }, label: { value: 'a' } },
      { kind: 'broken', keyword: 'use', name: { text: 'q' }, label: { value: 'p' } },
      { kind: 'broken', keyword: 'default' },
    ]);
  });

  it('reads the rules of a group whose head is broken', () => {
    const { file, diagnostics } = parse('group eu {\n route "a" to any\n}');
    expect(diagnostics.map(({ code }) => code)).toEqual(['E0120']);
    expect(file.statements).toMatchObject([{ kind: 'broken', keyword: 'group', statements: [{ kind: 'route' }] }]);
  });

  it('reports an unknown version of the language and nothing else', () => {
    expect(codes('language 2\nroute rotue "a')).toEqual(['E0133']);
  });

  it('finds an error at its true place in the last line of the last block', () => {
    const text = '# 漢字\r\n\r\n\tgroup "😀" {\r\n\t\troute when to any\r\n}';
    expect(parse(text).diagnostics).toMatchObject([
      { code: 'E0124', span: { start: text.indexOf('to any'), end: text.indexOf('to any') + 2 } },
    ]);
  });
});

describe('limits', () => {
  it('refuses a file of more than 1 MiB of UTF-8', () => {
    expect(codes(`# ${'a'.repeat(1024 * 1024)}`)).toEqual(['E0140']);
    expect(codes(`# ${'漢'.repeat(400_000)}`)).toEqual(['E0140']);
    expect(codes(`# ${'a'.repeat(1024 * 1024 - 2)}`)).toEqual([]);
  });

  it('refuses more than 20,000 rules', () => {
    expect(codes('route to any\n'.repeat(20_000))).toEqual([]);
    expect(codes('route to any\n'.repeat(20_001))).toEqual(['E0141']);
  });

  it('looks no further after 1,000 statements that cannot be read', () => {
    const broken = 'route to any by\n';
    expect(new Set(codes(broken.repeat(1000)))).toEqual(new Set(['E0124']));
    const all = codes(`${broken.repeat(3000)}defualt to any`);
    expect([all.length, all.filter((code) => code === 'E0144').length, all.at(-1)]).toEqual([1001, 1, 'E0144']);
    expect(codes('@a(\n'.repeat(3000)).filter((code) => code === 'E0144').length).toBeLessThanOrEqual(1);
  });

  it('refuses brackets and groups nested more than 64 deep', () => {
    const nested = (depth: number): string => `let x = ${'('.repeat(depth)}1${')'.repeat(depth)}`;
    expect(codes(nested(64))).toEqual([]);
    expect(codes(nested(65))).toEqual(['E0142']);
    const groups = (depth: number): string => `${'group "a" {'.repeat(depth)} default to any ${'}'.repeat(depth)}`;
    expect(codes(groups(64))).toEqual([]);
    expect(codes(groups(65))).toEqual(['E0142']);
    expect(codes(groups(5000))).toEqual(['E0142']);
  });

  it('refuses an expression more than 256 operators deep, and takes any number side by side', () => {
    expect(codes(`let x = ${'not '.repeat(256)}a`)).toEqual([]);
    expect(codes(`let x = ${'not '.repeat(257)}a`)).toEqual(['E0142']);
    expect(codes(`let x = ${'- '.repeat(10_000)}1`)).toEqual(['E0142']);
    expect(codes(`let x = 1${' + 1'.repeat(10_000)}`)).toEqual(['E0142']);
    expect(codes(`let x = a${' or a'.repeat(5000)}`)).toEqual([]);
  });

  it('refuses a list of more than 10,000 items', () => {
    expect(codes(`let x = [1${', 1'.repeat(9999)}]`)).toEqual([]);
    expect(codes(`let x = [1${', 1'.repeat(10_000)}]`)).toEqual(['E0143']);
  });
});

/** Words that only the parser library would say. */
const libraryWording =
  /expecting|redundant|token of type|one of these possible|noviable|mismatched|iteration|\bEOF\b|-->|undefined|\bNaN\b/i;

const assertWellBehaved = (text: string): ParseResult => {
  const result = parse(text);
  for (const { message, help, span, labels } of result.diagnostics) {
    expect(message).not.toMatch(libraryWording);
    expect(help ?? '').not.toMatch(libraryWording);
    expect(message).not.toContain('\n');
    for (const place of [span, ...labels.map((label) => label.span)]) {
      expect(place.start).toBeGreaterThanOrEqual(0);
      expect(place.end).toBeGreaterThanOrEqual(place.start);
      expect(place.end).toBeLessThanOrEqual(text.length);
    }
  }
  return result;
};

describe('any text', () => {
  it('of a generated policy parses without findings', () => {
    fc.assert(
      fc.property(arbitraryPolicyText, (text) => {
        expect(parse(text).diagnostics).toEqual([]);
      }),
      { numRuns: 300 },
    );
    fc.assert(
      fc.property(arbitrarySensiblePolicyText, (text) => {
        expect(parse(text).diagnostics).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('means the same whatever white space stands between its words', () => {
    fc.assert(
      fc.property(arbitraryPolicyWords, (words) => {
        expect(shapeOf(parse(words.join('\n')).file)).toEqual(shapeOf(parse(joinWords(words)).file));
      }),
      { numRuns: 200 },
    );
  });

  it('of noise never throws, and its findings lie inside it', () => {
    const unit = fc.oneof(
      fc.constantFrom(
        'route',
        'group',
        ' ',
        '\n',
        '"',
        '{',
        '}',
        '(',
        ')',
        '[',
        ']',
        '@',
        '5',
        '%',
        '=',
        '.',
        '..',
        '-',
        'r"',
        '\\',
        '#',
        'to',
        'when',
        ',',
        "'",
        '/*',
        '\uFEFF',
        '\u202E',
        '\u0000',
        '\uD800',
        '漢',
        '😀',
        'é',
        '`',
        '$',
        '&',
        '//',
        '\r',
      ),
      fc.string({ unit: 'binary', maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 80 }), (parts) => {
        expect(assertWellBehaved(parts.join('')).file.kind).toBe('file');
      }),
      { numRuns: 1500 },
    );
  });

  it('with a word deleted, swapped or misspelled has mostly one finding, at the place', () => {
    let broken = 0;
    let single = 0;
    let atPlace = 0;
    for (const name of exampleNames) {
      const text = exampleText(name);
      const tokens = parse(text).tokens.filter(({ kind }) => kind !== 'comment');
      for (const [index, token] of tokens.entries()) {
        const next = tokens[index + 1];
        const mutants = [{ text: text.slice(0, token.start) + text.slice(token.end), end: token.start }];
        if (next !== undefined) {
          const swapped =
            text.slice(0, token.start) +
            next.text +
            text.slice(token.end, next.start) +
            token.text +
            text.slice(next.end);
          mutants.push({ text: swapped, end: next.end });
        }
        if (/^\w{3,}$/.test(token.text)) {
          const misspelled = `${token.text[1] ?? ''}${token.text[0] ?? ''}${token.text.slice(2)}`;
          mutants.push({ text: text.slice(0, token.start) + misspelled + text.slice(token.end), end: token.end });
        }
        for (const mutant of mutants) {
          const { diagnostics, tokens: found } = assertWellBehaved(mutant.text);
          if (diagnostics.length === 0) continue;
          broken += 1;
          if (diagnostics.length === 1) single += 1;
          const before = found.findLast((other) => other.end <= token.start)?.start ?? 0;
          const after = found.find((other) => other.start >= mutant.end)?.end ?? mutant.text.length;
          if (diagnostics.some(({ span }) => span.start <= after && span.end >= before)) atPlace += 1;
        }
      }
    }
    console.info(`${broken} mutants do not parse; ${single} give one finding, ${atPlace} at the place or beside it`);
    expect(broken).toBeGreaterThan(800);
    expect(single / broken).toBeGreaterThan(0.95);
    expect(atPlace / broken).toBeGreaterThan(0.95);
  });
});

describe('speed', () => {
  const rule = (index: number): string =>
    `route "rule ${index}" when complexity > ${index % 100} and (prompt_tokens > 32k or header["x-slo"] == "interactive")\n  to tier "70B", tier "34B" where kv_cache_used < 90% by 0.7 * prefix_cache + 0.3 * least_tokens\n  with affinity session, retry 2 (on: [connect, timeout])\n`;
  const thousand = Array.from({ length: 1000 }, (_, index) => rule(index)).join('');

  const timed = (text: string): number => {
    const start = performance.now();
    parse(text);
    return performance.now() - start;
  };

  it('reads 1,000 rules in well under 250 ms once warm', () => {
    for (let round = 0; round < 3; round += 1) timed(thousand);
    const elapsedMs = Math.min(timed(thousand), timed(thousand), timed(thousand));
    console.info(`1,000 rules (${thousand.length} characters): ${elapsedMs.toFixed(1)} ms`);
    expect(elapsedMs).toBeLessThan(2500);
  });

  it('reads 100 KB of anything in under a second', () => {
    for (const unit of [
      '(',
      '}',
      'not ',
      '@',
      '"',
      'group "a" {',
      'route ',
      'x ',
      'r"',
      "'",
      'ä',
      '^',
      'test "a" { ',
      'route when ^ to any\n',
      '\u202E',
      '1+',
    ]) {
      const text = unit.repeat(Math.floor(100_000 / unit.length));
      const elapsedMs = timed(text);
      console.info(`100 KB of ${JSON.stringify(unit)}: ${elapsedMs.toFixed(0)} ms`);
      expect(elapsedMs).toBeLessThan(10_000);
    }
  });
});
