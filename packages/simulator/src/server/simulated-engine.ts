import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { findProfile, suggestGpus } from '@signalbox/hardware-profiles';
import type { LatencyModel, Profile, ProfileQuery } from '@signalbox/hardware-profiles';
import { errorBody } from '@signalbox/openai-wire';
import { createEngine } from '../engine/engine.ts';
import type { Engine, EngineOptions, SequenceHandle } from '../engine/engine.ts';
import { renderMetrics } from '../engine/metrics-text.ts';
import { latencyFromRates } from '../engine/step-time.ts';
import { createAnswer } from './answer.ts';
import type { Answer } from './answer.ts';
import { cutSocket } from './cut-socket.ts';
import { createFaultBook, parseFaults } from './fault.ts';
import type { Fault } from './fault.ts';
import { embed, generateText } from './generated-text.ts';
import { createPacer } from './pacer.ts';
import type { Pacer } from './pacer.ts';
import {
  badRequest,
  isProblem,
  parseJsonObject,
  readChatBody,
  readCompletionBody,
  readEmbeddingBody,
} from './request-body.ts';
import type { EmbeddingBody, GenerationBody, RequestProblem } from './request-body.ts';
import { createRequestLog } from './request-log.ts';
import type { RequestLog } from './request-log.ts';

/** Tokens per second: output of one sequence alone, and prompt. */
interface Rates {
  readonly tokensPerSecond: number;
  readonly prefillTokensPerSecond: number;
}

/** How a simulated engine is started. */
export interface SimulatedEngineOptions extends Omit<EngineOptions, 'latency' | 'maxAdapters'> {
  /** The model it serves. */
  readonly model: string;
  /** Further names for the same model. */
  readonly aliases?: readonly string[];
  /** LoRA adapters, callable as models. */
  readonly adapters?: readonly string[];
  /** Most adapters in one batch (`max_lora`); default 8. */
  readonly maxAdapters?: number;
  /**
   * Where its speed comes from: a profile, a look-up of one (`modelName` defaults to `model`), or plain rates. Default: plain rates
   * of 30 output and 8,000 prompt tokens per second.
   */
  readonly speed?: LatencyModel | ProfileQuery | Rates;
  /** Its speed where `speed` is a look-up that finds no profile; default: that is an error. */
  readonly speedIfUnknown?: Rates;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** Prompt and output tokens of a request; default 32,768, or less where the KV cache holds less. */
  readonly maxModelLen?: number;
  /** How many times faster than real its clock runs; default 1. */
  readonly timeScale?: number;
  /** When set, paths under /v1 need it as bearer. */
  readonly apiKey?: string;
  /** Changes all generated texts; default 0. */
  readonly seed?: number;
  /** Numbers in an embedding; default 64. */
  readonly embeddingDimensions?: number;
  readonly faults?: readonly Fault[];
  /** The timer, shared by several engines; default one of its own. */
  readonly pacer?: Pacer;
  /** Requests kept in the log; default 100. */
  readonly keepRequests?: number;
  /** How long an idle connection is kept, ms; default 5,000, as uvicorn's. */
  readonly keepAliveTimeoutMs?: number;
  /** Largest body, bytes; default 64 MiB. */
  readonly maxBodyBytes?: number;
}

/** A running simulated engine. */
export interface SimulatedEngine {
  /** Such as `http://127.0.0.1:43210`. */
  readonly url: string;
  readonly port: number;
  readonly model: string;
  /** The engine behind it, with its state and counters. */
  readonly engine: Engine;
  /** The profile, when its speed came from one. */
  readonly profile?: Profile;
  readonly maxModelLen: number;
  readonly requests: RequestLog;
  /** Replaces the faults in force; an empty list ends them (what hangs goes on hanging). */
  setFaults(faults: readonly Fault[]): void;
  /** Open connections. */
  connections(): number;
  /** Stops listening and drops all connections; `reset` drops them with RST, as a killed process' host may. */
  close(how?: 'end' | 'reset'): Promise<void>;
}

interface Context {
  readonly options: SimulatedEngineOptions;
  readonly engine: Engine;
  readonly maxModelLen: number;
  readonly names: ReadonlySet<string>;
  readonly adapters: ReadonlySet<string>;
  readonly startMs: number;
  /** The engine's clock. */
  readonly nowMs: () => number;
  readonly submit: (request: Parameters<Engine['submit']>[0]) => SequenceHandle;
  readonly cancel: (handle: SequenceHandle) => void;
  readonly touched: (answer: Answer) => void;
  readonly nextId: () => string;
}

