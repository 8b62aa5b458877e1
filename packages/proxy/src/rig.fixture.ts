import { afterEach } from 'vitest';
import { RawClient } from './client.fixture.ts';
import { ManualTime } from './manual-time.fixture.ts';
import { createProxy, type Proxy, type ProxyOptions } from './proxy.ts';
import { ScriptedRouter, target, type Script } from './scripted-router.fixture.ts';
import { RawUpstream } from './upstream.fixture.ts';

export const CHAT = '/v1/chat/completions';
export const chat = (rest: object = {}): object => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  ...rest,
});
/** A streaming request whose sender wants usage, so that nothing is injected. */
export const streaming = (rest: object = {}): object =>
  chat({ stream: true, stream_options: { include_usage: true }, ...rest });
export const ANSWER = {
  id: 'c1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ message: { role: 'assistant', content: 'yo' } }],
  usage: { prompt_tokens: 7, completion_tokens: 2 },
} as const;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A proxy over a scripted router, with one raw upstream and time that is moved by hand. */
export interface Rig {
  readonly port: number;
  readonly upstream: RawUpstream;
  readonly origin: string;
  readonly router: ScriptedRouter;
  readonly proxy: Proxy;
  readonly time: ManualTime;
  readonly client: () => RawClient;
}

export async function rig(
  script: (origin: string) => Script = (origin) => ({ attempts: [{ target: target(origin) }] }),
  options: Partial<ProxyOptions> = {},
): Promise<Rig> {
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
  return { port, upstream, origin, router, proxy, time, client };
}
