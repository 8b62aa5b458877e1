// perf: every request arms and disarms an entry; `!` marks reads of slots that exist by construction.
import type { Clock } from '@signalbox/plugin-api';
import type { Timers } from './timers.ts';

const TICK_MS = 10;
const SLOTS = 512;

/** One timer of the wheel, embedded in what it serves so that arming allocates nothing. */
export abstract class WheelEntry {
  /** When `onDue` is to be called, in milliseconds of the clock; Infinity while disarmed. */
  dueMs: number = Number.POSITIVE_INFINITY;
  previous: WheelEntry | undefined;
  next: WheelEntry | undefined;
  slot = -1;

  /** Called once when the time has come, disarmed; may arm itself anew. Never early, at most some 20 ms late on a calm loop. */
  abstract onDue(nowMs: number): void;
}

/**
 * One coarse timer for all requests of a proxy: slots of 10 ms, O(1) to arm and disarm, one timer of the event loop that sleeps until
 * the next occupied slot. Before anything is called as due, sockets that are ready are read, so that a stalled loop makes no false
 * timeouts: an entry that was re-armed by the data is not due any more.
 */
export class TimerWheel {
  private readonly clock: Clock;
  private readonly timers: Timers;
  private readonly heads: (WheelEntry | undefined)[] = Array.from({ length: SLOTS }, () => undefined);
  private tick: number;
  private handle: unknown;
  private wakeTick = Number.POSITIVE_INFINITY;
  private armed = 0;
  private stopped = false;

  constructor(clock: Clock, timers: Timers) {
    this.clock = clock;
    this.timers = timers;
    this.tick = Math.floor(clock.now() / TICK_MS);
  }

  /** Armed entries. */
  get size(): number {
    return this.armed;
  }

  /** Arms `entry` for `dueMs`, in place of an earlier arming. */
  arm(entry: WheelEntry, dueMs: number): void {
    if (entry.slot >= 0) {
      if (entry.dueMs === dueMs) return;
      this.unlink(entry);
    }
    entry.dueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY || this.stopped) return;
    if (this.armed === 0 && this.wakeTick === Number.POSITIVE_INFINITY)
      this.tick = Math.floor(this.clock.now() / TICK_MS);
    this.link(entry);
  }

  disarm(entry: WheelEntry): void {
    if (entry.slot >= 0) this.unlink(entry);
    entry.dueMs = Number.POSITIVE_INFINITY;
  }

  /** Forgets all entries; later arming does nothing. */
  stop(): void {
    this.stopped = true;
    if (this.handle !== undefined) this.timers.clearTimeout(this.handle);
    this.handle = undefined;
    for (let i = 0; i < SLOTS; i++) {
      for (let entry = this.heads[i]; entry !== undefined; entry = this.heads[i]) this.unlink(entry);
    }
  }

  private link(entry: WheelEntry): void {
    const due = Math.ceil(entry.dueMs / TICK_MS);
    const at = Math.min(Math.max(due, this.tick + 1), this.tick + SLOTS - 1);
    const slot = at % SLOTS;
    const head = this.heads[slot];
    entry.slot = slot;
    entry.previous = undefined;
    entry.next = head;
    if (head !== undefined) head.previous = entry;
    this.heads[slot] = entry;
    this.armed++;
    if (at < this.wakeTick) this.sleepUntil(at);
  }

  private unlink(entry: WheelEntry): void {
    if (entry.previous !== undefined) entry.previous.next = entry.next;
    else this.heads[entry.slot] = entry.next;
    if (entry.next !== undefined) entry.next.previous = entry.previous;
    entry.previous = undefined;
    entry.next = undefined;
    entry.slot = -1;
    this.armed--;
  }

  private sleepUntil(tick: number): void {
    if (this.handle !== undefined) this.timers.clearTimeout(this.handle);
    this.wakeTick = tick;
    this.handle = this.timers.setTimeout(this.wake, Math.max(1, tick * TICK_MS - this.clock.now()));
  }

  private readonly wake = (): void => {
    this.handle = undefined;
    this.timers.setImmediate(this.advance);
  };

  private readonly advance = (): void => {
    if (this.stopped) return;
    this.wakeTick = Number.POSITIVE_INFINITY;
    const now = this.clock.now();
    const target = Math.floor(now / TICK_MS);
    const first = Math.max(this.tick + 1, target - SLOTS + 1);
    this.tick = Math.max(this.tick, target);
    for (let t = first; t <= target; t++) {
      const slot = t % SLOTS;
      let entry = this.heads[slot];
      this.heads[slot] = undefined;
      // Entries are taken one by one, since a callback may disarm its neighbours.
      while (entry !== undefined) {
        const next: WheelEntry | undefined = entry.next;
        this.heads[slot] = next;
        if (next !== undefined) next.previous = undefined;
        entry.next = undefined;
        entry.slot = -1;
        this.armed--;
        if (entry.dueMs <= now) {
          entry.dueMs = Number.POSITIVE_INFINITY;
          entry.onDue(now);
        } else {
          this.pending.push(entry);
          entry.slot = -2;
        }
        entry = this.heads[slot];
      }
    }
    const pending = this.pending;
    this.pending = [];
    for (const entry of pending) {
      if (entry.slot === -2) {
        entry.slot = -1;
        if (entry.dueMs !== Number.POSITIVE_INFINITY) this.link(entry);
      }
    }
    this.sleepOn();
  };

  private pending: WheelEntry[] = [];

  private sleepOn(): void {
    if (this.armed === 0 || this.stopped) return;
    for (let t = this.tick + 1; t < this.tick + SLOTS; t++) {
      if (this.heads[t % SLOTS] !== undefined) {
        if (t < this.wakeTick) this.sleepUntil(t);
        return;
      }
    }
  }
}
