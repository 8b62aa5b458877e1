import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../syntax/parse-policy.ts';
import { applyFixes } from './apply-fixes.ts';
import { createDiagnostic, type Diagnostic } from './diagnostic.ts';
import { displayWidth } from './display-width.ts';
import { renderAnnotations } from './render-annotations.ts';
import { renderSarif } from './render-sarif.ts';
import { toJsonReport } from './render-json.ts';
import { renderText } from './render-text.ts';

const file = 'policies/main.route';
const diagnose = (text: string): readonly Diagnostic[] => parsePolicy(text, { file }).diagnostics;
const show = (text: string): string => renderText(diagnose(text), new Map([[file, text]]));

describe('findings for people', () => {
  it('show headline, place, line, caret, help, fix and a count', () => {
    expect(show('let a = 1\nroute when complexity > 50 tier "70B"\n')).toBe(
      [
        'error[E0122]: expected `to`, found `tier`',
        ' --> policies/main.route:2:28',
        '  |',
        '2 | route when complexity > 50 tier "70B"',
        '  |                            ^^^^',
        '  |',
        '  = help: a destination is written `to tier "70B"`',
        '  = fix: insert `to`',
        '',
        '1 error',
        '',
      ].join('\n'),
    );
  });

  it('do not repeat a secret that stands in the policy, on whatever line it is shown', () => {
    const text = 'define tenant "a" { keys: ["sk-live-1", "sk-\\"2"], wieght: 2, headers: { x: "k3" }, key: k4 }\n';
    const at = (code: 'E0513' | 'E0511', part: string): Diagnostic => {
      const start = text.indexOf(part);
      return createDiagnostic(code, { file, start, end: start + part.length }, 'told');
    };
    const found = [
      at('E0511', 'wieght'),
      at('E0513', '"sk-live-1"'),
      at('E0513', '"sk-\\"2"'),
      at('E0513', '{ x: "k3" }'),
      at('E0513', 'k4'),
    ];
    const shown = renderText(found, new Map([[file, text]]));
    expect(shown).toContain(
      'define tenant "a" { keys: ["*********", "******"], wieght: 2, headers: { x: "**" }, key: ** }',
    );
    expect(shown).not.toMatch(/sk-|k3|k4/);
  });

  it('show secondary labels on their own lines', () => {
    expect(show('route when (a\n\n\n  to any')).toBe(
      [
        'error[E0126]: expected `)`, found `to`',
        ' --> policies/main.route:4:3',
        '  |',
        '1 | route when (a',
        '  |            - this `(` is never closed',
        '...',
        '4 |   to any',
        '  |   ^^',
        '',
        '1 error',
        '',
      ].join('\n'),
    );
  });

  it('put the caret right under tabs, wide characters, emoji, joined emoji and combining marks', () => {
    for (const before of ['\ta', '"漢字"', '"😀"', '"👨‍👩‍👧"', '"e\u0301"', '\t"한글"\t', '"✓"', '"ｆ"']) {
      const [, , , line = '', caret = ''] = show(`let x = f(${before},, 5)`).split('\n');
      const column = line.indexOf(',, 5') + 1;
      expect(displayWidth(caret.slice(0, caret.indexOf('^')))).toBe(displayWidth(line.slice(0, column)));
    }
  });

  it('are right with CRLF, blank lines and a byte order mark', () => {
    const shown = show('\uFEFF\r\n\r\nroute when to any\r\n');
    expect(shown).toContain(':3:12\n');
    expect(shown).toContain('3 | route when to any\n  |            ^^\n');
    expect(show('\uFEFFroute when to any')).toContain(':1:12\n');
  });

  it('never let the source drive the terminal', () => {
    const shown = show('route "\u001B[31m\u202E" when to any');
    expect(shown).not.toContain('\u001B');
    expect(shown).not.toContain('\u202E');
  });

  it('colour on request only', () => {
    const text = 'route when to any';
    expect(renderText(diagnose(text), new Map([[file, text]]), { color: true })).toContain('\u001B[1;31merror[E0124]');
    expect(show(text)).not.toContain('\u001B');
    expect(show('let a = 1')).toBe('');
  });

  it('point into other files', () => {
    const finding = createDiagnostic('E0212', { file: 'b.route', start: 6, end: 9 }, 'label `a` is used twice', {
      labels: [{ span: { file: 'a.route', start: 6, end: 9 }, message: 'first used here' }],
    });
    const shown = renderText(
      [finding],
      new Map([
        ['a.route', 'route "a" to any'],
        ['b.route', 'route "a" to any'],
      ]),
    );
    expect(shown).toContain(' ::: a.route:1:7\n  |\n1 | route "a" to any\n  |       --- first used here');
  });

  it('do without a source that is not at hand', () => {
    expect(renderText(diagnose('route when to any'), new Map())).toContain('--> policies/main.route:');
  });
});