/** Starts a model server that speaks vLLM's protocol over HTTP and times its tokens by the engine. Resolves when it listens. */
export async function startSimulatedEngine(options: SimulatedEngineOptions): Promise<SimulatedEngine> {
  const { latency, profile } = resolveSpeed(options);
  const blockSize = options.blockSize ?? 16;
  const kvBlocks =
    options.kvBlocks ??
    (profile === undefined || profile.kvTokensCapacity < blockSize
      ? 4096
      : Math.floor(profile.kvTokensCapacity / blockSize));
  const maxBatch = options.maxBatch ?? profile?.maxBatch ?? 256;
  const engine = createEngine({ ...options, latency, blockSize, kvBlocks, maxBatch });
  const maxModelLen = Math.min(options.maxModelLen ?? 32_768, engine.capacityTokens);
  const timeScale = options.timeScale ?? 1;
  if (!(timeScale > 0)) throw new RangeError(`timeScale must be above 0, got ${timeScale}`);

  const pacer = options.pacer ?? createPacer();
  const originMs = pacer.nowMs();
  const toEngineMs = (nowMs: number): number => (nowMs - originMs) * timeScale;
  let touched: Answer[] = [];
  const flush = (): void => {
    const answers = touched;
    touched = [];
    for (const answer of answers) answer.flush();
  };
  const paced = pacer.add({
    nextEventMs: () => {
      const next = engine.nextEventMs();
      return next === undefined ? undefined : originMs + next / timeScale;
    },
    advance: (nowMs) => {
      engine.advance(toEngineMs(nowMs));
      flush();
    },
  });

  let ids = 0;
  const context: Context = {
    options,
    engine,
    maxModelLen,
    names: new Set([options.model, ...(options.aliases ?? [])]),
    adapters: new Set(options.adapters ?? []),
    startMs: Date.now(),
    nowMs: () => toEngineMs(pacer.nowMs()),
    submit(request) {
      const handle = engine.submit(request, toEngineMs(pacer.nowMs()));
      flush();
      paced.wake();
      return handle;
    },
    cancel(handle) {
      handle.cancel(toEngineMs(pacer.nowMs()));
      flush();
      paced.wake();
    },
    touched: (answer) => void touched.push(answer),
    nextId: () => (++ids).toString(16).padStart(16, '0'),
  };

  const faults = createFaultBook(options.faults);
  const log = createRequestLog(options.keepRequests ?? 100);
  const sockets = new Set<Socket>();
  const delays = new Set<ReturnType<typeof setTimeout>>();

  const http = createHttpServer(
    { keepAliveTimeout: options.keepAliveTimeoutMs ?? 5000 },
    (request, response) => void accept(request, response),
  );

  async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, options.maxBodyBytes ?? 64 * 2 ** 20);
    if (body === 'left') return;
    const { method = '', url = '', headers } = request;
    log.add({ method, url, headers, body: body === 'too large' ? Buffer.alloc(0) : body, atMs: Date.now() });
    if (body === 'too large')
      sendProblem(response, { ...badRequest('The body is too large.', null, 'request_too_large'), status: 413 });
    else receive(request, response, body);
  }

  function receive(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const method = request.method ?? '';
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (path.startsWith('/-/')) {
      answerAdmin(method, path, body, response);
      return;
    }
    const json = method === 'POST' ? parseJsonObject(body) : {};
    const peek = isProblem(json) ? {} : json;
    const fault = faults.take({
      method,
      path,
      ...(typeof peek['model'] === 'string' ? { model: peek['model'] } : {}),
      stream: peek['stream'] === true,
    });
    const proceed = (): void => {
      if (response.destroyed || fault?.hangAt === 'headers') return;
      if (fault !== undefined && applyCut(fault, response) === 0) return;
      if (fault?.errorStatus !== undefined) sendInjectedError(fault, fault.errorStatus, response);
      else route(context, method, path, request, json, response, fault);
    };
    if (fault?.delayMs === undefined || fault.delayMs === 0) proceed();
    else {
      const timer = setTimeout(() => {
        delays.delete(timer);
        proceed();
      }, fault.delayMs);
      delays.add(timer);
    }
  }

  function answerAdmin(method: string, path: string, body: Buffer, response: ServerResponse): void {
    if (path === '/-/faults' && (method === 'POST' || method === 'PUT')) {
      let json: unknown;
      try {
        json = JSON.parse(body.toString('utf8'));
      } catch {
        return sendProblem(response, badRequest('The body is not valid JSON.', null, 'invalid_json'));
      }
      const parsed = parseFaults(json);
      if ('problem' in parsed) return sendProblem(response, badRequest(parsed.problem));
      faults.set(parsed.faults);
    } else if (path === '/-/faults' && method === 'DELETE') faults.set([]);
    else if (path !== '/-/faults' || method !== 'GET') return sendProblem(response, notFound());
    return sendJson(response, 200, { faults: faults.list() });
  }

  // Connections go through a server of our own, so that a fault can leave one unread.
  const net = createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (faults.takeConnection() === undefined) http.emit('connection', socket);
    else socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    net.once('error', reject);
    net.listen(options.port ?? 0, options.host ?? '127.0.0.1', () => {
      net.off('error', reject);
      resolve();
    });
  });
  const { port, address, family } = net.address() as AddressInfo;

  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    port,
    model: options.model,
    engine,
    ...(profile === undefined ? {} : { profile }),
    maxModelLen,
    requests: log,
    setFaults: (list) => faults.set(list),
    connections: () => sockets.size,
    close(how = 'end') {
      paced.remove();
      for (const timer of delays) clearTimeout(timer);
      return new Promise((resolve) => {
        net.close(() => resolve());
        http.close();
        for (const socket of sockets) {
          if (how === 'reset') socket.resetAndDestroy();
          else socket.destroy();
        }
      });
    },
  };
}

