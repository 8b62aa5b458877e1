import { isNumericType } from '@signalbox/plugin-api';
import type {
  AsyncSignalInstance,
  ParsedRequest,
  Plugin,
  SignalDefinition,
  SignalInstance,
  Value,
  ValueType,
} from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import { TIME_CEILING_MS } from './contract-options.ts';
import type { ContractOptions } from './contract-options.ts';
import { fastestRunMs } from './fastest-run.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { parsedRequest } from './parsed-request.ts';
import { requestView } from './request-view.ts';
import { contractContext } from './setup-context.ts';

/** Requests that break careless signals: none or empty text, many turns, other scripts, halves of surrogate pairs, long lines. */
const REQUESTS: readonly ParsedRequest[] = [
  parsedRequest(),
  parsedRequest({ messages: '' }),
  parsedRequest({ messages: 'Is Paris in France?' }),
  parsedRequest({ messages: 'Wie spät ist es? Und warum?\r\n\tBitte genau.' }),
  parsedRequest({ messages: '今日は天気がいいですね。散歩に行きましょうか？' }),
  parsedRequest({ messages: '🙂 \ud83d broken \udc00 half \u0000 \u202e' }),
  parsedRequest({ messages: '```ts\nconst x = 1;\n```' }),
  parsedRequest({ messages: 'a'.repeat(100_000) }),
  parsedRequest({ messages: '((((([[[[[{{{{{,,,,,?????'.repeat(400) }),
  parsedRequest({
    messages: [
      { role: 'system', text: 'You are terse.' },
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: 'Hello.' },
      { role: 'user', text: 'Prove that 2 is prime.', images: 1 },
    ],
  }),
  parsedRequest({ kind: 'completion', path: '/v1/completions', messages: 'Once upon a time' }),
  parsedRequest({ kind: 'embedding', path: '/v1/embeddings' }),
];

/**
 * The contract of one signal: manifest; the value is of its declared type or unknown (NaN for numbers, `undefined` for all else), and
 * known throughout if it is declared `always`; the same request gives the same value; idempotent close; time for 1 KB of text. The values
 * of an asynchronous signal are awaited by the caller: for it, the manifest form and the budget are checked.
 */
export function signalContract(plugin: Plugin, name: string, contract: ContractOptions = {}): readonly Check[] {
  const definition = definitionOf(plugin, 'signal', name);
  const title = (what: string): string => `signal ${name}: ${what}`;
  const manifest = manifestCheck(plugin, 'signal', name);
  if (definition.budgetMs !== undefined) {
    return [
      manifest,
      check(title('has a budget above 0 and is not declared always known'), () => {
        demand(
          definition.budgetMs !== undefined && definition.budgetMs > 0,
          `its budget is ${definition.budgetMs} ms; expected more than 0`,
        );
        demand(
          definition.known !== 'always',
          'an asynchronous signal can be late, so that `known: "always"` is a promise it cannot keep',
        );
      }),
    ];
  }
  const setUp = (): SignalInstance => synchronous(plugin, definition, contract);
  const view = requestView({}, { reads: definition.reads ?? [] });

  return [
    manifest,
    check(title('gives values of its type, or unknown'), () => {
      const instance = setUp();
      for (const request of REQUESTS) {
        const value = instance.evaluate(request, view);
        const problem = problemOf(definition.type, definition.known === 'always', value);
        demand(problem === undefined, () => `for ${describe(request)} it gave ${String(value)}, ${problem}`);
      }
    }),
    check(title('is deterministic and keeps no state between requests'), () => {
      const instance = setUp();
      const first = REQUESTS.map((request) => instance.evaluate(request, view));
      const again = REQUESTS.toReversed()
        .map((request) => instance.evaluate(request, view))
        .toReversed();
      first.forEach((value, i) => {
        demand(
          JSON.stringify(value) === JSON.stringify(again[i]),
          () => `the same request gave ${String(value)} and then ${String(again[i])}`,
        );
      });
    }),
    check(title('close is idempotent, and leaves other instances alone'), () => {
      const one = setUp();
      const other = setUp();
      one.close?.();
      one.close?.();
      for (const request of REQUESTS) other.evaluate(request, view);
    }),
    check(title('time for 1 KB of text'), () => {
      const instance = setUp();
      const request = parsedRequest({
        messages: 'Consider, in detail, how the 27 member states (and others) would respond; why? '.repeat(13),
      });
      const fastestMs = fastestRunMs(300, () => void instance.evaluate(request, view));
      demand(
        fastestMs < TIME_CEILING_MS,
        `1 KB of text took ${fastestMs.toFixed(1)} ms at best; the ceiling is ${TIME_CEILING_MS} ms`,
      );
      return `${(fastestMs * 1000).toFixed(1)} µs for 1 KB (best of 300)`;
    }),
  ];
}

function synchronous(plugin: Plugin, definition: SignalDefinition, contract: ContractOptions): SignalInstance {
  const instance: SignalInstance | AsyncSignalInstance = definition.setup(
    contractContext(plugin, definition, contract),
  );
  return {
    evaluate(request, view) {
      const value = (instance as SignalInstance).evaluate(request, view) as Value | PromiseLike<unknown> | undefined;
      demand(
        typeof value !== 'object' || value === null || !('then' in value),
        'it returned a promise although it declares no `budgetMs`; an asynchronous signal must say how long a decision may wait for it',
      );
      return value;
    },
    close: () => instance.close?.(),
  };
}

function problemOf(type: ValueType, always: boolean, value: Value | undefined): string | undefined {
  if (isNumericType(type)) {
    if (typeof value !== 'number') return 'but a number was declared; unknown is NaN';
    if (Number.isNaN(value)) return always ? 'although it is declared always known' : undefined;
    return Number.isFinite(value) ? undefined : 'which is not finite';
  }
  if (value === undefined) return always ? 'although it is declared always known' : undefined;
  if (type === 'bool') return typeof value === 'boolean' ? undefined : 'but a bool was declared; unknown is undefined';
  if (type === 'string')
    return typeof value === 'string' ? undefined : 'but a string was declared; unknown is undefined';
  if (typeof type === 'object' && 'enum' in type) {
    return typeof value === 'string' && type.enum.includes(value)
      ? undefined
      : `but one of ${type.enum.join(', ')} was declared`;
  }
  return Array.isArray(value) ? undefined : 'but a list was declared';
}

function describe(request: ParsedRequest): string {
  const text = request.lastUserMessage();
  return text === undefined
    ? 'a request without text'
    : JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
