/** The contract between `npm run bench` and its parts: a part declares its suites, then gives samples. */

/** One column of a suite's table. Samples carry its value under `key`. */
interface Figure {
  readonly key: string;
  /** Heading of the column, with the unit: `CPU µs / request`. */
  readonly label: string;
  /** Decimals shown. */
  readonly digits: number;
}

/** A bar that one figure of one subject is held to: an absolute value, or a multiple of another subject's value in the same round. */
export interface Goal {
  readonly subject: string;
  /** Case of the suite; every case if absent. */
  readonly case?: string;
  readonly figure: string;
  readonly atMost: number;
  /** The subject whose value `atMost` multiplies; absolute, in the unit of the figure, if absent. */
  readonly times?: string;
}

/** A table: cases (rows grouped by, for example, the number of endpoints) × subjects (what is compared) × figures. */
export interface Suite {
  /** kebab-case, unique among all parts; names the block in docs/performance.md. */
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Key of the figure that is compared between subjects. */
  readonly compared: string;
  /** Subjects that the others are divided by, in order of columns. */
  readonly baselines: readonly string[];
  readonly goals: readonly Goal[];
}

/** The values of one subject in one round. Ratios are taken between samples of one suite, case and round, never across rounds. */
export interface Sample {
  readonly suite: string;
  readonly case: string;
  readonly subject: string;
  /** From 0. */
  readonly round: number;
  readonly figures: Readonly<Record<string, number>>;
  /** Why the sample does not count (errors, wrong answers); it is kept in the results, shown below the table and left out of it. */
  readonly invalid?: string;
}

/** Where a part sends what it finds. */
export interface BenchReport {
  /** Declares a suite; before its first sample. */
  suite(suite: Suite): void;
  sample(sample: Sample): void;
  /** One line for the person who waits. */
  progress(text: string): void;
}

export interface BenchOptions {
  /** Rounds wanted: every subject of a case runs once in each, in a rotated order. */
  readonly rounds: number;
  /** Only shows that everything runs: the least work that gives a figure. */
  readonly smoke: boolean;
}

/** What a `decision/*.bench.ts` exports under the name `run`. */
export type BenchPart = (report: BenchReport, options: BenchOptions) => void | Promise<void>;
