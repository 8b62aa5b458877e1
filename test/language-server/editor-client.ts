import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  createProtocolConnection,
  ExitNotification,
  InitializedNotification,
  InitializeRequest,
  PublishDiagnosticsNotification,
  RegistrationRequest,
  ShutdownRequest,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-languageserver-protocol/node';
import type {
  ClientCapabilities,
  DataCallback,
  Disposable,
  InitializeResult,
  Message,
  Position,
  ProtocolConnection,
  PublishDiagnosticsParams,
  Range,
  Registration,
  TextEdit,
  WorkspaceEdit,
} from 'vscode-languageserver-protocol/node';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** An editor: the real server as a process, and a client that speaks the protocol with it. */
export interface Editor {
  readonly connection: ProtocolConnection;
  readonly initialized: InitializeResult;
  /** Watchers that the server has asked for. */
  readonly registrations: readonly Registration[];
  /** The folder that is open in the editor. */
  readonly folder: string;
  uri(path: string): string;
  /** Opens a document, whether or not there is such a file. */
  open(path: string, text: string): void;
  /** Replaces the whole text. */
  replace(path: string, text: string): void;
  /** Sends one incremental change. */
  edit(path: string, range: Range, text: string): void;
  text(path: string): string;
  /** The findings of the current version of a document, when they have come. */
  findings(path: string): Promise<PublishDiagnosticsParams>;
  /** The next findings of a document that meet a condition. */
  findingsWhere(path: string, test: (params: PublishDiagnosticsParams) => boolean): Promise<PublishDiagnosticsParams>;
  /** A place in a request: where `find` first stands in the text, `plus` units on. */
  at(
    path: string,
    find: string,
    plus?: number,
  ): { readonly textDocument: { readonly uri: string }; readonly position: Position };
  /** Sends messages in one piece, so that the server has all before it works on the first. Gives the answers of the requests, in order. */
  sendTogether(messages: readonly RawMessage[]): Promise<readonly RawAnswer[]>;
  close(): Promise<void>;
  /** Exit code of the process, once it has ended. */
  readonly exited: Promise<number | null>;
}

/** A message of `sendTogether`. Parameters `'first'` of a cancellation stand for the first of the requests. */
export interface RawMessage {
  readonly method: string;
  readonly params: unknown;
  readonly isRequest: boolean;
}

export interface RawAnswer {
  readonly id: string;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

const isRawAnswer = (message: Message): message is Message & RawAnswer =>
  'id' in message && typeof message.id === 'string' && message.id.startsWith('raw-');

/** Reads messages for the connection, and keeps the answers to raw messages from it. */
class TappedReader extends StreamMessageReader {
  readonly answers = new Map<string, (answer: RawAnswer) => void>();

