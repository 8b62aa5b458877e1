import type { ShadowComparison, Verdict } from '@signalbox/core';

/** How often shadow and version in force decided alike. */
export interface Agreement {
  readonly compared: number;
  readonly agreed: number;
  /** `agreed` of `compared`; null before there is one. */
  readonly share: number | null;
}

/** Requests that the shadow would send elsewhere. */
export interface Move {
  /** `rule → tier`, or what else becomes of the request. */
  readonly from: string;
  readonly to: string;
  readonly requests: number;
  /** Ids of the first few. */
  readonly examples: readonly string[];
}

export interface ShadowFigures {
  /** Share of the requests that are decided twice. */
  readonly sample: number;
  /** By what is compared: the rule that decides; the tier, or how the request is refused; the endpoint tried first. */
  readonly byRule: Agreement;
  readonly byTier: Agreement;
  readonly byEndpoint: Agreement;
  /** For each rule of the version in force, how many of its requests stay in their tier. */
  readonly rules: readonly ({ readonly rule: string } & Agreement)[];
  /** Most frequent first. A move to another endpoint of the same tier is none. */
  readonly moves: readonly Move[];
  /** Requests of moves that are not listed, because there are too many kinds. */
  readonly otherMoves: number;
  readonly failed: number;
  /** The last of its failures. */
  readonly lastError: string | null;
  /** What deciding twice took in all, in milliseconds. */
  readonly tookMs: number;
}

/** Counts comparisons. Memory is bounded whatever requests come. */
export interface ShadowReport {
  add(comparison: ShadowComparison): void;
  figures(): ShadowFigures;
}

const MOST_MOVES = 200;
const MOST_RULES = 1000;
const EXAMPLES = 5;

interface Count {
  compared: number;
  agreed: number;
}

export function createShadowReport(sample: number): ShadowReport {
  const total: { readonly [by in 'rule' | 'tier' | 'endpoint']: Count } = {
    rule: { compared: 0, agreed: 0 },
    tier: { compared: 0, agreed: 0 },
    endpoint: { compared: 0, agreed: 0 },
  };
  const rules = new Map<string, Count>();
  const moves = new Map<string, { from: string; to: string; requests: number; examples: string[] }>();
  let otherMoves = 0;
  let failed = 0;
  let lastError: string | null = null;
  let tookMs = 0;

  const countRule = (rule: string, agrees: boolean): void => {
    let count = rules.get(rule);
    if (count === undefined) {
      if (rules.size >= MOST_RULES) return;
      rules.set(rule, (count = { compared: 0, agreed: 0 }));
    }
    tally(count, agrees);
  };
  const countMove = (from: string, to: string, requestId: string): void => {
    const key = JSON.stringify([from, to]);
    let move = moves.get(key);
    if (move === undefined) {
      if (moves.size >= MOST_MOVES) {
        otherMoves++;
        return;
      }
      moves.set(key, (move = { from, to, requests: 0, examples: [] }));
    }
    move.requests++;
    if (move.examples.length < EXAMPLES) move.examples.push(requestId);
  };
  return {
    add({ inForce, shadow, error, requestId, tookMs: took }) {
      tookMs += took;
      if (shadow === undefined) {
        failed++;
        lastError = error ?? null;
        return;
      }
      const sameRule = inForce.rule === shadow.rule;
      const sameTier = placeOf(inForce) === placeOf(shadow);
      tally(total.rule, sameRule);
      tally(total.tier, sameTier);
      tally(total.endpoint, sameTier && inForce.endpoint === shadow.endpoint);
      countRule(inForce.rule, sameTier);
      if (!sameRule || !sameTier) countMove(inWords(inForce), inWords(shadow), requestId);
    },
    figures: () => ({
      sample,
      byRule: agreement(total.rule),
      byTier: agreement(total.tier),
      byEndpoint: agreement(total.endpoint),
      rules: [...rules].map(([rule, count]) => ({ rule, ...agreement(count) })),
      moves: [...moves.values()].toSorted((a, b) => b.requests - a.requests),
      otherMoves,
      failed,
      lastError,
      tookMs,
    }),
  };
}

function tally(count: Count, agrees: boolean): void {
  count.compared++;
  if (agrees) count.agreed++;
}

function agreement({ compared, agreed }: Count): Agreement {
  return { compared, agreed, share: compared === 0 ? null : agreed / compared };
}

/** Where a request goes, without the rule that says so and the endpoint that is picked there. */
function placeOf({ outcome, tier, code }: Verdict): string {
  return outcome === 'forward' ? `tier ${JSON.stringify(tier)}` : outcome === 'queue' ? 'queue' : `refused: ${code}`;
}

function inWords(verdict: Verdict): string {
  const rule = verdict.rule === '' ? 'no rule' : JSON.stringify(verdict.rule);
  return `${rule} → ${placeOf(verdict)}`;
}
