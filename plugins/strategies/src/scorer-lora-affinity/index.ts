// perf: score() runs for every decision of a rule that names lora_affinity.
import type { ScorerDefinition, ScorerInstance } from '@signalbox/plugin-api';

const LOADED = 1;
const ROOM = 0.8;
const FULL = 0;

/**
 * Where the adapter that the request names is at hand: 1 where it is resident, 0.8 where there is room to load it, 0 where another would have
 * to go. Without an adapter in the request, or without word from an engine, unknown: no opinion.
 */
export const loraAffinity: ScorerDefinition = {
  doc: 'Whether the adapter that the request names is at hand: 1 resident, 0.8 room to load it, 0 none; unknown without an adapter.',
  reads: ['request.lora', 'candidate.loras', 'candidate.lora_slots_free'],
  setup(): ScorerInstance {
    return {
      score(request, candidates, out) {
        const adapter = request.value('request.lora');
        if (typeof adapter !== 'string') {
          out.fill(Number.NaN, 0, candidates.length);
          return;
        }
        const resident = candidates.values('candidate.loras');
        const room = candidates.column('candidate.lora_slots_free');
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const list = resident[slot];
          const free = room[slot]!;
          if (Array.isArray(list) && list.includes(adapter)) out[i] = LOADED;
          else if (free > 0) out[i] = ROOM;
          else out[i] = Array.isArray(list) || free === free ? FULL : Number.NaN;
        }
      },
    };
  },
};
