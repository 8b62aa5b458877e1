import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { ReplayReport } from '../replay/report.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const script = 'test/replay/replay.ts';

interface Ended {
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

function replay(...options: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--conditions=@signalbox/source', script, ...options],
      { cwd: root, maxBuffer: 64 * 2 ** 20, timeout: 580_000 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr }),
    );
  });
}

test('on the Azure trace, least_tokens and least_latency beat round_robin through the gateway, on mean and p90, in three pooled runs', async () => {
  const { code, stdout, stderr } = await replay('--json');
  if (stdout === '') throw new Error(stderr);
  const report = JSON.parse(stdout) as ReplayReport;
  expect(report.policies.map(({ policy }) => policy)).toEqual(['round_robin', 'least_tokens', 'least_latency']);
  for (const { policy, rows, served } of report.policies) {
    expect(served.reduce((sum, count) => sum + count, 0)).toBe(3 * report.requests);
    for (const { measure, figure, ms, ratio } of rows) {
      const against =
        ratio === undefined
          ? ''
          : `, ${ratio.ratio.toFixed(2)} of round robin's (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})`;
      process.stdout.write(`${policy} ${measure} ${figure}: ${ms.toFixed(0)} ms${against}\n`);
    }
  }
  const held = report.policies.flatMap(({ policy, rows }) =>
    rows.flatMap(({ measure, figure, holds }) => (holds === undefined ? [] : [{ policy, measure, figure, holds }])),
  );
  expect(held).toHaveLength(8);
  expect(held.filter(({ holds }) => !holds)).toEqual([]);
  expect(code).toBe(0);
});
