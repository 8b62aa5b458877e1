import type { AdmissionArguments } from '@signalbox/plugin-api';
import { candidates, requestView, setupContext } from '@signalbox/testkit';
import type { EndpointValues } from '@signalbox/testkit';
import { expect, test } from 'vitest';
import { sla } from './index.ts';

const nan = Number.NaN;

function holds(endpoints: readonly EndpointValues[], args: AdmissionArguments): boolean | undefined {
  return sla.setup(setupContext(undefined)).holds(requestView(), candidates(endpoints), args);
}

const slow = { predicted_ttft: 3, predicted_tpot: 0.01, predicted_latency: 4 };
const fast = { predicted_ttft: 0.2, predicted_tpot: 0.03, predicted_latency: 2 };

test('one endpoint that meets every stated objective is enough', () => {
  expect(holds([slow, fast], { slo: { ttft: 0.5, tpot: 0.04, latency: nan } })).toBe(true);
});

test('objectives met by different endpoints are not met', () => {
  expect(holds([slow, fast], { slo: { ttft: 0.5, tpot: 0.02, latency: nan } })).toBe(false);
});

test('a prediction equal to the objective misses it', () => {
  expect(holds([fast], { slo: { ttft: nan, tpot: nan, latency: 2 } })).toBe(false);
  expect(holds([fast], { slo: { ttft: nan, tpot: nan, latency: 2.001 } })).toBe(true);
});

test('an endpoint without predictions makes a miss unknown, and takes nothing from a hit', () => {
  const slo = { ttft: 0.5, tpot: nan, latency: nan };
  expect(holds([slow, {}], { slo })).toBe(undefined);
  expect(holds([{}, fast], { slo })).toBe(true);
});

test('a known miss of one objective needs no other prediction', () => {
  expect(holds([{ predicted_ttft: 3 }], { slo: { ttft: 0.5, tpot: 0.04, latency: nan } })).toBe(false);
});

test('a target without endpoints meets nothing; an slo without objectives asks for an endpoint only', () => {
  const empty = { ttft: nan, tpot: nan, latency: nan };
  expect(holds([], { slo: empty })).toBe(false);
  expect(holds([slow], { slo: empty })).toBe(true);
});
