import type { PolicyReference, PolicyToken, SemanticModel, SymbolKind } from '@signalbox/policy';
import { SemanticTokenModifiers, SemanticTokensBuilder, SemanticTokenTypes } from 'vscode-languageserver';
import type { SemanticTokens, SemanticTokensLegend } from 'vscode-languageserver';
import { positionAt } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

const TYPES = [
  SemanticTokenTypes.keyword,
  SemanticTokenTypes.comment,
  SemanticTokenTypes.string,
  SemanticTokenTypes.regexp,
  SemanticTokenTypes.number,
  SemanticTokenTypes.operator,
  SemanticTokenTypes.variable,
  SemanticTokenTypes.parameter,
  SemanticTokenTypes.property,
  SemanticTokenTypes.function,
  SemanticTokenTypes.macro,
  SemanticTokenTypes.namespace,
  SemanticTokenTypes.type,
  SemanticTokenTypes.enumMember,
  SemanticTokenTypes.decorator,
] as const;
type TokenType = (typeof TYPES)[number];

const MODIFIERS = [
  SemanticTokenModifiers.declaration,
  SemanticTokenModifiers.readonly,
  SemanticTokenModifiers.documentation,
  SemanticTokenModifiers.defaultLibrary,
] as const;
type Modifier = (typeof MODIFIERS)[number];

export const semanticTokensLegend: SemanticTokensLegend = { tokenTypes: [...TYPES], tokenModifiers: [...MODIFIERS] };

const OF_SYMBOL: { readonly [kind in SymbolKind]: TokenType } = {
  let: SemanticTokenTypes.variable,
  import: SemanticTokenTypes.namespace,
  plugin: SemanticTokenTypes.namespace,
  member: SemanticTokenTypes.parameter,
  signal: SemanticTokenTypes.parameter,
  property: SemanticTokenTypes.property,
  scorer: SemanticTokenTypes.function,
  picker: SemanticTokenTypes.function,
  admission: SemanticTokenTypes.function,
  function: SemanticTokenTypes.function,
  modifier: SemanticTokenTypes.macro,
  tier: SemanticTokenTypes.string,
  endpoint: SemanticTokenTypes.string,
  slo: SemanticTokenTypes.string,
  limit: SemanticTokenTypes.string,
  tenant: SemanticTokenTypes.string,
  alarm: SemanticTokenTypes.parameter,
  param: SemanticTokenTypes.parameter,
  route: SemanticTokenTypes.string,
};

const KINDS_OF_THINGS: ReadonlySet<string> = new Set(['tier', 'endpoint', 'any']);

interface Classified {
  readonly type: TokenType;
  readonly modifiers: readonly Modifier[];
}

const plainly = (type: TokenType, ...modifiers: readonly Modifier[]): Classified => ({ type, modifiers });

const ofReference = ({ symbol, isDeclaration }: PolicyReference): Classified => {
  const modifiers: Modifier[] = [];
  if (isDeclaration) modifiers.push(SemanticTokenModifiers.declaration);
  if (symbol.kind === 'let') modifiers.push(SemanticTokenModifiers.readonly);
  if (symbol.declaration === undefined && symbol.kind !== 'member')
    modifiers.push(SemanticTokenModifiers.defaultLibrary);
  return { type: OF_SYMBOL[symbol.kind], modifiers };
};

/** What a name is by the words around it, where it stands for nothing that is known. */
const ofPlace = (before: PolicyToken | undefined, token: PolicyToken): Classified => {
  if (before?.text === '@') return plainly(SemanticTokenTypes.decorator);
  if (before?.text === 'define' || before?.text === 'given' || KINDS_OF_THINGS.has(token.text))
    return plainly(SemanticTokenTypes.type);
  if (before?.text === '.') return plainly(SemanticTokenTypes.parameter);
  return plainly(SemanticTokenTypes.enumMember);
};

const classify = (
  token: PolicyToken,
  before: PolicyToken | undefined,
  after: PolicyToken | undefined,
  reference: PolicyReference | undefined,
): Classified | undefined => {
  switch (token.kind) {
    case 'keyword':
      return plainly(after?.text === ':' ? SemanticTokenTypes.property : SemanticTokenTypes.keyword);
    case 'comment':
      return token.text.startsWith('##')
        ? plainly(SemanticTokenTypes.comment, SemanticTokenModifiers.documentation)
        : plainly(SemanticTokenTypes.comment);
    case 'string':
      return plainly(after?.text === ':' ? SemanticTokenTypes.property : SemanticTokenTypes.string);
    case 'regex':
      return plainly(SemanticTokenTypes.regexp);
    case 'number':
      return plainly(SemanticTokenTypes.number);
    case 'operator':
      return plainly(SemanticTokenTypes.operator);
    case 'name':
      if (reference !== undefined) return ofReference(reference);
      return after?.text === ':' ? plainly(SemanticTokenTypes.property) : ofPlace(before, token);
    default:
      return undefined;
  }
};

/** The reference that holds each token, both in the order of the text. */
const referenceFinder = (
  references: readonly PolicyReference[],
): ((token: PolicyToken) => PolicyReference | undefined) => {
  let next = 0;
  let open: PolicyReference[] = [];
  return ({ start, end }) => {
    for (
      let reference = references[next];
      reference !== undefined && reference.span.start <= start;
      reference = references[next]
    ) {
      open.push(reference);
      next += 1;
    }
    open = open.filter(({ span }) => span.end > start);
    return open.findLast(({ span }) => end <= span.end);
  };
};

/** Tokens of a file with what they stand for; with `range`, those that touch it. */
export const semanticTokens = (
  workspace: Workspace,
  model: SemanticModel,
  path: string,
  range?: { readonly start: number; readonly end: number },
): SemanticTokens => {
  const builder = new SemanticTokensBuilder();
  const lines = workspace.lines(path);
  const tokens = model.tokens(path);
  const referenceOf = referenceFinder(model.references(path));
  const significant = tokens.filter(({ kind }) => kind !== 'comment');
  let at = -1;
  for (const token of tokens) {
    if (token.kind !== 'comment') at += 1;
    const reference = referenceOf(token);
    if (range !== undefined && (token.end <= range.start || range.end <= token.start)) continue;
    const classified = classify(token, significant[at - 1], significant[at + 1], reference);
    if (classified === undefined || /[\r\n]/.test(token.text)) continue;
    const { line, character } = positionAt(lines, token.start);
    const bits = classified.modifiers.reduce((sum, modifier) => sum | (1 << MODIFIERS.indexOf(modifier)), 0);
    builder.push(line, character, token.end - token.start, TYPES.indexOf(classified.type), bits);
  }
  return builder.build();
};
