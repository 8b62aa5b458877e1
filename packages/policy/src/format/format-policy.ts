import { hasErrors, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { CommentNode, StatementNode, TestNode } from '../syntax/ast.ts';
import { parsePolicyInDetail } from '../syntax/parse-policy.ts';
import type { ParseOptions, PolicyToken } from '../syntax/parse-result.ts';
import { printLayout, type Layout } from './layout.ts';
import {
  annotationsLayout,
  createTokenReader,
  groupHeadLayout,
  statementLayout,
  stepLayout,
  type TokenReader,
} from './statement-layout.ts';

/** Columns up to which a statement stays on one line. */
export const lineWidth = 100;
const indentWidth = 2;

export interface FormatResult {
  /** The policy in its canonical layout; the text as given where its braces do not pair up or it was not read at all. */
  readonly text: string;
  /** The findings of lexer and parser. */
  readonly diagnostics: readonly Diagnostic[];
}

interface PlacedComment {
  readonly comment: CommentNode;
  /** It stands behind a token on the same line. */
  readonly sameLine: boolean;
}

const splitLines = (text: string): readonly string[] => text.split(/\r\n|\n|\r/);

/** One round of formatting. */
const layOutPolicy = (text: string, options: ParseOptions): FormatResult => {
  const { file, diagnostics, tokens: all, structureDamaged } = parsePolicyInDetail(text, options);
  if (structureDamaged) return { text, diagnostics };

  const tokens = all.filter((token) => token.kind !== 'comment');
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 'error');
  const blockComments = file.comments.some((comment) => /[\r\n]/.test(comment.text));
  if (blockComments || (tokens.length === 0 && errors.length > 0)) return { text, diagnostics };

  /** Index of the first token at or after an offset. */
  const tokenAt = (offset: number): number => {
    let low = 0;
    let high = tokens.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((tokens[middle]?.start ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const breaksBetween = (start: number, end: number): number => splitLines(text.slice(start, end)).length - 1;

  const itemStarts = new Set<number>();
  const noteStarts = (nodes: readonly StatementNode[]): void => {
    for (const node of nodes) {
      itemStarts.add(node.span.start);
      if (node.kind === 'group' || node.kind === 'broken') noteStarts(node.statements);
    }
  };
  noteStarts(file.statements);

  const commentsAfter = new Map<number, PlacedComment[]>();
  for (const comment of file.comments) {
    const before = tokenAt(comment.span.start) - 1;
    const sameLine = before >= 0 && breaksBetween(tokens[before]?.end ?? 0, comment.span.start) === 0;
    // What stands before a comma is laid out behind it.
    const next = tokens[before + 1];
    const owner = next?.text === ',' && !itemStarts.has(next.start) ? before + 1 : before;
    const placed = commentsAfter.get(owner) ?? [];
    placed.push({ comment, sameLine: sameLine && placed.length === 0 });
    commentsAfter.set(owner, placed);
  }

  let nextComment = 0;
  /** The errors that do not lie in comments, in order. */
  const torn = errors.filter(({ span }) => {
    while ((file.comments[nextComment]?.span.end ?? text.length + 1) <= span.start) nextComment += 1;
    return span.start < (file.comments[nextComment]?.span.start ?? text.length + 1);
  });
  /** Index of the first of these at or after an offset. */
  const errorAt = (offset: number): number => {
    let low = 0;
    let high = torn.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((torn[middle]?.span.start ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const errorIn = (start: number, end: number): boolean => (torn[errorAt(start)]?.span.start ?? text.length + 1) < end;
  /** Where a statement that is kept as it is ends: with signs behind it that were dropped, such as `;`. */
  const keptEnd = (end: number): number => {
    const next = tokens[tokenAt(end)]?.start ?? text.length;
    let kept = end;
    for (let index = errorAt(end); ; index += 1) {
      const span = torn[index]?.span;
      if (span === undefined || span.end > next) return kept;
      kept = Math.max(kept, span.end);
    }
  };

  const pad = (level: number): string => ' '.repeat(level * indentWidth);
  const print = (layout: Layout, level: number): string =>
    pad(level) + printLayout(layout, { level, width: lineWidth });
  const verbatim = (start: number, end: number, level: number): string =>
    pad(level) + splitLines(text.slice(start, end)).join('\n');

  const ownComments = (before: number, after: number): readonly CommentNode[] =>
    (commentsAfter.get(before) ?? []).flatMap(({ comment, sameLine }) =>
      !sameLine && comment.span.start < after ? [comment] : [],
    );
  const trailingComments = (index: number): string =>
    (commentsAfter.get(index) ?? [])
      .flatMap(({ comment, sameLine }) => (sameLine ? [` ${comment.text}`] : []))
      .join('');

  interface Item {
    readonly start: number;
    readonly end: number;
    print(level: number): string;
  }

  /**
   * A block of items with the comments between them, one to a line, blank lines kept. `before` is the index of the token in
   * front of the block, `close` the offset at which the block ends.
   */
  const printBlock = (items: readonly Item[], level: number, before: number, close: number): readonly string[] => {
    const lines: string[] = [];
    let end = before < 0 ? 0 : (tokens[before]?.end ?? 0);
    const place = (start: number, stop: number, printed: string): void => {
      if (lines.length > 0 && breaksBetween(end, start) > 1) lines.push('');
      lines.push(printed);
      end = stop;
    };
    const placeComments = (after: number, upTo: number): void => {
      for (const comment of ownComments(after, upTo))
        place(comment.span.start, comment.span.end, pad(level) + comment.text);
    };
    const trailingEnd = (index: number): number =>
      (commentsAfter.get(index) ?? []).filter(({ sameLine }) => sameLine).at(-1)?.comment.span.end ?? 0;

    if (before >= 0) end = Math.max(end, trailingEnd(before));
    let last = before;
    for (const item of items) {
      placeComments(last, item.start);
      last = tokenAt(item.end) - 1;
      place(item.start, Math.max(item.end, trailingEnd(last)), item.print(level) + trailingComments(last));
    }
    placeComments(last, close);
    return lines;
  };

  /** Lays out the tokens from one offset to another; as they stand if that leaves any out. */
  const layOut = (start: number, end: number, build: (reader: TokenReader) => Layout, level: number): string => {
    const reader = createTokenReader(tokens, commentsAfter, tokenAt(start), tokenAt(end));
    const layout = build(reader);
    return reader.done() ? print(layout, level) : verbatim(start, end, level);
  };

  const withBody = (head: string, headEnd: number, items: readonly Item[], end: number, level: number): string => {
    const open = tokenAt(headEnd) - 1;
    const body = printBlock(items, level + 1, open, end - 1);
    const trailing = trailingComments(open);
    if (body.length === 0) return trailing === '' ? `${head}}` : `${head}${trailing}\n${pad(level)}}`;
    return [`${head}${trailing}`, ...body, `${pad(level)}}`].join('\n');
  };

  const stepItem = (step: TestNode['steps'][number]): Item => ({
    start: step.span.start,
    end: step.span.end,
    print: (level) => layOut(step.span.start, step.span.end, (reader) => stepLayout(step, reader), level),
  });

  /** The `{` that opens the body of a statement without objects before it. */
  const braceAfter = (offset: number): PolicyToken | undefined => {
    let index = tokenAt(offset);
    while (index < tokens.length && tokens[index]?.text !== '{') index += 1;
    return tokens[index];
  };

  const statementItem = (node: StatementNode): Item => {
    const { start } = node.span;
    const bodyEnd = node.span.end;
    const hasBody =
      node.kind === 'group' || node.kind === 'test' || (node.kind === 'broken' && node.statements.length > 0);
    const brace = hasBody ? braceAfter(node.kind === 'broken' ? start : node.head.end) : undefined;
    const headEnd = brace?.end ?? bodyEnd;
    const isKept = node.kind === 'broken' || errorIn(start, node.kind === 'group' ? headEnd : keptEnd(bodyEnd));
    const end = isKept && (node.kind !== 'group' || node.statements.length === 0) ? keptEnd(bodyEnd) : bodyEnd;

    const annotated = (level: number, from: number, rest: string): string =>
      node.annotations.length === 0
        ? rest
        : `${layOut(start, from, (reader) => annotationsLayout(node.annotations, reader), level)}${trailingComments(tokenAt(from) - 1)}\n${ownComments(
            tokenAt(from) - 1,
            from,
          )
            .map((comment) => `${pad(level)}${comment.text}\n`)
            .join('')}${rest}`;

    return {
      start,
      end,
      print: (level) => {
        if (node.kind === 'broken' && node.statements.length === 0) return verbatim(start, end, level);
        if (node.kind === 'broken') {
          return withBody(verbatim(start, headEnd, level), headEnd, node.statements.map(statementItem), bodyEnd, level);
        }
        const from = node.head.start;
        switch (node.kind) {
          case 'group': {
            const head = isKept
              ? verbatim(start, headEnd, level)
              : annotated(
                  level,
                  from,
                  layOut(from, headEnd, (reader) => groupHeadLayout(node, reader), level),
                );
            return withBody(head, headEnd, node.statements.map(statementItem), bodyEnd, level);
          }
          case 'test': {
            if (isKept) return verbatim(start, end, level);
            const testHead = layOut(
              from,
              headEnd,
              (reader) => [reader.next(), ' ', reader.next(), ' ', reader.next()],
              level,
            );
            return annotated(level, from, withBody(testHead, headEnd, node.steps.map(stepItem), bodyEnd, level));
          }
          default:
            if (isKept) return verbatim(start, end, level);
            return annotated(
              level,
              from,
              layOut(from, bodyEnd, (reader) => statementLayout(node, reader), level),
            );
        }
      },
    };
  };

  const items: Item[] = [];
  if (file.language !== undefined) {
    const { start, end } = file.language.span;
    items.push({
      start,
      end,
      print: (level) => layOut(start, end, (reader) => [reader.next(), ' ', reader.next()], level),
    });
  }
  for (const node of file.statements) items.push(statementItem(node));

  const lines = printBlock(items, 0, -1, text.length);
  const printed = lines.length === 0 ? '' : `${lines.join('\n')}\n`;
  const crlf = /^[^\r\n]*\r\n/.test(text);
  return { text: crlf ? printed.replaceAll('\n', '\r\n') : printed, diagnostics };
};

/**
 * Lays out a policy in its one canonical form; there are no options. Comments stay with what they stand behind or above,
 * statements with syntax errors stay as they are, and blank lines are kept, one at most in a row. Formatting twice changes
 * nothing. Line breaks are those of the first line of the text (CRLF or LF); a byte order mark is dropped.
 */
export const formatPolicy = (text: string, options: ParseOptions): FormatResult => {
  const result = layOutPolicy(text, options);
  if (!hasErrors(result.diagnostics) || result.text === text) return result;
  // Where a statement is torn, moving it to a line of its own can change how the rest is read.
  const settled = layOutPolicy(result.text, options).text === result.text && sameContent(text, result.text, options);
  return settled ? result : { text, diagnostics: result.diagnostics };
};

/** Whether two texts hold the same words in order and the same comments; commas may come and go between entries. */
const sameContent = (before: string, after: string, options: ParseOptions): boolean => {
  const contentOf = (text: string): string => {
    const words: string[] = [];
    const comments: string[] = [];
    for (const token of parsePolicyInDetail(text, options).tokens) {
      if (token.kind === 'comment') comments.push(token.text.trimEnd());
      else if (token.text !== ',') words.push(token.text);
    }
    return JSON.stringify([words, comments.toSorted()]);
  };
  return contentOf(before) === contentOf(after);
};
