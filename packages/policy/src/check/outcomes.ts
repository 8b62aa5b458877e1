import { isNumericType } from '@signalbox/plugin-api';
import type { Value, ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { TargetRef } from '../ir.ts';
import type { GivenEndpoint, Outcome, PolicyEnsure, PolicyTest } from '../policy-checks.ts';
import { withoutParens } from '../syntax/ast.ts';
import type {
  EnsureNode,
  ExprNode,
  FactNode,
  GivenObjectNode,
  OutcomeNode,
  TargetNode,
  TestNode,
} from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { defineKinds } from './catalogue/define-kinds.ts';
import { checkVerdict } from './destinations.ts';
import { checkCondition, checkExpression } from './expression.ts';
import { checkEnumMember, reportMismatch } from './mismatch.ts';
import { checkName, checkIndex } from './names.ts';
import type { Block, Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';
import { describeType, sameDimension } from './value-types.ts';

/** Labels of the policy's routes, for outcomes to name. */
export type Labels = ReadonlyMap<string, Span>;

const checkOutcomeTarget = (
  session: Session,
  block: Block,
  target: TargetNode,
  endpoints: ReadonlySet<string>,
): TargetRef | undefined => {
  if (target.share !== undefined)
    session.report('E0404', target.share.span, 'an outcome names one target, without a share');
  if (target.name.text === 'endpoint' && target.label !== undefined && endpoints.has(target.label.value))
    return { kind: 'endpoint', name: target.label.value };
  return checkTargetName(session, block, target.name, target.label);
};

/** Undefined where an error has been reported. */
const checkOutcome = (
  session: Session,
  block: Block,
  labels: Labels,
  outcome: OutcomeNode,
  endpoints: ReadonlySet<string>,
): Outcome | undefined => {
  switch (outcome.kind) {
    case 'outcome-route': {
      const { value, span } = outcome.label;
      if (!labels.has(value) && !session.incomplete) {
        const near = suggest(value, labels.keys());
        session.report(
          'E0223',
          span,
          `no route has the label ${JSON.stringify(value)}`,
          near === undefined
            ? {}
            : {
                help: `did you mean ${JSON.stringify(near)}?`,
                fix: { message: `write ${JSON.stringify(near)}`, edits: [{ span, text: JSON.stringify(near) }] },
              },
        );
      }
      session.observer?.defined('route', value, span);
      const target =
        outcome.target === undefined ? undefined : checkOutcomeTarget(session, block, outcome.target, endpoints);
      return { kind: 'route', label: value, ...(target === undefined ? {} : { target }) };
    }
    case 'outcome-target': {
      const target = checkOutcomeTarget(session, block, outcome.target, endpoints);
      return target === undefined ? undefined : { kind: 'target', target };
    }
    case 'outcome-verdict': {
      const verdict = checkVerdict(session, block, outcome.verdict, 'outcome');
      return verdict === undefined ? undefined : { kind: 'verdict', verdict };
    }
    case 'outcome-default':
      return { kind: 'default' };
  }
};

/** Checks that a written value fits what it is given for, and gives it. */
const checkGivenValue = (
  session: Session,
  place: Place,
  type: ValueType,
  value: ExprNode,
  subject: ExprNode,
  subjectText: string,
): Value | undefined => {
  const expression = checkExpression(session, { ...place, scope: 'constant', clause: 'given' }, value);
  if (expression?.kind !== 'constant') return undefined;
  const isEmptyList =
    Array.isArray(expression.value) && expression.value.length === 0 && typeof type === 'object' && 'list' in type;
  if (isEmptyList) return expression.value;
  if (!sameDimension(type, expression.type)) {
    if (isNumericType(type) && isNumericType(expression.type))
      reportMismatch(session, place, { node: subject, type }, { node: value, type: expression.type }, value.span);
    else
      session.report(
        'E0301',
        value.span,
        `\`${subjectText}\` is ${describeType(type)}, and this is ${describeType(expression.type)}`,
      );
    return undefined;
  }
  return checkEnumMember(session, place, type, expression, value, subjectText) ? expression.value : undefined;
};

interface Given {
  tenant: string | undefined;
  readonly facts: PolicyTest['facts'][number][];
  readonly endpoints: GivenEndpoint[];
}

const checkFact = (session: Session, block: Block, fact: FactNode, given: Given): void => {
  const place: Place = { scope: 'request', block, clause: 'given' };
  const { name, index, value } = fact;
  if (name.text === 'tenant' && index === undefined) {
    const inner = withoutParens(value);
    if (inner.kind !== 'string') {
      session.report('E0301', value.span, '`tenant` is given by its name in quotes');
    } else if (
      !session.defined.tenants.has(inner.value) &&
      !session.defined.lost.has('tenant') &&
      !session.incomplete
    ) {
      const near = suggest(inner.value, session.defined.tenants.keys());
      session.report(
        'E0230',
        inner.span,
        `no \`define tenant ${JSON.stringify(inner.value)}\` is known`,
        near === undefined
          ? { help: 'single facts are given as in `tenant.region = "eu"`' }
          : { help: `did you mean ${JSON.stringify(near)}?` },
      );
    } else {
      given.tenant = inner.value;
      session.observer?.defined('tenant', inner.value, inner.span);
    }
    return;
  }
  const subject: ExprNode =
    index === undefined ? name : { kind: 'index', object: name, index, span: { ...name.span, end: index.span.end } };
  const entry = session.catalogue.values.get(name.text);
  const text = index === undefined ? name.text : `${name.text}[${index.raw}]`;
  if (
    entry?.kind === 'signal' &&
    (entry.name === 'over_limit' || entry.name === 'usage' || entry.name === 'sla' || entry.name === 'within')
  ) {
    session.report('E0339', name.span, `\`${name.text}\` cannot be given`, { help: 'give what it is computed from' });
    return;
  }
  if (entry?.kind === 'property') {
    session.report('E0306', name.span, `\`${name.text}\` is a property of one endpoint`, {
      help: `give it for an endpoint: \`given endpoint "…" { ${name.text}: … }\``,
    });
    return;
  }
  const expression = subject.kind === 'index' ? checkIndex(session, place, subject) : checkName(session, place, name);
  if (expression === undefined) return;
  if (expression.kind !== 'signal') {
    session.report('E0334', name.span, `\`${name.text}\` is no signal, so it cannot be given`, {
      help: 'give the signals that it is computed from',
    });
    return;
  }
  const known = checkGivenValue(session, place, expression.type, value, subject, text);
  const ref = session.signals[expression.index];
  if (known !== undefined && ref !== undefined)
    given.facts.push({ key: ref.key, arguments: ref.arguments, value: known });
};

const checkGivenObject = (session: Session, block: Block, node: GivenObjectNode): GivenEndpoint | undefined => {
  const kind = node.definedKind.text;
  if (!(defineKinds as readonly string[]).includes(kind)) {
    const near = suggest(kind, defineKinds);
    session.report(
      'E0207',
      node.definedKind.span,
      `unknown kind \`${kind}\``,
      near === undefined
        ? {}
        : {
            help: `did you mean \`${near}\`?`,
            fix: { message: `write \`${near}\``, edits: [{ span: node.definedKind.span, text: near }] },
          },
    );
    return undefined;
  }
  if (kind !== 'endpoint') {
    session.report('E0207', node.definedKind.span, `a test gives endpoints in braces, not \`${kind}\``, {
      help:
        kind === 'tenant'
          ? `write \`given tenant = ${JSON.stringify(node.name.value)}\`, or single facts as \`tenant.region = "eu"\``
          : 'what the policy defines holds in its tests too',
    });
    for (const entry of node.body.entries)
      if (entry.value.kind !== 'object')
        checkExpression(session, { scope: 'constant', block, clause: 'given' }, entry.value);
    return undefined;
  }
  const place: Place = { scope: 'candidate', block, clause: 'given' };
  const seen = new Map<string, Span>();
  const values: { [name: string]: Value } = {};
  const properties = [...session.catalogue.values.values()].filter((entry) => entry.kind === 'property');
  for (const entry of node.body.entries) {
    const key = entry.key.text;
    const before = seen.get(key);
    if (before !== undefined) {
      session.report('E0228', entry.key.span, `\`${key}\` is written twice`, {
        labels: [{ span: before, message: 'first written here' }],
      });
      continue;
    }
    seen.set(key, entry.key.span);
    if (key === 'labels' && entry.value.kind === 'object') {
      for (const label of entry.value.entries) {
        const type = session.defined.labels.get(label.key.text);
        const written =
          label.value.kind === 'object'
            ? undefined
            : checkExpression(session, { ...place, scope: 'constant' }, label.value);
        if (written?.kind !== 'constant') continue;
        if (type !== undefined && !sameDimension(type, written.type))
          session.report(
            'E0301',
            label.value.span,
            `\`labels.${label.key.text}\` is ${describeType(type)}, and this is ${describeType(written.type)}`,
          );
        else values[`labels.${label.key.text}`] = written.value;
      }
      continue;
    }
    const property = properties.find((known) => known.name === key);
    if (property === undefined && key !== 'url' && key !== 'model') {
      const near = suggest(
        key,
        properties.map((known) => known.name),
      );
      session.report(
        'E0209',
        entry.key.span,
        `an endpoint has no property \`${key}\``,
        near === undefined
          ? {}
          : {
              help: `did you mean \`${near}\`?`,
              fix: { message: `write \`${near}\``, edits: [{ span: entry.key.span, text: near }] },
            },
      );
      continue;
    }
    // `load` is the exception: whoever runs the test finds queued and expected tokens that make it.
    if (
      property !== undefined &&
      key !== 'load' &&
      (property.expression !== undefined || property.parameters.length > 0)
    ) {
      session.report('E0339', entry.key.span, `\`${key}\` cannot be given`, {
        help:
          property.expression === undefined
            ? 'give what it is computed from'
            : `give what it is computed from: \`${property.expression}\``,
      });
      continue;
    }
    const type: ValueType = property?.type ?? (key === 'url' || key === 'model' ? 'string' : 'count');
    if (entry.value.kind === 'object')
      session.report('E0301', entry.value.span, `\`${key}\` is ${describeType(type)}, and this is an object`);
    else {
      const value = checkGivenValue(
        session,
        place,
        type,
        entry.value,
        { kind: 'name', parts: [{ kind: 'ident', text: key, span: entry.key.span }], text: key, span: entry.key.span },
        key,
      );
      if (value !== undefined) values[key] = value;
    }
    const inner = withoutParens(entry.value);
    const { defined } = session;
    if (property !== undefined) session.observer?.entry(entry.key.span, property);
    if (key === 'tier' && inner.kind === 'string') session.observer?.defined('tier', inner.value, inner.span);
    if (
      key === 'tier' &&
      inner.kind === 'string' &&
      defined.tiersKnown &&
      !defined.tiersOpen &&
      !defined.lost.has('tier') &&
      !session.incomplete &&
      !defined.tiers.has(inner.value)
    ) {
      const near = suggest(inner.value, defined.tiers.keys());
      session.report(
        'E0202',
        inner.span,
        `unknown tier ${JSON.stringify(inner.value)}`,
        near === undefined ? {} : { help: `did you mean ${JSON.stringify(near)}?` },
      );
    }
  }
  const { tier, ...rest } = values;
  return { name: node.name.value, ...(typeof tier === 'string' ? { tier } : {}), properties: rest, span: node.span };
};

/** Checks names, types and targets of a test; whether it passes is for whoever runs it. */
export const checkTest = (session: Session, block: Block, labels: Labels, node: TestNode): PolicyTest => {
  const given: Given = { tenant: undefined, facts: [], endpoints: [] };
  for (const step of node.steps) {
    if (step.kind === 'given-object') {
      const endpoint = checkGivenObject(session, block, step);
      if (endpoint === undefined) continue;
      if (given.endpoints.some(({ name }) => name === endpoint.name))
        session.report('E0213', step.name.span, `the endpoint ${JSON.stringify(endpoint.name)} is given twice`);
      else given.endpoints.push(endpoint);
    } else if (step.kind === 'given-facts') {
      for (const fact of step.facts) checkFact(session, block, fact, given);
    }
  }
  const names = new Set(given.endpoints.map(({ name }) => name));
  const expectations: PolicyTest['expectations'][number][] = [];
  for (const step of node.steps) {
    if (step.kind !== 'expect') continue;
    const outcome = checkOutcome(session, block, labels, step.outcome, names);
    if (outcome !== undefined) expectations.push({ negated: step.negated, outcome, span: step.span });
  }
  return {
    label: node.label.value,
    span: node.span,
    ...(given.tenant === undefined ? {} : { tenant: given.tenant }),
    facts: given.facts,
    endpoints: given.endpoints,
    expectations,
  };
};

/** Checks names, types and targets of an `ensure`. Undefined where an error has been reported. */
export const checkEnsure = (
  session: Session,
  block: Block,
  labels: Labels,
  node: EnsureNode,
): PolicyEnsure | undefined => {
  const when =
    node.when === undefined
      ? undefined
      : checkCondition(session, { scope: 'request', block, clause: 'when' }, node.when, 'after `when`');
  const outcome = checkOutcome(session, block, labels, node.outcome, new Set());
  if (outcome === undefined || (node.when !== undefined && when === undefined)) return undefined;
  return {
    label: node.label.value,
    span: node.span,
    ...(when === undefined ? {} : { when }),
    mode: node.mode,
    outcome,
  };
};
