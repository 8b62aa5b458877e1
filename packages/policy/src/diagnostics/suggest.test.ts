import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, suggest } from './suggest.ts';

describe('edit distance', () => {
  it('counts an insertion, a deletion, a replacement and a swap of neighbours as one', () => {
    expect(editDistance('route', 'routes')).toBe(1);
    expect(editDistance('route', 'rote')).toBe(1);
    expect(editDistance('route', 'roude')).toBe(1);
    expect(editDistance('route', 'rotue')).toBe(1);
    expect(editDistance('', 'abc')).toBe(3);
  });

  it('is symmetric, zero for equals only, and stops at its limit', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '😀'), maxLength: 8 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(editDistance(b, a)).toBe(distance);
        expect(distance === 0).toBe(a === b);
        for (const limit of [0, 1, 2, 3]) expect(editDistance(a, b, limit)).toBe(Math.min(distance, limit + 1));
      }),
      { numRuns: 500 },
    );
  });
});

describe('did you mean', () => {
  it('finds the nearest word within a third of the longer one, rounded down, at least one edit', () => {
    expect(suggest('complexty', ['complexity', 'priority'])).toBe('complexity');
    expect(suggest('tier', ['tear', 'tire'])).toBe('tire');
    expect(suggest('abcdef', ['abcxyf'])).toBe('abcxyf');
    expect(suggest('abcdef', ['abxyzf'])).toBeUndefined();
    expect(suggest('teir', ['tier'])).toBe('tier');
  });

  it('suggests nothing where nothing is near, nor the word itself', () => {
    expect(suggest('banana', ['complexity'])).toBeUndefined();
    expect(suggest('to', ['to'])).toBeUndefined();
    expect(suggest('x', ['y'])).toBeUndefined();
  });

  it('prefers an earlier scope over a nearer word of a later one', () => {
    expect(suggest('regoin', ['regions'], ['region'])).toBe('regions');
    expect(suggest('regoin', ['zone'], ['region'])).toBe('region');
  });

  it('takes a word that differs only in case first', () => {
    expect(suggest('WHEN', ['wen', 'when'])).toBe('when');
  });
});
