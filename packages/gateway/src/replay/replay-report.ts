import type { PolicyOutcome, ReplayedDecision } from '@signalbox/core';
import { isSameOutcome, outcomeText, recordedOutcome } from '@signalbox/core';
import type { DecisionRecord } from '@signalbox/telemetry';
import type { AuditLine } from './audit-lines.ts';

/** How often something came up, with the first requests it came up for. */
export interface Tally {
  readonly count: number;
  /** Request ids, at most three. */
  readonly examples: readonly string[];
}

/** Requests that a policy sends elsewhere than they went. Shares are of all that were decided again. */
export interface Move extends Tally {
  /** `tier "70B" by "hard"`, `reject by "over quota"`. */
  readonly from: string;
  readonly to: string;
  readonly share: number;
  /** Of these, how many rest on something assumed: that an endpoint of the new tier was up. */
  readonly assumed: number;
}

/** What became of recorded decisions under another policy. Plain JSON data. */
export interface ReplayReport {
  /** Version id of the policy that they were decided by again. */
  readonly policy: string;
  readonly files: readonly { readonly file: string; readonly lines: number }[];
  /** Lines: `outside` the time asked for; `malformed`; else records. */
  readonly lines: { readonly total: number; readonly outside: number; readonly malformed: number };
  /** Decided again; and of those, the same verdict, rule and tier. */
  readonly decided: number;
  readonly same: number;
  /** Another verdict or tier. */
  readonly moved: number;
  readonly movedShare: number;
  /** Another rule, with the same verdict and tier. */
  readonly otherRule: number;
  /** By rule and tier, most frequent first. */
  readonly moves: readonly Move[];
  /** By tier alone, or `reject`, `queue` …: most frequent first. */
  readonly byTier: readonly Move[];
  readonly notDecidable: Tally & { readonly reasons: readonly (Tally & { readonly missing: string })[] };
  /** Requests that no rule had a say in, by the code of their answer. */
  readonly notByPolicy: Tally & { readonly codes: readonly (Tally & { readonly code: string })[] };
  readonly malformed: readonly { readonly place: string; readonly problem: string }[];
  /** Records that this very version made: how many came out as they were, and those that did not. */
  readonly own: {
    readonly same: number;
    readonly differing: readonly { readonly place: string; readonly text: string }[];
  };
}

/** Collects a report line by line, in memory that does not grow with the number of lines. */
export interface ReplayCollector {
  /** A line that was not decided again: malformed, or outside the time asked for. */
  skip(line: AuditLine): void;
  add(line: AuditLine, record: DecisionRecord, replayed: ReplayedDecision): void;
  readonly lines: number;
  report(): ReplayReport;
}

const MOST_EXAMPLES = 3;
/** Distinct reasons, moves and places that are kept apart; beyond that they count as others. */
const MOST_KINDS = 1000;
const MOST_PLACES = 20;

export function createReplayCollector(policy: string): ReplayCollector {
  return new Collector(policy);
}

class Count {
  count = 0;
  assumed = 0;
  readonly examples: string[] = [];

  add(requestId: string): void {
    this.count++;
    if (this.examples.length < MOST_EXAMPLES) this.examples.push(requestId);
  }

  tally(): Tally {
    return { count: this.count, examples: this.examples };
  }
}

/** Counts by kind, bounded. */
class Counts<Kind> {
  readonly all: Count = new Count();
  readonly #kinds = new Map<string, { readonly kind: Kind; readonly count: Count }>();
  readonly #others: Kind;

  constructor(others: Kind) {
    this.#others = others;
  }

