import type { OptionSchema } from '@signalbox/plugin-api';
import { expect, test } from 'vitest';
import { createOptionChecker } from './option-checker.ts';

const schema: OptionSchema = {
  type: 'object',
  properties: {
    horizon: { type: 'number', minimum: 1, default: 900, 'x-unit': 'duration' },
    mode: { enum: ['mean', 'p90'] },
    nested: { type: 'object', properties: { deep: { type: 'boolean' } }, additionalProperties: false },
  },
  additionalProperties: false,
  required: ['mode'],
};

test('a fitting value has no problems', () => {
  expect(createOptionChecker()(schema, { mode: 'p90', horizon: 5 })).toEqual([]);
});

test('all problems of a value come at once, each with the pointer of its value', () => {
  const problems = createOptionChecker()(schema, { horizon: 0, nested: { deep: 1 }, extra: true });
  expect(problems.map(({ pointer, keyword }) => `${pointer} ${keyword}`).toSorted()).toEqual([
    ' additionalProperties',
    ' required',
    '/horizon minimum',
    '/nested/deep type',
  ]);
  expect(problems.find(({ keyword }) => keyword === 'additionalProperties')?.params).toEqual({
    additionalProperty: 'extra',
  });
});

test('the value is not changed: defaults are the host rule of plugin-api', () => {
  const value = { mode: 'mean' };
  createOptionChecker()(schema, value);
  expect(value).toEqual({ mode: 'mean' });
});

test('a schema that is not valid is its author’s mistake and throws', () => {
  expect(() => createOptionChecker()({ type: 'nonsense' } as unknown as OptionSchema, {})).toThrow(/type/);
});
