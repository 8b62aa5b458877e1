import { createHash } from 'node:crypto';
import { request, type Agent, type IncomingMessage } from 'node:http';
import { MODEL, plainText, streamText } from './seeded-answer.ts';

/** One request of the load. */
export interface Ask {
  readonly port: number;
  readonly agent: Agent;
  readonly seed: number;
  readonly tokens: number;
  /** Time between the tokens of a stream; think time of a plain answer. */
  readonly paceMs: number;
  readonly stream: boolean;
  /** The client leaves after so many events, or so many milliseconds where the answer is no stream. */
  readonly leavesAfter?: number;
  /** Called for each event of a stream. */
  readonly onEvent?: (() => void) | undefined;
}

/** How a request ended. `whole`: every byte of the answer was the one that it had to be, and its framing ended as it should. */
export interface Outcome {
  readonly kind: 'whole' | 'left' | 'fault';
  /** What was wrong, of a fault. */
  readonly fault: string;
  readonly status: number;
  /** The version that decided it and the tier that it chose, as the headers of the answer say; empty before there were any. */
  readonly policy: string;
  readonly tier: string;
  /** Whether the answer said `Connection: close`. */
  readonly closes: boolean;
}

/** As long as the requests of the benches: 4 KB. */
const PROMPT = 'What the quick brown fox said to the lazy dog. '.repeat(80);

/** Whether a stream asks for its usage; the gateway asks for it anyway, and must keep it from those who did not. */
const wantsUsage = ({ seed }: Ask): boolean => seed % 2 === 1;

function bodyOf(ask: Ask): string {
  return JSON.stringify({
    model: MODEL,
    messages: [{ role: 'user', content: PROMPT }],
    seed: ask.seed,
    max_tokens: ask.tokens,
    metadata: { pace_ms: String(ask.paceMs) },
    ...(ask.stream ? { stream: true } : {}),
    ...(ask.stream && wantsUsage(ask) ? { stream_options: { include_usage: true } } : {}),
  });
}

/** Sends one request and holds its answer against what it must be. Never rejects. */
export function ask(asked: Ask): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const body = bodyOf(asked);
  const sent = request({
    host: '127.0.0.1',
    port: asked.port,
    path: '/v1/chat/completions',
    method: 'POST',
    agent: asked.agent,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
  });
  const answer = new AnswerReader(asked);
  let leaving = false;
  const settle = (fault: string): void =>
    resolve({
      ...answer.facts,
      kind: leaving ? 'left' : fault === '' ? 'whole' : 'fault',
      fault: leaving ? '' : fault,
    });
  const leave = (): void => {
    leaving = true;
    sent.destroy();
  };
  const leaveTimer = asked.leavesAfter === undefined || asked.stream ? undefined : setTimeout(leave, asked.leavesAfter);
  sent.on('error', (error) => settle(`no answer: ${error.message}`));
  sent.on('response', (response) => {
    answer.start(response);
    response.on('data', (part: Buffer) => {
      answer.read(part);
      if (asked.stream && asked.leavesAfter !== undefined && answer.events >= asked.leavesAfter) leave();
    });
    response.on('error', () => undefined);
    response.on('close', () => {
      clearTimeout(leaveTimer);
      settle(answer.fault(response.complete));
    });
  });
  sent.on('close', () => {
    if (answer.facts.status === 0) settle('closed without an answer');
  });
  sent.end(body);
  return promise;
}

const KEPT_TEXT = 400;

/** Reads an answer as it comes: its hash, the places of its tokens, and its last bytes. */
class AnswerReader {
  facts = { status: 0, policy: '', tier: '', closes: false };
  events = 0;
  readonly #ask: Ask;
  readonly #hash = createHash('sha256');
  /** Of a stream: what has come of an event that is not whole. */
  #rest = '';
  #nextIndex = 0;
  #disorder = '';
  #end = '';

  constructor(asked: Ask) {
    this.#ask = asked;
  }

  start({ statusCode = 0, headers }: IncomingMessage): void {
    this.facts = {
      status: statusCode,
      policy: String(headers['x-signalbox-policy'] ?? ''),
      tier: String(headers['x-signalbox-tier'] ?? ''),
      closes: headers.connection === 'close',
    };
  }

  read(part: Buffer): void {
    this.#hash.update(part);
    const text = part.toString('latin1');
    this.#end = (this.#end + text).slice(-KEPT_TEXT);
    if (!this.#ask.stream) return;
    const whole = (this.#rest + text).split('\n\n');
    this.#rest = whole.pop() ?? '';
    for (const event of whole) this.#readEvent(event);
  }

  #readEvent(event: string): void {
    this.events++;
    this.#ask.onEvent?.();
    const place = /"content":"(\d+):/.exec(event)?.[1];
    if (place === undefined) return;
    if (Number(place) !== this.#nextIndex) this.#disorder ||= `token ${place} came where ${this.#nextIndex} was due`;
    this.#nextIndex = Number(place) + 1;
  }

  /** What is wrong with the answer, now that it has ended; empty if nothing is. */
  fault(complete: boolean): string {
    const { stream, seed, tokens } = this.#ask;
    const { status, tier } = this.facts;
    if (status !== 200) return `status ${status}: ${this.#end}`;
    if (this.#disorder !== '') return `out of order: ${this.#disorder}`;
    if (!complete) return `truncated: the framing did not end, after: ${this.#end}`;
    const asked = { seed, tokens, tier, withUsage: stream && wantsUsage(this.#ask) };
    const expected = createHash('sha256').update(stream ? streamText(asked) : plainText(asked));
    if (expected.digest('hex') === this.#hash.digest('hex')) return '';
    return `${this.#nextIndex < tokens && stream ? 'truncated' : 'altered'}: other bytes than were sent, ending: ${this.#end}`;
  }
}
