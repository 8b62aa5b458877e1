import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectQuiet, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { startHaproxy, startNginx, type Peer } from './support/peer-proxies.ts';
import { exchange, type Exchanged } from './support/raw-exchange.ts';
import type { Recorded, RecordingUpstream } from './support/recording-upstream.ts';

/** Another seed or count finds other mutations: `SIGNALBOX_MUTATIONS=5000 SIGNALBOX_SEED=7`. */
const COUNT = Number(process.env['SIGNALBOX_MUTATIONS'] ?? 400);
const SEED = Number(process.env['SIGNALBOX_SEED'] ?? 1);

const folder = new URL('corpus/', import.meta.url);
const texts = (chosen: (file: string) => boolean): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.http') && !file.includes('pipelined') && chosen(file))
    .map((file) => readFileSync(new URL(file, folder)).toString('latin1'))
    .filter((text) => text.length < 2_000);
const clean = texts((file) => file.startsWith('200-'));
const foul = texts((file) => !file.startsWith('200-'));

/** What parsers disagree about. */
const SPICES = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  '\x0b',
  '\x0c',
  '\x7f',
  '\x80',
  '\xa0',
  ':',
  ';',
  ',',
  '"',
  '#',
  '?',
  '%0d%0a',
  '0',
  '-',
  '+',
  '_',
  '\\',
  'chunked',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding:\n chunked\r\n',
  'Content-Length: 0\r\n',
  'Content-Length: 57\r\n',
  'Host: evil\r\n',
  'HTTP/1.1',
  'HTTP/1.0',
  'http://evil',
  '0\r\n\r\n',
  '\r\n\r\n',
  'Connection: close\r\n',
  'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n',
];

/** mulberry32: numbers in [0, 1). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function mutated(random: () => number): string {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  let text = pick(random() < 0.75 ? clean : foul);
  const times = 1 + Math.floor(random() * 3);
  for (let i = 0; i < times; i++) {
    const at = Math.floor(random() * text.length);
    const taken = random() < 0.5 ? 0 : 1 + Math.floor(random() * 3);
    text = text.slice(0, at) + (random() < 0.8 ? pick(SPICES) : '') + text.slice(at + taken);
  }
  return text;
}

interface Verdict {
  readonly answer: Exchanged;
  readonly requests: readonly Recorded[];
  readonly garbage: string;
  readonly accepted: boolean;
}

async function judge(
  { port, upstream }: { readonly port: number; readonly upstream: RecordingUpstream },
  text: string,
  patience = 1,
): Promise<Verdict> {
  upstream.take();
  upstream.garbage = '';
  const answer = await exchange(port, text, { limitMs: 250 * patience, quietMs: 20 * patience });
  const requests = upstream.take();
  const accepted = requests.length > 0 || answer.statuses.some((status) => status < 400);
  return { answer, requests, garbage: upstream.garbage, accepted };
}

/** Requests that reached our upstream and neither of the peers'. */
function extraOf(ours: Verdict, a: Verdict, b: Verdict): string[] {
  const keyOf = ({ method, target, body }: Recorded): string => `${method} ${target} ${body}`;
  const known = new Set([...a.requests, ...b.requests].map(keyOf));
  return ours.requests.map(keyOf).filter((key) => !known.has(key));
}

let bed: EdgeBed;
let nginx: Peer;
let haproxy: Peer;
beforeAll(async () => {
  [bed, nginx, haproxy] = await Promise.all([startEdgeBed(), startNginx(), startHaproxy()]);
});
afterAll(() => Promise.all([bed.stop(), nginx.stop(), haproxy.stop()]));

it(`${COUNT} mutated requests: none is split, none ends the process, and none passes that both peers refuse`, async () => {
  const random = randomOf(SEED);
  const laxer: string[] = [];
  let passed = 0;
  let stricter = 0;
  for (let i = 0; i < COUNT; i++) {
    const text = mutated(random);
    let [ours, a, b] = await Promise.all([judge(bed, text), judge(nginx, text), judge(haproxy, text)]);
    if (extraOf(ours, a, b).length > 0)
      [ours, a, b] = await Promise.all([judge(bed, text, 6), judge(nginx, text, 6), judge(haproxy, text, 6)]);
    const seen = JSON.stringify(text);
    expect([seen, ours.garbage]).toEqual([seen, '']);
    // No more requests than the bytes can hold, and each framed by us, so that any parser reads it alike.
    const inbound = text.match(/HTTP\/1\.[01]/g)?.length ?? 0;
    expect([seen, ours.requests.length <= inbound]).toEqual([seen, true]);
    for (const { framing, head, method, target } of ours.requests) {
      expect([seen, framing, method]).toEqual([seen, 'length', 'POST']);
      expect(head.replaceAll('\r\n', '')).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      expect(target).toMatch(/^\/v1\/(?:chat\/completions|embeddings)(?:\?[!-~]*)?$/);
    }
    passed += Number(ours.accepted);
    stricter += Number(!ours.accepted && a.accepted && b.accepted);
    for (const request of extraOf(ours, a, b))
      laxer.push(
        `${seen}: ${request}; ours ${ours.answer.statuses.join()}, nginx ${a.answer.statuses.join()}, haproxy ${b.answer.statuses.join()}`,
      );
  }
  console.log(
    `mutations, seed ${SEED}: ${COUNT} sent, ${passed} passed, ${stricter} refused by us alone, ${laxer.length} requests passed by us alone`,
  );
  expect(laxer).toEqual([]);
  expect(passed).toBeGreaterThan(COUNT / 50);
  await expectQuiet(bed);
}, 3_600_000);
