import { timingSafeEqual } from 'node:crypto';
import { fastify } from 'fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { silentLogger, SignalboxError } from '@signalbox/plugin-api';
import type { Logger } from '@signalbox/plugin-api';
import type { SiteFile } from '@signalbox/console';
import type { Expectation, PolicyState } from '../lifecycle/policy-lifecycle.ts';
import { addPolicyRoutes, answerChange, expectationOf } from './policy-routes.ts';
import type { PolicyControl } from './policy-routes.ts';
import type { EndpointControl } from './endpoint-control.ts';
import { ENDPOINT_ACTIONS } from './endpoint-control.ts';
import { isPlayground, servePlayground } from './playground.ts';

/** What the admin listener asks of the gateway. */
export interface AdminSource {
  /** Whether traffic is welcome: a policy is in force and no drain has begun. */
  ready(): boolean;
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Reloads the policy and says what came of it. Rejects with a PolicyConflict if not all is as expected. */
  reload(expected: Expectation): Promise<ReloadReport>;
  policy(): PolicyReport;
  /** Decides a request given as JSON without sending it or advancing any state. */
  explain(body: unknown): Promise<ExplainReport>;
  /** Explains the last decision of a request with this id; undefined where none is in memory. */
  explainRecorded(requestId: string): ExplainReport | undefined;
  decisions(limit: number): readonly unknown[];
  readonly endpoints: EndpointControl;
  readonly lifecycle: PolicyControl;
}

export interface ReloadReport {
  readonly ok: boolean;
  /** Whether another policy is in force than before. */
  readonly changed: boolean;
  /** API keys in force; null where none are asked for. */
  readonly keys: number | null;
  /** Whether they are other keys than before. */
  readonly keysChanged: boolean;
  readonly policy: string;
  readonly generation: number;
  /** The version of the policy file that waits for a pin to be taken away; null for none. */
  readonly held: string | null;
  readonly diagnostics: readonly unknown[];
  /** Tests of the policy that kept it from being put in force. */
  readonly failedTests: readonly unknown[];
  /** Diagnostics and failed tests as people read them. */
  readonly text: string;
}

export interface PolicyReport extends PolicyState {
  readonly file: string;
  readonly since: string;
  /** API keys in force; null where none are asked for. */
  readonly keys: number | null;
  readonly lastReload: { readonly ok: boolean; readonly text: string };
  /** Properties that the policy reads and nothing feeds, so that they are unknown for every endpoint. */
  readonly unfed: readonly string[];
  readonly endpoints: readonly unknown[];
}

export interface ExplainReport {
  readonly explanation: unknown;
  readonly text: string;
}

export interface AdminServerOptions {
  /** `host:port`; port 0 takes a free one. */
  readonly listen: string;
  /**
   * Bearer token that every request must bring but those for `/livez`, `/readyz` and the files of the playground; without one only loopback
   * may be listened on.
   */
  readonly token: string | undefined;
  /** Takes the next free port if the one named is taken. */
  readonly nextFreePort?: boolean;
  /** The playground as it was built; absent: a page is in its place that says how to build it. */
  readonly playground?: readonly SiteFile[] | undefined;
  /** Told of requests that fail by a fault of ours. */
  readonly logger?: Logger;
  readonly source: AdminSource;
}

export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

const PORTS_TRIED = 20;
const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1', '[::1]']);

/** Splits `host:port`, with IPv6 in brackets. Throws a SignalboxError for anything else. */
export function splitListen(listen: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:]*)):(\d{1,5})$/.exec(listen);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new SignalboxError(
      `"${listen}" is no address to listen on; write it as host:port, for example 127.0.0.1:8080`,
      {
        code: 'listen_invalid',
        source: 'gateway',
      },
    );
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

