import type { HostData } from '../../../packages/policy/src/eval/program.fixture.ts';
import type { PolicyProgram, RefArgument } from '../../../packages/policy/src/index.ts';
import { createRandom } from '../mutations/mutate.ts';
import type { Facts, TreeValue } from './interpret-tree.ts';

export const ENDPOINTS: readonly number[] = [0, 1, 2, 3, 4];

type Sort = 'number' | 'share' | 'seconds' | 'text' | 'bool' | 'texts';

const REQUEST: { readonly [name: string]: Sort } = {
  complexity: 'number',
  words: 'number',
  prompt_tokens: 'number',
  max_tokens: 'number',
  session_tokens: 'number',
  'cluster.saturation': 'share',
  deadline: 'seconds',
  stream: 'bool',
  reasoning: 'bool',
  json_schema: 'bool',
  user: 'text',
  prompt: 'text',
  tool_names: 'texts',
  'header["x-n"]': 'text',
  'header["x-slo"]': 'text',
  'header["x-fast"]': 'text',
  'header["x-tags"]': 'text',
  'metadata["wait"]': 'text',
  'metadata["team"]': 'text',
};
const ENDPOINT: { readonly [name: string]: Sort } = {
  queue_depth: 'number',
  queued_tokens: 'number',
  running: 'number',
  decode_tokens: 'number',
  throughput: 'number',
  kv_cache_used: 'share',
  error_rate: 'share',
  predicted_ttft: 'seconds',
  age: 'seconds',
  region: 'text',
  zone: 'text',
  gpu: 'text',
  healthy: 'bool',
  draining: 'bool',
  has_model: 'bool',
  loras: 'texts',
  supports: 'texts',
};

/** Values at which the conditions of the generated policies change their minds. */
const VALUES: { readonly [sort in Sort]: readonly TreeValue[] } = {
  number: [0, 1, 0.5, 9, 10, 50, 51, 60, 61, 4000, 4001],
  share: [0, 0.05, 0.5, 0.9, 0.91, 1.4],
  seconds: [0, 0.1, 0.5, 3, 3.5, 60],
  text: [
    '',
    'eu',
    'EU',
    'us',
    'interactive',
    'Interactive one',
    'true',
    '0',
    '12',
    ' 7.5 ',
    'eu, us',
    'x',
    '-3',
    '500',
  ],
  bool: [true, false],
  texts: [[], ['eu'], ['eu', 'us'], ['a', 'x']],
};

/** `load` as the reference says it: 0.1 of the prompt tokens and the decode tokens in flight, over the tokens of one second. */
function loadOf(endpoint: Facts['endpoint']): readonly TreeValue[] {
  return ENDPOINTS.map((at) => {
    const [queued, decode, perSecond] = ['queued_tokens', 'decode_tokens', 'throughput'].map(
      (name) => endpoint.get(name)?.[at],
    );
    if (typeof queued !== 'number' || typeof decode !== 'number' || typeof perSecond !== 'number') return undefined;
    const load = (0.1 * queued + decode) / perSecond;
    return Number.isFinite(load) ? load : undefined;
  });
}

/** Facts for every name that the generator of policies writes; a quarter is unknown. */
export function factsOf(seed: number): Facts {
  const random = createRandom(seed * 7919 + 17);
  for (let warm = 0; warm < 4; warm += 1) random(2);
  const valueOf = (sort: Sort): TreeValue => (random(4) === 0 ? undefined : VALUES[sort][random(VALUES[sort].length)]);
  const pool = (): readonly number[] => ENDPOINTS.filter(() => random(3) > 0);
  const endpoint = new Map<string, readonly TreeValue[]>(
    Object.entries(ENDPOINT).map(([name, sort]) => [name, ENDPOINTS.map(() => valueOf(sort))]),
  );
  endpoint.set('load', loadOf(endpoint));
  return {
    request: new Map(Object.entries(REQUEST).map(([name, sort]) => [name, valueOf(sort)])),
    endpoint,
    pools: { any: pool(), small: pool(), large: pool() },
  };
}

const nameOf = ({
  key,
  arguments: args,
}: {
  readonly key: string;
  readonly arguments: readonly RefArgument[];
}): string => {
  const [index] = args;
  return index?.kind === 'value' ? `${key}[${JSON.stringify(index.value)}]` : key;
};

/** What the score of the last rule of the generated policies reads, and nobody writes. */
const OF_THE_DEFAULT: ReadonlySet<string> = new Set(['output_tokens']);

/** The same facts in the order in which a program asks for them. */
export function hostDataOf(program: PolicyProgram, facts: Facts): HostData {
  const asked = <T>(map: ReadonlyMap<string, T>, name: string): T | undefined => {
    if (!map.has(name) && !OF_THE_DEFAULT.has(name))
      throw new Error(`the program reads ${name}, which no policy here names`);
    return map.get(name);
  };
  return {
    signals: program.signals.map((signal) => asked(facts.request, nameOf(signal)) as HostData['signals'][number]),
    properties: program.properties.map(
      (property) => (asked(facts.endpoint, nameOf(property)) ?? []) as HostData['properties'][number],
    ),
    pools: facts.pools,
  };
}
