/** The DevTools protocol of a process that was started with `--inspect`, over its loopback websocket. */
export interface Inspector {
  /** What the process holds in memory, after a full collection. Bytes. */
  memoryAfterCollection(): Promise<NodeJS.MemoryUsage>;
  /** The value of an expression in the process; it must be JSON. */
  evaluate(expression: string): Promise<unknown>;
  close(): void;
}

interface Reply {
  readonly id?: number;
  readonly result?: {
    readonly result?: { readonly value?: unknown };
    readonly exceptionDetails?: { readonly text: string };
  };
  readonly error?: { readonly message: string };
}

export async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<NonNullable<Reply['result']>>>();
  let lastId = 0;
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)), { once: true });
  });
  socket.addEventListener('message', ({ data }) => {
    const { id, result, error } = JSON.parse(String(data)) as Reply;
    const caller = waiting.get(id ?? 0);
    if (caller === undefined) return;
    waiting.delete(id ?? 0);
    if (result === undefined) caller.reject(new Error(error?.message ?? 'no result'));
    else caller.resolve(result);
  });
  socket.addEventListener('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the inspector was closed'));
    waiting.clear();
  });
  const call = (method: string, params: object = {}): Promise<NonNullable<Reply['result']>> => {
    const caller = Promise.withResolvers<NonNullable<Reply['result']>>();
    waiting.set(++lastId, caller);
    socket.send(JSON.stringify({ id: lastId, method, params }));
    return caller.promise;
  };
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.text}`);
    return result?.value;
  };
  return {
    evaluate,
    async memoryAfterCollection() {
      await call('HeapProfiler.collectGarbage');
      return (await evaluate('process.memoryUsage()')) as NodeJS.MemoryUsage;
    },
    close: () => socket.close(),
  };
}
