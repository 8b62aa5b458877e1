import { createServer, IncomingMessage, STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { EndpointTarget, Router } from '@signalbox/core';
import { errorBody } from '@signalbox/openai-wire';
import { silentLogger, type Clock, type Logger } from '@signalbox/plugin-api';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyServerOptions } from 'fastify';
import { ownLines } from './answer-head.ts';
import { addErrorHeaders } from './client-answer.ts';
import { edgeFault, isH2c } from './edge-checks.ts';
import { endSocket } from './end-socket.ts';
import { EndpointPools } from './endpoint-pools.ts';
import { Exchange } from './exchange.ts';
import type { ExchangeHost, LiveExchange } from './exchange-host.ts';
import { withForwarding, type ForwardingRules } from './forwarding.ts';
import type { Identity, IdentityRefusal, ProxyHooks } from './hooks.ts';
import { DEFAULT_LIMITS, type ProxyLimits } from './limits.ts';
import { LinedResponse } from './lined-response.ts';
import { LiveList } from './live-list.ts';
import { modelById, modelIdOf, modelList, UNKNOWN_MODEL } from './models.ts';
import { readHead, type RequestHead } from './request-head.ts';
import { newRequestId } from './request-id.ts';
import { TimerWheel } from './timer-wheel.ts';
import { systemTimers, type Timers } from './timers.ts';

export interface ProxyOptions {
  readonly router: Router;
  /** The core's clock. */
  readonly clock: Clock;
  readonly logger?: Logger;
  readonly timers?: Timers;
  readonly limits?: Partial<ProxyLimits>;
  readonly hooks?: ProxyHooks;
  /** The name of the model in answers after a rewrite: what the client asked for (default), or what served it; asked for each request. */
  readonly reportModel?: () => 'asked' | 'real';
  /**
   * Whose forwarding headers (`X-Forwarded-*`) are believed; asked for each request. Undefined: nobody's, and none are sent upstream.
   */
  readonly forwarding?: () => ForwardingRules | undefined;
  /**
   * Milliseconds after which the head of a stream is sent although the upstream has said nothing, for balancers that cut silent
   * connections; asked for each request. Until its first event comments fill the silence, and a failure is an error event. Default: never.
   */
  readonly earlyHeadMs?: () => number;
  /** PEM texts; the listener speaks TLS if they are given. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Several workers share one port. */
  readonly reusePort?: boolean;
}

export interface CloseOptions {
  /** How long connections are still accepted, answered with `Connection: close`. Default 0. */
  readonly acceptMs?: number;
  /** From then on, how long running requests may take. Default 0. */
  readonly graceMs?: number;
  /** How long error events may take to leave before sockets are destroyed. Default 5 s. */
  readonly forceMs?: number;
}

export interface ProxyStats {
  /** Requests between their first byte and the last byte of their answer. */
  readonly live: number;
  /** Endpoints with a connection pool. */
  readonly pools: number;
  /** Armed timers. */
  readonly timers: number;
  /** Client connections that were closed at once because there were too many. */
  readonly connectionsDropped: number;
}

/** The data plane: an HTTP server that asks a router and relays. */
export interface Proxy {
  listen(options: ListenOptions): Promise<AddressInfo>;
  /** Where it listens; undefined before `listen` and after `close`. */
  readonly address: AddressInfo | undefined;
  readonly stats: ProxyStats;
  /** Closes the connections to an endpoint that left the fleet, as they become idle. */
  retire(target: EndpointTarget): void;
  /** The certificate for connections to come, as PEM texts; nothing if the listener does not speak TLS. Throws if they do not fit. */
  setCertificate(tls: { readonly cert: string; readonly key: string }): void;
  /** Ends gracefully; a second call with shorter times overrules the first. Resolves when every socket is closed. */
  close(options?: CloseOptions): Promise<void>;
}

/** Paths whose bodies are understood or passed through. */
const ROUTES: readonly string[] = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/messages',
  '/v1/rerank',
  '/v1/audio/*',
];
/** A target that is one of these to the letter needs no router to find it. */
const EXACT_ROUTES: ReadonlySet<string> = new Set(ROUTES.filter((route) => !route.endsWith('*')));
const IDLE_SWEEP_MS = 250;