  override listen(callback: DataCallback): Disposable {
    return super.listen((message) => {
      if (isRawAnswer(message)) this.answers.get(message.id)?.(message);
      else callback(message);
    });
  }
}

const frameOf = (message: unknown): string => {
  const content = JSON.stringify(message);
  return `Content-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`;
};

const capabilities: ClientCapabilities = {
  textDocument: {
    completion: { completionItem: { snippetSupport: true, documentationFormat: ['markdown'] } },
    rename: { prepareSupport: true },
    publishDiagnostics: {
      relatedInformation: true,
      versionSupport: true,
      codeDescriptionSupport: true,
      tagSupport: { valueSet: [1, 2] },
    },
  },
  workspace: { didChangeWatchedFiles: { dynamicRegistration: true } },
};

/** UTF-16 position of an offset, lines ending at LF, CRLF or CR, counted apart from the server's own arithmetic. */
export const positionIn = (text: string, offset: number): Position => {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { line: before.length - 1, character: before.at(-1)?.length ?? 0 };
};

/** The inverse of `positionIn`. */
export const offsetIn = (text: string, { line, character }: Position): number => {
  let start = 0;
  for (let index = 0; index < line; index += 1) {
    const match = /\r\n|\n|\r/.exec(text.slice(start));
    start += (match?.index ?? 0) + (match?.[0].length ?? 0);
  }
  return start + character;
};

/** A text after the edits of one answer, which lie apart. */
export const applyEdits = (text: string, edits: readonly TextEdit[]): string => {
  let result = text;
  for (const { range, newText } of edits.toSorted(
    (a, b) => offsetIn(text, b.range.start) - offsetIn(text, a.range.start),
  ))
    result = result.slice(0, offsetIn(text, range.start)) + newText + result.slice(offsetIn(text, range.end));
  return result;
};

/** Text of the range of a text. */
export const textOf = (text: string, { start, end }: Range): string =>
  text.slice(offsetIn(text, start), offsetIn(text, end));

/** The edits of a workspace edit by the last part of each file's name, applied to texts. */
export const applyWorkspaceEdit = (
  editor: Editor,
  edit: WorkspaceEdit | null,
  texts: { readonly [path: string]: string },
): { readonly [path: string]: string } =>
  Object.fromEntries(
    Object.entries(texts).map(([path, text]) => [path, applyEdits(text, edit?.changes?.[editor.uri(path)] ?? [])]),
  );

/** Starts the server over a folder that holds `files`. */
export const startEditor = async (
  files: { readonly [path: string]: string } = {},
  initializationOptions?: unknown,
): Promise<Editor> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-editor-')));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const child = spawn(
    join(root, 'node_modules/node/bin/node'),
    ['--conditions=@signalbox/source', join(root, 'packages/gateway/src/main.ts'), 'lsp', '--stdio'],
    { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const exited = new Promise<number | null>((done) => void child.once('exit', done));
  const reader = new TappedReader(child.stdout);
  let rawIds = 0;
  const connection = createProtocolConnection(reader, new StreamMessageWriter(child.stdin));
  const registrations: Registration[] = [];
  const latest = new Map<string, PublishDiagnosticsParams>();
  const waiting = new Set<() => void>();
  connection.onNotification(PublishDiagnosticsNotification.type, (params) => {
    latest.set(params.uri, params);
    for (const check of waiting) check();
  });
  connection.onRequest(RegistrationRequest.type, (params) => void registrations.push(...params.registrations));
  connection.listen();
  const uri = (path: string): string => (path.includes(':') ? path : pathToFileURL(join(folder, path)).href);
  const initialized = await connection.sendRequest(InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    workspaceFolders: [{ uri: pathToFileURL(folder).href, name: 'policies' }],
    capabilities,
    initializationOptions,
  });
  await connection.sendNotification(InitializedNotification.type, {});
  const documents = new Map<string, { version: number; text: string }>();
  const documentOf = (path: string): { version: number; text: string } => {
    const document = documents.get(path);
    if (document === undefined) throw new Error(`${path} is not open`);
    return document;
  };
  const change = (
    path: string,
    text: string,
    contentChanges: readonly ({ readonly text: string } | { readonly range: Range; readonly text: string })[],
  ): void => {
    const document = documentOf(path);
    document.version += 1;
    document.text = text;
    void connection.sendNotification('textDocument/didChange', {
      textDocument: { uri: uri(path), version: document.version },
      contentChanges,
    });
  };
  const findingsWhere = (
    path: string,
    test: (params: PublishDiagnosticsParams) => boolean,
  ): Promise<PublishDiagnosticsParams> =>
    new Promise((done) => {
      const check = (): void => {
        const params = latest.get(uri(path));
        if (params === undefined || !test(params)) return;
        waiting.delete(check);
        done(params);
      };
      waiting.add(check);
      check();
    });
  return {
    connection,
    initialized,
    registrations,
    folder,
    uri,
    open(path, text) {
      documents.set(path, { version: 1, text });
      void connection.sendNotification('textDocument/didOpen', {
        textDocument: { uri: uri(path), languageId: 'route', version: 1, text },
      });
    },
    replace: (path, text) => change(path, text, [{ text }]),
    edit(path, range, text) {
      change(path, applyEdits(documentOf(path).text, [{ range, newText: text }]), [{ range, text }]);
    },
    text: (path) => documentOf(path).text,
    findings: (path) => findingsWhere(path, ({ version }) => version === documentOf(path).version),
    findingsWhere,
    at(path, find, plus = 0) {
      const { text } = documentOf(path);
      const offset = text.indexOf(find);
      if (offset === -1) throw new Error(`${path} holds no ${find}`);
      return { textDocument: { uri: uri(path) }, position: positionIn(text, offset + plus) };
    },
    async sendTogether(messages) {
      let first = '';
      const answers: Promise<RawAnswer>[] = [];
      const frames = messages.map(({ method, params, isRequest }) => {
        if (!isRequest) return frameOf({ jsonrpc: '2.0', method, params: params === 'first' ? { id: first } : params });
        rawIds += 1;
        const id = `raw-${rawIds}`;
        first ||= id;
        answers.push(new Promise((done) => void reader.answers.set(id, done)));
        return frameOf({ jsonrpc: '2.0', id, method, params });
      });
      // A request through the connection, answered: nothing that was sent before is still on its way.
      await connection.sendRequest('textDocument/foldingRange', { textDocument: { uri: 'untitled:nothing' } });
      child.stdin.write(frames.join(''));
      return Promise.all(answers);
    },
    async close() {
      await connection.sendRequest(ShutdownRequest.type);
      await connection.sendNotification(ExitNotification.type);
      await exited;
      connection.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
    exited,
  };
};
