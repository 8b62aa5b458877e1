import type { BoundQueue } from './bound-policy.ts';
import { textOf } from './property-columns.ts';
import type { RequestState } from './request-state.ts';
import { classOf, PRIORITIES } from './signals/signal-producers.ts';

/** One request that waits. */
export interface QueueEntry {
  readonly state: RequestState;
  readonly place: BoundQueue;
  readonly sequence: number;
  readonly enqueuedMs: number;
  /** Index into `PRIORITIES`; 0 is served first. */
  readonly priority: number;
  /** The fair queue's key; empty in other queues. */
  readonly fairKey: string;
  readonly fairWeight: number;
  /** Prompt tokens and expected output tokens. */
  readonly tokens: number;
  readonly bodyBytes: number;
  /** Called once when the entry is displaced by a later one. */
  displaced(): void;
}

/** What is shown of one queue. */
export interface QueueStatus {
  readonly key: string;
  readonly label: string;
  readonly depth: number;
  readonly byPriority: { readonly [name: string]: number };
  /** Prompt and expected output tokens of those in line. */
  readonly tokens: number;
  /** Tokens a second that leave for an endpoint while somebody waits; NaN before there is evidence. */
  readonly tokensPerSecond: number;
}

/** Why a queue takes no more: no place or no memory is left, or the wait would be longer than the request may wait. */
export interface QueueRefusal {
  readonly kind: 'full' | 'too_long';
  /** How long a wait would be, in milliseconds; NaN while that is unknown. */
  readonly waitMs: number;
}

/** Entries of a class that a wake looks at beyond those that go: a bound on the work of one release. */
const MOST_PASSED_OVER = 16;
/** Keys of a fair queue that are remembered, those that wait apart, and how many are left when some are forgotten. */
const MOST_FAIR_KEYS = 4096;
const FAIR_KEYS_LEFT = 3072;
/** How far back the rate looks at which a queue empties. */
const DRAIN_WINDOW_MS = 10_000;
/** A rate from fewer departures, or over less time, says nothing. */
const LEAST_DEPARTURES = 4;
const LEAST_BUSY_MS = 100;
/** After so long without anybody in line, what it was before says nothing either. */
const IDLE_FORGETS_MS = 60_000;

interface Line {
  readonly key: string;
  label: string;
  readonly classes: QueueEntry[][];
  depth: number;
  /** Weighted tokens served by fair key. */
  readonly served: Map<string, number>;
  /** Tokens that left for an endpoint, and milliseconds during which somebody waited, both weighted by e^(−age/10 s). */
  drainedTokens: number;
  busyMs: number;
  /** Departures that the two are from. They do not age: while nobody leaves, the rate falls, and is not forgotten. */
  departures: number;
  seenMs: number;
}

/**
 * Bounded queues, one per rule that queues, each with four classes. Order: class, then the rule's `by`; without one the earliest deadline
 * first, and newest first once a queue is more than half full. Bounded by count, by the bytes of the bodies held in all queues, and by the
 * expected wait: tokens ahead ÷ the drain rate. That is the tokens of those who left for an endpoint ÷ the time during which somebody waited, both
 * weighted by e^(−age/10 s), from four departures and a tenth of a second on; before that the wait is unknown, and nobody is refused for it. In a
 * stall time goes on and tokens do not, so that the rate falls by half each 7 s; a pause in which nobody waits does not change it, and a minute of
 * that forgets it. Outlives policy versions: entries keep theirs.
 */
export class AdmissionQueues {
  readonly #lines = new Map<string, Line>();
  readonly #maxBytes: number;
  #size = 0;
  #bytes = 0;
  #sequence = 0;

