// perf: score() runs for every candidate of every decision of a rule that names peak_ewma.
import type { ScorerDefinition, ScorerInstance, SetupContext } from '@signalbox/plugin-api';

/** Cost of an endpoint that holds requests and has never answered one: after every endpoint that has. */
const UNPROVED = 1e6;

/**
 * Peak EWMA: cost = ewma · (requests in flight + 1), where the ewma jumps to any higher measurement at once and decays towards lower ones.
 * What is measured is the time to the first token per uncached prompt token, so that long prompts and long answers do not look like slow
 * endpoints. Source: Finagle, `com.twitter.finagle.loadbalancer.PeakEwma`, which measures whole round trips.
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
    },
    additionalProperties: false,
  },
  positional: ['decay'],
  reads: ['candidate.inflight_requests'],
  setup({ clock, options }: SetupContext<{ readonly decay: number }>): ScorerInstance {
    const tauMs = options.decay * 1000;
    const costs: number[] = [];
    const measuredAt: number[] = [];
    return {
      score(_request, candidates, out) {
        const inflight = candidates.column('candidate.inflight_requests');
        const now = clock.now();
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const held = inflight[slot]!;
          const pending = held === held ? held : 0;
          const cost = costs[slot];
          // One that was never measured is tried while it is idle, and not piled upon before it has answered.
          if (cost === undefined) out[i] = pending === 0 ? 0 : UNPROVED + pending;
          else out[i] = cost * Math.exp((measuredAt[slot]! - now) / tauMs) * (pending + 1);
        }
      },
      ended(slot, outcome) {
        const cached = outcome.cachedTokens > 0 ? outcome.cachedTokens : 0;
        const measured = outcome.ttftMs / Math.max(1, outcome.promptTokens - cached);
        if (!outcome.ok || !(measured >= 0)) return;
        const now = clock.now();
        const before = costs[slot];
        const keep = before === undefined || measured > before ? 0 : Math.exp((measuredAt[slot]! - now) / tauMs);
        costs[slot] = keep * (before ?? 0) + (1 - keep) * measured;
        measuredAt[slot] = now;
      },
    };
  },
};
