/*
 * Run by audit-sink.test.ts in a process whose files cannot grow beyond a few kilobytes, so that a write ends in the middle of a line, as
 * on a disk that fills up. Arguments: the file, and how many lines to add. Whenever nothing more can be written, the file is moved away.
 */
import { renameSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '@signalbox/plugin-api';
import { openAuditSink } from './audit-sink.ts';

const [file = '', count = '0'] = process.argv.slice(2);
let full = false;
let moved = 0;
const sink = await openAuditSink({ file, retryMs: 1, logger: { ...silentLogger, error: () => (full = true) } });
for (let i = 0; i < Number(count); i++) sink.add(() => `${JSON.stringify({ i, text: 'x'.repeat(i % 50) })}\n`);
while (sink.written < Number(count)) {
  if (full) {
    full = false;
    renameSync(file, `${file}.moved-${moved++}`);
  }
  await turn();
}
await sink.close(1000);
process.stdout.write(`${sink.written} ${sink.dropped} ${moved}\n`);
