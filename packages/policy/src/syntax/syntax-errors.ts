import type { TokenType } from 'chevrotain';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import { createDiagnostic, type Diagnostic, type DiagnosticDetails } from '../diagnostics/diagnostic.ts';
import { suggest } from '../diagnostics/suggest.ts';
import { foreignOperatorWords, foreignStatements } from './foreign-words.ts';
import type { SyntaxFailure } from './grammar.ts';
import type { Span } from './span.ts';
import { isBareDefinition, isBareLet, statementWordMeant } from './statement-bounds.ts';
import * as t from './token-types.ts';
import { endOf, isKeyword, type LexToken } from './token-types.ts';

export interface FailureSite {
  readonly file: string;
  /** The tokens of the statement. */
  readonly tokens: readonly LexToken[];
  /** The token after them, if any. */
  readonly next: LexToken | undefined;
  readonly failure: SyntaxFailure;
}

const clauseOrder = ['when', 'to', 'where', 'by', 'pick', 'with', 'else'] as const;
const clauseWords: ReadonlySet<string> = new Set([...clauseOrder, 'then']);
const expressionWords = ['and', 'or', 'in', 'not', 'matches', 'contains', 'exists'] as const;
const verbWords = ['admit', 'reject', 'queue'] as const;
const closerOf: ReadonlyMap<TokenType, TokenType> = new Map([
  [t.LParen, t.RParen],
  [t.LSquare, t.RSquare],
  [t.LCurly, t.RCurly],
]);
const closers: ReadonlySet<TokenType> = new Set(closerOf.values());

/** The statement word; `rule` for the three of admission. */
const statementOf = (first: LexToken | undefined): string => {
  const word = first?.tokenType.name ?? '';
  return (verbWords as readonly string[]).includes(word) ? 'rule' : word;
};

/** A token type in words. */
const named = (type: TokenType): string => {
  switch (type) {
    case t.Comparison:
      return 'a comparison';
    case t.Ident:
      return 'a name';
    case t.StringLiteral:
      return 'a string in double quotes';
    case t.RegexLiteral:
      return 'a regular expression, `r"…"`';
    case t.PlainNumber:
      return 'a number';
    case t.Word:
      return 'a name';
    case t.Literal:
      return 'a value';
    default:
      return `\`${type.name}\``;
  }
};

const oneOf = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;

/** What an expression can begin with; told as `a value`. */
const expressionStarts: readonly TokenType[] = [t.Not, t.Minus, t.Literal, t.Ident, t.LSquare, t.LParen];

/** The source of a token, short enough for a headline. */
const shown = (token: LexToken): string => {
  const image = [...token.image];
  return `\`${image.length > 40 ? `${image.slice(0, 37).join('')}…` : token.image}\``;
};

interface Site extends FailureSite {
  readonly actual: LexToken | undefined;
  readonly previous: LexToken | undefined;
  readonly rules: ReadonlySet<string>;
  /** The innermost rule open. */
  readonly rule: string;
  readonly statement: string;
}

const spanOfToken = (site: FailureSite, token: LexToken): Span => ({
  file: site.file,
  start: token.startOffset,
  end: endOf(token),
});

/** The token found instead, be it of the next statement; the end of the text if there is none. */
const placeOf = (site: Site): Span => {
  const token = site.actual ?? site.next;
  if (token !== undefined) return spanOfToken(site, token);
  const end = site.previous === undefined ? 0 : endOf(site.previous);
  return { file: site.file, start: end, end };
};

const foundText = (site: Site): string => {
  if (site.actual !== undefined) return `found ${shown(site.actual)}`;
  if (site.next === undefined) return 'found the end of the file';
  return site.next.tokenType === t.RCurly ? 'found `}`' : `found ${shown(site.next)}, which begins the next statement`;
};

const make = (site: Site, code: DiagnosticCode, message: string, details: DiagnosticDetails = {}): Diagnostic => {
  const atNext = site.actual === undefined && site.previous !== undefined && site.next !== undefined;
  const labels =
    atNext && site.previous !== undefined && details.labels === undefined
      ? [{ span: spanOfToken(site, site.previous), message: 'expected after this' }]
      : (details.labels ?? []);
  return createDiagnostic(code, placeOf(site), message, { ...details, labels });
};

