import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../syntax/parse-policy.ts';
import { diagnosticCodes, explainCode, isDiagnosticCode, type DiagnosticCode } from './codes.ts';

const all = Object.keys(diagnosticCodes) as DiagnosticCode[];
const found = (text: string): readonly string[] =>
  parsePolicy(text, { file: 'a.route' }).diagnostics.map(({ code }) => code);

/** Limits, of which the example is a comment; their tests are with the parser. */
const described: ReadonlySet<string> = new Set(['E0140', 'E0141', 'E0142', 'E0143', 'E0144']);

describe('the codes of syntax', () => {
  const syntax = all.filter((code) => code.startsWith('E01') && !described.has(code));

  it.each(syntax)('%s is given by its bad example alone, and not by its good one', (code) => {
    expect(found(diagnosticCodes[code].bad)).toEqual([code]);
    expect(found(diagnosticCodes[code].good)).toEqual([]);
  });
});

describe('the table of codes', () => {
  it('has examples that parse, whatever the checker makes of them', () => {
    for (const code of all) {
      const others = found(diagnosticCodes[code].bad).filter((other) => other !== code);
      expect([code, ...others, ...found(diagnosticCodes[code].good)]).toEqual([code]);
    }
  });

  it('gives errors the letter E, and warnings and notes the letter W', () => {
    for (const code of all) expect(diagnosticCodes[code].severity === 'error').toBe(code.startsWith('E'));
  });

  it('explains a code in words and examples', () => {
    expect(explainCode('E0122')).toContain('error[E0122]: missing `to`');
    expect(explainCode('E0122')).toContain('    route when complexity > 50 tier "70B"');
    expect(isDiagnosticCode('E0122')).toBe(true);
    expect(isDiagnosticCode('toString')).toBe(false);
  });
});
