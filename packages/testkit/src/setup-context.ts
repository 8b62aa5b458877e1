import { applyOptionDefaults, silentLogger } from '@signalbox/plugin-api';
import type {
  Clock,
  Json,
  Logger,
  OptionSchema,
  Plugin,
  Provided,
  RandomSource,
  SetupContext,
} from '@signalbox/plugin-api';
import type { ContractOptions } from './contract-options.ts';
import { fakeClock } from './fake-clock.ts';
import { seededRandom } from './seeded-random.ts';

export interface SetupContextOptions {
  readonly options?: { readonly [name: string]: Json };
  readonly clock?: Clock;
  readonly random?: RandomSource;
  readonly logger?: Logger;
  readonly signal?: AbortSignal;
}

/**
 * What the host would give to `setup`: options with the schema's defaults, frozen; a clock that stands still; seeded random numbers; a
 * silent log. The type parameter is whatever the plugin's `setup` declares.
 */
export function setupContext(schema: OptionSchema | undefined, given: SetupContextOptions = {}): SetupContext<never> {
  const filled = schema === undefined ? (given.options ?? {}) : applyOptionDefaults(schema, given.options);
  return {
    options: deepFreeze(structuredClone(filled)) as never,
    logger: given.logger ?? silentLogger,
    clock: given.clock ?? fakeClock(),
    random: given.random ?? seededRandom(1),
    signal: given.signal ?? new AbortController().signal,
  };
}

/** The context of a provided name as the host makes it: the package's options under the name's own, defaults of both filled in. */
export function contractContext(plugin: Plugin, definition: Provided, contract: ContractOptions): SetupContext<never> {
  const ofPackage =
    plugin.options === undefined ? undefined : applyOptionDefaults(plugin.options, contract.packageOptions);
  return setupContext(definition.options, {
    options: { ...(ofPackage as ContractOptions['packageOptions']), ...contract.options },
  });
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
