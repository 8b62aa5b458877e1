/** Where a modifier may stand. */
export type ModifierPlace = 'destination' | 'admit' | 'reject' | 'queue';

export interface ModifierSpec {
  readonly name: string;
  /** How it is written, shown in help. */
  readonly form: string;
  readonly doc: string;
  readonly places: readonly ModifierPlace[];
  readonly repeats: boolean;
}

const modifier = (
  name: string,
  form: string,
  doc: string,
  places: readonly ModifierPlace[] = ['destination'],
  repeats = false,
): ModifierSpec => ({ name, form, doc, places, repeats });

const refusals: readonly ModifierPlace[] = ['reject', 'queue'];

/** Every modifier of the language. */
export const modifiers: readonly ModifierSpec[] = [
  modifier(
    'affinity',
    'affinity session',
    'Requests of one key go to one endpoint while it is under its bound: `affinity session`, `affinity prefix(2k)`, `affinity(session ?? conversation, bound: 1.25, unit: tokens)`, `affinity [lora, conversation]`; `affinity session (method: modulo_md5)` is md5(key) mod n over the endpoints as declared.',
  ),
  modifier('timeout', 'timeout 90s', 'Bounds the whole request.'),
  modifier('attempt_timeout', 'attempt_timeout 30s', 'Bounds one attempt.'),
  modifier('first_token', 'first_token 5s', 'Bounds the time to the first token of one attempt.'),
  modifier('idle', 'idle 60s', 'Bounds the silence within a stream.'),
  modifier(
    'retry',
    'retry 2 (on: [connect, timeout])',
    'Tries again on other endpoints of the destination. Unless causes are written: when there is no connection, for 503, 429, no first token in time, and an error before any output; never for a plain 500.',
  ),
  modifier(
    'fallback',
    'fallback tier "34B" (on: [saturated, error])',
    'Another target for the causes; saturated, connect, error, timeout and first_token unless written. Several are tried in order.',
    ['destination'],
    true,
  ),
  modifier('hedge', 'hedge 800ms (share: 1%)', 'Sends a second attempt when the first has no token yet.'),
  modifier(
    'mirror',
    'mirror 1% tier "405B"',
    'Sends a copy of a share of the requests; its answer is dropped.',
    ['destination'],
    true,
  ),
  modifier('sticky', 'sticky user', 'The key by which a split chooses its arm.'),
  modifier('priority', 'priority low', 'The class of the request from here on.', ['destination', 'admit', 'queue']),
  modifier('prefill', 'prefill tier "prefill"', 'The tier that does the prefill of a prefill/decode pair.'),
  modifier(
    'header',
    'header "x-team" "search"',
    'Sets a header of the request to the endpoint.',
    ['destination'],
    true,
  ),
  modifier('model', 'model "llama-3.1-70b"', 'Rewrites the model name sent to the endpoint.'),
  modifier('set', 'set "temperature" 0.2', 'Sets a field at the top level of the body.', ['destination'], true),
  modifier('drop', 'drop "logprobs"', 'Removes a field at the top level of the body.', ['destination'], true),
  modifier('status', 'status 429', 'Status of the refusal.', refusals),
  modifier('retry_after', 'retry_after 5s', 'The Retry-After of the refusal.', refusals),
  modifier('message', 'message "token quota used up"', 'Text of the refusal.', refusals),
  modifier('max_wait', 'max_wait 2s', 'The longest time in the queue.', ['queue']),
  modifier('max_depth', 'max_depth 500', 'The most requests in the queue.', ['queue']),
  modifier(
    'overflow',
    'overflow lowest',
    'Which request a full queue displaces: oldest, newest, lowest; `refuse` refuses the new one.',
    ['queue'],
  ),
];

export const modifierTable: ReadonlyMap<string, ModifierSpec> = new Map(modifiers.map((spec) => [spec.name, spec]));
export const modifierNames: readonly string[] = modifiers.map((spec) => spec.name);
