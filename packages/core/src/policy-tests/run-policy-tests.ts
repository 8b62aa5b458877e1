import { isSignalboxError } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import type { EnsureVerdict, PolicyChecks, PolicyEnsure, PolicyProgram, PolicyTest, Span } from '@signalbox/policy';
import type { Explanation } from '../explain/explain.ts';
import { CounterExampleSearch } from './counter-example.ts';
import type { CounterExample, Search } from './counter-example.ts';
import { CoverageCollector } from './coverage.ts';
import type { Coverage } from './coverage.ts';
import { factsOf } from './facts.ts';
import { actualText, isOutcome, outcomeText } from './outcomes.ts';
import { PolicyBenches } from './policy-bench.ts';

/** An expectation that did not come true. */
export interface UnmetExpectation {
  readonly span: Span;
  /** As it is written: `not route "hard"`. */
  readonly expected: string;
  /** What became of the request: `route "easy" to endpoint "8B/1" of tier "8B"`. */
  readonly actual: string;
}

/** What came of one `test`. Plain data. */
export interface TestResult {
  readonly label: string;
  readonly span: Span;
  readonly passed: boolean;
  readonly unmet: readonly UnmetExpectation[];
  /** How the request was decided; absent if it could not be. */
  readonly explanation?: Explanation;
  /** Why it could not be decided, or why the test says nothing. */
  readonly error?: string;
}

/** What came of one `ensure`. Plain data. */
export interface EnsureResult {
  readonly label: string;
  readonly span: Span;
  /** `never route "hard"`, as it is written. */
  readonly claim: string;
  readonly verdict: 'proved' | 'refuted' | 'not_proved';
  /** Why it is not proved, or what a request may become against it. */
  readonly reason?: string;
  /** Requests that were tried to find a counter-example; 0 where a proof made that needless. */
  readonly tried: number;
  /** A request that shows it to be wrong, as a `given`. */
  readonly witness?: string;
  readonly explanation?: Explanation;
}

export interface TestReport {
  readonly tests: readonly TestResult[];
  readonly ensures: readonly EnsureResult[];
  readonly coverage: Coverage;
  /** No test failed, and no ensure is refuted. */
  readonly passed: boolean;
}

export interface PolicyTestOptions {
  readonly program: PolicyProgram;
  readonly checks: PolicyChecks;
  /** Plugins that the policy uses, first-party ones among them. Their `setup` runs. */
  readonly plugins: readonly Plugin[];
  /** Which tests to run; all by default. */
  readonly select?: (check: { readonly label: string; readonly span: Span }) => boolean;
  /** What `analysePolicy` says of the ensures. Of one that is absent or not proved a counter-example is looked for. */
  readonly verdicts?: readonly EnsureVerdict[];
  /** Requests to try for each ensure that is not proved; 1000 by default, 0 for none. */
  readonly requests?: number;
}

const REQUESTS = 1000;
/** Seeds the search for counter-examples. */
const SEARCH_SEED = 1;

/**
 * Runs the tests of a policy one after another, so that a host may do other things in between, and gives the whole report at the end. Nothing
 * of one shows in the next.
 */
export function* policyTestRuns(options: PolicyTestOptions): Generator<TestResult | EnsureResult, TestReport> {
  const { program, checks } = options;
  const select = options.select ?? (() => true);
  const collector = new CoverageCollector(program);
  const tests: TestResult[] = [];
  const benches = new PolicyBenches({ program, plugins: options.plugins, trace: collector.sink });
  try {
    for (const test of checks.tests.filter(select)) {
      const result = runTest(test, program, benches, collector);
      tests.push(result);
      yield result;
    }
  } finally {
    benches.close();
  }
  const ensures: EnsureResult[] = [];
  const wanted = checks.ensures.filter(select);
  const search = wanted.length === 0 ? undefined : lazySearch(options);
  try {
    for (const ensure of wanted) {
      const result = judge(ensure, options, search?.());
      ensures.push(result);
      yield result;
    }
  } finally {
    search?.().close();
  }
  return {
    tests,
    ensures,
    coverage: collector.coverage(),
    passed: tests.every(({ passed }) => passed) && ensures.every(({ verdict }) => verdict !== 'refuted'),
  };
}

