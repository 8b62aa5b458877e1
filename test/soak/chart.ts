import type { Sample } from './soak-run.ts';

const WIDTH = 640;
const LANE = 90;
const LEFT = 60;
const MIB = 1024 * 1024;

interface Lane {
  readonly label: string;
  readonly value: (sample: Sample) => number;
}

const LANES: readonly Lane[] = [
  { label: 'heap after collection, MiB', value: ({ heapUsed }) => heapUsed / MIB },
  { label: 'resident memory, MiB', value: ({ rss }) => rss / MIB },
  { label: 'file descriptors', value: ({ descriptors }) => descriptors },
];

/** The samples of a soak as an SVG: a lane for each figure, each from zero, over minutes. */
export function soakChart(samples: readonly Sample[]): string {
  const lastSeconds = samples.at(-1)?.seconds ?? 1;
  const height = LANE * LANES.length + 30;
  const lanes = LANES.map((lane, index) => drawLane(lane, samples, lastSeconds, index * LANE));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
${lanes.join('\n')}
<text x="${WIDTH - 10}" y="${height - 10}" text-anchor="end">${(lastSeconds / 60).toFixed(0)} minutes</text>
</svg>
`;
}

function drawLane({ label, value }: Lane, samples: readonly Sample[], lastSeconds: number, top: number): string {
  const most = Math.max(1, ...samples.map(value));
  const bottom = top + LANE;
  const points = samples.map((sample) => {
    const x = LEFT + ((WIDTH - LEFT - 10) * sample.seconds) / lastSeconds;
    const y = bottom - ((LANE - 25) * value(sample)) / most;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return `<text x="${LEFT}" y="${top + 16}">${label}</text>
<text x="${LEFT - 6}" y="${top + 30}" text-anchor="end">${most.toFixed(0)}</text>
<text x="${LEFT - 6}" y="${bottom}" text-anchor="end">0</text>
<path d="M${LEFT},${bottom}H${WIDTH - 10}" stroke="#ccc"/>
<polyline fill="none" stroke="#1b5e9e" stroke-width="1.5" points="${points.join(' ')}"/>`;
}
