import { inputOf } from './inputs.ts';
import type { FuzzInput } from './inputs.ts';
import { minimise, tryText } from './properties.ts';
import type { FuzzFailure } from './properties.ts';

export interface FoundFailure {
  readonly input: FuzzInput;
  readonly failure: FuzzFailure;
  readonly smallest: string;
}

/** What a run did. */
export interface FuzzReport {
  readonly texts: number;
  readonly characters: number;
  readonly parsed: number;
  readonly compiled: number;
  /** The longest CPU time of one text for each 100 KB, texts below 100 KB counted as that. */
  readonly slowestMs: number;
  readonly byMaker: ReadonlyMap<string, number>;
  readonly failures: readonly FoundFailure[];
}

/** Tries the inputs of the seeds from `seed` on, until `goesOn` says no; `patience` multiplies the times allowed. */
export function runFuzz(seed: number, goesOn: (texts: number) => boolean, patience = 1): FuzzReport {
  const report = { texts: 0, characters: 0, parsed: 0, compiled: 0, slowestMs: 0 };
  const byMaker = new Map<string, number>();
  const failures: FoundFailure[] = [];
  for (let next = seed; goesOn(report.texts) && failures.length < 20; next += 1) {
    const input = inputOf(next);
    const { failure, parsed, compiled, cpuMs } = tryText(input.text, patience);
    report.texts += 1;
    report.characters += input.text.length;
    report.parsed += Number(parsed);
    report.compiled += Number(compiled);
    report.slowestMs = Math.max(report.slowestMs, cpuMs / Math.max(1, input.text.length / 100_000));
    byMaker.set(input.maker, (byMaker.get(input.maker) ?? 0) + 1);
    if (failure !== undefined)
      failures.push({
        input,
        failure,
        smallest: failure.kind === 'hang' ? input.text : minimise(input.text, failure.kind),
      });
  }
  return { ...report, byMaker, failures };
}

/** The report as lines of text. */
export function reportText(
  seed: number,
  { texts, characters, parsed, compiled, slowestMs, byMaker, failures }: FuzzReport,
): string {
  const makers = [...byMaker].map(([name, count]) => `${name} ${count}`).join(', ');
  return [
    `fuzz: seeds ${seed} to ${seed + texts - 1}: ${texts} texts, ${characters} characters (${makers})`,
    `  ${parsed} parse, ${compiled} compile and ran on both evaluators; slowest ${slowestMs.toFixed(0)} ms of CPU time for 100 KB`,
    `  ${failures.length} failures`,
    ...failures.map(
      ({ input, failure, smallest }) =>
        `  seed ${input.seed} (${input.maker}) ${failure.kind}: ${failure.what.slice(0, 1000)}\n    ${JSON.stringify(smallest.slice(0, 2000))}`,
    ),
    '',
  ].join('\n');
}
