import type { ShadowComparison, Verdict } from '@signalbox/core';
import { expect, test } from 'vitest';
import { createShadowReport } from './shadow-report.ts';

const to = (rule: string, tier: string, endpoint = `${tier}/1`): Verdict => ({
  outcome: 'forward',
  rule,
  tier,
  endpoint,
  code: '',
});
const refused = (rule: string, code: string): Verdict => ({ outcome: 'refuse', rule, tier: '', endpoint: '', code });
const pair = (requestId: string, inForce: Verdict, shadow: Verdict): ShadowComparison => ({
  requestId,
  inForce,
  shadow,
  tookMs: 0.5,
});

test('agreement is counted by rule, tier and endpoint, and moves are listed with examples', () => {
  const report = createShadowReport(0.5);
  report.add(pair('a', to('hard', '70B'), to('hard', '70B')));
  report.add(pair('b', to('hard', '70B'), to('hard', '70B', '70B/2')));
  report.add(pair('c', to('hard', '70B'), to('default', '8B')));
  for (let i = 0; i < 10; i++) report.add(pair(`d${i}`, to('default', '8B'), refused('over quota', 'rejected')));
  report.add({ requestId: 'e', inForce: to('default', '8B'), error: 'boom', tookMs: 0.5 });
  expect(report.figures()).toEqual({
    sample: 0.5,
    byRule: { compared: 13, agreed: 2, share: 2 / 13 },
    byTier: { compared: 13, agreed: 2, share: 2 / 13 },
    byEndpoint: { compared: 13, agreed: 1, share: 1 / 13 },
    rules: [
      { rule: 'hard', compared: 3, agreed: 2, share: 2 / 3 },
      { rule: 'default', compared: 10, agreed: 0, share: 0 },
    ],
    moves: [
      {
        from: '"default" → tier "8B"',
        to: '"over quota" → refused: rejected',
        requests: 10,
        examples: ['d0', 'd1', 'd2', 'd3', 'd4'],
      },
      { from: '"hard" → tier "70B"', to: '"default" → tier "8B"', requests: 1, examples: ['c'] },
    ],
    otherMoves: 0,
    failed: 1,
    lastError: 'boom',
    tookMs: 7,
  });
});

test('nothing compared is no share, rather than one of 0 or 100 %', () => {
  expect(createShadowReport(1).figures().byTier).toEqual({ compared: 0, agreed: 0, share: null });
});

test('however many kinds of moves there are, a bounded number is listed and the rest counted', () => {
  const report = createShadowReport(1);
  for (let i = 0; i < 5000; i++) report.add(pair(`r${i}`, to(`rule ${i}`, 'A'), to('other', 'B')));
  const { moves, otherMoves, rules } = report.figures();
  expect([moves.length, otherMoves, rules.length]).toEqual([200, 4800, 1000]);
});
