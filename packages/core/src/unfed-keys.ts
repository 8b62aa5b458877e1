/**
 * Catalogue keys that nothing in core fills, whatever the host does: unknown for every endpoint unless a plugin provides them. As the
 * compiler takes them: `unprovided`.
 */
export const UNFED_KEYS: readonly string[] = Object.freeze(['candidate.prefix_hit']);

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
