import { median, slope } from './statistics.ts';
import type { Sample, SoakResult } from './soak-run.ts';

/** What a soak must keep to. */
export interface Bounds {
  /** Samples before this time, in seconds, do not count: caches fill, and code is compiled. */
  readonly warmUpSeconds: number;
  /** Growth of the heap from the first third of the samples that count to the last, as a share. */
  readonly heapShare: number;
  /** Bytes of resident memory a minute; undefined where the soak is too short to tell. */
  readonly rssSlope: number | undefined;
  /** File descriptors more than before the load, when all of it has ended. */
  readonly descriptors: number;
}

export interface Finding {
  readonly what: string;
  readonly met: boolean;
}

const MIB = 1024 * 1024;
const mib = (bytes: number): string => `${(bytes / MIB).toFixed(2)} MiB`;

/** Each bound with the figure that it was held against. */
export function judge(result: SoakResult, bounds: Bounds): readonly Finding[] {
  const counted = result.samples.filter(({ seconds }) => seconds >= bounds.warmUpSeconds);
  const third = Math.max(1, Math.floor(counted.length / 3));
  const early = counted.slice(0, third);
  const late = counted.slice(-third);
  const middle = (samples: readonly Sample[], key: keyof Sample): number =>
    median(samples.map((sample) => sample[key]));
  const perMinute = (key: keyof Sample): number => slope(counted.map((sample) => [sample.seconds / 60, sample[key]]));
  const growth = middle(late, 'heapUsed') / middle(early, 'heapUsed') - 1;
  const rssSlope = perMinute('rss');
  const moreDescriptors = result.idleAfter.descriptors - result.idleBefore.descriptors;
  const heap = [early, late].map((samples) => mib(middle(samples, 'heapUsed'))).join(' → ');
  const { load, held } = result;
  return [
    {
      what: `heap after collection: ${heap}, ${(growth * 100).toFixed(2)} % (bound ±${bounds.heapShare * 100} %), slope ${mib(perMinute('heapUsed'))}/min`,
      met: Math.abs(growth) <= bounds.heapShare,
    },
    {
      what: `resident memory: slope ${mib(rssSlope)}/min (${bounds.rssSlope === undefined ? 'too short for a bound' : `bound ${mib(bounds.rssSlope)}/min`})`,
      met: bounds.rssSlope === undefined || rssSlope < bounds.rssSlope,
    },
    {
      what:
        `file descriptors: ${result.idleBefore.descriptors} before the load, ${result.idleAfter.descriptors} after it; ` +
        `under it ${middle(early, 'descriptors')} → ${middle(late, 'descriptors')}`,
      met: moreDescriptors <= bounds.descriptors,
    },
    {
      what:
        `requests: ${load.whole + held.whole} whole, ${load.left + held.left} left by their clients, ${load.faults + held.faults} failed; ` +
        `${result.editsMade} edits of the policy, ${result.editsRefused} of them broken and refused`,
      met: result.faults.length === 0,
    },
    ...result.faults.map((what) => ({ what, met: false })),
  ];
}
