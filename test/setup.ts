import * as fc from 'fast-check';

/**
 * Properties are tried on the same inputs each run, so that a run says something about the change and not about luck. `SIGNALBOX_SEED=N` tries
 * others, `SIGNALBOX_SEED=random` new ones each time; what they find becomes a test of its own.
 */
const chosen = process.env['SIGNALBOX_SEED'] ?? '20261129';
if (chosen !== 'random') {
  const seed = Number(chosen);
  if (!Number.isSafeInteger(seed)) throw new Error(`SIGNALBOX_SEED is ${chosen}: give a whole number, or "random"`);
  fc.configureGlobal({ seed });
}
