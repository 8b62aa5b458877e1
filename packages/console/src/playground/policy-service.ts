import { ENGINE_FED_KEYS, explainOnFleet, explanationText, INERT_KEYS, UNFED_KEYS } from '@signalbox/core';
import { coverageTotals, runPolicyTests } from '@signalbox/core';
import type { CoverageTotals, Explanation, TestReport } from '@signalbox/core';
import { isSignalboxError, toManifest } from '@signalbox/plugin-api';
import type { CheckOptions } from '@signalbox/plugin-api';
import {
  buildSemanticModel,
  completionsAt,
  createCatalogue,
  entriesOf,
  formatPolicy,
  hoverAt,
  typeText,
  withAnalysis,
} from '@signalbox/policy';
import type { CompileInput, PolicyCompletion, PolicyHover, PolicyProgram, SemanticModel } from '@signalbox/policy';
import { findingsOf, offsetsOf } from './findings.ts';
import type { Finding, Range } from './findings.ts';
import { FLEET_TEST, POLICY_PATH, problemsOf, withoutProblems, writeFleet } from './fleet-source.ts';
import type { CellProblem } from './fleet-source.ts';
import { marksOf } from './marks.ts';
import type { Mark } from './marks.ts';
import { createOptionChecks } from './option-checks.ts';
import type { AskOptionCheck } from './option-checks.ts';
import { PLAYGROUND_PLUGINS } from './plugins.ts';
import { readRequest } from './read-request.ts';
import type { RequestProblem } from './read-request.ts';
import { DEFAULT_TIME } from './state.ts';
import type { FleetState, PlaygroundState } from './state.ts';

/** A property of endpoints that the fleet editor can give. */
export interface FleetProperty {
  readonly name: string;
  /** As the language names it: `percent`, `number` … */
  readonly type: string;
  readonly doc: string;
}

/** What the policy itself says, of a policy without errors. */
export interface PolicyOutline {
  readonly tiers: readonly { readonly name: string; readonly endpoints: readonly string[] }[];
  readonly tenants: readonly string[];
  /** Names of the properties that it reads. */
  readonly reads: readonly string[];
  /** Admission rules, then routes, in the order in which they are tried. */
  readonly rules: readonly (Range & { readonly label: string; readonly kind: string })[];
}

export type Decision =
  | { readonly kind: 'explained'; readonly explanation: Explanation; readonly text: string }
  /** It could not be decided at all: a plugin failed, or the fleet cannot be. */
  | { readonly kind: 'failed'; readonly message: string };

/** All that there is to say of a state at once. */
export interface Evaluation {
  readonly findings: readonly Finding[];
  /** How the words of the policy are shown, in the order of the text. */
  readonly marks: readonly Mark[];
  /** Absent: the policy has errors. */
  readonly outline?: PolicyOutline;
  readonly cellProblems: readonly CellProblem[];
  readonly requestProblem?: RequestProblem;
  /** Absent: policy or request have errors. */
  readonly decision?: Decision;
}

/** Analysis and tests of a policy. */
export interface PolicyTrial {
  /** Those of the compiler and of the analysis together. */
  readonly findings: readonly Finding[];
  /** Absent: the policy has errors, or neither tests nor ensures. */
  readonly report?: TestReport & { readonly totals: CoverageTotals };
}

export interface PolicyPlace {
  readonly policy: string;
  readonly offset: number;
}

export type Completion = Omit<PolicyCompletion, 'replace'> & { readonly replace: Range };
export type Hover = Omit<PolicyHover, 'span'> & Range;

/** What the page asks of the compiler and of core. All of it runs in the browser. */
export interface PolicyService {
  evaluate(state: PlaygroundState): Promise<Evaluation>;
  tryOut(state: Pick<PlaygroundState, 'policy' | 'time'>): Promise<PolicyTrial>;
  complete(place: PolicyPlace): Promise<readonly Completion[]>;
  hover(place: PolicyPlace): Promise<Hover | null>;
  /** The policy in its canonical layout. */
  format(policy: string): Promise<string>;
  /** Properties that the fleet editor offers. */
  properties(): Promise<readonly FleetProperty[]>;
}

/** Requests to try for each ensure that analysis does not settle. */
const ENSURE_REQUESTS = 200;
const NO_PACKAGES = {
  error: {
    reason: 'not_found',
    message: 'the playground runs the first-party plugins only; `signalbox check` and `explain` load packages',
  },
} as const;

