import type { ValueType } from '@signalbox/plugin-api';
import { PRECISIONS } from './built-in-properties.ts';
import { PRIORITIES } from './built-in-signals.ts';
import { reservedWords } from '../../syntax/token-types.ts';

/** What a key of a `define` takes, for hover and completion. The checker reads the keys by rules of its own, and a test holds the two equal. */
export interface KeyDoc {
  readonly doc: string;
  /** Of a plain value. */
  readonly type?: ValueType;
  /** Words that may be written without quotes. */
  readonly words?: readonly string[];
  /** What a text names. */
  readonly names?: 'tier' | 'limit';
  /** Keys of an object that stands here. */
  readonly keys?: { readonly [key: string]: KeyDoc };
  /** The value as it is usually written, as a snippet. */
  readonly example: string;
}

type Keys = { readonly [key: string]: KeyDoc };

/** Words of the grammar stand in quotes where a word of a key is due. */
const asWritten = (word: string): string => (reservedWords.includes(word) ? JSON.stringify(word) : word);

const text = (doc: string, example: string): KeyDoc => ({ doc, type: 'string', example });
const of = (type: ValueType, doc: string, example: string): KeyDoc => ({ doc, type, example });
const oneOf = (words: readonly string[], doc: string): KeyDoc => ({
  doc,
  words,
  example: `\${1|${words.map(asWritten).join(',')}|}`,
});
const other = (doc: string, example: string): KeyDoc => ({ doc, example });
const secret = (doc: string): KeyDoc => ({
  doc: `${doc} Written as \`{ env: "NAME" }\` or \`{ file: "path" }\`.`,
  keys: {
    env: text('The environment variable that holds it.', '"${1:NAME}"'),
    file: text('The file that holds it.', '"${1:path}"'),
  },
  example: '{ env: "${1:NAME}" }',
});

const facts: Keys = {
  model: text('The name that is sent to the endpoint.', '"${1:llama-3.1-8b}"'),
  gpu: text('The accelerator; with the keys below it, finds the speed in the hardware profiles.', '"${1:H100}"'),
  gpu_count: of('number', 'GPUs of one replica; 1 unless written.', '${1:4}'),
  precision: oneOf(PRECISIONS, 'Number format of the weights.'),
  model_size: of('count', 'Parameters; from the name of the model unless written.', '${1:70B}'),
  engine: oneOf(['auto', 'vllm', 'sglang', 'tgi', 'trtllm', 'llamacpp', 'ollama', 'other'], 'The engine that serves.'),
  max_requests: of('count', 'Requests in flight at once; no limit unless written.', '${1:64}'),
  adaptive_limit: of('bool', 'The limit on requests in flight follows what the endpoint bears.', 'true'),
  max_tokens_in_flight: of('count', 'Prompt and predicted output tokens in flight at once.', '${1:200k}'),
  max_batch: of('count', 'Sequences that the engine runs at once.', '${1:256}'),
  context_window: of('count', 'For `fits_context` and the list of models.', '${1:128k}'),
  price: of('money', 'Of the endpoint per hour, for `cost`.', '\\$${1:4.5}'),
  zone: text('For `where`.', '"${1:a}"'),
  region: text('For `where`.', '"${1:eu}"'),
  labels: other('Fields of your own, read as `labels.NAME`, with the type of the value.', '{ $1 }'),
  key: secret('The key of the endpoint, sent as `Authorization: Bearer …`.'),
  ca: text('Certificate authority of a server with https, PEM.', '"${1:path}"'),
  headers: other('Headers sent with every request.', '{ $1 }'),
  ejection: {
    doc: 'When a failing endpoint is left out; `false` turns it off.',
    keys: {
      failures: of('number', 'Failures in a row.', '5'),
      min_success: of('percent', 'Share of requests that must succeed.', '80%'),
      duration: of('duration', 'How long the first time.', '10s'),
      max_duration: of('duration', 'How long at most.', '5m'),
      max_share: of('percent', 'Share of a tier that is left out at most.', '50%'),
    },
    example: '{ failures: ${1:5}, duration: ${2:10s} }',
  },
  role: oneOf(['both', 'prefill', 'decode'], 'Which phase it serves.'),
  throughput: of('rate', 'Output tokens per second at a full batch; from the profile unless written.', '${1:2k/s}'),
  supports: other('What the endpoint can do, for `where supports contains "tools"`.', '["${1:tools}"]'),
};

const objective = (what: string): KeyDoc => of('duration', what, '${1:500ms}');
const amount = (what: string): KeyDoc => of('rate', what, '${1:60/min}');

