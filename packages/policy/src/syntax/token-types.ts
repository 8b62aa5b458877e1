import { createToken, Lexer, type IToken, type TokenType } from 'chevrotain';
import type { LiteralNode } from './ast.ts';

/** A token as the scanner makes it. `endOffset` is the last character, as the parser library wants it. */
export interface LexToken extends IToken {
  /** The first token of its line. */
  readonly lineStart: boolean;
  /** For literals, the finished node. */
  readonly literal?: LiteralNode;
  /** For names that hold look-alike letters, the name in ASCII. */
  readonly ascii?: string;
}

/** Offset just after the token. */
export const endOf = (token: IToken): number => (token.endOffset ?? token.startOffset) + 1;

const abstract = (name: string, ...categories: TokenType[]): TokenType =>
  createToken({ name, pattern: Lexer.NA, categories });

/** Any word: a name of the user or a word of the grammar. */
export const Word: TokenType = abstract('Word');
export const Literal: TokenType = abstract('Literal');
export const Comparison: TokenType = abstract('Comparison');
/** `admit`, `reject`, `queue`. */
export const VerbWord: TokenType = abstract('VerbWord');

export const Ident: TokenType = abstract('Ident', Word);

const keyword = (word: string, ...categories: TokenType[]): TokenType => abstract(word, Word, ...categories);

export const Language: TokenType = keyword('language');
export const Import: TokenType = keyword('import');
export const As: TokenType = keyword('as');
export const Use: TokenType = keyword('use');
export const Define: TokenType = keyword('define');
export const Let: TokenType = keyword('let');
export const Group: TokenType = keyword('group');
export const Route: TokenType = keyword('route');
export const Default: TokenType = keyword('default');
export const Admit: TokenType = keyword('admit', VerbWord);
export const Reject: TokenType = keyword('reject', VerbWord);
export const Queue: TokenType = keyword('queue', VerbWord);
export const Test: TokenType = keyword('test');
export const Given: TokenType = keyword('given');
export const Expect: TokenType = keyword('expect');
export const Ensure: TokenType = keyword('ensure');
export const Always: TokenType = keyword('always');
export const Never: TokenType = keyword('never');
export const When: TokenType = keyword('when');
export const To: TokenType = keyword('to');
export const Where: TokenType = keyword('where');
export const By: TokenType = keyword('by');
export const Then: TokenType = keyword('then');
export const Pick: TokenType = keyword('pick');
export const With: TokenType = keyword('with');
export const Else: TokenType = keyword('else');
export const Next: TokenType = keyword('next');
export const And: TokenType = keyword('and');
export const Or: TokenType = keyword('or');
export const Not: TokenType = keyword('not');
export const In: TokenType = keyword('in');
export const Matches: TokenType = keyword('matches');
export const Contains: TokenType = keyword('contains');
export const Exists: TokenType = keyword('exists');
export const True: TokenType = keyword('true', Literal);
export const False: TokenType = keyword('false', Literal);

export const StringLiteral: TokenType = abstract('StringLiteral', Literal);
export const RegexLiteral: TokenType = abstract('RegexLiteral', Literal);
export const PlainNumber: TokenType = abstract('PlainNumber', Literal);
export const PercentLiteral: TokenType = abstract('PercentLiteral', Literal);
/** Durations, counts, sizes, rates and money: one type, as no rule of the grammar tells them apart. */
export const Quantity: TokenType = abstract('Quantity', Literal);

const comparison = (sign: string): TokenType => abstract(sign, Comparison);

export const Equal: TokenType = comparison('==');
export const NotEqual: TokenType = comparison('!=');
export const LessEqual: TokenType = comparison('<=');
export const GreaterEqual: TokenType = comparison('>=');
export const Less: TokenType = comparison('<');
export const Greater: TokenType = comparison('>');
export const Assign: TokenType = abstract('=');
export const Plus: TokenType = abstract('+');
export const Minus: TokenType = abstract('-');
export const Star: TokenType = abstract('*');
export const Slash: TokenType = abstract('/');
export const Fallback: TokenType = abstract('??');
export const Range: TokenType = abstract('..');
export const Dot: TokenType = abstract('.');
export const Comma: TokenType = abstract(',');
export const Colon: TokenType = abstract(':');
export const At: TokenType = abstract('@');
export const LParen: TokenType = abstract('(');
export const RParen: TokenType = abstract(')');
export const LSquare: TokenType = abstract('[');
export const RSquare: TokenType = abstract(']');
export const LCurly: TokenType = abstract('{');
export const RCurly: TokenType = abstract('}');
/** A character that starts nothing; its finding is already made. */
export const Unknown: TokenType = abstract('Unknown');

const keywordTypes: readonly TokenType[] = [
  Language,
  Import,
  As,
  Use,
  Define,
  Let,
  Group,
  Route,
  Default,
  Admit,
  Reject,
  Queue,
  Test,
  Given,
  Expect,
  Ensure,
  Always,
  Never,
  When,
  To,
  Where,
  By,
  Then,
  Pick,
  With,
  Else,
  Next,
  And,
  Or,
  Not,
  In,
  Matches,
  Contains,
  Exists,
  True,
  False,
];

const signTypes: readonly TokenType[] = [
  Equal,
  NotEqual,
  LessEqual,
  GreaterEqual,
  Less,
  Greater,
  Assign,
  Plus,
  Minus,
  Star,
  Slash,
  Fallback,
  Range,
  Dot,
  Comma,
  Colon,
  At,
  LParen,
  RParen,
  LSquare,
  RSquare,
  LCurly,
  RCurly,
];

export const allTokenTypes: readonly TokenType[] = [
  Word,
  Literal,
  Comparison,
  VerbWord,
  Ident,
  ...keywordTypes,
  StringLiteral,
  RegexLiteral,
  PlainNumber,
  PercentLiteral,
  Quantity,
  ...signTypes,
  Unknown,
];

export const keywordsByText: ReadonlyMap<string, TokenType> = new Map(keywordTypes.map((type) => [type.name, type]));
export const signsByText: ReadonlyMap<string, TokenType> = new Map(signTypes.map((type) => [type.name, type]));

/** The 36 words of the grammar, in the order of the reference. */
export const reservedWords: readonly string[] = keywordTypes.map((type) => type.name);

/** The words with which a statement begins. */
export const statementTypes: readonly TokenType[] = [
  Language,
  Import,
  Use,
  Define,
  Let,
  Group,
  Route,
  Default,
  Admit,
  Reject,
  Queue,
  Test,
  Ensure,
];
export const statementWords: readonly string[] = statementTypes.map((type) => type.name);

export const isKeyword = (type: TokenType): boolean => keywordsByText.get(type.name) === type;
