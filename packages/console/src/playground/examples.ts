import type { PlaygroundState } from './state.ts';

type Example = { readonly title: string } & Pick<PlaygroundState, 'body'> & Partial<Omit<PlaygroundState, 'policy'>>;

const ask = (model: string, content: string, more: object = {}): string =>
  JSON.stringify({ model, messages: [{ role: 'user', content }], ...more }, undefined, 2);

export const EXAMPLE_NAMES = [
  'tour',
  'complexity-tiers',
  'sla-fallback',
  'session-affinity',
  'latency-aware',
  'canary',
  'admission',
] as const;

/** Name of a file of `examples/policies`, without `.route`. */
export type ExampleName = (typeof EXAMPLE_NAMES)[number];

/** What a first visit shows. */
export const FIRST_EXAMPLE: ExampleName = 'tour';

/** Requests and fleets for the policies of `examples/policies`. */
export const EXAMPLES: { readonly [name in ExampleName]: Example } = {
  tour: {
    title: 'A tour of the language',
    body: ask('auto', 'Prove that there are infinitely many primes.'),
    fleet: {
      '70B/1': { queued_tokens: '9k' },
      '70B/2': { queued_tokens: '2k' },
      '70B/3': { queued_tokens: '5k' },
      '70B/4': { decode_tokens: '1500' },
    },
  },
  'complexity-tiers': {
    title: 'Three sizes of model',
    body: ask('auto', 'Why does this fail?\n```ts\nconst names = users.map((user) => user.name);\n```'),
    fleet: { '34B/1': { queued_tokens: '4k' } },
  },
  'sla-fallback': {
    title: 'A promise on the first token',
    body: ask('auto', 'Summarise the minutes of the last meeting.', { stream: true }),
    headers: 'x-slo: interactive',
    fleet: { '70B/1': { queued_tokens: '60k', inflight_requests: '12' } },
  },
  'session-affinity': {
    title: 'Conversations stay where their cache is',
    body: ask('llama-3.1-8b', 'And what did he say next?'),
    headers: 'x-session-id: conversation-7',
    fleet: { '8B/2': { queued_tokens: '3k' } },
  },
  'latency-aware': {
    title: 'GPUs of different speed',
    body: ask('llama-3.1-8b', 'Write a haiku about a railway junction.'),
    headers: 'x-request-deadline-ms: 4000',
    fleet: { '8B/1': { queued_tokens: '40k', inflight_requests: '16', decode_tokens: '8k' } },
  },
  canary: {
    title: 'One in twenty to the new version',
    body: ask('assistant', 'What is new?', { user: 'user-35' }),
  },
  admission: {
    title: 'What to take in, what to refuse',
    body: ask('llama-3.1-8b', 'Is the queue long today?', { user: 'user-3' }),
    fleet: { '8B/1': { inflight_requests: '32' } },
  },
};