  /** `maxBytes`: how much the bodies of all that wait may hold. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** Keys of fair queues that are remembered, of those that wait and of others. */
  get fairKeys(): number {
    let keys = 0;
    for (const line of this.#lines.values()) keys += line.served.size;
    return keys;
  }

  depth(place: BoundQueue): number {
    return this.#lines.get(place.key)?.depth ?? 0;
  }

  /** The class a request waits in: what the rule, the destination or an `admit` gives it, else its own. Index into `PRIORITIES`. */
  priority(state: RequestState, place: BoundQueue): number {
    return classOf(state.frame, place.with.priority ?? state.destination?.with.priority ?? state.admittedPriority);
  }

  /**
   * Puts a request in line, displacing another where the rule says so. Refused at the door if the wait is expected to last longer than
   * `patienceMs`, which is infinite for those whom a refusal would not serve.
   */
  enqueue(
    state: RequestState,
    place: BoundQueue,
    nowMs: number,
    patienceMs: number,
    displaced: (entry: QueueEntry) => void,
  ): QueueEntry | QueueRefusal {
    const line = this.#line(place);
    elapse(line, nowMs);
    const { frame } = state;
    const entry: QueueEntry = {
      state,
      place,
      sequence: this.#sequence++,
      enqueuedMs: nowMs,
      priority: this.priority(state, place),
      fairKey: this.fairKey(state, place),
      fairWeight: frame.tenant?.weight ?? 1,
      tokens: countable(frame.promptTokens) + countable(frame.outputTokens),
      bodyBytes: state.request?.parsed.bodyBytes ?? 0,
      displaced: () => displaced(entry),
    };
    const waitMs = this.#expectedWaitMs(line, entry);
    if (waitMs > patienceMs) return { kind: 'too_long', waitMs };
    if (this.#bytes + entry.bodyBytes > this.#maxBytes) return { kind: 'full', waitMs };
    if (line.depth >= place.maxDepth) {
      const victim = this.#victim(line, place, entry.priority);
      if (victim === undefined) return { kind: 'full', waitMs };
      this.remove(victim, nowMs);
      victim.displaced();
    }
    if (place.order.kind === 'weighted_fair') this.#lift(line, entry.fairKey);
    (line.classes[entry.priority] ??= []).push(entry);
    line.depth++;
    this.#size++;
    this.#bytes += entry.bodyBytes;
    this.#lines.set(line.key, line);
    return entry;
  }

  /** How long one who left for whatever reason would have had to wait still, from what is ahead of it; NaN while that is unknown. */
  expectedWaitMs(entry: QueueEntry, nowMs: number): number {
    const line = this.#lines.get(entry.place.key);
    if (line === undefined) return Number.NaN;
    elapse(line, nowMs);
    return this.#expectedWaitMs(line, entry);
  }

  /** Counts an entry that left for an endpoint; to be called after `remove`. */
  dispatched(entry: QueueEntry): void {
    const line = this.#lines.get(entry.place.key);
    if (line === undefined) return;
    line.drainedTokens += entry.tokens;
    line.departures++;
  }

  /** Takes an entry out of line; false if it is not in it. */
  remove(entry: QueueEntry, nowMs: number): boolean {
    const line = this.#lines.get(entry.place.key);
    const entries = line?.classes[entry.priority];
    const at = entries?.indexOf(entry) ?? -1;
    if (line === undefined || entries === undefined || at < 0) return false;
    elapse(line, nowMs);
    entries.splice(at, 1);
    line.depth--;
    this.#size--;
    this.#bytes -= entry.bodyBytes;
    return true;
  }

  /**
   * Offers waiting entries in order, class by class, until some have been passed over. `offer` tells whether the entry has left the queue
   * (it then took it out itself).
   */
  wake(offer: (entry: QueueEntry) => boolean): void {
    for (const line of this.#lines.values()) {
      let passedOver = 0;
      for (let c = 0; c < PRIORITIES.length && passedOver < MOST_PASSED_OVER; c++) {
        const refused = new Set<QueueEntry>();
        for (let entry = this.#first(line, c, refused); entry !== undefined; entry = this.#first(line, c, refused)) {
          if (offer(entry)) continue;
          refused.add(entry);
          if (++passedOver >= MOST_PASSED_OVER) break;
        }
      }
    }
  }

  /** The key of a request in a fair queue; empty where it is unknown, and in other queues. */
  fairKey(state: RequestState, place: BoundQueue): string {
    if (place.order.kind !== 'weighted_fair') return '';
    const value = place.order.key(state.frame);
    return value === undefined || value !== value ? '' : textOf(value);
  }

  /** Counts the tokens that a dispatched request is estimated to take for its key of a fair queue. */
  serve(place: BoundQueue, fairKey: string, inputTokens: number, outputTokens: number, weight: number): void {
    this.#count(this.#line(place), place, fairKey, inputTokens, outputTokens, weight);
  }

  /** Counts what the estimate turned out to be off by, if the queue is still known. */
  correct(place: BoundQueue, fairKey: string, inputTokens: number, outputTokens: number, weight: number): void {
    const line = this.#lines.get(place.key);
    if (line !== undefined) this.#count(line, place, fairKey, inputTokens, outputTokens, weight);
  }

  /** Forgets the queues of other keys than these, as far as nobody waits in them. */
  keep(keys: ReadonlySet<string>): void {
    for (const line of this.#lines.values()) if (line.depth === 0 && !keys.has(line.key)) this.#lines.delete(line.key);
  }

  #count(line: Line, place: BoundQueue, fairKey: string, input: number, output: number, weight: number): void {
    if (place.order.kind !== 'weighted_fair') return;
    const tokens = place.order.inputWeight * input + place.order.outputWeight * output;
    const before = line.served.get(fairKey);
    if (before === undefined && line.served.size >= MOST_FAIR_KEYS) forgetServed(line, keysOf(line));
    line.served.set(fairKey, (before ?? 0) + tokens / weight);
  }

  status(nowMs: number): QueueStatus[] {
    return [...this.#lines.values()].map((line) => {
      const idle = line.depth === 0;
      // A look at an idle line must not pass for use of it.
      if (!idle) elapse(line, nowMs);
      const forgotten = idle && nowMs - line.seenMs >= IDLE_FORGETS_MS;
      return {
        key: line.key,
        label: line.label,
        depth: line.depth,
        byPriority: Object.fromEntries(PRIORITIES.map((name, c) => [name, line.classes[c]?.length ?? 0])),
        tokens: line.classes.flat().reduce((sum, entry) => sum + entry.tokens, 0),
        tokensPerSecond: forgotten ? Number.NaN : drainRate(line) * 1000,
      };
    });
  }

  #line(place: BoundQueue): Line {
    let line = this.#lines.get(place.key);
    if (line === undefined) {
      line = {
        key: place.key,
        label: place.label,
        classes: [[], [], [], []],
        depth: 0,
        served: new Map(),
        drainedTokens: 0,
        departures: 0,
        busyMs: 0,
        seenMs: 0,
      };
      this.#lines.set(place.key, line);
    }
    line.label = place.label;
    return line;
  }