/**
 * Makes the data plane over `router`. Fastify owns the server and the routes; a request is taken over (`hijack`) in its first hook, so
 * that neither parsers nor serialisers nor Readable streams stand between the sockets. A POST whose target is a route as it is written goes
 * there at once: what fastify would make for it is thrown away unread.
 */
export function createProxy(options: ProxyOptions): Proxy {
  const limits: ProxyLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const timers = options.timers ?? systemTimers;
  const { clock, router } = options;
  const logger = options.logger ?? silentLogger;
  const hooks = options.hooks ?? {};
  const wheel = new TimerWheel(clock, timers);
  const pools = new EndpointPools(limits.upstreamKeepAliveMs);
  const live = new LiveList<LiveExchange>();
  let closing = false;
  let refusing = false;
  let connectionsDropped = 0;

  const host: ExchangeHost = {
    router,
    clock,
    wheel,
    pools,
    limits,
    logger,
    hooks,
    reportModel: options.reportModel ?? ((): 'asked' => 'asked'),
    live,
    isClosing: () => closing,
    earlyHeadMs: options.earlyHeadMs ?? (() => Number.POSITIVE_INFINITY),
  };

  const epochMs = (): number => clock.epochMs();
  const headOf = (request: IncomingMessage): RequestHead => {
    const rules = options.forwarding?.();
    if (rules === undefined) return readHead(request.rawHeaders, false, epochMs);
    const { remoteAddress } = request.socket;
    const trusted = remoteAddress !== undefined && rules.trusts(remoteAddress);
    return withForwarding(readHead(request.rawHeaders, trusted, epochMs), request);
  };

  /** Our own header lines on an answer that no policy decided. */
  const undecidedLines = (requestId: string, code: string | undefined): string =>
    ownLines({
      requestId,
      decision: undefined,
      policy: hooks.policy?.() ?? '',
      code,
      explained: undefined,
      upstreamMs: 0,
      totalMs: 0,
      extra: undefined,
    });

  /** Answers without an exchange: whole, at once. */
  const answer = (
    request: IncomingMessage,
    response: LinedResponse,
    head: RequestHead,
    status: number,
    code: string | undefined,
    body: string,
  ): void => {
    const text = Buffer.from(body);
    const headers = ['content-type', 'application/json', 'content-length', String(text.length)];
    addErrorHeaders(headers, status, undefined);
    if (closing) headers.push('connection', 'close');
    const unread =
      request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
    if (unread && !closing) headers.push('connection', 'close');
    response.writeLined(status, undecidedLines(head.requestId, code), headers);
    const bytes = request.method === 'HEAD' ? undefined : text;
    if (unread && !request.complete) {
      // A close while the upload runs would reset the connection before the client has read the answer.
      response.write(bytes ?? '');
      const timer = timers.setTimeout(() => request.socket.destroy(), limits.lingerMs);
      response.once('close', () => timers.clearTimeout(timer));
      request.once('end', () => response.end());
      request.resume();
    } else {
      response.end(bytes);
    }
    if (code !== undefined)
      hooks.unrouted?.({
        requestId: head.requestId,
        traceId: head.traceId,
        tenant: '',
        path: pathOf(request),
        status,
        code,
        durationMs: 0,
      });
  };
  const refuse = (
    request: IncomingMessage,
    response: LinedResponse,
    status: number,
    code: string,
    message: string,
  ): void => {
    answer(request, response, headOf(request), status, code, errorBody(pathOf(request), status, code, message));
  };

  const onPost = (request: IncomingMessage, response: LinedResponse, routePath: string): void => {
    const target = request.url ?? '';
    const queryAt = target.indexOf('?');
    let path = routePath;
    if (routePath.endsWith('*')) {
      path = queryAt < 0 ? target : target.slice(0, queryAt);
      if (!/^\/v1\/audio(?:\/[A-Za-z0-9_-]+)+$/.test(path)) {
        refuse(request, response, 404, 'not_found', `There is no ${request.method} ${headerSafe(path)}.`);
        return;
      }
    }
    if (refusing) {
      refuse(request, response, 503, 'draining', 'The gateway is shutting down.');
      return;
    }
    if (!router.ready()) {
      refuse(request, response, 503, 'no_route', 'No policy is in force yet.');
      return;
    }
    new Exchange(
      host,
      request,
      response,
      path,
      queryAt < 0 ? path : path + target.slice(queryAt),
      headOf(request),
    ).start();
  };

  const onModels = (request: IncomingMessage, response: LinedResponse): void => {
    const head = headOf(request);
    const path = pathOf(request);
    const identity = hooks.identify?.(head.credential, path);
    if (identity?.kind === 'refuse') {
      answer(
        request,
        response,
        head,
        identity.status,
        identity.code,
        errorBody(path, identity.status, identity.code, identity.message),
      );
      return;
    }
    const allows = identity?.allows;
    const models = allows === undefined ? router.models() : router.models().filter((model) => allows(model.id));
    if (path === '/v1/models') {
      answer(request, response, head, 200, undefined, modelList(models));
      return;
    }
    const id = modelIdOf(path);
    const body = id === undefined ? undefined : modelById(models, id);
    if (body !== undefined) answer(request, response, head, 200, undefined, body);
    else
      answer(request, response, head, 404, 'model_not_found', errorBody(path, 404, 'model_not_found', UNKNOWN_MODEL));
  };

  const hangUp: HangUp = (socket, { status, code, message }, request, isRecorded) => {
    const head = request === undefined ? undefined : headOf(request);
    const path = request === undefined ? '' : pathOf(request);
    const requestId = head?.requestId ?? newRequestId();
    const headers = ['connection', 'close', 'date', new Date(clock.epochMs()).toUTCString()];
    addErrorHeaders(headers, status, undefined);
    // A connection that never said a word made no request.
    if (!isRecorded && (socket as Socket).bytesRead > 0)
      hooks.unrouted?.({ requestId, traceId: head?.traceId ?? '', tenant: '', path, status, code, durationMs: 0 });
    const text = rawAnswer(status, undecidedLines(requestId, code), headers, errorBody(path, status, code, message));
    endSocket(socket, text, timers, limits.lingerMs);
  };

  const app = createApp(limits, options.tls, {
    refuse,
    hangUp,
    post: onPost,
    models: onModels,
    first: (socket) => {
      if (unused.delete(socket)) socket.off('close', forget);
    },
    stranger: () => hooks.identify?.(undefined, ''),
    dropped: () => {
      if (connectionsDropped++ === 0)
        logger.warn('there are as many client connections as there may be; those beyond are closed at once', {
          connections: limits.connections,
        });
    },
  });
  const server = app.server;
  // A connection that has not carried a request yet is not idle to node:http, and would outlive the others.
  const unused = new Map<Socket, number>();
  function forget(this: Socket): void {
    unused.delete(this);
  }
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    unused.set(socket, clock.now());
    socket.on('close', forget);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) =>
    hangUp(socket, upgradeRefusal(request), request, false),
  );
  server.on('connect', (request: IncomingMessage, socket: Duplex) =>
    hangUp(socket, { status: 400, code: 'invalid_request', message: 'This server opens no tunnels.' }, request, false),
  );

  let current: { readonly hasten: (options: CloseOptions) => void; readonly done: Promise<void> } | undefined;

  const close = (closeOptions: CloseOptions = {}): Promise<void> => {
    if (current !== undefined) {
      current.hasten(closeOptions);
      return current.done;
    }
    closing = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const startMs = clock.now();
    let acceptUntil = startMs + (closeOptions.acceptMs ?? 0);
    let graceUntil = acceptUntil + (closeOptions.graceMs ?? 0);
    let forceAt = graceUntil + (closeOptions.forceMs ?? 5_000);
    let stopped = false;
    let told = false;
    let serverClosed = !server.listening;
    let handle: unknown;
    const step = (): void => {
      const now = clock.now();
      if (now >= acceptUntil && !stopped) {
        stopped = true;
        // After the next look at sockets: what waits to be accepted is accepted, and not reset.
        if (server.listening) setImmediate(() => server.close(() => (serverClosed = true)));
      }
      if (stopped) {
        server.closeIdleConnections();
        // A request may be on its way on a connection that is new.
        for (const [socket, sinceMs] of unused) if (now - sinceMs >= IDLE_SWEEP_MS) socket.destroy();
      }
      if (now >= graceUntil && !told) {
        told = true;
        refusing = true;
        for (const exchange of live.items()) exchange.shutDown();
      }
      if (now >= forceAt) {
        for (const exchange of live.items()) exchange.destroy();
        server.closeAllConnections();
      }
      if (stopped && live.size === 0 && serverClosed) {
        wheel.stop();
        void pools
          .destroy()
          .then(() => app.close())
          .then(() => resolve());
        return;
      }
      handle = timers.setTimeout(step, IDLE_SWEEP_MS);
    };
    current = {
      hasten: (shorter) => {
        const now = clock.now();
        acceptUntil = Math.min(acceptUntil, now + (shorter.acceptMs ?? 0));
        graceUntil = Math.min(graceUntil, acceptUntil + (shorter.graceMs ?? 0));
        forceAt = Math.min(forceAt, graceUntil + (shorter.forceMs ?? 5_000));
        timers.clearTimeout(handle);
        step();
      },
      done: promise,
    };
    step();
    return promise;
  };

  return {
    async listen(listenOptions: ListenOptions): Promise<AddressInfo> {
      await app.ready();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server.once('error', reject);
      server.listen(
        {
          host: listenOptions.host,
          port: listenOptions.port,
          reusePort: listenOptions.reusePort ?? false,
          backlog: 4096,
        },
        resolve,
      );
      await promise;
      server.off('error', reject);
      return server.address() as AddressInfo;
    },
    get address(): AddressInfo | undefined {
      const address = server.address();
      return address === null || typeof address === 'string' ? undefined : address;
    },
    get stats(): ProxyStats {
      return { live: live.size, pools: pools.size, timers: wheel.size, connectionsDropped };
    },
    retire: (target: EndpointTarget) => pools.retire(target),
    setCertificate: ({ cert, key }) => {
      if (server instanceof TlsServer) server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' });
    },
    close,
  };
}

