import { checkOptionsPlainly } from '@signalbox/policy';
import type { OptionProblem, OptionSchema } from '@signalbox/plugin-api';
import { createPolicyService } from '../playground/policy-service.ts';
import { servePolicyCalls } from '../playground/worker-protocol.ts';
import type { MessageEnd } from '../playground/worker-protocol.ts';
import { EMPTY_STATE } from '../playground/state.ts';
import type { OptionReply } from './option-worker.ts';

/** File name of the worker that checks options; the build fills it in. */
declare const OPTION_WORKER: string;

/** Milliseconds that the other worker has to load and answer; then the compiler's own plain checker answers. */
const OPTION_LIMIT_MS = 1000;

/** Who waits for an answer, by the number of the call; called with none, the plain checker answers. */
const waiting = new Map<number, (problems?: readonly OptionProblem[]) => void>();
let worker: Worker | undefined;
let asked = 0;

function startWorker(): Worker {
  const started = new Worker(new URL(OPTION_WORKER, self.location.href));
  started.addEventListener('message', ({ data }: MessageEvent<OptionReply>) => waiting.get(data.id)?.(data.problems));
  started.addEventListener('error', () => {
    for (const answer of waiting.values()) answer();
  });
  return started;
}

/** Where code from strings is forbidden there too, or the worker cannot be had, the plain checker of the compiler answers. */
function askOptionCheck(schema: OptionSchema, value: unknown): Promise<readonly OptionProblem[]> {
  const id = ++asked;
  return new Promise((resolve) => {
    waiting.set(id, (problems = checkOptionsPlainly(schema, value)) => {
      waiting.delete(id);
      resolve(problems);
    });
    setTimeout(() => waiting.get(id)?.(), OPTION_LIMIT_MS);
    try {
      worker ??= startWorker();
      worker.postMessage({ id, schema, value });
    } catch {
      waiting.get(id)?.();
    }
  });
}

const service = createPolicyService({ askOptionCheck });
/** Builds the parser and runs everything once, so that the first call is not measured against a cold engine. */
const WARM_UP = {
  ...EMPTY_STATE,
  policy: 'define tier "a" { endpoints: ["http://a.test"] }\ndefault to tier "a" by least_tokens',
  body: '{ "model": "m", "messages": [{ "role": "user", "content": "" }] }',
};
void service
  .evaluate(WARM_UP)
  .catch(() => undefined)
  .then(() => servePolicyCalls(self as unknown as MessageEnd, service));
