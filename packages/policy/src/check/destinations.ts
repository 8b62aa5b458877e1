import type { Destination, Modifiers, OrderKey, PickRef, Step, TargetRef, Verdict } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ByNode, DestinationNode, ElseNode, TargetNode, VerdictNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { joinSpans } from '../syntax/span.ts';
import { checkArguments } from './arguments.ts';
import { checkCondition } from './expression.ts';
import { checkModifiers } from './modifiers.ts';
import { copyModifiers, mergeModifiers } from './merge-modifiers.ts';
import { reportUnknownName, resolveName } from './resolve-name.ts';
import { checkPickClause, checkScores, defaultScore } from './scorers.ts';
import type { Block, Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';

const TOLERANCE = 0.0001;

const sameTarget = (a: TargetRef, b: TargetRef): boolean =>
  a.kind === b.kind && (a.kind === 'any' || (b.kind !== 'any' && a.name === b.name));

const percent = (share: number): string => `${String(Number((share * 100).toPrecision(10)))}%`;

type Targets = Pick<Destination, 'targets' | 'split'>;

const checkTargets = (session: Session, block: Block, nodes: readonly TargetNode[]): Targets | undefined => {
  const found: { readonly target: TargetRef; readonly node: TargetNode }[] = [];
  let fine = true;
  for (const node of nodes) {
    const target = checkTargetName(session, block, node.name, node.label);
    if (target === undefined) {
      fine = false;
      continue;
    }
    const before = found.find((other) => sameTarget(other.target, target));
    if (before !== undefined) {
      fine = false;
      session.report(
        'E0403',
        node.span,
        `\`${session.textOf(node.name.span)}${node.label === undefined ? '' : ` ${node.label.raw}`}\` is named twice`,
        { labels: [{ span: before.node.span, message: 'first named here' }] },
      );
      continue;
    }
    found.push({ target, node });
  }
  const [first] = nodes;
  const last = nodes[nodes.length - 1];
  const shared = nodes.filter((node) => node.share !== undefined);
  if (first === undefined || last === undefined) return undefined;
  if (shared.length === 0) return fine ? { targets: found.map(({ target }) => ({ target })), split: false } : undefined;
  const bare = nodes.find((node) => node.share === undefined);
  const total = shared.reduce((sum, node) => sum + (node.share?.value ?? 0), 0);
  if (bare !== undefined) {
    const rest = 1 - total;
    const alone = nodes.length - shared.length === 1 && rest > 0;
    session.report('E0402', bare.span, 'this target has no share, and others have', {
      labels: [{ span: shared[0]?.span ?? first.span, message: 'this one has a share' }],
      ...(alone
        ? {
            help: `write \`${percent(rest)}\` before it`,
            fix: {
              message: `write \`${percent(rest)}\``,
              edits: [{ span: { ...bare.span, end: bare.span.start }, text: `${percent(rest)} ` }],
            },
          }
        : { help: 'give every target a share, or none' }),
    });
    return undefined;
  }
  for (const node of shared) {
    const share = node.share?.value ?? 0;
    if (share < 0 || share > 1) {
      fine = false;
      session.report('E0414', node.share?.span ?? node.span, `the share \`${node.share?.raw ?? ''}\` is above 100 %`);
    } else if (share === 0)
      session.report(
        'W0515',
        node.share?.span ?? node.span,
        'a share of 0 % receives only what other arms cannot take',
        { help: 'remove the target if it should receive nothing' },
      );
  }
  if (fine && Math.abs(total - 1) > TOLERANCE) {
    session.report('E0401', joinSpans(first.span, last.span), `the shares total ${percent(total)}, not 100%`, {
      help: total < 1 ? `${percent(1 - total)} are missing` : `${percent(total - 1)} are too many`,
    });
    return undefined;
  }
  return fine
    ? { targets: found.map(({ target, node }) => ({ target, share: (node.share?.value ?? 0) / total })), split: true }
    : undefined;
};

const defaultPick = (session: Session, place: Place, span: Span): PickRef | undefined => {
  const entry = session.catalogue.pickers.get('best');
  const checked = entry === undefined ? undefined : checkArguments(session, place, entry, 'best', span, undefined);
  return entry === undefined || checked === undefined
    ? undefined
    : { name: entry.name, provider: entry.provider, options: checked.options ?? {}, span };
};

/** `to … where … by … pick … with …`; `inherited` are the modifiers of the groups around. Undefined where an error has been reported. */
export const checkDestination = (
  session: Session,
  block: Block,
  node: DestinationNode,
  inherited: Modifiers,
): Destination | undefined => {
  const place: Place = { scope: 'candidate', block, clause: 'where' };
  const targets = checkTargets(session, block, node.targets);
  const where = node.where === undefined ? undefined : checkCondition(session, place, node.where, 'after `where`');
  const by = node.by === undefined ? defaultScore(session, place, node.span) : checkScores(session, place, node.by);
  const pick =
    node.pick === undefined ? defaultPick(session, place, node.span) : checkPickClause(session, place, node.pick);
  const checked = checkModifiers(session, { scope: 'request', block, clause: 'with' }, node.with, 'destination');
  if (
    targets === undefined ||
    (node.where !== undefined && where === undefined) ||
    by === undefined ||
    pick === undefined ||
    !checked.fine
  )
    return undefined;
  if (where?.kind === 'constant') {
    session.report(
      where.value === true ? 'W0504' : 'W0503',
      node.where?.span ?? node.span,
      where.value === true ? 'every endpoint meets this condition' : 'no endpoint meets this condition',
    );
  }
  return {
    kind: 'destination',
    span: node.span,
    ...targets,
    ...(where === undefined ? {} : { where }),
    by,
    pick,
    with: mergeModifiers(copyModifiers(inherited), checked.modifiers),
  };
};

/** The order of a queue: `by weighted_fair(key: tenant.id)`. */
export const checkOrder = (session: Session, block: Block, by: ByNode): readonly OrderKey[] | undefined => {
  const place: Place = { scope: 'request', block, clause: 'by' };
  const keys: OrderKey[] = [];
  const [, second] = by.tiers;
  if (second !== undefined) {
    session.report('E0311', second.span, 'a queue has one order', {
      help: 'equals of one order come in the order in which they arrived',
    });
    return undefined;
  }
  for (const tier of by.tiers) {
    const inner = withoutParens(tier);
    const name = inner.kind === 'name' ? inner : inner.kind === 'call' ? inner.callee : undefined;
    if (name === undefined) {
      session.report('E0311', tier.span, 'a queue is ordered by a rule such as `weighted_fair(key: tenant.id)`');
      continue;
    }
    const resolved = resolveName(session, block, name);
    if (resolved.kind === 'poison') continue;
    const entry = resolved.kind === 'table' ? resolved.table.admissions.get(resolved.name) : undefined;
    if (entry === undefined) {
      const isScorer = resolved.kind === 'table' && resolved.table.scorers.has(resolved.name);
      if (isScorer)
        session.report('E0311', name.span, `\`${name.text}\` scores endpoints, and a queue orders requests`, {
          help: 'a queue is ordered by a rule such as `weighted_fair(key: tenant.id)`',
        });
      else
        reportUnknownName(session, block, name, name.span, {
          code: 'E0201',
          what: 'order of a queue',
          candidates: [[...session.catalogue.admissions.keys()]],
        });
      continue;
    }
    const checked = checkArguments(
      session,
      place,
      entry,
      name.text,
      inner.span,
      inner.kind === 'call' ? inner.args : undefined,
    );
    if (checked !== undefined) keys.push({ key: entry.name, provider: entry.provider, ...checked });
  }
  return keys.length < by.tiers.length ? undefined : keys;
};

/** `reject with status 503`; `where` says what it stands after. */
export const checkVerdict = (
  session: Session,
  block: Block,
  node: VerdictNode,
  where: 'else' | 'default' | 'outcome',
): Verdict | undefined => {
  if (node.verb === 'admit' && where !== 'outcome') {
    session.report('E0417', node.span, `\`admit\` sends the request nowhere, and after \`${where}\` it needs a place`, {
      help: 'write `to …`, `reject`, `queue`' + (where === 'else' ? ' or `next`' : ''),
    });
    return undefined;
  }
  let by: readonly OrderKey[] | undefined;
  if (node.by !== undefined) {
    if (node.verb !== 'queue') {
      session.report('E0406', node.by.span, `\`by\` orders a queue, and \`${node.verb}\` has none`);
      return undefined;
    }
    by = checkOrder(session, block, node.by);
  }
  const checked = checkModifiers(session, { scope: 'request', block, clause: 'with' }, node.with, node.verb);
  if (!checked.fine || (node.by !== undefined && by === undefined)) return undefined;
  return { verb: node.verb, ...(by === undefined ? {} : { by }), with: checked.modifiers, span: node.span };
};

/** The `else` parts of a destination. Undefined entries have errors; a part behind one that ends the chain is reported. */
export const checkElse = (
  session: Session,
  block: Block,
  parts: readonly ElseNode[],
  inherited: Modifiers,
): readonly (Step | undefined)[] => {
  let ended: Span | undefined;
  return parts.map(({ action, span }) => {
    if (ended !== undefined) {
      session.report('E0412', span, 'this `else` can never be reached', {
        labels: [{ span: ended, message: 'the chain ends here' }],
      });
      return undefined;
    }
    if (action.kind === 'next') {
      ended = span;
      return { kind: 'next', span };
    }
    if (action.kind === 'destination') return checkDestination(session, block, action, inherited);
    if (action.verb === 'reject') ended = span;
    const verdict = checkVerdict(session, block, action, 'else');
    return verdict === undefined ? undefined : { kind: 'verdict', ...verdict };
  });
};
