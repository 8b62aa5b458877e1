import type { Closeable, PluginKind, SetupContext } from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import { TIME_CEILING_MS } from './contract-options.ts';
import type { ContractOptions } from './contract-options.ts';
import { fastestRunMs } from './fastest-run.ts';
import { contentOf, reordered, sampleInput, shuffled, viewsOf, withUnknown } from './sample-inputs.ts';
import type { SampleInput, Views } from './sample-inputs.ts';
import { seededRandom } from './seeded-random.ts';

/** Arrays that a scorer, filter or property writes one value per candidate to. */
export type Output = Float64Array | Uint8Array;

/** What the checks of scorers, filters and properties have in common: one value for each candidate, by position. */
export interface PositionalSubject<I extends Closeable, O extends Output> {
  readonly kind: PluginKind;
  readonly name: string;
  /** What to set an instance up with. */
  createContext(): SetupContext<never>;
  readonly reads: readonly string[];
  setup(context: SetupContext<never>): I;
  run(instance: I, views: Views, out: O): void;
  createOutput(length: number): O;
  /** What is wrong with a value, or undefined. NaN is unknown and always allowed in numbers. */
  problemOf(value: number): string | undefined;
}

/** Two different fillers, so that a position that was never written is told from one that was. */
const FILLERS = [77, 99] as const;

