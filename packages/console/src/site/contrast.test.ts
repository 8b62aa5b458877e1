import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const css = readFileSync(new URL('../../static/playground.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = [...css.matchAll(/:root\s*\{([^}]*)\}/g)].map(([, block]) => block ?? '');

function colours(block: string): { readonly [name: string]: string } {
  return Object.fromEntries(
    [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})\b/g)].map(([, name = '', value = '']) => [name, value]),
  );
}

/** Relative luminance, WCAG 2.2. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const TEXTS = ['ink', 'muted', 'faint-text', 'accent', 'good', 'bad', 'warn'];

test.each([
  ['light', colours(light)],
  ['dark', colours(dark)],
])('every text of the %s theme stands out from what is behind it by 4.5 to 1 (WCAG AA)', (_name, theme) => {
  const code = Object.keys(theme).filter((name) => name.startsWith('code-'));
  expect(code.length).toBeGreaterThan(6);
  const pairs = [
    ...[...TEXTS, ...code].map((text) => [text, 'panel'] as const),
    ...['ink', 'muted'].flatMap((text) =>
      ['page', 'raised', 'good-tint', 'bad-tint', 'warn-tint'].map((back) => [text, back] as const),
    ),
    ['on-accent', 'accent'] as const,
    ['good', 'good-tint'] as const,
    ['bad', 'bad-tint'] as const,
    ['warn', 'warn-tint'] as const,
  ];
  const weak = pairs.flatMap(([text, back]) => {
    const ratio = contrast(theme[text] ?? '', theme[back] ?? '');
    return ratio >= 4.5 ? [] : [`${text} on ${back}: ${ratio.toFixed(2)}`];
  });
  expect(weak).toEqual([]);
});