type Refuse = (
  request: IncomingMessage,
  response: LinedResponse,
  status: number,
  code: string,
  message: string,
) => void;

/** What a connection is told before it is ended. */
interface RawRefusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/**
 * Ends a connection that carries no request, or none that we serve. `request` is what could be read of one; `isRecorded` says that its end is
 * recorded elsewhere.
 */
type HangUp = (socket: Duplex, refusal: RawRefusal, request: IncomingMessage | undefined, isRecorded: boolean) => void;

/** Where a request goes once the server has it. */
interface Handlers {
  readonly refuse: Refuse;
  readonly hangUp: HangUp;
  readonly post: (request: IncomingMessage, response: LinedResponse, routePath: string) => void;
  readonly models: (request: IncomingMessage, response: LinedResponse) => void;
  /** Called for each request before all else. */
  readonly first: (socket: Socket) => void;
  /** A connection was closed because there are as many as there may be. */
  readonly dropped: () => void;
  /** How a caller without a key is met. */
  readonly stranger: () => Identity | IdentityRefusal | undefined;
}

function createApp(limits: ProxyLimits, tls: ProxyOptions['tls'], handlers: Handlers): FastifyInstance {
  const { refuse } = handlers;
  const serverOptions = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, limits.headersTimeoutMs, limits.requestTimeoutMs),
    noDelay: true,
    insecureHTTPParser: false,
    // Missing and doubled Host headers are answered by edgeFault, in our envelope.
    requireHostHeader: false,
    IncomingMessage,
    ServerResponse: LinedResponse,
  };
  const serverFactory = (handler: (request: IncomingMessage, response: LinedResponse) => void): Server => {
    const onRequest = (request: IncomingMessage, response: LinedResponse): void => {
      handlers.first(request.socket);
      const fault = edgeFault(request, limits.headerCount);
      if (fault === undefined) {
        const { url = '' } = request;
        if (request.method === 'POST' && EXACT_ROUTES.has(url)) handlers.post(request, response, url);
        else handler(request, response);
      } else {
        // What follows on this connection cannot be trusted to be framed as we read it.
        response.shouldKeepAlive = false;
        refuse(request, response, fault.status, 'invalid_request', fault.message);
      }
    };
    const server =
      tls === undefined
        ? createServer(serverOptions, onRequest)
        : createTlsServer({ ...serverOptions, ...tls, minVersion: 'TLSv1.2' }, onRequest);
    server.on('checkContinue', (request: IncomingMessage, response: LinedResponse) => {
      // A body that is refused for its stated size is never asked for.
      if (!(Number(request.headers['content-length']) > limits.bodyBytes)) response.writeContinue();
      onRequest(request, response);
    });
    server.on('checkExpectation', (request: IncomingMessage, response: LinedResponse) => {
      handlers.first(request.socket);
      response.shouldKeepAlive = false;
      refuse(request, response, 417, 'invalid_request', 'The only expectation that is understood is 100-continue.');
    });
    if (Number.isFinite(limits.connections)) server.maxConnections = limits.connections;
    server.on('drop', handlers.dropped);
    // One more than is allowed: what lies beyond would be dropped unseen.
    server.maxHeadersCount = limits.headerCount + 1;
    return server;
  };
  const waiting = new WeakSet<Duplex>();
  const appOptions: FastifyServerOptions = {
    serverFactory,
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: false,
    clientErrorHandler: (error, socket) => onClientError(error, socket, waiting, handlers),
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      refuse(request.raw, rawOf(reply), 404, 'not_found', 'The path cannot be read.');
    },
  };
  const app = fastify(appOptions);
  const placeholder = (): void => undefined;
  for (const path of ROUTES) {
    app.route({
      method: 'POST',
      url: path,
      onRequest: (request, reply) => {
        reply.hijack();
        handlers.post(request.raw, rawOf(reply), path);
      },
      handler: placeholder,
    });
  }
  for (const url of ['/v1/models', '/v1/models/*']) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      onRequest: (request, reply) => {
        reply.hijack();
        handlers.models(request.raw, rawOf(reply));
      },
      handler: placeholder,
    });
  }
  // A hook, since the handler of unknown paths runs only after the body was parsed.
  app.setNotFoundHandler({}, placeholder);
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) {
      done();
      return;
    }
    reply.hijack();
    refuse(
      request.raw,
      rawOf(reply),
      404,
      'not_found',
      `There is no ${request.raw.method ?? ''} ${headerSafe(pathOf(request.raw))}.`,
    );
  });
  return app;
}

