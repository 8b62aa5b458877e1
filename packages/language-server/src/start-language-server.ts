import { withAnalysis } from '@signalbox/policy';
import type { Diagnostic, SemanticModel } from '@signalbox/policy';
import {
  CodeLensRequest,
  DidChangeWatchedFilesNotification,
  ErrorCodes,
  LSPErrorCodes,
  ResponseError,
  TextDocumentSyncKind,
} from 'vscode-languageserver';
import type {
  CancellationToken,
  Connection,
  InitializeParams,
  InitializeResult,
  Position,
  ServerCapabilities,
} from 'vscode-languageserver';
import { createConnection } from 'vscode-languageserver/node';
import { pathOfUri } from './document-paths.ts';
import { codeLenses } from './features/code-lens.ts';
import { completionAt } from './features/completion.ts';
import { toProtocolDiagnostic } from './features/diagnostics.ts';
import { codeActionKinds, codeActions, formatting } from './features/edits.ts';
import { inlayHints } from './features/inlay-hints.ts';
import { definition, highlights, hover, references, signatureHelp } from './features/navigation.ts';
import { documentSymbols, foldingRanges, workspaceSymbols } from './features/outline.ts';
import { prepareRename, rename } from './features/rename.ts';
import { semanticTokens, semanticTokensLegend } from './features/semantic-tokens.ts';
import type { Cancel, LanguageHost } from './language-host.ts';
import { applyChanges, offsetAt } from './text-document.ts';
import { createWorkspace } from './workspace.ts';
import type { Workspace } from './workspace.ts';

/** What a client may say when it starts the server, as `initializationOptions`. */
interface ClientOptions {
  /** Address below which `docs/reference/diagnostics/` lies, for links from findings. */
  readonly docsUrl?: string;
}

export interface ServerStreams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** How long typing must pause, in milliseconds, before a file is checked, and before the slower analysis. */
const CHECK_DELAY_MS = 5;
const ANALYSIS_DELAY_MS = 400;
/** Steps for each question of the analysis: a tenth of what `signalbox check` takes, so that typing never waits for a hard one. */
const ANALYSIS_BUDGET = 20_000;

const capabilities: ServerCapabilities = {
  positionEncoding: 'utf-16',
  textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental },
  completionProvider: { triggerCharacters: ['"', '.', '(', '[', ':', '@', '{', ' '] },
  hoverProvider: true,
  signatureHelpProvider: { triggerCharacters: ['(', ','] },
  definitionProvider: true,
  referencesProvider: true,
  documentHighlightProvider: true,
  documentSymbolProvider: true,
  workspaceSymbolProvider: true,
  foldingRangeProvider: true,
  renameProvider: { prepareProvider: true },
  documentFormattingProvider: true,
  documentRangeFormattingProvider: true,
  codeActionProvider: { codeActionKinds: [...codeActionKinds] },
  codeLensProvider: {},
  inlayHintProvider: true,
  semanticTokensProvider: { legend: semanticTokensLegend, full: true, range: true },
  workspace: { workspaceFolders: { supported: true, changeNotifications: true } },
};

const optionsOf = (value: unknown): ClientOptions => {
  if (typeof value !== 'object' || value === null || !('docsUrl' in value) || typeof value.docsUrl !== 'string')
    return {};
  return { docsUrl: value.docsUrl };
};

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/**
 * Lets a cancellation or a change that has arrived behind a request be read before the work begins. The first turn is that of the request
 * itself, the second that of the next message.
 */
const nextTurn = async (): Promise<void> => {
  await turn();
  await turn();
};

const cancelled = (): ResponseError => new ResponseError(LSPErrorCodes.RequestCancelled, 'the request was cancelled');

interface Server {
  readonly connection: Connection;
  readonly host: LanguageHost;
  readonly workspace: Workspace;
  client: ClientOptions;
  hasSnippets: boolean;
  canWatch: boolean;
  /** All findings of a model, those of the analysis of its conditions with them, once it has been made. */
  readonly analysed: WeakMap<SemanticModel, readonly Diagnostic[]>;
  /** What was last told of each open document. */
  readonly published: Map<string, string>;
}

/** The findings of a file: of the checker, and of the analysis where that has been made. */
const findingsOf = ({ workspace, analysed }: Server, path: string): readonly Diagnostic[] => {
  const model = workspace.contextOf(path);
  return (analysed.get(model) ?? model.result.diagnostics).filter(({ span }) => span.file === path);
};

