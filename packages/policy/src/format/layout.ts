/*
 * A small pretty printer after Wadler ("A prettier printer", 2003): a document says where lines may break, the printer breaks
 * those that do not fit. Comments never move: one that ends a line forces a break before whatever follows.
 */

export type Layout =
  | string
  | readonly Layout[]
  /** A space, or a line break where the group around it is broken. */
  | { readonly kind: 'line' }
  /** Nothing, or a line break where the group around it is broken. */
  | { readonly kind: 'soft' }
  /** A comment at the end of the line on which the text before it ends. */
  | { readonly kind: 'trailing-comment'; readonly text: string }
  /** A comment on its own line. */
  | { readonly kind: 'own-comment'; readonly text: string }
  | { readonly kind: 'indent'; readonly content: Layout }
  /** On one line if it fits, else every line of its own breaks. */
  | { readonly kind: 'group'; readonly content: Layout }
  /** Contents and separators in turn; each separator breaks by itself, where the next content does not fit. */
  | { readonly kind: 'fill'; readonly parts: readonly Layout[] };

export const line: Layout = { kind: 'line' };
export const soft: Layout = { kind: 'soft' };
export const indent = (content: Layout): Layout => ({ kind: 'indent', content });
export const group = (content: Layout): Layout => ({ kind: 'group', content });
export const fill = (parts: readonly Layout[]): Layout => ({ kind: 'fill', parts });

const indentWidth = 2;

interface Command {
  readonly level: number;
  readonly flat: boolean;
  readonly layout: Layout;
}

/** Columns that a text takes: code points, as elsewhere in this package. */
const widthOf = (text: string): number => (/^[\x20-\x7E]*$/.test(text) ? text.length : [...text].length);

const isList = (layout: Layout): layout is readonly Layout[] => Array.isArray(layout);

interface Breaks {
  /** It holds a line break that must be. */
  readonly must: boolean;
  /** It ends in a comment: whatever follows stands on the next line. */
  readonly endsInComment: boolean;
  /** It prints nothing but white space. */
  readonly blank: boolean;
}

const noBreaks: Breaks = { must: false, endsInComment: false, blank: true };

const sequenceBreaks = (parts: readonly Layout[], known: Map<Layout, Breaks>): Breaks => {
  let { must, endsInComment, blank } = noBreaks;
  for (const part of parts) {
    const breaks = breaksOf(part, known);
    must ||= breaks.must;
    if (!breaks.blank && part !== ',') {
      must ||= endsInComment;
      endsInComment = breaks.endsInComment;
    }
    blank &&= breaks.blank;
  }
  return { must, endsInComment, blank };
};

const breaksOf = (layout: Layout, known: Map<Layout, Breaks>): Breaks => {
  if (typeof layout === 'string') return layout.trim() === '' ? noBreaks : { ...noBreaks, blank: false };
  const before = known.get(layout);
  if (before !== undefined) return before;
  let breaks = noBreaks;
  if (isList(layout)) breaks = sequenceBreaks(layout, known);
  else if (layout.kind === 'fill') breaks = sequenceBreaks(layout.parts, known);
  else if (layout.kind === 'indent' || layout.kind === 'group') breaks = breaksOf(layout.content, known);
  else if (layout.kind === 'own-comment') breaks = { must: true, endsInComment: false, blank: false };
  else if (layout.kind === 'trailing-comment') breaks = { must: false, endsInComment: true, blank: false };
  known.set(layout, breaks);
  return breaks;
};

