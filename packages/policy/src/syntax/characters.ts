/*
 * Characters that deceive the eye. Bidirectional controls: Unicode UAX 9, "Trojan Source" (CVE-2021-42574). Look-alikes: the
 * letters of Cyrillic and Greek whose skeleton in Unicode UTS 39 is a single ASCII letter.
 */

/** Runs of characters that reorder the text around them. */
export const bidiControls: RegExp = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]+/g;

/** Characters without a visible form that join or split nothing in a string. ZWJ and ZWNJ are left out: emoji use them. */
export const invisibles: RegExp = /[\u00AD\u180E\u200B\u2060\uFEFF]+/g;

/** A white space or invisible character other than those of the grammar. */
export const foreignSpace: RegExp =
  /[\u00A0\u00AD\u1680\u180E\u2000-\u200D\u2028\u2029\u202F\u205F\u2060\u3000\uFEFF]+/y;

export const foreignWord: RegExp = /[\p{L}\p{M}\p{N}_]+/uy;

const lookAlikes: ReadonlyMap<string, string> = new Map(
  [
    ['аеорсухіјѕһԁԛԝ', 'aeopcyxijshdqw'],
    ['АВЕКМНОРСТХУІЈЅ', 'ABEKMHOPCTXYIJS'],
    ['οναιρυ', 'ovaipu'],
    ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ', 'ABEZHIKMNOPTYX'],
  ].flatMap(([foreign = '', ascii = '']) => [...foreign].map((letter, index) => [letter, ascii[index] ?? ''] as const)),
);

/** The word with look-alike letters replaced by the ASCII letters they imitate, or undefined if other letters remain. */
export const asciiSkeleton = (word: string): string | undefined => {
  const skeleton = [...word.normalize('NFKC')].map((letter) => lookAlikes.get(letter) ?? letter).join('');
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(skeleton) ? skeleton : undefined;
};

/** Signs of typography and of other scripts, and the sign of the grammar that is meant. */
export const foreignSigns: ReadonlyMap<string, string> = new Map([
  ['≥', '>='],
  ['≤', '<='],
  ['≠', '!='],
  ['＝', '=='],
  ['×', '*'],
  ['÷', '/'],
  ['−', '-'],
  ['–', '-'],
  ['—', '-'],
  ['…', '..'],
  ['，', ','],
  ['：', ':'],
  ['（', '('],
  ['）', ')'],
  ['［', '['],
  ['］', ']'],
  ['｛', '{'],
  ['｝', '}'],
  ['＜', '<'],
  ['＞', '>'],
  ['∧', 'and'],
  ['∨', 'or'],
  ['¬', 'not'],
  ['∈', 'in'],
  ['＠', '@'],
]);

/** Quotation marks other than `"`, each with those that may close it. */
export const foreignQuotes: ReadonlyMap<string, string> = new Map([
  ["'", "'"],
  ['`', '`'],
  ['\u201C', '\u201D\u201C"'],
  ['\u201D', '\u201D"'],
  ['\u201E', '\u201C\u201D"'],
  ['\u2018', '\u2019\u2018'],
  ['\u2019', '\u2019'],
  ['«', '»'],
  ['»', '«'],
  ['＂', '＂'],
]);

const latin = /\p{Script=Latin}/u;
const latinLike = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;

/** The words of a text that mix Latin letters with those of a script that has look-alikes of them, with their offsets. */
export const mixedScriptWords = (text: string): readonly { readonly word: string; readonly offset: number }[] =>
  [...text.matchAll(/[\p{L}\p{M}]+/gu)]
    .filter(([word]) => latin.test(word) && latinLike.test(word))
    .map((match) => ({ word: match[0], offset: match.index }));
