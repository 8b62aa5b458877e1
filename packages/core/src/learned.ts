import type { ParsedRequest } from '@signalbox/plugin-api';

/**
 * What is learned from finished requests and used for the next ones: code points per prompt token and output tokens, per model. Outlives
 * policy versions. Every mean has one writer.
 */
export interface Learned {
  /**
   * Prompt tokens: exact where the body holds tokens, else code points ÷ r, r learned for the model within 1 to 8, 4 at first. For APIs
   * that are passed through, bytes of the body ÷ r.
   */
  promptTokens(parsed: ParsedRequest): number;
  /** Output tokens to expect: the model's mean (256 before anything is known), at most the caller's `max_tokens`; 0 for embeddings. */
  outputTokens(parsed: ParsedRequest, tenant: string | undefined): number;
  observe(observation: {
    readonly model: string;
    readonly tenant: string | undefined;
    /** Code points of the prompt; NaN where it was not plain text. */
    readonly promptChars: number;
    readonly promptTokens: number;
    readonly outputTokens: number;
  }): void;
  /** Tokens of the session's last turn; NaN if it has none. */
  sessionTokens(session: string): number;
  observeSession(session: string, tokens: number): void;
}

const FIRST_CHARS_PER_TOKEN = 4;
const FIRST_OUTPUT_TOKENS = 256;
/** Weight of one observation: half the memory is some fourteen requests old. */
const STEP = 0.05;
const MOST_MODELS = 1024;
const MOST_TENANTS = 4096;
const MOST_SESSIONS = 16_384;

interface ModelMeans {
  charsPerToken: number;
  output: number;
  readonly outputByTenant: Map<string, number>;
}

/** Nothing learned yet. */
export function createLearned(): Learned {
  const models = new Map<string, ModelMeans>();
  const sessions = new Map<string, number>();
  // Requests come in runs of one model, and each asks twice.
  let lastModel: string | undefined;
  let lastMeans: ModelMeans | undefined;
  /** The model that stands last in the map. */
  let newestModel: string | undefined;
  const meansOf = (model: string): ModelMeans | undefined => {
    if (model !== lastModel) {
      lastModel = model;
      lastMeans = models.get(model);
    }
    return lastMeans;
  };

  return {
    promptTokens(parsed) {
      const exact = parsed.promptTokensExact;
      if (exact === exact) return exact;
      // Of a body that is passed through no text is read; its size stands in, except where it carries sound.
      const passed = parsed.kind === 'other' && !parsed.path.startsWith('/v1/audio/');
      const chars = passed ? parsed.bodyBytes : parsed.promptChars;
      return Math.ceil(chars / (meansOf(parsed.model ?? '')?.charsPerToken ?? FIRST_CHARS_PER_TOKEN));
    },

    outputTokens(parsed, tenant) {
      if (parsed.kind === 'embedding') return 0;
      const means = meansOf(parsed.model ?? '');
      const mean =
        (tenant === undefined ? undefined : means?.outputByTenant.get(tenant)) ?? means?.output ?? FIRST_OUTPUT_TOKENS;
      return parsed.maxTokens < mean ? parsed.maxTokens : Math.ceil(mean);
    },

    observe({ model, tenant, promptChars, promptTokens, outputTokens }) {
      let means = models.get(model);
      if (means === undefined) {
        means = { charsPerToken: FIRST_CHARS_PER_TOKEN, output: FIRST_OUTPUT_TOKENS, outputByTenant: new Map() };
        lastModel = undefined;
      }
      if (model !== newestModel) {
        remember(models, model, means, MOST_MODELS);
        newestModel = model;
      }
      // A handful of tokens is mostly chat template and says little of the text.
      if (promptChars >= 64 && promptTokens > 0) {
        const ratio = Math.min(8, Math.max(1, promptChars / promptTokens));
        means.charsPerToken += STEP * (ratio - means.charsPerToken);
      }
      if (outputTokens >= 0) {
        if (tenant !== undefined) {
          const before = means.outputByTenant.get(tenant) ?? means.output;
          remember(means.outputByTenant, tenant, before + STEP * (outputTokens - before), MOST_TENANTS);
        }
        means.output += STEP * (outputTokens - means.output);
      }
    },

    sessionTokens: (session) => sessions.get(session) ?? Number.NaN,

    observeSession(session, tokens) {
      remember(sessions, session, tokens, MOST_SESSIONS);
    },
  };
}

/** Sets a key, forgetting the one that was set the longest ago where there are too many: names come from callers. */
function remember<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  if (!map.delete(key) && map.size >= most) {
    for (const oldest of map.keys()) {
      map.delete(oldest);
      break;
    }
  }
  map.set(key, value);
}
