import type { CheckOptions, ValueType } from '@signalbox/plugin-api';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import { createDiagnostic } from '../diagnostics/diagnostic.ts';
import type { Diagnostic, DiagnosticDetails } from '../diagnostics/diagnostic.ts';
import type { Expression, PickRef, PropertyRef, ScoreTerm, SignalRef, TargetRef } from '../ir.ts';
import type { ExprNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { NameTable } from './catalogue/catalogue.ts';
import type { DefinedNames } from './defined-names.ts';
import { keyOfProperty, keyOfSignal } from './expression-key.ts';
import type { Observer } from './observer.ts';

/** What a name that the policy itself introduces stands for. */
export type BindingValue =
  /** `size` and `depth` of the expression in nodes. */
  | { readonly kind: 'value'; readonly expression: Expression; readonly size: number; readonly depth: number }
  | { readonly kind: 'scorer'; readonly terms: readonly ScoreTerm[]; readonly size: number }
  | { readonly kind: 'target'; readonly target: TargetRef }
  | { readonly kind: 'picker'; readonly pick: PickRef }
  /** Its own error is reported; uses of it are not. */
  | { readonly kind: 'poison' }
  | { readonly kind: 'import'; readonly exports: ReadonlyMap<string, Binding> }
  | { readonly kind: 'plugin'; readonly table: NameTable };

export type Binding = { readonly name: string; readonly span: Span; used: boolean } & BindingValue;

/** The names of one block, and of those around it. */
export interface Block {
  readonly bindings: Map<string, Binding>;
  readonly parent?: Block;
  /** Where each `let` of the block stands, to tell an early use from an unknown name. */
  readonly declared: Map<string, Span>;
}

export const createBlock = (parent?: Block): Block => ({
  bindings: new Map(),
  declared: new Map(),
  ...(parent === undefined ? {} : { parent }),
});

export const findBinding = (block: Block, name: string): Binding | undefined => {
  for (let at: Block | undefined = block; at !== undefined; at = at.parent) {
    const binding = at.bindings.get(name);
    if (binding !== undefined) return binding;
  }
  return undefined;
};

/** Everything that the parts of the checker share during one compilation. */
export interface Session {
  /** Who is told what names stand for; absent outside editors. */
  readonly observer?: Observer;
  report(code: DiagnosticCode, span: Span, message: string, details?: DiagnosticDetails): void;
  readonly diagnostics: readonly Diagnostic[];
  /** Source text of a span for messages: on one line, without comments, shortened. */
  textOf(span: Span): string;
  /** Source text of a span as it stands, for fixes. */
  rawOf(span: Span): string;
  /** Texts by file id; those of inlined expressions are added as they are parsed. */
  readonly texts: Map<string, string>;
  readonly catalogue: NameTable;
  /** `checkExpression`, which calls and is called by the parts of the checker below it. */
  readonly checkExpression: (session: Session, place: Place, node: ExprNode) => Expression | undefined;
  readonly defined: DefinedNames;
  readonly checkOptions: CheckOptions;
  readonly nowEpochMs: number;
  readonly strict: boolean;
  /** Catalogue keys that nothing feeds, as `candidate.kv_cache_used` or `request.text_language`. */
  readonly unprovided: ReadonlySet<string>;
  readonly signals: SignalRef[];
  readonly properties: PropertyRef[];
  signalIndex(ref: SignalRef): number;
  propertyIndex(ref: PropertyRef): number;
  /** Parsed texts of expressions that the catalogue gives, by text. */
  readonly inlineCache: Map<string, { readonly node?: ExprNode; readonly problem?: string }>;
  /**
   * Counts parts of expressions that are written once and stand in many places (uses of a `let`, a group's condition in each of its rules).
   * False once a policy of 1 MiB would grow to more than fits in memory; the error is reported at `span`, the first time.
   */
  spend(parts: number, span: Span): boolean;
  /** Indices of the `use` statements whose names are used. */
  readonly usedPlugins: Set<number>;
  /** Whether names may be missing because an import could not be read, so that unknown ones are not reported. */
  incomplete: boolean;
}

/** The typed expression of a node inside another one; undefined where an error has been reported. */
export const elaborate = (session: Session, place: Place, node: ExprNode): Expression | undefined =>
  session.checkExpression(session, place, node);

/** Where an expression stands: what it may read, and which names it sees. */
export interface Place {
  /**
   * `request`: signals. `candidate`: properties as well. `cluster`: only what exists without a request. `constant`: literals.
   */
  readonly scope: 'request' | 'candidate' | 'cluster' | 'constant';
  readonly block: Block;
  /** The clause, as messages call it. */
  readonly clause: string;
  /** For inlined expressions of the catalogue: the use, which takes the place of all spans inside. */
  readonly inlineAt?: Span;
  /** For inlined expressions: the options, by name. */
  readonly constants?: ReadonlyMap<
    string,
    { readonly type: ValueType; readonly value: number | string | boolean } | undefined
  >;
  readonly inlineDepth?: number;
  readonly insideAggregate?: boolean;
}

export interface SessionInput {
  readonly observer?: Observer;
  readonly catalogue: NameTable;
  /** `checkExpression`, which calls and is called by the parts of the checker below it. */
  readonly checkExpression: (session: Session, place: Place, node: ExprNode) => Expression | undefined;
  readonly defined: DefinedNames;
  readonly checkOptions: CheckOptions;
  readonly nowEpochMs: number;
  readonly strict: boolean;
  readonly unprovided: ReadonlySet<string>;
  readonly diagnostics: Diagnostic[];
  readonly texts: Map<string, string>;
}

const MAX_QUOTED = 60;
const MAX_COPIED = 1_000_000;

/** Names that a policy gives may hold any character; a headline is one line. */
const onOneLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (sign) =>
    sign === '\n' ? '\\n' : `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const squeeze = (text: string): string => {
  const line = /[\n\r]/.test(text) ? text.replaceAll(/#[^\n\r]*/g, ' ').replaceAll(/\s+/g, ' ') : text;
  const points = Array.from(line);
  return points.length <= MAX_QUOTED ? line : `${points.slice(0, MAX_QUOTED - 1).join('')}…`;
};

export const createSession = (input: SessionInput): Session => {
  const rawOf = (span: Span): string => (input.texts.get(span.file) ?? '').slice(span.start, span.end);
  const signals: SignalRef[] = [];
  const properties: PropertyRef[] = [];
  const signalIndices = new Map<string, number>();
  const propertyIndices = new Map<string, number>();
  const intern = <T>(table: T[], indices: Map<string, number>, key: string, ref: T): number => {
    const known = indices.get(key);
    if (known !== undefined) return known;
    indices.set(key, table.length);
    table.push(ref);
    return table.length - 1;
  };
  let spent = 0;
  return {
    ...(input.observer === undefined ? {} : { observer: input.observer }),
    spend(parts, span) {
      const before = spent;
      spent += parts;
      if (spent <= MAX_COPIED) return true;
      if (before <= MAX_COPIED) {
        this.report(
          'E0142',
          span,
          `the policy grows to more than ${MAX_COPIED} parts when its \`let\`s and groups are written out`,
          {
            help: 'each use of a `let`, and each rule of a group, counts with all that it stands for',
          },
        );
      }
      return false;
    },
    report(code, span, message, details) {
      input.diagnostics.push(
        createDiagnostic(
          code,
          span,
          onOneLine(message),
          details?.help === undefined ? details : { ...details, help: onOneLine(details.help) },
        ),
      );
    },
    diagnostics: input.diagnostics,
    textOf: (span) => squeeze(rawOf(span)),
    rawOf,
    texts: input.texts,
    catalogue: input.catalogue,
    checkExpression: input.checkExpression,
    defined: input.defined,
    checkOptions: input.checkOptions,
    nowEpochMs: input.nowEpochMs,
    strict: input.strict,
    unprovided: input.unprovided,
    signals,
    properties,
    signalIndex: (ref) => intern(signals, signalIndices, keyOfSignal(ref), ref),
    propertyIndex: (ref) => intern(properties, propertyIndices, keyOfProperty(ref), ref),
    inlineCache: new Map(),
    usedPlugins: new Set(),
    incomplete: false,
  };
};
