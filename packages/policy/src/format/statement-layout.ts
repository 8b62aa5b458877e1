import type {
  AnnotationNode,
  ArgsNode,
  ByNode,
  CommentNode,
  DestinationNode,
  ElseNode,
  ExprNode,
  GroupNode,
  ListNode,
  ObjectNode,
  OutcomeNode,
  PickNode,
  StatementNode,
  TargetNode,
  TestNode,
  TypeNode,
  VerdictNode,
  WithNode,
} from '../syntax/ast.ts';
import type { PolicyToken } from '../syntax/parse-result.ts';
import { fill, group, indent, line, soft, type Layout } from './layout.ts';

/**
 * A reader of the tokens of one statement, in order. It carries each comment along with the token that it stands behind or
 * above, so that whoever lays out all tokens has laid out all comments.
 */
export interface TokenReader {
  /** The next token. */
  next(): Layout;
  /** As many tokens, without space between them. */
  glued(count: number): Layout;
  /** Whether the next token has this text. */
  at(text: string): boolean;
  /** Comments above the next token, to be laid out inside brackets that it closes. */
  commentsAbove(): Layout;
  /** Steps over the next token and keeps only its comments. */
  skip(): Layout;
  /** Whether all tokens are laid out. */
  done(): boolean;
}

export const createTokenReader = (
  tokens: readonly PolicyToken[],
  commentsAfter: ReadonlyMap<number, readonly { readonly comment: CommentNode; readonly sameLine: boolean }[]>,
  from: number,
  to: number,
): TokenReader => {
  let position = from;

  const trailing = (index: number): Layout =>
    index === to - 1
      ? []
      : (commentsAfter.get(index) ?? []).flatMap(({ comment, sameLine }) =>
          sameLine ? [{ kind: 'trailing-comment', text: comment.text }] : [],
        );
  const above = (index: number): Layout =>
    index === from
      ? []
      : (commentsAfter.get(index - 1) ?? []).flatMap(({ comment, sameLine }) =>
          sameLine ? [] : [{ kind: 'own-comment', text: comment.text }],
        );

  let aboveTaken = -1;
  const commentsAbove = (): Layout => {
    if (aboveTaken === position) return [];
    aboveTaken = position;
    return above(position);
  };
  const next = (): Layout => {
    const layout = [commentsAbove(), tokens[position]?.text ?? '', trailing(position)];
    position += 1;
    return layout;
  };

  return {
    next,
    commentsAbove,
    glued: (count) => Array.from({ length: count }, next),
    at: (text) => position < to && tokens[position]?.text === text,
    skip: () => {
      const layout = [commentsAbove(), trailing(position)];
      position += 1;
      return layout;
    },
    done: () => position === to,
  };
};

const spaced = (...parts: readonly Layout[]): Layout =>
  parts.flatMap((part, index) => (index === 0 ? [part] : [' ', part]));

const nameLength = (parts: number): number => 2 * parts - 1;

/** Items with the comma behind each, filled. */
const commaFill = (reader: TokenReader, items: readonly (() => Layout)[]): Layout => {
  const parts: Layout[] = [];
  for (const [index, item] of items.entries()) {
    const content = item();
    const last = index === items.length - 1;
    parts.push(last ? content : [content, reader.next()]);
    if (!last) parts.push(line);
  }
  return fill(parts);
};

const bracketed = (open: Layout, content: Layout, reader: TokenReader): Layout => {
  const comments = reader.commentsAbove();
  return group([open, indent([soft, content, comments]), soft, reader.next()]);
};

const listLayout = (node: ListNode, reader: TokenReader): Layout => {
  const open = reader.next();
  const items = commaFill(
    reader,
    node.items.map((item) => () => valueLayout(item, reader)),
  );
  return bracketed(open, items, reader);
};

const argsLayout = (node: ArgsNode, reader: TokenReader): Layout => {
  const open = reader.next();
  const items = commaFill(
    reader,
    node.items.map(
      (arg) => () =>
        arg.name === undefined ? exprLayout(arg.value, reader) : [reader.glued(2), ' ', exprLayout(arg.value, reader)],
    ),
  );
  return bracketed(open, items, reader);
};

