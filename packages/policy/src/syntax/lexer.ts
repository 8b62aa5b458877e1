import type { TokenType } from 'chevrotain';
import { createDiagnostic, type Diagnostic, type DiagnosticDetails } from '../diagnostics/diagnostic.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import type { CommentNode, LiteralNode } from './ast.ts';
import {
  asciiSkeleton,
  bidiControls,
  foreignQuotes,
  foreignSigns,
  foreignSpace,
  foreignWord,
  invisibles,
  mixedScriptWords,
} from './characters.ts';
import { readNumber } from './number-literal.ts';
import type { Span } from './span.ts';
import {
  endOf,
  False,
  Ident,
  keywordsByText,
  PercentLiteral,
  PlainNumber,
  Quantity,
  RegexLiteral,
  signsByText,
  StringLiteral,
  True,
  Unknown,
  type LexToken,
} from './token-types.ts';

export interface LexResult {
  /** Without white space and comments. */
  readonly tokens: readonly LexToken[];
  readonly comments: readonly CommentNode[];
  readonly diagnostics: readonly Diagnostic[];
  /** Where text was lost: a statement that holds one of these offsets cannot be read. Ascending. */
  readonly fatalOffsets: readonly number[];
}

const BOM = 0xfeff;
const stringPattern = /"(?:[^"\\\r\n]|\\[^\r\n])*"/y;
const regexPattern = /r"((?:[^"\\\r\n]|\\[^\r\n])*)"([A-Za-z]*)/y;
const wordPattern = /[A-Za-z_][A-Za-z0-9_]*/y;
const restOfLine = /[^\r\n]*/y;
const blockComment = /\/\*[\s\S]*?(?:\*\/|$)/y;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** Signs of other languages and what to write for them. Longest first. */
const foreignOperators: readonly (readonly [sign: string, meant: string])[] = [
  ['===', '=='],
  ['!==', '!='],
  ['&&', 'and'],
  ['||', 'or'],
  ['<>', '!='],
  ['=>', '>='],
  ['=<', '<='],
  ['->', 'to'],
  [':=', '='],
  ['&', 'and'],
  ['|', 'or'],
];

const signs: readonly string[] = [...signsByText.keys()].toSorted((a, b) => b.length - a.length);

/**
 * Turns text into tokens. Never throws and never stops early: what starts no token becomes an `Unknown` token with a finding,
 * and the spellings of other languages are read as what they mean, each with a finding and a fix.
 */
