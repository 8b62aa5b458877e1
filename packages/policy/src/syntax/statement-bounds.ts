import type { TokenType } from 'chevrotain';
import { suggest } from '../diagnostics/suggest.ts';
import { foreignStatements } from './foreign-words.ts';
import * as t from './token-types.ts';
import type { LexToken } from './token-types.ts';

/*
 * Where statements begin. Every statement begins with a reserved word, and in a valid file those words stand nowhere else,
 * apart from the places told here (outcomes, verdicts, keys). So the file is cut first and each piece parsed by itself.
 */

const statementTypes: ReadonlySet<TokenType> = new Set(t.statementTypes);
const outcomeIntroducers: ReadonlySet<TokenType> = new Set([t.Expect, t.Always, t.Never]);
/** Words after which a statement cannot end, so that what follows on the same line belongs to it. */
const incomplete: ReadonlySet<TokenType> = new Set([
  t.As,
  t.Let,
  t.Define,
  t.Import,
  t.Use,
  t.Group,
  t.Test,
  t.Ensure,
  t.When,
  t.To,
  t.Where,
  t.By,
  t.Then,
  t.Pick,
  t.With,
  t.Else,
  t.And,
  t.Or,
  t.Not,
  t.In,
  t.Matches,
  t.Contains,
  t.Given,
  t.Comma,
  t.Assign,
  t.Plus,
  t.Minus,
  t.Star,
  t.Slash,
  t.Fallback,
  t.Range,
  t.Equal,
  t.NotEqual,
  t.Less,
  t.LessEqual,
  t.Greater,
  t.GreaterEqual,
]);
const verbs: ReadonlySet<TokenType> = new Set([t.Admit, t.Reject, t.Queue]);
const openers: ReadonlySet<TokenType> = new Set([t.LParen, t.LSquare]);
const closers: ReadonlySet<TokenType> = new Set([t.RParen, t.RSquare]);

export const isStatementWord = (token: LexToken | undefined): boolean =>
  token !== undefined && statementTypes.has(token.tokenType);

/** The word stands where the grammar allows it inside another statement. */
const isInside = (tokens: readonly LexToken[], index: number): boolean => {
  const type = tokens[index]?.tokenType;
  const before = tokens[index - 1]?.tokenType;
  const after = tokens[index + 1]?.tokenType;
  if (before === t.Dot || after === t.Colon) return true;
  if (before === undefined || type === undefined) return false;
  if (tokens[index]?.lineStart === false && incomplete.has(before) && tokens[index - 2]?.tokenType !== t.Dot)
    return true;
  const isVerb = verbs.has(type);
  if (isVerb && before === t.Else) return true;
  // After `always default` the next statement may begin.
  if (isVerb && before === t.Default && !isInside(tokens, index - 1)) return true;
  if (!isVerb && type !== t.Route && type !== t.Default) return false;
  if (outcomeIntroducers.has(before)) return true;
  return before === t.Not && tokens[index - 2]?.tokenType === t.Expect;
};

/** Indices of the tokens with which the statements of a file begin; an annotation begins one too. Always starts with 0. */
export const statementStarts = (tokens: readonly LexToken[]): readonly number[] => {
  const starts = [0];
  // Parentheses and square brackets open since the innermost brace, and around it.
  let depth = 0;
  const around: number[] = [];
  for (const [index, token] of tokens.entries()) {
    const type = token.tokenType;
    if (openers.has(type)) depth += 1;
    else if (closers.has(type)) depth = Math.max(0, depth - 1);
    else if (type === t.LCurly) {
      around.push(depth);
      depth = 0;
    } else if (type === t.RCurly) depth = around.pop() ?? 0;
    const begins =
      (type === t.At && (depth === 0 || token.lineStart)) ||
      (statementTypes.has(type) && (depth === 0 || token.lineStart) && !isInside(tokens, index));
    if (begins) {
      depth = 0;
      if (index > 0) starts.push(index);
    }
  }
  return starts;
};

