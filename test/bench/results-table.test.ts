import { expect, test } from 'vitest';
import type { Sample, Suite } from './report.ts';
import { tabulate, toMarkdown, toText } from './results-table.ts';

const suite: Suite = {
  name: 's',
  title: 'S',
  figures: [{ key: 'us', label: 'µs', digits: 1 }],
  compared: 'us',
  baselines: ['bare', 'absent'],
  goals: [
    { subject: 'ours', figure: 'us', atMost: 1.5, times: 'bare' },
    { subject: 'ours', figure: 'us', atMost: 25 },
  ],
};

function sample(subject: string, round: number, us: number, invalid?: string): Sample {
  return { suite: 's', case: 'c', subject, round, figures: { us }, ...(invalid === undefined ? {} : { invalid }) };
}

const samples = [
  sample('bare', 0, 10),
  sample('ours', 0, 15),
  sample('ours', 1, 36),
  sample('bare', 1, 20),
  sample('bare', 2, 10),
  sample('ours', 2, 20),
];

test('a row shows the median, the spread, and ratios taken within rounds', () => {
  const { head, rows } = tabulate(suite, samples);
  expect(head).toEqual(['case', 'subject', 'rounds', 'µs', '÷ bare']);
  expect(rows).toEqual([
    ['c', 'bare', '3', '10.0 [10.0–20.0]', '1'],
    ['c', 'ours', '3', '20.0 [15.0–36.0]', '1.80 [1.50–2.00]'],
  ]);
});

test('a goal says whether it is met, or by how much it is missed', () => {
  expect(tabulate(suite, samples).goals).toEqual([
    'c, ours: µs at most 1.5 × bare: 1.80 [1.50–2.00], **missed by 20 %**',
    'c, ours: µs at most 25: 20.0 [15.0–36.0], met',
  ]);
});

test('an invalid sample is left out of the figures and told', () => {
  const table = tabulate(suite, [...samples, sample('ours', 3, 1, '7 errors')]);
  expect(table.rows[1]?.[3]).toBe('20.0 [15.0–36.0]');
  expect(table.invalid).toEqual(['c, ours, round 4: 7 errors']);
  expect(toText(table)).toContain('left out: c, ours, round 4: 7 errors');
  expect(toMarkdown(table)).toContain('- c, ours, round 4: 7 errors');
});

test('an even number of rounds has the middle of the two middle values', () => {
  expect(tabulate(suite, samples.slice(0, 4)).rows[0]?.[3]).toBe('15.0 [10.0–20.0]');
});

test('a goal without a sample of its subject is not called met', () => {
  expect(tabulate(suite, [sample('bare', 0, 10)]).goals).toEqual([]);
});
