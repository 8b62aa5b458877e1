import { expect, test } from 'vitest';
import type { DecisionRecord } from './decision-record.ts';
import { RowRecord } from './row-record.ts';
import type { DecisionRow } from './row-record.ts';

const SIGNALS = [
  { name: 'tools', numeric: true, late: 0 },
  { name: 'user', numeric: false, late: 0 },
  { name: 'slow', numeric: true, late: 1 },
  { name: 'slower', numeric: false, late: 2 },
];
const PLACE = {
  parts: ['least_tokens', 'least_queue'],
  properties: [
    { name: 'role', numeric: false },
    { name: 'load', numeric: true },
  ],
};

/** Two places of five candidates; `slower` was read, `slow` was not. */
const ROW: DecisionRow = {
  signals: SIGNALS,
  place: PLACE,
  numbers: [
    [2, 1, -1, 5, 2],
    [0, 0, 3, 0, 1, 0],
    [1, -1, 255],
    [0, 7, 8],
    [4, Number.NaN],
    [0.5, 0.75, Number.NaN, 10],
    [0.25, 0.25, 1, Number.NaN],
  ].flat(),
  others: ['gold first', 'ab12', undefined, 'T/1', 'T', 'prefill', 'T/2', 'T', undefined],
};

const BEGINNING = {
  requestId: 'r-1',
  timeMs: 1,
  seed: 2,
  traceId: '',
  tenant: 't',
  model: 'm',
  path: '/v1/chat/completions',
  stream: true,
  policy: 'feedfacecafe',
  generation: 3,
  route: 'easy',
  reasons: ['matched'],
  queuedMs: 0,
  decideMs: 0.5,
  attempts: [],
};

const PARTS = {
  decided: { admission: 'gold first', step: 1, fallback: -1, candidates: 5 },
  signals: { tools: 4, user: 'ab12', slower: null },
  shortlist: [
    {
      endpoint: 'T/1',
      tier: 'T',
      score: 0.5,
      parts: { least_tokens: 0.75 },
      properties: { role: 'prefill', load: 10 },
    },
    {
      endpoint: 'T/2',
      tier: 'T',
      score: 0.25,
      parts: { least_tokens: 0.25, least_queue: 1 },
      properties: { role: null, load: null },
    },
  ],
  dropped: { unhealthy: 3, where: 1 },
  keys: { affinity: 'ffffffff000000ff', split: null },
};

test('the row of a record is read by name: unknown values are null, unknown parts and what was not read are left out', () => {
  const { decided, signals, shortlist, dropped, keys } = new RowRecord(ROW, BEGINNING);
  expect({ decided, signals, shortlist, dropped, keys }).toEqual(PARTS);
});

test('a key of the split stands in the record where there was a split', () => {
  const numbers = Array.from(ROW.numbers);
  numbers.splice(11, 6, 0, 1, 2, 1, 7, -2);
  expect(new RowRecord({ ...ROW, numbers }, BEGINNING).keys).toEqual({ affinity: null, split: '00000007fffffffe' });
});

test('as JSON it is a plain record with all of its fields, `shed` where it has it', () => {
  const record = new RowRecord(ROW, BEGINNING);
  record.status = 200;
  record.ttftMs = 84;
  const expected: DecisionRecord = {
    v: 1,
    ...BEGINNING,
    ...PARTS,
    verdict: 'refused',
    servedModel: '',
    tier: '',
    endpoint: '',
    status: 200,
    code: '',
    ttftMs: 84,
    durationMs: Number.NaN,
    inputTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
  };
  expect(record.toJSON()).toEqual(expected);
  expect(JSON.parse(JSON.stringify(record))).toEqual(JSON.parse(JSON.stringify(expected)));
  record.shed = { queue: 'q', class: 'low' };
  expect(record.toJSON()).toEqual({ ...expected, shed: { queue: 'q', class: 'low' } });
});
