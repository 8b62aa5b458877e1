import { describe, expect, test } from 'vitest';
import { candidates, fakeClock, parsedRequest, requestView, seededRandom, setupContext } from './index.ts';

describe('requestView', () => {
  test('reads signals by their key, with or without its scope', () => {
    const view = requestView({ prompt_tokens: 100, 'request.model': 'm', 'cluster.saturation': 0.4 }, { seed: 9 });
    expect(view.seed).toBe(9);
    expect(view.number('request.prompt_tokens')).toBe(100);
    expect(view.value('request.model')).toBe('m');
    expect(view.number('cluster.saturation')).toBe(0.4);
  });

  test('what is not there, not a number or not declared is unknown', () => {
    const view = requestView(
      { prompt_tokens: 100, model: 'm', words: Number.NaN },
      { reads: ['request.model', 'request.words'] },
    );
    expect(view.number('request.prompt_tokens')).toBeNaN();
    expect(view.value('request.prompt_tokens')).toBeUndefined();
    expect(view.number('request.model')).toBeNaN();
    expect(view.value('request.words')).toBeUndefined();
    expect(view.number('request.nothing')).toBeNaN();
  });
});

describe('candidates', () => {
  test('columns are indexed by slot, positions by the order given', () => {
    const view = candidates([{ load: 0.2, zone: 'a' }, { load: 0.9 }], { slots: [5, 2] });
    expect(view.length).toBe(2);
    expect([...view.slots]).toEqual([5, 2]);
    const load = view.column('candidate.load');
    expect([load[5], load[2], load[0]]).toEqual([0.2, 0.9, Number.NaN]);
    const zone = view.values('candidate.zone');
    expect([zone[5], zone[2]]).toEqual(['a', undefined]);
  });

  test('a key that no endpoint has, or that is not declared, is unknown throughout', () => {
    const view = candidates([{ load: 0.2, zone: 'a' }], { reads: ['candidate.zone'] });
    expect(view.column('candidate.load')[0]).toBeNaN();
    expect(view.column('candidate.power')[0]).toBeNaN();
    expect(view.values('candidate.zone')[0]).toBe('a');
    expect(view.values('candidate.tier')[0]).toBeUndefined();
  });

  test('slots must be as many as endpoints', () => {
    expect(() => candidates([{}, {}], { slots: [1] })).toThrow(/2 endpoints but 1 slots/);
  });
});

test('parsedRequest answers as a request of the API would', () => {
  const request = parsedRequest({
    messages: [
      { role: 'system', text: 'Be terse.' },
      { role: 'user', text: 'Hi 🙂' },
      { role: 'assistant', text: 'Hello.' },
      { role: 'user', text: 'Bye', images: 2 },
    ],
    metadata: { session_id: 's' },
    toolNames: ['search'],
  });
  expect(request.systemPrompt()).toBe('Be terse.');
  expect(request.firstUserMessage()).toBe('Hi 🙂');
  expect(request.lastUserMessage()).toBe('Bye');
  expect(request.prompt()).toBe('Be terse.\nHi 🙂\nHello.\nBye');
  expect(request.promptChars).toBe(9 + 4 + 6 + 3 + 3);
  expect([request.images, request.tools]).toEqual([2, 1]);
  expect([request.metadata('session_id'), request.metadata('toString')]).toEqual(['s', undefined]);
  expect(request.maxTokens).toBeNaN();
  expect(Object.isFrozen(request)).toBe(true);
});

test('the fake clock moves only when told, and never back', () => {
  const clock = fakeClock(1000);
  clock.advance(250);
  expect([clock.now(), clock.epochMs()]).toEqual([250, 1250]);
  expect(() => clock.advance(-1)).toThrow(RangeError);
});

test('seeded random numbers repeat, lie in [0, 1), and are even enough', () => {
  const [a, b] = [seededRandom(5), seededRandom(5)];
  const numbers = Array.from({ length: 10_000 }, () => a.next());
  expect(numbers.slice(0, 50)).toEqual(Array.from({ length: 50 }, () => b.next()));
  expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
  for (let tenth = 0; tenth < 10; tenth++) {
    const count = numbers.filter((n) => Math.floor(10 * n) === tenth).length;
    expect(Math.abs(count - 1000)).toBeLessThan(130);
  }
});

test('setupContext fills in defaults and freezes what the host owns', () => {
  const { options } = setupContext({
    type: 'object',
    properties: {
      a: { type: 'number', default: 3 },
      b: {
        type: 'object',
        default: {},
        properties: { c: { type: 'string', default: 'x' } },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  }) as { readonly options: unknown };
  expect(options).toEqual({ a: 3, b: { c: 'x' } });
  expect(Object.isFrozen((options as { b: unknown }).b)).toBe(true);
});
