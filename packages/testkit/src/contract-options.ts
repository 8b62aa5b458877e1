import type { Json } from '@signalbox/plugin-api';
import type { Samples } from './sample-inputs.ts';

/** How a contract suite should drive a plugin. */
export interface ContractOptions {
  /** Options as a policy would write them; defaults are filled in. Run the suite once for each set that matters. */
  readonly options?: { readonly [name: string]: Json };
  /** Options of the package as a whole, as a `use` would write them. */
  readonly packageOptions?: { readonly [name: string]: Json };
  /** Values for keys that the built-in catalogue does not know, or that need another range. */
  readonly samples?: Samples;
}

/** Milliseconds for 1,000 candidates above which a plugin fails outright: a hundred times what a decision may cost. */
export const TIME_CEILING_MS = 50;