/** Entries are separated by commas whether or not they were; none stands after the last. */
export const objectLayout = (node: ObjectNode, reader: TokenReader): Layout => {
  const open = reader.next();
  const entries: Layout[] = [];
  for (const [index, entry] of node.entries.entries()) {
    const key = reader.glued(2);
    const value = valueLayout(entry.value, reader);
    const comma = index === node.entries.length - 1 ? [] : ',';
    const behind = reader.at(',') ? reader.skip() : [];
    entries.push([line, key, ' ', value, comma, behind]);
  }
  const comments = reader.commentsAbove();
  if (entries.length === 0) return group([open, indent([soft, comments]), soft, reader.next()]);
  return group([open, indent([entries, comments]), line, reader.next()]);
};

const valueLayout = (node: ExprNode, reader: TokenReader): Layout =>
  node.kind === 'object' ? objectLayout(node, reader) : exprLayout(node, reader);

/** Operands with the operator in front of all but the first; lines break before operators. */
const chain = (operands: readonly ExprNode[], reader: TokenReader): Layout => {
  const parts: Layout[] = [];
  for (const [index, operand] of operands.entries()) {
    if (index === 0) parts.push(exprLayout(operand, reader));
    else {
      const operator = reader.next();
      parts.push(line, [operator, ' ', exprLayout(operand, reader)]);
    }
  }
  return fill(parts);
};

/** `a + b - c` as one list, so that all of its operators may begin a line. */
const arithmeticOperands = (node: ExprNode, operators: string): readonly ExprNode[] => {
  const operands: ExprNode[] = [];
  let left = node;
  while (left.kind === 'arithmetic' && operators.includes(left.operator)) {
    operands.unshift(left.right);
    left = left.left;
  }
  return [left, ...operands];
};

export const exprLayout = (node: ExprNode, reader: TokenReader): Layout => {
  switch (node.kind) {
    case 'number':
    case 'string':
    case 'regex':
    case 'duration':
    case 'count':
    case 'bytes':
    case 'rate':
    case 'percent':
    case 'money':
    case 'bool':
      return reader.next();
    case 'name':
      return reader.glued(nameLength(node.parts.length));
    case 'call': {
      const callee = reader.glued(nameLength(node.callee.parts.length));
      return [callee, argsLayout(node.args, reader)];
    }
    case 'index': {
      const object = reader.glued(nameLength(node.object.parts.length));
      const open = reader.next();
      const index = exprLayout(node.index, reader);
      return [object, open, index, reader.next()];
    }
    case 'ref':
      return spaced(reader.glued(nameLength(node.name.parts.length)), reader.next());
    case 'list':
      return listLayout(node, reader);
    case 'object':
      return objectLayout(node, reader);
    case 'paren': {
      const open = reader.next();
      return bracketed(open, exprLayout(node.inner, reader), reader);
    }
    case 'negate':
      return [reader.next(), exprLayout(node.operand, reader)];
    case 'not':
      return spaced(reader.next(), exprLayout(node.operand, reader));
    case 'arithmetic':
      return chain(arithmeticOperands(node, node.operator === '+' || node.operator === '-' ? '+-' : '*/'), reader);
    case 'coalesce':
    case 'and':
    case 'or':
      return chain(node.operands, reader);
    case 'compare':
      return spaced(exprLayout(node.left, reader), reader.next(), exprLayout(node.right, reader));
    case 'in': {
      const subject = exprLayout(node.subject, reader);
      const operator = node.negated ? spaced(reader.next(), reader.next()) : reader.next();
      if (node.set.kind !== 'range') return spaced(subject, operator, exprLayout(node.set, reader));
      const range = [exprLayout(node.set.low, reader), reader.next(), exprLayout(node.set.high, reader)];
      return spaced(subject, operator, range);
    }
    case 'matches':
      return spaced(exprLayout(node.subject, reader), reader.next(), reader.next());
    case 'contains':
      return spaced(exprLayout(node.subject, reader), reader.next(), exprLayout(node.item, reader));
    case 'exists':
      return spaced(exprLayout(node.subject, reader), reader.next());
  }
};

/** The keyword of a clause and its expression, which goes on on indented lines. */
const clause = (expr: ExprNode, reader: TokenReader): Layout => spaced(reader.next(), indent(exprLayout(expr, reader)));

