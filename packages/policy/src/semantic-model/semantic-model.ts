import type { PluginManifest, ValueType } from '@signalbox/plugin-api';
import { functionDocs } from '../check/catalogue/function-docs.ts';
import type { CatalogueEntry } from '../check/catalogue/entries.ts';
import { modifierTable } from '../check/catalogue/modifiers.ts';
import { checkExpression } from '../check/expression.ts';
import { takenBy } from '../check/lets.ts';
import type { LoadedFile } from '../check/load-files.ts';
import type { DefinedKind, NameFamily, Observer } from '../check/observer.ts';
import type { Resolved } from '../check/resolve-name.ts';
import { createBlock, createSession } from '../check/session.ts';
import type { Binding, Block, Session } from '../check/session.ts';
import { compileObserved } from '../compile.ts';
import type { CompileInput, CompileResult } from '../compile.ts';
import type { ArgsNode, ExprNode, FileNode, NameNode, Node, StatementNode, StringNode } from '../syntax/ast.ts';
import { parsePolicy } from '../syntax/parse-policy.ts';
import type { PolicyToken } from '../syntax/parse-result.ts';
import type { Span } from '../syntax/span.ts';
import type { PolicyReference, PolicySymbol } from './symbols.ts';
import { walkTree } from './walk-tree.ts';

/** A call as written, for help with its arguments. */
export interface PolicyCall {
  readonly span: Span;
  readonly entry: CatalogueEntry;
  readonly args: ArgsNode;
}

/**
 * What editors ask of a policy, whole or broken: the outcome of compiling it, and what each name in it stands for, in all its files. Names
 * are those that the checker resolved; nothing is looked up a second time.
 */
export interface SemanticModel {
  readonly result: CompileResult;
  readonly main: string;
  /** Paths of the files that took part, the main one first. */
  readonly paths: readonly string[];
  tree(path: string): FileNode | undefined;
  tokens(path: string): readonly PolicyToken[];
  /** The path that an `import` of a file leads to. */
  importTarget(path: string, statement: StatementNode): string | undefined;
  /** References in one file in the order of the text, those that overlap outermost first. */
  references(path: string): readonly PolicyReference[];
  /** The innermost reference that holds the offset, or ends there. */
  referenceAt(path: string, offset: number): PolicyReference | undefined;
  /** All places, in all files, where a symbol stands. */
  referencesTo(key: string): readonly PolicyReference[];
  /** The calls of catalogue names in one file. */
  calls(path: string): readonly PolicyCall[];
  /** Bindings in scope at a place, innermost first: lets above it, aliases. */
  bindingsAt(path: string, offset: number): readonly Binding[];
  /** The type of an expression as it would be at a place; undefined where it has none. */
  typeOf(path: string, offset: number, text: string): ValueType | undefined;
  /** What already has a name, as messages call it; undefined where it is free for a `let` or an alias. */
  takenName(path: string, offset: number, name: string): string | undefined;
  /** The checker's own state: catalogue and defined names. */
  readonly session: Session | undefined;
  /** The manifest of a package that some `use` named. */
  manifest(packageName: string): PluginManifest | undefined;
}

const keyOf = ({ file, start }: Span): string => `${file}:${start}`;

/** What was told of places, by where they begin; of one place the last. Told often and asked rarely, so the index is made when it is asked. */
class PlaceTable<T> {
  private readonly told: (readonly [Span, T])[] = [];
  private index: Map<string, T> | undefined;

  set(span: Span, value: T): void {
    this.told.push([span, value]);
    this.index = undefined;
  }

  get(span: Span): T | undefined {
    return this.table().get(keyOf(span));
  }

  values(): Iterable<T> {
    return this.table().values();
  }

  private table(): Map<string, T> {
    return (this.index ??= new Map(this.told.map(([span, value]) => [keyOf(span), value])));
  }
}