function resolveSpeed({ model, speed, speedIfUnknown }: SimulatedEngineOptions): {
  readonly latency: LatencyModel;
  readonly profile?: Profile;
} {
  if (speed === undefined) return { latency: latencyFromRates({ tokensPerSecond: 30, prefillTokensPerSecond: 8000 }) };
  if ('tokensPerSecond' in speed) return { latency: latencyFromRates(speed) };
  if (!('gpu' in speed) || 'decode' in speed) {
    const latency = speed as LatencyModel | Profile;
    return 'kvTokensCapacity' in latency ? { latency, profile: latency } : { latency };
  }
  const profile = findProfile({ modelName: model, ...speed });
  if (profile === undefined) {
    if (speedIfUnknown !== undefined) return { latency: latencyFromRates(speedIfUnknown) };
    throw new TypeError(
      `no hardware profile for ${JSON.stringify(speed)}: the GPU, precision or model size is unknown; did you mean ${suggestGpus(speed.gpu).join(', ')}?`,
    );
  }
  return { latency: profile, profile };
}

/** The whole body; `too large` when it is over the limit, `left` when the client went before its end. */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too large' | 'left'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
    });
    request.once('end', () => resolve(bytes <= maxBytes ? Buffer.concat(chunks) : 'too large'));
    request.once('error', () => resolve('left'));
    request.once('close', () => resolve('left'));
  });
}

/** Arms the cut that a fault asks for, and returns its byte. */
function applyCut(fault: Fault, response: ServerResponse): number | undefined {
  const atByte = fault.resetAtByte ?? fault.endAtByte;
  if (atByte === undefined || response.socket === null) return undefined;
  const lift = cutSocket(response.socket, atByte, fault.resetAtByte === undefined ? 'end' : 'reset', () =>
    response.emit('cut'),
  );
  response.once('finish', lift);
  return atByte;
}

