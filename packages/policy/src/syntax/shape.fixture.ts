import type { Span } from './span.ts';

const leftOut: ReadonlySet<string> = new Set(['span', 'head', 'operatorSpan', 'comments', 'file']);

/** The text of a broken statement up to the first statement within it. */
const headText = (node: object, text: string): string => {
  const { span, statements } = node as { readonly span: Span; readonly statements: readonly { readonly span: Span }[] };
  const [first] = statements;
  return first === undefined
    ? text
    : text.slice(0, Math.max(0, first.span.start - span.start)).replace(/#[^\r\n]*\s*$/, '');
};

/** A tree without its places and comments, to compare what two texts mean. Texts of files are left out, those of broken statements lose their white space. */
export const shapeOf = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(shapeOf);
  if (typeof node !== 'object' || node === null) return node;
  const kind = 'kind' in node ? node.kind : undefined;
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) => {
      if (leftOut.has(key) || (kind === 'file' && key === 'text')) return [];
      // Of a broken group the head; the statements in it are laid out, and compared on their own.
      if (kind === 'broken' && key === 'text')
        return [[key, headText(node, String(value)).replaceAll(/\s+/g, ' ').trim()]];
      return [[key, shapeOf(value)]];
    }),
  );
};
