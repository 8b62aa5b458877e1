import type { Coverage } from '@signalbox/core';
import { createLineIndex } from '@signalbox/policy';

/**
 * Coverage as lcov tracefiles have it. A line counts for what stands on it: rules by how many tests they took the request of, `else` parts by
 * how many came to them, leaves by how many looked at them; where several stand on one line the least counts. Functions are the rules,
 * branches the outcomes of the leaves: true, false, and unknown where that may be.
 */
export function lcovText(coverage: Coverage): string {
  return coverage.files.map((file) => fileText(coverage, file)).join('');
}

function fileText(coverage: Coverage, file: Coverage['files'][number]): string {
  const index = createLineIndex(file.text);
  const lineOf = (span: { readonly start: number }): number => index.positionAt(span.start).line;
  const rules = coverage.rules.filter(({ span }) => span.file === file.path);
  const leaves = coverage.leaves.filter(({ span }) => span.file === file.path);
  const elses = coverage.rules.flatMap((rule) => rule.elses).filter(({ span }) => span.file === file.path);

  const lines = new Map<number, number>();
  const count = (line: number, hits: number): void => void lines.set(line, Math.min(hits, lines.get(line) ?? hits));
  for (const rule of rules) count(lineOf(rule.span), rule.matched);
  for (const part of elses) count(lineOf(part.span), part.reached);
  for (const leaf of leaves) count(lineOf(leaf.span), Math.max(leaf.true, leaf.false, leaf.unknown));

  const branches = leaves.flatMap((leaf, block) => {
    const evaluated = leaf.true + leaf.false + leaf.unknown > 0;
    const outcomes = leaf.mayBeUnknown ? [leaf.true, leaf.false, leaf.unknown] : [leaf.true, leaf.false];
    return outcomes.map((taken, branch) => ({
      taken,
      text: `BRDA:${lineOf(leaf.span)},${block},${branch},${evaluated ? taken : '-'}`,
    }));
  });
  const hit = (counts: readonly number[]): number => counts.filter((one) => one > 0).length;
  const sorted = [...lines].toSorted(([a], [b]) => a - b);
  return [
    'TN:',
    `SF:${file.path}`,
    ...rules.map((rule) => `FN:${lineOf(rule.span)},${nameOf(rule)}`),
    ...rules.map((rule) => `FNDA:${rule.matched},${nameOf(rule)}`),
    `FNF:${rules.length}`,
    `FNH:${hit(rules.map(({ matched }) => matched))}`,
    ...branches.map((branch) => branch.text),
    `BRF:${branches.length}`,
    `BRH:${hit(branches.map(({ taken }) => taken))}`,
    ...sorted.map(([line, hits]) => `DA:${line},${hits}`),
    `LF:${sorted.length}`,
    `LH:${hit(sorted.map(([, hits]) => hits))}`,
    'end_of_record\n',
  ].join('\n');
}

/** A tracefile is made of lines, and separates by commas. */
function nameOf({ kind, label }: { readonly kind: string; readonly label: string }): string {
  return `${kind} ${label}`.replaceAll(/[\r\n,]/g, ' ');
}
