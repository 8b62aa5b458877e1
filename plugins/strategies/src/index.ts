import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { declaredOrder } from './scorer-declared-order/index.ts';
import { kvOverlap } from './scorer-kv-overlap/index.ts';
import { leastConnections } from './scorer-least-connections/index.ts';
import { leastCost } from './scorer-least-cost/index.ts';
import { leastKvCache } from './scorer-least-kv-cache/index.ts';
import { leastLoaded } from './scorer-least-loaded/index.ts';
import { leastPower } from './scorer-least-power/index.ts';
import { leastQueue } from './scorer-least-queue/index.ts';
import { leastRequests } from './scorer-least-requests/index.ts';
import { leastRunning } from './scorer-least-running/index.ts';
import { lmetric } from './scorer-lmetric/index.ts';
import { longestMatch } from './scorer-longest-match/index.ts';
import { loraAffinity } from './scorer-lora-affinity/index.ts';
import { nearest } from './scorer-nearest/index.ts';
import { prefixCache } from './scorer-prefix-cache/index.ts';
import { random } from './scorer-random/index.ts';
import { rendezvous } from './scorer-rendezvous/index.ts';
import { roundRobin } from './scorer-round-robin/index.ts';
import { smallestBatch } from './scorer-smallest-batch/index.ts';
import { weightedRandom } from './scorer-weighted-random/index.ts';

/** The classic balancing strategies, scorers by cache match, adapter and place, and tie-breakers for `then`. */
const plugin: Plugin = definePlugin({
  name: 'strategies',
  apiVersion: 1,
  doc: 'Classic balancing strategies; scorers by cache match, adapter and place; tie-breakers.',
  provides: {
    scorer: {
      round_robin: roundRobin,
      random,
      weighted_random: weightedRandom,
      least_connections: leastConnections,
      least_requests: leastRequests,
      smallest_batch: smallestBatch,
      least_loaded: leastLoaded,
      least_queue: leastQueue,
      least_running: leastRunning,
      least_kv_cache: leastKvCache,
      least_cost: leastCost,
      least_power: leastPower,
      declared_order: declaredOrder,
      rendezvous,
      prefix_cache: prefixCache,
      longest_match: longestMatch,
      lmetric,
      kv_overlap: kvOverlap,
      lora_affinity: loraAffinity,
      nearest,
    },
  },
});

export default plugin;
