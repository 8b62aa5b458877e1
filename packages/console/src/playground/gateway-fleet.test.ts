import { expect, test } from 'vitest';
import { readGatewayFleet } from './gateway-fleet.ts';

test('the live fleet is written in literals of the language; what is idle, usual or unknown is left out', () => {
  const idle = {
    state: 'ready',
    healthy: true,
    queuedTokens: 0,
    inflightRequests: 0,
    kvCacheUsed: null,
    defined: true,
  };
  expect(
    readGatewayFleet({
      endpoints: [
        { name: '8B/1', ...idle },
        { name: '8B/2', ...idle, queuedTokens: 9000, inflightRequests: 3, kvCacheUsed: 0.857 },
        { name: '70B/1', ...idle, state: 'draining', healthy: false },
        { name: 'old/1', ...idle, defined: false, queuedTokens: 5 },
      ],
    }),
  ).toEqual({
    '8B/2': { queued_tokens: '9000', inflight_requests: '3', kv_cache_used: '85.7%' },
    '70B/1': { state: '"draining"', healthy: 'false' },
  });
});

test.each([null, [], {}, { endpoints: 3 }, { endpoints: [null, {}, { name: 4 }] }])(
  'what is no report is an empty fleet: %j',
  (report) => {
    expect(readGatewayFleet(report)).toEqual({});
  },
);
