import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryPolicyText, arbitraryPolicyWords, arbitraryLayoutOf } from '../syntax/arbitrary.fixture.ts';
import { parsePolicy } from '../syntax/parse-policy.ts';
import { shapeOf } from '../syntax/shape.fixture.ts';
import { formatPolicy } from './format-policy.ts';

const format = (text: string): string => formatPolicy(text, { file: 'a.route' }).text;
const shape = (text: string): unknown => shapeOf(parsePolicy(text, { file: 'a.route' }).file);
const comments = (text: string): readonly string[] =>
  parsePolicy(text, { file: 'a.route' })
    .file.comments.map((comment) => comment.text)
    .toSorted();

/** The words and signs, but for commas, which may come and go between the entries of an object. */
const words = (text: string): readonly string[] =>
  parsePolicy(text, { file: 'a.route' }).tokens.flatMap(({ kind, text: word }) =>
    kind === 'comment' || word === ',' ? [] : [word],
  );

const examples = new URL('../../fixtures/examples/', import.meta.url);

describe('the canonical layout', () => {
  it('leaves the examples of the reference as they are, but for columns aligned by hand', () => {
    for (const name of readdirSync(examples).filter((file) => file.endsWith('.route'))) {
      const text = readFileSync(new URL(name, examples), 'utf8');
      const alignedByHand = name === 'tiers.route';
      expect(format(text) === text).toBe(!alignedByHand);
      expect(format(format(text))).toBe(format(text));
      expect(shape(format(text))).toEqual(shape(text));
    }
  });

  it('keeps a rule of up to 100 columns on one line, however it was written', () => {
    expect(format('route\n  when complexity>50\n  to tier "70B"\n\n  by least_tokens with affinity\nsession')).toBe(
      'route when complexity > 50 to tier "70B" by least_tokens with affinity session\n',
    );
  });

  it('breaks a longer rule before its clauses', () => {
    expect(
      format(
        'route "code" when code to tier "coder", tier "70B" where kv_cache_used < 90% by least_latency pick power_of_two with retry 2 (on: [connect])',
      ),
    ).toBe(
      [
        'route "code" when code',
        '  to tier "coder", tier "70B" where kv_cache_used < 90%',
        '  by least_latency pick power_of_two',
        '  with retry 2 (on: [connect])',
        '',
      ].join('\n'),
    );
  });

  it('breaks a long condition before its operators', () => {
    const condition = Array.from({ length: 8 }, (_, index) => `complexity > ${index}0000`).join(' and ');
    const lines = format(`route "x" when ${condition} to any`).trimEnd().split('\n');
    expect(lines.every((text) => text.length <= 100)).toBe(true);
    expect(lines[1]).toMatch(/^ {4}and complexity/);
    expect(lines.at(-1)).toBe('  to any');
  });

  it('opens an object that does not fit, with commas between the entries', () => {
    expect(
      format(
        'define tier "70B" { model: "llama-3.1-70b" gpu: "H100", gpu_count: 4, endpoints: ["http://10.0.0.21:8000", "http://10.0.0.22:8000"], }',
      ),
    ).toBe(
      [
        'define tier "70B" {',
        '  model: "llama-3.1-70b",',
        '  gpu: "H100",',
        '  gpu_count: 4,',
        '  endpoints: ["http://10.0.0.21:8000", "http://10.0.0.22:8000"]',
        '}',
        '',
      ].join('\n'),
    );
  });

  it('keeps one blank line of several and adds none', () => {
    expect(format('\n\nlet a = 1\n\n\n\nlet b = 2\nlet c = 3\n\n\n')).toBe('let a = 1\n\nlet b = 2\nlet c = 3\n');
  });

  it('keeps CRLF line breaks where the text has them, and drops a byte order mark', () => {
    expect(format('\uFEFFlet a = 1\r\nlet   b = 2')).toBe('let a = 1\r\nlet b = 2\r\n');
  });
});

