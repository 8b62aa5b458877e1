import type { TokenType } from 'chevrotain';
import { createDiagnostic, sortDiagnostics, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { suggest } from '../diagnostics/suggest.ts';
import type {
  AnnotationNode,
  BrokenStatementNode,
  CommentNode,
  FileNode,
  GroupNode,
  LanguageNode,
  StatementKeyword,
  StatementNode,
  StringNode,
} from './ast.ts';
import { foreignStatements } from './foreign-words.ts';
import { StatementParser } from './grammar.ts';
import { tokenize } from './lexer.ts';
import { findLimit, isTooLarge, maxBroken, maxNesting, maxRules } from './limits.ts';
import type { ParseOptions, ParseResult, PolicyToken, PolicyTokenKind } from './parse-result.ts';
import type { Span } from './span.ts';
import {
  isBareDefinition,
  isBareLet,
  isStatementWord,
  isTakenIn,
  misspelledStarts,
  statementStarts,
  statementWordMeant,
} from './statement-bounds.ts';
import { describeFailure, describeUnknownStatement } from './syntax-errors.ts';
import * as t from './token-types.ts';
import { endOf, isKeyword, type LexToken } from './token-types.ts';

/** The version of the language that this program knows. */
export const languageVersion = 1;

/** What the formatter needs beyond the result. */
export interface DetailedParseResult extends ParseResult {
  /** Braces do not pair up, or the file was not read at all: its layout must not be touched. */
  readonly structureDamaged: boolean;
}

interface Block {
  readonly node: GroupNode | BrokenStatementNode | undefined;
  readonly open: LexToken | undefined;
  readonly statements: StatementNode[];
}

/** Built on first use (about 25 ms) and kept: it holds no state from one parse to the next. */
let parser: StatementParser | undefined;
const sharedParser = (): StatementParser => (parser ??= new StatementParser());

const tokenKind = (token: LexToken): PolicyTokenKind => {
  const type = token.tokenType;
  if (type === t.StringLiteral) return 'string';
  if (type === t.RegexLiteral) return 'regex';
  if (type === t.Ident) return 'name';
  if (isKeyword(type)) return 'keyword';
  if (token.literal !== undefined) return 'number';
  if (type === t.Unknown) return 'unknown';
  return /^[-+*/<>=!?.]+$/.test(type.name) && type !== t.Dot ? 'operator' : 'punctuation';
};

const publicTokens = (tokens: readonly LexToken[], comments: readonly CommentNode[]): readonly PolicyToken[] => {
  const all: PolicyToken[] = [];
  let next = 0;
  const addCommentsUpTo = (offset: number): void => {
    for (let comment = comments[next]; comment !== undefined && comment.span.start < offset; comment = comments[next]) {
      all.push({ kind: 'comment', text: comment.text, start: comment.span.start, end: comment.span.end });
      next += 1;
    }
  };
  for (const token of tokens) {
    addCommentsUpTo(token.startOffset);
    all.push({ kind: tokenKind(token), text: token.image, start: token.startOffset, end: endOf(token) });
  }
  addCommentsUpTo(Number.POSITIVE_INFINITY);
  return all;
};

/** Text of the doc comments on the lines directly above `offset`. */
const docAbove = (text: string, comments: readonly CommentNode[], offset: number): string | undefined => {
  let low = 0;
  let high = comments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((comments[middle]?.span.start ?? 0) < offset) low = middle + 1;
    else high = middle;
  }
  const lines: string[] = [];
  let below = offset;
  for (let index = low - 1; index >= 0; index -= 1) {
    const comment = comments[index];
    if (comment === undefined || !comment.doc) break;
    if (!/^[^\S\r\n]*(?:\r\n|\n|\r)[^\S\r\n]*$/.test(text.slice(comment.span.end, below))) break;
    const lineFrom = Math.max(lineStartOf(text, comment.span.start), comments[index - 1]?.span.end ?? 0);
    if (text.slice(lineFrom, comment.span.start).trim() !== '') break;
    lines.push(comment.text.replace(/^##+ ?/, ''));
    below = comment.span.start;
  }
  return lines.length === 0 ? undefined : lines.toReversed().join('\n');
};

/** Where the line begins that holds this offset. Looks no further back than that: the text may have no CR, or no LF, at all. */
const lineStartOf = (text: string, offset: number): number => {
  let start = offset;
  while (start > 0 && text[start - 1] !== '\n' && text[start - 1] !== '\r') start -= 1;
  return start;
};

/** Spans of one file in order of their place, those that overlap joined to one. */
const joined = (spans: readonly Span[]): readonly Span[] => {
  const apart: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = apart.at(-1);
    if (last === undefined || span.start >= last.end) apart.push(span);
    else apart[apart.length - 1] = { ...last, end: Math.max(last.end, span.end) };
  }
  return apart;
};

/** The one of these spans, which lie apart and in order, that holds `offset`. */
const spanAt = (spans: readonly Span[], offset: number): Span | undefined => {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle]?.end ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  const span = spans[low];
  return span !== undefined && span.start <= offset ? span : undefined;
};

