// perf: once per request, over the signals that the policy reads and no others.
import type { Learned } from './learned.ts';
import type { PluginGuard } from './plugins/guard.ts';
import type { RequestState } from './request-state.ts';
import type { Scheduler } from './scheduler.ts';
import { numberField, valueField } from './signals/signal-producers.ts';

/** Works out every synchronous signal that the policy reads but the late ones, and the two estimates that every lease needs. */
export function fillSignals(state: RequestState, learned: Learned): void {
  const { frame, version } = state;
  const { parsed } = frame;
  // Columns that were filled at an earlier moment, for a decision that this one takes the place of, are old.
  frame.stamp++;
  frame.lateRead = 0;
  if (parsed !== undefined) {
    frame.promptTokens = learned.promptTokens(parsed);
    frame.outputTokens = learned.outputTokens(parsed, state.tenant);
  }
  const { signals } = version.policy;
  for (let i = 0; i < signals.length; i++) {
    const { index, numeric, field, produce } = signals[i]!;
    // A call of one of many functions costs more than all these comparisons.
    if (numeric) frame.n[index] = field === undefined ? (produce(frame) as number) : numberField(frame, field);
    else frame.v[index] = field === undefined ? produce(frame) : valueField(frame, field);
  }
}

/** Starts every asynchronous signal and waits for each as long as its budget; one that is late or fails is unknown. Throws PluginFailure. */
export async function awaitSignals(state: RequestState, scheduler: Scheduler, guard: PluginGuard): Promise<void> {
  const { frame, version } = state;
  await Promise.all(
    version.policy.asyncSignals.map(async (signal) => {
      const abort = new AbortController();
      let cancel: (() => void) | undefined;
      const late = new Promise<undefined>((resolve) => {
        cancel = scheduler.setTimer(signal.budgetMs, () => resolve(undefined));
      });
      try {
        const value = await Promise.race([signal.start(frame, abort.signal), late]);
        if (signal.numeric) frame.n[signal.index] = typeof value === 'number' ? value : Number.NaN;
        else frame.v[signal.index] = value;
      } catch (error) {
        guard.failed(signal.held, error);
        if (signal.numeric) frame.n[signal.index] = Number.NaN;
        else frame.v[signal.index] = undefined;
      } finally {
        cancel?.();
        abort.abort();
      }
    }),
  );
}
