import { hashParts } from '@signalbox/chwbl';
import type { ParsedRequest, Value } from '@signalbox/plugin-api';
import type { RefArgument, RequestValue, TenantDefinition } from '@signalbox/policy';
import type { Fleet } from '../fleet/fleet.ts';
import type { TargetPool } from '../fleet/pool.ts';
import type { Frame } from '../frame.ts';
import type { Learned } from '../learned.ts';
import { createZoneClock, parseTimeWindow, WEEKDAYS } from './zone-clock.ts';

/** Works out one signal of the request in a frame: NaN or `undefined` is unknown. */
export type Producer = (frame: Frame) => Value | undefined;

/** What producers read beyond the request. */
export interface SignalSources {
  readonly fleet: Fleet;
  /** Every endpoint of the policy in force. */
  readonly everything: TargetPool;
  readonly learned: Learned;
  readonly timezone: string;
  /** Requests that wait in our own queues. */
  readonly queuedRequests: () => number;
  readonly requestsPerSecond: (nowMs: number) => number;
  /** Undefined before the alarm's first sample. */
  readonly alarm: (name: string) => boolean | undefined;
  readonly param: (name: string) => Value | undefined;
}

export interface BoundSignal {
  readonly numeric: boolean;
  readonly produce: Producer;
  /** Set where the signal is no more than a field of the request: it is read in place then, without a call of `produce`. */
  readonly field?: RequestField;
}

/** Signals that are fields of the request, by their catalogue keys. */
const NUMBER_FIELDS = ['prompt_tokens', 'output_tokens', 'prompt_chars', 'max_tokens', 'tools', 'images'] as const;
const VALUE_FIELDS = ['model', 'stream', 'reasoning', 'json_schema', 'user', 'path'] as const;
type NumberField = (typeof NUMBER_FIELDS)[number];
type ValueField = (typeof VALUE_FIELDS)[number];
export type RequestField = NumberField | ValueField;

/** A numeric field of the request in a frame; NaN for one that is none. */
export function numberField(frame: Frame, field: RequestField): number {
  const { parsed } = frame;
  switch (field) {
    case 'prompt_tokens':
      return frame.promptTokens;
    case 'output_tokens':
      return frame.outputTokens;
    case 'tools':
      return parsed === undefined ? Number.NaN : parsed.tools;
    case 'images':
      return parsed === undefined ? Number.NaN : parsed.images;
    case 'max_tokens':
      return parsed === undefined ? Number.NaN : parsed.maxTokens;
    case 'prompt_chars':
      return parsed === undefined ? Number.NaN : parsed.promptChars;
    default:
      return Number.NaN;
  }
}

/** A field of another type of the request in a frame; undefined for one that is none. */
export function valueField(frame: Frame, field: RequestField): Value | undefined {
  const { parsed } = frame;
  if (parsed === undefined) return undefined;
  switch (field) {
    case 'model':
      return parsed.model ?? '';
    case 'stream':
      return parsed.stream;
    case 'path':
      return parsed.path;
    case 'user':
      return parsed.user;
    case 'reasoning':
      return parsed.reasoning;
    case 'json_schema':
      return parsed.jsonSchema;
    default:
      return undefined;
  }
}

/** Binds a built-in signal by its catalogue key; undefined for a key that core does not know. */
export function bindBuiltinSignal(
  key: string,
  given: readonly RefArgument[],
  sources: SignalSources,
): BoundSignal | undefined {
  if (key.startsWith('alarm.')) return value(() => sources.alarm(key.slice('alarm.'.length)));
  if (key.startsWith('param.')) {
    const name = key.slice('param.'.length);
    return { numeric: typeof sources.param(name) === 'number', produce: () => sources.param(name) };
  }
  if (key.startsWith('tenant.')) return bindTenant(key.slice('tenant.'.length));
  return BUILTIN[key]?.(given, sources);
}

type Bind = (given: readonly RefArgument[], sources: SignalSources) => BoundSignal;

const number = (produce: (frame: Frame) => number): BoundSignal => ({ numeric: true, produce });
const value = (produce: Producer): BoundSignal => ({ numeric: false, produce });

const ofBody =
  (read: (parsed: ParsedRequest) => Value | undefined): Bind =>
  () =>
    value((frame) => (frame.parsed === undefined ? undefined : read(frame.parsed)));

const countOfBody =
  (read: (parsed: ParsedRequest) => number): Bind =>
  () =>
    number((frame) => (frame.parsed === undefined ? Number.NaN : read(frame.parsed)));

const FIELDS: { readonly [key: string]: Bind } = Object.fromEntries<Bind>([
  ...NUMBER_FIELDS.map((field): [string, Bind] => [
    field,
    () => ({ numeric: true, field, produce: (frame) => numberField(frame, field) }),
  ]),
  ...VALUE_FIELDS.map((field): [string, Bind] => [
    field,
    () => ({ numeric: false, field, produce: (frame) => valueField(frame, field) }),
  ]),
]);

