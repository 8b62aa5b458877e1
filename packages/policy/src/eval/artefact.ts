import type { Value } from '@signalbox/plugin-api';
import type { RuntimeName } from './runtime.ts';

/** What generated code finds under one index of its constants. Plain data; `instantiateGenerated` makes the object. */
export type GeneratedConstant =
  | { readonly kind: 'value'; readonly value: Value }
  /** Members of a long `in` list, looked up by hash. */
  | { readonly kind: 'set'; readonly members: readonly (string | number | boolean)[] }
  | { readonly kind: 'pattern'; readonly pattern: string; readonly flags: string }
  | { readonly kind: 'runtime'; readonly name: RuntimeName };

/**
 * A program's evaluators as data that survives `structuredClone`: `text` is the body of a function of one parameter `K`, the
 * constants, that returns one function per entry of `expressionRoles(program)`. Every identifier and number in the text is minted by
 * the generator; what a policy's author wrote travels in `constants` alone.
 */
export interface GeneratedArtefact {
  readonly text: string;
  readonly constants: readonly GeneratedConstant[];
}
