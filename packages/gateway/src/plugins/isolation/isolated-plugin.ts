import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { SignalboxError } from '@signalbox/plugin-api';
import type {
  AdmissionArguments,
  AdmissionInstance,
  AsyncSignalInstance,
  AttemptOutcome,
  CandidateView,
  Closeable,
  FilterInstance,
  Logger,
  ParsedRequest,
  PickerInstance,
  Plugin,
  PluginKind,
  PropertyInstance,
  RandomSource,
  RequestView,
  ScorerInstance,
  SetupContext,
  SignalInstance,
  Value,
} from '@signalbox/plugin-api';
import { candidatesData, parsedData, requestData } from './marshal.ts';
import type {
  CallData,
  DefinitionData,
  IsolationLimits,
  KeeperData,
  LogLine,
  NoteData,
  PluginData,
  Reply,
  ToKeeper,
} from './messages.ts';
import { ANSWERS, AWAY, STATE, UP } from './messages.ts';

export const DEFAULT_LIMITS: IsolationLimits = {
  callMs: 5,
  firstCallMs: 250,
  setupMs: 2000,
  heapMb: 64,
  residentMb: 256,
  backOffMs: 100,
  mostBackOffMs: 30_000,
};

/** Numbers drawn for a picker: at least so many, and so many for each candidate. */
const DRAWS = 64;
const DRAWS_A_CANDIDATE = 4;
/** Milliseconds that a process stays without an instance after the import that described it. */
const IDLE_MS = 1000;

/** Whatever instance there is, with the methods of all kinds. */
type Instance = Closeable & { [method: string]: unknown };

type ToGateway =
  | Reply
  | LogLine
  | { readonly type: 'imported'; readonly data: PluginData | undefined }
  | { readonly type: 'import_failed'; readonly message: string };

const byEntry = new Map<string, Promise<Plugin | undefined>>();

/**
 * Imports a package in a process of its own and gives what stands for its default export: the same definitions, whose instances live in
 * that process. Undefined where it has no default export. One object for each entry and limits, as with an import. Rejects where the
 * import fails or takes too long.
 */
export function importIsolated(
  name: string,
  entry: string,
  limits: IsolationLimits = DEFAULT_LIMITS,
): Promise<Plugin | undefined> {
  const key = JSON.stringify([entry, limits]);
  let imported = byEntry.get(key);
  if (imported === undefined) {
    imported = importAnew(name, entry, limits);
    byEntry.set(key, imported);
    imported.catch(() => byEntry.delete(key));
  }
  return imported;
}

async function importAnew(name: string, entry: string, limits: IsolationLimits): Promise<Plugin | undefined> {
  const host = new IsolatedHost(name, entry, limits);
  const data = await host.describe();
  return data?.provides === undefined ? (data as Plugin | undefined) : pluginOf(data, host);
}

function pluginOf(data: PluginData, host: IsolatedHost): Plugin {
  const provides: { [kind: string]: { [name: string]: DefinitionData } } = {};
  for (const [kind, definitions] of Object.entries(data.provides ?? {})) {
    const made: { [name: string]: DefinitionData } = (provides[kind] = {});
    for (const [name, definition] of Object.entries(definitions)) {
      const setup = (context: SetupContext): Closeable => host.setUp(kind as PluginKind, name, definition, context);
      made[name] = 'expression' in definition ? definition : { ...definition, setup };
    }
  }
  return { ...data, provides } as unknown as Plugin;
}

/** The gateway's end of one isolated package: its keeper's thread, while there is an instance. */
class IsolatedHost {
  readonly #name: string;
  readonly #entry: string;
  readonly #limits: IsolationLimits;
  readonly #loggers = new Map<number, Logger>();
  readonly #promised = new Map<number, (reply: Reply) => void>();
  #worker: Worker | undefined;
  #answers: MessagePort | undefined;
  #shared = new Int32Array(new SharedArrayBuffer(8));
  #seq = 0;
  #id = 0;

  constructor(name: string, entry: string, limits: IsolationLimits) {
    this.#name = name;
    this.#entry = entry;
    this.#limits = limits;
  }

