/*
 * Columns of a terminal, after Unicode UAX 11 (East Asian Width) and UTS 51 (emoji): wide characters and emoji take two,
 * combining marks none.
 */

const wide =
  /^(?:[\u1100-\u115F\u2E80-\u303E\u3041-\u33FF\u3400-\u4DBF\u4E00-\u9FFF\uA000-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6]|[\u{1B000}-\u{1B16F}\u{1F200}-\u{1F2FF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F)/u;
const combining = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

export const tabWidth = 4;

/** Characters that a terminal would obey rather than show, and those that reorder what it shows. */
const unsafe = /(?!\t)[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu;

/** The text with every control character replaced by U+FFFD, one for one; tabs stay. */
export const withoutControls = (text: string): string => text.replaceAll(unsafe, '\uFFFD');

/** Columns that a text takes on a terminal; a tab counts as four. */
export const displayWidth = (text: string): number => {
  if (/^[\x20-\x7E]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)) {
    if (segment === '\t') width += tabWidth;
    else if (!combining.test(segment)) width += wide.test(segment) ? 2 : 1;
  }
  return width;
};
