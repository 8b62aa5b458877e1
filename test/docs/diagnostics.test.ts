import { describe, expect, test } from 'vitest';
import type { DiagnosticCode } from '../../packages/policy/src/index.ts';
import { diagnosticCodes } from '../../packages/policy/src/index.ts';
import { DESCRIBED, exampleFindings } from './diagnostic-examples.ts';

const codes = (Object.keys(diagnosticCodes) as DiagnosticCode[]).filter((code) => !DESCRIBED.has(code));

/** What stands beside the finding of a bad example and is no mistake of the example: notes on fragments, and errors of an imported file. */
const BESIDE: ReadonlySet<string> = new Set(['W0506', 'W0507', 'W0511', 'W0514', 'W0517', 'E0231']);

describe('the examples of a page of diagnostics', () => {
  test.each(codes)('%s: the bad one gives this code and no other error', (code) => {
    const found = exampleFindings(code, 'bad').findings.map((finding) => finding.code);
    expect(found).toContain(code);
    const others = found.filter((other) => other !== code && other.startsWith('E') && !BESIDE.has(other));
    expect(others).toEqual(code === 'E0231' ? ['E0124'] : []);
  });

  test.each(codes)('%s: the good one gives no error and not this code', (code) => {
    const { findings } = exampleFindings(code, 'good');
    expect(findings.filter((finding) => finding.severity === 'error' || finding.code === code)).toEqual([]);
  });
});
