/** The median time to first token of each tier's streams, of late. */
export interface FirstTokenMeter {
  observe(tier: string, ttftMs: number): void;
  /** Milliseconds; 0 until five streams have told. */
  medianMs(tier: string): number;
}

/** Each observation moves the estimate by so much towards its side: it follows a change by half in some fourteen streams. */
const STEP = 1.05;
const LEAST_OBSERVATIONS = 5;
const MOST_TIERS = 1024;

/** Nothing observed yet. The estimate rests where as many observations fall above it as below. */
export function createFirstTokenMeter(): FirstTokenMeter {
  const tiers = new Map<string, { medianMs: number; observations: number }>();
  return {
    observe(tier, ttftMs) {
      if (!(ttftMs > 0)) return;
      const seen = tiers.get(tier);
      if (seen === undefined) {
        // Tiers come from policies; those of long ago are forgotten together.
        if (tiers.size >= MOST_TIERS) tiers.clear();
        tiers.set(tier, { medianMs: ttftMs, observations: 1 });
        return;
      }
      seen.observations++;
      if (ttftMs > seen.medianMs) seen.medianMs = Math.min(ttftMs, seen.medianMs * STEP);
      else seen.medianMs = Math.max(ttftMs, seen.medianMs / STEP);
    },
    medianMs(tier) {
      const seen = tiers.get(tier);
      return seen === undefined || seen.observations < LEAST_OBSERVATIONS ? 0 : seen.medianMs;
    },
  };
}