const targetLayout = (node: TargetNode, reader: TokenReader): Layout => {
  const parts: Layout[] = [];
  if (node.share !== undefined) parts.push(reader.next());
  parts.push(reader.glued(nameLength(node.name.parts.length)));
  if (node.label !== undefined) parts.push(reader.next());
  return spaced(...parts);
};

const byLayout = (node: ByNode, reader: TokenReader): Layout => {
  const keyword = reader.next();
  const parts: Layout[] = [];
  for (const [index, tier] of node.tiers.entries()) {
    if (index === 0) parts.push(exprLayout(tier, reader));
    else {
      const then = reader.next();
      parts.push(line, [then, ' ', exprLayout(tier, reader)]);
    }
  }
  return spaced(keyword, indent(fill(parts)));
};

const pickLayout = (node: PickNode, reader: TokenReader): Layout => {
  const head = spaced(reader.next(), reader.glued(nameLength(node.name.parts.length)));
  return node.args === undefined ? head : [head, argsLayout(node.args, reader)];
};

const withLayout = (node: WithNode, reader: TokenReader): Layout => {
  const keyword = reader.next();
  const modifiers = commaFill(
    reader,
    node.modifiers.map((modifier) => () => {
      const layout: Layout[] = [reader.glued(nameLength(modifier.name.parts.length))];
      if (modifier.args !== undefined) layout.push(argsLayout(modifier.args, reader));
      for (const part of modifier.parts) {
        layout.push(' ');
        if (part.value.kind === 'list') layout.push(listLayout(part.value, reader));
        else layout.push(exprLayout(part.value, reader));
        // Arguments of a word touch it; after a literal or list they stand apart.
        if (part.args !== undefined) layout.push(part.value.kind === 'name' ? '' : ' ', argsLayout(part.args, reader));
      }
      return layout;
    }),
  );
  return spaced(keyword, indent(modifiers));
};

/** `to … where … by …` on a line if it fits, `by … pick …` and `with …` on lines of their own if it does not. */
const destinationLayout = (node: DestinationNode, reader: TokenReader): Layout => {
  const keyword = reader.next();
  const targets = commaFill(
    reader,
    node.targets.map((target) => () => targetLayout(target, reader)),
  );
  const lines: Layout[] = [];
  let first: Layout = spaced(keyword, indent(targets));
  if (node.where !== undefined) first = fill([first, line, clause(node.where, reader)]);
  const by = node.by === undefined ? undefined : byLayout(node.by, reader);
  const pick = node.pick === undefined ? undefined : pickLayout(node.pick, reader);
  if (by !== undefined && pick === undefined) first = fill([first, line, by]);
  lines.push(first);
  if (by !== undefined && pick !== undefined) lines.push(line, fill([by, line, pick]));
  else if (pick !== undefined) lines.push(line, pick);
  if (node.with !== undefined) lines.push(line, withLayout(node.with, reader));
  return lines;
};

const verdictLayout = (node: VerdictNode, reader: TokenReader): Layout => {
  const parts: Layout[] = [reader.next()];
  if (node.by !== undefined) parts.push(line, byLayout(node.by, reader));
  if (node.with !== undefined) parts.push(line, withLayout(node.with, reader));
  return fill(parts);
};

const elseLayout = (node: ElseNode, reader: TokenReader): Layout => {
  const keyword = reader.next();
  if (node.action.kind === 'next') return spaced(keyword, reader.next());
  const action =
    node.action.kind === 'destination' ? destinationLayout(node.action, reader) : verdictLayout(node.action, reader);
  return group(spaced(keyword, indent(action)));
};

const outcomeLayout = (node: OutcomeNode, reader: TokenReader): Layout => {
  switch (node.kind) {
    case 'outcome-route': {
      const head = spaced(reader.next(), reader.next());
      return node.target === undefined ? head : spaced(head, reader.next(), targetLayout(node.target, reader));
    }
    case 'outcome-target':
      return spaced(reader.next(), targetLayout(node.target, reader));
    case 'outcome-verdict':
      return verdictLayout(node.verdict, reader);
    case 'outcome-default':
      return reader.next();
  }
};

const typeLayout = (node: TypeNode, reader: TokenReader): Layout => {
  const name = reader.next();
  if (node.element === undefined) return name;
  return [name, reader.next(), typeLayout(node.element, reader), reader.next()];
};