/** The service; `askOptionCheck` has options checked where code may be made from strings. */
export function createPolicyService({ askOptionCheck }: { readonly askOptionCheck: AskOptionCheck }): PolicyService {
  const manifests = PLAYGROUND_PLUGINS.map(toManifest);
  const withOptionChecks = createOptionChecks(askOptionCheck);
  let latest: { readonly policy: string; readonly time: string; readonly model: SemanticModel } | undefined;

  const inputOf = (path: string, text: string, time: string, checkOptions: CheckOptions): CompileInput => ({
    path,
    text,
    manifests,
    checkOptions,
    resolvePlugin: () => NO_PACKAGES,
    unprovided: [...UNFED_KEYS, ...ENGINE_FED_KEYS, ...INERT_KEYS],
    nowEpochMs: Date.parse(`${time}Z`),
  });

  const modelOf = async (policy: string, time: string): Promise<SemanticModel> => {
    if (latest?.policy === policy && latest.time === time) return latest.model;
    const model = await withOptionChecks((check) => buildSemanticModel(inputOf(POLICY_PATH, policy, time, check)));
    latest = { policy, time, model };
    return model;
  };

  /** The program of the policy with its fleet, and what is wrong with the fleet. */
  const supposedOf = async (state: PlaygroundState, fleet: FleetState): Promise<ReturnType<typeof fleetOf>> => {
    const source = writeFleet(fleet);
    const result = await withOptionChecks(
      (check) =>
        buildSemanticModel({
          ...inputOf(source.path, source.text, state.time, check),
          readFile: (path) => (path === POLICY_PATH ? state.policy : undefined),
        }).result,
    );
    return fleetOf(result, source);
  };

  return {
    async evaluate(state) {
      const model = await modelOf(state.policy, state.time);
      const { diagnostics, program } = model.result;
      const shown = { findings: findingsOf(diagnostics, state.policy), marks: marksOf(model, POLICY_PATH) };
      if (program === undefined) return { ...shown, cellProblems: [] };
      const outline = outlineOf(program);
      const first = await supposedOf(state, state.fleet);
      const { problems } = first;
      const { endpoints } =
        problems.length === 0 ? first : await supposedOf(state, withoutProblems(state.fleet, problems));
      const request = readRequest(state);
      const base = { ...shown, outline, cellProblems: problems };
      if (request.kind === 'problem') return { ...base, requestProblem: request.problem };
      return { ...base, decision: decide({ ...request, program, endpoints }) };
    },
    async tryOut({ policy, time }) {
      const { result } = await modelOf(policy, time);
      const { diagnostics, program, checks, analysis } = withAnalysis(result);
      const findings = findingsOf(diagnostics, policy);
      if (program === undefined || checks === undefined || checks.tests.length + checks.ensures.length === 0)
        return { findings };
      const report = runPolicyTests({
        program,
        checks,
        plugins: PLAYGROUND_PLUGINS,
        requests: ENSURE_REQUESTS,
        ...(analysis === undefined ? {} : { verdicts: analysis.ensures }),
      });
      return { findings, report: { ...report, totals: coverageTotals(report.coverage) } };
    },
    async complete({ policy, offset }) {
      const model = await modelOf(policy, latest?.time ?? DEFAULT_TIME);
      return completionsAt(model, POLICY_PATH, offset).map(({ replace, ...rest }) => ({
        ...rest,
        replace: offsetsOf(replace),
      }));
    },
    async hover({ policy, offset }) {
      const found = hoverAt(await modelOf(policy, latest?.time ?? DEFAULT_TIME), POLICY_PATH, offset);
      return found === undefined ? null : { title: found.title, doc: found.doc, ...offsetsOf(found.span) };
    },
    format: (policy) => Promise.resolve(formatPolicy(policy, { file: POLICY_PATH }).text),
    properties: () =>
      Promise.resolve(
        entriesOf(createCatalogue(manifests).table).flatMap((entry) =>
          entry.kind === 'property' && entry.parameters.length === 0 && entry.provider.kind === 'builtin'
            ? [{ name: entry.name, type: typeText(entry.type), doc: entry.doc }]
            : [],
        ),
      ),
  };
}

function fleetOf(
  { diagnostics, checks }: SemanticModel['result'],
  source: ReturnType<typeof writeFleet>,
): { readonly problems: readonly CellProblem[]; readonly endpoints: Supposed['endpoints'] } {
  return {
    problems: problemsOf(diagnostics, source),
    endpoints: checks?.tests.findLast(({ label }) => label === FLEET_TEST)?.endpoints ?? [],
  };
}

type Supposed = Parameters<typeof explainOnFleet>[0];

function decide({ program, endpoints, request, deadlineInMs, epochMs }: Omit<Supposed, 'plugins'>): Decision {
  try {
    const explanation = explainOnFleet({
      program,
      endpoints,
      request,
      epochMs,
      plugins: PLAYGROUND_PLUGINS,
      ...(deadlineInMs === undefined ? {} : { deadlineInMs }),
      evaluators: 'interpreted',
    });
    return { kind: 'explained', explanation, text: explanationText(explanation, { colour: false }) };
  } catch (error) {
    if (!isSignalboxError(error)) throw error;
    return { kind: 'failed', message: error.message };
  }
}

function outlineOf({ definitions, properties, admission, routes }: PolicyProgram): PolicyOutline {
  return {
    tiers: definitions.tiers.map(({ name, endpoints }) => ({ name, endpoints: endpoints.map((one) => one.name) })),
    tenants: definitions.tenants.map(({ name }) => name),
    reads: [...new Set(properties.filter(({ provider }) => provider.kind === 'builtin').map(({ key }) => key))],
    rules: [
      ...admission.map(({ label, verb, headSpan }) => ({ label, kind: verb, ...offsetsOf(headSpan) })),
      ...routes.map(({ label, kind, headSpan }) => ({ label, kind, ...offsetsOf(headSpan) })),
    ],
  };
}
