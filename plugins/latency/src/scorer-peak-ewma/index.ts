// perf: score() runs for every candidate of every decision of a rule that names peak_ewma.
import type { ScorerDefinition, ScorerInstance, SetupContext } from '@signalbox/plugin-api';

/** Cost of an endpoint that holds requests and has never answered one: after every endpoint that has. */
const UNPROVED = 1e6;

/** What an endpoint without fresh answers is hoped to take of the fleet's mean: below 1, or one that was slow once would never be tried again. */
const OPTIMISM = 0.9;

/** Weight of a new measurement in the fleet's mean; the first one counts whole. */
const STEP = 0.1;

/**
 * Peak EWMA: cost = ewma · (requests in flight + 1), where the ewma jumps to any higher measurement at once and decays towards lower ones.
 * What is measured is the time to the first token per uncached prompt token, so that long prompts and long answers do not look like slow
 * endpoints. Source: Finagle, `com.twitter.finagle.loadbalancer.PeakEwma`, which measures whole round trips.
 *
 * An answer goes on for long after its first token, so three things differ. A measurement counts from its first token on, not from the end
 * that reports it: a peak of twelve seconds ago has decayed for as long. Without measurements an endpoint decays towards nine tenths of
 * the fleet's mean and not to 0, or the one with the oldest answer would be the best for that. And a short prompt counts as `floor` tokens, since the fixed
 * part of a prefill and the step under way are most of its time.
 */
export const peakEwma: ScorerDefinition = {
  doc: 'Time to first token per uncached prompt token, jumping to peaks and decaying after them, times the requests in flight plus one; least best.',
  cost: true,
  options: {
    type: 'object',
    properties: {
      decay: {
        type: 'number',
        exclusiveMinimum: 0,
        default: 10,
        'x-unit': 'duration',
        description: 'Time constant in which a peak is forgotten.',
      },
      floor: {
        type: 'number',
        minimum: 1,
        default: 512,
        description: 'Uncached prompt tokens that a shorter prompt counts as.',
      },
    },
    additionalProperties: false,
  },
  positional: ['decay'],
  reads: ['candidate.inflight_requests'],
  setup({ clock, options }: SetupContext<{ readonly decay: number; readonly floor: number }>): ScorerInstance {
    const tauMs = options.decay * 1000;
    const costs: (number | undefined)[] = [];
    const measuredAt: number[] = [];
    let fleet = NaN;
    return {
      score(_request, candidates, out) {
        const inflight = candidates.column('candidate.inflight_requests');
        const now = clock.now();
        const hoped = OPTIMISM * fleet;
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const held = inflight[slot]!;
          const pending = held === held ? held : 0;
          const cost = costs[slot];
          // One that was never measured is tried while it is idle, and not piled upon before it has answered.
          if (cost === undefined) out[i] = pending === 0 ? 0 : UNPROVED + pending;
          else out[i] = (hoped + (cost - hoped) * Math.exp((measuredAt[slot]! - now) / tauMs)) * (pending + 1);
        }
      },
      ended(slot, outcome) {
        // A plain answer comes whole: its first token is not known, and its total time is another thing.
        const sinceFirstMs = outcome.durationMs - outcome.ttftMs;
        if (!outcome.ok || (!(sinceFirstMs > 0) && outcome.outputTokens > 1)) return;
        const cached = outcome.cachedTokens > 0 ? outcome.cachedTokens : 0;
        const measured = outcome.ttftMs / Math.max(options.floor, outcome.promptTokens - cached);
        if (!(measured >= 0)) return;
        fleet = fleet === fleet ? fleet + STEP * (measured - fleet) : measured;
        const at = clock.now() - Math.max(0, sinceFirstMs);
        const before = costs[slot];
        if (before === undefined) {
          costs[slot] = measured;
          measuredAt[slot] = at;
          return;
        }
        const ageMs = at - measuredAt[slot]!;
        if (ageMs < 0) {
          const hoped = OPTIMISM * fleet;
          // Longer ago than what is known already: what is left of it counts if it is a peak still.
          costs[slot] = Math.max(before, hoped + (measured - hoped) * Math.exp(ageMs / tauMs));
          return;
        }
        const keep = Math.exp(-ageMs / tauMs);
        costs[slot] = Math.max(measured, keep * before + (1 - keep) * measured);
        measuredAt[slot] = at;
      },
      forget(slot) {
        if (slot < costs.length) costs[slot] = undefined;
      },
    };
  },
};
