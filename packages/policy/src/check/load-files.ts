import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { createDiagnostic, hasErrors } from '../diagnostics/diagnostic.ts';
import type { FileNode, ImportNode } from '../syntax/ast.ts';
import { parsePolicy } from '../syntax/parse-policy.ts';
import type { PolicyToken } from '../syntax/parse-result.ts';

/** A file and what its imports lead to. An import that is absent from `imports` could not be read; its error is reported. */
export interface LoadedFile {
  readonly path: string;
  readonly tree: FileNode;
  readonly tokens: readonly PolicyToken[];
  readonly imports: ReadonlyMap<ImportNode, LoadedFile>;
}

export interface LoadedFiles {
  readonly main: LoadedFile;
  /** In the order they were read, each once. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The path that an import leads to, relative to the policy root as the importing path is, with `/` between parts; undefined where it
 * would leave the root.
 */
export const resolveImportPath = (from: string, path: string): string | undefined => {
  const isAbsolute = from.startsWith('/');
  const parts = from.split('/').slice(0, -1);
  const base = parts.filter((part) => part !== '' && part !== '.');
  if (path === '' || /^([a-z][a-z0-9+.-]*:|\/|\\|~)/i.test(path) || path.includes('\\') || path.includes('\0'))
    return undefined;
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (base.length === 0) return undefined;
      base.pop();
    } else base.push(part);
  }
  return base.length === 0 ? undefined : (isAbsolute ? '/' : '') + base.join('/');
};

const MAX_FILES = 256;

const normalise = (path: string): string =>
  (path.startsWith('/') ? '/' : '') +
  path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');

/**
 * Reads and parses a file and all that it imports. `root` is the folder below which imports must stay, by default the folder of the
 * main file; `readFile` gives undefined for a file that does not exist.
 */
export const loadFiles = (
  path: string,
  text: string,
  readFile: (path: string) => string | undefined,
  root?: string,
): LoadedFiles => {
  const diagnostics: Diagnostic[] = [];
  const files: { path: string; text: string }[] = [];
  const loaded = new Map<string, LoadedFile>();
  const spliced = new Map<string, ImportNode>();
  const rootParts = normalise(root ?? path.split('/').slice(0, -1).join('/'));
  const isInside = (candidate: string): boolean =>
    rootParts === '' || rootParts === '/' || normalise(candidate).startsWith(`${rootParts}/`);

  const load = (at: string, content: string, chain: readonly string[], splicing: boolean): LoadedFile => {
    const known = loaded.get(at);
    if (known !== undefined && !splicing) return known;
    const parsed = parsePolicy(content, { file: at });
    if (known === undefined) {
      files.push({ path: at, text: content });
      for (const finding of parsed.diagnostics) diagnostics.push(finding);
    }
    const imports = new Map<ImportNode, LoadedFile>();
    const file: LoadedFile = { path: at, tree: parsed.file, tokens: parsed.tokens, imports };
    loaded.set(at, file);
    for (const statement of parsed.file.statements) {
      if (statement.kind !== 'import') continue;
      const target = follow(at, statement, [...chain, at], splicing);
      if (target !== undefined) imports.set(statement, target);
    }
    return file;
  };

  const follow = (
    from: string,
    statement: ImportNode,
    chain: readonly string[],
    splicing: boolean,
  ): LoadedFile | undefined => {
    const { span, value } = statement.path;
    const target = resolveImportPath(from, value);
    if (target === undefined || !isInside(target)) {
      diagnostics.push(
        createDiagnostic('E0217', span, `${JSON.stringify(value)} leads out of the folder of the policy`, {
          help: 'imports are relative paths below it, with `/` between folders',
        }),
      );
      return undefined;
    }
    if (chain.includes(target)) {
      const circle = [...chain.slice(chain.indexOf(target)), target];
      diagnostics.push(
        createDiagnostic(
          'E0218',
          span,
          chain[chain.length - 1] === target
            ? 'the file imports itself'
            : `imports run in a circle: ${circle.map((one) => JSON.stringify(one)).join(' → ')}`,
        ),
      );
      return undefined;
    }
    const splices = splicing && statement.alias === undefined;
    if (splices) {
      const before = spliced.get(target);
      if (before !== undefined) {
        diagnostics.push(
          createDiagnostic('E0219', span, `${JSON.stringify(value)} is imported twice`, {
            labels: [{ span: before.path.span, message: 'first imported here' }],
            help: 'its statements stand where it is first imported; give the second an alias by `as`, or remove it',
          }),
        );
        return undefined;
      }
      spliced.set(target, statement);
    }
    const known = loaded.get(target);
    const content = known === undefined ? readFile(target) : known.tree.text;
    if (content === undefined) {
      diagnostics.push(
        createDiagnostic('E0216', span, `${JSON.stringify(value)} was not found`, { help: `looked for \`${target}\`` }),
      );
      return undefined;
    }
    if (known === undefined && files.length >= MAX_FILES) {
      diagnostics.push(createDiagnostic('E0216', span, `the policy imports more than ${MAX_FILES} files`));
      return undefined;
    }
    const isNew = known === undefined;
    const file = load(target, content, chain, splices);
    if (isNew && hasErrors(diagnostics.filter((diagnostic) => diagnostic.span.file === target))) {
      diagnostics.push(
        createDiagnostic('E0231', span, `${JSON.stringify(value)} has errors of its own`, {
          help: 'they are listed with it',
        }),
      );
    }
    return file;
  };

  const main = load(path, text, [], true);
  return { main, files, diagnostics };
};
