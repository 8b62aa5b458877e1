/*
 * Run by audit-sink.test.ts in a process whose files cannot grow beyond 4 KiB, so that a write ends in the middle of a line, as on a disk that
 * fills up. Arguments: the file, and how many lines to add. A file that is nearly full is moved away.
 */
import { renameSync, statSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '@signalbox/plugin-api';
import { openAuditSink } from './audit-sink.ts';

const NEARLY_FULL = 4000;

const [file = '', count = '0'] = process.argv.slice(2);
let failures = 0;
let moved = 0;
const sink = await openAuditSink({ file, retryMs: 1, logger: { ...silentLogger, error: () => failures++ } });
for (let i = 0; i < Number(count); i++) sink.add(() => `${JSON.stringify({ i, text: 'x'.repeat(i % 50) })}\n`);
while (sink.written < Number(count)) {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > NEARLY_FULL)
    renameSync(file, `${file}.moved-${moved++}`);
  await turn();
}
await sink.close(1000);
process.stdout.write(`${sink.written} ${sink.dropped} ${moved} ${failures}\n`);