const publish = (server: Server): void => {
  const { connection, workspace, published } = server;
  for (const { uri, path, version } of workspace.documents.values()) {
    const diagnostics = findingsOf(server, path).map((finding) =>
      toProtocolDiagnostic(workspace, finding, server.client.docsUrl),
    );
    const told = JSON.stringify([version, diagnostics]);
    if (published.get(uri) === told) continue;
    published.set(uri, told);
    void connection.sendDiagnostics({ uri, version, diagnostics });
  }
};

/** Analyses the conditions of what is open: what can never match, what always holds, what an earlier rule takes. */
const analyse = (server: Server): void => {
  const { workspace, analysed } = server;
  for (const { path } of workspace.documents.values()) {
    const model = workspace.contextOf(path);
    if (model.result.program === undefined || analysed.has(model)) continue;
    analysed.set(model, withAnalysis(model.result, { budget: ANALYSIS_BUDGET }).diagnostics);
  }
  publish(server);
};

/** Checks after a pause in typing, and analyses after a longer one; each change begins the pauses anew. */
const createRecheck = (server: Server): ((delayMs?: number) => void) => {
  let check: Cancel | undefined;
  let slow: Cancel | undefined;
  return (delayMs = CHECK_DELAY_MS) => {
    check?.();
    slow?.();
    check = server.host.schedule(() => {
      publish(server);
      slow = server.host.schedule(() => analyse(server), ANALYSIS_DELAY_MS);
    }, delayMs);
  };
};

interface InDocument {
  readonly textDocument: { readonly uri: string };
}
interface AtPlace extends InDocument {
  readonly position: Position;
}

/**
 * Answers a request about a document once the messages behind it have been read: refused if it was cancelled by then, or if the document has
 * changed, since its positions mean nothing in another text.
 */
const answer =
  <P extends InDocument, R>(server: Server, handle: (path: string, params: P, isCancelled: () => boolean) => R) =>
  async (params: P, token: CancellationToken): Promise<R | ResponseError> => {
    const path = pathOfUri(params.textDocument.uri);
    const { version } = server.workspace.documents.get(path) ?? {};
    await nextTurn();
    if (token.isCancellationRequested) return cancelled();
    if (server.workspace.documents.get(path)?.version !== version)
      return new ResponseError(LSPErrorCodes.ContentModified, 'the document has changed since');
    return handle(path, params, () => token.isCancellationRequested);
  };

const listenToDocuments = (server: Server): void => {
  const { connection, workspace } = server;
  const recheck = createRecheck(server);
  connection.onDidOpenTextDocument(({ textDocument: { uri, version, text } }) => {
    workspace.open(uri, version, text);
    recheck(0);
  });
  connection.onDidChangeTextDocument(({ textDocument: { uri, version }, contentChanges }) => {
    const before = workspace.documents.get(pathOfUri(uri))?.text ?? '';
    workspace.open(uri, version, applyChanges(before, contentChanges));
    recheck();
  });
  connection.onDidCloseTextDocument(({ textDocument: { uri } }) => {
    workspace.close(uri);
    server.published.delete(uri);
    void connection.sendDiagnostics({ uri, diagnostics: [] });
    recheck(0);
  });
  connection.onDidChangeWatchedFiles(() => {
    workspace.forgetDisk();
    recheck(0);
  });
};

