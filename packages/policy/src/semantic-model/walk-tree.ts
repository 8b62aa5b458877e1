import type { Node } from '../syntax/ast.ts';

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'kind' in value && 'span' in value;

/** The nodes directly below one, in the order of their properties (which is that of the text, but for annotations). */
export const childrenOf = (node: Node): readonly Node[] => {
  const children: Node[] = [];
  for (const value of Object.values(node) as readonly unknown[]) {
    if (Array.isArray(value)) {
      for (const item of value as readonly unknown[]) if (isNode(item)) children.push(item);
    } else if (isNode(value)) children.push(value);
  }
  return children;
};

/** Calls `visit` for a node and all below it. Parents come first. */
export const walkTree = (node: Node, visit: (node: Node) => void): void => {
  visit(node);
  for (const child of childrenOf(node)) walkTree(child, visit);
};

/** The nodes that hold `offset`, outermost first; a node holds both its ends. */
export const pathTo = (node: Node, offset: number): readonly Node[] => {
  const path: Node[] = [];
  let at: Node | undefined = node;
  while (at !== undefined) {
    path.push(at);
    at = childrenOf(at).findLast(
      (child) => child.kind !== 'comment' && child.span.start <= offset && offset <= child.span.end,
    );
  }
  return path;
};