interface Facts {
  session: Session | undefined;
  main: LoadedFile | undefined;
  readonly blocks: { readonly block: Block; readonly span: Span }[];
  readonly names: PlaceTable<{ readonly node: NameNode; readonly resolved: Resolved }>;
  readonly entries: PlaceTable<{
    readonly entry: CatalogueEntry;
    readonly span: Span;
    readonly args: ArgsNode | undefined;
  }>;
  readonly words: PlaceTable<{ readonly span: Span; readonly name: string }>;
  readonly families: PlaceTable<{
    readonly node: NameNode;
    readonly family: NameFamily;
    readonly member: string;
    readonly type: ValueType;
  }>;
  readonly defined: PlaceTable<{ readonly kind: DefinedKind; readonly name: string; readonly span: Span }>;
  readonly manifests: Map<string, PluginManifest>;
}

const createFacts = (): Facts => ({
  session: undefined,
  main: undefined,
  blocks: [],
  names: new PlaceTable(),
  entries: new PlaceTable(),
  words: new PlaceTable(),
  families: new PlaceTable(),
  defined: new PlaceTable(),
  manifests: new Map(),
});

const observe = (facts: Facts): Observer => ({
  started(session, main) {
    facts.session = session;
    facts.main = main;
  },
  block: (block, span) => void facts.blocks.push({ block, span }),
  name: (node, resolved) => facts.names.set(node.span, { node, resolved }),
  entry: (span, entry, args) => facts.entries.set(span, { entry, span, args }),
  word: (span, name) => facts.words.set(span, { span, name }),
  family: (node, family, member, type) => facts.families.set(node.span, { node, family, member, type }),
  defined: (kind, name, span) => facts.defined.set(span, { kind, name, span }),
  plugin: (node, manifest) => void facts.manifests.set(node.package.value, manifest),
});

const scopeOfEntry = (entry: CatalogueEntry): PolicySymbol['scope'] | undefined =>
  entry.kind === 'property' || entry.kind === 'scorer' || entry.kind === 'picker'
    ? 'candidate'
    : entry.kind === 'signal' && entry.global
      ? 'cluster'
      : 'request';

/** The symbol of a name that the catalogue or a plugin provides. */
export const symbolOfEntry = (entry: CatalogueEntry): PolicySymbol => {
  const scope = scopeOfEntry(entry);
  const plugin = entry.provider.kind === 'plugin' ? entry.provider.plugin : undefined;
  return {
    key: `catalogue ${entry.kind} ${plugin ?? ''} ${entry.name}`,
    kind: entry.kind,
    name: entry.name,
    entry,
    doc: entry.doc,
    ...(scope === undefined ? {} : { scope }),
    ...(entry.kind === 'signal' || entry.kind === 'property' ? { type: entry.type } : {}),
    ...(entry.kind === 'signal' ? { known: entry.known } : {}),
    ...(plugin === undefined ? {} : { plugin }),
  };
};

/** The symbol of a name that the policy binds. `doc` is the doc comment of its statement. */
export const symbolOfBinding = (binding: Binding, doc?: string): PolicySymbol => {
  const kind = binding.kind === 'import' || binding.kind === 'plugin' ? binding.kind : 'let';
  const base = {
    key: `${kind} ${keyOf(binding.span)}`,
    kind,
    name: binding.name,
    declaration: binding.span,
    ...(doc === undefined ? {} : { doc }),
  } as const;
  switch (binding.kind) {
    case 'value':
      return { ...base, letKind: 'value', type: binding.expression.type, scope: binding.expression.scope };
    case 'scorer':
    case 'picker':
    case 'target':
      return { ...base, letKind: binding.kind };
    default:
      return base;
  }
};

/** The text between the quotes of a string as written. */
const insideQuotes = (span: Span): Span => ({
  ...span,
  start: span.start + 1,
  end: Math.max(span.start + 1, span.end - 1),
});

const isString = (node: Node): node is StringNode => node.kind === 'string';