  /** Starts the process and gives what it says of its plugin. */
  describe(): Promise<PluginData | undefined> {
    const worker = this.#start();
    worker.ref();
    return new Promise<PluginData | undefined>((resolve, reject) => {
      worker.on('message', (message: ToGateway) => {
        if (message.type === 'imported') {
          setTimeout(() => this.#endIfIdle(), IDLE_MS).unref();
          resolve(message.data);
        } else if (message.type === 'import_failed') reject(new Error(message.message));
      });
      worker.once('error', reject);
    }).finally(() => worker.unref());
  }

  setUp(kind: PluginKind, name: string, definition: DefinitionData, context: SetupContext): Instance {
    const starts = this.#worker === undefined;
    if (starts) this.#start();
    const id = ++this.#id;
    const { options, logger, random } = context;
    const setup = {
      id,
      kind,
      name,
      options: { ...options },
      seed: random.next() * 2 ** 32,
    };
    this.#loggers.set(id, logger);
    try {
      const seq = ++this.#seq;
      // A process that is starting is waited for; one that fails over and over is not.
      if (!starts) this.#refuseWhileAway();
      const within = starts ? 2 * this.#limits.setupMs : this.#limits.setupMs;
      const methods = this.#ask({ type: 'setup', seq, setup }, within) as readonly string[];
      return this.#instance(id, kind, definition, methods);
    } catch (error) {
      this.#close(id);
      throw error;
    }
  }

  #instance(id: number, kind: PluginKind, definition: DefinitionData, methods: readonly string[]): Instance {
    const reads = definition.reads ?? [];
    let limitMs = this.#limits.firstCallMs;
    const call = (data: CallData): unknown => {
      this.#refuseWhileAway();
      const within = Math.max(limitMs, this.#limits.callMs);
      limitMs = 0;
      return this.#ask({ type: 'call', seq: ++this.#seq, id, call: data }, within);
    };
    const all: Instance = {
      ...this.#methodsOf(reads, call),
      picked: (slot: number) => this.#note(id, { method: 'picked', slot }),
      ended: (slot: number, outcome: AttemptOutcome) => this.#note(id, { method: 'ended', slot, outcome }),
      forget: (slot: number) => this.#note(id, { method: 'forget', slot }),
    };
    if (kind === 'signal' && definition['budgetMs'] !== undefined) all['evaluate'] = this.#evaluateLater(id, reads);
    const instance: Instance = {};
    for (const method of methods) instance[method] = all[method];
    let open = true;
    instance.close = () => {
      if (open) this.#close(id);
      open = false;
    };
    return instance;
  }

  #methodsOf(reads: readonly string[], call: (data: CallData) => unknown): { readonly [method: string]: unknown } {
    const fill =
      (method: 'score' | 'fill' | 'filter') =>
      (request: RequestView, view: CandidateView, out: Float64Array | Uint8Array): void => {
        const candidates = candidatesData(view, reads);
        out.set(this.#array(call({ method, request: requestData(request, reads), candidates }), view.length));
      };
    let drawn = new Float64Array(0);
    const draws = (random: RandomSource, length: number): Float64Array => {
      const wanted = DRAWS + DRAWS_A_CANDIDATE * length;
      const left = drawn.length;
      return Float64Array.from({ length: Math.max(wanted, left) }, (_, i) => (i < left ? drawn[i]! : random.next()));
    };
    const taken = (given: unknown, numbers: Float64Array, out: Int32Array, length: number): number => {
      const { count, out: positions, used } = given as { count: unknown; out: unknown; used: unknown };
      drawn = numbers.slice(Number(used));
      const list = this.#array(positions, length);
      const valid = typeof count === 'number' && count >= 0 && count <= length ? Math.trunc(count) : 0;
      for (let i = 0; i < valid; i++) out[i] = list[i]!;
      return valid;
    };
    let samples = false;
    return {
      score: fill('score') satisfies ScorerInstance['score'],
      fill: fill('fill') satisfies PropertyInstance['fill'],
      filter: fill('filter') satisfies FilterInstance['filter'],
      sample: ((view, random, out) => {
        samples = true;
        drawn = new Float64Array(0);
        const numbers = draws(random, view.length);
        return taken(
          call({ method: 'sample', candidates: candidatesData(view, reads), draws: numbers }),
          numbers,
          out,
          view.length,
        );
      }) satisfies NonNullable<PickerInstance['sample']>,
      pick: ((scores, view, random, k, out) => {
        // What `sample` left of the numbers comes first, as it would from the generator itself.
        if (!samples) drawn = new Float64Array(0);
        const numbers = draws(random, view.length);
        const candidates = candidatesData(view, reads);
        const data: CallData = { method: 'pick', scores: scores.slice(0, view.length), candidates, k, draws: numbers };
        return taken(call(data), numbers, out, view.length);
      }) satisfies NonNullable<PickerInstance['pick']>,
      holds: ((request, view, args: AdmissionArguments) => {
        const candidates = candidatesData(view, reads);
        const value = call({ method: 'holds', request: requestData(request, reads), candidates, args });
        return typeof value === 'boolean' ? value : undefined;
      }) satisfies AdmissionInstance['holds'],
      evaluate: ((parsed, view) =>
        call({
          method: 'evaluate',
          request: requestData(view, reads),
          parsed: parsedData(parsed),
        }) as Value | undefined) satisfies SignalInstance['evaluate'],
    };
  }

  #evaluateLater(id: number, reads: readonly string[]): AsyncSignalInstance['evaluate'] {
    return async (parsed: ParsedRequest, view: RequestView, abort: AbortSignal) => {
      this.#refuseWhileAway();
      const seq = ++this.#seq;
      const call: CallData = { method: 'evaluate', request: requestData(view, reads), parsed: parsedData(parsed) };
      const reply = await new Promise<Reply>((resolve) => {
        this.#promised.set(seq, resolve);
        this.#worker?.ref();
        abort.addEventListener('abort', () => this.#post({ type: 'tell', message: { type: 'abort', call: seq } }), {
          once: true,
        });
        this.#post({ type: 'ask', sync: false, message: { type: 'call', seq, id, call } });
      });
      if (!reply.ok) throw this.#failure(reply.message);
      return reply.value as Value | undefined;
    };
  }

  #array(value: unknown, length: number): Float64Array | Uint8Array | Int32Array {
    const isOne = value instanceof Float64Array || value instanceof Uint8Array || value instanceof Int32Array;
    if (!isOne || value.length !== length) throw this.#failure('its process gave an answer that is none');
    return value;
  }

  #note(id: number, note: NoteData): void {
    if (Atomics.load(this.#shared, STATE) === UP) this.#post({ type: 'tell', message: { type: 'note', id, note } });
  }

  #refuseWhileAway(): void {
    if (Atomics.load(this.#shared, STATE) !== UP) throw this.#failure('its process is away');
  }

  /** Asks and waits, with this thread at rest. Throws `plugin_failed`, and has the process ended where it does not answer in time. */
  #ask(message: Extract<ToKeeper, { readonly type: 'ask' }>['message'], withinMs: number): unknown {
    const untilMs = performance.now() + withinMs;
    this.#post({ type: 'ask', sync: true, message });
    for (;;) {
      const seen = Atomics.load(this.#shared, ANSWERS);
      const reply = this.#answerTo(message.seq);
      if (reply?.ok === true) return reply.value;
      if (reply !== undefined) throw this.#failure(reply.message);
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) break;
      Atomics.wait(this.#shared, ANSWERS, seen, leftMs);
    }
    const why = `no answer within ${withinMs} ms`;
    Atomics.store(this.#shared, STATE, AWAY);
    this.#post({ type: 'fail', why });
    throw this.#failure(why);
  }

  #answerTo(seq: number): Reply | undefined {
    for (;;) {
      const got = this.#answers === undefined ? undefined : receiveMessageOnPort(this.#answers);
      if (got === undefined) return undefined;
      const reply = got.message as Reply;
      if (reply.seq === seq) return reply;
    }
  }

  #post(message: ToKeeper): void {
    this.#worker?.postMessage(message);
  }

  #start(): Worker {
    const { port1, port2 } = new MessageChannel();
    this.#shared = new Int32Array(new SharedArrayBuffer(8));
    const data: KeeperData = { entry: this.#entry, limits: this.#limits, shared: this.#shared, answers: port2 };
    const fromSource = import.meta.url.endsWith('.ts');
    const worker = new Worker(new URL(`./keeper-worker.${fromSource ? 'ts' : 'js'}`, import.meta.url), {
      workerData: data,
      transferList: [port2],
      execArgv: fromSource ? ['--conditions=@signalbox/source'] : [],
    });
    worker.on('message', (message: ToGateway) => this.#heard(message));
    worker.on('error', () => this.#end());
    worker.unref();
    this.#answers = port1;
    this.#worker = worker;
    return worker;
  }

  #heard(message: ToGateway): void {
    if (message.type === 'reply') {
      this.#promised.get(message.seq)?.(message);
      this.#promised.delete(message.seq);
      if (this.#promised.size === 0) this.#worker?.unref();
      return;
    }
    if (message.type === 'import_failed') this.#end();
    if (message.type !== 'log') return;
    const [any] = this.#loggers.values();
    const logger = message.id === undefined ? any : this.#loggers.get(message.id);
    logger?.[message.level](message.message, { ...message.fields, isolated: this.#name });
  }

  #close(id: number): void {
    this.#loggers.delete(id);
    this.#post({ type: 'tell', message: { type: 'close', id } });
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#loggers.size === 0) this.#end();
  }

  #end(): void {
    this.#post({ type: 'end' });
    this.#answers?.close();
    this.#worker = undefined;
    this.#answers = undefined;
    Atomics.store(this.#shared, STATE, AWAY);
    for (const [seq, resolve] of this.#promised) resolve({ type: 'reply', seq, ok: false, message: 'it was closed' });
    this.#promised.clear();
  }

  #failure(why: string): SignalboxError {
    return new SignalboxError(`isolated plugin package "${this.#name}": ${why}`, {
      code: 'plugin_failed',
      source: 'plugin',
    });
  }
}
