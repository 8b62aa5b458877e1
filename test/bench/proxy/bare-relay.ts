/**
 * The bare relay: node:http in front, one undici pool per endpoint behind, least requests in flight, bytes passed on unread. It does what no gateway on these two
 * libraries can leave out, in the cheapest way known: the body as one buffer, `Pool.dispatch` with a handler that writes straight to the response, a reply of known
 * length sent together with its head, and no timers, limits, logs or metrics.
 *
 * Run: `node test/bench/proxy/bare-relay.ts LISTEN_PORT ENDPOINT_PORT…`; with READ_BODY=1 in the environment it parses each body for its model.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
// The very copy that packages/proxy uses.
import { Pool } from '../../../packages/proxy/node_modules/undici/index.js';
import type { Dispatcher } from '../../../packages/proxy/node_modules/undici/index.js';

const HELD_BYTES_MAX = 65_536;
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade']);

interface Endpoint {
  readonly host: string;
  readonly pool: Pool;
  requestsInFlight: number;
}

const [listenPort = 0, ...endpointPorts] = process.argv.slice(2).map(Number);
const endpoints: Endpoint[] = endpointPorts.map((port) => ({
  host: `127.0.0.1:${port}`,
  pool: new Pool(`http://127.0.0.1:${port}`, { connections: null, pipelining: 1, keepAliveTimeout: 300_000 }),
  requestsInFlight: 0,
}));

function leastBusy(): Endpoint | undefined {
  let best = endpoints[0];
  for (const endpoint of endpoints) {
    if (best === undefined || endpoint.requestsInFlight < best.requestsInFlight) best = endpoint;
  }
  return best;
}

class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #endpoint: Endpoint;
  #held: Buffer[] | undefined;

  constructor(response: ServerResponse, endpoint: Endpoint) {
    this.#response = response;
    this.#endpoint = endpoint;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) controller.abort(new Error('the client has gone'));
    });
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const kept: string[] = [];
    for (const name in headers) {
      const value = headers[name];
      if (HOP_BY_HOP.has(name) || value === undefined) continue;
      for (const one of Array.isArray(value) ? value : [value]) kept.push(name, one);
    }
    this.#response.writeHead(status, kept);
    if (Number(headers['content-length'] ?? Infinity) <= HELD_BYTES_MAX) this.#held = [];
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#held !== undefined) {
      this.#held.push(chunk);
    } else if (!this.#response.write(chunk)) {
      controller.pause();
      this.#response.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(): void {
    this.#endpoint.requestsInFlight--;
    const [first, ...rest] = this.#held ?? [];
    this.#response.end(rest.length === 0 ? first : Buffer.concat(this.#held ?? []));
  }

  onResponseError(): void {
    this.#endpoint.requestsInFlight--;
    if (this.#response.headersSent) this.#response.destroy();
    else this.#response.writeHead(502).end();
  }
}

const readsBody = process.env['READ_BODY'] === '1';

function modelOf(body: Buffer): string | undefined {
  return (JSON.parse(body.toString()) as { readonly model?: string }).model;
}

function relay(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  if (readsBody && modelOf(body) === undefined) throw new Error('the body names no model');
  const endpoint = leastBusy();
  if (endpoint === undefined) throw new Error('no endpoint ports were given');
  endpoint.requestsInFlight++;
  const { authorization = '', accept = '*/*', 'user-agent': userAgent = '' } = request.headers;
  const headers = ['host', endpoint.host, 'content-type', 'application/json'];
  headers.push('authorization', authorization, 'accept', accept, 'user-agent', userAgent);
  const options: Dispatcher.DispatchOptions = { path: request.url ?? '/', method: 'POST', headers, body };
  endpoint.pool.dispatch(options, new Relay(response, endpoint));
}

const server = createServer({ keepAliveTimeout: 300_000, noDelay: true }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () =>
    relay(request, response, chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)),
  );
});
server.listen(listenPort, '127.0.0.1', 4096);