describe('comments', () => {
  it('stay behind and above what they stood behind and above', () => {
    const text = [
      '# top',
      '## doc of a',
      'let a = complexity > 5 # behind a',
      '',
      'group "g" { # behind the brace',
      '  # above the route',
      '  route when a and # behind and',
      '      # above b',
      '      b',
      '    to any, # behind the first target',
      '    tier "x"',
      '  # last in the group',
      '}',
      '# end',
    ].join('\n');
    const formatted = format(text);
    expect(comments(formatted)).toEqual(comments(text));
    expect(format(formatted)).toBe(formatted);
    expect(formatted).toContain('let a = complexity > 5 # behind a\n');
    expect(formatted).toContain('group "g" { # behind the brace\n  # above the route\n  route when a\n');
    expect(formatted).toContain('and # behind and\n');
    expect(formatted).toContain('to any, # behind the first target\n');
    expect(formatted).toContain('\n  # last in the group\n}\n# end\n');
    expect(parsePolicy(formatted, { file: 'a.route' }).file.statements[0]?.doc).toBe('doc of a');
  });
});

describe('files with errors', () => {
  it('keeps a broken statement word for word and lays out the others', () => {
    expect(format('let   a=1\nroute   when a   tier "x"\n   by  z # why\nlet   b=2')).toBe(
      'let a = 1\nroute   when a   tier "x"\n   by  z # why\nlet b = 2\n',
    );
  });

  it('keeps a statement with a lexical error word for word', () => {
    expect(format('route to any with timeout   90sec\nlet  b = 2;\nlet  c = 3')).toBe(
      'route to any with timeout   90sec\nlet  b = 2;\nlet c = 3\n',
    );
  });

  it('touches nothing where braces do not pair up, or the language is not known', () => {
    for (const text of ['group "a" {\n  let   b = 1', 'let   b = 1 }', 'language 2\nlet   b = 1'])
      expect(format(text)).toBe(text);
  });

  it('lays out files whose names mean nothing', () => {
    expect(format('route when   nonsense to nowhere')).toBe('route when nonsense to nowhere\n');
  });
});

describe('any policy', () => {
  it('has the same tree after formatting', () => {
    fc.assert(
      fc.property(arbitraryPolicyText, (text) => {
        expect(shape(format(text))).toEqual(shape(text));
      }),
      { numRuns: 300 },
    );
  });

  it('is formatted in one step', () => {
    fc.assert(
      fc.property(arbitraryPolicyText, (text) => {
        const once = format(text);
        expect(format(once)).toBe(once);
      }),
      { numRuns: 300 },
    );
  });

  it('keeps every comment', () => {
    fc.assert(
      fc.property(arbitraryPolicyText, (text) => {
        expect(comments(format(text))).toEqual(comments(text));
      }),
      { numRuns: 300 },
    );
  });

  it('has one layout, whatever white space it was written with', () => {
    fc.assert(
      fc.property(
        arbitraryPolicyWords.map((list) => [list.join(' '), list.join('\n')] as const),
        ([spaces, breaks]) => {
          const withoutBlank = (text: string): string => text.replaceAll(/\n+/g, '\n');
          expect(withoutBlank(format(breaks))).toBe(withoutBlank(format(spaces)));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('with words missing, swapped or misspelled keeps its comments and settles after one formatting', () => {
    const damaged = arbitraryPolicyWords
      .chain((list) =>
        fc.tuple(
          fc.constant(list),
          fc.nat(Math.max(0, list.length - 1)),
          fc.constantFrom('delete', 'swap', 'misspell'),
        ),
      )
      .chain(([list, at, how]) => {
        const changed = [...list];
        if (how === 'delete') changed.splice(at, 1);
        else if (how === 'swap') changed.splice(at, 2, ...changed.slice(at, at + 2).toReversed());
        else changed.splice(at, 1, (changed[at] ?? '').replace(/^(.)(.)/, '$2$1'));
        return arbitraryLayoutOf(changed);
      });
    fc.assert(
      fc.property(damaged, (text) => {
        const once = format(text);
        expect(format(once)).toBe(once);
        expect(comments(once)).toEqual(comments(text));
        expect(words(once)).toEqual(words(text));
      }),
      { numRuns: 500 },
    );
  });
});
