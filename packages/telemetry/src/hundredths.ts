/** What stands behind the whole part of a number of hundredths: nothing, `.1`, `.25`. */
const FRACTIONS: readonly string[] = Array.from({ length: 100 }, (_, hundredths) => String(hundredths / 100).slice(1));
const MOST_HUNDREDTHS = 2 ** 31;

/** A finite number to two decimals, without zeros at its end: `12`, `0.1`, `3.16`. */
export function toHundredths(value: number): string {
  // perf: several in the head of each answer and in each log line; whole numbers are written in a fraction of the time of broken ones
  const hundredths = Math.round(value * 100);
  if (!(hundredths >= 0 && hundredths < MOST_HUNDREDTHS)) return String(hundredths / 100);
  const fraction = hundredths % 100;
  return String((hundredths - fraction) / 100) + FRACTIONS[fraction]!;
}
