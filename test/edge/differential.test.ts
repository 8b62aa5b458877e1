import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BODY, expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { startHaproxy, startNginx, startVarnish, type Peer } from './support/peer-proxies.ts';
import { exchange, type Exchanged } from './support/raw-exchange.ts';
import type { Recorded, RecordingUpstream } from './support/recording-upstream.ts';

const folder = new URL('corpus/', import.meta.url);

/** A file's name opens with the statuses that we must answer, `closed` for an end of the connection: `200+404-what-it-is.http`. */
interface Case {
  readonly name: string;
  readonly bytes: Buffer;
  readonly expected: readonly string[];
}

const corpus: readonly Case[] = readdirSync(folder)
  .filter((file) => file.endsWith('.http'))
  .map((file) => ({
    name: file.slice(0, -'.http'.length),
    bytes: readFileSync(new URL(file, folder)),
    expected: file.slice(0, file.indexOf('-')).split('+'),
  }));

interface Verdict {
  readonly answer: Exchanged;
  readonly upstream: readonly Recorded[];
  readonly garbage: string;
  /** Something of it reached the upstream, or was answered as a good request. */
  readonly accepted: boolean;
}

const PEERS = ['nginx', 'haproxy', 'varnish'] as const;
type Verdicts = { readonly [who in 'ours' | (typeof PEERS)[number]]: Verdict };

let bed: EdgeBed;
const peers = {} as Record<(typeof PEERS)[number], Peer>;
const verdicts = new Map<string, Verdicts>();

async function judge(port: number, upstream: RecordingUpstream, { bytes, expected }: Case): Promise<Verdict> {
  upstream.take();
  upstream.garbage = '';
  const answers = expected.filter((status) => status !== 'closed').length;
  const answer = await exchange(port, bytes, { answers, limitMs: 1_000, quietMs: 25 });
  const recorded = upstream.take();
  return {
    answer,
    upstream: recorded,
    garbage: upstream.garbage,
    accepted: recorded.length > 0 || answer.statuses.some((status) => status < 400),
  };
}

beforeAll(async () => {
  [bed, peers.nginx, peers.haproxy, peers.varnish] = await Promise.all([
    startEdgeBed(),
    startNginx(),
    startHaproxy(),
    startVarnish(),
  ]);
  // The first request of a process is its slowest, and no verdict.
  for (const { port } of [bed, ...PEERS.map((peer) => peers[peer])]) await exchange(port, post(), { limitMs: 10_000 });
  for (const one of corpus) {
    const [ours, nginx, haproxy, varnish] = await Promise.all([
      judge(bed.port, bed.upstream, one),
      judge(peers.nginx.port, peers.nginx.upstream, one),
      judge(peers.haproxy.port, peers.haproxy.upstream, one),
      judge(peers.varnish.port, peers.varnish.upstream, one),
    ]);
    verdicts.set(one.name, { ours, nginx, haproxy, varnish });
  }
});
afterAll(async () => {
  console.log(table());
  await Promise.all([bed, ...PEERS.map((peer) => peers[peer])].map((one) => one.stop()));
});

const verdictOf = (name: string): NonNullable<ReturnType<typeof verdicts.get>> => {
  const verdict = verdicts.get(name);
  if (verdict === undefined) throw new Error(`${name} was not judged`);
  return verdict;
};