const BUILTIN: { readonly [key: string]: Bind } = {
  ...FIELDS,
  prompt: ofBody((parsed) => parsed.prompt()),
  system_prompt: ofBody((parsed) => parsed.systemPrompt()),
  first_user_message: ofBody((parsed) => parsed.firstUserMessage()),
  tool_names: ofBody((parsed) => parsed.toolNames()),
  turns: countOfBody((parsed) => parsed.messages().filter(({ role }) => role === 'user').length),
  questions: countOfBody((parsed) => countQuestions(parsed.lastUserMessage() ?? '')),
  words: countOfBody((parsed) => countWords(parsed.lastUserMessage() ?? '')),
  'complexity.textbook': countOfBody(textbookComplexity),
  complexity: countOfBody((parsed) => Math.min(100, textbookComplexity(parsed))),
  session: () => value(sessionOf),
  session_tokens: (_given, { learned }) =>
    number((frame) => {
      const session = sessionKeyOf(frame);
      return session === undefined ? Number.NaN : learned.sessionTokens(session);
    }),
  conversation: ofBody(conversationOf),
  priority: () => value(priorityOf),
  lora: (_given, { fleet }) =>
    value((frame) => {
      const model = frame.parsed?.model;
      return model !== undefined && fleet.adapters().has(model) ? model : undefined;
    }),
  header: (given) => {
    const name = textArgument(given, 'name').toLowerCase();
    return value((frame) => {
      // What a name finds on the prototype is no string.
      const found: unknown = frame.request?.headers[name];
      return typeof found === 'string' ? found : undefined;
    });
  },
  metadata: (given) => {
    const name = textArgument(given, 'name');
    return value((frame) => frame.parsed?.metadata(name));
  },
  prefix: (given) => {
    const tokens = numberArgument(given, 'tokens');
    const chars = tokens === undefined ? (numberArgument(given, 'chars') ?? DEFAULT_PREFIX_CHARS) : tokens * 4;
    return value((frame) => {
      const prompt = frame.parsed?.prompt();
      return prompt === undefined || prompt === '' ? undefined : prompt.slice(0, chars);
    });
  },
  deadline: () =>
    number((frame) => {
      const deadlineMs = frame.request?.deadlineMs ?? Infinity;
      return deadlineMs === Infinity ? Number.NaN : (deadlineMs - frame.nowMs) / 1000;
    }),
  'api_key.name': () => value((frame) => frame.request?.apiKeyName),

  hour: (given, sources) => {
    const clock = createZoneClock(zoneArgument(given, sources));
    return number((frame) => clock(frame.epochMs).hour);
  },
  weekday: (given, sources) => {
    const clock = createZoneClock(zoneArgument(given, sources));
    return value((frame) => WEEKDAYS[clock(frame.epochMs).weekday]);
  },
  within: (given, sources) => {
    const clock = createZoneClock(zoneArgument(given, sources));
    const window = parseTimeWindow(textArgument(given, 'window'));
    return value((frame) => window?.(clock(frame.epochMs)));
  },

  'cluster.saturation': (_given, { fleet, everything }) => number(() => saturation(fleet, everything)),
  'cluster.queue_depth': (_given, { fleet, everything, queuedRequests }) =>
    number(() => {
      everything.refresh();
      let depth = queuedRequests();
      for (const slot of everything.healthy)
        depth += known(fleet.table.queueDepth[slot], fleet.table.waitingRequests[slot]);
      return depth;
    }),
  'cluster.inflight_requests': (_given, { fleet, everything }) =>
    number(() => {
      everything.refresh();
      let sum = 0;
      for (const slot of everything.members) sum += fleet.table.inflightRequests[slot] ?? 0;
      return sum;
    }),
  'cluster.healthy': (_given, { everything }) =>
    number(() => {
      everything.refresh();
      const available = everything.members.length - everything.unavailableCount;
      return available === 0 ? Number.NaN : everything.healthy.length / available;
    }),
  'cluster.requests_per_second': (_given, { requestsPerSecond }) => number((frame) => requestsPerSecond(frame.nowMs)),
};

const DEFAULT_PREFIX_CHARS = 2000;
/** How much of the opening messages makes a conversation's fingerprint: they stay the same from turn to turn. */
const FINGERPRINT_CHARS = 2048;

/**
 * Mean over the healthy endpoints of how full each is: the largest known of requests in flight ÷ `max_requests`, tokens in flight ÷
 * `max_tokens_in_flight`, `load` and `kv_cache_used`. NaN where nothing is known of any.
 */
export function saturation(fleet: Fleet, everything: TargetPool): number {
  everything.refresh();
  const { table } = fleet;
  let sum = 0;
  let counted = 0;
  for (const slot of everything.healthy) {
    let fullest = Number.NaN;
    const consider = (share: number): void => {
      if (share === share && !(share <= fullest)) fullest = share;
    };
    const at = (column: ArrayLike<number>): number => column[slot] ?? Number.NaN;
    consider(at(table.inflightRequests) / at(table.maxRequests));
    consider(at(table.inflightTokens) / at(table.maxTokensInFlight));
    consider((0.1 * at(table.queuedTokens) + at(table.decodeTokens)) / at(table.throughput));
    consider(at(table.kvCacheUsed));
    if (fullest === fullest) {
      sum += fullest;
      counted++;
    }
  }
  return counted === 0 ? Number.NaN : sum / counted;
}