/** All files that take part, each once, and where each import leads. */
const gatherFiles = (main: LoadedFile): ReadonlyMap<string, LoadedFile> => {
  const files = new Map<string, LoadedFile>();
  const visit = (file: LoadedFile): void => {
    // A file that is imported twice is loaded once; a second, spliced load has the same text.
    if (files.has(file.path)) return;
    files.set(file.path, file);
    for (const target of file.imports.values()) visit(target);
  };
  visit(main);
  return files;
};

const statementsOf = function* (statements: readonly StatementNode[]): Iterable<StatementNode> {
  for (const statement of statements) {
    yield statement;
    if (statement.kind === 'group' || statement.kind === 'broken') yield* statementsOf(statement.statements);
  }
};

/** Collects the references of all files from what was observed. */
class ReferenceCollector {
  private readonly found = new Map<string, PolicyReference[]>();
  private readonly seen = new Set<string>();
  private readonly docs = new Map<string, string>();
  private readonly declarations = new Map<
    string,
    { readonly kind: DefinedKind; readonly name: string; readonly span: Span }
  >();
  private readonly routes = new Map<string, Span>();
  private readonly facts: Facts;
  private readonly files: ReadonlyMap<string, LoadedFile>;

  constructor(facts: Facts, files: ReadonlyMap<string, LoadedFile>) {
    this.facts = facts;
    this.files = files;
  }

  collect(): ReadonlyMap<string, readonly PolicyReference[]> {
    for (const file of this.files.values()) this.readStatements(file.tree);
    for (const { block } of this.facts.blocks)
      for (const binding of block.bindings.values()) this.add(binding.span, this.symbolOf(binding), true, false);
    for (const { node, resolved } of this.facts.names.values()) this.addName(node, resolved);
    for (const { span, entry } of this.facts.entries.values()) {
      // A key of `given endpoint`; names in expressions are taken with their resolution.
      if (this.facts.names.get(span) === undefined && this.isFile(span) && this.textAt(span) === entry.name)
        this.add(span, symbolOfEntry(entry), false, false);
    }
    for (const word of this.facts.words.values()) this.add(word.span, functionSymbol(word.name), false, false);
    for (const family of this.facts.families.values()) this.addFamily(family);
    for (const { kind, name, span } of this.facts.defined.values()) this.addDefined(kind, name, span);
    for (const file of this.files.values()) walkTree(file.tree, (node) => this.readNode(node));
    for (const list of this.found.values()) list.sort((a, b) => a.span.start - b.span.start || b.span.end - a.span.end);
    return this.found;
  }

  private isFile(span: Span): boolean {
    return this.files.has(span.file);
  }

  private textAt(span: Span): string {
    return this.files.get(span.file)?.tree.text.slice(span.start, span.end) ?? '';
  }

  private symbolOf(binding: Binding): PolicySymbol {
    return symbolOfBinding(binding, this.docs.get(keyOf(binding.span)));
  }

  private add(span: Span, symbol: PolicySymbol, isDeclaration: boolean, quoted: boolean): void {
    if (!this.isFile(span) || span.end <= span.start) return;
    const key = `${keyOf(span)}:${span.end}`;
    if (this.seen.has(key)) return;
    this.seen.add(key);
    const list = this.found.get(span.file) ?? [];
    this.found.set(span.file, list);
    list.push({ span, symbol, isDeclaration, quoted });
  }

