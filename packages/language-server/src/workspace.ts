import { buildSemanticModel, resolveImportPath, parsePolicy } from '@signalbox/policy';
import type { Diagnostic, FileNode, SemanticModel } from '@signalbox/policy';
import { folderOf, pathOfUri, uriOfPath } from './document-paths.ts';
import type { LanguageHost } from './language-host.ts';
import { createTextLines } from './text-document.ts';
import type { TextLines } from './text-document.ts';

/** A document that the editor has open: its text comes before that of the file. */
export interface OpenDocument {
  readonly uri: string;
  readonly path: string;
  readonly version: number;
  readonly text: string;
}

const MAX_POLICIES = 2_000;
/** Findings that are only due to the file being read without those that splice it: names that stand elsewhere. */
const MISSING_NAME = /^E02(?:0[1-68]|10|2[1-35])$/;

/**
 * The policies that the editor sees: open documents over files on disk. Models are kept for as long as every text that they were made of is
 * the same.
 */
export interface Workspace {
  readonly documents: ReadonlyMap<string, OpenDocument>;
  open(uri: string, version: number, text: string): OpenDocument;
  close(uri: string): void;
  setFolders(paths: readonly string[]): void;
  /** Files on disk have changed. */
  forgetDisk(): void;
  /** Text of a file: as open, else as on disk. */
  text(path: string): string | undefined;
  lines(path: string): TextLines;
  uri(path: string): string;
  /** The file compiled as a policy of its own. */
  model(path: string): SemanticModel;
  /**
   * The model that says most of a file: its own, or where names are missing there, that of a policy that splices it.
   */
  contextOf(path: string): SemanticModel;
  /** All policy files of the folders, and the open documents. */
  policies(): readonly string[];
  /** Policies whose imports lead to a file, itself first. */
  dependents(path: string): readonly string[];
  /** The tree of a file by itself. */
  tree(path: string): FileNode | undefined;
}

interface Kept {
  readonly model: SemanticModel;
  /** Every text that was asked for, undefined where there was none. */
  readonly texts: ReadonlyMap<string, string | undefined>;
}

export const createWorkspace = (host: LanguageHost): Workspace => {
  const documents = new Map<string, OpenDocument>();
  const models = new Map<string, Kept>();
  const lineIndexes = new Map<string, TextLines>();
  const trees = new Map<string, FileNode>();
  let disk = new Map<string, string | undefined>();
  let folders: readonly string[] = [];
  let listed: readonly string[] | undefined;

  const text = (path: string): string | undefined => {
    const open = documents.get(path);
    if (open !== undefined) return open.text;
    if (!disk.has(path)) disk.set(path, host.readFile(path));
    return disk.get(path);
  };

  const lines = (path: string): TextLines => {
    const current = text(path) ?? '';
    const known = lineIndexes.get(path);
    if (known?.text === current) return known;
    const made = createTextLines(current);
    lineIndexes.set(path, made);
    return made;
  };

  const isFresh = (kept: Kept): boolean => [...kept.texts].every(([path, known]) => text(path) === known);

  const model = (path: string): SemanticModel => {
    const kept = models.get(path);
    if (kept !== undefined && isFresh(kept)) return kept.model;
    const root = folderOf(path);
    const texts = new Map<string, string | undefined>([[path, text(path)]]);
    const made = buildSemanticModel({
      path,
      root,
      text: text(path) ?? '',
      readFile(wanted) {
        const found = text(wanted);
        texts.set(wanted, found);
        return found;
      },
      manifests: host.manifests,
      resolvePlugin: (name) => host.resolvePlugin(root, name),
      checkOptions: host.checkOptions,
      unprovided: host.unprovided,
      nowEpochMs: host.nowEpochMs(),
    });
    models.set(path, { model: made, texts });
    return made;
  };

  const tree = (path: string): FileNode | undefined => {
    const current = text(path);
    if (current === undefined) return undefined;
    const known = trees.get(path);
    if (known?.text === current) return known;
    const { file } = parsePolicy(current, { file: path });
    trees.set(path, file);
    return file;
  };

  const policies = (): readonly string[] => {
    listed ??= folders.flatMap((folder) => host.listPolicies(folder, MAX_POLICIES)).slice(0, MAX_POLICIES);
    return [...new Set([...documents.keys(), ...listed])];
  };

  /** Paths that a file imports; `spliced` leaves out those under an alias. */
  const importsOf = (path: string, spliced: boolean): readonly string[] =>
    (tree(path)?.statements ?? []).flatMap((statement) => {
      if (statement.kind !== 'import' || (spliced && statement.alias !== undefined)) return [];
      return resolveImportPath(path, statement.path.value) ?? [];
    });

  const reaches = (from: string, to: string, spliced: boolean, seen: Set<string> = new Set()): boolean => {
    if (seen.has(from)) return false;
    seen.add(from);
    return importsOf(from, spliced).some((path) => path === to || reaches(path, to, spliced, seen));
  };

  const importersOf = (path: string, spliced: boolean): readonly string[] =>
    policies().filter((other) => other !== path && reaches(other, path, spliced));

  const ownFindings = (of: SemanticModel, path: string): readonly Diagnostic[] =>
    of.result.diagnostics.filter(({ span }) => span.file === path);

  const contextOf = (path: string): SemanticModel => {
    const own = model(path);
    const isMissing = ({ code }: Diagnostic): boolean => MISSING_NAME.test(code);
    const missing = ownFindings(own, path).filter(isMissing).length;
    if (missing === 0) return own;
    let best = own;
    let least = missing;
    for (const importer of importersOf(path, true)) {
      const candidate = model(importer);
      const count = candidate.paths.includes(path) ? ownFindings(candidate, path).filter(isMissing).length : missing;
      if (count < least) [best, least] = [candidate, count];
    }
    return best;
  };

  return {
    documents,
    open(uri, version, content) {
      const document = { uri, version, text: content, path: pathOfUri(uri) };
      documents.set(document.path, document);
      return document;
    },
    close(uri) {
      const path = pathOfUri(uri);
      documents.delete(path);
      models.delete(path);
      disk.delete(path);
    },
    setFolders(paths) {
      folders = paths;
      listed = undefined;
    },
    forgetDisk() {
      disk = new Map();
      listed = undefined;
      // What a package in use provides may have changed with its files.
      models.clear();
    },
    text,
    lines,
    uri: (path) => documents.get(path)?.uri ?? uriOfPath(path),
    model,
    contextOf,
    policies,
    dependents: (path) => [path, ...importersOf(path, false)],
    tree,
  };
};