/** Where a listener is reached. An empty host is every address, this machine's own among them. */
export function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${host === '' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Starts the admin listener, apart from the data plane. It answers only requests whose Host is its own address or loopback, and no
 * request that a browser page of another origin sent. Nothing that changes state is reached by GET.
 */
export async function startAdminServer({
  listen,
  token,
  nextFreePort = false,
  playground,
  logger = silentLogger,
  source,
}: AdminServerOptions): Promise<AdminServer> {
  const { host, port } = splitListen(listen);
  if (token === undefined && !LOOPBACK.has(host)) {
    throw new SignalboxError(
      `the admin address ${listen} is not loopback, and no token is set; listen on 127.0.0.1, or set SIGNALBOX_ADMIN_TOKEN`,
      { code: 'admin_open', source: 'gateway' },
    );
  }
  const app = fastify({
    logger: false,
    bodyLimit: 20 * 1024 * 1024,
    forceCloseConnections: true,
    frameworkErrors: (_error, _request, reply) =>
      void sendError(reply, 400, 'invalid_request', 'the path cannot be read'),
  });
  guard(app, host, token);
  servePlayground(app, playground);
  app.get('/livez', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) =>
    source.ready()
      ? reply.send({ status: 'ready' })
      : reply.code(503).header('retry-after', '1').send({ status: 'not ready' }),
  );
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await source.metrics();
    return reply.header('content-type', contentType).send(text);
  });
  app.get('/-/policy', (_request, reply) => {
    const report = source.policy();
    return reply.header('etag', report.etag).send(report);
  });
  addPolicyRoutes(app, source.lifecycle);
  app.get<{ Querystring: { limit?: string } }>('/-/decisions', ({ query }) => {
    const limit = Number(query.limit ?? 100);
    if (!Number.isInteger(limit) || limit < 1) {
      throw new SignalboxError(`limit must be a whole number from 1 up, got "${String(query.limit)}"`, {
        code: 'limit_invalid',
        source: 'client',
        status: 400,
      });
    }
    return { decisions: source.decisions(limit) };
  });
  app.get('/-/endpoints', () => ({ endpoints: source.endpoints.list() }));
  app.post<{ Params: { readonly '*': string } }>('/-/endpoints/*', ({ params, method, url }, reply) => {
    // Names hold slashes: the action is what stands behind the last one.
    const at = params['*'].lastIndexOf('/');
    const action = ENDPOINT_ACTIONS.find((known) => known === params['*'].slice(at + 1));
    if (at < 1 || action === undefined) return notFound(reply, method, url);
    const report = source.endpoints.act(action, params['*'].slice(0, at));
    return reply.code(action === 'drain' && !report.drained ? 202 : 200).send(report);
  });
  app.post('/-/reload', (request, reply) =>
    answerChange(reply, async () => {
      const report = await source.reload(expectationOf(request, {}));
      return reply.code(report.ok ? 200 : 422).send(report);
    }),
  );
  app.post('/-/explain', async (request, reply) => sendExplained(request, reply, await source.explain(request.body)));
  app.get<{ Querystring: { request?: string } }>('/-/explain', (request, reply) => {
    const id = request.query.request;
    if (typeof id !== 'string' || id === '') {
      throw new SignalboxError('write which request: /-/explain?request=ID; a request as JSON is explained by POST', {
        code: 'request_missing',
        source: 'client',
        status: 400,
      });
    }
    const report = source.explainRecorded(id);
    if (report !== undefined) return sendExplained(request, reply, report);
    const text = `no decision of a request ${JSON.stringify(id)} is in memory; the audit file has older ones: signalbox explain --audit FILE --request ID`;
    return sendError(reply, 404, 'not_found', text);
  });
  app.setNotFoundHandler((request, reply) => notFound(reply, request.method, request.url));
  app.setErrorHandler((error: Error & { statusCode?: number; code?: string; status?: number }, _request, reply) => {
    const status = error.statusCode ?? error.status ?? 500;
    if (status >= 500) logger.error('an admin request failed', { error: error.stack ?? String(error) });
    if (status === 404) return sendError(reply, 404, 'not_found', error.message);
    return sendError(
      reply,
      status,
      status < 500 ? 'invalid_request' : 'internal',
      status < 500 ? error.message : 'the request failed; see the log',
    );
  });
  for (let tried = 0; ; tried++) {
    try {
      await app.listen({ host, port: port === 0 ? 0 : port + tried });
      break;
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause;
      if (nextFreePort && port !== 0 && tried + 1 < PORTS_TRIED) continue;
      throw new SignalboxError(
        `the admin address ${listen} is in use; stop what listens there, or write another \`admin\` in define gateway`,
        {
          code: 'address_in_use',
          source: 'gateway',
          cause,
        },
      );
    }
  }
  const bound = app.server.address();
  return {
    url: urlOf('http', host, typeof bound === 'object' && bound !== null ? bound.port : port),
    close: () => app.close(),
  };
}

function guard(app: FastifyInstance, host: string, token: string | undefined): void {
  const expected = token === undefined ? undefined : Buffer.from(`Bearer ${token}`);
  app.addHook('onRequest', (request, reply, done) => {
    if (!hostAllowed(request, host)) {
      void sendError(reply, 403, 'forbidden', 'the Host header does not name this listener');
      return;
    }
    const site = request.headers['sec-fetch-site'];
    if (request.headers.origin !== undefined || (site !== undefined && site !== 'same-origin' && site !== 'none')) {
      if (request.method !== 'GET' && !sameOrigin(request)) {
        void sendError(reply, 403, 'forbidden', 'a page of another origin may not use the admin listener');
        return;
      }
    }
    const { url } = request.routeOptions;
    const open = url === '/livez' || url === '/readyz' || isPlayground(url);
    if (expected !== undefined && !open && !bearerMatches(request, expected)) {
      void sendError(
        reply.header('www-authenticate', 'Bearer'),
        401,
        'invalid_api_key',
        'the admin token is missing or wrong',
      );
      return;
    }
    done();
  });
}

function hostAllowed(request: FastifyRequest, host: string): boolean {
  const given = /^(\[[0-9a-fA-F:]+\]|[^:]*)(?::\d+)?$/.exec(request.headers.host ?? '')?.[1] ?? '';
  return (
    LOOPBACK.has(given) ||
    given === host ||
    given === `[${host}]` ||
    ((host === '' || host === '0.0.0.0' || host === '::') && /^[\d.]+$|^\[/.test(given))
  );
}

function sameOrigin(request: FastifyRequest): boolean {
  return request.headers.origin === `http://${request.headers.host ?? ''}`;
}

function bearerMatches(request: FastifyRequest, expected: Buffer): boolean {
  const given = Buffer.from(request.headers.authorization ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function sendExplained(request: FastifyRequest, reply: FastifyReply, report: ExplainReport): FastifyReply {
  const wantsText = (request.headers.accept ?? '').startsWith('text/plain');
  return wantsText ? reply.type('text/plain; charset=utf-8').send(report.text) : reply.send(report);
}

function notFound(reply: FastifyReply, method: string, url: string): FastifyReply {
  return sendError(reply, 404, 'not_found', `there is no ${method} ${url.split('?')[0]} on the admin listener`);
}

function sendError(reply: FastifyReply, status: number, code: string, message: string): FastifyReply {
  const type =
    status >= 500
      ? 'server_error'
      : status === 401
        ? 'authentication_error'
        : status === 403
          ? 'permission_error'
          : 'invalid_request_error';
  return reply.code(status).send({ error: { message, type, param: null, code } });
}
