import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { diagnosticCodes } from '../diagnostics/codes.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import { renderText } from '../diagnostics/render-text.ts';
import { withAnalysis } from './with-analysis.ts';

/*
 * Each file under fixtures/analysis holds a policy, a line of dashes, and what compiler and analysis together say of it. UPDATE_FIXTURES=1
 * writes what is found, to be read before it is committed.
 */

const folder = new URL('../../fixtures/analysis/', import.meta.url);
const MARK = '\n---\n';

const analysed = (text: string): ReturnType<typeof withAnalysis<ReturnType<typeof compilePolicy>>> =>
  withAnalysis(compilePolicy({ path: 'main.route', text, manifests: fixtureManifests }), { overlap: true });

const said = (text: string): string => {
  const { diagnostics, analysis, sources } = analysed(text);
  const verdicts = [...(analysis?.rules ?? []), ...(analysis?.ensures ?? [])].map(
    ({ label, verdict, reason, witness }) =>
      [`${label}: ${verdict}`, reason, witness?.text].filter((part) => part !== undefined).join(' | '),
  );
  return `${renderText(diagnostics, sources, { color: false }).trimEnd()}\n\n${verdicts.join('\n')}\n${String(analysis?.unconfirmed)} unconfirmed`;
};

describe('what is said of the policies of the fixtures', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  test.each(names)('%s', (name) => {
    const file = new URL(name, folder);
    const content = readFileSync(file, 'utf8');
    const end = content.indexOf(MARK);
    const policy = end < 0 ? content : content.slice(0, end + 1);
    const found = said(policy);
    const isUpdate = process.env['UPDATE_FIXTURES'] === '1';
    if (isUpdate) writeFileSync(file, `${policy.trimEnd()}${MARK}${found}\n`);
    expect(found).toBe(isUpdate ? found : content.slice(end + MARK.length).trimEnd());
  });

  test('are there', () => {
    expect(names.length).toBeGreaterThan(5);
  });
});

describe('each code of the analysis is given by its bad example and not by its good one', () => {
  const codes: readonly DiagnosticCode[] = ['E0420', 'W0501', 'W0502', 'W0503', 'W0504', 'W0505', 'W0506', 'W0519'];
  test.each(codes)('%s', (code) => {
    const { bad, good } = diagnosticCodes[code];
    const codesOf = (text: string): readonly string[] => analysed(text).diagnostics.map((found) => found.code);
    expect(codesOf(bad)).toContain(code);
    expect(codesOf(good)).not.toContain(code);
    expect(analysed(good).diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});

describe('one finding for each fault', () => {
  const codesOf = (text: string): readonly string[] => analysed(text).diagnostics.map(({ code }) => code);
  test('what the checker sees by itself is not said again', () => {
    expect(codesOf('default to any\nroute "late" when stream to any')).toEqual(['W0501']);
    expect(
      codesOf('route to any\ngroup "late" when stream { route "a" when tools > 1 to any route "b" to any }'),
    ).toEqual(['W0501']);
    expect(codesOf('route when 1 > 2 to any\ndefault to any')).toEqual(['W0503']);
  });
  test('a fault of a `let` or of a group is said once, however many rules it is in', () => {
    expect(
      codesOf(
        'let odd = tools > 2 and tools < 3\nroute "a" when odd to any\nroute "b" when odd and stream to any\ndefault to any',
      ),
    ).toEqual(['W0503']);
    expect(
      codesOf(
        'group "g" when complexity > 100 { route "a" when stream to any route "b" when tools > 1 to any }\ndefault to any',
      ),
    ).toEqual(['W0503']);
  });
  test('a queue for everybody keeps nothing from the rules below it, as what it lets go on meets them', () => {
    expect(codesOf('queue "all" with max_wait 2s\nreject when complexity > 90\ndefault to any')).toEqual([]);
    expect(codesOf('admit "all"\nreject when complexity > 90\ndefault to any')).toEqual(['W0501']);
  });
  test('no default is no fault where every request is proved to meet a rule', () => {
    expect(codesOf('route when stream to any\nroute when not stream to any')).toEqual([]);
    expect(codesOf('route when stream to any\nroute when not stream and json_schema to any')).toEqual(['W0506']);
    // A signal that can be unknown leaves a gap between a condition and its opposite.
    expect(codesOf('route when json_schema to any\nroute when not json_schema to any')).toEqual(['W0506']);
  });
  test('an `@allow` drops a finding of the analysis, and one that drops none is reported', () => {
    const rules =
      'route "a" when complexity > 50 to any\n@allow(W0502, "kept for the audit") route "b" when complexity > 80 to any\n';
    expect(codesOf(`${rules}default to any`)).toEqual([]);
    expect(codesOf('@allow(W0502, "x") route "a" when complexity > 50 to any\ndefault to any')).toEqual(['W0520']);
    expect(codesOf('default to any\n@allow(W0501, "x") route "late" when stream to any')).toEqual([]);
  });
});
