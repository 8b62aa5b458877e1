/** The process of one isolated plugin package: imports it, sets instances up and calls them, as its keeper says. */
import { pathToFileURL } from 'node:url';
import type { Closeable, LogFields, Logger, Plugin, SetupContext } from '@signalbox/plugin-api';
import { candidateView, drawnRandom, parsedRequest, requestView, seededRandom } from './marshal.ts';
import type { CallData, FromProcess, LogLevel, NoteData, PluginData, SetupData, ToProcess } from './messages.ts';

interface Live {
  readonly instance: Closeable & { readonly [method: string]: unknown };
  readonly abort: AbortController;
}

type AnyMethod = (this: unknown, ...given: unknown[]) => unknown;

const live = new Map<number, Live>();
const calls = new Map<number, AbortController>();
const never = new AbortController().signal;
let plugin: Plugin | undefined;

const send = (message: FromProcess): void => {
  if (process.connected) process.send?.(message);
};

function loggerOf(id: number, bound: LogFields = {}): Logger {
  const line =
    (level: LogLevel) =>
    (message: string, fields?: LogFields): void =>
      send({ type: 'log', id, level, message: message.slice(0, 2000), fields: { ...bound, ...fields } });
  return {
    trace: line('trace'),
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (fields) => loggerOf(id, { ...bound, ...fields }),
  };
}

/** All but the functions. */
function dataOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(dataOf);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => typeof inner !== 'function')
      .map(([key, inner]) => [key, dataOf(inner)]),
  );
}

async function importPackage(entry: string): Promise<PluginData | undefined> {
  const module = (await import(pathToFileURL(entry).href)) as { readonly default?: Plugin };
  plugin = module.default;
  return dataOf(plugin) as PluginData | undefined;
}

/** Sets an instance up; its methods by name. */
function setUp({ id, kind, name, options, seed }: SetupData): readonly string[] {
  type WithSetup = { setup(context: SetupContext): Live['instance'] };
  const definition = (plugin?.provides[kind] as { readonly [name: string]: WithSetup } | undefined)?.[name];
  if (definition === undefined) throw new Error(`it provides no ${kind} "${name}"`);
  const abort = new AbortController();
  const instance = definition.setup({
    options: Object.freeze(options),
    logger: loggerOf(id),
    clock: { now: () => performance.now(), epochMs: () => Date.now() },
    random: seededRandom(seed),
    signal: abort.signal,
  });
  live.set(id, { instance, abort });
  const methods = ['score', 'fill', 'filter', 'sample', 'pick', 'holds', 'evaluate', 'picked', 'ended', 'forget'];
  return methods.filter((method) => typeof instance[method] === 'function');
}

function invoke(id: number, method: string, ...given: readonly unknown[]): unknown {
  const instance = live.get(id)?.instance;
  if (instance === undefined) throw new Error('the instance is closed');
  return (instance[method] as AnyMethod).call(instance, ...given);
}

function call(id: number, data: CallData, abort: AbortSignal): unknown {
  switch (data.method) {
    case 'score':
    case 'fill':
    case 'filter': {
      const { length } = data.candidates.slots;
      const out =
        data.method === 'filter'
          ? new Uint8Array(length).fill(2)
          : new Float64Array(length).fill(data.method === 'fill' ? Number.NaN : 0);
      invoke(id, data.method, requestView(data.request), candidateView(data.candidates), out);
      return out;
    }
    case 'sample': {
      const out = new Int32Array(data.candidates.slots.length);
      const random = drawnRandom(data.draws);
      const count = invoke(id, 'sample', candidateView(data.candidates), random, out);
      return { count, out, used: random.used };
    }
    case 'pick': {
      const out = new Int32Array(data.candidates.slots.length);
      const random = drawnRandom(data.draws);
      const count = invoke(id, 'pick', data.scores, candidateView(data.candidates), random, data.k, out);
      return { count, out, used: random.used };
    }
    case 'holds':
      return invoke(id, 'holds', requestView(data.request), candidateView(data.candidates), data.args);
    case 'evaluate':
      return invoke(id, 'evaluate', parsedRequest(data.parsed), requestView(data.request), abort);
  }
}

function note(id: number, data: NoteData): void {
  try {
    if (data.method === 'ended') invoke(id, 'ended', data.slot, data.outcome);
    else invoke(id, data.method, data.slot);
  } catch (error) {
    loggerOf(id).warn(`${data.method} threw`, { error: messageOf(error) });
  }
}

function close(id: number): void {
  const held = live.get(id);
  live.delete(id);
  held?.abort.abort();
  try {
    held?.instance.close?.();
  } catch (error) {
    loggerOf(id).warn('close threw', { error: messageOf(error) });
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 2000);

async function answer(message: Extract<ToProcess, { readonly seq: number }>): Promise<unknown> {
  switch (message.type) {
    case 'ping':
      return undefined;
    case 'import':
      return importPackage(message.entry);
    case 'setup':
      return setUp(message.setup);
    case 'call': {
      const abort = new AbortController();
      calls.set(message.seq, abort);
      try {
        return await call(message.id, message.call, message.call.method === 'evaluate' ? abort.signal : never);
      } finally {
        calls.delete(message.seq);
      }
    }
  }
}

process.on('message', (message: ToProcess) => {
  if ('seq' in message) {
    const { seq } = message;
    void answer(message)
      .then((value) => send({ type: 'reply', seq, ok: true, value }))
      .catch((error: unknown) => send({ type: 'reply', seq, ok: false, message: messageOf(error) }));
    return;
  }
  if (message.type === 'note') note(message.id, message.note);
  else if (message.type === 'abort') calls.get(message.call)?.abort();
  else close(message.id);
});
process.on('disconnect', () => process.exit());