describe('findings for programs', () => {
  const text = 'let a = 1\nroute "😀" when complexity && stream tier "x"\n';
  const found = diagnose(text);
  const sources = new Map([[file, text]]);

  it('as JSON have lines, columns in code points, offsets, and fixes', () => {
    const report = toJsonReport(found, sources);
    expect(report).toMatchObject({ version: 1, errors: 2, warnings: 0 });
    expect(report.diagnostics[0]).toMatchObject({
      code: 'E0108',
      severity: 'error',
      file,
      start: { line: 2, column: 27, offset: 37 },
      end: { line: 2, column: 29, offset: 39 },
      fix: { edits: [{ text: 'and', start: { line: 2, column: 27 } }] },
    });
  });

  it('as SARIF 2.1.0 have rules, regions and fixes', () => {
    const report = JSON.parse(renderSarif(found, sources, { toolVersion: '1.2.3' }));
    expect(report.version).toBe('2.1.0');
    const [run] = report.runs;
    expect(run.columnKind).toBe('unicodeCodePoints');
    expect(run.tool.driver.rules.map((rule: { id: string }) => rule.id)).toEqual(['E0108', 'E0122']);
    for (const result of run.results) {
      expect(run.tool.driver.rules[result.ruleIndex].id).toBe(result.ruleId);
      const { region } = result.locations[0].physicalLocation;
      expect(region.startLine).toBe(2);
      expect(region.endColumn).toBeGreaterThan(region.startColumn);
    }
    expect(run.results[0].fixes[0].artifactChanges[0].replacements[0]).toEqual({
      deletedRegion: { startLine: 2, startColumn: 27, endLine: 2, endColumn: 29 },
      insertedContent: { text: 'and' },
    });
  });

  it('as CI annotations are one line each, with the signs of the format escaped', () => {
    const finding = createDiagnostic('E0120', { file: 'a,b:c.route', start: 0, end: 3 }, '100% of\nit');
    expect(renderAnnotations([finding], new Map([['a,b:c.route', 'let']]))).toBe(
      '::error file=a%2Cb%3Ac.route,line=1,endLine=1,col=1,endColumn=3,title=E0120::100%25 of%0Ait\n',
    );
  });
});

describe('fixes', () => {
  const folder = new URL('../../fixtures/errors/', import.meta.url);
  const policies = readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8').split('\n---\n')[0] ?? '');

  it('of the parser remove the finding that they are for, and bring no other', () => {
    let made = 0;
    for (const policy of policies) {
      const before = diagnose(policy);
      for (const diagnostic of before) {
        if (diagnostic.fix === undefined) continue;
        const { text, applied } = applyFixes(policy, file, [diagnostic]);
        expect(applied).toEqual([diagnostic]);
        made += 1;
        const left = diagnose(text);
        const same = left.filter(({ code, span }) => code === diagnostic.code && span.start === diagnostic.span.start);
        expect(same).toEqual([]);
        expect(left.length).toBeLessThanOrEqual(before.length);
      }
    }
    expect(made).toBeGreaterThan(40);
  });

  it('are all made in one go where they do not touch', () => {
    const text = 'route when a && b || c to any;';
    expect(applyFixes(text, file, diagnose(text)).text).toBe('route when a and b or c to any');
  });

  it('that touch one made before are left for the next round', () => {
    const at = (start: number, end: number, by: string): Diagnostic =>
      createDiagnostic('E0120', { file, start, end }, 'x', {
        fix: { message: 'x', edits: [{ span: { file, start, end }, text: by }] },
      });
    const { text, applied } = applyFixes('abcdef', file, [at(0, 2, 'X'), at(1, 3, 'Y'), at(4, 5, 'Z')]);
    expect(text).toBe('XcdZf');
    expect(applied).toHaveLength(2);
  });
});

describe('a policy that is one very long line', () => {
  it('shows the part about each finding, the caret under it, and stays short', () => {
    const text = `${'let fine = 5 '.repeat(100)}route to 😀any ${'let more = 5 '.repeat(100)}`;
    const lines = show(text).split('\n');
    const [source = '', caret = ''] = lines.slice(3, 5);
    expect(source).toMatch(/^1 \| ….*route to 😀any.*…$/);
    expect(source.length).toBeLessThan(340);
    expect([...source].indexOf('😀')).toBe(caret.indexOf('^'));
  });

  it('takes room in proportion to its findings', () => {
    const text = 'nothing '.repeat(2000).concat(']'.repeat(2000));
    const findings = diagnose(`${'let a = ] '.repeat(3000)}${text}`);
    const shown = renderText(findings, new Map([[file, `${'let a = ] '.repeat(3000)}${text}`]]));
    expect(findings.length).toBeGreaterThan(1000);
    expect(shown.length).toBeLessThan(1200 * findings.length);
  });
});