export const annotationsLayout = (nodes: readonly AnnotationNode[], reader: TokenReader): Layout => {
  const parts: Layout[] = [];
  for (const [index, node] of nodes.entries()) {
    if (index > 0) parts.push(line);
    const head = reader.glued(2);
    parts.push(node.args === undefined ? head : [head, argsLayout(node.args, reader)]);
  }
  return fill(parts);
};

export const stepLayout = (step: TestNode['steps'][number], reader: TokenReader): Layout => {
  switch (step.kind) {
    case 'given-object':
      return spaced(reader.next(), reader.next(), reader.next(), objectLayout(step.body, reader));
    case 'given-facts': {
      const keyword = reader.next();
      const facts = commaFill(
        reader,
        step.facts.map((fact) => () => {
          const name = reader.glued(nameLength(fact.name.parts.length) + (fact.index === undefined ? 0 : 3));
          return spaced(name, reader.next(), exprLayout(fact.value, reader));
        }),
      );
      return spaced(keyword, indent(facts));
    }
    case 'expect': {
      const keyword = step.negated ? spaced(reader.next(), reader.next()) : reader.next();
      return spaced(keyword, indent(outcomeLayout(step.outcome, reader)));
    }
  }
};

export const groupHeadLayout = (node: GroupNode, reader: TokenReader): Layout => {
  const parts: Layout[] = [spaced(reader.next(), reader.next())];
  if (node.when !== undefined) parts.push(line, clause(node.when, reader));
  if (node.with !== undefined) parts.push(line, withLayout(node.with, reader));
  return indent([fill(parts), ' ', reader.next()]);
};

/** The statements that are laid out whole; groups and tests have bodies of their own, broken ones stay as they are. */
export type PlainStatement = Exclude<StatementNode, { kind: 'group' | 'test' | 'broken' }>;

export const statementLayout = (node: PlainStatement, reader: TokenReader): Layout => {
  switch (node.kind) {
    case 'import':
    case 'use': {
      const parts: Layout[] = [reader.next(), reader.next()];
      if (node.alias !== undefined) parts.push(reader.next(), reader.next());
      if (node.kind === 'use' && node.options !== undefined) parts.push(objectLayout(node.options, reader));
      return spaced(...parts);
    }
    case 'define': {
      const parts = [reader.next(), reader.next()];
      if (node.name !== undefined) parts.push(reader.next());
      return spaced(...parts, objectLayout(node.body, reader));
    }
    case 'let': {
      const head: Layout[] = [reader.next(), ' ', reader.next()];
      if (node.type !== undefined) head.push(reader.next(), ' ', typeLayout(node.type, reader));
      return spaced(head, reader.next(), indent(exprLayout(node.value, reader)));
    }
    case 'route': {
      const head: Layout[] = [reader.next()];
      if (node.label !== undefined) head.push(' ', reader.next());
      if (node.when !== undefined) head.push(' ', indent(clause(node.when, reader)));
      const parts = [line, destinationLayout(node.destination, reader)];
      for (const otherwise of node.otherwise) parts.push(line, elseLayout(otherwise, reader));
      return group([head, indent(parts)]);
    }
    case 'default': {
      const head = reader.next();
      if (node.action.kind === 'verdict') return group(spaced(head, indent(verdictLayout(node.action, reader))));
      const parts = [destinationLayout(node.action, reader)];
      for (const otherwise of node.otherwise) parts.push(line, elseLayout(otherwise, reader));
      return group(spaced(head, indent(parts)));
    }
    case 'admission': {
      const head: Layout[] = [reader.next()];
      if (node.label !== undefined) head.push(' ', reader.next());
      if (node.when !== undefined) head.push(' ', indent(clause(node.when, reader)));
      const rest: Layout[] = [];
      if (node.by !== undefined) rest.push(byLayout(node.by, reader));
      if (node.with !== undefined) rest.push(withLayout(node.with, reader));
      return rest.length === 0
        ? head
        : group([head, indent([line, fill(rest.flatMap((part, index) => (index === 0 ? [part] : [line, part])))])]);
    }
    case 'ensure': {
      const head: Layout[] = [reader.next(), ' ', reader.next()];
      if (node.when !== undefined) head.push(' ', indent(clause(node.when, reader)));
      return group([head, indent([line, spaced(reader.next(), outcomeLayout(node.outcome, reader))])]);
    }
  }
};
