import type { Value } from '@signalbox/plugin-api';
import { parsedRequest, requestView, setupContext } from '@signalbox/testkit';
import type { ParsedRequestParts } from '@signalbox/testkit';
import { describe, expect, test } from 'vitest';
import plugin from './index.ts';
import { holdsCode } from './signal-code/index.ts';
import { languageOf } from './signal-text-language/language-of.ts';

function evaluate(name: string, parts: ParsedRequestParts): Value | undefined {
  const definition = plugin.provides.signal?.[name];
  if (definition === undefined) throw new Error(`no signal ${name}`);
  const value = definition
    .setup(setupContext(definition.options))
    .evaluate(parsedRequest(parts), requestView(), new AbortController().signal);
  if (value instanceof Promise) throw new Error('expected a value at once');
  return value;
}

const chat: ParsedRequestParts = {
  messages: [
    { role: 'system', text: 'Be terse. Why? Because.' },
    { role: 'user', text: 'first? question?' },
    { role: 'assistant', text: 'No.' },
    { role: 'user', text: '  Is it\tso ?\nReally?  ' },
  ],
};

test('questions and words look at the last user message, turns counts the user messages', () => {
  expect(evaluate('questions', chat)).toBe(2);
  expect(evaluate('words', chat)).toBe(5);
  expect(evaluate('turns', chat)).toBe(2);
});

test('a request without a user message has no questions and no words', () => {
  for (const name of ['questions', 'words', 'turns', 'complexity.textbook']) expect(evaluate(name, {})).toBe(0);
  expect(evaluate('code', {})).toBeUndefined();
  expect(evaluate('text_language', {})).toBeUndefined();
});

test.each([
  ['Is Paris in France?', 10.4],
  ['Analyze the economic impact of climate change on small island states.', 1.1],
  ['', 0],
  ['Why? How? When? Where? Who?', 50.5],
])('the textbook complexity of %j is %d', (text, value) => {
  expect(evaluate('complexity.textbook', { messages: text })).toBeCloseTo(value, 10);
});

describe('code', () => {
  test.each([
    '```python\nprint(1)\n```',
    'function add(a, b) {\n  return a + b;\n}',
    'def f(x):\n    return x + 1',
    'Why does this fail?\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\n    raise ValueError(x)',
    'SELECT id FROM users WHERE age > 3;\nINSERT INTO t VALUES (1);',
    '#include <stdio.h>\nint main() {\n  printf("hi");\n  return 0;\n}',
  ])('%j holds code', (text) => {
    expect(holdsCode(text)).toBe(true);
  });

  test.each([
    'Please import the goods from China; the class starts at nine.',
    'We return to the office (on Monday) if the weather allows:\n- bring a hat\n- bring water',
    'Who wrote Hamlet?',
    'My shopping list:\neggs\nmilk\nbread',
    'I would select one from the list.',
  ])('%j holds none', (text) => {
    expect(holdsCode(text)).toBe(false);
  });

  test('hostile texts take linear time', () => {
    const startMs = performance.now();
    for (const text of [
      '('.repeat(1e5),
      'SELECT '.repeat(2e4),
      ' '.repeat(1e5),
      'a('.repeat(5e4),
      `import ${'x'.repeat(1e5)}`,
      '{;'.repeat(5e4),
    ]) {
      holdsCode(text);
    }
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
});

describe('text_language', () => {
  test.each([
    ['en', 'What is the weather like in the north of the country?'],
    ['de', 'Wie ist das Wetter im Norden und was soll ich mitnehmen?'],
    ['fr', 'Quelle est la capitale de la France et pourquoi ?'],
    ['es', '¿Cuál es la capital de España y por qué?'],
    ['it', 'Qual è la capitale della Francia e come si raggiunge?'],
    ['pt', 'Qual é a capital de Portugal e por que não é o Porto?'],
    ['nl', 'Wat is de hoofdstad van Nederland en hoe kom ik er?'],
    ['sv', 'Vad är huvudstaden i Sverige och hur tar jag mig till den?'],
    ['pl', 'Jak dojechać do Krakowa i co tam jest?'],
    ['tr', 'Ankara için ne kadar yol var ve bu nasıl olur?'],
    ['ru', 'Какая столица у России?'],
    ['uk', 'Яка столиця України і чому?'],
    ['el', 'Ποια είναι η πρωτεύουσα;'],
    ['ar', 'ما هي عاصمة مصر؟'],
    ['fa', 'پایتخت ایران چیست؟ چگونه'],
    ['he', 'מהי בירת ישראל?'],
    ['hi', 'भारत की राजधानी क्या है?'],
    ['th', 'เมืองหลวงของไทยคืออะไร'],
    ['ja', '日本の首都はどこですか？'],
    ['zh', '中国的首都是哪里？'],
    ['ko', '한국의 수도는 어디입니까?'],
  ])('%s: %s', (language, text) => {
    expect(languageOf(text)).toBe(language);
  });

  test.each(['', '12345', 'Paris', 'xyzzy plugh', '🙂🙂🙂', 'Kubernetes nginx Prometheus Grafana Valkey'])(
    '%j stays unknown',
    (text) => {
      expect(languageOf(text)).toBeUndefined();
    },
  );
});
