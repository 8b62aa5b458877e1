import type { BenchReport } from '../report.ts';

/** Something to measure: `run(n)` does the work `n` times and returns a number that depends on all of it. */
export interface Subject {
  readonly name: string;
  readonly run: (times: number) => number;
}

export interface BenchCase {
  /** Name of a suite with a figure `ns`. */
  readonly suite: string;
  readonly case: string;
  readonly subjects: readonly Subject[];
}

export interface MeasureOptions {
  readonly rounds: number;
  /** How often each subject runs in a round; its figure is the median of these. */
  readonly slices: number;
  /** CPU time of one such run, about. */
  readonly sliceMs: number;
}

/**
 * Gives one sample per subject and round: CPU nanoseconds (user and system, of the whole process) of one call. Subjects run in turns,
 * slice by slice, beginning with another each time, so that what disturbs the machine disturbs all. Throws if subjects that are to do
 * the same work come to different results.
 */
export function sampleCase(report: BenchReport, one: BenchCase, options: MeasureOptions): void {
  const { subjects } = one;
  const results = new Set(subjects.map((subject) => subject.run(50)));
  if (results.size !== 1) throw new Error(`${one.case}: the subjects differ: ${[...results].join(', ')}`);
  const counts = subjects.map((subject) => calibrate(subject, options.sliceMs));
  for (let round = 0; round < options.rounds; round++) {
    const slices = subjects.map((): number[] => []);
    for (let turn = 0; turn < options.slices * subjects.length; turn++) {
      const lap = Math.floor(turn / subjects.length);
      const index = (turn + lap + round) % subjects.length;
      const subject = subjects[index];
      const count = counts[index];
      if (subject !== undefined && count !== undefined) slices[index]?.push(cpuNs(subject, count) / count);
    }
    subjects.forEach((subject, index) => {
      const sorted = (slices[index] ?? []).toSorted((a, b) => a - b);
      const ns = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
      report.sample({ suite: one.suite, case: one.case, subject: subject.name, round, figures: { ns } });
    });
  }
}

/** Warms the subject up by calls, and finds how many fill a slice. */
function calibrate(subject: Subject, sliceMs: number): number {
  let times = 1;
  let tookMs = cpuNs(subject, times) / 1e6;
  while (tookMs < 10 * sliceMs) {
    times *= 2;
    tookMs = cpuNs(subject, times) / 1e6;
  }
  return Math.max(1, Math.round((times * sliceMs) / tookMs));
}

function cpuNs(subject: Subject, times: number): number {
  const before = process.cpuUsage();
  const result = subject.run(times);
  const { user, system } = process.cpuUsage(before);
  if (Number.isNaN(result)) throw new Error(`${subject.name} gave no result`);
  return (user + system) * 1000;
}
