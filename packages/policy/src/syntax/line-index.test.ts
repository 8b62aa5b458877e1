import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineIndex } from './line-index.ts';

describe('line index', () => {
  it('counts lines at LF, CRLF and lone CR, columns in code points, tabs as one', () => {
    const text = 'a\r\n\tb😀漢c\rd\n\nlast';
    const index = createLineIndex(text);
    expect(index.lineCount).toBe(5);
    expect(index.positionAt(text.indexOf('b'))).toEqual({ line: 2, column: 2 });
    expect(index.positionAt(text.indexOf('漢'))).toEqual({ line: 2, column: 4 });
    expect(index.positionAt(text.indexOf('c'))).toEqual({ line: 2, column: 5 });
    expect(index.positionAt(text.indexOf('d'))).toEqual({ line: 3, column: 1 });
    expect(index.positionAt(text.length)).toEqual({ line: 5, column: 5 });
    expect(index.lineText(2)).toBe('\tb😀漢c');
    expect(index.lineText(4)).toBe('');
  });

  it('does not count a byte order mark', () => {
    const index = createLineIndex('\uFEFFroute');
    expect(index.positionAt(1)).toEqual({ line: 1, column: 1 });
    expect(index.lineText(1)).toBe('route');
    expect(index.offsetAt({ line: 1, column: 1 })).toBe(1);
  });

  it('clamps offsets into the text', () => {
    const index = createLineIndex('ab');
    expect(index.positionAt(-5)).toEqual({ line: 1, column: 1 });
    expect(index.positionAt(99)).toEqual({ line: 1, column: 3 });
  });

  it('goes from offset to position and back, for every offset between characters of a line', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\n', '\r\n', '\t', '😀', '漢', 'é') });
    fc.assert(
      fc.property(text, (sample) => {
        const index = createLineIndex(sample);
        const offsets = [...sample].map((_, at, all) => all.slice(0, at).join('').length);
        const between = offsets.filter((offset) => sample.slice(offset - 1, offset + 1) !== '\r\n');
        expect(between.map((offset) => index.offsetAt(index.positionAt(offset)))).toEqual(between);
      }),
    );
  });
});

it('columns count code points wherever an offset stands, as counting one by one does', () => {
  const text = '\uFEFFa😀b\n漢😀😀x\r\n\uD83Dy\uDE00z😀';
  const index = createLineIndex(text);
  const counted = (offset: number): number => {
    const { line } = index.positionAt(offset);
    let at = line === 1 ? 1 : index.lineStart(line);
    let column = 1;
    for (; at < offset; column += 1) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
    return column;
  };
  const offsets = Array.from({ length: text.length + 1 }, (_, offset) => offset);
  expect(offsets.map((offset) => index.positionAt(offset).column)).toEqual(offsets.map(counted));
});
