// perf: score() runs for every decision of a rule that names rendezvous.
import { hashString, rendezvousScore } from '@signalbox/chwbl';
import type { Hash64 } from '@signalbox/chwbl';
import type { RequestView, ScorerDefinition } from '@signalbox/plugin-api';
import { createEndpointHashes } from '../endpoint-hashes.ts';

/**
 * Weighted rendezvous order: the cost of an endpoint is −ln(u)/weight, u the hash of (key, endpoint) as a fraction. With a session the
 * same session keeps the same order of endpoints, and a removed endpoint moves only its own sessions; without one the request's seed is
 * the key, which spreads ties evenly.
 */
export const rendezvous: ScorerDefinition = {
  doc: 'The order of the weighted rendezvous hash of (session or request seed, endpoint): a stable, even tie-breaker.',
  cost: true,
  options: {
    type: 'object',
    properties: {
      key: {
        type: 'string',
        enum: ['session', 'user', 'seed'],
        default: 'session',
        description: 'What is hashed with the endpoint. Where the session or user is unknown, the seed.',
      },
    },
    additionalProperties: false,
  },
  positional: ['key'],
  reads: ['request.session', 'request.user', 'candidate.name', 'candidate.weight'],
  setup({ options }: { readonly options: { readonly key: 'session' | 'user' | 'seed' } }) {
    const hashes = createEndpointHashes();
    return {
      score(request, candidates, out) {
        const names = candidates.values('candidate.name');
        const weights = candidates.column('candidate.weight');
        const key = requestKey(request, options.key);
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const weight = weights[slot]!;
          out[i] = -rendezvousScore(key, hashes.of(slot, names[slot]), weight > 0 ? weight : 1);
        }
      },
    };
  },
};

function requestKey(request: RequestView, kind: 'session' | 'user' | 'seed'): Hash64 {
  const text = kind === 'seed' ? undefined : request.value(`request.${kind}`);
  return typeof text === 'string' ? hashString(text) : { hi: request.seed >>> 0, lo: 0x74696573 };
}