const replaceActual = (site: Site, text: string): DiagnosticDetails =>
  site.actual === undefined
    ? {}
    : {
        fix: {
          message: text === '' ? `remove ${shown(site.actual)}` : `write \`${text}\``,
          edits: [{ span: spanOfToken(site, site.actual), text }],
        },
      };

const insertBefore = (site: Site, text: string): DiagnosticDetails => {
  if (site.actual === undefined) return {};
  const start = site.actual.startOffset;
  return {
    fix: { message: `insert \`${text.trim()}\``, edits: [{ span: { file: site.file, start, end: start }, text }] },
  };
};

/** The innermost bracket still open before `index`. */
const openBracket = (tokens: readonly LexToken[], index: number): LexToken | undefined => {
  const open: LexToken[] = [];
  for (const token of tokens.slice(0, index)) {
    if (closerOf.has(token.tokenType)) open.push(token);
    else if (closers.has(token.tokenType)) open.pop();
  }
  return open.at(-1);
};

/** Whether the bracket that is open at `index` is closed further on. */
const closesLater = (tokens: readonly LexToken[], index: number): boolean => {
  let depth = 0;
  for (const token of tokens.slice(index)) {
    if (closerOf.has(token.tokenType)) depth += 1;
    else if (closers.has(token.tokenType)) {
      if (depth === 0) return true;
      depth -= 1;
    }
  }
  return false;
};

type Explain = (site: Site) => Diagnostic | undefined;

const strayCloser: Explain = (site) => {
  const { actual, tokens, failure } = site;
  if (actual === undefined || !closers.has(actual.tokenType)) return undefined;
  const open = openBracket(tokens, failure.index);
  if (open === undefined) {
    return make(site, 'E0127', `${shown(actual)} closes nothing`, {
      help: 'remove it, or add the opening bracket',
    });
  }
  const due = closerOf.get(open.tokenType);
  if (due === undefined || due === actual.tokenType) return undefined;
  return make(site, 'E0126', `expected \`${due.name}\`, found ${shown(actual)}`, {
    labels: [{ span: spanOfToken(site, open), message: `to close this \`${open.image}\`` }],
    ...replaceActual(site, due.name),
  });
};

const trailingComma: Explain = (site) => {
  const { actual, previous } = site;
  if (actual === undefined || previous?.tokenType !== t.Comma || !closers.has(actual.tokenType)) return undefined;
  const span = spanOfToken(site, previous);
  return createDiagnostic('E0124', span, `expected a value after this comma, found ${shown(actual)}`, {
    fix: { message: 'remove the comma', edits: [{ span, text: '' }] },
  });
};

const chainedComparison: Explain = (site) => {
  const { actual, failure, tokens } = site;
  if (actual === undefined) return undefined;
  const type = actual.tokenType;
  const compares = type.CATEGORIES?.includes(t.Comparison) === true || type === t.Assign;
  const inCondition = failure.clause === 'when' || failure.clause === 'where' || site.statement === 'let';
  if (!compares || !inCondition || failure.kind === 'alternatives') return undefined;
  const start = Math.max(
    0,
    tokens.findLastIndex(
      (token, index) =>
        index < failure.index &&
        (token.tokenType === t.And ||
          token.tokenType === t.Or ||
          token.tokenType === t.When ||
          token.tokenType === t.Where),
    ),
  );
  const earlier = tokens
    .slice(start, failure.index)
    .find((token) => token.tokenType.CATEGORIES?.includes(t.Comparison) === true);
  if (earlier === undefined) return undefined;
  return make(site, 'E0129', 'a comparison has two sides', {
    help: 'write a range as `x in 1..5`, or join two comparisons by `and`',
    labels: [{ span: spanOfToken(site, earlier), message: 'first comparison' }],
  });
};