function route(
  context: Context,
  method: string,
  path: string,
  request: IncomingMessage,
  json: ReturnType<typeof parseJsonObject>,
  response: ServerResponse,
  fault: Fault | undefined,
): void {
  const { options, engine } = context;
  if (method === 'GET') {
    if (path === '/health' || path === '/ping') return sendText(response, '', 'text/plain');
    if (path === '/version') return sendJson(response, 200, { version: '0.26.0+signalbox.simulated' });
    if (path === '/metrics') return sendMetrics(context, response);
  }
  if (
    path.startsWith('/v1') &&
    options.apiKey !== undefined &&
    request.headers.authorization !== `Bearer ${options.apiKey}`
  ) {
    return sendProblem(response, { status: 401, message: 'Unauthorized', param: null, code: 'invalid_api_key' });
  }
  if (method === 'GET' && path === '/v1/models') return sendJson(response, 200, modelList(context));
  if (method !== 'POST') return sendProblem(response, notFound());
  if (path === '/reset_prefix_cache') {
    engine.resetPrefixCache();
    return sendText(response, '', 'text/plain');
  }
  if (isProblem(json)) return sendProblem(response, json);
  switch (path) {
    case '/v1/chat/completions':
      return generate(context, 'chat', readChatBody(json), request, response, fault);
    case '/v1/completions':
      return generate(context, 'completion', readCompletionBody(json), request, response, fault);
    case '/v1/embeddings':
      return answerEmbeddings(context, readEmbeddingBody(json), response);
    case '/tokenize': {
      const body = Array.isArray(json['messages']) ? readChatBody(json) : readCompletionBody(json);
      if (isProblem(body)) return sendProblem(response, body);
      return sendJson(response, 200, {
        count: body.promptTokens.length,
        max_model_len: context.maxModelLen,
        tokens: body.promptTokens,
        token_strs: null,
      });
    }
    default:
      return sendProblem(response, notFound());
  }
}

function generate(
  context: Context,
  kind: 'chat' | 'completion',
  body: GenerationBody | RequestProblem,
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | undefined,
): void {
  if (isProblem(body)) return sendProblem(response, body);
  const problem = checkModel(context, body.model) ?? checkLength(context, kind, body);
  if (problem !== undefined) return sendProblem(response, problem);
  const { promptTokens } = body;
  const text = generateText(promptTokens, context.options.seed ?? 0);
  const limit = Math.min(body.maxTokens ?? Infinity, context.maxModelLen - promptTokens.length);
  const wanted = body.ignoreEnd ? Infinity : Math.max(text.naturalTokens, body.minTokens);
  const outputTokens = Math.min(wanted, limit);
  const finishReason = wanted <= limit ? 'stop' : 'length';
  const requestId = request.headers['x-request-id'];
  const id = typeof requestId === 'string' && requestId !== '' ? requestId : context.nextId();

  let generated = 0;
  let ended = false;
  let handle: SequenceHandle | undefined;
  const abandon = (): void => {
    if (!ended && handle !== undefined) context.cancel(handle);
  };
  const answer = createAnswer({
    response,
    head: {
      kind,
      id: `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${id}`,
      model: body.model,
      created: Math.floor(Date.now() / 1000),
    },
    text,
    outputTokens,
    finishReason,
    stream: body.stream,
    includeUsage: body.includeUsage,
    echo: body.echo,
    headers: {
      ...(typeof requestId === 'string' ? { 'x-request-id': requestId } : {}),
      ...loadReport(context, request),
    },
    fault,
    usage: () => ({
      promptTokens: promptTokens.length,
      completionTokens: generated,
      cachedTokens: handle?.cachedTokens() ?? 0,
    }),
    abandon,
  });
  // A client that leaves, or a cut connection, frees the sequence at once.
  response.once('close', abandon);
  response.once('cut', abandon);
  handle = context.submit({
    promptTokens,
    outputTokens,
    outputTokenAt: (index) => text.tokenId(index, finishReason === 'stop' && index === outputTokens - 1),
    finishReason,
    ...(body.maxTokens === undefined ? {} : { maxTokens: body.maxTokens }),
    ...(context.adapters.has(body.model) ? { adapter: body.model } : {}),
    ...(body.cacheSalt === undefined ? {} : { cacheSalt: body.cacheSalt }),
    onTokens(count) {
      generated += count;
      answer.addToken();
      context.touched(answer);
    },
    onEnd(reason) {
      ended = true;
      answer.end(reason);
      context.touched(answer);
    },
  });
}

function answerEmbeddings(context: Context, body: EmbeddingBody | RequestProblem, response: ServerResponse): void {
  if (isProblem(body)) return sendProblem(response, body);
  const tooLong = body.inputs.find((input) => input.length > context.maxModelLen);
  const problem =
    checkModel(context, body.model) ??
    (tooLong === undefined ? undefined : tooLongProblem(context, tooLong.length, 0, 'input'));
  if (problem !== undefined) return sendProblem(response, problem);
  const dimensions = body.dimensions ?? context.options.embeddingDimensions ?? 64;
  let left = body.inputs.length;
  const finish = (): void => {
    const promptTokens = body.inputs.reduce((sum, input) => sum + input.length, 0);
    sendJson(response, 200, {
      id: `embd-${context.nextId()}`,
      object: 'list',
      created: Math.floor(Date.now() / 1000),
      model: body.model,
      data: body.inputs.map((input, index) => ({
        index,
        object: 'embedding',
        embedding: encodeVector(embed(input, dimensions), body.encoding),
      })),
      usage: {
        prompt_tokens: promptTokens,
        total_tokens: promptTokens,
        completion_tokens: 0,
        prompt_tokens_details: null,
      },
    });
  };
  const handles = body.inputs.map((promptTokens) =>
    context.submit({
      promptTokens,
      outputTokens: 0,
      onEnd(reason) {
        if (--left === 0 && reason !== 'abort') finish();
      },
    }),
  );
  response.once('close', () => {
    if (left > 0) for (const handle of handles) context.cancel(handle);
  });
}

