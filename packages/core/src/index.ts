export { createCore } from './core.ts';
export type { Core, CoreOptions, CoreStatus } from './core.ts';
export type { QueueStatus } from './admission-queue.ts';
export type { ExplainedCondition, ExplainedLeaf } from './explain/condition.ts';
export type {
  ExplainedCandidate,
  ExplainedLimit,
  ExplainedRecord,
  ExplainedRule,
  ExplainedScorer,
  ExplainedStep,
  Explanation,
} from './explain/explain.ts';
export { explainOnFleet } from './explain/explain-on-fleet.ts';
export type { SupposedRequest } from './explain/explain-on-fleet.ts';
export { explainRecord, isSameOutcome, outcomeText } from './explain/explain-record.ts';
export { explanationHeader } from './explain/explanation-header.ts';
export { explanationText } from './explain/explanation-text.ts';
export type { ExplanationTextOptions } from './explain/explanation-text.ts';
export type { AllocateMemory } from './fleet/fleet-table.ts';
export type { EndpointState, EndpointStatus, EngineSample, Fleet } from './fleet/fleet.ts';
export type { PolicyVersion } from './policy-version.ts';
export type { Scheduler } from './scheduler.ts';
export type { Shadow, ShadowComparison, Verdict } from './shadow.ts';
export type { Canary } from './trial-share.ts';
export { ENGINE_FED_KEYS, INERT_KEYS, UNFED_KEYS } from './unfed-keys.ts';
export type {
  Attempt,
  AttemptFailure,
  EndpointTarget,
  Forward,
  ModelInfo,
  NextStep,
  Refusal,
  RequestEnd,
  RouteOutcome,
  Router,
  RouteRequest,
} from './router.ts';
export { createReplayer, replayDecision } from './replay/replayer.ts';
export type { ReplayedRule, Replayer, ReplayerOptions, TracedReplay } from './replay/replayer.ts';
export { recordedOutcome } from './replay/replay-outcome.ts';
export type { PolicyOutcome, ReplayedDecision, ReplayedEndpoints } from './replay/replay-outcome.ts';
export { tenantsWithoutKeys } from './unsupported.ts';
export { coverageTotals, mergeCoverage, missingOutcomes } from './policy-tests/coverage.ts';
export type { Coverage, CoverageTotals, LeafCoverage, RuleCoverage, Share } from './policy-tests/coverage.ts';
export { policyTestRuns, runPolicyTests } from './policy-tests/run-policy-tests.ts';
export type {
  EnsureResult,
  PolicyTestOptions,
  TestReport,
  TestResult,
  UnmetExpectation,
} from './policy-tests/run-policy-tests.ts';
export { writtenValue } from './policy-tests/written-value.ts';
export { writtenTest } from './policy-tests/written-test.ts';
export type { WrittenTestOptions } from './policy-tests/written-test.ts';
