import { applyAllowances, unusedAllowance } from '../check/annotations.ts';
import type { Allowance } from '../check/annotations.ts';
import type { CompileResult } from '../compile.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/diagnostic.ts';
import type { Span } from '../syntax/span.ts';
import { analysePolicy } from './analyse-policy.ts';
import type { Analysis, AnalyseOptions } from './analyse-policy.ts';

/** The parts of what the compiler gives that the analysis takes up. */
export type Analysable = {
  readonly [part in 'program' | 'checks' | 'allowed']?: CompileResult[part] | undefined;
} & Pick<CompileResult, 'diagnostics'>;

/**
 * What the compiler found together with what the analysis finds, one finding for each fault: where the checker sees from the order of
 * statements alone what the analysis proves, the checker's stays, and of a missing default the one with an example. `@allow` holds for both.
 */
export function withAnalysis<Compiled extends Analysable>(
  compiled: Compiled,
  options: Omit<AnalyseOptions, 'checks'> = {},
): Compiled & {
  /** Present with the program. */
  readonly analysis?: Analysis;
} {
  const { program, checks, allowed = { dropped: [], unused: [] } } = compiled;
  if (program === undefined) return compiled;
  const analysis = analysePolicy(program, { ...options, ...(checks === undefined ? {} : { checks }) });
  const kept = compiled.diagnostics.filter(({ code }) => code !== 'W0506');
  const severity = compiled.diagnostics.find(({ code }) => code === 'W0506')?.severity;
  const found = analysis.diagnostics
    .filter((diagnostic) => ![...kept, ...allowed.dropped].some((known) => saysTheSame(known, diagnostic)))
    .map((diagnostic): Diagnostic =>
      diagnostic.code === 'W0506' && severity !== undefined ? { ...diagnostic, severity } : diagnostic,
    );
  const { kept: own, unused } = applyAllowances(found, allowed.unused);
  const pointless = unused.filter((allowance) => isPointless(allowance, analysis, options)).map(unusedAllowance);
  const all = [...kept, ...own, ...pointless];
  const main = program.files[0]?.path;
  const inMain = all.filter(({ span }) => span.file === main);
  const elsewhere = all.filter(({ span }) => span.file !== main);
  return { ...compiled, diagnostics: [...sortDiagnostics(inMain), ...sortDiagnostics(elsewhere)], analysis };
}

const sameStart = (a: Span, b: Span): boolean => a.file === b.file && a.start === b.start;

const UNREACHED: ReadonlySet<string> = new Set(['W0501', 'W0502']);

/** Whether the checker's finding is about the same fault: of the same place, or of the group that the rule stands in. */
function saysTheSame(known: Diagnostic, found: Diagnostic): boolean {
  if (known.code === found.code && sameStart(known.span, found.span)) return true;
  if (known.code !== 'W0501' || !UNREACHED.has(found.code)) return false;
  if (sameStart(known.span, found.span)) return true;
  const [closer] = known.labels;
  const isInside = known.span.file === found.span.file && known.span.start < found.span.start;
  return isInside && closer !== undefined && found.labels.some(({ span }) => sameStart(span, closer.span));
}

/** Whether an allowance that dropped nothing could not have: what was not looked for, or not proved, may still be there. */
function isPointless({ code, within }: Allowance, { rules }: Analysis, options: AnalyseOptions): boolean {
  if (code === 'W0519' || (code === 'W0505' && options.overlap !== true)) return false;
  return !rules.some(
    ({ span, verdict }) =>
      verdict === 'not_proved' && span.file === within.file && span.start >= within.start && span.end <= within.end,
  );
}
