import type { CheckOptions, OptionProblem, OptionSchema } from '@signalbox/plugin-api';

/** Checks one value elsewhere: in the worker that alone may make code from strings. */
export type AskOptionCheck = (schema: OptionSchema, value: unknown) => Promise<readonly OptionProblem[]>;

/** Answers that are kept; past that all are let go. */
const MOST_ANSWERS = 1000;
/** Options can name options that only then are checked, hence more than one round; each finds something new. */
const MOST_ROUNDS = 8;

/**
 * Lets the compiler, which asks for option checks as it goes, use a checker that answers later: it compiles, gathers what was asked and not
 * known, has that checked, and compiles again until nothing is unknown. Answers are kept, so that a text whose options did not change
 * compiles once.
 */
export function createOptionChecks(ask: AskOptionCheck): <T>(compile: (check: CheckOptions) => T) => Promise<T> {
  const answers = new Map<string, readonly OptionProblem[]>();
  return async (compile) => {
    for (let round = 1; ; round++) {
      const unknown = new Map<string, readonly [OptionSchema, unknown]>();
      const result = compile((schema, value) => {
        const key = JSON.stringify([schema, value]);
        const known = answers.get(key);
        if (known === undefined) unknown.set(key, [schema, value]);
        return known ?? [];
      });
      if (unknown.size === 0 || round === MOST_ROUNDS) return result;
      if (answers.size + unknown.size > MOST_ANSWERS) answers.clear();
      await Promise.all([...unknown].map(async ([key, [schema, value]]) => answers.set(key, await ask(schema, value))));
    }
  };
}
