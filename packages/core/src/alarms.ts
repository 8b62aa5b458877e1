import type { Clock } from '@signalbox/plugin-api';
import { Frame } from './frame.ts';
import { unlessFailed } from './plugins/guard.ts';
import type { BoundAlarm } from './bound-policy.ts';
import type { PolicyVersion } from './policy-version.ts';

/** States of `define alarm`: on once the condition has held for as long as it says, off when `until` holds (or the condition ends). */
export interface Alarms {
  /** Undefined before the alarm's first sample. */
  value(name: string): boolean | undefined;
  values(): ReadonlyMap<string, boolean>;
  /** Looks at every alarm of the versions; of a name that several define, the first one's counts. */
  sample(versions: readonly PolicyVersion[], clock: Clock): void;
  /** Forgets alarms that are not among these. */
  keep(names: readonly string[]): void;
}

/** No alarm sampled yet. Outlives policy versions. */
export function createAlarms(): Alarms {
  const states = new Map<string, { on: boolean; trueSinceMs: number }>();
  return {
    value: (name) => states.get(name)?.on,
    values: () => new Map([...states].map(([name, state]) => [name, state.on])),

    sample(versions, clock) {
      const looked = new Set<string>();
      for (const version of versions) {
        const { policy } = version;
        const alarms = policy.alarms.filter(({ name }) => !looked.has(name));
        if (alarms.length === 0) continue;
        const frame = filledFrame(version, clock);
        for (const alarm of alarms) {
          looked.add(alarm.name);
          const state = states.get(alarm.name) ?? { on: false, trueSinceMs: Number.NaN };
          states.set(alarm.name, state);
          advance(state, alarm, frame);
        }
      }
    },

    keep(names) {
      for (const name of states.keys()) if (!names.includes(name)) states.delete(name);
    },
  };
}

/** A frame with every signal that tells of the fleet or the time. */
function filledFrame({ policy }: PolicyVersion, clock: Clock): Frame {
  const frame = new Frame(policy.shape);
  frame.nowMs = clock.now();
  frame.epochMs = clock.epochMs();
  for (const { index, numeric, produce } of policy.signals) {
    const value = unlessFailed(() => produce(frame));
    if (numeric) frame.n[index] = typeof value === 'number' ? value : Number.NaN;
    else frame.v[index] = value;
  }
  return frame;
}

function advance(state: { on: boolean; trueSinceMs: number }, { when, until, forMs }: BoundAlarm, frame: Frame): void {
  const holds = unlessFailed(() => when(frame)) === true;
  if (!holds) state.trueSinceMs = Number.NaN;
  else if (state.trueSinceMs !== state.trueSinceMs) state.trueSinceMs = frame.nowMs;
  if (state.on) {
    if (until === undefined ? !holds : unlessFailed(() => until(frame)) === true) state.on = false;
  } else if (holds && frame.nowMs - state.trueSinceMs >= forMs) state.on = true;
}
