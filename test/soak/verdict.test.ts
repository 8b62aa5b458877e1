import { expect, test } from 'vitest';
import { judge, type Bounds } from './verdict.ts';
import type { Sample, SoakResult } from './soak-run.ts';

const MIB = 1024 * 1024;
const bounds: Bounds = { warmUpSeconds: 60, heapShare: 0.05, rssSlope: MIB, descriptors: 2 };
const tally = { whole: 10, left: 1, faults: 0, byVersion: {}, faultTexts: [], events: 0 };

function sampleAt(minute: number, more: Partial<Sample> = {}): Sample {
  return {
    seconds: minute * 60,
    heapUsed: 50 * MIB,
    external: 0,
    rss: 120 * MIB,
    descriptors: 40,
    active: 3,
    inflight: 5,
    requests: 0,
    reloads: 0,
    ...more,
  };
}

function resultOf(at: (minute: number) => Partial<Sample>, more: Partial<SoakResult> = {}): SoakResult {
  return {
    samples: Array.from({ length: 31 }, (_, minute) => sampleAt(minute, at(minute))),
    load: tally,
    held: tally,
    idleBefore: sampleAt(0),
    idleAfter: sampleAt(31),
    editsMade: 3,
    editsRefused: 1,
    faults: [],
    ...more,
  };
}

const missed = (result: SoakResult): string[] =>
  judge(result, bounds)
    .filter(({ met }) => !met)
    .map(({ what }) => what.split(':')[0] ?? '');

test('what stays as it was meets every bound', () => {
  expect(missed(resultOf(() => ({})))).toEqual([]);
});

test('growth before the warm-up has ended does not count', () => {
  expect(missed(resultOf((minute) => (minute === 0 ? { heapUsed: MIB, rss: MIB } : {})))).toEqual([]);
});

test('a heap that gains six per cent is told', () => {
  expect(missed(resultOf((minute) => ({ heapUsed: (50 + minute * 0.15) * MIB })))).toEqual(['heap after collection']);
});

test('resident memory that gains more than a megabyte a minute is told', () => {
  expect(missed(resultOf((minute) => ({ rss: (120 + minute * 1.1) * MIB })))).toEqual(['resident memory']);
});

test('descriptors that stay open after the load are told', () => {
  expect(missed(resultOf(() => ({}), { idleAfter: sampleAt(31, { descriptors: 43 }) }))).toEqual(['file descriptors']);
});

test('every fault is told', () => {
  expect(missed(resultOf(() => ({}), { faults: ['edit 2 was not seen'] }))).toEqual([
    'requests',
    'edit 2 was not seen',
  ]);
});
