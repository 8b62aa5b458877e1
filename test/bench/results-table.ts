/** From samples to tables: medians with their spread, and ratios taken within rounds. */
import type { Goal, Sample, Suite } from './report.ts';

interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.filter(Number.isFinite).toSorted((one, other) => one - other);
  const [min] = sorted;
  const max = sorted.at(-1);
  if (min === undefined || max === undefined) return undefined;
  const middle = (sorted.length - 1) / 2;
  const median = ((sorted[Math.floor(middle)] ?? min) + (sorted[Math.ceil(middle)] ?? max)) / 2;
  return { median, min, max };
}

function format(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return '–';
  const [median, min, max] = [spread.median, spread.min, spread.max].map((value) => value.toFixed(digits));
  return min === max ? `${median}` : `${median} [${min}–${max}]`;
}

/** Values of a figure of `subject` ÷ that of `baseline`, one for each round that has both. */
function ratiosWithinRounds(samples: readonly Sample[], subject: string, baseline: string, figure: string): number[] {
  return samples
    .filter((sample) => sample.subject === subject)
    .map((sample) => {
      const other = samples.find(({ subject: name, round }) => name === baseline && round === sample.round);
      return (sample.figures[figure] ?? Number.NaN) / (other?.figures[figure] ?? Number.NaN);
    });
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** One line for each goal and case: what was wanted, what was found, and by how much a goal was missed. */
  readonly goals: readonly string[];
  /** Samples that did not count, and why. */
  readonly invalid: readonly string[];
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function describeGoal(goal: Goal, name: string, samples: readonly Sample[], suite: Suite): string | undefined {
  const own = samples.filter(({ subject }) => subject === goal.subject);
  const values =
    goal.times === undefined
      ? own.map(({ figures }) => figures[goal.figure] ?? Number.NaN)
      : ratiosWithinRounds(samples, goal.subject, goal.times, goal.figure);
  const found = spreadOf(values);
  if (found === undefined) return undefined;
  const figure = suite.figures.find(({ key }) => key === goal.figure);
  const digits = goal.times === undefined ? (figure?.digits ?? 2) : 2;
  const of = goal.times === undefined ? '' : ` × ${goal.times}`;
  const missed =
    found.median > goal.atMost ? `**missed by ${((found.median / goal.atMost - 1) * 100).toFixed(0)} %**` : 'met';
  return `${name}, ${goal.subject}: ${figure?.label ?? goal.figure} at most ${goal.atMost}${of}: ${format(found, digits)}, ${missed}`;
}

/** The table of a suite. Cases and subjects stand in the order in which `samples` first name them. */
export function tabulate(suite: Suite, samples: readonly Sample[]): Table {
  const valid = samples.filter(({ invalid }) => invalid === undefined);
  const baselines = suite.baselines.filter((name) => valid.some(({ subject }) => subject === name));
  const head = [
    'case',
    'subject',
    'rounds',
    ...suite.figures.map(({ label }) => label),
    ...baselines.map((name) => `÷ ${name}`),
  ];
  const rows: string[][] = [];
  const goals: string[] = [];
  for (const name of unique(valid.map((sample) => sample.case))) {
    const inCase = valid.filter((sample) => sample.case === name);
    for (const subject of unique(
      inCase.toSorted((one, other) => one.round - other.round).map((sample) => sample.subject),
    )) {
      const own = inCase.filter((sample) => sample.subject === subject);
      const figures = suite.figures.map(({ key, digits }) => {
        const values = own.map((sample) => sample.figures[key] ?? Number.NaN);
        return format(spreadOf(values), digits);
      });
      const ratios = baselines.map((baseline) =>
        baseline === subject ? '1' : format(spreadOf(ratiosWithinRounds(inCase, subject, baseline, suite.compared)), 2),
      );
      rows.push([name, subject, String(own.length), ...figures, ...ratios]);
    }
    for (const goal of suite.goals) {
      if (goal.case !== undefined && goal.case !== name) continue;
      const line = describeGoal(goal, name, inCase, suite);
      if (line !== undefined) goals.push(line);
    }
  }
  const invalid = samples
    .filter((sample) => sample.invalid !== undefined)
    .map((sample) => `${sample.case}, ${sample.subject}, round ${sample.round + 1}: ${sample.invalid}`);
  return { head, rows, goals, invalid };
}

/** As aligned columns, for a terminal. */
export function toText(table: Table): string {
  const lines = [table.head, ...table.rows];
  const widths = table.head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [
    ...text,
    ...table.goals.map((line) => `goal: ${line.replaceAll('**', '')}`),
    ...table.invalid.map((line) => `left out: ${line}`),
  ].join('\n');
}

export function toMarkdown(table: Table): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const separator = table.head.map((_, column) => (column < 2 ? '---' : '---:'));
  const lines = [row(table.head), row(separator), ...table.rows.map(row)];
  if (table.goals.length > 0) lines.push('', 'Goals:', ...table.goals.map((line) => `- ${line}`));
  if (table.invalid.length > 0) lines.push('', 'Left out:', ...table.invalid.map((line) => `- ${line}`));
  return lines.join('\n');
}