export function positionalChecks<I extends Closeable, O extends Output>(
  subject: PositionalSubject<I, O>,
  contract: ContractOptions,
): readonly Check[] {
  const { kind, name, reads } = subject;
  const title = (what: string): string => `${kind} ${name}: ${what}`;
  const setUp = (): I => subject.setup(subject.createContext());
  const inputs = (length: number, seed: number): SampleInput =>
    sampleInput(reads, length, seededRandom(seed), contract.samples);
  const evaluate = (instance: I, input: SampleInput, filler: number = FILLERS[0]): O => {
    const out = subject.createOutput(input.endpoints.length + 3);
    out.fill(filler);
    subject.run(instance, viewsOf(input), out);
    return out;
  };
  const valuesOf = (instance: I, input: SampleInput): readonly number[] =>
    [...evaluate(instance, input)].slice(0, input.endpoints.length);
  const demandValid = (input: SampleInput, values: readonly number[], where: string): void => {
    values.forEach((value, i) => {
      const problem = subject.problemOf(value);
      demand(
        problem === undefined,
        () => `${where}: position ${i} is ${value}, ${problem}. Its endpoint: ${JSON.stringify(input.endpoints[i])}`,
      );
    });
  };
  const same = (a: readonly number[], b: readonly number[]): boolean =>
    a.length === b.length && a.every((value, i) => Object.is(value, b[i]));

  return [
    check(title('values are in range'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 40; seed++) {
        const input = inputs(1 + (seed % 9), seed);
        demandValid(input, valuesOf(instance, input), `input ${seed}`);
      }
    }),
    check(title('writes a value for each candidate and nothing behind them'), () => {
      const instance = setUp();
      const input = inputs(7, 3);
      const [first, second] = FILLERS.map((filler) => evaluate(instance, input, filler));
      for (let i = 0; i < 7; i++) {
        const written = first?.[i] !== FILLERS[0] || second?.[i] !== FILLERS[1];
        demand(written, `position ${i} of 7 was not written; each position needs a value, NaN where it is unknown`);
      }
      for (let i = 7; i < 10; i++)
        demand(first?.[i] === FILLERS[0], `position ${i} was written although there are only 7 candidates`);
    }),
    check(title('is deterministic'), () => {
      const input = inputs(8, 5);
      const instance = setUp();
      const once = valuesOf(instance, input);
      const again = valuesOf(instance, input);
      demand(same(once, again), () => `the same input gave ${once.join(', ')} and then ${again.join(', ')}`);
      const other = valuesOf(setUp(), input);
      demand(
        same(once, other),
        () => `two instances with the same seed gave ${once.join(', ')} and ${other.join(', ')}`,
      );
    }),
    check(title('does not depend on the order of the candidates'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 10; seed++) {
        const input = inputs(9, seed);
        const order = shuffled([...input.endpoints.keys()], seededRandom(seed + 100));
        const values = valuesOf(instance, input);
        const expected = order.map((from) => values[from] ?? Number.NaN);
        const given = valuesOf(instance, reordered(input, order));
        demand(
          same(expected, given),
          () => `candidates in the order ${order.join(', ')} gave ${given.join(', ')}; expected ${expected.join(', ')}`,
        );
      }
    }),
    check(title('changes neither columns, slots nor options'), () => {
      const context: { readonly options: unknown } = subject.createContext();
      const before = JSON.stringify(context.options);
      const instance = subject.setup(context as SetupContext<never>);
      const input = inputs(6, 7);
      const views = viewsOf(input);
      const content = contentOf(views, reads);
      const out = subject.createOutput(6);
      subject.run(instance, views, out);
      demand(
        contentOf(views, reads) === content,
        'columns or slots of the candidates were changed; they belong to the host',
      );
      demand(JSON.stringify(context.options) === before, 'the options were changed; they belong to the host');
    }),
    check(title('takes an empty list and a single candidate'), () => {
      const instance = setUp();
      const empty = evaluate(instance, inputs(0, 9));
      demand(
        empty.every((value) => value === FILLERS[0]),
        'something was written for an empty list of candidates',
      );
      const single = inputs(1, 9);
      demandValid(single, valuesOf(instance, single), 'a single candidate');
    }),
    check(title('takes unknown signals and properties'), () => {
      const instance = setUp();
      const input = inputs(6, 11);
      for (const keys of [...reads.map((key) => [key]), reads]) {
        for (const where of ['everywhere', 'every other'] as const) {
          const lacking = withUnknown(input, keys, where);
          demandValid(lacking, valuesOf(instance, lacking), `${keys.join(', ') || 'nothing'} unknown ${where}`);
        }
      }
    }),
    check(title('reads only what it declares'), () => {
      const asked = new Set<string>();
      const input = inputs(5, 13);
      subject.run(
        setUp(),
        viewsOf(input, (key) => asked.add(key)),
        subject.createOutput(5),
      );
      const undeclared = [...asked].filter((key) => !reads.includes(key));
      demand(
        undeclared.length === 0,
        () => `asks for ${undeclared.join(', ')} without declaring it in \`reads\`; the host gives unknown for it`,
      );
    }),
    check(title('evaluating changes no state'), () => {
      const input = inputs(6, 15);
      const fresh = valuesOf(setUp(), input);
      const used = setUp();
      for (let seed = 20; seed < 60; seed++) evaluate(used, inputs(1 + (seed % 12), seed));
      const after = valuesOf(used, input);
      demand(
        same(fresh, after),
        () => `after 40 other evaluations the same input gave ${after.join(', ')} in place of ${fresh.join(', ')}`,
      );
    }),
    check(title('instances are independent and close is idempotent'), () => {
      const input = inputs(5, 17);
      const one = setUp();
      const other = setUp();
      const before = valuesOf(other, input);
      evaluate(one, input);
      one.close?.();
      one.close?.();
      const after = valuesOf(other, input);
      demand(same(before, after), 'closing one instance changed what another gives');
    }),
    check(title('time per 1,000 candidates'), () => {
      const instance = setUp();
      const input = inputs(1000, 19);
      const views = viewsOf(input);
      const out = subject.createOutput(1000);
      const fastestMs = fastestRunMs(30, () => subject.run(instance, views, out));
      demand(
        fastestMs < TIME_CEILING_MS,
        `1,000 candidates took ${fastestMs.toFixed(1)} ms at best; the ceiling is ${TIME_CEILING_MS} ms`,
      );
      return `${(fastestMs * 1000).toFixed(1)} µs for 1,000 candidates (best of 30)`;
    }),
  ];
}