  /** Tokens ahead ÷ the rate at which tokens leave. What comes later and goes first is not foreseen, so the wait is rather longer. */
  #expectedWaitMs(line: Line, entry: QueueEntry): number {
    return line.depth === 0 ? 0 : this.#tokensAhead(line, entry) / drainRate(line);
  }

  #tokensAhead(line: Line, entry: QueueEntry): number {
    let tokens = 0;
    for (let c = 0; c < entry.priority; c++) for (const other of line.classes[c] ?? []) tokens += other.tokens;
    const peers = line.classes[entry.priority] ?? [];
    if (entry.place.order.kind !== 'weighted_fair') {
      for (const other of peers) if (other !== entry && this.#before(line, other, entry)) tokens += other.tokens;
      return tokens;
    }
    // Keys take turns: ahead is what the key has waiting itself, and as much for others as their weights allow.
    const weights = new Map([[entry.fairKey, entry.fairWeight]]);
    let own = 0;
    let all = 0;
    for (const other of peers) {
      if (other === entry) continue;
      weights.set(other.fairKey, other.fairWeight);
      all += other.tokens;
      if (other.fairKey === entry.fairKey) own += other.tokens;
    }
    let total = 0;
    for (const weight of weights.values()) total += weight;
    return tokens + Math.min(all, (own * total) / entry.fairWeight);
  }

  /** A key that comes back after a pause starts level with the least served of those waiting: rest earns no credit. */
  #lift(line: Line, key: string): void {
    const waiting = keysOf(line);
    if (waiting.has(key)) return;
    let least = Infinity;
    for (const other of waiting) least = Math.min(least, line.served.get(other) ?? 0);
    if (least === Infinity) {
      // Nobody waits: whoever was served most sets the level, and counters of the past can be forgotten.
      least = Math.max(0, ...line.served.values());
      line.served.clear();
    }
    const before = line.served.get(key);
    if (before === undefined && line.served.size >= MOST_FAIR_KEYS) forgetServed(line, waiting);
    line.served.set(key, Math.max(before ?? 0, least));
  }

  /** The next of a class to be offered, of those not refused in this wake. */
  #first(line: Line, priority: number, refused: ReadonlySet<QueueEntry>): QueueEntry | undefined {
    let best: QueueEntry | undefined;
    for (const entry of line.classes[priority] ?? []) {
      if (refused.has(entry)) continue;
      if (best === undefined || this.#before(line, entry, best)) best = entry;
    }
    return best;
  }

  #before(line: Line, a: QueueEntry, b: QueueEntry): boolean {
    const { order } = a.place;
    if (order.kind === 'weighted_fair') {
      const served = (line.served.get(a.fairKey) ?? 0) - (line.served.get(b.fairKey) ?? 0);
      return served === 0 ? a.sequence < b.sequence : served < 0;
    }
    if (order.kind === 'default' && line.depth > a.place.maxDepth / 2) return a.sequence > b.sequence;
    const deadlines = a.state.deadlineMs - b.state.deadlineMs;
    return deadlines === 0 || deadlines !== deadlines ? a.sequence < b.sequence : deadlines < 0;
  }

  #victim(line: Line, place: BoundQueue, arriving: number): QueueEntry | undefined {
    if (place.overflow === 'refuse') return undefined;
    if (place.overflow === 'lowest') {
      for (let c = PRIORITIES.length - 1; c > arriving; c--) {
        const last = line.classes[c]?.at(-1);
        if (last !== undefined) return last;
      }
      return undefined;
    }
    const all = line.classes.flat();
    const oldest = place.overflow === 'oldest';
    return all.reduce<QueueEntry | undefined>(
      (found, entry) => (found === undefined || entry.sequence < found.sequence === oldest ? entry : found),
      undefined,
    );
  }
}

