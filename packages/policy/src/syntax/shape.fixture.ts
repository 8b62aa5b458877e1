const leftOut: ReadonlySet<string> = new Set(['span', 'head', 'operatorSpan', 'comments', 'file']);

/** A tree without its places and comments, to compare what two texts mean. Texts of files are left out, those of broken statements lose their white space. */
export const shapeOf = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(shapeOf);
  if (typeof node !== 'object' || node === null) return node;
  const kind = 'kind' in node ? node.kind : undefined;
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) => {
      if (leftOut.has(key) || (kind === 'file' && key === 'text')) return [];
      if (kind === 'broken' && key === 'text') {
        // Statements in a broken group are laid out.
        const within = 'statements' in node && Array.isArray(node.statements) && node.statements.length > 0;
        return [[key, String(value).replaceAll(/\s+/g, within ? '' : ' ')]];
      }
      return [[key, shapeOf(value)]];
    }),
  );
};
