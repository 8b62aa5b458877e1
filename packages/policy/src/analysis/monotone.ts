import { greatestDouble, leastDouble } from './doubles.ts';
import { intersect, interval } from './region.ts';
import type { Region } from './region.ts';
import type { Variable } from './variable.ts';

/** One operation on a number with constants; each is monotone, in float64s too. */
export type MonotoneStep =
  | { readonly op: 'add' | 'minuend' | 'multiply' | 'divide' | 'least' | 'most'; readonly by: number }
  | { readonly op: 'negate' }
  | { readonly op: 'clamp'; readonly low: number; readonly high: number };

function apply(step: MonotoneStep, x: number): number {
  switch (step.op) {
    case 'add':
      return x + step.by;
    case 'minuend':
      return step.by - x;
    case 'multiply':
      return x * step.by;
    case 'divide':
      return x / step.by;
    case 'least':
      return Math.min(x, step.by);
    case 'most':
      return Math.max(x, step.by);
    case 'negate':
      return -x;
    case 'clamp':
      return x > step.high || step.low > step.high ? step.high : Math.max(x, step.low);
  }
}

const falls = (step: MonotoneStep): boolean =>
  step.op === 'negate' || step.op === 'minuend' || ((step.op === 'multiply' || step.op === 'divide') && step.by < 0);

/** Steps whose result is unknown where it is not finite. */
const isArithmetic = ({ op }: MonotoneStep): boolean =>
  op === 'add' || op === 'minuend' || op === 'multiply' || op === 'divide';

/**
 * The values of a variable for which the steps, one after the other, give a known result from `low` to `high`. Exact: the ends are found
 * among the float64s by bisection, which is right because rounding keeps order.
 */
export function preimage(variable: Variable, steps: readonly MonotoneStep[], low: number, high: number): Region {
  let region = intersect(variable.domain, withinLimits(variable, steps, low, high));
  steps.forEach((step, index) => {
    if (!isArithmetic(step)) return;
    const sofar = steps.slice(0, index + 1);
    region = intersect(region, withinLimits(variable, sofar, -Number.MAX_VALUE, Number.MAX_VALUE));
  });
  return region;
}

function withinLimits(variable: Variable, steps: readonly MonotoneStep[], low: number, high: number): Region {
  if (steps.length === 0) return interval(low, high, variable.grid);
  const value = (x: number): number => steps.reduce((at, step) => apply(step, at), x);
  const falling = steps.filter(falls).length % 2 === 1;
  const first = leastDouble(falling ? (x) => value(x) <= high : (x) => value(x) >= low);
  const last = greatestDouble(falling ? (x) => value(x) >= low : (x) => value(x) <= high);
  if (first === undefined || last === undefined) return interval(1, 0, variable.grid);
  return interval(first, last, variable.grid);
}
