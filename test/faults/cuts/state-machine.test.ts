import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SseReader } from '../../../packages/openai-wire/src/index.ts';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
import { memoryRelay } from '../support/memory-relay.fixture.ts';
import {
  expected,
  offsets,
  recordings,
  seen,
  SHORT,
  type Death,
  type Recording,
} from '../support/recordings.fixture.ts';
import { streaming } from '../support/wire.fixture.ts';

const full = process.env['SIGNALBOX_FAULTS'] === 'full';
const deaths: readonly Death[] = ['broken', 'closed', 'framed'];
const body = streaming({ prompt: 'x' });
const noRetry = oneTier('', 'default to tier "tier" with retry 0');

test('there are recordings, and the plain reading of them finds ends, errors and reasons to finish', () => {
  expect(recordings.length).toBeGreaterThanOrEqual(14);
  const kinds = new Set(recordings.flatMap(({ events }) => events.map(({ kind }) => kind)));
  expect([...kinds].toSorted()).toEqual(['comment', 'done', 'error', 'output']);
  for (const { name, events, bytes } of recordings) expect([name, events.at(-1)?.end]).toEqual([name, bytes.length]);
});

/** What the reader alone gives out of a stream that is cut, in the words of `expected`. */
function readerSays({ bytes, events }: Recording, sent: number, death: Death): string {
  const reader = new SseReader({ dialect: 'chat' });
  let given = reader.push(bytes.subarray(0, sent)).length;
  const committed = reader.events > 0 || reader.done;
  const rest = death === 'broken' ? 0 : reader.end().length;
  const complete = reader.isComplete(death === 'framed');
  // An error event that no blank line closed is given out with the rest, and closed by the relay.
  if (reader.error !== undefined && !reader.torn)
    return committed ? `failed:${events.find(({ end }) => end >= given + rest)?.end}` : 'refused';
  if (complete) given += rest;
  if (!committed && !complete) return 'refused';
  return complete ? `whole:${given}` : `broken:${given}`;
}

test('every recording, cut at every byte, in every way: the reader gives out whole events and knows whether it has seen the end', () => {
  for (const recording of recordings) {
    for (const death of deaths) {
      for (let sent = 0; sent <= recording.bytes.length; sent++) {
        const want = expected(recording, sent, death);
        const got = readerSays(recording, sent, death);
        if (got !== want) expect([recording.name, death, sent, got]).toEqual([recording.name, death, sent, want]);
      }
    }
  }
});

describe.each(deaths)('an upstream that ends %s', (death) => {
  test.each(recordings)(
    `$name: cut at ${full ? 'every byte' : 'a sample of bytes and all borders'}, a client has the exact bytes and a proper end, or an error`,
    async (recording) => {
      const bed = await faultBed({ policy: noRetry });
      const relay = memoryRelay(bed.core.router, bed.time);
      const step = full || SHORT.includes(recording.name) ? 1 : 211;
      for (const sent of offsets(recording, step, full ? 3 : 1)) {
        const answer = await relay.answer(recording.path, body, [recording.bytes.subarray(0, sent)], death);
        const got = seen(answer, recording);
        const want = expected(recording, sent, death);
        if (got !== want) expect([recording.name, sent, got]).toEqual([recording.name, sent, want]);
      }
      expect(relay.left).toEqual({ live: 0, timers: 0 });
      await bed.quiet();
    },
  );

  test('cut anywhere and chunked at random, the client sees the same as of one piece', async () => {
    const bed = await faultBed({ policy: noRetry });
    const relay = memoryRelay(bed.core.router, bed.time);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...recordings),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 }),
        async (recording, part, cuts) => {
          const sent = Math.round(part * recording.bytes.length);
          const borders = [0, ...cuts.map((cut) => Math.round(cut * sent)).toSorted((a, b) => a - b), sent];
          const pieces = borders.slice(1).map((end, i) => recording.bytes.subarray(borders[i], end));
          expect(seen(await relay.answer(recording.path, body, pieces, death), recording)).toBe(
            expected(recording, sent, death),
          );
        },
      ),
      { numRuns: full ? 2_000 : 150 },
    );
    expect(relay.left).toEqual({ live: 0, timers: 0 });
  });
});
