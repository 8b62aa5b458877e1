import { once } from 'node:events';
import { createServer } from 'node:http';
import { duplexPair, type Duplex } from 'node:stream';
import type { EndpointTarget, Router } from '../../../packages/core/src/index.ts';
import { silentLogger } from '../../../packages/plugin-api/src/index.ts';
import { toAnswer, type Answer } from '../../../packages/proxy/src/client.fixture.ts';
import { EndpointPools, type ConnectionAware } from '../../../packages/proxy/src/endpoint-pools.ts';
import type { LiveExchange } from '../../../packages/proxy/src/exchange-host.ts';
import { Exchange } from '../../../packages/proxy/src/exchange.ts';
import { DEFAULT_LIMITS } from '../../../packages/proxy/src/limits.ts';
import { LinedResponse } from '../../../packages/proxy/src/lined-response.ts';
import { LiveList } from '../../../packages/proxy/src/live-list.ts';
import type { ManualTime } from '../../../packages/proxy/src/manual-time.fixture.ts';
import { readHead } from '../../../packages/proxy/src/request-head.ts';
import { TimerWheel } from '../../../packages/proxy/src/timer-wheel.ts';
import type { Death } from './recordings.fixture.ts';

type Controller = Parameters<NonNullable<ConnectionAware['onRequestStart']>>[0];

/** Hands each call to the test, in the place of sockets to model servers. */
class MemoryPools extends EndpointPools {
  call: ConnectionAware | undefined = undefined;

  override dispatch(_target: EndpointTarget, _options: unknown, handler: ConnectionAware): void {
    this.call = handler;
  }
}

/** The relay's state machine under a real HTTP server, without a socket on either side. */
export interface MemoryRelay {
  /** One request whose answer comes in these pieces and then ends so; gives what the client got. */
  answer(path: string, body: object, pieces: readonly Uint8Array[], death: Death): Promise<Answer | undefined>;
  /** Requests under way, and armed timers. */
  readonly left: { readonly live: number; readonly timers: number };
}

export function memoryRelay(router: Router, time: ManualTime): MemoryRelay {
  const pools = new MemoryPools(4_000);
  const wheel = new TimerWheel(time, time);
  const live = new LiveList<LiveExchange>();
  const host = {
    router,
    clock: time,
    wheel,
    pools,
    limits: DEFAULT_LIMITS,
    logger: silentLogger,
    hooks: {},
    reportModel: () => 'asked' as const,
    live,
    isClosing: () => false,
    earlyHeadMs: () => Number.POSITIVE_INFINITY,
  } as const;
  const server = createServer({ ServerResponse: LinedResponse }, (request, response) => {
    const path = request.url ?? '';
    new Exchange(
      host,
      request,
      response,
      path,
      path,
      readHead(request.rawHeaders, false, () => 0),
    ).start();
  });
  return {
    get left() {
      return { live: live.size, timers: wheel.size };
    },
    async answer(path, body, pieces, death) {
      const [near, far] = duplexPair();
      server.emit('connection', far);
      const got: Buffer[] = [];
      near.on('data', (data: Buffer) => got.push(data));
      near.on('end', () => near.end());
      const text = JSON.stringify(body);
      near.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
      pools.call = undefined;
      for (let i = 0; i < 100 && pools.call === undefined; i++) await turn();
      const call = pools.call as ConnectionAware | undefined;
      if (call === undefined) throw new Error('nothing was sent on');
      await play(call, pieces, death);
      let answer: Answer | undefined;
      for (let i = 0; i < 100; i++) {
        await turn();
        answer = toAnswer(Buffer.concat(got).toString('latin1'));
        if (answer?.complete === true || near.readableEnded || near.destroyed) break;
      }
      await ended(near, far);
      return answer;
    },
  };
}

/** Does what undici does with the bytes of an answer. */
async function play(call: ConnectionAware, pieces: readonly Uint8Array[], death: Death): Promise<void> {
  let aborted = false;
  const controller = {
    get aborted() {
      return aborted;
    },
    get paused() {
      return false;
    },
    reason: null,
    abort: () => (aborted = true),
    pause: () => undefined,
    resume: () => undefined,
  } as unknown as Controller;
  call.onRequestStart?.(controller, {});
  const framing: Record<string, string> = death === 'closed' ? {} : { 'transfer-encoding': 'chunked' };
  call.onResponseStart?.(controller, 200, { 'content-type': 'text/event-stream', ...framing }, 'OK');
  for (const [i, piece] of pieces.entries()) {
    if (aborted) return;
    call.onResponseData?.(controller, Buffer.from(piece));
    if (i % 8 === 7) await turn();
  }
  if (aborted) return;
  if (death === 'broken') call.onResponseError?.(controller, new Error('other side closed'));
  else call.onResponseEnd?.(controller, {});
}

async function ended(near: Duplex, far: Duplex): Promise<void> {
  const closed = far.closed ? undefined : once(far, 'close');
  near.destroy();
  far.destroy();
  await closed;
  await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
