import { expect, test } from 'vitest';
import { runSoak, type SoakResult } from './soak-run.ts';
import { judge } from './verdict.ts';

/*
 * The soak of `npm run soak`, cut short: what it says of failures, versions, the ledger and descriptors holds for any length. The heap is
 * given room, since caches fill and code is compiled in the first minutes; a leak of a version or a request is far above it.
 */
function expectSound(result: SoakResult): void {
  const warmUpSeconds = (result.samples.at(-1)?.seconds ?? 0) / 3;
  const findings = judge(result, { warmUpSeconds, heapShare: 0.15, rssSlope: undefined, descriptors: 2 });
  process.stdout.write(`${findings.map(({ what }) => what).join('\n')}\n`);
  expect(findings.filter(({ met }) => !met).map(({ what }) => what)).toEqual([]);
}

test('under load, with a reload each second, nothing is lost, nothing is left over and nothing grows', async () => {
  const result = await runSoak({
    rate: 40,
    heldStreams: 20,
    seconds: 25,
    edits: 0,
    editEveryMs: 1000,
    sampleEveryMs: 1000,
    fromSource: true,
  });
  expect(result.load.whole).toBeGreaterThan(300);
  expect(result.load.left).toBeGreaterThan(10);
  expect(result.editsRefused).toBeGreaterThan(0);
  expectSound(result);
});

test('a hundred reloads under two hundred live streams: each request is decided by one version, and no stream is cut', async () => {
  const result = await runSoak({
    rate: 20,
    heldStreams: 200,
    seconds: 0,
    edits: 100,
    editEveryMs: 0,
    sampleEveryMs: 1000,
    fromSource: true,
  });
  expect(result.editsMade).toBeGreaterThanOrEqual(100);
  expect(result.held.whole).toBeGreaterThanOrEqual(200);
  expect(Object.keys(result.load.byVersion).length).toBeGreaterThan(20);
  expectSound(result);
});
