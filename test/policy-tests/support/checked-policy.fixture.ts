import { expect } from 'vitest';
import { createOptionChecker } from '../../../packages/config/src/index.ts';
import { runPolicyTests } from '../../../packages/core/src/index.ts';
import type { PolicyTestOptions, TestReport, TestResult } from '../../../packages/core/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import type { PolicyChecks, PolicyProgram } from '../../../packages/policy/src/index.ts';
import { manifests, plugins } from '../../semantics/support/bench.fixture.ts';

export interface CheckedPolicy {
  readonly program: PolicyProgram;
  readonly checks: PolicyChecks;
}

/** A policy compiled with the first-party plugins; a failing expectation for one with errors. */
export function compileChecked(text: string, files: { readonly [path: string]: string } = {}): CheckedPolicy {
  const { program, checks, diagnostics } = compilePolicy({
    path: 'main.route',
    text,
    readFile: (path) => files[path],
    manifests,
    checkOptions: createOptionChecker(),
  });
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  if (program === undefined || checks === undefined) throw new TypeError('a policy without errors has a program');
  return { program, checks };
}

/** Compiles a policy and runs its tests and ensures. */
export function report(text: string, options: Partial<PolicyTestOptions> = {}): TestReport {
  return runPolicyTests({ ...compileChecked(text), plugins, ...options });
}

/** The one test of a policy as it came out. */
export function resultOf(policy: string, body: string): TestResult {
  const [result] = report(`${policy}\ntest "it" {\n${body}\n}\n`, { requests: 0 }).tests;
  if (result === undefined) throw new TypeError('the policy has a test');
  return result;
}

/** Expects that the body of a test passes, or says what it expected and got. */
export function expectPass(policy: string, body: string): void {
  const { passed, unmet, error } = resultOf(policy, body);
  expect({ passed, unmet: unmet.map(({ expected, actual }) => `${expected} ≠ ${actual}`), error }).toEqual({
    passed: true,
    unmet: [],
    error: undefined,
  });
}

/** What each expectation of a failing test got, as `expected ≠ actual`. */
export function failures(policy: string, body: string): readonly string[] {
  return resultOf(policy, body).unmet.map(({ expected, actual }) => `${expected} ≠ ${actual}`);
}
