import { expect, test } from 'vitest';
import { createLearned } from './learned.ts';
import { parsed } from './program.fixture.ts';

test('what is in use is remembered, however many names come once', () => {
  const learned = createLearned();
  const see = (model: string, tenant: string): void =>
    learned.observe({ model, tenant, promptChars: 200, promptTokens: 100, outputTokens: 10 });
  for (let i = 0; i < 300; i++) see('used', 'used');
  for (let i = 0; i < 5000; i++) {
    see(`once ${i}`, 'used');
    see('used', `once ${i}`);
    see('used', 'used');
    learned.observeSession(`once ${i}`, 1);
  }
  const body = parsed({ model: 'used', promptChars: 200 });
  expect(learned.promptTokens(body)).toBe(100);
  expect(learned.outputTokens(body, 'used')).toBeLessThanOrEqual(11);
  // A model of long ago is as good as new.
  expect(learned.promptTokens(parsed({ model: 'once 1', promptChars: 200 }))).toBe(50);
});