const listenToRequests = (server: Server): void => {
  const { connection, host, workspace } = server;
  const placed = <R>(handle: (path: string, offset: number, isCancelled: () => boolean) => R) =>
    answer<AtPlace, R>(server, (path, { position }, isCancelled) =>
      handle(path, offsetAt(workspace.lines(path), position), isCancelled),
    );
  const spanOf = (
    path: string,
    range: { readonly start: Position; readonly end: Position },
  ): { readonly start: number; readonly end: number } => {
    const lines = workspace.lines(path);
    return { start: offsetAt(lines, range.start), end: offsetAt(lines, range.end) };
  };
  connection.onCompletion(placed((path, offset) => completionAt(host, workspace, path, offset, server.hasSnippets)));
  connection.onHover(placed((path, offset) => hover(workspace, path, offset)));
  connection.onSignatureHelp(placed((path, offset) => signatureHelp(workspace, path, offset)));
  connection.onDefinition(placed((path, offset) => definition(workspace, path, offset)));
  connection.onDocumentHighlight(placed((path, offset) => highlights(workspace, path, offset)));
  connection.onReferences(
    answer(server, (path, { position, context }, isCancelled) =>
      references(workspace, path, offsetAt(workspace.lines(path), position), context.includeDeclaration, isCancelled),
    ),
  );
  connection.onPrepareRename(
    placed((path, offset) => {
      const found = prepareRename(workspace, path, offset);
      return 'refusal' in found ? new ResponseError<void>(ErrorCodes.InvalidParams, found.refusal) : found;
    }),
  );
  connection.onRenameRequest(
    answer(server, (path, { position, newName }, isCancelled) => {
      const made = rename(workspace, path, offsetAt(workspace.lines(path), position), newName, isCancelled);
      return 'refusal' in made ? new ResponseError<void>(ErrorCodes.InvalidParams, made.refusal) : made;
    }),
  );
  connection.onDocumentSymbol(
    answer(server, (path) => documentSymbols(workspace.lines(path), workspace.tree(path)?.statements ?? [])),
  );
  connection.onWorkspaceSymbol(async ({ query }, token) => {
    await nextTurn();
    return token.isCancellationRequested
      ? cancelled()
      : workspaceSymbols(workspace, query, () => token.isCancellationRequested);
  });
  connection.onFoldingRanges(
    answer(server, (path) => {
      const tree = workspace.tree(path);
      return tree === undefined ? [] : foldingRanges(workspace.lines(path), tree);
    }),
  );
  connection.onDocumentFormatting(answer(server, (path) => formatting(workspace, path)));
  connection.onDocumentRangeFormatting(answer(server, (path) => formatting(workspace, path)));
  connection.onCodeAction(
    answer(server, (path, { range, context }) =>
      codeActions(workspace, path, findingsOf(server, path), {
        range: spanOf(path, range),
        docsUrl: server.client.docsUrl,
        ...(context.only === undefined ? {} : { only: context.only }),
      }),
    ),
  );
  connection.onRequest(
    CodeLensRequest.type,
    answer(server, (path) => codeLenses(workspace, path)),
  );
  connection.languages.inlayHint.on(
    answer(server, (path, { range }) => inlayHints(workspace, workspace.contextOf(path), path, spanOf(path, range))),
  );
  connection.languages.semanticTokens.on(
    answer(server, (path) => semanticTokens(workspace, workspace.contextOf(path), path)),
  );
  connection.languages.semanticTokens.onRange(
    answer(server, (path, { range }) =>
      semanticTokens(workspace, workspace.contextOf(path), path, spanOf(path, range)),
    ),
  );
};

const foldersOf = ({ workspaceFolders, rootUri }: InitializeParams): readonly string[] => {
  const uris = workspaceFolders?.map(({ uri }) => uri) ?? (rootUri === null ? [] : [rootUri]);
  return uris.map(pathOfUri);
};

const initialize = (server: Server, params: InitializeParams): InitializeResult => {
  server.client = optionsOf(params.initializationOptions);
  server.hasSnippets = params.capabilities.textDocument?.completion?.completionItem?.snippetSupport ?? false;
  server.canWatch = params.capabilities.workspace?.didChangeWatchedFiles?.dynamicRegistration ?? false;
  server.workspace.setFolders(foldersOf(params));
  return { capabilities, serverInfo: { name: 'signalbox' } };
};

/** Speaks the language server protocol over two streams until they end. */
export const startLanguageServer = (host: LanguageHost, { input, output }: ServerStreams): void => {
  const connection = createConnection(input, output);
  const server: Server = {
    connection,
    host,
    workspace: createWorkspace(host),
    client: {},
    hasSnippets: false,
    canWatch: false,
    analysed: new WeakMap(),
    published: new Map(),
  };
  let folders: readonly string[] = [];
  connection.onInitialize((params) => {
    folders = foldersOf(params);
    return initialize(server, params);
  });
  connection.onInitialized(() => {
    if (server.canWatch)
      void connection.client.register(DidChangeWatchedFilesNotification.type, {
        watchers: [{ globPattern: '**/*.route' }, { globPattern: '**/package.json' }],
      });
  });
  connection.onNotification(
    'workspace/didChangeWorkspaceFolders',
    ({
      event,
    }: {
      readonly event: {
        readonly added: readonly { readonly uri: string }[];
        readonly removed: readonly { readonly uri: string }[];
      };
    }) => {
      const removed = new Set(event.removed.map(({ uri }) => pathOfUri(uri)));
      folders = [...folders.filter((folder) => !removed.has(folder)), ...event.added.map(({ uri }) => pathOfUri(uri))];
      server.workspace.setFolders(folders);
    },
  );
  listenToDocuments(server);
  listenToRequests(server);
  connection.listen();
};
