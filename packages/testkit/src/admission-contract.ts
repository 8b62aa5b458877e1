import type { AdmissionArguments, AdmissionInstance, Plugin } from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import { TIME_CEILING_MS } from './contract-options.ts';
import type { ContractOptions } from './contract-options.ts';
import { fastestRunMs } from './fastest-run.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { contentOf, reordered, sampleInput, shuffled, viewsOf, withUnknown } from './sample-inputs.ts';
import type { SampleInput, Views } from './sample-inputs.ts';
import { seededRandom } from './seeded-random.ts';
import { contractContext } from './setup-context.ts';

/** How to drive an admission predicate: as other plugins, and the arguments to call it with. */
export interface AdmissionContractOptions extends ContractOptions {
  /** Sets of arguments; by default some service-level objectives, with and without each of its parts. */
  readonly arguments?: readonly AdmissionArguments[];
}

const DEFAULT_ARGUMENTS: readonly AdmissionArguments[] = [
  { slo: { ttft: 2, tpot: 0.2, latency: 20 } },
  { slo: { ttft: 2, tpot: Number.NaN, latency: Number.NaN } },
  { slo: { ttft: Number.NaN, tpot: Number.NaN, latency: Number.NaN } },
  { limit: 'free plan', value: 3 },
  {},
];

/**
 * The contract of one admission predicate: manifest; true, false or `undefined`; determinism; independence of order; no mutation; empty
 * pool; unknown values; declared reads; idempotent close; time.
 */
export function admissionContract(
  plugin: Plugin,
  name: string,
  contract: AdmissionContractOptions = {},
): readonly Check[] {
  const definition = definitionOf(plugin, 'admission', name);
  const reads = definition.reads ?? [];
  const sets = contract.arguments ?? DEFAULT_ARGUMENTS;
  const title = (what: string): string => `admission ${name}: ${what}`;
  const setUp = (): AdmissionInstance => definition.setup(contractContext(plugin, definition, contract));
  const inputs = (length: number, seed: number): SampleInput =>
    sampleInput(reads, length, seededRandom(seed), contract.samples);
  const ask = (instance: AdmissionInstance, views: Views, args: AdmissionArguments): boolean | undefined => {
    const answer: unknown = instance.holds(views.request, views.candidates, args);
    demand(
      answer === true || answer === false || answer === undefined,
      `it answered ${String(answer)}; expected true, false or undefined (unknown)`,
    );
    return answer;
  };
  const answers = (instance: AdmissionInstance, input: SampleInput): string =>
    sets.map((args) => String(ask(instance, viewsOf(input), args))).join(', ');

  return [
    manifestCheck(plugin, 'admission', name),
    check(title('answers true, false or unknown, the same each time'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 40; seed++) {
        const input = inputs(seed % 9, seed);
        const once = answers(instance, input);
        demand(answers(instance, input) === once, `the same input was answered ${once} and then otherwise`);
        demand(
          answers(setUp(), input) === once,
          `the same input was answered ${once} and otherwise by another instance`,
        );
      }
    }),
    check(title('does not depend on the order of the candidates'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 20; seed++) {
        const input = inputs(7, seed);
        const order = shuffled([...input.endpoints.keys()], seededRandom(seed + 100));
        const expected = answers(instance, input);
        const given = answers(instance, reordered(input, order));
        demand(
          given === expected,
          `candidates in the order ${order.join(', ')} were answered ${given} in place of ${expected}`,
        );
      }
    }),
    check(title('changes neither columns nor slots'), () => {
      const instance = setUp();
      const views = viewsOf(inputs(6, 7));
      const content = contentOf(views, reads);
      for (const args of sets) ask(instance, views, args);
      demand(
        contentOf(views, reads) === content,
        'columns or slots of the candidates were changed; they belong to the host',
      );
    }),
    check(title('takes an empty pool and unknown values'), () => {
      const instance = setUp();
      answers(instance, inputs(0, 9));
      const input = inputs(6, 11);
      for (const keys of [...reads.map((key) => [key]), reads]) {
        answers(instance, withUnknown(input, keys, 'everywhere'));
        answers(instance, withUnknown(input, keys, 'every other'));
      }
    }),
    check(title('reads only what it declares'), () => {
      const asked = new Set<string>();
      const views = viewsOf(inputs(5, 13), (key) => asked.add(key));
      const instance = setUp();
      for (const args of sets) ask(instance, views, args);
      const undeclared = [...asked].filter((key) => !reads.includes(key));
      demand(
        undeclared.length === 0,
        () => `asks for ${undeclared.join(', ')} without declaring it in \`reads\`; the host gives unknown for it`,
      );
    }),
    check(title('close is idempotent'), () => {
      const instance = setUp();
      instance.close?.();
      instance.close?.();
      setUp();
    }),
    check(title('time per 1,000 candidates'), () => {
      const instance = setUp();
      const views = viewsOf(inputs(1000, 19));
      const fastestMs =
        fastestRunMs(30, () => {
          for (const args of sets) instance.holds(views.request, views.candidates, args);
        }) / sets.length;
      demand(
        fastestMs < TIME_CEILING_MS,
        `1,000 candidates took ${fastestMs.toFixed(1)} ms at best; the ceiling is ${TIME_CEILING_MS} ms`,
      );
      return `${(fastestMs * 1000).toFixed(1)} µs for 1,000 candidates (best of 30)`;
    }),
  ];
}
