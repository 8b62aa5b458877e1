import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tokenizeChat } from '../../packages/simulator/src/index.ts';
import { replayEndpoints, slowGpu } from './fleet.ts';
import { policyText } from './gateway-process.ts';
import { planLoad } from './load-plan.ts';
import { failures, formatReport, makeReport } from './report.ts';
import { parseTrace, readAzureConversation, readTrace } from './trace.ts';
import { runVirtual } from './virtual-run.ts';
import { chatBody } from './workload.ts';

const trace = readAzureConversation();
const endpoints = replayEndpoints();
const names = endpoints.map(({ name }) => name);

test('the trace is the first 500 conversation requests, in order, from time 0', () => {
  expect(trace).toHaveLength(500);
  expect(trace[0]).toEqual({ index: 0, atMs: 0, promptTokens: 374, outputTokens: 44 });
  // The times are read as floating-point milliseconds since 1970, good to a fraction of a microsecond.
  expect(trace[1]?.atMs).toBeCloseTo(4314.579, 2);
  expect(trace.every(({ atMs }, i) => i === 0 || atMs >= (trace[i - 1]?.atMs ?? 0))).toBe(true);
});

test.each([
  ['another header', 'a,b,c\n1,2,3'],
  ['a bad stamp', 'TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,2,3'],
  ['no tokens', 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,0,3'],
  [
    'time going back',
    'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,1,3\n2023-11-16 18:15:46.67,1,3',
  ],
])('a trace with %s is refused', (_what, text) => {
  expect(() => parseTrace(text)).toThrow(/trace/);
});

test('of another trace a part can be taken, and its times begin at 0', () => {
  const file = fileURLToPath(new URL('data/azure-conv-2023-500.csv', import.meta.url));
  const part = readTrace(file, 100, 50);
  expect(part.map(({ promptTokens }) => promptTokens)).toEqual(
    trace.slice(100, 150).map(({ promptTokens }) => promptTokens),
  );
  expect(part[0]).toMatchObject({ index: 0, atMs: 0 });
  expect(part[49]?.atMs).toBeCloseTo((trace[149]?.atMs ?? 0) - (trace[100]?.atMs ?? 0), 2);
  expect(() => readTrace(file, 500, 1)).toThrow(/500 requests/);
});

test('prompts have the length of the trace by the simulated tokeniser, and no two share a cache block', () => {
  const starts = new Set<string>();
  for (const request of trace) {
    const body = JSON.parse(chatBody(request, 'm')) as {
      messages: [{ role: string; content: string }];
      max_tokens: number;
    };
    const tokens = tokenizeChat([{ role: 'user', text: body.messages[0].content }], '');
    expect(tokens).toHaveLength(Math.max(4, request.promptTokens));
    expect(body.max_tokens).toBe(request.outputTokens);
    starts.add(tokens.slice(0, 16).join());
  }
  expect(starts.size).toBe(trace.length);
});

test('the load plan puts a quarter of the arrivals at the asked share of what a slow engine can end', () => {
  const load = planLoad(endpoints, trace, 0.8);
  expect(load.rate / 4 / load.slowCapacity).toBeCloseTo(0.8, 10);
  expect(load.fastCapacity).toBeGreaterThan(1.5 * load.slowCapacity);
  const spanS = (load.stretch * (trace.at(-1)?.atMs ?? 0)) / 1000;
  expect((trace.length - 1) / spanS).toBeCloseTo(load.rate, 6);
});

test('the policy of a run names each engine with its GPU and batch', () => {
  const text = policyText(
    'least_latency',
    endpoints.map((endpoint, i) => ({ ...endpoint, url: `http://127.0.0.1:${9000 + i}` })),
    { listen: 1, admin: 2 },
  );
  for (const [i, { name, gpu }] of endpoints.entries())
    expect(text).toContain(
      `name: "${name}", url: "http://127.0.0.1:${9000 + i}", gpu: "${gpu}", gpu_count: 4, max_batch: 16`,
    );
  expect(text).toContain('by least_latency');
});

const policies = ['round_robin', 'least_tokens', 'least_latency'];

test('in virtual time, token-aware and latency-aware choice beat the rotation on mean and p90 with margin', () => {
  const load = planLoad(endpoints, trace, 0.8);
  const runs = policies.map((policy) => runVirtual(policy, trace, { endpoints, ...load }));
  const report = makeReport(runs, { load, compression: 1, virtual: true, endpoints: names, requests: trace.length });
  process.stdout.write(`${formatReport(report)}\n`);
  for (const { served } of report.policies) expect(served.reduce((sum, count) => sum + count, 0)).toBe(trace.length);
  expect(report.policies[0]?.served).toEqual([125, 125, 125, 125]);
  expect(report.policies.flatMap(({ rows }) => rows.filter(({ holds }) => holds !== undefined))).toHaveLength(8);
  expect(failures(report)).toEqual([]);
});

test('profiles that are all off by one factor do not starve endpoints that lately had no answer', () => {
  const load = planLoad(endpoints, trace, 0.6);
  const runs = ['round_robin', 'least_latency'].map((policy) =>
    runVirtual(policy, trace, { endpoints, ...load, compression: 12 }),
  );
  const report = makeReport(runs, { load, compression: 12, virtual: true, endpoints: names, requests: trace.length });
  expect(failures(report)).toEqual([]);
});

test('a virtual run repeats to the millisecond', () => {
  const some = trace.slice(0, 150);
  const load = planLoad(endpoints, some, 0.8);
  expect(runVirtual('least_latency', some, { endpoints, ...load })).toEqual(
    runVirtual('least_latency', some, { endpoints, ...load }),
  );
});

test('a policy that is no better than the rotation fails its claims', () => {
  const load = planLoad(endpoints, trace, 0.8);
  const rotation = runVirtual('round_robin', trace, { endpoints, ...load });
  const report = makeReport([rotation, { ...rotation, policy: 'least_tokens' }], {
    load,
    compression: 1,
    virtual: true,
    endpoints: names,
    requests: trace.length,
  });
  expect(failures(report)).toHaveLength(4);
});

test('the slow engines are those of the slow GPU', () => {
  expect(endpoints.filter(({ gpu }) => gpu === slowGpu)).toHaveLength(2);
});
