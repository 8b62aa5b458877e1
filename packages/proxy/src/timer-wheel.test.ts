import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualTime } from './manual-time.fixture.ts';
import { TimerWheel, WheelEntry } from './timer-wheel.ts';

class Probe extends WheelEntry {
  readonly fired: number[] = [];
  after: (() => void) | undefined;

  onDue(nowMs: number): void {
    this.fired.push(nowMs);
    this.after?.();
  }
}

describe('the timer wheel', () => {
  it('fires once, never early, within two ticks, and sleeps when nothing is armed', async () => {
    const time = new ManualTime();
    const wheel = new TimerWheel(time, time);
    const start = time.now();
    const probes = [1, 9, 10, 11, 250, 5_119, 5_120, 5_121, 60_000, 3_600_000].map((ms) => ({
      ms,
      probe: new Probe(),
    }));
    for (const { ms, probe } of probes) wheel.arm(probe, start + ms);
    await time.advance(3_700_000);
    for (const { ms, probe } of probes) {
      expect(probe.fired).toHaveLength(1);
      expect(probe.fired[0]).toBeGreaterThanOrEqual(start + ms);
      expect(probe.fired[0]).toBeLessThanOrEqual(start + ms + 20);
    }
    expect(wheel.size).toBe(0);
    expect(time.pending).toBe(0);
  });

  it('a disarmed or re-armed entry does not fire at its old time', async () => {
    const time = new ManualTime();
    const wheel = new TimerWheel(time, time);
    const start = time.now();
    const [a, b, c] = [new Probe(), new Probe(), new Probe()];
    wheel.arm(a, start + 100);
    wheel.arm(b, start + 100);
    wheel.arm(c, start + 100);
    wheel.disarm(a);
    wheel.arm(b, start + 300);
    c.after = () => wheel.disarm(b);
    wheel.arm(c, start + 200);
    await time.advance(1_000);
    expect([a.fired, b.fired, c.fired].map((fired) => fired.length)).toEqual([0, 0, 1]);
  });

  it('any arming, moving and disarming leaves exactly the armed ones to fire', async () => {
    const step = fc.record({
      probe: fc.nat(9),
      at: fc.integer({ min: 0, max: 12_000 }),
      wait: fc.integer({ min: 0, max: 3_000 }),
      disarm: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const time = new ManualTime();
        const wheel = new TimerWheel(time, time);
        const probes = Array.from({ length: 10 }, () => new Probe());
        const due = new Map<Probe, number>();
        for (const { probe: index, at, wait, disarm } of steps) {
          const probe = probes[index];
          if (probe === undefined) continue;
          if (disarm) {
            wheel.disarm(probe);
            due.delete(probe);
          } else {
            wheel.arm(probe, time.now() + at);
            due.set(probe, time.now() + at);
          }
          const before = probes.map((p) => p.fired.length);
          await time.advance(wait);
          for (const [i, p] of probes.entries()) {
            const fired = p.fired.length - (before[i] ?? 0);
            const dueMs = due.get(p) ?? Number.POSITIVE_INFINITY;
            const last = p.fired.at(-1) ?? Number.NaN;
            // Fired once and not early, or still ahead by less than two ticks.
            expect(fired === 0 ? dueMs > time.now() - 21 : fired === 1 && last >= dueMs).toBe(true);
            if (fired > 0) due.delete(p);
          }
        }
        expect(wheel.size).toBe(due.size);
        await time.advance(13_000);
        expect(wheel.size).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});
