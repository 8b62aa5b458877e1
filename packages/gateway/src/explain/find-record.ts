import { SignalboxError } from '@signalbox/plugin-api';
import type { DecisionRecord } from '@signalbox/telemetry';
import { auditLines } from '../replay/audit-lines.ts';

/** A record found in audit files, and how many more requests had the same id (ids come from clients). */
export interface FoundRecord {
  readonly record: DecisionRecord;
  readonly others: number;
}

/** The last record of a request id in audit files. Throws a SignalboxError where there is none. */
export async function findRecord(
  requestId: string,
  files: readonly string[],
  where: Parameters<typeof auditLines>[1],
): Promise<FoundRecord> {
  let found: DecisionRecord | undefined;
  let count = 0;
  let lines = 0;
  let malformed = 0;
  for await (const { record } of auditLines(files, where)) {
    lines++;
    if (record === undefined) malformed++;
    if (record?.requestId !== requestId) continue;
    found = record;
    count++;
  }
  if (found !== undefined) return { record: found, others: count - 1 };
  const unreadable = malformed === 0 ? '' : `, ${malformed} of which cannot be read`;
  throw new SignalboxError(
    `no request ${JSON.stringify(requestId)} is in ${files.join(', ')} (${lines} lines${unreadable}); the id is that of the answer's x-request-id`,
    { code: 'request_unknown', source: 'client' },
  );
}
