import { describe, expect, test } from 'vitest';
import { faultBed, oneTier, type FaultBed } from './support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, errorCode, event, opened, plain, streaming } from './support/wire.fixture.ts';

const asked = (bed: FaultBed): number => bed.upstreams.reduce((sum, { requests }) => sum + requests.length, 0);

describe('a header that a policy builds of what the caller wrote', () => {
  const policy = oneTier('', 'default to tier "tier" with header "x-user" user');

  test.each([
    ['a line break', 'ann\r\nx-evil: 1'],
    ['LF', 'ann\nx-evil: 1'],
    ['CR', 'ann\rx-evil: 1'],
    ['NUL', 'ann\u0000'],
    ['a character beyond Latin-1', '\u65e5\u672c'],
  ])('%s in it: the request is refused, nothing is sent, and no endpoint is blamed', async (_name, user) => {
    const bed = await faultBed({ policy });
    for (let i = 0; i < 6; i++) {
      const answer = await bed.run(bed.client().post(CHAT, chat({ user })).answer());
      expect([answer.status, errorCode(answer.body)]).toEqual([400, 'invalid_request']);
      expect(answer.body).not.toContain('evil');
    }
    expect(asked(bed)).toBe(0);
    expect(bed.core.endpoints()[0]).toMatchObject({ healthy: true, ejections: 0 });
  });

  test('a plain one is sent', async () => {
    const bed = await faultBed({ policy });
    bed.upstream.onRequest = () => plain(ANSWER);
    expect(
      (
        await bed.run(
          bed
            .client()
            .post(CHAT, chat({ user: 'ann' }))
            .answer(),
        )
      ).status,
    ).toBe(200);
    expect(bed.upstream.requests[0]?.headers['x-user']).toBe('ann');
  });
});

test('panic reaches past health alone: what `where` leaves out stays out, however many others are ejected', async () => {
  const bed = await faultBed({
    upstreams: 4,
    policy: (origins) =>
      `define tier "tier" { model: "m", endpoints: [${origins
        .map((url, i) => `{ url: "${url}", zone: "${i === 0 ? 'far' : 'near'}" }`)
        .join(', ')}], ejection: { max_share: 100% } }\ndefault to tier "tier" where zone == "near" with retry 0`,
  });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain({}, 500);
  for (let i = 0; i < 80; i++) await bed.run(bed.client().post(CHAT, chat()).answer());
  expect(bed.core.endpoints().map(({ healthy }) => healthy)).toEqual([true, false, false, false]);
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  const answer = await bed.run(bed.client().post(CHAT, chat()).answer());
  expect(answer.status).toBe(200);
  expect(answer.headers['x-signalbox-reason']).toContain('panic');
  expect(bed.upstream.requests).toHaveLength(0);
});

test('a deadline that passes while the loop is held up in a back-off leaves no further attempt', async () => {
  const bed = await faultBed({ upstreams: 2, seed: 3 });
  for (const upstream of bed.upstreams) upstream.onRequest = () => ['close'];
  const answer = bed.client().post(CHAT, chat(), ['x-request-deadline-ms: 200']).answer();
  await bed.until(() => asked(bed) === 1 && bed.core.status().leasesStarted === 2, 'the back-off');
  // Both the end of the back-off and the deadline are in the past when timers run again.
  bed.time.jump(5_000);
  expect((await bed.run(answer)).status).toBe(504);
  expect(asked(bed)).toBe(1);
});

describe('the text of an error event', () => {
  const secret = 'data: {"secret of the server":"';
  const told = (message: string, code: string): string =>
    `data: ${JSON.stringify({ error: { message, type: 'server_error', param: null, code } })}\n\n`;

  test.each([
    ['fin', 'The upstream disconnected before the answer was complete.', 'upstream_disconnected'],
    ['reset', 'The upstream disconnected before the answer was complete.', 'upstream_disconnected'],
    ['end', 'The upstream closed the stream before it was complete.', 'upstream_disconnected'],
    ['silence', 'The upstream sent nothing for too long.', 'upstream_timeout'],
    ['deadline', 'The answer took longer than the request may last.', 'upstream_timeout'],
  ])('is ours, and a half-sent event is not given out: %s', async (how, message, code) => {
    const bed = await faultBed();
    bed.upstream.onRequest = () => opened(event('a') + secret);
    const stream = bed.client().post(CHAT, streaming(), how === 'deadline' ? ['x-request-deadline-ms: 5000'] : []);
    await stream.until((text) => text.includes('"a"'));
    const socket = bed.upstream.requests[0]?.socket;
    if (how === 'fin') socket?.end();
    else if (how === 'reset') socket?.resetAndDestroy();
    else if (how === 'end') socket?.write('0\r\n\r\n');
    const end = await bed.run(stream.closed());
    expect(end?.complete).toBe(false);
    expect(end?.body.replaceAll(': keep-alive\n\n', '')).toBe(event('a') + told(message, code));
  });
});

test('what a stream had told of its usage counts, also where the client leaves', async () => {
  const bed = await faultBed();
  const told =
    'data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n';
  bed.upstream.onRequest = () => opened(told);
  const stream = bed.client().post(CHAT, streaming());
  await stream.until((text) => text.includes('"a"'));
  stream.destroy();
  await bed.until(() => bed.decisions.length === 1, 'the record');
  expect(bed.decisions[0]).toMatchObject({ status: 499, inputTokens: 7, outputTokens: 2 });
});
