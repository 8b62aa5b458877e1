import { coverageTotals, mergeCoverage, policyTestRuns } from '@signalbox/core';
import type { Coverage, CoverageTotals, EnsureResult, TestResult } from '@signalbox/core';
import { analysePolicy } from '@signalbox/policy';
import type { Sources } from '@signalbox/policy';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import type { Isolation } from '../plugins/plugin-packages.ts';
import { importPlugins } from '../plugins/plugin-packages.ts';
import type { LoadedPolicy } from '../policy/load-policy.ts';
import type { FoundFiles, TestFile } from './test-files.ts';

/** What came of the tests of one file. */
export interface FileReport {
  readonly path: string;
  readonly tests: readonly (TestResult & { readonly durationMs: number })[];
  readonly ensures: readonly (EnsureResult & { readonly durationMs: number })[];
  /** The policy has errors, so that nothing of it could run. */
  readonly broken: LoadedPolicy | undefined;
}

/** What came of a run of `signalbox test`. */
export interface RunReport {
  readonly files: readonly FileReport[];
  readonly unreadable: readonly string[];
  readonly sources: Sources;
  readonly coverage: Coverage;
  readonly totals: CoverageTotals;
  readonly counts: RunCounts;
  /** No test failed, no ensure is refuted, and every policy could be read and has no errors. */
  readonly passed: boolean;
}

export interface RunCounts {
  readonly tests: number;
  readonly failed: number;
  readonly ensures: number;
  readonly proved: number;
  readonly refuted: number;
  readonly notProved: number;
}

export interface RunOptions {
  readonly found: FoundFiles;
  /** Only checks whose label holds this text. */
  readonly filter: string;
  /** Requests to try for each ensure that is not proved. */
  readonly requests: number;
  readonly isolation?: Isolation;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  /** Told of each result, with how many there are and will be. */
  readonly onResult?: (done: number, of: number) => void;
}

/** Runs the tests of all files, one after another. */
export async function runTestFiles(options: RunOptions): Promise<RunReport> {
  const { found } = options;
  const isWanted = (
    file: TestFile,
    check: { readonly label: string; readonly span: { readonly file: string } },
  ): boolean => file.runs(check) && check.label.includes(options.filter);
  const of = found.files.reduce((sum, file) => {
    const { tests = [], ensures = [] } = file.loaded.checks ?? {};
    return sum + [...tests, ...ensures].filter((check) => isWanted(file, check)).length;
  }, 0);
  let done = 0;
  const files: FileReport[] = [];
  const coverages: Coverage[] = [];
  for (const file of found.files) {
    const { loaded, path } = file;
    if (loaded.program === undefined || loaded.checks === undefined) {
      files.push({ path, tests: [], ensures: [], broken: loaded });
      continue;
    }
    const plugins = [...BUILTIN_PLUGINS, ...(await importPlugins(loaded.packages.values(), options.isolation))];
    const { program, checks } = loaded;
    const select = (check: { readonly label: string; readonly span: { readonly file: string } }): boolean =>
      isWanted(file, check);
    const verdicts = checks.ensures.some(select) ? analysePolicy(program, { checks }).ensures : [];
    const tests: (TestResult & { durationMs: number })[] = [];
    const ensures: (EnsureResult & { durationMs: number })[] = [];
    const runs = policyTestRuns({ program, checks, plugins, select, verdicts, requests: options.requests });
    for (;;) {
      const startMs = options.now();
      const step = runs.next();
      if (step.done === true) {
        coverages.push(step.value.coverage);
        break;
      }
      const result = { ...step.value, durationMs: options.now() - startMs };
      if ('verdict' in result) ensures.push(result);
      else tests.push(result);
      options.onResult?.(++done, of);
    }
    files.push({ path, tests, ensures, broken: undefined });
  }
  return reportOf(found, files, mergeCoverage(coverages));
}

function reportOf(found: FoundFiles, files: readonly FileReport[], coverage: Coverage): RunReport {
  const tests = files.flatMap((file) => file.tests);
  const ensures = files.flatMap((file) => file.ensures);
  const ended = (verdict: EnsureResult['verdict']): number => ensures.filter((one) => one.verdict === verdict).length;
  const counts = {
    tests: tests.length,
    failed: tests.filter(({ passed }) => !passed).length,
    ensures: ensures.length,
    proved: ended('proved'),
    refuted: ended('refuted'),
    notProved: ended('not_proved'),
  };
  const isBroken = files.some(({ broken }) => broken !== undefined) || found.unreadable.length > 0;
  return {
    files,
    unreadable: found.unreadable,
    sources: new Map(found.files.flatMap(({ loaded }) => [...loaded.sources])),
    coverage,
    totals: coverageTotals(coverage),
    counts,
    passed: !isBroken && counts.failed === 0 && counts.refuted === 0,
  };
}
