import { expect, test } from 'vitest';
import { readRequest } from './read-request.ts';
import { EMPTY_STATE } from './state.ts';

const BODY = '{ "model": "m", "messages": [{ "role": "user", "content": "hello" }] }';
const read = (part: Partial<typeof EMPTY_STATE>): ReturnType<typeof readRequest> =>
  readRequest({ ...EMPTY_STATE, body: BODY, ...part });

test('a request is read as the gateway reads it: body, headers in lower case, tenant, time and deadline', () => {
  const found = read({
    headers: 'X-Session-Id: s-1\n\n x-slo:interactive \nx-slo: batch\nX-Request-Deadline-Ms: 1500',
    tenant: 'acme',
    time: '2026-03-01T08:30',
  });
  expect(found).toMatchObject({
    kind: 'request',
    deadlineInMs: 1500,
    epochMs: Date.UTC(2026, 2, 1, 8, 30),
    request: { tenant: 'acme', headers: { 'x-session-id': 's-1', 'x-slo': 'interactive, batch' } },
  });
  expect(found.kind === 'request' && found.request.parsed.model).toBe('m');
});

test('without a deadline there is none', () => {
  expect(read({})).toMatchObject({ deadlineInMs: Number.POSITIVE_INFINITY });
  expect(read({ headers: 'x-request-deadline-ms: soon' })).toMatchObject({ deadlineInMs: Number.POSITIVE_INFINITY });
});

test.each([
  [
    '{ "model": }',
    { field: 'body', offset: 11, message: /^the body is not JSON: line 1, column 12: expected a value$/ },
  ],
  ['{ "model": "m"', { field: 'body', offset: 14, message: /^the body is not JSON: / }],
  ['[]', { field: 'body', message: /no JSON object/ }],
  ['{ "messages": [] }', { field: 'body', message: /model/ }],
])('a body that is wrong is said to be, and where: %s', (body, problem) => {
  const found = read({ body });
  expect(found).toMatchObject({
    kind: 'problem',
    problem: { ...problem, message: expect.stringMatching(problem.message) },
  });
});

test('headers and a time that are wrong are said to be', () => {
  expect(read({ headers: 'x-a: 1\nno header' })).toMatchObject({
    problem: { field: 'headers', line: 2, message: expect.stringMatching(/^line 2 is no header/) },
  });
  expect(read({ time: 'noon' })).toMatchObject({ problem: { field: 'time' } });
});
