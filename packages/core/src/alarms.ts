import type { Clock } from '@signalbox/plugin-api';
import { Frame } from './frame.ts';
import { unlessFailed } from './plugins/guard.ts';
import type { PolicyVersion } from './policy-version.ts';

/** States of `define alarm`: on once the condition has held for as long as it says, off when `until` holds (or the condition ends). */
export interface Alarms {
  /** Undefined before the alarm's first sample. */
  value(name: string): boolean | undefined;
  values(): ReadonlyMap<string, boolean>;
  /** Looks at every alarm of the version. */
  sample(version: PolicyVersion, clock: Clock): void;
  /** Forgets alarms that are not among these. */
  keep(names: readonly string[]): void;
}

/** No alarm sampled yet. Outlives policy versions. */
export function createAlarms(): Alarms {
  const states = new Map<string, { on: boolean; trueSinceMs: number }>();
  return {
    value: (name) => states.get(name)?.on,
    values: () => new Map([...states].map(([name, state]) => [name, state.on])),

    sample(version, clock) {
      const frame = new Frame(version.policy.shape);
      frame.nowMs = clock.now();
      frame.epochMs = clock.epochMs();
      for (const { index, numeric, produce } of version.policy.signals) {
        const value = unlessFailed(() => produce(frame));
        if (numeric) frame.n[index] = typeof value === 'number' ? value : Number.NaN;
        else frame.v[index] = value;
      }
      for (const alarm of version.policy.alarms) {
        const state = states.get(alarm.name) ?? { on: false, trueSinceMs: Number.NaN };
        states.set(alarm.name, state);
        const { when, until } = alarm;
        const holds = unlessFailed(() => when(frame)) === true;
        if (!holds) state.trueSinceMs = Number.NaN;
        else if (state.trueSinceMs !== state.trueSinceMs) state.trueSinceMs = frame.nowMs;
        if (state.on) {
          if (until === undefined ? !holds : unlessFailed(() => until(frame)) === true) state.on = false;
        } else if (holds && frame.nowMs - state.trueSinceMs >= alarm.forMs) state.on = true;
      }
    },

    keep(names) {
      for (const name of states.keys()) if (!names.includes(name)) states.delete(name);
    },
  };
}