/**
 * Whether the statement word at `index`, in mid-line, stands behind a misspelled word that takes it in: `flse reject`, `expct route "x"`.
 * To be asked only where the text does not parse as it stands.
 */
export const isTakenIn = (tokens: readonly LexToken[], index: number): boolean => {
  const before = tokens[index - 1];
  const type = tokens[index]?.tokenType;
  if (before?.tokenType !== t.Ident || type === undefined || before.image.length < 3) return false;
  const words = [
    ...(verbs.has(type) ? ['else'] : []),
    ...(verbs.has(type) || type === t.Route || type === t.Default ? ['expect', 'always', 'never'] : []),
  ];
  return suggest(before.image, words) !== undefined;
};

const label: readonly TokenType[] = [t.StringLiteral];
const clauses: readonly TokenType[] = [t.StringLiteral, t.When, t.By, t.With];

/** What may follow each statement word; a misspelled one is believed only if this fits. */
const followers: ReadonlyMap<string, readonly TokenType[]> = new Map([
  ['language', [t.PlainNumber]],
  ['import', label],
  ['use', label],
  ['define', [t.Ident]],
  ['let', [t.Ident]],
  ['group', label],
  ['route', [t.StringLiteral, t.When, t.To]],
  ['default', [t.To, t.Admit, t.Reject, t.Queue]],
  ['admit', clauses],
  ['reject', clauses],
  ['queue', clauses],
  ['test', label],
  ['ensure', label],
]);

/** The statement word that a misspelled one, or one of another language, stands for, judged also by what follows. */
export const statementWordMeant = (token: LexToken, after: LexToken | undefined): string | undefined => {
  const fitting = t.statementWords.filter(
    (word) => after !== undefined && (followers.get(word) ?? []).includes(after.tokenType),
  );
  const foreign = foreignStatements.get(token.image)?.write;
  return foreign !== undefined && fitting.includes(foreign) ? foreign : suggest(token.image, fitting);
};

/** Whether a `let` begins here whose word is lost: `long = prompt_tokens > 32k`. */
export const isBareLet = (tokens: readonly LexToken[], index: number): boolean =>
  tokens[index]?.tokenType === t.Ident && tokens[index + 1]?.tokenType === t.Assign;

/** Whether a definition begins here whose `define` is lost: `tier "70B" { … }`. */
export const isBareDefinition = (tokens: readonly LexToken[], index: number): boolean => {
  const token = tokens[index];
  const after = tokens[index + 1];
  if (token?.tokenType !== t.Ident || statementWordMeant(token, after) !== undefined) return false;
  const brace = after?.tokenType === t.StringLiteral ? index + 2 : index + 1;
  const [open, key, colon] = tokens.slice(brace, brace + 3);
  return (
    open?.tokenType === t.LCurly &&
    (key?.tokenType === t.RCurly || colon?.tokenType === t.Colon || after?.tokenType === t.StringLiteral)
  );
};

/**
 * Inside a piece that does not parse: indices of words at the start of a line, outside brackets, that look like misspelled
 * statement words. `from` itself is not among them.
 */
export const misspelledStarts = (tokens: readonly LexToken[], from: number, to: number): readonly number[] => {
  const found: number[] = [];
  let depth = 0;
  for (let index = from; index < to; index += 1) {
    const token = tokens[index];
    if (token === undefined) break;
    const type = token.tokenType;
    if (openers.has(type) || type === t.LCurly) depth += 1;
    else if (closers.has(type) || type === t.RCurly) depth = Math.max(0, depth - 1);
    else if (
      index > from &&
      depth === 0 &&
      token.lineStart &&
      type === t.Ident &&
      (statementWordMeant(token, tokens[index + 1]) !== undefined ||
        (isBareLet(tokens, index) && !incomplete.has(tokens[index - 1]?.tokenType ?? type)))
    ) {
      found.push(index);
    }
  }
  return found;
};