/** The fair keys of those who wait. */
function keysOf(line: Line): ReadonlySet<string> {
  return new Set(line.classes.flatMap((entries) => entries.map((entry) => entry.fairKey)));
}

/**
 * Makes room for more keys: of those that do not wait, first go the ones that have had no more than the least served of those that do, for
 * a return would lift them to it anyway, then the ones known longest, each of which may gain what it was served since it was lifted last.
 */
function forgetServed(line: Line, waiting: ReadonlySet<string>): void {
  const { served } = line;
  let least = Infinity;
  for (const key of waiting) least = Math.min(least, served.get(key) ?? 0);
  for (const [key, tokens] of served) if (tokens <= least && !waiting.has(key)) served.delete(key);
  for (const key of served.keys()) {
    if (served.size <= FAIR_KEYS_LEFT) return;
    if (!waiting.has(key)) served.delete(key);
  }
}

/** Brings a line's rates to this moment. To be called before its depth changes. */
function elapse(line: Line, nowMs: number): void {
  const passedMs = nowMs - line.seenMs;
  // A request that was received before another was offered a place may come to it after that; no time is counted twice.
  if (!(passedMs > 0)) return;
  line.seenMs = nowMs;
  if (line.depth === 0) {
    if (passedMs < IDLE_FORGETS_MS) return;
    line.drainedTokens = 0;
    line.departures = 0;
    line.busyMs = 0;
    return;
  }
  const kept = Math.exp(-passedMs / DRAIN_WINDOW_MS);
  line.drainedTokens *= kept;
  line.busyMs *= kept;
  // What fell into the window of the time that passed, by the same weights.
  line.busyMs += DRAIN_WINDOW_MS * (1 - kept);
}

/** Tokens a millisecond that leave the line while somebody waits; NaN before there is evidence. */
function drainRate(line: Line): number {
  const known = line.departures >= LEAST_DEPARTURES && line.busyMs >= LEAST_BUSY_MS && line.drainedTokens > 0;
  return known ? line.drainedTokens / line.busyMs : Number.NaN;
}

/** Tokens that can be summed; unknown is 0. */
function countable(tokens: number): number {
  return tokens > 0 ? tokens : 0;
}
