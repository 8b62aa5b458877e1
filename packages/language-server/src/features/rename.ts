import { reservedWords } from '@signalbox/policy';
import type { PolicyReference, SymbolKind } from '@signalbox/policy';
import type { Range, TextEdit, WorkspaceEdit } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';
import { referencesEverywhere } from './navigation.ts';

/** Why something cannot be renamed, for people. */
export interface RenameRefusal {
  readonly refusal: string;
}

const WORDS: ReadonlySet<SymbolKind> = new Set<SymbolKind>(['let', 'import', 'plugin']);
const TEXTS: ReadonlySet<SymbolKind> = new Set<SymbolKind>([
  'tier',
  'endpoint',
  'slo',
  'limit',
  'tenant',
  'alarm',
  'param',
  'route',
]);

const refuse = (refusal: string): RenameRefusal => ({ refusal });

/** What stands at the place, in words: why it has no new name. */
const refusalAt = (workspace: Workspace, path: string, offset: number): RenameRefusal => {
  const model = workspace.contextOf(path);
  const token = model.tokens(path).find(({ start, end }) => start <= offset && offset <= end);
  if (token?.kind === 'keyword') return refuse(`\`${token.text}\` is a word of the language`);
  return refuse('only names that the policy declares can be renamed: lets, aliases, definitions and labels of routes');
};

const renamable = (
  workspace: Workspace,
  path: string,
  offset: number,
  reference: PolicyReference | undefined,
): RenameRefusal | undefined => {
  if (reference === undefined) return refusalAt(workspace, path, offset);
  const { kind, name, declaration, plugin } = reference.symbol;
  if (kind === 'member')
    return refuse(`\`${name}\` is a field that definitions write as a key; rename the keys where they stand`);
  if (kind === 'modifier' || kind === 'function') return refuse(`\`${name}\` is a ${kind} of the language`);
  if (!WORDS.has(kind) && !TEXTS.has(kind))
    return refuse(
      plugin === undefined
        ? `\`${name}\` is a ${kind} of the catalogue`
        : `\`${name}\` is a ${kind} of the plugin \`${plugin}\``,
    );
  if (declaration === undefined)
    return refuse(`the ${kind} ${JSON.stringify(name)} is not declared by a name in this policy`);
  return undefined;
};

/** The range that a rename would replace, or why there is none. */
export const prepareRename = (
  workspace: Workspace,
  path: string,
  offset: number,
): { readonly range: Range; readonly placeholder: string } | RenameRefusal => {
  const reference = workspace.contextOf(path).referenceAt(path, offset);
  const refused = renamable(workspace, path, offset, reference);
  if (refused !== undefined || reference === undefined) return refused ?? refusalAt(workspace, path, offset);
  return { range: rangeOf(workspace.lines(path), reference.span), placeholder: reference.symbol.name };
};

const wrongName = (
  workspace: Workspace,
  all: readonly PolicyReference[],
  own: PolicyReference,
  to: string,
): string | undefined => {
  const { kind, declaration } = own.symbol;
  const needsWord = WORDS.has(kind) || all.some(({ quoted }) => !quoted);
  if (to.trim() === '') return 'the name is empty';
  if (needsWord && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(to))
    return `\`${to}\` is no name: names are letters, digits and \`_\`, and begin with no digit`;
  if (needsWord && WORDS.has(kind) && reservedWords.includes(to)) return `\`${to}\` is a word of the language`;
  if (/[\r\n]/.test(to)) return 'a name is one line';
  if (WORDS.has(kind)) {
    for (const { span } of all) {
      const taken = workspace.model(span.file).takenName(span.file, span.end + 1, to);
      if (taken !== undefined) return `\`${to}\` is already the name of ${taken}`;
    }
    return undefined;
  }
  if (declaration === undefined) return undefined;
  const model = workspace.model(declaration.file);
  const clash = model.paths
    .flatMap((path) => model.references(path))
    .find(({ symbol, isDeclaration }) => isDeclaration && symbol.kind === kind && symbol.name === to);
  return clash === undefined ? undefined : `there is already a ${kind} ${JSON.stringify(to)}`;
};

/** The edits that give a symbol a new name in every file of the workspace, or why it cannot have it. */
export const rename = (
  workspace: Workspace,
  path: string,
  offset: number,
  to: string,
  isCancelled: () => boolean,
): WorkspaceEdit | RenameRefusal => {
  const refused = renamable(workspace, path, offset, workspace.contextOf(path).referenceAt(path, offset));
  if (refused !== undefined) return refused;
  const found = referencesEverywhere(workspace, path, offset, isCancelled);
  if (found === undefined) return refusalAt(workspace, path, offset);
  if (to === found.own.symbol.name) return { changes: {} };
  const wrong = wrongName(workspace, found.all, found.own, to);
  if (wrong !== undefined) return refuse(wrong);
  const changes: { [uri: string]: TextEdit[] } = {};
  for (const { span, quoted } of found.all) {
    const edits = (changes[workspace.uri(span.file)] ??= []);
    edits.push({
      range: rangeOf(workspace.lines(span.file), span),
      newText: quoted ? JSON.stringify(to).slice(1, -1) : to,
    });
  }
  return { changes };
};