/** By kind of definition, then by key. */
export const keyDocs: { readonly [kind: string]: Keys } = Object.freeze({
  gateway: {
    listen: text('Where the gateway listens; takes effect at start.', '"${1:0.0.0.0:8080}"'),
    admin: text('Where the admin server listens; takes effect at start.', '"${1:127.0.0.1:9901}"'),
    workers: of('number', 'Worker threads.', '${1:1}'),
    models: other('Names that callers may use besides those of the tiers.', '["${1:auto}"]'),
    unknown_model: oneOf(['reject', 'route'], '`reject` answers 404; `route` lets the rules decide.'),
    report_model: oneOf(['alias', 'real'], 'The name in the answer: what the caller asked for, or what served it.'),
    timezone: text('For `hour`, `weekday` and `within`.', '"${1:Europe/Berlin}"'),
    keys: secret('The list of API keys.'),
    tls: {
      doc: 'Certificate and key, as paths.',
      keys: {
        cert: text('Path of the certificate, PEM.', '"${1:path}"'),
        key: text('Path of the key, PEM.', '"${1:path}"'),
      },
      example: '{ cert: "${1:path}", key: "${2:path}" }',
    },
    body_limit: of('bytes', 'The largest body that is read.', '${1:20MiB}'),
    early_head: of('duration', 'After so long without output a stream gets its head and comments.', '${1:30s}'),
    explain_header: oneOf(
      ['off', 'asked', 'all'],
      'Which answers say in `x-signalbox-explain` why they went where they went.',
    ),
    drain: {
      doc: 'What happens after SIGTERM.',
      keys: {
        accept: of('duration', 'How long connections are still accepted.', '10s'),
        grace: of('duration', 'How long running requests may take.', '300s'),
      },
      example: '{ accept: ${1:10s}, grace: ${2:300s} }',
    },
    trusted_proxies: other('Networks of the proxies in front.', '["${1:10.0.0.0/8}"]'),
    cors: other('Accepted, without effect.', '$1'),
    audit: {
      doc: 'The audit file.',
      keys: { file: text('Its path.', '"${1:path}"'), record: oneOf(['read', 'all'], 'What a record holds.') },
      example: '{ file: "${1:audit.ndjson}" }',
    },
    shared: {
      doc: 'Accepted, without effect.',
      keys: { url: text('Address of the store.', '"${1:redis://host}"') },
      example: '{ url: "$1" }',
    },
  },
  tier: {
    endpoints: other('Addresses, and objects with a `url` and keys of their own.', '["${1:http://10.0.0.11:8000}"]'),
    ...facts,
  },
  endpoint: {
    url: text('Its address: `http(s)://host[:port][/path]`.', '"${1:http://10.0.0.11:8000}"'),
    tier: { ...text('The tier that it belongs to.', '"${1:8B}"'), names: 'tier' },
    name: text('Its name; names, not addresses, are shown to callers.', '"${1:name}"'),
    weight: of('number', 'Its share of affinity keys and in `least_requests`.', '${1:1}'),
    ...facts,
  },
  slo: {
    ttft: objective('Time to the first token.'),
    tpot: objective('Time per output token.'),
    latency: objective('Time to the last token.'),
  },
  tenant: {
    keys: other('SHA-256 hashes of its API keys.', '["$1"]'),
    class: oneOf(PRIORITIES, 'The best `priority` of its requests.'),
    weight: of('number', 'Its share in `weighted_fair` queues.', '${1:1}'),
    limits: { ...other('Names of limits that refuse its requests without a rule.', '["$1"]'), names: 'limit' },
    models: other('The only models that its keys see and may use.', '["$1"]'),
  },
  limit: {
    key: other('What is counted together: an expression or a list of them.', '${1:tenant.id}'),
    requests: amount('Requests per time.'),
    tokens: amount('Prompt and output tokens per time.'),
    input_tokens: amount('Prompt tokens per time.'),
    output_tokens: amount('Output tokens per time.'),
    cost: other('Money per time.', '\\$${1:5}/h'),
    concurrency: of('count', 'Requests in flight at once.', '${1:8}'),
    when: other('Which requests count; all unless written.', '$1'),
    charge: oneOf(
      ['reserve', 'after'],
      '`reserve`: an estimate at admission, settled at the end; `after`: only at the end.',
    ),
    share_of: { ...text('A limit that is charged too.', '"$1"'), names: 'limit' },
  },
  alarm: {
    when: other('It is raised while this holds.', '${1:cluster.saturation > 85%}'),
    until: other('It falls when this holds.', '${1:cluster.saturation < 70%}'),
    for: of('duration', 'How long the condition must hold.', '${1:5s}'),
  },
  param: {
    env: text('The environment variable that gives the value.', '"${1:NAME}"'),
    default: other('The value where the variable is not set; its type is that of the parameter.', '"$1"'),
  },
});