/** Names and values that were to be strings: `group eu`, `to tier 70B`. */
const missingQuotes: Explain = (site) => {
  const { actual, previous, failure, rule } = site;
  if (actual === undefined) return undefined;
  const wantsString = failure.kind === 'mismatch' && failure.expected[0] === t.StringLiteral;
  const isWord = actual.tokenType === t.Ident;
  const isQuantity = actual.literal !== undefined && actual.tokenType !== t.StringLiteral;
  if (wantsString && (isWord || isQuantity)) {
    const what = rule === 'importStatement' ? 'a path' : rule === 'useStatement' ? 'the name of a package' : 'a label';
    const isWhole = site.tokens[failure.index + 1]?.startOffset !== endOf(actual);
    return make(
      site,
      'E0120',
      `expected ${what} in double quotes, found ${shown(actual)}`,
      isWhole ? replaceActual(site, `"${actual.image}"`) : {},
    );
  }
  const afterTarget =
    failure.clause === 'to' &&
    previous?.tokenType === t.Ident &&
    (previous.image === 'tier' || previous.image === 'endpoint');
  const afterDefine = site.statement === 'define' && failure.index === 2;
  const afterLabelled = (site.statement === 'route' || site.statement === 'rule') && failure.index === 1 && isWord;
  if ((isWord || isQuantity) && (afterTarget || afterDefine)) {
    return make(
      site,
      'E0120',
      `names of definitions are strings: \`"${actual.image}"\``,
      replaceActual(site, `"${actual.image}"`),
    );
  }
  const reads = suggest(actual.image, ['when', 'to', 'by', 'with']);
  if (afterLabelled && reads === undefined) {
    return make(site, 'E0120', `expected a label in double quotes, or \`when\`, found ${shown(actual)}`, {
      ...replaceActual(site, `"${actual.image}"`),
    });
  }
  return undefined;
};

const clauseTrouble: Explain = (site) => {
  const { actual, failure, statement } = site;
  if (actual === undefined || failure.kind === 'alternatives' || !isKeyword(actual.tokenType)) return undefined;
  const word = actual.tokenType.name;
  if (!clauseWords.has(word)) return undefined;
  const at = clauseOrder.findIndex((clause) => clause === failure.clause);
  const due = clauseOrder.findIndex((clause) => clause === word);
  const open = openBracket(site.tokens, failure.index);
  if (open !== undefined) return undefined;
  if (word === 'then') {
    return make(site, 'E0123', '`then` belongs to `by`', { help: 'write `by least_tokens then least_latency`' });
  }
  if (statement === 'default' && word === 'when') {
    return make(site, 'E0123', 'a `default` has no `when`', { help: 'write `route when …` for a condition' });
  }
  if (statement === 'rule' && ['to', 'where', 'pick', 'else'].includes(word)) {
    return make(site, 'E0123', `an admission rule has no \`${word}\``, {
      help: 'it is `admit`, `reject` or `queue`, then `when`, `by`, `with`',
    });
  }
  if (due === -1 || at === -1 || failure.kind !== 'leftover') return undefined;
  if (due === at)
    return make(site, 'E0123', `\`${word}\` is written twice`, {
      help: word === 'to' ? 'separate targets by commas' : `join both into one \`${word}\``,
    });
  if (due < at) {
    return make(site, 'E0123', `\`${word}\` comes before \`${failure.clause}\``, {
      help: 'the order is `when`, `to`, `where`, `by`, `pick`, `with`, `else`',
    });
  }
  return undefined;
};

/** Words that could stand here, nearest in the order of the clauses first. */
const wordsPossible = (site: Site): readonly string[] => {
  const { failure, statement, rules } = site;
  const words = new Set<string>();
  for (const type of failure.expected) if (isKeyword(type)) words.add(type.name);
  if (failure.expected.includes(t.VerbWord)) for (const verb of verbWords) words.add(verb);
  const inExpression = failure.clause === 'when' || failure.clause === 'where' || statement === 'let';
  if (inExpression || rules.has('expr')) for (const word of expressionWords) words.add(word);
  if (failure.clause === 'by') words.add('then');
  if (openBracket(site.tokens, failure.index) !== undefined && statement !== 'test') return [...words];
  switch (statement) {
    case 'route':
    case 'default': {
      const at = clauseOrder.findIndex((clause) => clause === failure.clause);
      const rest = failure.clause === 'else' ? clauseOrder.slice(1) : clauseOrder.slice(at + 1);
      for (const word of rest) words.add(word);
      break;
    }
    case 'rule':
      for (const word of ['when', 'by', 'with']) words.add(word);
      break;
    case 'group':
      for (const word of ['when', 'with']) words.add(word);
      break;
    case 'test':
      for (const word of ['given', 'expect']) words.add(word);
      break;
    case 'ensure':
      for (const word of ['when', 'always', 'never']) words.add(word);
      break;
    case 'import':
    case 'use':
      words.add('as');
      break;
    default:
      break;
  }
  return [...words];
};

