import { parseModelSize } from './model-size.ts';

/** A coarse table: tokens per second by model size, and one rate for every size not listed. */
export interface TextbookProfile {
  readonly name: string;
  readonly tokensPerSecond: Readonly<Record<string, number>>;
  readonly unknownSizeTokensPerSecond: number;
}

/**
 * The teaching tables by name. They are rates to reason with, not measurements of any product: one for the H100 and one for every
 * other accelerator.
 */
export const textbookProfiles: Readonly<Record<'textbook:h100' | 'textbook:other', TextbookProfile>> = Object.freeze({
  'textbook:h100': Object.freeze({
    name: 'textbook:h100',
    tokensPerSecond: Object.freeze({ '7B': 500, '13B': 300, '70B': 50 }),
    unknownSizeTokensPerSecond: 100,
  }),
  'textbook:other': Object.freeze({
    name: 'textbook:other',
    tokensPerSecond: Object.freeze({ '7B': 150, '13B': 80, '70B': 15 }),
    unknownSizeTokensPerSecond: 100,
  }),
});

/** Tokens per second by the textbook. `modelSize` is written `7B` or given in parameters; an unlisted one gives 100. */
export function textbookTokensPerSecond(gpu: string, modelSize: string | number | undefined): number {
  const table = textbookProfiles[/h100/i.test(gpu) ? 'textbook:h100' : 'textbook:other'];
  const parameters = modelSize === undefined ? undefined : parseModelSize(modelSize);
  const key = parameters === undefined ? '' : `${parameters / 1e9}B`;
  return table.tokensPerSecond[key] ?? table.unknownSizeTokensPerSecond;
}

/** Predicted seconds by the textbook: tokens ÷ rate. */
export function predictSecondsTextbook(tokens: number, gpu: string, modelSize: string | number | undefined): number {
  return tokens / textbookTokensPerSecond(gpu, modelSize);
}
