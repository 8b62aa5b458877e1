import type { Value } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram, RefArgument, TargetRef, Verdict } from './ir.ts';
import type { Span } from './syntax/span.ts';

/** A `test` of a policy, checked: what is given, and what must come of it. Plain data. */
export interface PolicyTest {
  readonly label: string;
  readonly span: Span;
  /** Name of the tenant that the request belongs to. */
  readonly tenant?: string;
  /**
   * Signals by catalogue key and arguments, as in `SignalRef`. Of the others, those that every request has (`known: 'always'`) are those of
   * an empty request, and all else is unknown.
   */
  readonly facts: readonly {
    readonly key: string;
    readonly arguments: readonly RefArgument[];
    readonly value: Value;
  }[];
  /**
   * Endpoints with the properties that are given. One that the policy defines keeps its place and what is not given of it; ones by other
   * names take the place of all that their tier has.
   */
  readonly endpoints: readonly GivenEndpoint[];
  readonly expectations: readonly { readonly negated: boolean; readonly outcome: Outcome; readonly span: Span }[];
}

export interface GivenEndpoint {
  readonly name: string;
  readonly tier?: string;
  /** Canonical values by property name, and by `labels.x`. */
  readonly properties: { readonly [name: string]: Value };
  readonly span: Span;
}

/** An `ensure` of a policy, checked. */
export interface PolicyEnsure {
  readonly label: string;
  readonly span: Span;
  /** Part of `PolicyChecks.conditions`, whose tables its signals index. Absent: every request. */
  readonly when?: Expression;
  readonly mode: 'always' | 'never';
  readonly outcome: Outcome;
}

export type Outcome =
  | { readonly kind: 'route'; readonly label: string; readonly target?: TargetRef }
  | { readonly kind: 'target'; readonly target: TargetRef }
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
  | { readonly kind: 'default' };

/** What a policy says about itself, apart from what it does. */
export interface PolicyChecks {
  readonly tests: readonly PolicyTest[];
  readonly ensures: readonly PolicyEnsure[];
  /** A program that holds the conditions of the ensures as its admission rules, in their order, so that evaluators can be made for them. */
  readonly conditions: PolicyProgram;
}
