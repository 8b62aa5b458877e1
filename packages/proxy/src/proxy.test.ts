import { afterEach, describe, expect, it } from 'vitest';
import { RawClient } from './client.fixture.ts';
import { createProxy, type Proxy, type ProxyOptions } from './proxy.ts';
import { ManualTime } from './manual-time.fixture.ts';
import { ScriptedRouter, target, type Script } from './scripted-router.fixture.ts';
import { chunk, DONE, event, json, LAST_CHUNK, RawUpstream, STREAM_HEAD } from './upstream.fixture.ts';

const CHAT = '/v1/chat/completions';
const chat = (rest: object = {}): object => ({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...rest });
const ANSWER = { id: 'c1', object: 'chat.completion', model: 'm', choices: [{ message: { role: 'assistant', content: 'yo' } }], usage: { prompt_tokens: 7, completion_tokens: 2 } };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Rig {
  readonly upstream: RawUpstream;
  readonly origin: string;
  readonly router: ScriptedRouter;
  readonly proxy: Proxy;
  readonly time: ManualTime;
  readonly client: () => RawClient;
}

async function rig(script: (origin: string) => Script = (origin) => ({ attempts: [{ target: target(origin) }] }), options: Partial<ProxyOptions> = {}): Promise<Rig> {
  const upstream = new RawUpstream();
  const origin = await upstream.listen();
  const router = new ScriptedRouter(script(origin));
  const time = new ManualTime();
  const proxy = createProxy({ router, clock: time, timers: time, ...options });
  const { port } = await proxy.listen({ host: '127.0.0.1', port: 0 });
  closers.push(async () => {
    const closed = proxy.close({ forceMs: 0 });
    await time.advance(1000);
    await closed;
    upstream.close();
  });
  const client = (): RawClient => {
    const made = new RawClient(port);
    closers.push(() => made.destroy());
    return made;
  };
  return { upstream, origin, router, proxy, time, client };
}

describe('a plain answer', () => {
  it('is relayed with our headers, and the ledger closes', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const answer = await client().post(CHAT, chat(), ['x-request-id: r-1']).answer();
    expect(answer).toMatchObject({ status: 200, complete: true, body: JSON.stringify(ANSWER) });
    expect(answer.headers).toMatchObject({
      'x-request-id': 'r-1',
      'x-signalbox-tier': 'tier',
      'x-signalbox-endpoint': 'tier/1',
      'x-signalbox-policy': 'p1',
      'x-signalbox-attempts': '1',
      'x-signalbox-reason': 'matched',
      'content-type': 'application/json',
    });
    expect(answer.headers['server-timing']).toMatch(/^queue;dur=\S+, decide;dur=\S+, upstream;dur=\S+, gateway;dur=\S+$/);
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: CHAT, body: JSON.stringify(chat()) });
    expect(router.last.ends).toMatchObject([{ outcome: 'ok', status: 200, promptTokens: 7, outputTokens: 2 }]);
    expect(router.leases).toBe(0);
  });
});

describe('a stream', () => {
  it('is relayed byte for byte', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => {
      socket.write(STREAM_HEAD);
      socket.write(chunk(event('a')));
      socket.write(Buffer.concat([chunk(event('b') + DONE), Buffer.from(LAST_CHUNK)]));
    };
    const answer = await client().post(CHAT, chat({ stream: true, stream_options: { include_usage: true } })).answer();
    expect(answer.body).toBe(event('a') + event('b') + DONE);
    expect(answer.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
    expect(router.last.ends).toMatchObject([{ outcome: 'ok', status: 200 }]);
    expect(router.leases).toBe(0);
  });
});
