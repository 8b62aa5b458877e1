import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import {
  createProtocolConnection,
  FoldingRangeRequest,
  InitializeRequest,
  PublishDiagnosticsNotification,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-languageserver/node';
import type { ProtocolConnection, PublishDiagnosticsParams } from 'vscode-languageserver/node';
import type { LanguageHost } from './language-host.ts';
import { startLanguageServer } from './start-language-server.ts';

interface Timer {
  readonly ms: number;
  readonly run: () => void;
}

interface Session {
  readonly connection: ProtocolConnection;
  /** What is scheduled and neither run nor cancelled. */
  readonly timers: Set<Timer>;
  readonly published: PublishDiagnosticsParams[];
  /** Runs what is due soonest. */
  elapse(): void;
  /** Comes back when the server has read all that was sent. */
  settled(): Promise<void>;
}

const URI = 'file:///policies/a.route';

const startSession = async (files: { readonly [path: string]: string } = {}): Promise<Session> => {
  const timers = new Set<Timer>();
  const host: LanguageHost = {
    manifests: [],
    resolvePlugin: (_, name) => ({ error: `${name} was not found` }),
    pluginPackages: () => [],
    checkOptions: () => [],
    unprovided: [],
    readFile: (path) => files[path],
    listPolicies: () => [],
    nowEpochMs: () => 0,
    schedule(run, ms) {
      const timer = { run, ms };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  const [toServer, toClient] = [new PassThrough(), new PassThrough()];
  startLanguageServer(host, { input: toServer, output: toClient });
  const connection = createProtocolConnection(new StreamMessageReader(toClient), new StreamMessageWriter(toServer));
  const published: PublishDiagnosticsParams[] = [];
  connection.onNotification(PublishDiagnosticsNotification.type, (params) => void published.push(params));
  connection.listen();
  await connection.sendRequest(InitializeRequest.type, { processId: null, rootUri: null, capabilities: {} });
  return {
    connection,
    timers,
    published,
    elapse() {
      const [next] = [...timers].toSorted((a, b) => a.ms - b.ms);
      if (next === undefined) throw new Error('nothing is scheduled');
      timers.delete(next);
      next.run();
    },
    async settled() {
      await connection.sendRequest(FoldingRangeRequest.type, { textDocument: { uri: 'file:///policies/none.route' } });
    },
  };
};

const open = ({ connection }: Session, text: string): void =>
  void connection.sendNotification('textDocument/didOpen', {
    textDocument: { uri: URI, languageId: 'route', version: 1, text },
  });
const change = ({ connection }: Session, version: number, text: string): void =>
  void connection.sendNotification('textDocument/didChange', {
    textDocument: { uri: URI, version },
    contentChanges: [{ text }],
  });

describe('while one types', () => {
  test('nothing is checked before a pause, each change begins it anew, and only the last text is told of', async () => {
    const session = await startSession();
    open(session, 'route');
    await session.settled();
    expect([...session.timers].map(({ ms }) => ms)).toEqual([0]);
    for (const version of [2, 3, 4]) change(session, version, `default to any # ${version}`);
    await session.settled();
    expect(session.published).toEqual([]);
    const delays = [...session.timers].map(({ ms }) => ms);
    expect(delays).toHaveLength(1);
    expect(delays[0]).toBeGreaterThan(0);
    session.elapse();
    await session.settled();
    expect(session.published.map(({ version, diagnostics }) => [version, diagnostics])).toEqual([[4, []]]);
  });

  test('the slower analysis waits for a longer pause, and a change puts it off', async () => {
    const session = await startSession();
    const rules = 'route "a" when complexity > 50 to any\nroute "b" when complexity > 60 to any\ndefault to any\n';
    open(session, rules);
    await session.settled();
    session.elapse();
    await session.settled();
    expect(session.published.map(({ diagnostics }) => diagnostics.map(({ code }) => code))).toEqual([[]]);
    change(session, 2, `${rules}# more`);
    await session.settled();
    // The analysis of the first text is no longer due, only the check of the second.
    expect(session.timers.size).toBe(1);
    session.elapse();
    session.elapse();
    await session.settled();
    expect(session.published.at(-1)?.diagnostics.map(({ code }) => code)).toEqual(['W0502']);
  });

  test('what has not changed is not told again', async () => {
    const session = await startSession();
    open(session, 'default to any');
    await session.settled();
    session.elapse();
    session.elapse();
    await session.settled();
    expect(session.published).toHaveLength(1);
  });
});
