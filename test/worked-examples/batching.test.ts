import { describe, expect, test } from 'vitest';
import { createEngine, latencyFromRates } from '../../packages/simulator/src/index.ts';

describe('14. a batch limit of 32', () => {
  const submitted = (sequences: number): ReturnType<typeof createEngine> => {
    const latency = latencyFromRates({ tokensPerSecond: 100, prefillTokensPerSecond: 10_000 });
    const engine = createEngine({ latency, batching: 'static', maxBatch: 32 });
    for (let i = 0; i < sequences; i++) engine.submit({ promptLength: 10, outputTokens: 5 }, 0);
    return engine;
  };

  test('a full batch is started', () => {
    const engine = submitted(32);
    engine.advance(0);
    expect(engine.state()).toMatchObject({ running: 32, waiting: 0 });
  });

  test('what comes beyond it waits until the batch has ended', () => {
    const engine = submitted(33);
    engine.advance(0);
    expect(engine.state()).toMatchObject({ running: 32, waiting: 1 });
    while (engine.state().running === 32) engine.advance(engine.nextEventMs() ?? 0);
    expect(engine.state()).toMatchObject({ running: 1, waiting: 0 });
  });
});