/** `complexity between 10 and 50`, `session is null`. */
const foreignOperator: Explain = (site) => {
  const { actual, previous, rule } = site;
  const [word] = [actual, previous].filter((token) => token?.tokenType === t.Ident);
  if (word === undefined || ['target', 'primary', 'item', 'name', 'object', 'entry'].includes(rule)) return undefined;
  const isOld = word === previous;
  const help = foreignOperatorWords.get(word.image.toLowerCase());
  if (help === undefined || (isOld && word.image !== 'defined')) return undefined;
  return createDiagnostic('E0120', spanOfToken(site, word), `unexpected ${shown(word)}`, { help });
};

/** `100,000`. */
const groupedNumber: Explain = (site) => {
  const { actual, previous, failure, tokens } = site;
  const next = tokens[failure.index + 1];
  const isGroup =
    actual?.tokenType === t.Comma &&
    previous?.tokenType === t.PlainNumber &&
    next !== undefined &&
    /^\d{3}$/.test(next.image) &&
    endOf(previous) === actual.startOffset &&
    endOf(actual) === next.startOffset;
  if (!isGroup) return undefined;
  const span = { ...spanOfToken(site, previous), end: endOf(next) };
  const text = `${previous.image}_${next.image}`;
  return createDiagnostic('E0120', span, 'the digits of a number are grouped by `_`', {
    fix: { message: `write \`${text}\``, edits: [{ span, text }] },
  });
};

/** `model in ("a", "b")`. */
const roundList: Explain = (site) => {
  const { actual, tokens, failure } = site;
  const open = openBracket(tokens, failure.index);
  if (actual?.tokenType !== t.Comma || open?.tokenType !== t.LParen) return undefined;
  if (tokens[tokens.indexOf(open) - 1]?.tokenType !== t.In) return undefined;
  return createDiagnostic('E0120', spanOfToken(site, open), 'a list stands in square brackets', {
    help: 'write `in ["a", "b"]`',
    labels: [{ span: spanOfToken(site, actual), message: 'this comma makes it a list' }],
  });
};

const misspelledWord: Explain = (site) => {
  const { actual, failure } = site;
  if (actual === undefined || actual.tokenType.CATEGORIES?.includes(t.Word) !== true) return undefined;
  if (['target', 'primary', 'item', 'name'].includes(site.rule)) return undefined;
  const meant = suggest(actual.image, wordsPossible(site));
  if (meant === undefined) return undefined;
  const code = meant === 'to' && failure.expected.includes(t.To) ? 'E0122' : 'E0120';
  return make(site, code, `expected \`${meant}\`, found ${shown(actual)}`, {
    help: `did you mean \`${meant}\`?`,
    ...replaceActual(site, meant),
  });
};

const unclosed: Explain = (site) => {
  const { tokens, failure, actual } = site;
  const open = openBracket(tokens, failure.index);
  if (open === undefined || failure.kind === 'leftover') return undefined;
  const due = closerOf.get(open.tokenType)?.name ?? '';
  const wantsCloser = failure.expected.some((type) => closers.has(type)) || actual === undefined;
  if (!wantsCloser || closesLater(tokens, failure.index)) return undefined;
  return make(site, 'E0126', `expected \`${due}\`, ${foundText(site)}`, {
    labels: [{ span: spanOfToken(site, open), message: `this \`${open.image}\` is never closed` }],
  });
};

