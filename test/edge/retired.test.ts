import { readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { BODY, post, startEdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';
import { answerOk, RecordingUpstream, type Responder } from './support/recording-upstream.ts';

/** Descriptors of this process, which holds both ends of each connection. */
const descriptors = (): number => readdirSync('/proc/self/fd').length;

test('a reload that takes an endpoint out lets its last request end, then closes every connection to it', async () => {
  const bed = await startEdgeBed();
  const gone = new RecordingUpstream();
  const port = await gone.listen();
  onTestFinished(async () => {
    await bed.stop();
    gone.close();
  });
  const with2 = `define tier "b" { model: "b", endpoints: ["http://127.0.0.1:${port}"] }\nroute when model == "b" to tier "b"`;
  await bed.reload({ statements: with2 });
  const ask = () => exchange(bed.port, post('', BODY.replace('"m"', '"b"')), { limitMs: 20_000 });
  const before = descriptors();

  const waiting: Parameters<Responder>[] = [];
  gone.respond = (...call) => waiting.push(call);
  const answers = Array.from({ length: 12 }, ask);
  await expect.poll(() => waiting.length, { timeout: 20_000 }).toBe(12);
  expect(gone.sockets.size).toBe(12);
  for (const call of waiting.slice(1)) answerOk(...call);
  await Promise.all(answers.slice(1));

  await bed.reload({});
  expect(bed.gateway.endpoints().map(({ tier, state }) => [tier, state])).toContainEqual(['b', 'draining']);
  const [last] = waiting;
  if (last === undefined) throw new Error('no request waits');
  answerOk(...last);
  expect((await answers[0])?.statuses).toEqual([200]);
  await expect.poll(() => gone.sockets.size, { timeout: 3_000 }).toBe(0);
  await expect.poll(descriptors, { timeout: 3_000 }).toBeLessThanOrEqual(before);
  expect(bed.gateway.endpoints().map(({ tier }) => tier)).toEqual(['a']);
  expect((await exchange(bed.port, post())).statuses).toEqual([200]);
});
