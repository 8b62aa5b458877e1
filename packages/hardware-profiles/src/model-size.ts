/** The parameters of a model: all of them, and those used for one token (fewer in a mixture of experts). Absolute numbers. */
export interface ModelSize {
  readonly parameters: number;
  readonly activeParameters: number;
}

/** Models whose name does not tell their size, or tells it loosely: [pattern, 10⁹ parameters, 10⁹ active]. From the model cards. */
const namedSizes: readonly (readonly [RegExp, number, number])[] = [
  [/gpt-oss-120b/i, 117, 5.1],
  [/gpt-oss-20b/i, 21, 3.6],
  [/deepseek-(r1|v3(\.\d)?)(?!.*distill)/i, 671, 37],
  [/kimi-k2/i, 1000, 32],
  [/minimax-m2/i, 230, 10],
  [/glm-5/i, 744, 40],
  [/mixtral-8x7b/i, 46.7, 12.9],
  [/mixtral-8x22b/i, 141, 39],
];

/** A size written as people write it: `70B`, `7b`, `0.5B`, `1.5T`, `350M`, or a plain number of parameters. Undefined if it is none of these. */
export function parseModelSize(text: string | number): number | undefined {
  if (typeof text === 'number') return Number.isFinite(text) && text > 0 ? text : undefined;
  const match = /^\s*(\d+(?:\.\d+)?)\s*([mbt]?)\s*$/i.exec(text);
  if (match === null) return undefined;
  const unit = { m: 1e6, b: 1e9, t: 1e12, '': 1 }[(match[2] ?? '').toLowerCase()] ?? 1;
  const parameters = Number(match[1]) * unit;
  return parameters > 0 ? parameters : undefined;
}

/** The size of a model by its name, such as `meta-llama/Llama-3.1-70B` or `Qwen3-235B-A22B`. Undefined if the name does not tell. */
export function modelSizeFromName(name: string): ModelSize | undefined {
  for (const [pattern, total, active] of namedSizes) {
    if (pattern.test(name)) return { parameters: total * 1e9, activeParameters: active * 1e9 };
  }
  const total = /(?:^|[^a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])/i.exec(name);
  if (total === null) return undefined;
  const parameters = Number(total[1]) * (total[2]?.toLowerCase() === 'm' ? 1e6 : 1e9);
  const active = /-a(\d+(?:\.\d+)?)b(?![a-z0-9])/i.exec(name);
  return { parameters, activeParameters: active === null ? parameters : Number(active[1]) * 1e9 };
}

/**
 * Bytes of KV cache for one token at 16 bits, estimated from the active parameters: a power law through Llama-3.1-8B (131,072),
 * Qwen3-32B (262,144) and Llama-3.1-70B (327,680), whose published shapes give those figures exactly (2 · layers · KV heads · head
 * size · 2 bytes). Models without grouped-query attention need several times more, those with latent attention less.
 */
export function kvBytesPerToken(activeParameters: number): number {
  return 131_072 * (activeParameters / 8e9) ** 0.44;
}