  /** Notes doc comments and the names that definitions and routes declare. */
  private readStatements(tree: FileNode): void {
    for (const statement of statementsOf(tree.statements)) {
      if (statement.kind === 'let' && statement.doc !== undefined)
        this.docs.set(keyOf(statement.name.span), statement.doc);
      if ((statement.kind === 'import' || statement.kind === 'use') && statement.alias !== undefined) {
        const doc =
          statement.doc ??
          (statement.kind === 'import' ? `The file ${statement.path.raw}.` : `The plugin ${statement.package.raw}.`);
        this.docs.set(keyOf(statement.alias.span), doc);
      }
      if (statement.kind === 'define' && statement.name !== undefined) {
        const kind = statement.definedKind.text as DefinedKind;
        if (statement.doc !== undefined) this.docs.set(keyOf(statement.name.span), statement.doc);
        const at = { kind, name: statement.name.value, span: statement.name.span };
        this.declarations.set(keyOf(statement.name.span), at);
        if (DECLARED_KINDS.has(kind))
          this.add(
            insideQuotes(statement.name.span),
            this.definedSymbol(kind, statement.name.value, statement.name.span),
            true,
            true,
          );
      }
      if (statement.kind === 'route' && statement.label !== undefined && !this.routes.has(statement.label.value)) {
        if (statement.doc !== undefined) this.docs.set(keyOf(statement.label.span), statement.doc);
        this.routes.set(statement.label.value, statement.label.span);
        this.add(
          insideQuotes(statement.label.span),
          this.definedSymbol('route', statement.label.value, statement.label.span),
          true,
          true,
        );
      }
    }
  }

  private definedSymbol(kind: DefinedKind, name: string, declaration: Span | undefined): PolicySymbol {
    const doc = declaration === undefined ? undefined : this.docs.get(keyOf(declaration));
    const type = kind === 'alarm' ? 'bool' : kind === 'param' ? this.paramType(declaration) : undefined;
    return {
      key: declaration === undefined ? `${kind} ${name}` : `${kind} ${keyOf(declaration)}`,
      kind,
      name,
      ...(declaration === undefined ? {} : { declaration: insideQuotes(declaration) }),
      ...(doc === undefined ? {} : { doc }),
      ...(type === undefined ? {} : { type }),
    };
  }

  private paramType(declaration: Span | undefined): ValueType | undefined {
    if (declaration === undefined) return undefined;
    for (const param of this.facts.session?.defined.params.values() ?? [])
      if (keyOf(param.span) === keyOf(declaration)) return param.type;
    return undefined;
  }

  private addName(node: NameNode, resolved: Resolved): void {
    if (!this.isFile(node.span)) return;
    const [first] = node.parts;
    if (first === undefined) return;
    const entry = this.facts.entries.get(node.span)?.entry;
    if (resolved.kind === 'binding') {
      const { binding } = resolved;
      const rest = restOf(node);
      if (rest === undefined) this.add(first.span, this.symbolOf(binding), false, false);
      else {
        this.addAlias(first.text, first.span);
        this.add(rest, this.symbolOf(binding), false, false);
      }
      return;
    }
    if (resolved.kind === 'poison') {
      // What its declaration says is wrong; its name is known all the same.
      const binding = this.bindingAt(first.text, first.span);
      if (binding !== undefined) this.add(first.span, this.symbolOf(binding), false, false);
      return;
    }
    if (resolved.kind !== 'table') return;
    if (resolved.table === this.facts.session?.catalogue) {
      if (entry !== undefined) this.add(node.span, symbolOfEntry(entry), false, false);
      return;
    }
    this.addAlias(first.text, first.span);
    const rest = restOf(node);
    if (entry !== undefined && rest !== undefined) this.add(rest, symbolOfEntry(entry), false, false);
  }

  /** The first part of a dotted name, which is an alias. */
  private addAlias(name: string, span: Span, quoted = false): void {
    const binding = this.bindingAt(name, span);
    if (binding?.kind === 'import' || binding?.kind === 'plugin') this.add(span, this.symbolOf(binding), false, quoted);
  }

  /** What a name is bound to in the blocks around a place, the innermost first. */
  private bindingAt(name: string, place: Span): Binding | undefined {
    let found: { readonly binding: Binding; readonly size: number } | undefined;
    for (const { block, span } of this.facts.blocks) {
      const binding = holds(span, place.file, place.start) ? block.bindings.get(name) : undefined;
      const size = span.end - span.start;
      if (binding !== undefined && (found === undefined || size < found.size)) found = { binding, size };
    }
    return found?.binding;
  }

