import { setImmediate } from 'node:timers/promises';
import { policyTestRuns } from '@signalbox/core';
import type { TestResult } from '@signalbox/core';
import type { Plugin } from '@signalbox/plugin-api';
import { createLineIndex } from '@signalbox/policy';
import type { LoadedPolicy } from '../policy/load-policy.ts';
import { failedTestText } from './report-text.ts';

/** A test that keeps a policy from being put in force, for programs to read. */
export interface FailedTest {
  readonly label: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly unmet: readonly { readonly expected: string; readonly actual: string }[];
  /** Why it could not be decided. */
  readonly error?: string;
}

export interface GateReport {
  readonly passed: boolean;
  readonly failed: readonly FailedTest[];
  /** The failures as people read them. Empty if it passed. */
  readonly text: string;
}

export interface GateOptions {
  readonly plugins: readonly Plugin[];
  readonly colour: boolean;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  /** Milliseconds that all tests together may take; ten seconds by default. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;

/**
 * Runs a policy's own tests, those in its files, before it is put in force. Other work is done between two of them. A policy whose tests take
 * too long is refused like one that fails, for nobody knows what they would have shown. Ensures are for `signalbox test`: to prove one may
 * take any time.
 */
export async function testPolicy(loaded: LoadedPolicy, options: GateOptions): Promise<GateReport> {
  const { program, checks } = loaded;
  if (program === undefined || checks === undefined || checks.tests.length === 0) return PASSED;
  const { plugins, colour, now, limitMs = LIMIT_MS } = options;
  const startMs = now();
  const failed: TestResult[] = [];
  let done = 0;
  const runs = policyTestRuns({ program, checks: { ...checks, ensures: [] }, plugins });
  for (const result of runs) {
    done++;
    if ('passed' in result && !result.passed) failed.push(result);
    if (now() - startMs > limitMs) break;
    await setImmediate();
  }
  const unrun = checks.tests.length - done;
  const late =
    unrun === 0
      ? ''
      : `the tests of the policy took longer than ${limitMs / 1000} s: ${unrun} of ${checks.tests.length} were not run\n`;
  if (failed.length === 0 && late === '') return PASSED;
  const texts = failed.map((test) => failedTestText(test, loaded.sources, { colour }));
  const count = failed.length === 0 ? '' : `\n${failed.length} of ${checks.tests.length} tests of the policy failed\n`;
  return {
    passed: false,
    failed: failed.map((test) => toFailedTest(test, loaded)),
    text: texts.join('\n') + count + late,
  };
}

const PASSED: GateReport = Object.freeze({ passed: true, failed: [], text: '' });

function toFailedTest({ label, span, unmet, error }: TestResult, { sources }: LoadedPolicy): FailedTest {
  const { line, column } = createLineIndex(sources.get(span.file) ?? '').positionAt(span.start);
  return {
    label,
    file: span.file,
    line,
    column,
    unmet: unmet.map(({ expected, actual }) => ({ expected, actual })),
    ...(error === undefined ? {} : { error }),
  };
}
