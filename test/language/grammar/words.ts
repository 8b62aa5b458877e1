/*
 * A second reader of tokens, written from the reference alone, for the recogniser: it knows what is right and nothing of what is wrong.
 */

export interface Word {
  /** The word or sign itself for those of the grammar, else the kind of token in capitals. */
  readonly kind: string;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const RESERVED = new Set(
  (
    'language import as use define let group route default admit reject queue test given expect ensure always never when to where by ' +
    'then pick with else next and or not in matches contains exists true false'
  ).split(' '),
);

export const isReserved = (word: string): boolean => RESERVED.has(word);

const N = String.raw`\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?`;
const UNITS = 'us|ms|s|m|h|d|k|Ki|M|Mi|B|KB|MB|GB|KiB|MiB|GiB';
/** In the order in which they are tried. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ['', /[ \t\r\n]+|#[^\r\n]*/y],
  ['REGEX', /r"(?:\\[^\r\n]|[^"\\\r\n])*"(?!.?([ims])\1)[ims]*(?![A-Za-z0-9_])/y],
  ['WORD', /[A-Za-z_][A-Za-z0-9_]*/y],
  ['STRING', /"(?:[^"\\\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/uy],
  ['QUANTITY', new RegExp(`\\$${N}(?:/(?:s|min|h|d))?(?![A-Za-z0-9_])|${N}[kMB]?/(?:s|min|h|d)(?![A-Za-z0-9_])`, 'y')],
  ['PERCENT', new RegExp(`${N}%`, 'y')],
  ['QUANTITY', new RegExp(`${N}(?:${UNITS})(?![A-Za-z0-9_])`, 'y')],
  ['NUMBER', new RegExp(`${N}(?![A-Za-z0-9_]|\\.(?!\\.))`, 'y')],
  ['SIGN', /==|!=|<=|>=|\?\?|\.\.|[<>=+\-*/.,:@()[\]{}]/y],
];

/** The tokens of a text, or undefined where some character fits nowhere. A byte order mark in front is none. */
export function readWords(text: string): readonly Word[] | undefined {
  const words: Word[] = [];
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  while (at < text.length) {
    let found: Word | undefined;
    for (const [kind, pattern] of KINDS) {
      pattern.lastIndex = at;
      const image = pattern.exec(text)?.[0];
      if (image === undefined) continue;
      const word =
        kind === 'SIGN' || (kind === 'WORD' && RESERVED.has(image)) ? image : kind === 'WORD' ? 'IDENT' : kind;
      found = { kind: word, text: image, start: at, end: at + image.length };
      break;
    }
    if (found === undefined) return undefined;
    if (found.kind !== '') words.push(found);
    at = found.end;
  }
  return words;
}
