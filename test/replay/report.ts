import type { LoadPlan } from './load-plan.ts';
import type { Outcome } from './outcome.ts';
import { bootstrapRatio, mean, quantile, seededRandom } from './statistics.ts';
import type { Ratio } from './statistics.ts';

/** One replay of the whole trace under one policy. */
export interface Run {
  readonly policy: string;
  readonly round: number;
  readonly outcomes: readonly Outcome[];
  /** Requests that each endpoint served. */
  readonly served: readonly number[];
  /** Real milliseconds by which the measuring side was late; absent in virtual time, where nothing is. */
  readonly lag?: { readonly sendMs: readonly number[]; readonly enginesP99Ms: number };
}

const measures = ['ttft', 'latency'] as const;
const figures = ['mean', 'p50', 'p90', 'p99'] as const;
type Measure = (typeof measures)[number];
type Figure = (typeof figures)[number];

/** A figure of one policy, all runs pooled. */
export interface Row {
  readonly measure: Measure;
  readonly figure: Figure;
  /** Milliseconds of the trace's clock. */
  readonly ms: number;
  /** The same of each run alone. */
  readonly perRunMs: readonly number[];
  /** Against the first policy; absent for that itself. */
  readonly ratio?: Ratio;
  /** Present where the ratio is held to `mostRatio`. */
  readonly holds?: boolean;
}

/** What the replay found. */
export interface ReplayReport {
  /** Names, in the order of `served`. */
  readonly endpoints: readonly string[];
  readonly load: LoadPlan;
  /** How many times faster than the trace's clock. */
  readonly compression: number;
  /** No processes, no network, no timers. */
  readonly virtual: boolean;
  readonly requests: number;
  readonly policies: readonly {
    readonly policy: string;
    readonly rows: readonly Row[];
    readonly served: readonly number[];
  }[];
  /** Real milliseconds, of all runs; absent in virtual time. */
  readonly lag?: {
    readonly sendP50Ms: number;
    readonly sendP99Ms: number;
    readonly sendMostMs: number;
    readonly enginesP99Ms: number;
  };
}

/**
 * Mean and p90 of a policy, all runs pooled, must be at most this share of the first policy's. On a quiet machine repeats of one run differ by a few
 * per cent, so that 8 % is not chance. p50 and p99 are only printed, and so are the intervals: those say how far another hour of the same traffic might
 * differ.
 */
export const mostRatio = 0.92;
const heldFigures: ReadonlySet<Figure> = new Set(['mean', 'p90']);
/** Scorers that are held to it, with whatever options. */
const heldPolicies: ReadonlySet<string> = new Set(['least_tokens', 'least_latency']);

const figureOf: Readonly<Record<Figure, (values: readonly number[]) => number>> = {
  mean,
  p50: (values) => quantile(values, 0.5),
  p90: (values) => quantile(values, 0.9),
  p99: (values) => quantile(values, 0.99),
};
const msOf = (measure: Measure, outcome: Outcome): number => (measure === 'ttft' ? outcome.ttftMs : outcome.latencyMs);

/** Pools the runs of each policy and compares with the first one. The intervals' random numbers have a fixed seed. */
export function makeReport(
  runs: readonly Run[],
  setting: Pick<ReplayReport, 'endpoints' | 'load' | 'compression' | 'virtual' | 'requests'>,
): ReplayReport {
  const names = [...new Set(runs.map(({ policy }) => policy))];
  const runsOf = (policy: string | undefined): readonly Run[] => runs.filter((run) => run.policy === policy);
  const baseline = runsOf(names[0]);
  const policies = names.map((policy) => {
    const own = runsOf(policy);
    const rows = measures.flatMap((measure) =>
      figures.map((figure): Row => {
        const placed = (of: readonly Run[]): { index: number; value: number }[] =>
          of.flatMap(({ outcomes }) =>
            outcomes.map((outcome) => ({ index: outcome.index, value: msOf(measure, outcome) })),
          );
        const values = (of: readonly Run[]): number[] => placed(of).map(({ value }) => value);
        const row = {
          measure,
          figure,
          ms: figureOf[figure](values(own)),
          perRunMs: own.map((run) => figureOf[figure](values([run]))),
        };
        if (policy === names[0]) return row;
        const ratio = bootstrapRatio(placed(own), placed(baseline), figureOf[figure], seededRandom(1));
        const isHeld = heldPolicies.has(policy.split('(')[0] ?? '') && heldFigures.has(figure);
        return {
          ...row,
          ratio,
          ...(isHeld ? { holds: ratio.ratio <= mostRatio } : {}),
        };
      }),
    );
    const served = (own[0]?.served ?? []).map((_count, i) => own.reduce((sum, run) => sum + (run.served[i] ?? 0), 0));
    return { policy, rows, served };
  });
  const lags = runs.flatMap(({ lag }) => (lag === undefined ? [] : [lag]));
  const sends = lags.flatMap(({ sendMs }) => sendMs);
  return {
    ...setting,
    policies,
    ...(lags.length === 0
      ? {}
      : {
          lag: {
            sendP50Ms: quantile(sends, 0.5),
            sendP99Ms: quantile(sends, 0.99),
            sendMostMs: quantile(sends, 1),
            enginesP99Ms: Math.max(...lags.map(({ enginesP99Ms }) => enginesP99Ms)),
          },
        }),
  };
}