/** Inside brackets that are closed further on: a comma or an operator is missing. */
const missingComma: Explain = (site) => {
  const { tokens, failure, actual, previous } = site;
  const open = openBracket(tokens, failure.index);
  if (open === undefined || actual === undefined || previous === undefined || failure.kind !== 'mismatch')
    return undefined;
  const closer = failure.expected[0];
  if (closer === undefined || !closers.has(closer)) return undefined;
  const inList = site.rule === 'list' || site.rule === 'args';
  if (site.rule === 'testStatement' || site.rule === 'object') return undefined;
  const wanted = inList ? `\`,\` or \`${closer.name}\`` : `an operator or \`${closer.name}\``;
  const end = endOf(previous);
  const startsValue = actual.literal !== undefined || actual.tokenType === t.Ident;
  return make(site, 'E0120', `expected ${wanted}, found ${shown(actual)}`, {
    labels: [{ span: spanOfToken(site, open), message: 'in these brackets' }],
    ...(inList && startsValue
      ? { fix: { message: 'insert a comma', edits: [{ span: { file: site.file, start: end, end }, text: ',' }] } }
      : {}),
  });
};

const reservedName: Explain = (site) => {
  const { actual, failure, rule } = site;
  if (actual === undefined || !isKeyword(actual.tokenType)) return undefined;
  const word = actual.tokenType.name;
  const wantsName = failure.expected.includes(t.Ident);
  const inExpression = rule === 'primary' || rule === 'item';
  const declares =
    rule === 'letStatement' ||
    rule === 'defineStatement' ||
    rule === 'alias' ||
    rule === 'annotations' ||
    rule === 'type';
  const looksLikeClause = clauseWords.has(word) || ['and', 'or', 'given', 'expect'].includes(word);
  if (!wantsName || (looksLikeClause && !declares)) return undefined;
  if (inExpression && (expressionWords as readonly string[]).includes(word)) return undefined;
  return make(site, 'E0128', `\`${word}\` is a reserved word and cannot be a name`, {
    help: 'reserved words may stand as keys, as named arguments, and after a dot',
  });
};

const missingTarget: Explain = (site) => {
  const { rules, failure, previous } = site;
  const wants = rules.has('target') && failure.expected.includes(t.Ident) && site.rule !== 'modifier';
  if (!wants) return undefined;
  const after = previous?.tokenType === t.To ? 'after `to`' : previous === undefined ? '' : `after ${shown(previous)}`;
  return make(site, 'E0125', `expected a target ${after}: ${foundText(site)}`, {
    help: 'a target is `tier "70B"`, an endpoint, `any`, or a name bound by `let`',
  });
};

const missingExpression: Explain = (site) => {
  const { rules, previous, rule, actual } = site;
  if (rule === 'item' && previous?.tokenType === t.LCurly) {
    return createDiagnostic('E0124', spanOfToken(site, previous), 'expected a value or a name, found `{`', {
      help: 'objects stand only in lists that are values of a key',
    });
  }
  if (rule !== 'primary' && rule !== 'item' && !(rules.has('primary') && rule === 'name')) return undefined;
  const after = previous === undefined ? '' : ` after ${shown(previous)}`;
  const help =
    actual?.tokenType === t.LCurly
      ? 'an object stands only as the value of a key'
      : actual?.tokenType === t.Not && previous !== undefined
        ? '`not` stands before a whole comparison, or before `in`'
        : undefined;
  return make(
    site,
    'E0124',
    `expected a value or a name${after}: ${foundText(site)}`,
    help === undefined ? {} : { help },
  );
};

