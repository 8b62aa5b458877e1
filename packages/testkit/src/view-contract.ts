import type { Value } from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import type { Views } from './sample-inputs.ts';

/** What a host is to show to a plugin that declares `reads`: three endpoints and one request. */
export interface ViewFacts {
  readonly reads: readonly string[];
  /** In the order of the candidates. A missing property is unknown. */
  readonly endpoints: readonly {
    readonly name: string;
    readonly zone?: string;
    readonly throughput?: number;
    readonly queued_tokens: number;
  }[];
  readonly signals: { readonly [key: string]: Value };
}

const FACTS: ViewFacts = {
  reads: [
    'candidate.name',
    'candidate.zone',
    'candidate.throughput',
    'candidate.queued_tokens',
    'request.prompt_tokens',
    'request.model',
    'request.user',
  ],
  endpoints: [
    { name: 'gpu-0', zone: 'a', throughput: 300, queued_tokens: 40 },
    { name: 'gpu-1', throughput: 100, queued_tokens: 0 },
    { name: 'gpu-2', zone: 'b', throughput: 200, queued_tokens: 7 },
  ],
  signals: { 'request.prompt_tokens': 100, 'request.model': 'm' },
};

/**
 * The contract of the views that a plugin is given, for hosts: testkit's own builders and the gateway's real views pass the same suite.
 * `show` sets the facts up in a host and calls `inspect` where a plugin would be called.
 */
export function viewContract(show: (facts: ViewFacts, inspect: (views: Views) => void) => void): readonly Check[] {
  const views = (name: string, body: (views: Views) => void): Check =>
    check(`views: ${name}`, () => {
      let calls = 0;
      show(FACTS, (shown) => {
        calls++;
        body(shown);
      });
      demand(calls > 0, 'the host never called the plugin');
    });
  const equal = (what: string, given: unknown, expected: unknown): void =>
    demand(Object.is(given, expected), `${what} is ${String(given)}; expected ${String(expected)}`);

  return [
    views('each candidate has a position and a slot of its own', ({ candidates }) => {
      equal('length', candidates.length, 3);
      const slots = [...candidates.slots.subarray(0, candidates.length)];
      demand(
        new Set(slots).size === 3 && slots.every((slot) => Number.isInteger(slot) && slot >= 0),
        `slots are ${slots.join(', ')}`,
      );
    }),
    views('numeric columns are indexed by slot', ({ candidates }) => {
      const throughput = candidates.column('candidate.throughput');
      const queued = candidates.column('candidate.queued_tokens');
      FACTS.endpoints.forEach((endpoint, i) => {
        const slot = candidates.slots[i] ?? -1;
        equal(`throughput of ${endpoint.name}`, throughput[slot], endpoint.throughput);
        equal(`queued_tokens of ${endpoint.name}`, queued[slot], endpoint.queued_tokens);
      });
    }),
    views('texts are indexed by slot, and one that is not known is undefined', ({ candidates }) => {
      const names = candidates.values('candidate.name');
      const zones = candidates.values('candidate.zone');
      FACTS.endpoints.forEach((endpoint, i) => {
        const slot = candidates.slots[i] ?? -1;
        equal(`name of ${endpoint.name}`, names[slot], endpoint.name);
        equal(`zone of ${endpoint.name}`, zones[slot], endpoint.zone);
      });
    }),
    views('a property that was not declared is unknown for every candidate', ({ candidates }) => {
      for (const slot of candidates.slots.subarray(0, candidates.length)) {
        equal('decode_tokens', candidates.column('candidate.decode_tokens')[slot], Number.NaN);
        equal('tier', candidates.values('candidate.tier')[slot], undefined);
      }
    }),
    views('signals are read by key; unknown and undeclared ones are NaN and undefined', ({ request }) => {
      equal('number of prompt_tokens', request.number('request.prompt_tokens'), 100);
      equal('value of prompt_tokens', request.value('request.prompt_tokens'), 100);
      equal('value of model', request.value('request.model'), 'm');
      equal('number of model', request.number('request.model'), Number.NaN);
      equal('value of user', request.value('request.user'), undefined);
      equal('number of words', request.number('request.words'), Number.NaN);
      equal('value of path', request.value('request.path'), undefined);
    }),
    views('the seed is a uint32', ({ request }) => {
      demand(
        Number.isInteger(request.seed) && request.seed >= 0 && request.seed < 2 ** 32,
        `the seed is ${request.seed}`,
      );
    }),
  ];
}
