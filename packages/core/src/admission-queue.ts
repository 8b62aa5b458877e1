import type { BoundQueue } from './bound-policy.ts';
import { textOf } from './property-columns.ts';
import type { RequestState } from './request-state.ts';
import { PRIORITIES, priorityOf } from './signals/signal-producers.ts';

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
  /** Called once when the entry is displaced by a later one. */
  displaced(): void;
}

/** What is shown of one queue. */
export interface QueueStatus {
  readonly key: string;
  readonly label: string;
  readonly depth: number;
  readonly byPriority: { readonly [name: string]: number };
}

/** What became of a request at the door. */
export type Admittance = 'waiting' | 'full';

/** Entries of a class that a wake looks at beyond those that go: a bound on the work of one release. */
const MOST_PASSED_OVER = 16;
/** Keys of a fair queue that are remembered before those that a return would lift anyway are forgotten. */
const MOST_FAIR_KEYS = 4096;

interface Line {
  readonly key: string;
  label: string;
  readonly classes: QueueEntry[][];
  depth: number;
  /** Weighted tokens served by fair key. */
  readonly served: Map<string, number>;
}

/**
 * Bounded queues, one per rule that queues, each with four classes. Order: class, then the rule's `by`; without one the earliest deadline
 * first, and newest first once a queue is more than half full. Outlives policy versions: entries keep theirs.
 */
export class AdmissionQueues {
  readonly #lines = new Map<string, Line>();
  #size = 0;
  #sequence = 0;

  get size(): number {
    return this.#size;
  }

  depth(place: BoundQueue): number {
    return this.#lines.get(place.key)?.depth ?? 0;
  }

  /** Puts a request in line, displacing another where the rule says so. */
  enqueue(
    state: RequestState,
    place: BoundQueue,
    nowMs: number,
    displaced: (entry: QueueEntry) => void,
  ): QueueEntry | undefined {
    const line = this.#line(place);
    const { frame } = state;
    const written = (place.with.priority ?? state.destination?.with.priority ?? state.admittedPriority)?.(frame);
    const asked = PRIORITIES.indexOf(written as never);
    const priority = asked >= 0 ? asked : PRIORITIES.indexOf(priorityOf(frame));
    if (line.depth >= place.maxDepth) {
      const victim = this.#victim(line, place, priority);
      if (victim === undefined) return undefined;
      this.remove(victim);
      victim.displaced();
    }
    const fairKey = this.fairKey(state, place);
    if (place.order.kind === 'weighted_fair') this.#lift(line, fairKey);
    const entry: QueueEntry = {
      state,
      place,
      sequence: this.#sequence++,
      enqueuedMs: nowMs,
      priority,
      fairKey,
      displaced: () => displaced(entry),
    };
    (line.classes[priority] ??= []).push(entry);
    line.depth++;
    this.#size++;
    return entry;
  }

  /** Takes an entry out of line; false if it is not in it. */
  remove(entry: QueueEntry): boolean {
    const line = this.#lines.get(entry.place.key);
    const entries = line?.classes[entry.priority];
    const at = entries?.indexOf(entry) ?? -1;
    if (line === undefined || entries === undefined || at < 0) return false;
    entries.splice(at, 1);
    line.depth--;
    this.#size--;
    if (line.depth === 0 && line.served.size === 0) this.#lines.delete(line.key);
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

  /** Counts tokens served to a fair queue's key. Called at dispatch with the estimate, and at the end with what it was off by. */
  serve(place: BoundQueue, fairKey: string, inputTokens: number, outputTokens: number, weight: number): void {
    if (place.order.kind !== 'weighted_fair') return;
    const line = this.#line(place);
    const tokens = place.order.inputWeight * inputTokens + place.order.outputWeight * outputTokens;
    line.served.set(fairKey, (line.served.get(fairKey) ?? 0) + tokens / weight);
  }

  status(): QueueStatus[] {
    return [...this.#lines.values()].map((line) => ({
      key: line.key,
      label: line.label,
      depth: line.depth,
      byPriority: Object.fromEntries(PRIORITIES.map((name, c) => [name, line.classes[c]?.length ?? 0])),
    }));
  }

  #line(place: BoundQueue): Line {
    let line = this.#lines.get(place.key);
    if (line === undefined) {
      line = { key: place.key, label: place.label, classes: [[], [], [], []], depth: 0, served: new Map() };
      this.#lines.set(place.key, line);
    }
    line.label = place.label;
    return line;
  }

  /** A key that comes back after a pause starts level with the least served of those waiting: rest earns no credit. */
  #lift(line: Line, key: string): void {
    const waiting = new Set(line.classes.flatMap((entries) => entries.map((entry) => entry.fairKey)));
    if (waiting.has(key)) return;
    let least = Infinity;
    for (const other of waiting) least = Math.min(least, line.served.get(other) ?? 0);
    if (least === Infinity) {
      // Nobody waits: whoever was served most sets the level, and counters of the past can be forgotten.
      least = Math.max(0, ...line.served.values());
      line.served.clear();
    }
    line.served.set(key, Math.max(line.served.get(key) ?? 0, least));
    if (line.served.size <= MOST_FAIR_KEYS) return;
    // Whoever does not wait and has had no more than the level would be lifted to it anyway.
    for (const [other, tokens] of line.served) if (tokens <= least && !waiting.has(other)) line.served.delete(other);
    line.served.set(key, Math.max(line.served.get(key) ?? 0, least));
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
