import { missingOutcomes } from '@signalbox/core';
import { createLineIndex, toJsonReport } from '@signalbox/policy';
import type { Span } from '@signalbox/policy';
import type { RunReport } from './run-files.ts';

/** A run as JSON for other programs: places count lines and columns from 1. */
export function reportJson(report: RunReport): string {
  const placeOf = (span: Span): object => {
    const { line, column } = createLineIndex(report.sources.get(span.file) ?? '').positionAt(span.start);
    return { file: span.file, line, column };
  };
  const { coverage, totals, counts, passed } = report;
  return `${JSON.stringify(
    {
      version: 1,
      passed,
      counts,
      files: report.files.map(({ path, tests, ensures, broken }) => ({
        path,
        tests: tests.map(({ span, unmet, ...test }) => ({
          ...test,
          at: placeOf(span),
          unmet: unmet.map(({ span: at, ...one }) => ({ ...one, at: placeOf(at) })),
        })),
        ensures: ensures.map(({ span, ...ensure }) => ({ ...ensure, at: placeOf(span) })),
        diagnostics: broken === undefined ? [] : toJsonReport(broken.diagnostics, broken.sources).diagnostics,
      })),
      unreadable: report.unreadable,
      coverage: {
        percent: totals.percent,
        rules: totals.rules,
        elses: totals.elses,
        outcomes: totals.outcomes,
        byRule: coverage.rules.map(({ span, elses, ...rule }) => ({
          ...rule,
          at: placeOf(span),
          elses: elses.map(({ span: at, reached }) => ({ at: placeOf(at), reached })),
        })),
        byLeaf: coverage.leaves.map((leaf) => {
          const { span, ...counted } = leaf;
          return { ...counted, at: placeOf(span), missing: missingOutcomes(leaf) };
        }),
      },
    },
    null,
    2,
  )}\n`;
}
