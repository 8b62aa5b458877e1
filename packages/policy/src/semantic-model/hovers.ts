import type { CatalogueEntry } from '../check/catalogue/entries.ts';
import { typeOfSchema } from '../check/options.ts';
import { formatNumber } from '../check/value-types.ts';
import type { EntryNode, Node } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { keyDocAt, schemaAt } from './keys.ts';
import type { SemanticModel } from './semantic-model.ts';
import type { PolicySymbol } from './symbols.ts';
import { typeText, unitText } from './type-text.ts';
import { pathTo } from './walk-tree.ts';

/** What is said of the thing at a place. */
export interface PolicyHover {
  readonly span: Span;
  /** One line of the language that names the thing and its type. */
  readonly title: string;
  /** Markdown. */
  readonly doc: string;
}

const SCOPES = {
  constant: 'a constant',
  request: 'of the request',
  cluster: 'of the cluster, known without a request',
  candidate: 'of one endpoint: stands in `where`, `by` and in aggregates',
};

const formulaOf = (entry: CatalogueEntry): string | undefined =>
  (entry.kind === 'scorer' || entry.kind === 'property') && entry.expression !== undefined
    ? `Computed as \`${entry.expression}\`.`
    : undefined;

const titleOf = (symbol: PolicySymbol): string => {
  const type = symbol.type === undefined ? '' : `: ${typeText(symbol.type)}`;
  if (symbol.kind === 'let')
    return `let ${symbol.name}${symbol.type === undefined ? (symbol.letKind === undefined ? '' : `: ${symbol.letKind}`) : type}`;
  if (symbol.kind === 'import' || symbol.kind === 'plugin')
    return `${symbol.kind === 'plugin' ? 'use' : 'import'} … as ${symbol.name}`;
  if (symbol.kind === 'route') return `route ${JSON.stringify(symbol.name)}`;
  if (['tier', 'endpoint', 'slo', 'limit', 'tenant', 'alarm', 'param'].includes(symbol.kind))
    return `define ${symbol.kind} ${JSON.stringify(symbol.name)}${type}`;
  return `${symbol.kind} ${symbol.name}${type}`;
};

const linesOf = (symbol: PolicySymbol): readonly string[] => {
  const { entry } = symbol;
  const facts: string[] = [];
  if (symbol.scope !== undefined && symbol.kind !== 'scorer' && symbol.kind !== 'picker')
    facts.push(SCOPES[symbol.scope]);
  if (symbol.known !== undefined)
    facts.push(symbol.known === 'always' ? 'always known' : 'can be unknown: supply a value by `??`, or ask `exists`');
  const unit = symbol.type === undefined ? undefined : unitText(symbol.type);
  if (unit !== undefined) facts.push(unit);
  if (entry?.kind === 'scorer') facts.push(entry.cost ? 'a cost: lower is better' : 'a score: higher is better');
  const formula = entry === undefined ? undefined : formulaOf(entry);
  return [
    ...(symbol.doc === undefined ? [] : [symbol.doc]),
    ...(facts.length === 0 ? [] : [`*${facts.join(' · ')}*`]),
    ...(formula === undefined ? [] : [formula]),
    ...(symbol.plugin === undefined ? [] : [`Provided by \`${symbol.plugin}\`.`]),
  ];
};

/** A key of a definition or of the options of a plugin. */
const keyHover = (model: SemanticModel, path: readonly Node[]): PolicyHover | undefined => {
  const key = path.at(-1);
  if (key?.kind !== 'key') return undefined;
  const entries = path.filter((node): node is EntryNode => node.kind === 'entry');
  const keys = path.flatMap((node, index) =>
    node.kind === 'entry' ? [node.key.text] : node.kind === 'list' && path[index + 1]?.kind === 'object' ? ['[]'] : [],
  );
  const owner = path.find((node) => node.kind === 'define' || node.kind === 'use');
  if (owner === undefined || entries.length === 0) return undefined;
  if (owner.kind === 'use') {
    const schema = schemaAt(model.manifest(owner.package.value), keys);
    if (schema === undefined) return undefined;
    const type = typeOfSchema(schema);
    const standard = schema.default === undefined ? [] : [`Default: \`${JSON.stringify(schema.default)}\``];
    return {
      span: key.span,
      title: `${key.text}: ${type === undefined ? (schema.type ?? 'value') : typeText(type)}`,
      doc: [...(schema.description === undefined ? [] : [schema.description]), ...standard].join('\n\n'),
    };
  }
  const own =
    keys[0] === 'endpoints' && keys[1] === '[]'
      ? (['endpoint', keys.slice(2)] as const)
      : ([owner.definedKind.text, keys] as const);
  const known = keyDocAt(own[0], own[1]);
  if (known === undefined) return undefined;
  const type = known.type === undefined ? known.words?.join(' | ') : typeText(known.type);
  return { span: key.span, title: `${key.text}${type === undefined ? '' : `: ${type}`}`, doc: known.doc };
};

/** A literal whose spelling hides its value: `32Ki`, `60/min`. */
const literalHover = (path: readonly Node[]): PolicyHover | undefined => {
  const node = path.at(-1);
  if (node?.kind !== 'duration' && node?.kind !== 'count' && node?.kind !== 'bytes' && node?.kind !== 'rate')
    return undefined;
  const value =
    node.kind === 'rate' && node.of === 'money' ? `$${String(node.value)}/s` : formatNumber(node.value, node.kind);
  return { span: node.span, title: `${node.raw}: ${node.kind}`, doc: value === node.raw ? '' : `\`${value}\`` };
};

/** What stands at a place: type, unit, when it is known, what it is for. */
export const hoverAt = (model: SemanticModel, path: string, offset: number): PolicyHover | undefined => {
  const reference = model.referenceAt(path, offset);
  if (reference !== undefined)
    return { span: reference.span, title: titleOf(reference.symbol), doc: linesOf(reference.symbol).join('\n\n') };
  const tree = model.tree(path);
  if (tree === undefined) return undefined;
  const nodes = pathTo(tree, offset);
  return keyHover(model, nodes) ?? literalHover(nodes);
};