describe('the same bytes to Signalbox, nginx, HAProxy and Varnish', () => {
  it('the corpus holds at least 60 requests, clean ones among them', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    expect(corpus.filter(({ expected }) => expected[0] === '200').length).toBeGreaterThanOrEqual(10);
  });

  it.each(corpus)('$name: the status is as its name says', ({ name, expected }) => {
    const { answer } = verdictOf(name).ours;
    const given = answer.statuses.map(String);
    expect(expected.at(-1) === 'closed' ? [...given, answer.end] : given).toEqual(expected);
  });

  it.each(corpus)('$name: at most one upstream request for each good answer, framed once', ({ name, expected }) => {
    const { ours } = verdictOf(name);
    expect(ours.garbage).toBe('');
    expect(ours.upstream).toHaveLength(expected.filter((status) => status === '200').length);
    for (const { head, headers, framing, method, target, body } of ours.upstream) {
      expect({ framing, method, body }).toEqual({ framing: 'length', method: 'POST', body: BODY });
      expect(target).toMatch(/^\/v1\/chat\/completions(?:\?[!-~]*)?$/);
      // Any parser reads the same head: no bare CR or LF, no NUL, each line a token and a value, framing and Host once.
      expect(head.replaceAll('\r\n', '')).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      for (const [header] of headers) expect(header).toMatch(/^[!#$%&'*+.^_`|~0-9a-z-]+$/);
      for (const once of ['host', 'content-length'])
        expect(headers.filter(([header]) => header === once)).toHaveLength(1);
      for (const never of ['transfer-encoding', 'te', 'trailer', 'upgrade', 'expect', 'keep-alive', 'x-secret'])
        expect(headers.map(([header]) => header)).not.toContain(never);
    }
  });

  it.each(corpus)(
    '$name: a refusal closes the connection, in our envelope, with a request id',
    ({ name, expected }) => {
      const { answer } = verdictOf(name).ours;
      answer.statuses.forEach((status, i) => {
        if (status < 400) return;
        expect(answer.headers[i]?.['x-request-id']).toMatch(/^[!-~]{1,256}$/);
        if (!answer.text.includes('HEAD') && answer.bodies[i] !== '')
          expect(JSON.parse(answer.bodies[i] ?? '')).toMatchObject({ error: { type: 'invalid_request_error' } });
      });
      // What follows a body that was merely wrong is still framed as it says.
      if (expected.includes('400') && name !== '400-empty-body') expect(answer.end).not.toBe('open');
    },
  );

  it('we are never laxer than all of them', () => {
    const laxer = [...verdicts].filter(
      ([, verdict]) => verdict.ours.accepted && PEERS.every((peer) => !verdict[peer].accepted),
    );
    expect(laxer.map(([name]) => name)).toEqual([]);
  });

  it.each(PEERS)('what we pass on and %s too is read alike behind both: the same bodies', (peer) => {
    const bodies = (verdict: Verdict): readonly string[] => verdict.upstream.map(({ body }) => body);
    const differing = [...verdicts].filter(
      ([, { ours, [peer]: other }]) =>
        // A peer may begin to pass on what it then refuses, and behind a refusal one ends the connection and another goes on.
        other.answer.statuses.every((status) => status < 400) &&
        ours.upstream.length > 0 &&
        ours.upstream.length === other.upstream.length &&
        bodies(ours).join('|') !== bodies(other).join('|'),
    );
    expect(differing.map(([name]) => name)).toEqual([]);
  });

  it('the peers do take clean requests, so that their refusals mean something', () => {
    for (const peer of PEERS) {
      const clean = corpus.filter(({ name }) => name.startsWith('200-') && verdictOf(name)[peer].accepted);
      expect([peer, clean.length >= 10]).toEqual([peer, true]);
    }
  });

  it('afterwards no lease is held and clean requests are served', () => expectQuiet(bed));
});

function table(): string {
  const cell = ({ answer, upstream, garbage }: Verdict): string =>
    `${answer.statuses.join('+') || (answer.end === 'open' ? 'silent' : answer.end)} (${upstream.map(({ framing }) => framing).join('+') || '-'})${garbage === '' ? '' : ' garbage'}`;
  const rows = [...verdicts].map(([name, verdict]) => [
    name.replace(/^[^-]*-/, ''),
    cell(verdict.ours),
    ...PEERS.map((peer) => cell(verdict[peer])),
    verdict.ours.accepted === PEERS.every((peer) => verdict[peer].accepted)
      ? ''
      : verdict.ours.accepted
        ? 'a peer refuses'
        : 'stricter',
  ]);
  const all = [['request', 'Signalbox', ...PEERS.map((peer) => peers[peer].version), 'differs'], ...rows];
  const widths = all[0]?.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0))) ?? [];
  return all
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
