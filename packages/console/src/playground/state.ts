/** All that a person writes in the playground, and all that a link carries. Values of the fleet are literals of the language. */
export interface PlaygroundState {
  readonly policy: string;
  /** The request's body, as it is written: it need not be JSON yet. */
  readonly body: string;
  /** A header a line, `name: value`. */
  readonly headers: string;
  /** The tenant that the caller belongs to; empty for none. */
  readonly tenant: string;
  /** Wall clock of the request, as `2026-01-05T12:00` in UTC. */
  readonly time: string;
  readonly fleet: FleetState;
}

/** What is given of each endpoint, by its name and the name of the property: `{ "8B/1": { "queued_tokens": "9k" } }`. */
export type FleetState = { readonly [endpoint: string]: { readonly [property: string]: string } };

/** A Monday at noon, so that an example decides the same whenever it is looked at. */
export const DEFAULT_TIME = '2026-01-05T12:00';

export const EMPTY_STATE: PlaygroundState = Object.freeze({
  policy: '',
  body: '{}',
  headers: '',
  tenant: '',
  time: DEFAULT_TIME,
  fleet: Object.freeze({}),
});

const TEXTS = ['policy', 'body', 'headers', 'tenant', 'time'] as const;

/** State from outside, read as data: fields that it does not name have their default. Undefined if it is no state. */
export function readState(given: unknown): PlaygroundState | undefined {
  if (!isObject(given) || typeof given['policy'] !== 'string') return undefined;
  const fleet = readFleet(given['fleet'] ?? {});
  if (fleet === undefined || TEXTS.some((field) => !['string', 'undefined'].includes(typeof given[field])))
    return undefined;
  const texts = Object.fromEntries(TEXTS.flatMap((field) => (field in given ? [[field, given[field]]] : [])));
  return { ...EMPTY_STATE, ...texts, fleet };
}

function readFleet(given: unknown): FleetState | undefined {
  if (!isObject(given)) return undefined;
  const fleet: [string, { readonly [property: string]: string }][] = [];
  for (const [endpoint, properties] of Object.entries(given)) {
    if (!isObject(properties) || Object.values(properties).some((value) => typeof value !== 'string')) return undefined;
    fleet.push([endpoint, properties as { readonly [property: string]: string }]);
  }
  return Object.fromEntries(fleet);
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fleet with one value changed; an empty text takes the value away. */
export function withCell(fleet: FleetState, endpoint: string, property: string, text: string): FleetState {
  const { [property]: _before, ...others } = fleet[endpoint] ?? {};
  const properties = text.trim() === '' ? others : { ...others, [property]: text };
  const { [endpoint]: _properties, ...rest } = fleet;
  return Object.keys(properties).length === 0 ? rest : { ...rest, [endpoint]: properties };
}