export const tokenize = (text: string, file: string): LexResult => {
  const tokens: LexToken[] = [];
  const comments: CommentNode[] = [];
  const diagnostics: Diagnostic[] = [];
  const fatalOffsets: number[] = [];
  const reportedNames = new Set<string>();
  const onlyAscii = !/[\u0080-\uFFFF]/.test(text);
  let position = text.charCodeAt(0) === BOM ? 1 : 0;
  let lineStart = true;

  const span = (start: number, end: number): Span => ({ file, start, end });
  const report = (
    code: DiagnosticCode,
    start: number,
    end: number,
    message: string,
    details?: DiagnosticDetails,
  ): void => {
    diagnostics.push(createDiagnostic(code, span(start, end), message, details));
  };
  const replace = (start: number, end: number, by: string, message: string): DiagnosticDetails => ({
    fix: { message, edits: [{ span: span(start, end), text: by }] },
  });
  const match = (pattern: RegExp, at: number): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };

  const push = (
    type: TokenType,
    start: number,
    end: number,
    more: { readonly literal?: LiteralNode; readonly ascii?: string } = {},
  ): void => {
    tokens.push({
      image: text.slice(start, end),
      startOffset: start,
      endOffset: end - 1,
      tokenType: type,
      tokenTypeIdx: type.tokenTypeIdx ?? 0,
      lineStart,
      ...more,
    });
    lineStart = false;
    position = end;
  };

  const checkHidden = (start: number, end: number): void => {
    if (onlyAscii) return;
    for (const found of text.slice(start, end).matchAll(bidiControls)) {
      const at = start + found.index;
      const code = found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
      report('E0112', at, at + found[0].length, `bidirectional control character U+${code}`, {
        help: 'it changes the order in which the text is shown, so that a reader sees another policy',
        ...replace(at, at + found[0].length, '', 'remove it'),
      });
    }
  };

  const checkStringContent = (start: number, end: number): void => {
    if (onlyAscii) return;
    const content = text.slice(start, end);
    checkHidden(start, end);
    for (const found of content.matchAll(invisibles)) {
      const code = found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
      const at = start + found.index;
      report('W0518', at, at + found[0].length, `invisible character U+${code} in a string`, {
        help: `if it is meant, write it as \`\\u${code}\``,
      });
    }
    for (const { word, offset } of mixedScriptWords(content)) {
      report(
        'W0510',
        start + offset,
        start + offset + word.length,
        `\`${word}\` mixes scripts whose letters look alike`,
        {
          help: 'it is not equal to the word that it resembles',
        },
      );
    }
  };

  const addComment = (start: number, end: number): void => {
    const kept = text.slice(start, end).trimEnd();
    comments.push({ kind: 'comment', span: span(start, start + kept.length), text: kept, doc: kept.startsWith('##') });
    checkHidden(start, end);
    position = end;
  };

  const decode = (start: number, end: number): string => {
    const content = text.slice(start, end);
    if (!/[\\\p{Cc}]/u.test(content)) return content;
    let value = '';
    let index = 0;
    while (index < content.length) {
      const unit = content[index] ?? '';
      if (unit < ' ' && unit !== '\t') {
        const escaped = `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
        report('E0103', start + index, start + index + 1, 'control character in a string', {
          ...replace(start + index, start + index + 1, escaped, `write it as \`${escaped}\``),
        });
      }
      if (unit !== '\\') {
        value += unit;
        index += 1;
        continue;
      }
      const next = content[index + 1] ?? '';
      const hex = /^[0-9A-Fa-f]{4}/.exec(content.slice(index + 2, index + 6))?.[0];
      if (next === 'u' && hex !== undefined) {
        value += String.fromCharCode(Number.parseInt(hex, 16));
        index += 6;
      } else {
        const escape = Object.hasOwn(escapes, next) ? escapes[next] : undefined;
        if (escape === undefined) {
          const shown = `\\${next}`;
          report('E0103', start + index, start + index + 2, `unknown escape \`${shown}\` in a string`, {
            help: next === 'u' ? '`\\u` takes four hexadecimal digits' : 'a backslash itself is written `\\\\`',
            ...(next === 'u' ? {} : replace(start + index, start + index + 1, '\\\\', 'double the backslash')),
          });
        }
        value += escape ?? next;
        index += 2;
      }
    }
    if (!value.isWellFormed() && content.isWellFormed()) {
      report('E0103', start, end, 'an escape gives half of a surrogate pair', {
        help: 'characters beyond U+FFFF take two escapes, such as `\\ud83d\\ude00`',
      });
    }
    return value;
  };

  /** The string that swallowed the start of another: on this line, with a word right behind its closing quote. */
  const misplacedString = (before: number): LexToken | undefined => {
    let after = before;
    for (let index = tokens.length - 1; index >= 0; index -= 1) {
      const token = tokens[index];
      if (token === undefined || /[\r\n]/.test(text.slice(endOf(token), after))) return undefined;
      after = token.startOffset;
      if (token.tokenType === StringLiteral && /[A-Za-z0-9_]/.test(text[endOf(token)] ?? '')) return token;
    }
    return undefined;
  };

  const readString = (): void => {
    const start = position;
    const found = match(stringPattern, start);
    if (found !== null) {
      const end = start + found[0].length;
      const value = decode(start + 1, end - 1);
      checkStringContent(start + 1, end - 1);
      push(StringLiteral, start, end, { literal: { kind: 'string', span: span(start, end), value, raw: found[0] } });
      return;
    }
    const end = start + (match(restOfLine, start)?.[0] ?? '').trimEnd().length;
    const culprit = misplacedString(start);
    const [from, to] = culprit === undefined ? [start, end] : [culprit.startOffset, endOf(culprit)];
    report('E0102', from, to, 'this string has no end', {
      help: 'a string ends with `"` on the line on which it begins',
    });
    fatalOffsets.push(start);
    const raw = text.slice(start, end);
    push(StringLiteral, start, end, { literal: { kind: 'string', span: span(start, end), value: raw.slice(1), raw } });
  };

  const readForeignString = (closers: string): void => {
    const start = position;
    let close = start + 1;
    while (close < text.length && !/[\r\n]/.test(text[close] ?? '') && !closers.includes(text[close] ?? '')) close += 1;
    if (!closers.includes(text[close] ?? '\n')) {
      report('E0101', start, start + 1, `unexpected \`${text[start] ?? ''}\``, {
        help: 'strings stand in double quotes',
      });
      fatalOffsets.push(start);
      push(Unknown, start, start + 1);
      return;
    }
    const end = close + 1;
    const value = text.slice(start + 1, close);
    report('E0108', start, end, 'strings stand in double quotes', {
      ...replace(start, end, JSON.stringify(value), 'use double quotes'),
    });
    checkStringContent(start + 1, end - 1);
    push(StringLiteral, start, end, {
      literal: { kind: 'string', span: span(start, end), value, raw: text.slice(start, end) },
    });
  };

  const readRegex = (): void => {
    const start = position;
    const found = match(regexPattern, start);
    if (found === null) {
      const end = start + (match(restOfLine, start)?.[0] ?? '').trimEnd().length;
      report('E0114', start, end, 'this regular expression has no end', {
        help: 'it ends with `"` on the line on which it begins',
      });
      fatalOffsets.push(start);
      const raw = text.slice(start, end);
      push(RegexLiteral, start, end, {
        literal: { kind: 'regex', span: span(start, end), source: '', flags: '', raw },
      });
      return;
    }
    const [raw, body = '', written = ''] = found;
    const end = start + raw.length;
    const flags = [...new Set(written)].filter((flag) => 'ims'.includes(flag)).join('');
    if (flags !== written) {
      report('E0114', end - written.length, end, `unknown or repeated flag in \`${written}\``, {
        help: 'the flags are `i` (ignore case), `m` (`^` and `$` at line breaks) and `s` (`.` matches line breaks)',
      });
    }
    checkStringContent(start + 2, start + 2 + body.length);
    const source = body.replaceAll(/\\([\s\S])/g, (pair: string, escaped: string) => (escaped === '"' ? '"' : pair));
    push(RegexLiteral, start, end, { literal: { kind: 'regex', span: span(start, end), source, flags, raw } });
  };

  const numberTypes = { number: PlainNumber, percent: PercentLiteral } as const;

  const readNumberHere = (): void => {
    const start = position;
    const { length, literal, problem } = readNumber(text, start, file);
    if (problem !== undefined) {
      const { code, from, to, message, help, fix } = problem;
      report(code, from, to, message, {
        ...(help === undefined ? {} : { help }),
        ...(fix === undefined ? {} : replace(from, to, fix, `write \`${fix}\``)),
      });
    }
    const type = literal.kind === 'number' || literal.kind === 'percent' ? numberTypes[literal.kind] : Quantity;
    push(type, start, start + length, { literal });
  };

  const readForeignName = (start: number): void => {
    foreignWord.lastIndex = start;
    const word = foreignWord.exec(text)?.[0] ?? '';
    const end = start + word.length;
    const ascii = asciiSkeleton(word);
    if (!reportedNames.has(word)) {
      reportedNames.add(word);
      const shown = word.length > 40 ? `${word.slice(0, 37)}…` : word;
      report('E0111', start, end, `the name \`${shown}\` holds letters outside ASCII`, {
        help: ascii === undefined ? 'names consist of A to Z, digits and `_`' : `it looks like \`${ascii}\` and is not`,
        ...(ascii === undefined ? {} : replace(start, end, ascii, `write \`${ascii}\` in ASCII`)),
      });
    }
    const keyword = ascii === undefined ? undefined : keywordsByText.get(ascii);
    push(keyword ?? Ident, start, end, ascii === undefined ? {} : { ascii });
  };

  const readWord = (): void => {
    const start = position;
    const word = match(wordPattern, start)?.[0] ?? '';
    const end = start + word.length;
    if (
      !onlyAscii &&
      text.charCodeAt(end) > 0x7f &&
      /[\p{L}\p{M}\p{N}]/u.test(String.fromCodePoint(text.codePointAt(end) ?? 0))
    ) {
      readForeignName(start);
      return;
    }
    const type = keywordsByText.get(word) ?? Ident;
    if (type === True || type === False) {
      push(type, start, end, { literal: { kind: 'bool', span: span(start, end), value: type === True, raw: word } });
    } else push(type, start, end);
  };

  const pushMeant = (meant: string, start: number, end: number): void => {
    const type = signsByText.get(meant) ?? keywordsByText.get(meant) ?? Unknown;
    push(type, start, end);
  };

  const readForeignOperator = (): boolean => {
    const start = position;
    if (!'=!&|<>-:'.includes(text[start] ?? '')) return false;
    for (const [sign, meant] of foreignOperators) {
      if (!text.startsWith(sign, start)) continue;
      const end = start + sign.length;
      report('E0108', start, end, `\`${sign}\` is written \`${meant}\` here`, {
        ...replace(start, end, meant, `write \`${meant}\``),
      });
      pushMeant(meant, start, end);
      return true;
    }
    if (text[start] === '!' && text[start + 1] !== '=') {
      report('E0108', start, start + 1, '`!` is written `not` here', {
        ...replace(start, start + 1, /\s/.test(text[start + 1] ?? ' ') ? 'not' : 'not ', 'write `not`'),
      });
      pushMeant('not', start, start + 1);
      return true;
    }
    return false;
  };

  const readUnknown = (): void => {
    const start = position;
    const length = (text.codePointAt(start) ?? 0) > 0xffff ? 2 : 1;
    const shown = text.slice(start, start + length);
    const printable = /[\p{C}\p{Z}]/u.test(shown)
      ? `U+${(text.codePointAt(start) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
      : `\`${shown}\``;
    const details = shown === '\\' ? { help: 'a statement may go on on the next line without a sign' } : {};
    report('E0101', start, start + length, `unexpected character ${printable}`, details);
    fatalOffsets.push(start);
    push(Unknown, start, start + length);
  };

  const readForeign = (): void => {
    const start = position;
    foreignSpace.lastIndex = start;
    const space = foreignSpace.exec(text)?.[0];
    const character = String.fromCodePoint(text.codePointAt(start) ?? 0);
    const meant = foreignSigns.get(character);
    const closers = foreignQuotes.get(character);
    if (bidiControls.test(character)) {
      bidiControls.lastIndex = 0;
      let end = start + 1;
      while (/[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/.test(text[end] ?? '')) end += 1;
      checkHidden(start, end);
      position = end;
    } else if (space !== undefined) {
      const visible = /[\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]/.test(space);
      const code = (text.charCodeAt(start) || 0).toString(16).toUpperCase().padStart(4, '0');
      report('E0113', start, start + space.length, `invisible character U+${code} outside a string`, {
        ...replace(start, start + space.length, visible ? ' ' : '', visible ? 'use a plain space' : 'remove it'),
      });
      position = start + space.length;
    } else if (closers !== undefined) readForeignString(closers);
    else if (meant !== undefined) {
      report('E0108', start, start + character.length, `\`${character}\` is written \`${meant}\` here`, {
        ...replace(start, start + character.length, meant, `write \`${meant}\``),
      });
      pushMeant(meant, start, start + character.length);
    } else if (/[\p{L}\p{M}\p{N}]/u.test(character)) readForeignName(start);
    else readUnknown();
  };

  const readSlashes = (): boolean => {
    const start = position;
    const opener = text.slice(start, start + 2);
    if (opener === '//') {
      const end = start + (match(restOfLine, start)?.[0].length ?? 2);
      report('E0108', start, start + 2, 'comments begin with `#`', { ...replace(start, start + 2, '#', 'use `#`') });
      addComment(start, end);
      return true;
    }
    if (opener === '/*') {
      const end = start + (match(blockComment, start)?.[0].length ?? 2);
      report('E0108', start, start + 2, 'comments begin with `#` and end with the line', {
        help: 'begin each line of the comment with `#`',
      });
      addComment(start, end);
      return true;
    }
    return false;
  };

  while (position < text.length) {
    const unit = text.charCodeAt(position);
    const character = text[position] ?? '';
    if (unit === 32 || unit === 9) position += 1;
    else if (unit === 10 || unit === 13) {
      lineStart = true;
      position += 1;
    } else if (character === '#') addComment(position, position + (match(restOfLine, position)?.[0].length ?? 1));
    else if (character === '"') readString();
    else if (character === 'r' && text[position + 1] === '"') readRegex();
    else if ((unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90) || unit === 95) readWord();
    else if (
      (unit >= 48 && unit <= 57) ||
      (character === '$' && !/[A-Za-z_{]/.test(text[position + 1] ?? '')) ||
      (character === '.' && /[0-9]/.test(text[position + 1] ?? ''))
    ) {
      readNumberHere();
    } else if (unit > 0x7f) readForeign();
    else if (character === "'" || character === '`') readForeignString(character);
    else if (character === '$') {
      const length = text[position + 1] === '{' ? 2 : 1;
      report('E0108', position, position + length, 'names are written without `$` here', {
        ...(length === 1 ? replace(position, position + 1, '', 'remove it') : { help: 'write the name alone' }),
      });
      if (length === 1) position += 1;
      else {
        fatalOffsets.push(position);
        push(Unknown, position, position + length);
      }
    } else if (character === ';') {
      report('E0108', position, position + 1, 'statements need no `;`', {
        ...replace(position, position + 1, '', 'remove it'),
      });
      position += 1;
    } else if (!(character === '/' && readSlashes()) && !readForeignOperator()) {
      const sign = signs.find((candidate) => text.startsWith(candidate, position));
      if (sign === undefined) readUnknown();
      else pushMeant(sign, position, position + sign.length);
    }
  }
  return { tokens, comments, diagnostics, fatalOffsets };
};
