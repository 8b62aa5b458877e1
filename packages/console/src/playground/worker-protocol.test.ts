import { expect, test } from 'vitest';
import type { PolicyService } from './policy-service.ts';
import { servePolicyCalls } from './worker-protocol.ts';

test('calls are answered in order, and one that throws does not stop the next', async () => {
  const said: unknown[] = [];
  let listener: (event: { readonly data: unknown }) => void = () => {};
  let whenDone: () => void = () => {};
  const done = new Promise<void>((resolve) => (whenDone = resolve));
  const service = {
    format: (text: string) => (text === 'bad' ? Promise.reject(new Error('it is bad')) : Promise.resolve(`${text}!`)),
  } as unknown as PolicyService;
  servePolicyCalls(
    {
      postMessage(message) {
        said.push(message);
        if (said.length === 4) whenDone();
      },
      addEventListener: (_type, given) => (listener = given),
    },
    service,
  );
  for (const [id, argument] of ['a', 'bad', 'c'].entries()) listener({ data: { id, method: 'format', argument } });
  await done;
  expect(said).toEqual([
    { kind: 'ready' },
    { id: 0, kind: 'result', value: 'a!' },
    { id: 1, kind: 'fault', message: 'it is bad' },
    { id: 2, kind: 'result', value: 'c!' },
  ]);
});