/** The response of a request that came by fastify, which was made by our own server. */
function rawOf(reply: FastifyReply): LinedResponse {
  return reply.raw as LinedResponse;
}

function pathOf(request: IncomingMessage): string {
  const target = request.url ?? '';
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

/** A path as an error message may repeat it. */
function headerSafe(path: string): string {
  const short = path.length > 128 ? `${path.slice(0, 128)}…` : path;
  return short.replaceAll(/[^\u0021-\u007e…]/g, '?');
}

/**
 * Bytes that are no HTTP request: a short answer in our envelope, then the end of the connection. Whole requests that came before are
 * answered first, since answers go by order; `waiting` holds the connections where that is so.
 */
function onClientError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  waiting: WeakSet<Duplex>,
  handlers: Handlers,
): void {
  // More of what was refused already.
  if (socket.writableEnded || waiting.has(socket)) return;
  if (socket.destroyed || !socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const busy = (socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
  if (busy !== undefined && busy.req.complete && error.code !== 'HPE_INVALID_EOF_STATE') {
    waiting.add(socket);
    busy.once('finish', () => {
      waiting.delete(socket);
      onClientError(error, socket, waiting, handlers);
    });
    return;
  }
  if (busy?.headersSent === true) {
    // A refusal that went out before the body was read.
    busy.end();
    return;
  }
  const overflows = error.code === 'HPE_HEADER_OVERFLOW';
  // A key that is too large to be read, or comes after too much to be read, is a key that is not known.
  const met = overflows ? handlers.stranger() : undefined;
  if (met?.kind === 'refuse') {
    handlers.hangUp(socket, met, busy?.req, busy !== undefined);
    return;
  }
  const [status, message] = overflows
    ? ([431, 'The headers are too large.'] as const)
    : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? ([408, 'The request took too long to arrive.'] as const)
      : ([400, 'The request is not valid HTTP.'] as const);
  // The exchange of a request under way sees the connection close, and records that.
  handlers.hangUp(socket, { status, code: 'invalid_request', message }, busy?.req, busy !== undefined);
}

function upgradeRefusal(request: IncomingMessage): RawRefusal {
  return isH2c(request.headers.upgrade ?? '')
    ? { status: 400, code: 'invalid_request', message: 'This server does not upgrade to HTTP/2.' }
    : { status: 501, code: 'not_implemented', message: 'WebSocket and other upgrades are not offered here.' };
}

/** An answer as bytes, for a connection that has no response object. */
function rawAnswer(status: number, lines: string, headers: readonly string[], body: string): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines}`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i] ?? ''}: ${headers[i + 1] ?? ''}\r\n`;
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
