import type { ValueType } from '@signalbox/plugin-api';
import { builtin } from './entries.ts';
import type { Parameter, SignalEntry } from './entries.ts';

export const PRIORITIES: readonly string[] = ['critical', 'high', 'normal', 'low'];
export const WEEKDAYS: readonly string[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

type Extra = Partial<Pick<SignalEntry, 'origin' | 'global' | 'indexed' | 'longText' | 'parameters'>>;

const signal = (
  name: string,
  type: ValueType,
  known: 'always' | 'maybe',
  doc: string,
  extra: Extra = {},
): SignalEntry => ({
  kind: 'signal',
  name,
  type,
  known,
  doc,
  provider: builtin,
  origin: extra.origin ?? 'caller',
  global: extra.global ?? false,
  indexed: extra.indexed ?? false,
  longText: extra.longText ?? false,
  parameters: extra.parameters ?? [],
});

const zone: Parameter = { name: 'zone', kind: 'zone', optional: true };
const clock: Extra = { origin: 'gateway', global: true, parameters: [zone] };
const cluster: Extra = { origin: 'gateway', global: true };
const strings: ValueType = { list: 'string' };

/** Request signals and cluster values that every build knows. A plugin that provides one of these names takes its place. */
export const builtInSignals: readonly SignalEntry[] = [
  signal('model', 'string', 'always', 'The model that the request names.'),
  signal(
    'prompt',
    'string',
    'maybe',
    'All prompt text. `matches` sees its first 16 KiB; no match in a longer one is unknown.',
    { longText: true },
  ),
  signal('system_prompt', 'string', 'maybe', 'Text of the system messages.', { longText: true }),
  signal('first_user_message', 'string', 'maybe', 'Text of the first user message.', { longText: true }),
  signal(
    'prompt_tokens',
    'count',
    'always',
    'Prompt tokens: exact where the body holds tokens, else an estimate from its text.',
  ),
  signal('prompt_chars', 'count', 'always', 'Code points of the prompt text.'),
  signal('max_tokens', 'count', 'maybe', 'The limit on output tokens that the caller set.'),
  signal('output_tokens', 'count', 'maybe', 'Predicted output tokens, learned per model and tenant.', {
    origin: 'gateway',
  }),
  signal('complexity', 'number', 'always', 'How hard the request is, from 0 to 100.'),
  signal(
    'complexity.textbook',
    'number',
    'always',
    'The textbook measure: ten for each question mark plus a tenth for each word.',
  ),
  signal('questions', 'number', 'always', 'Question marks in the last user message.'),
  signal('words', 'number', 'always', 'Words in the last user message.'),
  signal('turns', 'number', 'always', 'User messages of the conversation so far.'),
  signal('stream', 'bool', 'always', 'Whether the caller asked for a stream.'),
  signal('reasoning', 'bool', 'maybe', 'Whether the caller asked for reasoning.'),
  signal('tools', 'number', 'always', 'How many tools the request offers.'),
  signal('tool_names', strings, 'maybe', 'Names of the tools that the request offers.'),
  signal('images', 'number', 'always', 'How many images the request holds.'),
  signal('json_schema', 'bool', 'maybe', 'Whether the answer must follow a JSON Schema.'),
  signal('user', 'string', 'maybe', 'The `user` field of the request.'),
  signal('session', 'string', 'maybe', 'Header `x-session-id`, else `metadata.session_id`, else `prompt_cache_key`.'),
  signal('conversation', 'string', 'maybe', 'Fingerprint of the opening messages.'),
  signal('session_tokens', 'count', 'maybe', "Tokens of the session's last turn.", { origin: 'gateway' }),
  signal('priority', { enum: PRIORITIES }, 'always', 'Class of the request: critical, high, normal or low.'),
  signal('lora', 'string', 'maybe', 'The adapter that the request names.'),
  signal('header', 'string', 'maybe', 'A header of the request, by name without regard to case.', { indexed: true }),
  signal('metadata', 'string', 'maybe', 'A text of the `metadata` object of the request.', { indexed: true }),
  signal('path', 'string', 'always', 'Path of the API, for example `/v1/chat/completions`.'),
  signal('deadline', 'duration', 'maybe', 'Time that is left until the deadline the caller set.'),
  signal('api_key.name', 'string', 'maybe', 'Name of the API key.'),
  signal(
    'prefix',
    'string',
    'maybe',
    'The first characters of the prompt: `prefix(2k)`, or by tokens of four characters each: `prefix(tokens: 512)`.',
    {
      parameters: [
        { name: 'chars', kind: 'value', type: 'count', optional: true, minimum: 1, maximum: 1_000_000 },
        { name: 'tokens', kind: 'value', type: 'count', optional: true, minimum: 1, maximum: 250_000 },
      ],
    },
  ),
  signal('hour', 'number', 'always', 'Hour of the day, 0 to 23, in a time zone.', clock),
  signal('weekday', { enum: WEEKDAYS }, 'always', 'Day of the week in a time zone.', clock),
  signal(
    'within',
    'bool',
    'always',
    'Whether the time lies in a window such as `mon-fri 22:00-06:00`; one over midnight belongs to the day it starts on.',
    {
      ...clock,
      parameters: [{ name: 'window', kind: 'window' }, zone],
    },
  ),
  signal(
    'over_limit',
    'bool',
    'always',
    'Whether this request would exceed the limit; false where the limit does not apply.',
    {
      origin: 'gateway',
      parameters: [{ name: 'limit', kind: 'limit' }],
    },
  ),
  signal('usage', 'percent', 'maybe', 'Used share of the limit, without the request itself.', {
    origin: 'gateway',
    parameters: [{ name: 'limit', kind: 'limit' }],
  }),
  signal('sla', 'bool', 'maybe', 'Whether some candidate of the target is predicted to meet the objective.', {
    origin: 'gateway',
    parameters: [
      { name: 'slo', kind: 'slo' },
      { name: 'target', kind: 'target', optional: true },
    ],
  }),
  signal('cluster.saturation', 'percent', 'maybe', 'Mean load of the healthy endpoints.', cluster),
  signal('cluster.queue_depth', 'count', 'maybe', 'Requests that wait in engines, all endpoints together.', cluster),
  signal('cluster.inflight_requests', 'count', 'maybe', 'Requests in flight through this gateway.', cluster),
  signal('cluster.healthy', 'percent', 'maybe', 'Share of the endpoints that are healthy.', cluster),
  signal('cluster.requests_per_second', 'rate', 'maybe', 'Arrival rate of requests.', cluster),
];
