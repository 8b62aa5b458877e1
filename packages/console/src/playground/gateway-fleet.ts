import type { FleetState } from './state.ts';

/** The live fleet as `GET /-/endpoints` of a gateway tells it, in literals of the language. What is idle, usual or unknown is left out. */
export function readGatewayFleet(report: unknown): FleetState {
  const endpoints = isObject(report) && Array.isArray(report['endpoints']) ? report['endpoints'] : [];
  const fleet: [string, { readonly [property: string]: string }][] = [];
  for (const row of endpoints as readonly unknown[]) {
    if (!isObject(row) || typeof row['name'] !== 'string' || row['defined'] === false) continue;
    const properties = Object.fromEntries(
      COLUMNS.flatMap(([property, field, write]) => {
        const text = write(row[field]);
        return text === '' ? [] : [[property, text] as const];
      }),
    );
    if (Object.keys(properties).length > 0) fleet.push([row['name'], properties]);
  }
  return Object.fromEntries(fleet);
}

const count = (value: unknown): string => (typeof value === 'number' && value > 0 ? String(Math.round(value)) : '');
const percent = (value: unknown): string =>
  typeof value === 'number' && value > 0 ? `${Number((100 * value).toFixed(3))}%` : '';

const COLUMNS: readonly (readonly [property: string, field: string, write: (value: unknown) => string])[] = [
  ['queued_tokens', 'queuedTokens', count],
  ['decode_tokens', 'decodeTokens', count],
  ['inflight_requests', 'inflightRequests', count],
  ['inflight_tokens', 'inflightTokens', count],
  ['queue_depth', 'queueDepth', count],
  ['running', 'running', count],
  ['kv_cache_used', 'kvCacheUsed', percent],
  ['state', 'state', (value) => (typeof value === 'string' && value !== 'ready' ? JSON.stringify(value) : '')],
  ['healthy', 'healthy', (value) => (value === false ? 'false' : '')],
];

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