/** Runs all tests of a policy at one go. */
export function runPolicyTests(options: PolicyTestOptions): TestReport {
  const runs = policyTestRuns(options);
  for (;;) {
    const step = runs.next();
    if (step.done === true) return step.value;
  }
}

function runTest(
  test: PolicyTest,
  program: PolicyProgram,
  benches: PolicyBenches,
  collector: CoverageCollector,
): TestResult {
  const { label, span, tenant, endpoints, expectations } = test;
  let explanation: Explanation;
  try {
    explanation = benches.decide(endpoints, { facts: factsOf(test.facts), tenant });
  } catch (error) {
    if (!isSignalboxError(error)) throw error;
    return { label, span, passed: false, unmet: [], error: error.message };
  }
  collector.count(explanation);
  if (expectations.length === 0)
    return { label, span, passed: false, unmet: [], explanation, error: 'it expects nothing; write `expect …`' };
  const unmet = expectations
    .filter(({ negated, outcome }) => isOutcome(outcome, explanation, program) === negated)
    .map((expectation) => ({
      span: expectation.span,
      expected: writtenText(program, expectation.span),
      actual: actualText(explanation),
    }));
  return { label, span, passed: unmet.length === 0, unmet, explanation };
}

/** What stands after `expect`, on one line. */
function writtenText({ files }: PolicyProgram, { file, start, end }: Span): string {
  const text = files.find(({ path }) => path === file)?.text.slice(start, end) ?? '';
  return text.replace(/^expect\s+/, '').replaceAll(/\s+/g, ' ');
}

// --- ensures

/** A search that is made when it is first asked for, and only then. */
function lazySearch(options: PolicyTestOptions): () => Pick<CounterExampleSearch, 'search' | 'close'> {
  let made: CounterExampleSearch | undefined;
  const { program, checks, plugins, requests = REQUESTS } = options;
  return () => ({
    search: (ensure, witness) => {
      made ??= new CounterExampleSearch({ program, checks, plugins, requests, seed: SEARCH_SEED });
      return made.search(ensure, witness);
    },
    close: () => made?.close(),
  });
}

function judge(
  ensure: PolicyEnsure,
  options: PolicyTestOptions,
  search: Pick<CounterExampleSearch, 'search'> | undefined,
): EnsureResult {
  const { label, span, mode, outcome } = ensure;
  const base = { label, span, claim: `${mode} ${outcomeText(outcome)}`, tried: 0 };
  const known = options.verdicts?.find((one) => one.span.start === span.start && one.span.file === span.file);
  if (known?.verdict === 'proved') return { ...base, verdict: 'proved' };
  const tried = tryToRefute(ensure, search, known?.witness);
  if (known?.verdict === 'refuted') {
    const reason = known.reason === undefined ? {} : { reason: known.reason };
    // What analysis found holds for some fleet; a fleet for which it does makes it plainer.
    if (typeof tried !== 'string' && tried.found !== undefined) return { ...base, ...reason, ...refuted(tried.found) };
    return { ...base, ...reason, verdict: 'refuted', witness: `given ${known.witness?.text ?? 'any request'}` };
  }
  if (typeof tried === 'string') return { ...base, verdict: 'not_proved', reason: tried };
  if (tried.found !== undefined) return { ...base, ...refuted(tried.found), tried: tried.tried };
  const reason = known?.reason ?? 'it was not analysed';
  return { ...base, verdict: 'not_proved', reason, tried: tried.tried };
}

/** What a search came to, or why there could be none. */
function tryToRefute(
  ensure: PolicyEnsure,
  search: Pick<CounterExampleSearch, 'search'> | undefined,
  witness: EnsureVerdict['witness'],
): Search | string {
  try {
    return search?.search(ensure, witness) ?? { tried: 0, found: undefined };
  } catch (error) {
    if (!isSignalboxError(error)) throw error;
    return error.message;
  }
}

function refuted({ text, explanation }: CounterExample): Pick<EnsureResult, 'verdict' | 'witness' | 'explanation'> {
  return { verdict: 'refuted', witness: text, explanation };
}
