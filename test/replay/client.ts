import { Agent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { performance } from 'node:perf_hooks';
import { parentPort } from 'node:worker_threads';
import { replayModel } from './fleet.ts';
import type { TraceRequest } from './trace.ts';
import { chatBody } from './workload.ts';

/** One replay, as the client thread is asked for it. */
export interface ReplayOrder {
  /** Base addresses; request i goes to the i-th in turn. One, where a gateway chooses. */
  readonly targets: readonly string[];
  readonly requests: readonly TraceRequest[];
  /** Real milliseconds for one of the trace's. */
  readonly realPerTraceMs: number;
}

/** What the client saw of one request. Real milliseconds; both times count from the instant at which the request was due. */
export interface ClientRecord {
  readonly index: number;
  /** How late it was sent. */
  readonly lagMs: number;
  readonly ttftMs: number;
  readonly latencyMs: number;
  /** Absent when the answer came whole: right counts, all tokens, `[DONE]`. */
  readonly problem?: string;
}

/**
 * The client thread: sends each request at its instant whatever became of the earlier ones (open loop), and posts back a `ClientRecord` for each,
 * in one list. It has an event loop to itself, so that what it measures is not the engines' doing.
 */
if (parentPort === null) throw new Error('client.ts is run as a worker thread');
const port = parentPort;
port.on('message', (order: ReplayOrder) => {
  void replay(order).then((records) => port.postMessage(records));
});

async function replay({ targets, requests, realPerTraceMs }: ReplayOrder): Promise<readonly ClientRecord[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const prepared = requests.map((request) => ({ request, body: Buffer.from(chatBody(request, replayModel)) }));
  const startMs = performance.now() + 20;
  const pending: Promise<ClientRecord>[] = [];
  for (const [position, { request, body }] of prepared.entries()) {
    const dueMs = startMs + request.atMs * realPerTraceMs;
    const waitMs = dueMs - performance.now();
    // Rounded up: a timer of Node's cuts fractions off, and a request must not be early.
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.ceil(waitMs)));
    pending.push(send(`${targets[position % targets.length]}/v1/chat/completions`, request, body, dueMs, agent));
  }
  const records = await Promise.all(pending);
  agent.destroy();
  return records;
}

function send(url: string, expected: TraceRequest, body: Buffer, dueMs: number, agent: Agent): Promise<ClientRecord> {
  const lagMs = performance.now() - dueMs;
  return new Promise((resolve) => {
    let firstMs = Number.NaN;
    const end = (problem?: string): void =>
      resolve({
        index: expected.index,
        lagMs,
        ttftMs: firstMs - dueMs,
        latencyMs: performance.now() - dueMs,
        ...(problem === undefined ? {} : { problem }),
      });
    const exchange = httpRequest(
      url,
      { method: 'POST', agent, headers: { 'content-type': 'application/json', 'content-length': body.length } },
      (response) => readStream(response, expected, () => (firstMs = performance.now()), end),
    );
    exchange.on('error', (error) => end(error.message));
    exchange.end(body);
  });
}

/** Reads an answer to its end; `onFirst` at the first event that bears text. */
function readStream(
  response: IncomingMessage,
  { promptTokens, outputTokens }: TraceRequest,
  onFirst: () => void,
  end: (problem?: string) => void,
): void {
  let begun = false;
  let tail = '';
  response.setEncoding('latin1');
  response.on('data', (chunk: string) => {
    // The last two events are all that is looked at later; the first token's may be cut anywhere.
    tail = (tail + chunk).slice(-1024);
    if (!begun && /"content":"[^"]/.test(tail)) {
      begun = true;
      onFirst();
    }
  });
  response.on('error', (error) => end(error.message));
  response.on('end', () => {
    if (response.statusCode !== 200) return end(`status ${response.statusCode}: ${tail.slice(0, 300)}`);
    const prompt = Number(/"prompt_tokens":(\d+)/.exec(tail)?.[1]);
    const completion = Number(/"completion_tokens":(\d+)/.exec(tail)?.[1]);
    if (prompt !== Math.max(4, promptTokens) || completion !== outputTokens)
      return end(`usage ${prompt} + ${completion} tokens, expected ${promptTokens} + ${outputTokens}`);
    end(tail.trimEnd().endsWith('data: [DONE]') ? undefined : 'no [DONE]');
  });
}
