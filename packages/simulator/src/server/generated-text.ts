import { tokenIdOf } from './tokenizer.ts';

/** Three-letter words: with the space or full stop behind it each is one token of the simulated tokeniser. */
const words =
  'the sun may set and you can see how its red ray hit the top oak but one old fox ran far off for her new den was wet all day now let him try out our way who had ten big map put two ice cup yes ask why not lay it'
    .split(' ')
    .filter((word) => word.length === 3);

/** The answer of a simulated model to one prompt: fixed by the prompt and the seed alone. */
export interface GeneratedText {
  /** Tokens until the model would stop by itself: 32 to 95, about 60 in the mean. */
  readonly naturalTokens: number;
  /** Text of the i-th token: three letters and a space, or a full stop where the answer ends. */
  tokenText(index: number, isLast: boolean): string;
  tokenId(index: number, isLast: boolean): number;
}

/** The answer to a prompt. */
export function generateText(promptTokens: ArrayLike<number>, seed: number): GeneratedText {
  let state = (seed | 0) ^ 0x2545f491;
  for (let i = 0; i < promptTokens.length; i++)
    state = Math.imul(state ^ (promptTokens[i] ?? 0), 0x01000193) ^ (state >>> 17);
  const start = scramble(state);
  const tokenText = (index: number, isLast: boolean): string => {
    const word = words[scramble(start + Math.imul(index + 1, 0x9e3779b1)) % words.length] ?? 'the';
    return `${word}${isLast ? '.' : ' '}`;
  };
  return {
    naturalTokens: 32 + (scramble(start ^ 0x5bd1e995) % 64),
    tokenText,
    tokenId: (index, isLast) => tokenIdOf(tokenText(index, isLast)),
  };
}

/** An embedding of a prompt: `dimensions` numbers of length 1 together, fixed by the prompt alone. Prompts that share tokens are near each other. */
export function embed(promptTokens: ArrayLike<number>, dimensions: number): Float32Array {
  const sum = new Float64Array(dimensions);
  for (let i = 0; i < promptTokens.length; i++) {
    const token = promptTokens[i] ?? 0;
    for (let d = 0; d < dimensions; d++)
      sum[d] = (sum[d] ?? 0) + (scramble(token ^ Math.imul(d + 1, 0x85ebca6b)) / 2 ** 31 - 1);
  }
  const norm = Math.sqrt(sum.reduce((total, value) => total + value * value, 0)) || 1;
  return Float32Array.from(sum, (value) => value / norm);
}

function scramble(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return (hash ^ (hash >>> 15)) >>> 0;
}
