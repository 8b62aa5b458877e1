import type { CandidateView, RandomSource, RequestView, Value } from '@signalbox/plugin-api';
import { candidates } from './candidates.ts';
import type { EndpointValues } from './candidates.ts';
import { requestView } from './request-view.ts';

/** Makes a value for one key; `undefined` or NaN is unknown. */
export type Sample = (random: RandomSource, index: number) => Value | undefined;

/** Values for keys that plugins read: `{ 'candidate.power': (random) => 300 + 400 * random.next() }`. */
export interface Samples {
  readonly [key: string]: Sample;
}

const word =
  (...words: readonly string[]): Sample =>
  (random) =>
    words[Math.floor(random.next() * words.length)];
const upTo =
  (most: number): Sample =>
  (random) =>
    Math.floor(random.next() * most);
const share: Sample = (random) => random.next();
const seconds: Sample = (random) => 10 * random.next();
const flag: Sample = (random) => random.next() < 0.5;

/** Plausible values for the keys of the built-in catalogue. Any other key gets a number from 0 to 1,000. */
const KNOWN: Samples = {
  'candidate.name': (_random, index) => `tier/${index + 1}`,
  'candidate.declared_order': (_random, index) => index,
  'candidate.tier': word('small', 'large'),
  'candidate.state': word('ready', 'loading', 'draining'),
  'candidate.gpu': word('H100', 'A100', 'L4'),
  'candidate.precision': word('bf16', 'fp8'),
  'candidate.zone': word('a', 'b', 'c'),
  'candidate.region': word('eu', 'us'),
  'candidate.healthy': flag,
  'candidate.draining': flag,
  'candidate.loras': (random) => (random.next() < 0.5 ? ['adapter'] : []),
  'candidate.supports': () => ['tools'],
  'candidate.load': share,
  'candidate.kv_cache_used': share,
  'candidate.prefix_hit': share,
  'candidate.error_rate': share,
  'candidate.predicted_wait': seconds,
  'candidate.predicted_ttft': seconds,
  'candidate.predicted_tpot': share,
  'candidate.predicted_latency': seconds,
  'candidate.weight': (random) => 1 + Math.floor(random.next() * 4),
  'candidate.throughput': (random) => 100 + 900 * random.next(),
  'candidate.max_requests': (random) => 10 + Math.floor(random.next() * 90),
  'candidate.inflight_requests': upTo(100),
  'candidate.waiting_requests': upTo(10),
  'candidate.running': upTo(100),
  'candidate.batch_size': upTo(100),
  'candidate.queue_depth': upTo(20),
  'candidate.queued_tokens': upTo(20_000),
  'candidate.decode_tokens': upTo(20_000),
  'candidate.inflight_tokens': upTo(40_000),
  'candidate.prefill_fixed': (random) => 20 * random.next(),
  'candidate.prefill_per_token': (random) => 0.01 + 0.2 * random.next(),
  'candidate.decode_a': (random) => 5 + 20 * random.next(),
  'candidate.decode_b': (random) => 0.2 * random.next(),
  'candidate.decode_k': (random) => 0.05 * random.next(),
  'candidate.decode_p': (random) => 0.05 * random.next(),
  'request.prompt_tokens': upTo(8000),
  'request.output_tokens': upTo(1000),
  'request.max_tokens': upTo(1000),
  'request.model': word('llama', 'qwen'),
  'request.prompt': word('Is Paris in France?', 'Prove it.'),
  'request.session': word('s-1', 's-2', 's-3'),
  'request.user': word('u-1', 'u-2'),
  'request.lora': word('adapter'),
  'request.priority': word('critical', 'high', 'normal', 'low'),
  'cluster.saturation': share,
  'cluster.healthy': share,
};
const anyNumber = upTo(1000);

/** One request and the endpoints that are candidates for it, as data that can be laid out in any order. */
export interface SampleInput {
  readonly seed: number;
  readonly signals: { readonly [key: string]: Value | undefined };
  readonly endpoints: readonly EndpointValues[];
  readonly slots: readonly number[];
}

/** An input with a value for each key that is read. Slots are spread out and in no order, as in a fleet that has changed. */
export function sampleInput(
  reads: readonly string[],
  length: number,
  random: RandomSource,
  samples: Samples = {},
): SampleInput {
  const sample = (key: string): Sample => samples[key] ?? KNOWN[key] ?? anyNumber;
  const signals: { [key: string]: Value | undefined } = {};
  for (const key of reads) {
    if (!key.startsWith('candidate.')) signals[key] = sample(key)(random, 0);
  }
  const endpoints = Array.from({ length }, (_, index) => {
    const endpoint: { [key: string]: Value | undefined } = {};
    for (const key of reads) {
      if (key.startsWith('candidate.')) endpoint[key] = sample(key)(random, index);
    }
    return endpoint;
  });
  const slots = shuffled([...Array.from({ length: 2 * length + 1 }).keys()], random).slice(0, length);
  return { seed: Math.floor(random.next() * 2 ** 32), signals, endpoints, slots };
}

/** The numbers 0 to n − 1, or any list, in random order. */
export function shuffled<T>(list: readonly T[], random: RandomSource): T[] {
  return list
    .map((item) => ({ item, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

/** The input with some keys unknown, everywhere or at every other endpoint. */
export function withUnknown(
  input: SampleInput,
  keys: readonly string[],
  where: 'everywhere' | 'every other',
): SampleInput {
  const signals = { ...input.signals };
  for (const key of keys) delete signals[key];
  const endpoints = input.endpoints.map((endpoint, index) => {
    if (where === 'every other' && index % 2 === 0) return endpoint;
    const rest = { ...endpoint };
    for (const key of keys) delete rest[key];
    return rest;
  });
  return { ...input, signals, endpoints };
}

/** The input with its endpoints in another order: `order[i]` is the old position of the i-th. */
export function reordered(input: SampleInput, order: readonly number[]): SampleInput {
  const pick = <T>(list: readonly T[]): T[] => order.flatMap((from) => list.slice(from, from + 1));
  return { ...input, endpoints: pick(input.endpoints), slots: pick(input.slots) };
}

/** The views of an input. */
export interface Views {
  readonly request: RequestView;
  readonly candidates: CandidateView;
}

export function viewsOf(input: SampleInput, onRead?: (key: string) => void): Views {
  const told = onRead === undefined ? {} : { onRead };
  return {
    request: requestView(input.signals, { seed: input.seed, ...told }),
    candidates: candidates(input.endpoints, { slots: input.slots, ...told }),
  };
}

/** Everything that views hold of the keys read, as text, to see whether it has changed. */
export function contentOf(views: Views, reads: readonly string[]): string {
  const columns = reads.filter((key) => key.startsWith('candidate.'));
  return JSON.stringify([
    views.candidates.length,
    [...views.candidates.slots],
    columns.map((key) =>
      Array.from(views.candidates.slots, (slot) => [
        String(views.candidates.column(key)[slot]),
        views.candidates.values(key)[slot] ?? null,
      ]),
    ),
  ]);
}
