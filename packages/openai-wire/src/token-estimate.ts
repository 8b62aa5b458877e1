const START_CHARS_PER_TOKEN = 4;
const MIN_CHARS_PER_TOKEN = 1;
const MAX_CHARS_PER_TOKEN = 8;
/** Half of the weight is from the last 2^17 or so tokens: enough to be steady, short enough to follow a change of traffic. */
const WINDOW_TOKENS = 262_144;

/** Prompt tokens for a number of code points at `charsPerToken` code points a token; at least 1 for any text. */
export function estimateTokens(chars: number, charsPerToken: number = START_CHARS_PER_TOKEN): number {
  return Math.ceil(chars / charsPerToken);
}

/**
 * Code points per token of one model, learned from answers: Σ code points ÷ Σ prompt tokens with decay, within 1 to 8, 4 at first.
 * Requests with images or tools must not be taught, since their tokens are not all text.
 */
export class TokenRatio {
  private chars = START_CHARS_PER_TOKEN * 64;
  private tokens = 64;

  get charsPerToken(): number {
    return Math.min(MAX_CHARS_PER_TOKEN, Math.max(MIN_CHARS_PER_TOKEN, this.chars / this.tokens));
  }

  estimate(chars: number): number {
    return estimateTokens(chars, this.charsPerToken);
  }

  /** Learns from one answer. Counts that are not finite and above 0 teach nothing. */
  learn(chars: number, promptTokens: number): void {
    if (!(chars > 0 && promptTokens > 0 && Number.isFinite(chars) && Number.isFinite(promptTokens))) return;
    this.chars += chars;
    this.tokens += promptTokens;
    if (this.tokens > WINDOW_TOKENS) {
      this.chars /= 2;
      this.tokens /= 2;
    }
  }
}
