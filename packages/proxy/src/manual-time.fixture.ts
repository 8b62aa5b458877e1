import type { Clock } from '@signalbox/plugin-api';
import type { Timers } from './timers.ts';

interface Armed {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** A clock and its timers, moved by hand. Sockets stay real: `advance` lets them be read between the steps of time. */
export class ManualTime implements Clock, Timers {
  private nowMs = 1_000;
  private readonly armed = new Set<Armed>();

  now(): number {
    return this.nowMs;
  }

  epochMs(): number {
    return 1_700_000_000_000 + this.nowMs;
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    const timer: Armed = { dueMs: this.nowMs + delayMs, callback };
    this.armed.add(timer);
    return timer;
  }

  clearTimeout(handle: unknown): void {
    this.armed.delete(handle as Armed);
  }

  setImmediate(callback: () => void): void {
    setImmediate(callback);
  }

  get pending(): number {
    return this.armed.size;
  }

  /** Time passes while nothing runs, as in an event loop that is held up: timers that fell due run with the next `advance`. */
  jump(ms: number): void {
    this.nowMs += ms;
  }

  /** Moves time forward in the order of the timers, looking at the sockets after each. */
  async advance(ms: number): Promise<void> {
    const until = this.nowMs + ms;
    for (;;) {
      let first: Armed | undefined;
      for (const timer of this.armed)
        if (timer.dueMs <= until && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
      if (first === undefined) break;
      this.armed.delete(first);
      this.nowMs = Math.max(this.nowMs, first.dueMs);
      first.callback();
      await turns(3);
    }
    this.nowMs = until;
    await turns(3);
  }
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
