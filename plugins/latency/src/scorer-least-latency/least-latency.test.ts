import { candidates, fakeClock, requestView, setupContext } from '@signalbox/testkit';
import type { EndpointValues } from '@signalbox/testkit';
import { expect, test } from 'vitest';
import { leastLatency } from './index.ts';

/** An output token takes 20 ms with a batch of one, 1 ms more with each other; 8 fit. Two prompts of 1000 tokens wait: 200 ms. */
const queued: EndpointValues = {
  prefill_fixed: 0,
  prefill_per_token: 0.1,
  decode_a: 19,
  decode_b: 1,
  max_batch: 8,
  inflight_requests: 2,
  waiting_requests: 2,
  queued_tokens: 2000,
  inflight_tokens: 2200,
  decode_tokens: 200,
};
const slowIdle: EndpointValues = { prefill_fixed: 0, prefill_per_token: 0.1, decode_a: 24, decode_b: 1 };

function score(options: Readonly<Record<string, number>>, endpoints: readonly EndpointValues[]): readonly number[] {
  if (!('setup' in leastLatency)) throw new Error('expected a function');
  const scorer = leastLatency.setup(setupContext(leastLatency.options, { clock: fakeClock(), options }));
  const out = new Float64Array(endpoints.length);
  scorer.score(requestView({ prompt_tokens: 1000, output_tokens: 101 }), candidates(endpoints), out);
  return [...out];
}

test('the cost is the weighted wait, the prefill and the decoding', () => {
  expect(score({ wait_weight: 1 }, [queued])[0]).toBeCloseTo(0.2 + 0.1 + 100 * 0.022, 9);
  expect(score({}, [queued])[0]).toBeCloseTo(4 * 0.2 + 0.1 + 100 * 0.022, 9);
  expect(score({}, [slowIdle])[0]).toBeCloseTo(0.1 + 100 * 0.025, 9);
});

test('the plain sum joins the queue of a fast endpoint, and with the wait weighed an idle slow one is better', () => {
  const [alone = NaN, other = NaN] = score({ wait_weight: 1 }, [queued, slowIdle]);
  expect(alone).toBeLessThan(other);
  const [weighed = NaN, idle = NaN] = score({}, [queued, slowIdle]);
  expect(weighed).toBeGreaterThan(idle);
});
