import type { Diagnostic, Span } from '@signalbox/policy';
import type { FleetState } from './state.ts';

/** The fleet as the language writes it: a file that imports the policy and states every value in one test. */
export interface FleetSource {
  readonly path: string;
  readonly text: string;
  /** The value that a span of the text lies in. */
  cellAt(span: Span): FleetCell | undefined;
}

export interface FleetCell {
  readonly endpoint: string;
  readonly property: string;
}

/** What is wrong with one value of the fleet. */
export interface CellProblem extends FleetCell {
  readonly code: string;
  readonly message: string;
  readonly help?: string;
}

export const POLICY_PATH = 'policy.route';
const FLEET_PATH = 'fleet.route';
/** The label of the test that holds the fleet: no policy can have it, since labels hold no line breaks. */
export const FLEET_TEST = 'the fleet of the playground\n';

/**
 * Writes the fleet as `given endpoint` clauses, so that the compiler reads its units, types and names as those of any test. Each value has
 * a line of its own.
 */
export function writeFleet(fleet: FleetState): FleetSource {
  const cells: (FleetCell & { readonly start: number; readonly end: number })[] = [];
  let text = `import ${JSON.stringify(`./${POLICY_PATH}`)}\ntest ${JSON.stringify(FLEET_TEST)} {\n`;
  for (const [endpoint, properties] of Object.entries(fleet)) {
    text += `  given endpoint ${JSON.stringify(endpoint)} {\n`;
    for (const [property, value] of Object.entries(properties)) {
      const start = text.length;
      text += `    ${property}: ${oneLine(value)},\n`;
      cells.push({ endpoint, property, start, end: text.length });
    }
    text += '  }\n';
  }
  text += '}\n';
  return {
    path: FLEET_PATH,
    text,
    cellAt: (span) =>
      span.file === FLEET_PATH ? cells.find(({ start, end }) => span.start >= start && span.start < end) : undefined,
  };
}

/** A value must not leave its line, nor hide the rest of it in a comment. */
function oneLine(value: string): string {
  return value.replaceAll(/[\r\n#{}]/g, ' ').trim();
}

/** The findings that lie in values, one for each value: the first. */
export function problemsOf(diagnostics: readonly Diagnostic[], source: FleetSource): readonly CellProblem[] {
  const problems = new Map<string, CellProblem>();
  for (const { severity, code, message, help, span } of diagnostics) {
    const cell = source.cellAt(span);
    if (severity !== 'error' || cell === undefined) continue;
    const id = JSON.stringify([cell.endpoint, cell.property]);
    if (problems.has(id)) continue;
    const { endpoint, property } = cell;
    problems.set(id, { endpoint, property, code, message, ...(help === undefined ? {} : { help }) });
  }
  return [...problems.values()];
}

/** The fleet without values that have a problem. */
export function withoutProblems(fleet: FleetState, problems: readonly FleetCell[]): FleetState {
  const bad = new Set(problems.map(({ endpoint, property }) => JSON.stringify([endpoint, property])));
  return Object.fromEntries(
    Object.entries(fleet).map(([endpoint, properties]) => [
      endpoint,
      Object.fromEntries(
        Object.entries(properties).filter(([property]) => !bad.has(JSON.stringify([endpoint, property]))),
      ),
    ]),
  );
}
