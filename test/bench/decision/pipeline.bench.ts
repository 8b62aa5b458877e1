import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BenchPart, Suite } from '../report.ts';

const SIZES = [8, 64, 1000] as const;
/** One worker keeps the fleet to itself; several share it, and pay for atomic counters. */
const MEMORIES = [
  { suffix: '', shared: false },
  { suffix: ', shared memory', shared: true },
] as const;
const BY_HAND = 'written by hand';
const PLAIN = 'token-aware';
const AFFINITY = 'with affinity';
const SUBJECTS: readonly PipelineSubject[] = [BY_HAND, PLAIN, AFFINITY];
export type PipelineSubject = 'written by hand' | 'token-aware' | 'with affinity';

/** What one process is to measure. */
export interface PipelineJob {
  readonly subject: PipelineSubject;
  /** Endpoints. */
  readonly size: number;
  readonly shared: boolean;
  /** Decisions in a batch, batches before any counts, and batches that count. */
  readonly batch: number;
  readonly warmUp: number;
  readonly turns: number;
}

/** CPU nanoseconds of one decision, and of its end with the record. */
export interface PipelineFigures {
  readonly ns: number;
  readonly endNs: number;
}

const suite: Suite = {
  name: 'decision-pipeline',
  title:
    'A whole decision with its lease: signals, five rules, `where`, token-aware score, shortlist, reserve. Memory of one worker, or shared by several',
  figures: [
    { key: 'ns', label: 'CPU ns / decision', digits: 0 },
    { key: 'endNs', label: 'CPU ns / end and record', digits: 0 },
  ],
  compared: 'ns',
  baselines: [BY_HAND],
  goals: [
    { subject: PLAIN, case: '8 endpoints', figure: 'ns', atMost: 500 },
    { subject: PLAIN, case: '64 endpoints', figure: 'ns', atMost: 3000 },
    { subject: PLAIN, case: '1000 endpoints', figure: 'ns', atMost: 20_000 },
    { subject: AFFINITY, case: '1000 endpoints', figure: 'ns', atMost: 60_000 },
    { subject: PLAIN, figure: 'ns', atMost: 3, times: BY_HAND },
  ],
};

/**
 * Decisions at 8, 64 and 1,000 endpoints, four requests in flight at each. Each subject runs in a process of its own, as a gateway has one
 * core and one policy: the engine specialises code for what it has seen, and several subjects in one process slow each other, the loop
 * written by hand too.
 */
export const run: BenchPart = (report, { rounds, smoke }) => {
  report.suite(suite);
  const effort = smoke ? { batch: 20, warmUp: 1, turns: 2 } : { batch: 500, warmUp: 60, turns: 30 };
  for (const { suffix, shared } of MEMORIES) {
    for (const size of SIZES) {
      const name = `${size} endpoints${suffix}`;
      report.progress(`${name}, whole decisions`);
      for (let round = 0; round < (smoke ? 1 : rounds); round++) {
        for (let turn = 0; turn < SUBJECTS.length; turn++) {
          const subject = SUBJECTS[(turn + round) % SUBJECTS.length] ?? BY_HAND;
          const { ns, endNs } = measure({ subject, size, shared, ...effort });
          report.sample({ suite: suite.name, case: name, subject, round, figures: { ns, endNs } });
        }
      }
    }
  }
};

function measure(job: PipelineJob): PipelineFigures {
  const script = fileURLToPath(new URL('pipeline-subject.ts', import.meta.url));
  const printed = execFileSync(process.execPath, ['--conditions=@signalbox/source', script, JSON.stringify(job)], {
    encoding: 'utf8',
  });
  return JSON.parse(printed) as PipelineFigures;
}
