import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { FileNode } from './ast.ts';

export type PolicyTokenKind =
  | 'keyword'
  | 'name'
  | 'string'
  | 'regex'
  | 'number'
  | 'operator'
  | 'punctuation'
  | 'comment'
  | 'unknown';

/** One word or sign of the source, white space left out. `start` and `end` are UTF-16 offsets, `end` exclusive. */
export interface PolicyToken {
  readonly kind: PolicyTokenKind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface ParseOptions {
  /** The id that every span of the result carries: a path, or any other stable name. */
  readonly file: string;
}

/**
 * The outcome of `parsePolicy(text, { file })`. It never throws: what does not parse is in the tree as a broken statement
 * and has one error among the diagnostics, which are in the order of the text.
 */
export interface ParseResult {
  readonly file: FileNode;
  readonly diagnostics: readonly Diagnostic[];
  /** All tokens in order, comments included. */
  readonly tokens: readonly PolicyToken[];
}