/** Words that go on with a statement wherever they stand. */
const continuing: ReadonlySet<TokenType> = new Set([t.Where, t.By, t.Then, t.Pick, t.With, t.Else, t.And, t.Or]);

const countsAsRule = (node: StatementNode): boolean =>
  node.kind === 'route' || node.kind === 'default' || node.kind === 'admission';

/**
 * Runs `read` without stack traces, which the parser library would take for each statement that it cannot read and nobody would see: half of
 * the cost of a text that is broken all through.
 */
const withoutTraces = <T>(read: () => T): T => {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return read();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
};

/** Reads a whole file statement by statement: see `parsePolicy`. */
export const parsePolicyInDetail = (text: string, options: ParseOptions): DetailedParseResult =>
  withoutTraces(() => readFile(text, options));

const readFile = (text: string, { file }: ParseOptions): DetailedParseResult => {
  const whole: Span = { file, start: 0, end: text.length };
  if (isTooLarge(text)) {
    const span = { file, start: 0, end: 0 };
    return {
      file: { kind: 'file', span: whole, file, text, statements: [], comments: [] },
      diagnostics: [createDiagnostic('E0140', span, 'this file has more than 1 MiB', { help: 'split it by `import`' })],
      tokens: [],
      structureDamaged: true,
    };
  }

  const statementParser = sharedParser();
  const lexed = tokenize(text, file);
  const { tokens, comments } = lexed;
  const found: Diagnostic[] = [];
  const unreadable: Span[] = [];
  const root: Block = { node: undefined, open: undefined, statements: [] };
  const blocks: Block[] = [root];
  let language: LanguageNode | undefined;
  let pending: AnnotationNode[] = [];
  let pendingStart: number | undefined;
  let pendingEnd = 0;
  let pendingBroken = false;
  let rules = 0;
  let broken = 0;
  let owedClosers = 0;
  let lastStray = -1;
  let structureDamaged = false;

  const currentBlock = (): Block => blocks.at(-1) ?? root;
  const spanOfTokens = (from: number, to: number): Span => {
    const first = tokens[from];
    const last = tokens[to - 1];
    return { file, start: first?.startOffset ?? 0, end: last === undefined ? 0 : endOf(last) };
  };

  const hasFatal = (span: Span): boolean => {
    let low = 0;
    let high = lexed.fatalOffsets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((lexed.fatalOffsets[middle] ?? 0) < span.start) low = middle + 1;
      else high = middle;
    }
    const offset = lexed.fatalOffsets[low];
    return offset !== undefined && offset < span.end;
  };

  /** Attaches what stands before the statement, and puts it where it belongs. */
  const dress = <T extends StatementNode>(node: T): T => {
    const start = pendingStart === undefined ? node.span.start : (tokens[pendingStart]?.startOffset ?? node.span.start);
    const doc = comments.length === 0 ? undefined : docAbove(text, comments, start);
    const dressed: T = {
      ...node,
      ...(pending.length === 0 ? {} : { annotations: pending, span: { ...node.span, start } }),
      ...(doc === undefined ? {} : { doc }),
    };
    pending = [];
    pendingStart = undefined;
    pendingBroken = false;
    return dressed;
  };

  const countRule = (node: StatementNode): void => {
    if (!countsAsRule(node)) return;
    rules += 1;
    if (rules === maxRules + 1) {
      found.push(
        createDiagnostic('E0141', node.head, 'this file has more than 20,000 rules', { help: 'split it by `import`' }),
      );
    }
  };

  /** Something before `next` could not be read. Of too much of that, the last is told as such. */
  const countBroken = (next: number): void => {
    broken += 1;
    if (broken !== maxBroken || next >= tokens.length) return;
    found.push(
      createDiagnostic('E0144', spanOfTokens(next, next + 1), 'from here on, this file is not looked at', {
        help: `${maxBroken.toLocaleString('en')} statements before this cannot be read: is it a policy?`,
      }),
    );
  };

  const add = (node: StatementNode): void => {
    countRule(node);
    currentBlock().statements.push(node);
  };

  /** What can still be told of a statement that did not parse. Takes the annotations before it. */
  const brokenNode = (from: number, to: number): BrokenStatementNode => {
    const first = tokens[from];
    const begin = pendingStart ?? from;
    const span = spanOfTokens(begin, to);
    const meant =
      first === undefined
        ? undefined
        : isStatementWord(first)
          ? first.tokenType.name
          : isBareDefinition(tokens, from)
            ? 'define'
            : isBareLet(tokens, from)
              ? 'let'
              : (foreignStatements.get(first.image)?.write ??
                statementWordMeant(first, tokens[from + 1]) ??
                suggest(first.image, t.statementWords));
    const keyword = meant as StatementKeyword | undefined;
    const afterWord = isBareDefinition(tokens, from) || isBareLet(tokens, from) ? from : from + 1;
    const inside = tokens.slice(afterWord, Math.min(to, afterWord + 3));
    const labelAt = inside.findIndex((token) => token.tokenType === t.StringLiteral);
    const label = labelAt === 0 || (keyword === 'define' && labelAt === 1) ? inside[labelAt]?.literal : undefined;
    const nameToken =
      keyword === 'use' || keyword === 'import'
        ? tokens.slice(from, to).find((_, index, all) => all[index - 1]?.tokenType === t.As)
        : inside[0];
    const named = keyword === 'let' || keyword === 'define' || keyword === 'use' || keyword === 'import';
    const name = named && nameToken?.tokenType === t.Ident ? nameToken : undefined;
    const headEnd = label?.span.end ?? (first === undefined ? span.end : endOf(first));
    return dress({
      kind: 'broken',
      span,
      head: { file, start: first?.startOffset ?? span.start, end: headEnd },
      annotations: [],
      text: text.slice(span.start, span.end),
      statements: [],
      ...(keyword === undefined ? {} : { keyword }),
      ...(label === undefined ? {} : { label: label as StringNode }),
      ...(name === undefined
        ? {}
        : {
            name: {
              kind: 'ident' as const,
              span: spanOfTokens(tokens.indexOf(name, from), tokens.indexOf(name, from) + 1),
              text: name.image,
            },
          }),
    });
  };

  interface Attempt {
    readonly node?: StatementNode | LanguageNode;
    readonly diagnostics: readonly Diagnostic[];
    /** Index of the token at which it failed. */
    readonly failedAt?: number;
  }

  const attempt = (from: number, to: number, foundInstead: number = to): Attempt => {
    const span = spanOfTokens(from, to);
    const first = tokens[from];
    if (first === undefined) return { diagnostics: [] };
    if (hasFatal(span)) {
      unreadable.push(span);
      return { diagnostics: [] };
    }
    if (pendingBroken || broken >= maxBroken) return { diagnostics: [] };
    const limit = findLimit(tokens, from, to, blocks.length - 1, file);
    if (limit !== undefined) return { diagnostics: [limit] };
    if (!isStatementWord(first)) return { diagnostics: [describeUnknownStatement(file, tokens, from)] };
    const piece = tokens.slice(from, to);
    const { node, failure, diagnostics } = statementParser.readStatement(piece, file);
    if (failure === undefined) return node === undefined ? { diagnostics } : { node, diagnostics };
    const cutShort = failure.index === piece.length;
    const sought = cutShort && foundInstead < to ? { ...failure, index: foundInstead - from } : failure;
    const finding = describeFailure({ file, tokens: piece, next: tokens[to], failure: sought });
    return { diagnostics: [...diagnostics, finding], failedAt: from + failure.index };
  };

  const addLanguage = (node: LanguageNode, from: number, to: number): void => {
    const first =
      language === undefined && root.statements.length === 0 && blocks.length === 1 && pendingStart === undefined;
    if (first) language = node;
    else {
      found.push(
        createDiagnostic('E0130', node.span, '`language` stands once, as the first statement of the file', {
          labels: language === undefined ? [] : [{ span: language.span, message: 'first written here' }],
        }),
      );
      add(brokenNode(from, to));
    }
  };

  const accept = (outcome: Attempt, from: number, to: number): void => {
    for (const finding of outcome.diagnostics) found.push(finding);
    if (outcome.node === undefined) {
      add(brokenNode(from, to));
      if (outcome.diagnostics.length > 0 || hasFatal(spanOfTokens(from, to))) countBroken(to);
    } else if (outcome.node.kind === 'language') addLanguage(outcome.node, from, to);
    else add(dress(outcome.node));
  };

  /** Columns of white space in front of the first token of its line, in code units. */
  const indentOf = (token: LexToken): number => token.startOffset - lineStartOf(text, token.startOffset);

  /** Columns of white space in front of the line in which the token stands. */
  const indentOfLine = (token: LexToken): number => {
    const start = lineStartOf(text, token.startOffset);
    return text.slice(start, token.startOffset).search(/\S|$/);
  };

  /**
   * Where the lost first word of another statement may have stood: the last line up to the failure that is indented no more
   * than the statement and leaves a whole statement before it.
   */
  const lostStart = (from: number, failedAt: number): number | undefined => {
    const first = tokens[from];
    if (first === undefined) return undefined;
    let limit: number | undefined;
    let tries = 3;
    for (let index = failedAt; index > from && tries > 0; index -= 1) {
      const token = tokens[index];
      if (token === undefined || !token.lineStart) continue;
      limit ??= indentOfLine(first);
      if (indentOf(token) > limit + 1) continue;
      const isWord = token.tokenType === t.StringLiteral || token.tokenType.CATEGORIES?.includes(t.Word) === true;
      if (!isWord || continuing.has(token.tokenType)) continue;
      tries -= 1;
      if (attempt(from, index).node !== undefined) return index;
    }
    return undefined;
  };

  /**
   * A statement that fails is cut where a line begins with a misspelled statement word, or where one is lost. The end of what
   * was taken is answered: `absorbTo` where closing braces behind it are part of the trouble.
   */
  const readStatement = (from: number, to: number, absorbTo: number, foundInstead?: number): number => {
    const outcome = attempt(from, to, foundInstead);
    if (outcome.node !== undefined) {
      accept(outcome, from, to);
      return to;
    }
    const cuts = misspelledStarts(tokens, from, to);
    const lost = cuts.length > 0 || outcome.failedAt === undefined ? undefined : lostStart(from, outcome.failedAt);
    const [firstCut, ...more] = lost === undefined ? cuts : [lost];
    if (firstCut === undefined) {
      accept(outcome, from, absorbTo);
      return absorbTo;
    }
    accept(attempt(from, firstCut), from, firstCut);
    for (const [index, cut] of [firstCut, ...more].entries()) {
      const end = more[index] ?? to;
      const brace = isMisspelledGroup(cut) ? firstBrace(cut, end) : end;
      if (brace + 1 === end) {
        // Its brace was taken for one of the statement before it.
        owedClosers = Math.max(0, owedClosers - 1);
        openGroup(cut, end);
      } else accept(attempt(cut, end), cut, end);
    }
    return to;
  };

  const openGroup = (from: number, to: number): void => {
    if (blocks.length > maxNesting) {
      // The statements of a group that is too deep join those around it, so that the tree stays shallow.
      const limit = owedClosers === 0 ? findLimit(tokens, from, to, blocks.length - 1, file) : undefined;
      accept({ diagnostics: limit === undefined ? [] : [limit] }, from, to);
      owedClosers += 1;
      structureDamaged = true;
      return;
    }
    const outcome = attempt(from, to);
    for (const finding of outcome.diagnostics) found.push(finding);
    const node = outcome.node?.kind === 'group' ? dress(outcome.node) : brokenNode(from, to);
    blocks.push({ node, open: tokens[to - 1], statements: [] });
  };

  const finishGroup = (block: Block, end: number): void => {
    if (block.node === undefined) return;
    const span = { ...block.node.span, end: Math.max(end, block.node.span.end) };
    const closed = { ...block.node, span, statements: block.statements };
    add(closed.kind === 'broken' ? { ...closed, text: text.slice(span.start, span.end) } : closed);
  };

  /** The token that begins at this offset. */
  const tokenAt = (offset: number): LexToken | undefined => {
    let low = 0;
    let high = tokens.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((tokens[middle]?.startOffset ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return tokens[low]?.startOffset === offset ? tokens[low] : undefined;
  };

  /** Of a group without its `}`, the statements from the first line that is indented no more than the group: they follow it. */
  const outdentedOf = ({ node, statements }: Block): readonly StatementNode[] => {
    if (node === undefined) return [];
    const limit = node.head.start - lineStartOf(text, node.head.start);
    const first = statements.findIndex(({ span }) => {
      const token = tokenAt(span.start);
      return token?.lineStart === true && indentOf(token) <= limit;
    });
    return first < 1 ? [] : statements.slice(first);
  };

  const dropAnnotations = (): void => {
    if (pendingStart === undefined) return;
    const at = pendingStart;
    if (!pendingBroken) {
      const span = pending.at(-1)?.span ?? spanOfTokens(at, at + 1);
      found.push(createDiagnostic('E0131', span, 'no statement follows this annotation'));
    }
    pending = [];
    add(brokenNode(at, Math.max(pendingEnd, at + 1)));
  };

  const closeGroup = (index: number): void => {
    dropAnnotations();
    const token = tokens[index];
    if (token === undefined) return;
    if (blocks.length > 1 && !(owedClosers > 0 && blocks.length > maxNesting)) {
      const block = blocks.pop() ?? root;
      finishGroup(block, endOf(token));
      return;
    }
    structureDamaged = true;
    if (owedClosers > 0) owedClosers -= 1;
    else if (index === 0 || lastStray !== index - 1) found.push(describeUnknownStatement(file, tokens, index));
    lastStray = index;
    add(brokenNode(index, index + 1));
  };

  const readAnnotations = (from: number, to: number): number => {
    pendingStart ??= from;
    pendingEnd = to;
    if (broken >= maxBroken) pendingBroken = true;
    if (pendingBroken) return to;
    const span = spanOfTokens(from, to);
    const { node, failure, diagnostics, taken } = statementParser.readAnnotations(tokens.slice(from, to), file);
    if (hasFatal(span)) {
      unreadable.push(span);
      pendingBroken = true;
      return to;
    }
    const limit = findLimit(tokens, from, to, blocks.length - 1, file);
    if (failure !== undefined) {
      if (!pendingBroken)
        found.push(limit ?? describeFailure({ file, tokens: tokens.slice(from, to), next: tokens[to], failure }));
      pendingBroken = true;
      countBroken(to);
      return to;
    }
    for (const finding of diagnostics) found.push(finding);
    pendingEnd = Math.max(from + 1, from + taken);
    const bare = tokens[pendingEnd];
    const last = (node ?? []).at(-1);
    if (bare?.literal !== undefined && !bare.lineStart && last !== undefined && last.args === undefined) {
      const at = { file, start: bare.startOffset, end: endOf(bare) };
      const text = `@${last.name.text}(${bare.image})`;
      found.push(
        createDiagnostic('E0120', at, 'the argument of an annotation stands in brackets', {
          help: `write \`${text}\``,
          fix: { message: `write \`${text}\``, edits: [{ span: { ...at, start: last.span.start }, text }] },
        }),
      );
      pendingBroken = true;
      pendingEnd += 1;
      return pendingEnd;
    }
    for (const annotation of node ?? []) pending.push(annotation);
    return pendingEnd;
  };

  /** The end of the statement at `from`: the first `}` that is not its own. */
  const ownEnd = (from: number, to: number): number => {
    const type = tokens[from]?.tokenType;
    let depth = 0;
    let ownsNext = type === t.Define || type === t.Test;
    for (let index = from; index < to; index += 1) {
      const token = tokens[index];
      if (token?.tokenType === t.LCurly) {
        depth += 1;
        ownsNext = false;
      } else if (token?.tokenType === t.RCurly) {
        const after = tokens[index + 1];
        const inMidLine = index + 1 < to && after !== undefined && after.tokenType !== t.RCurly && !after.lineStart;
        if (depth > 0) depth -= 1;
        else if (ownsNext) ownsNext = false;
        else if (!inMidLine) return index;
      }
    }
    if (depth > 0) {
      owedClosers += depth;
      structureDamaged = true;
    }
    return to;
  };

  const firstBrace = (from: number, to: number): number => {
    let index = from;
    while (index < to && tokens[index]?.tokenType !== t.LCurly) index += 1;
    return index;
  };

  /** `grovp "a" when … {`: a word near `group` before a label. What is in its braces are statements all the same. */
  const isMisspelledGroup = (at: number): boolean => {
    const token = tokens[at];
    return token?.tokenType === t.Ident && statementWordMeant(token, tokens[at + 1]) === 'group';
  };

  const readPiece = (from: number, to: number, foundInstead?: number): void => {
    let at = from;
    while (at < to) {
      const type = tokens[at]?.tokenType;
      if (type === t.RCurly) {
        closeGroup(at);
        at += 1;
        continue;
      }
      if (type === t.At) {
        at = readAnnotations(at, to);
        continue;
      }
      const brace = type === t.Group || isMisspelledGroup(at) ? firstBrace(at, to) : to;
      if (brace < to) {
        openGroup(at, brace + 1);
        at = brace + 1;
        continue;
      }
      if (type === t.Group) {
        owedClosers += 1;
        structureDamaged = true;
      }
      const end = ownEnd(at, to);
      let absorbTo = end;
      while (blocks.length === 1 && absorbTo < to && tokens[absorbTo]?.tokenType === t.RCurly) absorbTo += 1;
      at = readStatement(at, end, absorbTo, foundInstead);
    }
  };

  const starts = statementStarts(tokens);
  for (let index = 0; index < starts.length; index += 1) {
    const from = starts[index] ?? 0;
    const to = starts[index + 1] ?? tokens.length;
    const next = tokens[to];
    const mayMerge =
      broken < maxBroken &&
      next !== undefined &&
      !next.lineStart &&
      isStatementWord(next) &&
      isStatementWord(tokens[from]);
    if (mayMerge && tokens[to - 1]?.tokenType !== t.RCurly && tokens[to - 1]?.tokenType !== t.LCurly) {
      // A statement word in mid-line, after something incomplete, was meant as a name: `let queue = 5`.
      const after = starts[index + 2] ?? tokens.length;
      const { failure } = statementParser.readStatement(tokens.slice(from, to), file);
      const standsAlone = statementParser.readStatement(tokens.slice(to, after), file).failure === undefined;
      const isCutShort = failure?.index === to - from;
      if ((isCutShort && !standsAlone) || ((failure !== undefined || !standsAlone) && isTakenIn(tokens, to))) {
        readPiece(from, after, to);
        index += 1;
        continue;
      }
    }
    readPiece(from, to);
  }
  dropAnnotations();
  if (blocks.length > 1) {
    const innermost = blocks.at(-1);
    const [outdented] = innermost === undefined ? [] : outdentedOf(innermost);
    structureDamaged = true;
    if (owedClosers === 0 && innermost?.open !== undefined) {
      const end = tokens.at(-1) === undefined ? 0 : endOf(tokens.at(-1) as LexToken);
      const span = outdented?.head ?? { file, start: end, end };
      const open = { file, start: innermost.open.startOffset, end: endOf(innermost.open) };
      const instead = outdented === undefined ? 'the end of the file' : `\`${text.slice(span.start, span.end)}\``;
      found.push(
        createDiagnostic('E0126', span, `expected \`}\`, found ${instead}`, {
          labels: [{ span: open, message: 'this group is never closed' }],
        }),
      );
    }
    while (blocks.length > 1) {
      const block = blocks.pop();
      if (block === undefined) continue;
      const after = outdentedOf(block);
      block.statements.length -= after.length;
      finishGroup(block, block.statements.at(-1)?.span.end ?? 0);
      for (const statement of after) currentBlock().statements.push(statement);
    }
  }

  if (language !== undefined && language.version.value !== languageVersion) {
    const finding = createDiagnostic(
      'E0133',
      language.version.span,
      `version ${language.version.raw} of the language is not supported`,
      { help: `this program knows version ${languageVersion}` },
    );
    return {
      file: { kind: 'file', span: whole, file, text, language, statements: [], comments },
      diagnostics: [finding],
      tokens: publicTokens(tokens, comments),
      structureDamaged: true,
    };
  }

  // Of the stray characters in a statement only the first is told.
  const strayReported = new Set<Span>();
  const owners = joined(unreadable);
  const lexical = lexed.diagnostics.filter((diagnostic) => {
    if (diagnostic.code !== 'E0101') return true;
    const owner = spanAt(owners, diagnostic.span.start);
    if (owner === undefined) return true;
    if (strayReported.has(owner)) return false;
    strayReported.add(owner);
    return true;
  });

  const node: FileNode = {
    kind: 'file',
    span: whole,
    file,
    text,
    statements: root.statements,
    comments,
    ...(language === undefined ? {} : { language }),
  };
  return {
    file: node,
    diagnostics: sortDiagnostics([...lexical, ...found]),
    tokens: publicTokens(tokens, comments),
    structureDamaged,
  };
};

/**
 * The tree of one `.route` file, with the findings of lexer and parser. Never throws, whatever the text. Each statement that
 * does not parse gives one finding and a broken node; all others are there in full.
 */
export const parsePolicy = (text: string, options: ParseOptions): ParseResult => {
  const { file, diagnostics, tokens } = parsePolicyInDetail(text, options);
  return { file, diagnostics, tokens };
};
