/** Retries that a tier may still make: a tenth of its requests and one a second, so that retries cannot make an outage worse. */
export interface RetryBudget {
  /** A request was sent to the tier for the first time. */
  earn(tier: string): void;
  /** Takes one retry, or says that there is none left. */
  spend(tier: string, nowMs: number): boolean;
}

const SHARE = 0.1;
const PER_SECOND = 1;
/** What a tier starts with and may save up. */
const MOST = 10;
/** Ten tenths are one, whatever their sum is in floating point. */
const ROUNDING = 1e-9;
const MOST_TIERS = 1024;

/** Full budgets for every tier. Outlives policy versions. */
export function createRetryBudget(): RetryBudget {
  const tiers = new Map<string, { left: number; atMs: number }>();
  // Requests come in runs of one tier.
  let lastTier: string | undefined;
  let last: { left: number; atMs: number } = { left: MOST, atMs: Number.NaN };
  const of = (tier: string): { left: number; atMs: number } => {
    if (tier === lastTier) return last;
    let budget = tiers.get(tier);
    if (budget === undefined) {
      // Tiers come from policies; those of long ago are forgotten together.
      if (tiers.size >= MOST_TIERS) tiers.clear();
      tiers.set(tier, (budget = { left: MOST, atMs: Number.NaN }));
    }
    lastTier = tier;
    last = budget;
    return budget;
  };
  return {
    earn(tier) {
      const budget = of(tier);
      if (budget.left < MOST) budget.left = Math.min(MOST, budget.left + SHARE);
    },
    spend(tier, nowMs) {
      const budget = of(tier);
      if (budget.atMs === budget.atMs)
        budget.left = Math.min(MOST, budget.left + ((nowMs - budget.atMs) / 1000) * PER_SECOND);
      budget.atMs = nowMs;
      if (budget.left < 1 - ROUNDING) return false;
      budget.left -= 1;
      return true;
    },
  };
}
