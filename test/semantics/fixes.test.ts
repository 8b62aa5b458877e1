import { describe, expect, test } from 'vitest';
import { applyFixes, toJsonReport } from '../../packages/policy/src/index.ts';
import { compile, errors, tiers } from './support/bench.fixture.ts';

const a = tiers({ a: 1, b: 1, large: 1 });

describe('a fix that is offered makes the finding go', () => {
  test.each([
    ['route when complexty > 5 to tier "a"'],
    ['route when stream && turns > 5 to tier "a"'],
    ['route when stream || turns > 5 to tier "a"'],
    ['route when !stream to tier "a"'],
    ['route when turns = 5 to tier "a"'],
    ['route when prompt_tokens > 5m to tier "a"'],
    ['route when deadline > 90sec to tier "a"'],
    ['route when deadline > 5 s to tier "a"'],
    ['route when cluster.requests_per_second > 60/m to tier "a"'],
    ['route when cluster.saturation > 85 to tier "a"'],
    ['route when priority == "lwo" to tier "a"'],
    ['route when turns in 9..5 to tier "a"'],
    ['route when model in "m" to tier "a"'],
    ['route when header.x == "y" to tier "a"'],
    ['route when stream to teir "a"'],
    ['route when stream to tier "a" by queue_depth'],
    ['route when stream to tier "a" by throughput'],
    ['route when stream to tier "a" by least_tokens - prefix_cache'],
    ['route when stream to tier "a" by least_tokns'],
    ['route when stream to tier "a" by 5'],
    ['route when stream to tier "a" pick bst'],
    ['route when stream to tier "a" with timeout 5s and idle 4s'],
    ['route when stream to tier "a" with timeout 5s idle 4s'],
    ['route when stream to tier "a" with timeot 5s'],
    ['route when stream to tier "a" with fallback tier "b" (on: [conect])'],
    ['route when stream to 95% tier "a", tier "b"'],
    ['route when stream to tier "lage"'],
    ['route when stream tier "a"'],
    ['@ownr("x") route when stream to tier "a"'],
  ])('%s', (rule) => {
    const text = `${a}${rule}\ndefault reject`;
    const { diagnostics } = compile(text);
    const fixable = diagnostics.filter(({ fix }) => fix !== undefined);
    expect(fixable, JSON.stringify(diagnostics)).not.toEqual([]);
    const fixed = applyFixes(text, 'test.route', fixable);
    expect(errors(fixed.text), fixed.text).toEqual([]);
  });
});

test('lines and columns count from 1 in code points; a tab is one column, a BOM none; ends are exclusive', () => {
  const text = '\uFEFF# 😀\n\troute "😀" when complexty > 5 to any\ndefault reject';
  const { diagnostics, sources } = compile(text);
  const [place] = toJsonReport(diagnostics, sources).diagnostics;
  expect(place).toMatchObject({ start: { line: 2, column: 17 }, end: { line: 2, column: 26 } });
});
