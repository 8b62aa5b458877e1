/**
 * Catalogue keys that nothing in core fills, whatever the host does: unknown for every endpoint unless a plugin provides them. As the
 * compiler takes them: `unprovided`.
 */
export const UNFED_KEYS: readonly string[] = Object.freeze(['candidate.prefix_hit']);

/** What may be written and core does not act on, as the compiler takes it: `unprovided`, like the keys above. */
export const INERT_KEYS: readonly string[] = Object.freeze([
  'with.hedge',
  'with.mirror',
  'with.prefill',
  'define.discovery',
  'define.profile',
  'gateway.cors',
  'gateway.shared',
  'gateway.workers',
  'endpoint.role',
]);

/**
 * Catalogue keys that are known only where a host writes engines' reports by `Core.feed`. `running`, `batch_size` and `queue_depth` are not
 * among them: without reports they are our own counts.
 */
export const ENGINE_FED_KEYS: readonly string[] = Object.freeze([
  'candidate.kv_cache_used',
  'candidate.age',
  'candidate.loras',
  'candidate.lora_slots_free',
  'request.lora',
]);
