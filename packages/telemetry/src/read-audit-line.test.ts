import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyRecord } from './any-record.fixture.ts';
import { auditLine } from './audit-line.ts';
import { readAuditLine } from './read-audit-line.ts';
import { unroutedRecord } from './unrouted-record.ts';

test('a line that is read back gives a record of the same line, to the byte', () => {
  fc.assert(
    fc.property(anyRecord, (given) => {
      // An empty code of a refusal is not told from one that is its first reason.
      const record = {
        ...given,
        timeMs: Math.floor(given.timeMs % 8e12) || 0,
        code: given.code || 'c',
        tier: given.tier || 't',
      };
      const line = auditLine({ ...record, endpoint: record.endpoint || 'e' }, 'all');
      const read = readAuditLine(line);
      expect(read).toMatchObject({ kind: 'record' });
      if (read.kind === 'record') expect(auditLine(read.record, 'all')).toBe(line);
    }),
  );
});

test('a short line tells the served tier and endpoint by the last attempt, and the code of a refusal by its reason', () => {
  const routed = readAuditLine(
    `{"v":1,"time":"2026-01-02T03:04:05.678Z","request_id":"r","seed":7,"policy":"p","verdict":"routed","reason":["matched"],"signals":{"complexity":72},"shortlist":[{"endpoint":"70B/1","score":1,"parts":{},"properties":{"gpu":null}}],"dropped":{},"keys":{"affinity":null,"split":null},"attempts":[{"tier":"70B","endpoint":"70B/1","outcome":"ok","status":200,"ms":1}],"status":200}`,
  );
  expect(routed).toMatchObject({
    record: { tier: '70B', endpoint: '70B/1', code: '', seed: 7, timeMs: 1767323045678 },
  });
  const refused = unroutedRecord(
    {
      requestId: 'r',
      traceId: '',
      tenant: '',
      path: '/',
      status: 401,
      code: 'invalid_api_key',
      durationMs: 1,
      timeMs: 5,
    },
    'p',
  );
  expect(readAuditLine(auditLine(refused, 'read'))).toMatchObject({
    record: { code: 'invalid_api_key', tier: '', seed: Number.NaN, reasons: ['invalid_api_key'] },
  });
});

test.for<[string, string]>([
  ['{"v":1,"time":"2026', 'it is not JSON'],
  ['[]', 'it is not an object'],
  ['{}', '`v` is missing'],
  ['{"v":2}', 'it is of version 2; this is a reader of version 1'],
  ['{"v":1,"time":"yesterday"}', '`time` is not a time'],
  ['{"v":1,"time":"2026-01-02T03:04:05.678Z"}', '`attempts` is missing'],
  ['{"v":1,"time":"2026-01-02T03:04:05.678Z","attempts":[{"tier":1}]}', '`attempts[0].tier` is not a text'],
])('%s: %s', ([line, problem]) => {
  expect(readAuditLine(line)).toEqual({ kind: 'problem', problem });
});
