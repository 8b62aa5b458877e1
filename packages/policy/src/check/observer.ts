import type { PluginManifest, ValueType } from '@signalbox/plugin-api';
import type { ArgsNode, NameNode, UseNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { CatalogueEntry } from './catalogue/entries.ts';
import type { LoadedFile } from './load-files.ts';
import type { Resolved } from './resolve-name.ts';
import type { Block, Session } from './session.ts';

/** Kinds of things that a `define` or a rule introduces and that are named by a text in quotes (or behind a prefix such as `alarm.`). */
export type DefinedKind = 'tier' | 'endpoint' | 'slo' | 'limit' | 'tenant' | 'alarm' | 'param' | 'route';

/** Families of names whose members the policy declares. */
export type NameFamily = 'tenant' | 'labels' | 'alarm' | 'param';

/**
 * What the checker tells of its work to whoever asks (editors): each name as it is resolved, each block as it is entered. It sees the same
 * resolution that the program is made of, and changes nothing. Spans may lie in inlined texts of the catalogue, which are no files.
 */
export interface Observer {
  /** Before anything is checked. */
  started(session: Session, main: LoadedFile): void;
  /** The names of `block` are in scope within `span`. */
  block(block: Block, span: Span): void;
  /** A dotted name was followed. */
  name(node: NameNode, resolved: Resolved): void;
  /** The use of a catalogue name that begins at `span`; `args` are its arguments. */
  entry(span: Span, entry: CatalogueEntry, args?: ArgsNode): void;
  /** A name that is part of the language at `span`: an aggregate, a conversion, `lowest`. */
  word(span: Span, name: string): void;
  /** `tenant.region`, `labels.rack`, `alarm.hot`, `param.zone`. */
  family(node: NameNode, family: NameFamily, member: string, type: ValueType): void;
  /** `name` in full (behind the alias of its import) stands at `span`, as a text or a member. */
  defined(kind: DefinedKind, name: string, span: Span): void;
  /** A package that was found. */
  plugin(node: UseNode, manifest: PluginManifest): void;
}
