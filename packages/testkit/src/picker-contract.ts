import type { PickerInstance, Plugin } from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import { TIME_CEILING_MS } from './contract-options.ts';
import type { ContractOptions } from './contract-options.ts';
import { fastestRunMs } from './fastest-run.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { contentOf, sampleInput, viewsOf } from './sample-inputs.ts';
import type { Views } from './sample-inputs.ts';
import { seededRandom } from './seeded-random.ts';
import { contractContext } from './setup-context.ts';

/** Written behind the places that a picker may use. */
const GUARD = -7;

/**
 * The contract of one picker: manifest; positions distinct, within the candidates and no more than asked for; the same seed gives the
 * same choice; scores, slots and columns unchanged; empty list, single candidate, equal and all-zero scores; idempotent close; time.
 */
export function pickerContract(plugin: Plugin, name: string, contract: ContractOptions = {}): readonly Check[] {
  const definition = definitionOf(plugin, 'picker', name);
  const reads = definition.reads ?? [];
  const title = (what: string): string => `picker ${name}: ${what}`;
  const setUp = (): PickerInstance => definition.setup(contractContext(plugin, definition, contract));
  const views = (length: number, seed: number): Views =>
    viewsOf(sampleInput(reads, length, seededRandom(seed), contract.samples));
  const scoresFor = (length: number, seed: number): Float64Array => {
    const random = seededRandom(seed);
    return Float64Array.from({ length }, () => random.next());
  };

  const sample = (instance: PickerInstance, length: number, seed: number): readonly number[] | undefined => {
    if (instance.sample === undefined) return undefined;
    const out = new Int32Array(length + 2).fill(GUARD);
    const count = instance.sample(views(length, seed).candidates, seededRandom(seed), out);
    return demandPositions('sample', out, count, length, length);
  };
  const pick = (
    instance: PickerInstance,
    scores: Float64Array,
    k: number,
    seed: number,
  ): readonly number[] | undefined => {
    if (instance.pick === undefined) return undefined;
    const { length } = scores;
    const out = new Int32Array(length + 2).fill(GUARD);
    const count = instance.pick(scores, views(length, seed).candidates, seededRandom(seed), k, out);
    return demandPositions('pick', out, count, length, k);
  };

  return [
    manifestCheck(plugin, 'picker', name),
    check(title('gives distinct positions, and no more than asked for'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 60; seed++) {
        const length = 1 + (seed % 12);
        sample(instance, length, seed);
        pick(instance, scoresFor(length, seed), 1 + (seed % 4), seed);
      }
    }),
    check(title('gives at least one position where there is a candidate'), () => {
      const instance = setUp();
      for (const length of [1, 2, 3, 50]) {
        demand(sample(instance, length, 3)?.length !== 0, `sample gave nothing for ${length} candidates`);
        demand(pick(instance, scoresFor(length, 3), 2, 3)?.length !== 0, `pick gave nothing for ${length} candidates`);
      }
    }),
    check(title('the same seed gives the same choice'), () => {
      const instance = setUp();
      for (let seed = 1; seed <= 20; seed++) {
        const scores = scoresFor(10, seed);
        const choice = (one: PickerInstance): string =>
          JSON.stringify([sample(one, 10, seed), pick(one, scores, 3, seed)]);
        const once = choice(instance);
        demand(choice(instance) === once, `seed ${seed} gave ${once} and then something else`);
        demand(choice(setUp()) === once, `seed ${seed} gave ${once} in one instance and something else in another`);
      }
    }),
    check(title('changes neither scores, columns, slots nor options'), () => {
      const context = contractContext(plugin, definition, contract) as unknown as { readonly options: unknown };
      const options = JSON.stringify(context.options);
      const instance = definition.setup(context as never);
      const view = views(8, 5);
      const content = contentOf(view, reads);
      const scores = scoresFor(8, 5);
      const before = scores.join();
      instance.sample?.(view.candidates, seededRandom(5), new Int32Array(8));
      instance.pick?.(scores, view.candidates, seededRandom(5), 3, new Int32Array(8));
      demand(scores.join() === before, 'the scores were changed; they belong to the host');
      demand(
        contentOf(view, reads) === content,
        'columns or slots of the candidates were changed; they belong to the host',
      );
      demand(JSON.stringify(context.options) === options, 'the options were changed; they belong to the host');
    }),
    check(title('takes an empty list'), () => {
      const instance = setUp();
      demand((sample(instance, 0, 7)?.length ?? 0) === 0, 'sample gave a position of an empty list');
      demand((pick(instance, new Float64Array(0), 2, 7)?.length ?? 0) === 0, 'pick gave a position of an empty list');
    }),
    check(title('takes equal scores and scores of zero'), () => {
      const instance = setUp();
      for (const score of [0, 0.5, 1]) {
        for (let seed = 1; seed <= 20; seed++) {
          const picked = pick(instance, new Float64Array(6).fill(score), 3, seed);
          demand(
            picked === undefined || picked.length === 3,
            `with all scores ${score}, pick gave ${picked?.length} of 3 places`,
          );
        }
      }
    }),
    check(title('close is idempotent'), () => {
      const instance = setUp();
      instance.close?.();
      instance.close?.();
      setUp();
    }),
    check(title('time per 1,000 candidates'), () => {
      const instance = setUp();
      const view = views(1000, 9);
      const scores = scoresFor(1000, 9);
      const out = new Int32Array(1000);
      const random = seededRandom(9);
      const fastestMs = fastestRunMs(30, () => {
        instance.sample?.(view.candidates, random, out);
        instance.pick?.(scores, view.candidates, random, 3, out);
      });
      demand(
        fastestMs < TIME_CEILING_MS,
        `1,000 candidates took ${fastestMs.toFixed(1)} ms at best; the ceiling is ${TIME_CEILING_MS} ms`,
      );
      return `${(fastestMs * 1000).toFixed(1)} µs for 1,000 candidates (best of 30)`;
    }),
  ];
}

function demandPositions(
  what: string,
  out: Int32Array,
  count: number,
  length: number,
  most: number,
): readonly number[] {
  demand(
    Number.isInteger(count) && count >= 0 && count <= Math.min(most, length),
    `${what} returned ${count}; expected 0 to ${Math.min(most, length)}`,
  );
  const positions = [...out.subarray(0, count)];
  for (const position of positions) {
    demand(position >= 0 && position < length, `${what} gave position ${position} of ${length} candidates`);
  }
  demand(new Set(positions).size === count, `${what} gave a position twice: ${positions.join(', ')}`);
  demand(
    out[length] === GUARD && out[length + 1] === GUARD,
    `${what} wrote behind the places for ${length} candidates`,
  );
  return positions;
}