/** The session as what is learned of it is kept: one tenant's never meets another's of the same name. */
export function sessionKeyOf(frame: Frame): string | undefined {
  const session = sessionOf(frame);
  const tenant = frame.request?.tenant;
  return session === undefined || tenant === undefined ? session : `${tenant.length}:${tenant}${session}`;
}

/** Header `x-session-id`, else `metadata.session_id`, else `prompt_cache_key`. */
export function sessionOf({ request, parsed }: Pick<Frame, 'request' | 'parsed'>): string | undefined {
  return (
    nonEmpty(request?.headers['x-session-id']) ??
    nonEmpty(parsed?.metadata('session_id')) ??
    nonEmpty(parsed?.promptCacheKey)
  );
}

export type Priority = 'critical' | 'high' | 'normal' | 'low';

export const PRIORITIES: readonly Priority[] = ['critical', 'high', 'normal', 'low'];

/**
 * The tenant's class, which header `x-priority` may lower but not raise; without a tenant's class the header's, `normal` at most; `normal`
 * where neither says.
 */
export function priorityOf(frame: Frame): Priority {
  const granted = PRIORITIES.indexOf(frame.tenant?.class ?? 'normal');
  const asked = PRIORITIES.indexOf((frame.request?.headers['x-priority'] ?? '') as Priority);
  return PRIORITIES[Math.max(granted, asked)] ?? 'normal';
}

/** The class that the policy writes for a request where it does, else its own. Index into `PRIORITIES`; 0 goes first. */
export function classOf(frame: Frame, written: RequestValue | undefined): number {
  const asked = written === undefined ? -1 : PRIORITIES.indexOf(written(frame) as Priority);
  return asked >= 0 ? asked : PRIORITIES.indexOf(priorityOf(frame));
}

function conversationOf(parsed: ParsedRequest): string | undefined {
  const system = parsed.systemPrompt() ?? '';
  const opening = parsed.firstUserMessage() ?? (parsed.kind === 'chat' ? '' : parsed.prompt());
  if (system === '' && opening === '') return undefined;
  const hash = hashParts([system.slice(0, FINGERPRINT_CHARS), opening.slice(0, FINGERPRINT_CHARS)]);
  return hash.hi.toString(16).padStart(8, '0') + hash.lo.toString(16).padStart(8, '0');
}

function bindTenant(field: string): BoundSignal {
  if (field === 'id' || field === 'name') return value((frame) => frame.request?.tenant);
  if (field === 'class') return value((frame) => frame.tenant?.class);
  if (field === 'weight') return number((frame) => frame.tenant?.weight ?? Number.NaN);
  return value((frame) => fieldOf(frame.tenant, field));
}

function fieldOf(tenant: TenantDefinition | undefined, field: string): Value | undefined {
  return tenant !== undefined && Object.hasOwn(tenant.fields, field) ? tenant.fields[field] : undefined;
}

function countQuestions(text: string): number {
  let count = 0;
  for (let at = text.indexOf('?'); at >= 0; at = text.indexOf('?', at + 1)) count++;
  return count;
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** 10 for each question mark and a tenth for each word of the last user message. */
function textbookComplexity(parsed: ParsedRequest): number {
  const text = parsed.lastUserMessage() ?? '';
  return 10 * countQuestions(text) + countWords(text) / 10;
}

function known(first: number | undefined, otherwise: number | undefined): number {
  return first !== undefined && first === first ? first : (otherwise ?? 0);
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** The argument of that name, else the only one that has none. */
function argumentValue(given: readonly RefArgument[], name: string): Value | undefined {
  const argument =
    given.find((one) => one.kind === 'value' && one.name === name) ??
    given.find((one) => one.kind === 'value' && one.name === undefined);
  return argument?.kind === 'value' ? argument.value : undefined;
}

function textArgument(given: readonly RefArgument[], name: string): string {
  const text = argumentValue(given, name);
  if (typeof text === 'string') return text;
  throw new TypeError(`a signal lacks its argument ${name}`);
}

function numberArgument(given: readonly RefArgument[], name: string): number | undefined {
  const found = name === 'tokens' ? given.find((one) => one.kind === 'value' && one.name === name) : undefined;
  const amount = found?.kind === 'value' ? found.value : name === 'tokens' ? undefined : argumentValue(given, name);
  return typeof amount === 'number' ? amount : undefined;
}

function zoneArgument(given: readonly RefArgument[], sources: SignalSources): string {
  const zone = given.find((one) => one.kind === 'value' && one.name === 'zone');
  return zone?.kind === 'value' && typeof zone.value === 'string' ? zone.value : sources.timezone;
}
