import { isIn, negate, allOf, someOf } from './formula.ts';
import type { Formula } from './formula.ts';
import { intersect, isSame } from './region.ts';
import type { Region } from './region.ts';
import { solve } from './solve.ts';
import type { Budget, Narrowed } from './solve.ts';
import type { Variable } from './variable.ts';

/** All that meets some statements, as boxes: in each, every variable that is named may take any value of its region. */
export interface Boxes {
  readonly boxes: readonly Narrowed[];
  /** Whether there is nothing beside the boxes. */
  readonly isWhole: boolean;
}

/** Describes what meets all statements by at most `most` boxes, each made as large as it can be without meeting what does not. */
export function coverByBoxes(statements: readonly Formula[], budget: Budget, most: number): Boxes {
  const whole = allOf(statements);
  const boxes: Narrowed[] = [];
  const outside: Formula[] = [];
  for (;;) {
    const answer = solve([whole, ...outside], { budget });
    if (answer.verdict !== 'satisfiable') return { boxes, isWhole: answer.verdict === 'unsatisfiable' };
    if (boxes.length === most) return { boxes, isWhole: false };
    const box = enlarge(answer.narrowed, whole);
    boxes.push(box);
    outside.push(negate(allOf(Array.from(box, ([variable, region]) => isIn(variable, region)))));
  }
}

/** Widens one variable after the other to all values for which the statement still holds with the others where they are. */
function enlarge(found: Narrowed, statement: Formula): Narrowed {
  const box = new Map(found);
  for (const [variable] of found) {
    const others = new Map(box);
    others.delete(variable);
    const rest = within(statement, others);
    if (rest.kind === 'true') box.delete(variable);
    else if (rest.kind === 'in' && rest.variable === variable) box.set(variable, rest.region);
  }
  return box;
}

/** What a statement comes to in a box: parts that the box settles are left out. */
function within(statement: Formula, box: ReadonlyMap<Variable, Region>): Formula {
  switch (statement.kind) {
    case 'in': {
      const region = box.get(statement.variable);
      if (region === undefined) return statement;
      const common = intersect(region, statement.region);
      return isSame(common, region)
        ? isIn(statement.variable, statement.variable.domain)
        : isIn(statement.variable, common);
    }
    case 'and':
      return allOf(statement.parts.map((part) => within(part, box)));
    case 'or':
      return someOf(statement.parts.map((part) => within(part, box)));
    default:
      return statement;
  }
}
