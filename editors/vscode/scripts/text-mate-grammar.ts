import { literalUnits, reservedWords, signs, statementWords } from '@signalbox/policy';

interface Rule {
  readonly name?: string;
  readonly match?: string;
  readonly begin?: string;
  readonly end?: string;
  readonly captures?: { readonly [index: string]: { readonly name: string } };
  readonly patterns?: readonly Rule[];
}

/** A TextMate grammar, as `.tmLanguage.json` holds it. */
export interface TextMateGrammar {
  readonly name: string;
  readonly scopeName: string;
  readonly fileTypes: readonly string[];
  readonly patterns: readonly Rule[];
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
/** Longest first, so that none hides one that it begins. */
const anyOf = (texts: Iterable<string>): string =>
  [...texts]
    .toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1))
    .map(escaped)
    .join('|');
const wholeWord = (words: readonly string[]): string => `(?<![A-Za-z0-9_])(?:${anyOf(words)})(?![A-Za-z0-9_])`;

const CONDITION_WORDS = ['and', 'or', 'not', 'in', 'matches', 'contains', 'exists'];
const BOOLEANS = ['true', 'false'];

/** The colours of `.route` files by their words and signs alone, made from the token list of the compiler. */
export const textMateGrammar = (): TextMateGrammar => {
  const clauses = reservedWords.filter(
    (word) => !statementWords.includes(word) && !CONDITION_WORDS.includes(word) && !BOOLEANS.includes(word),
  );
  const operators = signs.filter((sign) => /^[-+*/<>=!?.]+$/.test(sign) && sign !== '.');
  const punctuation = signs.filter((sign) => !operators.includes(sign));
  const number = String.raw`\d[\d_]*(?:\.\d[\d_]*)?`;
  const units = `(?:${anyOf(literalUnits.units)})`;
  const period = `/(?:${anyOf(literalUnits.periods)})(?![A-Za-z0-9_])`;
  return {
    name: 'Signalbox policy',
    scopeName: 'source.route',
    fileTypes: ['route'],
    patterns: [
      { name: 'comment.line.documentation.route', match: '##.*$' },
      { name: 'comment.line.number-sign.route', match: '#.*$' },
      {
        name: 'string.regexp.route',
        match: String.raw`(?<![A-Za-z0-9_])r"(?:[^"\\]|\\.)*"[A-Za-z]*`,
      },
      {
        name: 'string.quoted.double.route',
        begin: '"',
        end: '"|$',
        patterns: [{ name: 'constant.character.escape.route', match: String.raw`\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})` }],
      },
      {
        name: 'constant.numeric.route',
        match: String.raw`\$${number}(?:${period})?|(?<![A-Za-z0-9_])${number}(?:%|${units}(?![A-Za-z0-9_/])|${units}?${period}|(?![A-Za-z0-9_]))`,
      },
      { name: 'keyword.control.statement.route', match: wholeWord(statementWords) },
      { name: 'keyword.control.clause.route', match: wholeWord(clauses) },
      { name: 'keyword.operator.word.route', match: wholeWord(CONDITION_WORDS) },
      { name: 'constant.language.boolean.route', match: wholeWord(BOOLEANS) },
      { name: 'variable.other.property.route', match: String.raw`[A-Za-z_][A-Za-z0-9_]*(?=\s*:)` },
      { name: 'entity.name.function.route', match: String.raw`[A-Za-z_][A-Za-z0-9_]*(?=\()` },
      { name: 'variable.other.route', match: '[A-Za-z_][A-Za-z0-9_]*' },
      { name: 'keyword.operator.route', match: anyOf(operators) },
      { name: 'punctuation.route', match: anyOf(punctuation) },
    ],
  };
};
