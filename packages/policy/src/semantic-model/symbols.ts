import type { ValueType } from '@signalbox/plugin-api';
import type { DefinedKind } from '../check/observer.ts';
import type { CatalogueEntry } from '../check/catalogue/entries.ts';
import type { Span } from '../syntax/span.ts';

/** What a name of a policy can stand for. `member` is a field of a tenant or a label, which nothing declares by name. */
export type SymbolKind =
  | DefinedKind
  | 'let'
  | 'import'
  | 'plugin'
  | 'member'
  | 'signal'
  | 'property'
  | 'scorer'
  | 'picker'
  | 'admission'
  | 'function'
  | 'modifier';

/** One thing that names refer to. Two references mean the same thing exactly if their keys are equal. */
export interface PolicySymbol {
  readonly key: string;
  readonly kind: SymbolKind;
  /** As declared, without the alias of an import. */
  readonly name: string;
  /** Where the name is declared, without quotes; absent for what the catalogue provides. */
  readonly declaration?: Span;
  readonly type?: ValueType;
  /** What a value is about. */
  readonly scope?: 'constant' | 'request' | 'cluster' | 'candidate';
  /** Whether a signal is always known. */
  readonly known?: 'always' | 'maybe';
  /** What a `let` stands for, if it is no value. */
  readonly letKind?: 'value' | 'scorer' | 'target' | 'picker';
  readonly entry?: CatalogueEntry;
  /** Text for hover: the doc comment of a declaration, or what the catalogue says. */
  readonly doc?: string;
  /** The package that provides it. */
  readonly plugin?: string;
}

/** One place where a name stands. */
export interface PolicyReference {
  /** The name itself: without quotes, for a dotted name its last part (the member), or all of a catalogue name. */
  readonly span: Span;
  readonly symbol: PolicySymbol;
  readonly isDeclaration: boolean;
  /** Whether the name stands in quotes, so that a new one must be escaped. */
  readonly quoted: boolean;
}