  private addFamily({
    node,
    family,
    member,
    type,
  }: {
    readonly node: NameNode;
    readonly family: NameFamily;
    readonly member: string;
    readonly type: ValueType;
  }): void {
    if (family === 'alarm' || family === 'param') {
      const rest = restOf(node);
      if (rest !== undefined) this.addDefinedAt(family, member, rest, false);
      return;
    }
    const scope = family === 'labels' ? 'candidate' : 'request';
    const doc =
      family === 'labels'
        ? 'A label of the endpoint, as its definition declares it.'
        : 'A field of the tenant of the request.';
    this.add(
      node.span,
      { key: `member ${node.text}`, kind: 'member', name: node.text, type, scope, known: 'maybe', doc },
      false,
      false,
    );
  }

  private addDefined(kind: DefinedKind, name: string, span: Span): void {
    if (!this.isFile(span) || !/^".*"$/s.test(this.textAt(span))) return;
    this.addDefinedAt(kind, name, insideQuotes(span), true);
  }

  /** A reference by the full name `name`, whose last part is the declared one. */
  private addDefinedAt(kind: DefinedKind, name: string, span: Span, quoted: boolean): void {
    const declaration = this.declarationOf(kind, name);
    const local = declaration === undefined ? name : (this.declarations.get(keyOf(declaration))?.name ?? name);
    const prefix = name.endsWith(local) ? name.length - local.length : 0;
    const alias = prefix === 0 ? undefined : name.slice(0, name.indexOf('.'));
    if (alias !== undefined) this.addAlias(alias, { ...span, end: span.start + alias.length }, quoted);
    this.add(
      { ...span, start: Math.min(span.end, span.start + prefix) },
      this.definedSymbol(kind, local, declaration),
      false,
      quoted,
    );
  }

  private declarationOf(kind: DefinedKind, name: string): Span | undefined {
    const { session } = this.facts;
    if (kind === 'route') return this.routes.get(name);
    const names = session === undefined ? undefined : session.defined[`${kind}s`];
    const span = names?.get(name)?.span;
    return span !== undefined && this.declarations.has(keyOf(span)) ? span : undefined;
  }

  /** What stands in the tree alone: modifiers, and names of tiers and endpoints that are compared as texts. */
  private readNode(node: Node): void {
    if (node.kind === 'modifier') {
      const spec = modifierTable.get(node.name.text);
      if (spec === undefined) return;
      const symbol: PolicySymbol = {
        key: `modifier ${spec.name}`,
        kind: 'modifier',
        name: spec.name,
        doc: `${spec.doc}\n\nWritten as \`${spec.form}\`.`,
      };
      this.add(node.name.span, symbol, false, false);
    } else if (node.kind === 'compare') {
      this.readComparison(node.left, [node.right]);
      this.readComparison(node.right, [node.left]);
    } else if (node.kind === 'in') this.readComparison(node.subject, node.set.kind === 'list' ? node.set.items : []);
  }

  private readComparison(subject: ExprNode, texts: readonly ExprNode[]): void {
    if (subject.kind !== 'name') return;
    const entry = this.facts.entries.get(subject.span)?.entry;
    if (entry?.kind !== 'property' || entry.provider.kind !== 'builtin') return;
    const kind = entry.name === 'tier' ? 'tier' : entry.name === 'name' ? 'endpoint' : undefined;
    if (kind === undefined) return;
    for (const text of texts.filter(isString))
      if (this.declarationOf(kind, text.value) !== undefined)
        this.addDefinedAt(kind, text.value, insideQuotes(text.span), true);
  }
}

const DECLARED_KINDS: ReadonlySet<string> = new Set(['tier', 'endpoint', 'slo', 'limit', 'tenant', 'alarm', 'param']);

/** The parts of a dotted name behind the first. */
const restOf = (node: NameNode): Span | undefined => {
  const [, second] = node.parts;
  return second === undefined ? undefined : { ...node.span, start: second.span.start };
};