  add(kind: Kind, requestId: string): Count {
    this.all.add(requestId);
    const key = JSON.stringify(kind);
    let entry = this.#kinds.get(key);
    if (entry === undefined) {
      const isFull = this.#kinds.size >= MOST_KINDS;
      const name = isFull ? this.#others : kind;
      entry = (isFull ? this.#kinds.get(OTHERS) : undefined) ?? { kind: name, count: new Count() };
      this.#kinds.set(isFull ? OTHERS : key, entry);
    }
    entry.count.add(requestId);
    return entry.count;
  }

  sorted(): readonly { readonly kind: Kind; readonly count: Count }[] {
    return [...this.#kinds.values()].toSorted((a, b) => b.count.count - a.count.count);
  }
}

const OTHERS = 'others';

interface Change {
  readonly from: string;
  readonly to: string;
}

class Collector implements ReplayCollector {
  readonly #policy: string;
  readonly #files = new Map<string, number>();
  readonly #moves = new Counts<Change>({ from: OTHERS, to: OTHERS });
  readonly #byTier = new Counts<Change>({ from: OTHERS, to: OTHERS });
  readonly #reasons = new Counts<string>(OTHERS);
  readonly #codes = new Counts<string>(OTHERS);
  readonly #malformed: { readonly place: string; readonly problem: string }[] = [];
  readonly #differing: { readonly place: string; readonly text: string }[] = [];
  lines = 0;
  #malformedCount = 0;
  #outside = 0;
  #decided = 0;
  #same = 0;
  #otherRule = 0;
  #ownSame = 0;

  constructor(policy: string) {
    this.#policy = policy;
  }

  skip(line: AuditLine): void {
    this.#see(line);
    if (line.problem === undefined) {
      this.#outside++;
      return;
    }
    this.#malformedCount++;
    if (this.#malformed.length < MOST_PLACES) this.#malformed.push({ place: placeOf(line), problem: line.problem });
  }

  add(line: AuditLine, record: DecisionRecord, replayed: ReplayedDecision): void {
    this.#see(line);
    if (replayed.kind === 'not_by_policy') {
      this.#codes.add(replayed.code, record.requestId);
      return;
    }
    if (replayed.kind === 'not_decidable') {
      this.#reasons.add(replayed.missing.join(', '), record.requestId);
      return;
    }
    this.#decided++;
    const was = recordedOutcome(record);
    if (was === undefined) return;
    if (record.policy === this.#policy) this.#checkOwn(line, record, was, replayed);
    this.#compare(record, was, replayed.outcome, replayed.assumed.length > 0);
  }

  #see({ file }: AuditLine): void {
    this.lines++;
    this.#files.set(file, (this.#files.get(file) ?? 0) + 1);
  }

  #compare(record: DecisionRecord, was: PolicyOutcome, now: PolicyOutcome, isAssumed: boolean): void {
    if (was.verdict === now.verdict && was.tier === now.tier) {
      if (was.rule === now.rule) this.#same++;
      else this.#otherRule++;
      if (was.rule === now.rule) return;
    } else {
      const byTier = this.#byTier.add({ from: tierText(was), to: tierText(now) }, record.requestId);
      if (isAssumed) byTier.assumed++;
    }
    const move = this.#moves.add({ from: outcomeText(was), to: outcomeText(now) }, record.requestId);
    if (isAssumed) move.assumed++;
  }

  #checkOwn(
    line: AuditLine,
    record: DecisionRecord,
    was: PolicyOutcome,
    { outcome, endpoints }: Extract<ReplayedDecision, { readonly kind: 'decided' }>,
  ): void {
    const recorded = record.shortlist.map(({ endpoint }) => endpoint);
    const hasSameOrder =
      endpoints?.kind !== 'decided' || JSON.stringify(endpoints.shortlist) === JSON.stringify(recorded);
    if (isSameOutcome(was, outcome) && hasSameOrder) {
      this.#ownSame++;
      return;
    }
    if (this.#differing.length >= MOST_PLACES) return;
    const text = isSameOutcome(was, outcome)
      ? `the order is ${endpoints?.kind === 'decided' ? endpoints.shortlist.join(', ') : ''}, and was ${recorded.join(', ')}`
      : `it comes to ${outcomeText(outcome)}, and was ${outcomeText(was)}`;
    this.#differing.push({ place: placeOf(line), text: `request ${record.requestId}: ${text}` });
  }

  report(): ReplayReport {
    const share = (count: number): number => (this.#decided === 0 ? 0 : count / this.#decided);
    const movesOf = (counts: Counts<Change>): Move[] =>
      counts.sorted().map(({ kind, count }) => ({
        ...kind,
        ...count.tally(),
        share: share(count.count),
        assumed: count.assumed,
      }));
    const moved = this.#byTier.all.count;
    return {
      policy: this.#policy,
      files: [...this.#files].map(([file, lines]) => ({ file, lines })),
      lines: { total: this.lines, outside: this.#outside, malformed: this.#malformedCount },
      decided: this.#decided,
      same: this.#same,
      moved,
      movedShare: share(moved),
      otherRule: this.#otherRule,
      moves: movesOf(this.#moves),
      byTier: movesOf(this.#byTier),
      notDecidable: {
        ...this.#reasons.all.tally(),
        reasons: this.#reasons.sorted().map(({ kind, count }) => ({ missing: kind, ...count.tally() })),
      },
      notByPolicy: {
        ...this.#codes.all.tally(),
        codes: this.#codes.sorted().map(({ kind, count }) => ({ code: kind, ...count.tally() })),
      },
      malformed: this.#malformed,
      own: { same: this.#ownSame, differing: this.#differing },
    };
  }
}

function placeOf({ file, line }: AuditLine): string {
  return `${file === '-' ? 'standard input' : file}:${line}`;
}

function tierText({ verdict, tier }: PolicyOutcome): string {
  return verdict === 'forward' ? `tier ${JSON.stringify(tier)}` : verdict;
}
