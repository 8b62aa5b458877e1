// perf: plain loops and typed arrays, since all of this is done for every call.
import type {
  CandidateView,
  NumberColumn,
  ParsedRequest,
  RandomSource,
  RequestView,
  Value,
  ValueColumn,
} from '@signalbox/plugin-api';
import type { CandidatesData, ParsedData, RequestData, TextData } from './messages.ts';

/** The declared signals that are known. */
export function requestData(view: RequestView, reads: readonly string[]): RequestData {
  const values: { [key: string]: Value } = {};
  for (const key of reads) {
    if (key.startsWith('candidate.')) continue;
    const value = view.value(key);
    if (value !== undefined) values[key] = value;
  }
  return { seed: view.seed, values };
}

/** The declared columns, by position. */
export function candidatesData(view: CandidateView, reads: readonly string[]): CandidatesData {
  const columns: { [key: string]: Float64Array | (Value | undefined)[] } = {};
  const slots = view.slots.slice(0, view.length);
  for (const key of reads) {
    if (!key.startsWith('candidate.')) continue;
    columns[key] = byPosition(view.values(key), slots);
  }
  return { slots, columns };
}

function byPosition(column: ValueColumn, slots: Int32Array): Float64Array | (Value | undefined)[] {
  const values: (Value | undefined)[] = [];
  let numeric = true;
  for (const slot of slots) {
    const value = column[slot];
    values.push(value);
    numeric &&= typeof value === 'number';
  }
  return numeric ? Float64Array.from(values as number[]) : values;
}

/** The request as the plugin's process sees it. */
export function requestView({ seed, values }: RequestData): RequestView {
  const known = new Map(Object.entries(values));
  return {
    seed,
    number(key) {
      const value = known.get(key);
      return typeof value === 'number' ? value : Number.NaN;
    },
    value: (key) => known.get(key),
  };
}

/** The candidates as the plugin's process sees them. */
export function candidateView({ slots, columns }: CandidatesData): CandidateView {
  let capacity = 0;
  for (const slot of slots) if (slot >= capacity) capacity = slot + 1;
  const numbers = new Map<string, NumberColumn>();
  const known = new Map(Object.entries(columns));
  return {
    length: slots.length,
    slots,
    column(key) {
      let column = numbers.get(key);
      if (column === undefined) {
        const given = known.get(key);
        const bySlot = new Float64Array(capacity).fill(Number.NaN);
        if (given instanceof Float64Array) for (let i = 0; i < slots.length; i++) bySlot[slots[i]!] = given[i]!;
        numbers.set(key, (column = bySlot));
      }
      return column;
    },
    values(key) {
      const bySlot: (Value | undefined)[] = [];
      const given = known.get(key);
      if (given !== undefined) for (let i = 0; i < slots.length; i++) bySlot[slots[i]!] = given[i];
      return bySlot;
    },
  };
}

const FIELDS = [
  'path',
  'kind',
  'model',
  'stream',
  'includeUsage',
  'maxTokens',
  'user',
  'promptCacheKey',
  'tools',
  'images',
  'jsonSchema',
  'reasoning',
  'promptChars',
  'promptTokensExact',
  'bodyBytes',
] as const satisfies readonly (keyof ParsedRequest)[];

/** A request with all that its methods give, so that no call needs to come back for more. */
export function parsedData(request: ParsedRequest): ParsedData {
  const fields: { [field: string]: unknown } = {};
  for (const field of FIELDS) fields[field] = request[field];
  const metadata: { [key: string]: string } = {};
  for (const key of request.metadataKeys?.() ?? []) {
    const value = request.metadata(key);
    if (value !== undefined) metadata[key] = value;
  }
  const messages = request.messages();
  // A text that is one of the messages is sent once.
  const textData = (text: string | undefined): TextData => {
    const index = text === undefined ? -1 : messages.findIndex((message) => message.text === text);
    return index < 0 ? text : index;
  };
  return {
    fields,
    metadata,
    toolNames: request.toolNames(),
    messages,
    prompt: textData(request.prompt()),
    systemPrompt: textData(request.systemPrompt()),
    firstUserMessage: textData(request.firstUserMessage()),
    lastUserMessage: textData(request.lastUserMessage()),
  };
}

/** The request as the plugin's process sees it. */
export function parsedRequest(data: ParsedData): ParsedRequest {
  const metadata = new Map(Object.entries(data.metadata));
  const textOf = (text: TextData): string | undefined => (typeof text === 'number' ? data.messages[text]?.text : text);
  return {
    ...(data.fields as unknown as Pick<ParsedRequest, (typeof FIELDS)[number]>),
    metadata: (key) => metadata.get(key),
    metadataKeys: () => [...metadata.keys()],
    toolNames: () => data.toolNames,
    messages: () => data.messages,
    prompt: () => textOf(data.prompt) ?? '',
    systemPrompt: () => textOf(data.systemPrompt),
    firstUserMessage: () => textOf(data.firstUserMessage),
    lastUserMessage: () => textOf(data.lastUserMessage),
  };
}

/** Uniform numbers in [0, 1) from a 32-bit seed: the mulberry32 generator by Tommy Ettinger (public domain). */
export function seededRandom(seed: number): RandomSource {
  let state = seed | 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    },
  };
}

/** Gives the numbers that the host drew, then others seeded by the last of them; `used` counts what was taken of the host's. */
export function drawnRandom(draws: Float64Array): RandomSource & { readonly used: number } {
  let used = 0;
  let more: RandomSource | undefined;
  return {
    get used() {
      return used;
    },
    next() {
      if (used < draws.length) return draws[used++]!;
      more ??= seededRandom((draws.at(-1) ?? 0) * 4294967296);
      return more.next();
    },
  };
}
