import { expect, test } from 'vitest';
import { Frame } from './frame.ts';

const SHAPE = { signals: 3, late: [], columns: [], pools: [], shortlist: 4, parts: 2, properties: 1 };

/** What opening and deciding write before anybody reads it, or nobody reads while its flag says so. */
const WRITTEN_FIRST = new Set(['nowMs', 'epochMs', 'seed', 'promptTokens', 'outputTokens', 'stamp']);
const FLAGGED = new Set(['affinityHi', 'affinityLo', 'splitHi', 'splitLo']);

test('a request finds in a frame nothing of the one before, whatever ended that', () => {
  const fresh = new Frame(SHAPE);
  const used = new Frame(SHAPE);
  const fields = Object.entries(fresh).filter(
    ([name, value]) =>
      (typeof value !== 'object' || Array.isArray(value)) && !WRITTEN_FIRST.has(name) && !FLAGGED.has(name),
  );
  expect(fields.length).toBeGreaterThan(20);
  for (const [name, value] of fields)
    Reflect.set(used, name, typeof value === 'boolean' ? !value : typeof value === 'number' ? 7 : ['left']);
  used.forget();
  used.startDecision();
  const left = fields.filter(([name]) => !['candidates', 'eligible', 'v', 'factValues'].includes(name));
  expect(Object.fromEntries(left.map(([name]) => [name, Reflect.get(used, name) as unknown]))).toEqual(
    Object.fromEntries(left),
  );
});
