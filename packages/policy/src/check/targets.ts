import { suggest } from '../diagnostics/suggest.ts';
import type { TargetRef } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import { foreignPools } from '../syntax/foreign-words.ts';
import type { ExprNode, NameNode, StringNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { reportUnknownName, resolveName } from './resolve-name.ts';
import { findBinding } from './session.ts';
import type { Block, Session } from './session.ts';

const TARGET_KINDS = ['tier', 'endpoint'];

const targetNames = (block: Block): readonly string[] => {
  const names: string[] = ['any'];
  for (let at: Block | undefined = block; at !== undefined; at = at.parent) {
    for (const binding of at.bindings.values()) if (binding.kind === 'target') names.push(binding.name);
  }
  return names;
};

const checkTier = (session: Session, label: StringNode): TargetRef | undefined => {
  const { defined } = session;
  const name = label.value;
  if (!defined.tiers.has(name)) {
    if (!defined.tiersKnown || defined.tiersOpen || defined.lost.has('tier') || session.incomplete)
      defined.uncheckedTier ??= label.span;
    else {
      const near = suggest(name, defined.tiers.keys());
      session.report(
        'E0202',
        label.span,
        `unknown tier ${JSON.stringify(name)}`,
        near === undefined
          ? {
              help: `known tiers are ${[...defined.tiers.keys()]
                .slice(0, 8)
                .map((tier) => JSON.stringify(tier))
                .join(', ')}`,
            }
          : {
              help: `did you mean ${JSON.stringify(near)}?`,
              fix: {
                message: `write ${JSON.stringify(near)}`,
                edits: [{ span: label.span, text: JSON.stringify(near) }],
              },
            },
      );
      return undefined;
    }
  }
  session.observer?.defined('tier', name, label.span);
  const definition = defined.tiers.get(name);
  if (definition !== undefined) definition.used = true;
  return { kind: 'tier', name };
};

const checkEndpoint = (session: Session, label: StringNode): TargetRef | undefined => {
  const { defined } = session;
  const name = label.value;
  if (
    !defined.endpoints.has(name) &&
    defined.tiersKnown &&
    !defined.tiersOpen &&
    !defined.endpointsOpen &&
    !defined.lost.has('tier') &&
    !defined.lost.has('endpoint') &&
    !session.incomplete
  ) {
    const near = suggest(name, defined.endpoints.keys());
    session.report(
      'E0203',
      label.span,
      `unknown endpoint ${JSON.stringify(name)}`,
      near === undefined
        ? { help: 'endpoints are named `<tier>/<n>` unless they are given a name' }
        : {
            help: `did you mean ${JSON.stringify(near)}?`,
            fix: {
              message: `write ${JSON.stringify(near)}`,
              edits: [{ span: label.span, text: JSON.stringify(near) }],
            },
          },
    );
    return undefined;
  }
  session.observer?.defined('endpoint', name, label.span);
  return { kind: 'endpoint', name };
};

/** A target as written: `tier "70B"`, `endpoint "a/1"`, `any`, or a name bound by `let`. Undefined where an error has been reported. */
export const checkTargetName = (
  session: Session,
  block: Block,
  name: NameNode,
  label: StringNode | undefined,
): TargetRef | undefined => {
  if (label !== undefined) {
    if (name.text === 'tier') return checkTier(session, label);
    if (name.text === 'endpoint') return checkEndpoint(session, label);
    const near = foreignPools.has(name.text) ? 'tier' : suggest(name.text, TARGET_KINDS);
    session.report(
      'E0226',
      name.span,
      `\`${name.text}\` is no kind of target`,
      near === undefined
        ? { help: 'targets are `tier "…"`, `endpoint "…"`, `any`, and names bound by `let`' }
        : {
            help: `did you mean \`${near}\`?`,
            fix: { message: `write \`${near}\``, edits: [{ span: name.span, text: near }] },
          },
    );
    return undefined;
  }
  if (name.text === 'any' && findBinding(block, 'any') === undefined) return { kind: 'any' };
  if (TARGET_KINDS.includes(name.text)) {
    session.report('E0404', name.span, `\`${name.text}\` needs a name: \`${name.text} "…"\``);
    return undefined;
  }
  const resolved = resolveName(session, block, name);
  if (resolved.kind === 'poison') return undefined;
  if (resolved.kind === 'binding') {
    if (resolved.binding.kind === 'target') return resolved.binding.target;
    session.report('E0404', name.span, `\`${name.text}\` is no target`, {
      labels: [{ span: resolved.binding.span, message: 'it stands for this' }],
    });
    return undefined;
  }
  if (session.defined.tiers.has(name.text)) {
    const written = `tier ${JSON.stringify(name.text)}`;
    session.report('E0404', name.span, `\`${name.text}\` is no target`, {
      help: `did you mean \`${written}\`?`,
      fix: { message: `write \`${written}\``, edits: [{ span: name.span, text: written }] },
    });
    return undefined;
  }
  if (
    resolved.kind === 'table' &&
    (resolved.table.values.has(resolved.name) ||
      resolved.table.scorers.has(resolved.name) ||
      resolved.table.pickers.has(resolved.name))
  ) {
    session.report('E0404', name.span, `\`${name.text}\` is no target`, {
      help: 'targets are `tier "…"`, `endpoint "…"`, `any`, and names bound by `let`',
    });
    return undefined;
  }
  reportUnknownName(session, block, name, name.span, {
    code: 'E0201',
    what: 'target',
    candidates: [targetNames(block)],
  });
  return undefined;
};

/** Whether an argument is written as a target, as the second argument of an aggregate is. */
export const looksLikeTarget = (block: Block, node: ExprNode): boolean => {
  const inner = withoutParens(node);
  if (inner.kind === 'ref') return true;
  if (inner.kind !== 'name') return false;
  const [first, ...rest] = inner.parts;
  if (first === undefined) return false;
  if (inner.text === 'any') return true;
  const binding = findBinding(block, first.text);
  if (binding?.kind === 'target') return rest.length === 0;
  return binding?.kind === 'import' && binding.exports.get(rest.map((part) => part.text).join('.'))?.kind === 'target';
};

/** A target that stands as an argument. */
export const checkTargetExpression = (session: Session, block: Block, node: ExprNode): TargetRef | undefined => {
  const inner = withoutParens(node);
  if (inner.kind === 'ref') return checkTargetName(session, block, inner.name, inner.label);
  if (inner.kind === 'name') return checkTargetName(session, block, inner, undefined);
  reportNoTarget(session, node.span);
  return undefined;
};

const reportNoTarget = (session: Session, span: Span): void => {
  session.report('E0404', span, `\`${session.textOf(span)}\` is no target`, {
    help: 'targets are `tier "…"`, `endpoint "…"`, `any`, and names bound by `let`',
  });
};
