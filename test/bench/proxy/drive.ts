/** Runs the load generator on a subject and reads what the subject used meanwhile. */
import { cpuTimeUs, linesOf, machineTime, startOnCore } from './processes.ts';
import type { Child } from './processes.ts';
import type { Programs } from './tools.ts';
import type { Work } from './work.ts';

/** Where the subject runs, and where all else does. */
export const SUBJECT_CORE = 0;
export const DRIVER_CORE = 1;

/** What load.c prints. Times in µs. */
interface LoadResult {
  readonly seconds: number;
  /** CPU time of the load generator. */
  readonly cpuUs: number;
  readonly replies: number;
  readonly events: number;
  readonly errors: number;
  readonly not200: number;
  readonly open: number;
  readonly p50: number;
  readonly p99: number;
  readonly eventDelayP50: number;
  readonly eventDelayP99: number;
}

export interface Measured {
  readonly result: LoadResult;
  /** CPU time of the subject while the load was measured. */
  readonly subjectCpuUs: number;
  /** Share of the machine's time that neither subject, mock nor load used, and that the host took away. */
  readonly othersPercent: number;
}

/** A started subject, its mock, and how to load it. */
export interface Run {
  readonly programs: Programs;
  readonly niceness: number;
  /** Whether mock and load poll and never sleep. */
  readonly staysAwake: boolean;
  readonly bodies: Readonly<Record<'json' | 'sse' | 'hold', string>>;
  readonly mock: Child;
  readonly subject: Child;
  readonly port: number;
  readonly headers: readonly string[];
  readonly work: Work;
  /** Open streams in the memory mode. */
  readonly streams: number;
}

type LoadFlags = readonly (string | number)[];

/** Runs the load generator; `during` runs while it measures. */
export async function drive(
  run: Run,
  body: keyof Run['bodies'],
  flags: LoadFlags,
  during?: () => Promise<void>,
): Promise<Measured> {
  const headers = run.headers.flatMap((line) => ['-H', line]);
  const awake = run.staysAwake ? ['-y'] : [];
  const args = ['-p', run.port, '-f', run.bodies[body], ...headers, ...awake, ...flags].map(String);
  const load = startOnCore(DRIVER_CORE, { file: run.programs.load, args }, { niceness: run.niceness });
  const watched = run.subject === run.mock ? [run.mock.pid] : [run.subject.pid, run.mock.pid];
  const reading = (): { cpu: number[]; machine: ReturnType<typeof machineTime> } => ({
    cpu: watched.map(cpuTimeUs),
    machine: machineTime(),
  });
  let from = reading();
  let to = from;
  let text = '';
  let waiting: Promise<void> | undefined;
  for await (const line of linesOf(load)) {
    if (line === 'measuring') {
      from = reading();
      waiting = during?.();
    } else {
      to = reading();
      text = line;
    }
  }
  await waiting;
  const code = await load.exited;
  if (code !== 0 || text === '') {
    throw new Error(`the load generator ended with ${code}: ${load.errorText()}; subject: ${run.subject.errorText()}`);
  }
  const spent = to.cpu.map((us, index) => us - (from.cpu[index] ?? 0));
  const result = JSON.parse(text) as LoadResult;
  const ours = spent.reduce((sum, us) => sum + us, result.cpuUs);
  const total = to.machine.totalUs - from.machine.totalUs;
  const others = to.machine.busyUs - from.machine.busyUs - ours + to.machine.stolenUs - from.machine.stolenUs;
  return {
    result,
    subjectCpuUs: spent[0] ?? Number.NaN,
    othersPercent: total > 0 ? Math.max(0, (100 * others) / total) : 0,
  };
}

/** Why the figures do not count, if they do not. */
export function describeFaults({ result }: Measured): string | undefined {
  if (result.errors > 0) return `${result.errors} errors in ${result.replies} replies`;
  if (result.not200 > 0) return `${result.not200} replies of ${result.replies} were not 200`;
  return undefined;
}
