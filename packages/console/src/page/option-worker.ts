import { createOptionChecker } from '@signalbox/config';
import type { OptionProblem, OptionSchema } from '@signalbox/plugin-api';
import type { MessageEnd } from '../playground/worker-protocol.ts';

interface OptionCall {
  readonly id: number;
  readonly schema: OptionSchema;
  readonly value: unknown;
}

export interface OptionReply {
  readonly id: number;
  /** Absent: they could not be checked here. */
  readonly problems?: readonly OptionProblem[];
}

// The one place that may make code from strings: the validator compiles schemas. It sees schemas and options, and nothing else.
const check = createOptionChecker();
const port = self as unknown as MessageEnd;

port.addEventListener('message', ({ data }) => {
  const { id, schema, value } = data as OptionCall;
  port.postMessage(answer(id, schema, value));
});

function answer(id: number, schema: OptionSchema, value: unknown): OptionReply {
  try {
    return { id, problems: check(schema, value) };
  } catch {
    return { id };
  }
}