const missingTo: Explain = (site) => {
  const { failure, statement, actual, tokens } = site;
  if (failure.kind === 'leftover' || !failure.expected.includes(t.To) || failure.clause === 'else') return undefined;
  if (statement !== 'route' && statement !== 'default') return undefined;
  if (statement === 'default' && actual?.tokenType === t.When) {
    return make(site, 'E0123', 'a `default` has no `when`', { help: 'write `route when …` for a condition' });
  }
  const assigns = tokens[failure.index + 1]?.tokenType === t.Assign;
  const target = (actual?.tokenType === t.Ident && !assigns) || actual?.tokenType === t.PercentLiteral;
  const saysTo = tokens.slice(failure.index).some((token) => token.tokenType === t.To);
  if (statement === 'route' && saysTo && failure.clause === 'when') {
    return make(site, 'E0120', `expected an operator or \`to\`, ${foundText(site)}`, {
      help: 'conditions are joined by `and` and `or`',
    });
  }
  const or = statement === 'default' ? ', or `reject` or `queue`' : '';
  return make(site, 'E0122', `expected \`to\`${or}, ${foundText(site)}`, {
    help: 'a destination is written `to tier "70B"`',
    ...(target && !saysTo ? insertBefore(site, 'to ') : {}),
  });
};

const inTest: Explain = (site) => {
  const { failure, actual, rule } = site;
  if (rule !== 'testStatement' || actual === undefined || !failure.expected.includes(t.RCurly)) return undefined;
  return make(site, 'E0132', `expected \`given\`, \`expect\` or \`}\`, found ${shown(actual)}`);
};

const inObject: Explain = (site) => {
  const { failure, actual, rule, previous } = site;
  if (actual === undefined) return undefined;
  if (rule === 'entry' && failure.expected.includes(t.Colon)) {
    const assigns = actual.tokenType === t.Assign;
    return make(
      site,
      'E0120',
      `expected \`:\` after the key ${previous === undefined ? '' : shown(previous)}, found ${shown(actual)}`,
      {
        ...(assigns ? replaceActual(site, ':') : {}),
      },
    );
  }
  if (rule === 'object' && failure.expected.includes(t.RCurly)) {
    return make(site, 'E0120', `expected a key, \`,\` or \`}\`, found ${shown(actual)}`);
  }
  return undefined;
};

const wrongAssignment: Explain = (site) => {
  const { failure, actual } = site;
  if (!failure.expected.includes(t.Assign) || actual?.tokenType !== t.Equal) return undefined;
  return make(site, 'E0120', 'a value is given by a single `=`', replaceActual(site, '='));
};

const colonAfterModifier: Explain = (site) => {
  const { failure, actual, previous } = site;
  if (
    failure.clause !== 'with' ||
    actual?.tokenType !== t.Colon ||
    openBracket(site.tokens, failure.index) !== undefined
  )
    return undefined;
  const end = previous === undefined ? actual.startOffset : endOf(previous);
  return make(site, 'E0120', `a modifier has no \`:\` before its value`, {
    fix: {
      message: 'remove the colon',
      edits: [{ span: { file: site.file, start: end, end: endOf(actual) }, text: '' }],
    },
  });
};

const stringForRegex: Explain = (site) => {
  const { failure, actual } = site;
  if (!failure.expected.includes(t.RegexLiteral)) return undefined;
  const fix = actual?.tokenType === t.StringLiteral ? insertBefore(site, 'r') : {};
  if (actual?.tokenType !== t.StringLiteral && actual?.tokenType !== t.Slash) return undefined;
  return make(site, 'E0120', 'a regular expression is written `r"…"`', fix);
};

const afterVerdict: Explain = (site) => {
  const { failure, actual, statement } = site;
  if (failure.kind !== 'leftover' || actual?.tokenType !== t.Else || statement !== 'default') return undefined;
  return make(site, 'E0123', 'nothing comes after the verdict of a `default`', { help: 'remove this `else`' });
};

const general: Explain = (site) => {
  const { failure, previous } = site;
  const after = previous === undefined ? '' : ` after ${shown(previous)}`;
  if (failure.kind === 'leftover') {
    const inCondition = failure.clause === 'when' || failure.clause === 'where';
    const joins = site.statement === 'let' || inCondition;
    return make(site, 'E0120', `unexpected ${site.actual === undefined ? 'end' : shown(site.actual)}${after}`, {
      help: joins
        ? 'an operator, a clause or the next statement may follow'
        : 'a clause or the next statement may follow',
    });
  }
  const types = failure.expected.flatMap((type) => (type === t.VerbWord ? [t.Admit, t.Reject, t.Queue] : [type]));
  const beginsValue = expressionStarts.every((type) => types.includes(type));
  const told = beginsValue ? [t.Literal, ...types.filter((type) => !expressionStarts.includes(type))] : types;
  const wanted = oneOf([...new Set(told.map(named))]);
  return make(site, 'E0120', `expected ${wanted}${after}, ${foundText(site)}`);
};

