import type { PluginKind } from '@signalbox/plugin-api';

/**
 * Names that the first-party plugins of the project offer in some build. A policy that uses one in a build without it gets an error of
 * its own, in place of "unknown name".
 */
export const firstPartyNames: { readonly [name: string]: PluginKind } = Object.freeze({
  round_robin: 'scorer',
  random: 'scorer',
  weighted_random: 'scorer',
  least_connections: 'scorer',
  least_requests: 'scorer',
  smallest_batch: 'scorer',
  least_loaded: 'scorer',
  least_tokens: 'scorer',
  least_latency: 'scorer',
  peak_ewma: 'scorer',
  least_kv_cache: 'scorer',
  least_queue: 'scorer',
  least_running: 'scorer',
  prefix_cache: 'scorer',
  longest_match: 'scorer',
  lmetric: 'scorer',
  kv_overlap: 'scorer',
  lora_affinity: 'scorer',
  session_affinity: 'scorer',
  least_cost: 'scorer',
  least_power: 'scorer',
  nearest: 'scorer',
  declared_order: 'scorer',
  rendezvous: 'scorer',
  best: 'picker',
  power_of_two: 'picker',
  weighted: 'picker',
  softmax: 'picker',
  text_language: 'signal',
  code: 'signal',
  weighted_fair: 'admission',
  deadline: 'admission',
});