/** Sentences about each held figure that is not within its bound; empty when all hold. */
export function failures(report: ReplayReport): readonly string[] {
  return report.policies.flatMap(({ policy, rows }) =>
    rows.flatMap(({ measure, figure, ratio, holds }) =>
      holds === false && ratio !== undefined
        ? [
            `${policy}: ${figure} ${labels[measure]} is ${formatRatio(ratio)} of ${report.policies[0]?.policy}'s; at most ${mostRatio} was claimed`,
          ]
        : [],
    ),
  );
}

const labels: Readonly<Record<Measure, string>> = { ttft: 'time to first token', latency: 'latency' };
const formatRatio = ({ ratio, low, high }: Ratio): string =>
  `${ratio.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;

/** Above this 99th percentile of lateness the machine was busy with other things: real milliseconds. */
export const busyLagMs = 25;

/** The 99th percentile of how late requests were sent, real milliseconds; 0 in virtual time. */
export const sendLagP99Ms = ({ lag }: Run): number => (lag === undefined ? 0 : quantile(lag.sendMs, 0.99));

/** The report as a Markdown table with what it was measured under. */
export function formatReport(report: ReplayReport): string {
  const { endpoints, load, compression, virtual, requests, policies, lag } = report;
  const lines = [
    `${requests} requests, arrivals ${load.stretch < 1 ? 'compressed' : 'stretched'} to ${load.stretch.toFixed(2)} of the trace's times: ${load.rate.toFixed(2)} a second`,
    `capacity on this mix ${load.fastCapacity.toFixed(2)} (fast) and ${load.slowCapacity.toFixed(2)} (slow) requests/s; a slow engine under round robin at ${(100 * load.utilisation).toFixed(0)} %, the fleet at ${(100 * load.fleetUtilisation).toFixed(0)} %`,
    virtual
      ? `virtual time: no gateway process, no network, no timers${compression === 1 ? '' : `; the core's clock ${compression} times slower than the engines'`}`
      : `${compression} times faster than the trace's clock; milliseconds below are the trace's`,
  ];
  if (lag !== undefined) {
    lines.push(
      `lag of the measuring side, real ms: requests sent p50 ${lag.sendP50Ms.toFixed(1)}, p99 ${lag.sendP99Ms.toFixed(1)}, most ${lag.sendMostMs.toFixed(1)} late; event loop of the engines p99 ${lag.enginesP99Ms.toFixed(1)}`,
    );
  }
  if (lag !== undefined && lag.sendP99Ms > busyLagMs) {
    lines.push(
      `the machine was busy with other things: about ${(lag.sendP99Ms * compression).toFixed(0)} ms of the tails below are the measurement's own`,
    );
  }
  for (const measure of measures) {
    lines.push(
      '',
      `| ${labels[measure]}, ms | ${figures.join(' | ')} | mean of each run | mean, ratio (95 %) | p90, ratio (95 %) | served by ${endpoints.join(' / ')} |`,
      `| --- | ${figures.map(() => '---:').join(' | ')} | --- | --- | --- | --- |`,
    );
    for (const { policy, rows, served } of policies) {
      const own = rows.filter((row) => row.measure === measure);
      const row = (figure: Figure): Row | undefined => own.find((candidate) => candidate.figure === figure);
      const ratio = (figure: Figure): string => {
        const found = row(figure)?.ratio;
        return found === undefined ? '1' : formatRatio(found);
      };
      lines.push(
        `| ${policy} | ${own.map(({ ms }) => ms.toFixed(0)).join(' | ')} | ${row('mean')
          ?.perRunMs.map((ms) => ms.toFixed(0))
          .join(', ')} | ${ratio('mean')} | ${ratio('p90')} | ${served.join(' / ')} |`,
      );
    }
  }
  return lines.join('\n');
}