function encodeVector(vector: Float32Array, encoding: 'float' | 'base64'): readonly number[] | string {
  if (encoding === 'float') return Array.from(vector);
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, i) => bytes.writeFloatLE(value, i * 4));
  return bytes.toString('base64');
}

function checkModel({ names, adapters }: Context, model: string): RequestProblem | undefined {
  if (names.has(model) || adapters.has(model)) return undefined;
  return { status: 404, message: `The model \`${model}\` does not exist.`, param: 'model', code: 'model_not_found' };
}

function checkLength(context: Context, kind: 'chat' | 'completion', body: GenerationBody): RequestProblem | undefined {
  const prompt = body.promptTokens.length;
  if (prompt + (body.maxTokens ?? 1) <= context.maxModelLen) return undefined;
  return tooLongProblem(context, prompt, body.maxTokens ?? 1, kind === 'chat' ? 'messages' : 'prompt');
}

const tooLongProblem = ({ maxModelLen }: Context, prompt: number, output: number, param: string): RequestProblem => ({
  ...badRequest(
    `This model's maximum context length is ${maxModelLen} tokens. However, you requested ${prompt + output} tokens (${prompt} in the ${param}, ${output} in the completion). Please reduce the length of the ${param} or completion.`,
    param,
  ),
  code: 'context_length_exceeded',
});

function modelList({ names, adapters, options, maxModelLen, startMs }: Context): object {
  const entry = (id: string, parent: string | null): object => ({
    id,
    object: 'model',
    created: Math.floor(startMs / 1000),
    owned_by: 'vllm',
    root: options.model,
    parent,
    max_model_len: parent === null ? maxModelLen : null,
  });
  return {
    object: 'list',
    data: [...[...names].map((name) => entry(name, null)), ...[...adapters].map((name) => entry(name, options.model))],
  };
}

/** The ORCA load report that vLLM adds when a request asks for it. */
function loadReport({ engine }: Context, request: IncomingMessage): Record<string, string> {
  const format = request.headers['endpoint-load-metrics-format'];
  if (format !== 'JSON' && format !== 'TEXT') return {};
  const { kvUsage, waiting } = engine.state();
  const metrics = { kv_cache_usage_perc: kvUsage, num_requests_waiting: waiting };
  return {
    'endpoint-load-metrics':
      format === 'JSON'
        ? `JSON ${JSON.stringify({ named_metrics: metrics })}`
        : `TEXT ${Object.entries(metrics)
            .map(([name, value]) => `named_metrics.${name}=${value}`)
            .join(', ')}`,
  };
}

function sendMetrics(context: Context, response: ServerResponse): void {
  const text = renderMetrics(context.engine, {
    modelName: context.options.model,
    startSeconds: context.startMs / 1000,
    nowSeconds: Date.now() / 1000,
    servesAdapters: context.adapters.size > 0,
  });
  sendText(response, text, 'text/plain; version=0.0.4; charset=utf-8');
}

function sendInjectedError(fault: Fault, status: number, response: ServerResponse): void {
  const headers = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
  const message = fault.errorMessage ?? `Injected error ${status}.`;
  sendProblem(response, { status, code: fault.errorCode ?? `injected_${status}`, message, param: null }, headers);
}

function sendProblem(
  response: ServerResponse,
  problem: RequestProblem,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = errorBody('/v1/chat/completions', problem.status, problem.code, problem.message, problem.param);
  response
    .writeHead(problem.status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...headers,
    })
    .end(body);
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  const body = JSON.stringify(value);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body);
}

function sendText(response: ServerResponse, body: string, type: string): void {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}

const notFound = (): RequestProblem => ({ status: 404, message: 'Not Found', param: null, code: 'not_found' });