/** The first that has something to say wins. */
const explanations: readonly Explain[] = [
  trailingComma,
  wrongAssignment,
  colonAfterModifier,
  stringForRegex,
  strayCloser,
  chainedComparison,
  missingQuotes,
  afterVerdict,
  clauseTrouble,
  foreignOperator,
  groupedNumber,
  roundList,
  misspelledWord,
  reservedName,
  inTest,
  inObject,
  unclosed,
  missingComma,
  missingTarget,
  missingExpression,
  missingTo,
  general,
];

/** The one finding of a statement that did not parse. */
export const describeFailure = (where: FailureSite): Diagnostic => {
  const { failure, tokens } = where;
  const site: Site = {
    ...where,
    actual: tokens[failure.index],
    previous: tokens[failure.index - 1],
    rules: new Set(failure.rules),
    rule: failure.rules.at(-1) ?? '',
    statement: statementOf(tokens[0]),
  };
  for (const explain of explanations) {
    const diagnostic = explain(site);
    if (diagnostic !== undefined) return diagnostic;
  }
  return createDiagnostic('E0120', placeOf(site), 'this statement cannot be read');
};

/** The finding of a piece that begins with no statement word. */
export const describeUnknownStatement = (file: string, tokens: readonly LexToken[], index: number): Diagnostic => {
  const [token, after] = tokens.slice(index, index + 2);
  const span: Span = { file, start: token?.startOffset ?? 0, end: token === undefined ? 0 : endOf(token) };
  if (token === undefined) return createDiagnostic('E0121', span, 'expected a statement');
  const insert = (text: string): DiagnosticDetails => ({
    fix: { message: `insert \`${text.trim()}\``, edits: [{ span: { ...span, end: span.start }, text }] },
  });
  if (token.tokenType === t.RCurly) {
    return createDiagnostic('E0127', span, '`}` closes nothing', { help: 'remove it, or add the opening bracket' });
  }
  if (token.tokenType === t.When || token.tokenType === t.To) {
    return createDiagnostic('E0121', span, `expected a statement, found \`${token.image}\``, {
      help: 'did you mean `route`?',
      ...insert('route '),
    });
  }
  if (token.tokenType === t.Given || token.tokenType === t.Expect) {
    return createDiagnostic('E0121', span, `\`${token.image}\` stands only inside \`test "…" { }\``);
  }
  if (isBareDefinition(tokens, index)) {
    return createDiagnostic('E0121', span, `expected a statement, found ${shown(token)}`, {
      help: `did you mean \`define ${token.image}\`?`,
      ...insert('define '),
    });
  }
  if (isBareLet(tokens, index)) {
    return createDiagnostic('E0121', span, `expected a statement, found ${shown(token)}`, {
      help: `did you mean \`let ${token.image}\`?`,
      ...insert('let '),
    });
  }
  const foreign = foreignStatements.get(token.image);
  if (foreign !== undefined) {
    return createDiagnostic('E0121', span, `${shown(token)} begins no statement`, {
      help: foreign.help,
      ...(foreign.write === undefined
        ? {}
        : { fix: { message: `write \`${foreign.write}\``, edits: [{ span, text: foreign.write }] } }),
    });
  }
  const isWord = token.tokenType.CATEGORIES?.includes(t.Word) === true;
  const meant = isWord ? (statementWordMeant(token, after) ?? suggest(token.image, t.statementWords)) : undefined;
  if (meant !== undefined) {
    return createDiagnostic('E0121', span, `${shown(token)} begins no statement`, {
      help: `did you mean \`${meant}\`?`,
      fix: { message: `write \`${meant}\``, edits: [{ span, text: meant }] },
    });
  }
  return createDiagnostic('E0121', span, `expected a statement, found ${shown(token)}`, {
    help: `statements begin with ${oneOf(t.statementWords.map((word) => `\`${word}\``))}`,
  });
};
