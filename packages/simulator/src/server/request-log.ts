import type { IncomingHttpHeaders } from 'node:http';

/** A request as it arrived. */
export interface LoggedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** What a simulated engine was sent: all counted, the latest kept. Scrapes and health checks count too. */
export interface RequestLog {
  /** All requests since the start; with a path, those to it. */
  count(path?: string): number;
  /** The latest request, or the latest to a path. */
  last(path?: string): LoggedRequest | undefined;
  /** The latest requests, oldest first. */
  list(): readonly LoggedRequest[];
}

/** A log that keeps the latest `limit` requests. */
export function createRequestLog(limit: number): RequestLog & { add(request: LoggedRequest): void } {
  const kept: LoggedRequest[] = [];
  const counts = new Map<string, number>();
  let total = 0;
  const pathOf = (request: LoggedRequest): string => request.url.split('?')[0] ?? '';
  return {
    add(request) {
      total++;
      const path = pathOf(request);
      counts.set(path, (counts.get(path) ?? 0) + 1);
      kept.push(request);
      if (kept.length > limit) kept.shift();
    },
    count: (path) => (path === undefined ? total : (counts.get(path) ?? 0)),
    last: (path) => kept.findLast((request) => path === undefined || pathOf(request) === path),
    list: () => kept.slice(),
  };
}