const functionSymbol = (name: string): PolicySymbol => ({
  key: `function ${name}`,
  kind: 'function',
  name,
  ...(functionDocs[name] === undefined
    ? {}
    : { doc: `${functionDocs[name].doc}\n\nWritten as \`${functionDocs[name].form}\`.` }),
});

const holds = (span: Span, path: string, offset: number): boolean =>
  span.file === path && span.start <= offset && offset <= span.end;

/** Compiles a policy, whole or broken, and keeps what its names stand for. Never throws on any text. */
export const buildSemanticModel = (input: CompileInput): SemanticModel => {
  const facts = createFacts();
  const result = compileObserved(input, observe(facts));
  const files = facts.main === undefined ? new Map<string, LoadedFile>() : gatherFiles(facts.main);
  let collected: ReadonlyMap<string, readonly PolicyReference[]> | undefined;
  const all = (): ReadonlyMap<string, readonly PolicyReference[]> =>
    (collected ??= new ReferenceCollector(facts, files).collect());
  const references = (path: string): readonly PolicyReference[] => all().get(path) ?? [];

  const blockAt = (path: string, offset: number): Block => {
    let best: { readonly block: Block; readonly span: Span } | undefined;
    for (const candidate of facts.blocks) {
      if (!holds(candidate.span, path, offset)) continue;
      if (best === undefined || candidate.span.end - candidate.span.start <= best.span.end - best.span.start)
        best = candidate;
    }
    return best?.block ?? facts.blocks[0]?.block ?? createBlock();
  };

  const scratch = (session: Session): Session =>
    createSession({
      catalogue: session.catalogue,
      checkExpression,
      defined: session.defined,
      checkOptions: session.checkOptions,
      nowEpochMs: session.nowEpochMs,
      strict: false,
      unprovided: session.unprovided,
      diagnostics: [],
      texts: new Map(),
    });

  return {
    result,
    main: input.path,
    paths: result.files.map(({ path }) => path),
    tree: (path) => files.get(path)?.tree,
    tokens: (path) => files.get(path)?.tokens ?? [],
    importTarget(path, statement) {
      return statement.kind === 'import' ? files.get(path)?.imports.get(statement)?.path : undefined;
    },
    references,
    referenceAt: (path, offset) => references(path).findLast(({ span }) => span.start <= offset && offset <= span.end),
    referencesTo: (key) => [...all().values()].flatMap((list) => list.filter(({ symbol }) => symbol.key === key)),
    calls: (path) =>
      [...facts.entries.values()].flatMap(({ entry, span, args }) =>
        span.file === path && args !== undefined && facts.names.get(span) !== undefined ? [{ span, entry, args }] : [],
      ),
    bindingsAt(path, offset) {
      const found: Binding[] = [];
      for (let block: Block | undefined = blockAt(path, offset); block !== undefined; block = block.parent) {
        for (const binding of block.bindings.values())
          if (binding.span.file !== path || binding.span.end < offset) found.push(binding);
      }
      return found;
    },
    typeOf(path, offset, text) {
      const { session } = facts;
      if (session === undefined) return undefined;
      const { file } = parsePolicy(`let x = ${text}`, { file: path });
      const [statement] = file.statements;
      if (statement?.kind !== 'let' || file.statements.length > 1) return undefined;
      const place = { scope: 'candidate', block: blockAt(path, offset), clause: 'let' } as const;
      return checkExpression(scratch(session), place, statement.value)?.type;
    },
    takenName(path, offset, name) {
      return facts.session === undefined ? undefined : takenBy(facts.session, blockAt(path, offset), name)?.what;
    },
    session: facts.session,
    // A `use` that does not parse yet is not checked, and its options are asked for all the same.
    manifest: (packageName) => facts.manifests.get(packageName) ?? input.resolvePlugin?.(packageName).manifest,
  };
};