/** Prints a layout whose first character stands at column `level * 2`, which the caller has written. */
export const printLayout = (
  layout: Layout,
  { level, width }: { readonly level: number; readonly width: number },
): string => {
  const breaks = new Map<Layout, Breaks>();
  const lines: string[] = [];
  const comments: string[] = [];
  let current = '';
  let column = level * indentWidth;
  let started = false;

  const newline = (at: number): void => {
    const trimmed = current.trimEnd();
    if (started && trimmed === '' && comments.length === 0) {
      current = ' '.repeat(at * indentWidth);
      column = at * indentWidth;
      return;
    }
    lines.push(comments.length === 0 ? trimmed : `${trimmed} ${comments.join(' ')}`);
    comments.length = 0;
    current = ' '.repeat(at * indentWidth);
    column = at * indentWidth;
    started = true;
  };
  const write = (text: string, at: number): void => {
    if (text === ' ' && started && current.trim() === '' && comments.length === 0) return;
    // A comma goes before the comment that ends its line.
    if (comments.length > 0 && text !== ',' && text.trim() !== '') newline(at);
    current += text;
    column += widthOf(text);
  };

  const fits = (first: Command, rest: readonly Command[], limit: number): boolean => {
    let left = limit - column;
    const pending: Command[] = [first];
    let restIndex = rest.length - 1;
    while (left >= 0) {
      let command = pending.pop();
      if (command === undefined) {
        command = rest[restIndex];
        restIndex -= 1;
        if (command === undefined) return true;
      }
      const { level: at, flat, layout: item } = command;
      if (typeof item === 'string') left -= widthOf(item);
      else if (isList(item))
        for (let index = item.length - 1; index >= 0; index -= 1)
          pending.push({ level: at, flat, layout: item[index] ?? '' });
      else if (item.kind === 'line') {
        if (!flat) return true;
        left -= 1;
      } else if (item.kind === 'soft') {
        if (!flat) return true;
      } else if (item.kind === 'own-comment') return true;
      else if (item.kind === 'trailing-comment') continue;
      else if (item.kind === 'indent') pending.push({ level: at + 1, flat, layout: item.content });
      else if (item.kind === 'group')
        pending.push({ level: at, flat: flat && !breaksOf(item, breaks).must, layout: item.content });
      else
        for (let index = item.parts.length - 1; index >= 0; index -= 1)
          pending.push({ level: at, flat, layout: item.parts[index] ?? '' });
    }
    return false;
  };

  const stack: Command[] = [{ level, flat: false, layout }];
  for (let command = stack.pop(); command !== undefined; command = stack.pop()) {
    const { level: at, flat, layout: item } = command;
    if (typeof item === 'string') write(item, at);
    else if (isList(item)) {
      for (let index = item.length - 1; index >= 0; index -= 1)
        stack.push({ level: at, flat, layout: item[index] ?? '' });
    } else {
      switch (item.kind) {
        case 'line':
          if (flat) write(' ', at);
          else newline(at);
          break;
        case 'soft':
          if (!flat) newline(at);
          break;
        case 'trailing-comment':
        case 'own-comment':
          if (item.kind === 'trailing-comment' && comments.length === 0) {
            comments.push(item.text);
            break;
          }
          if (comments.length > 0 || current.trim() !== '' || !started) newline(at);
          current = ' '.repeat(at * indentWidth) + item.text;
          newline(at);
          break;
        case 'indent':
          stack.push({ level: at + 1, flat, layout: item.content });
          break;
        case 'group': {
          const asFlat: Command = { level: at, flat: true, layout: item.content };
          const isFlat = flat || (!breaksOf(item, breaks).must && fits(asFlat, stack, width));
          stack.push({ level: at, flat: isFlat, layout: item.content });
          break;
        }
        case 'fill': {
          const [content, separator, ...rest] = item.parts;
          if (content === undefined) break;
          if (separator === undefined) {
            stack.push({ level: at, flat: false, layout: group(content) });
            break;
          }
          const next = rest[0] ?? '';
          const pair: Command = { level: at, flat: true, layout: [content, separator, next] };
          const both = flat || (!breaksOf(pair.layout, breaks).must && fits(pair, [], width));
          stack.push({ level: at, flat, layout: fill(rest) });
          stack.push({ level: at, flat: both, layout: separator });
          stack.push({ level: at, flat, layout: flat ? content : group(content) });
          break;
        }
      }
    }
  }
  lines.push(comments.length === 0 ? current.trimEnd() : `${current.trimEnd()} ${comments.join(' ')}`);
  return lines.join('\n');
};
