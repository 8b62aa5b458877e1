import { signsByText } from './token-types.ts';
import { ratePeriods, units } from './units.ts';

/** Every operator and every sign of punctuation. */
export const signs: readonly string[] = [...signsByText.keys()];

/** What may stand behind a number: units of durations, counts and sizes; and, behind a bar, periods of rates. */
export const literalUnits: { readonly units: readonly string[]; readonly periods: readonly string[] } = {
  units: [...units.keys()],
  periods: [...ratePeriods.keys()],
};
