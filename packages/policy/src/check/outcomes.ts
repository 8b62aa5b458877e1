import { isNumericType } from '@signalbox/plugin-api';
import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { EnsureNode, ExprNode, FactNode, GivenObjectNode, OutcomeNode, TargetNode, TestNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { defineKinds } from './catalogue/define-kinds.ts';
import { checkVerdict } from './destinations.ts';
import { checkCondition, checkEnumMember, checkExpression, reportMismatch } from './expression.ts';
import { checkName, checkIndex } from './names.ts';
import type { Block, Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';
import { describeType, sameDimension } from './value-types.ts';

/** Labels of the policy's routes, for outcomes to name. */
export type Labels = ReadonlyMap<string, Span>;

const checkOutcomeTarget = (session: Session, block: Block, target: TargetNode, endpoints: ReadonlySet<string>): void => {
  if (target.share !== undefined) session.report('E0404', target.share.span, 'an outcome names one target, without a share');
  if (target.name.text === 'endpoint' && target.label !== undefined && endpoints.has(target.label.value)) return;
  checkTargetName(session, block, target.name, target.label);
};

const checkOutcome = (session: Session, block: Block, labels: Labels, outcome: OutcomeNode, endpoints: ReadonlySet<string>): void => {
  switch (outcome.kind) {
    case 'outcome-route': {
      const { value, span } = outcome.label;
      if (!labels.has(value) && !session.incomplete) {
        const near = suggest(value, labels.keys());
        session.report('E0223', span, `no route has the label ${JSON.stringify(value)}`, near === undefined ? {} : {
          help: `did you mean ${JSON.stringify(near)}?`,
          fix: { message: `write ${JSON.stringify(near)}`, edits: [{ span, text: JSON.stringify(near) }] },
        });
      }
      if (outcome.target !== undefined) checkOutcomeTarget(session, block, outcome.target, endpoints);
      return;
    }
    case 'outcome-target':
      checkOutcomeTarget(session, block, outcome.target, endpoints);
      return;
    case 'outcome-verdict':
      checkVerdict(session, block, outcome.verdict, 'outcome');
      return;
    case 'outcome-default':
  }
};

/** Checks that a written value fits what it is given for. */
const checkGivenValue = (session: Session, place: Place, type: ValueType, value: ExprNode, subject: ExprNode, subjectText: string): void => {
  const expression = checkExpression(session, { ...place, scope: 'constant', clause: 'given' }, value);
  if (expression === undefined) return;
  const isEmptyList = expression.kind === 'constant' && Array.isArray(expression.value) && expression.value.length === 0 && typeof type === 'object' && 'list' in type;
  if (isEmptyList) return;
  if (!sameDimension(type, expression.type)) {
    if (isNumericType(type) && isNumericType(expression.type)) reportMismatch(session, place, { node: subject, type }, { node: value, type: expression.type }, value.span);
    else session.report('E0301', value.span, `\`${subjectText}\` is ${describeType(type)}, and this is ${describeType(expression.type)}`);
    return;
  }
  checkEnumMember(session, place, type, expression, value, subjectText);
};

const checkFact = (session: Session, block: Block, fact: FactNode): void => {
  const place: Place = { scope: 'request', block, clause: 'given' };
  const { name, index, value } = fact;
  if (name.text === 'tenant' && index === undefined) {
    const inner = withoutParens(value);
    if (inner.kind !== 'string') {
      session.report('E0301', value.span, '`tenant` is given by its name in quotes');
    } else if (!session.defined.tenants.has(inner.value) && !session.incomplete) {
      const near = suggest(inner.value, session.defined.tenants.keys());
      session.report('E0230', inner.span, `no \`define tenant ${JSON.stringify(inner.value)}\` is known`, near === undefined ? { help: 'single facts are given as in `tenant.region = "eu"`' } : { help: `did you mean ${JSON.stringify(near)}?` });
    }
    return;
  }
  const subject: ExprNode = index === undefined ? name : { kind: 'index', object: name, index, span: { ...name.span, end: index.span.end } };
  const entry = session.catalogue.values.get(name.text);
  const text = index === undefined ? name.text : `${name.text}[${index.raw}]`;
  if (entry?.kind === 'signal' && (entry.name === 'over_limit' || entry.name === 'usage' || entry.name === 'sla' || entry.name === 'within')) {
    session.report('E0339', name.span, `\`${name.text}\` cannot be given`, { help: 'give what it is computed from' });
    return;
  }
  if (entry?.kind === 'property') {
    session.report('E0306', name.span, `\`${name.text}\` is a property of one endpoint`, { help: `give it for an endpoint: \`given endpoint "…" { ${name.text}: … }\`` });
    return;
  }
  const expression = subject.kind === 'index' ? checkIndex(session, place, subject) : checkName(session, place, name);
  if (expression === undefined) return;
  if (expression.kind !== 'signal') {
    session.report('E0334', name.span, `\`${name.text}\` is no signal, so it cannot be given`, { help: 'give the signals that it is computed from' });
    return;
  }
  checkGivenValue(session, place, expression.type, value, subject, text);
};

const checkGivenObject = (session: Session, block: Block, node: GivenObjectNode): string | undefined => {
  const kind = node.definedKind.text;
  if (!(defineKinds as readonly string[]).includes(kind)) {
    const near = suggest(kind, defineKinds);
    session.report('E0207', node.definedKind.span, `unknown kind \`${kind}\``, near === undefined ? {} : {
      help: `did you mean \`${near}\`?`,
      fix: { message: `write \`${near}\``, edits: [{ span: node.definedKind.span, text: near }] },
    });
    return undefined;
  }
  if (kind !== 'endpoint') {
    if (kind !== 'tenant') session.report('E0207', node.definedKind.span, `a test gives endpoints and tenants, not \`${kind}\``);
    for (const entry of node.body.entries) if (entry.value.kind !== 'object') checkExpression(session, { scope: 'constant', block, clause: 'given' }, entry.value);
    return undefined;
  }
  const place: Place = { scope: 'candidate', block, clause: 'given' };
  const seen = new Map<string, Span>();
  const properties = [...session.catalogue.values.values()].filter((entry) => entry.kind === 'property');
  for (const entry of node.body.entries) {
    const key = entry.key.text;
    const before = seen.get(key);
    if (before !== undefined) {
      session.report('E0228', entry.key.span, `\`${key}\` is written twice`, { labels: [{ span: before, message: 'first written here' }] });
      continue;
    }
    seen.set(key, entry.key.span);
    if (key === 'labels' && entry.value.kind === 'object') continue;
    const property = properties.find((known) => known.name === key);
    if (property === undefined && key !== 'url' && key !== 'model' && key !== 'max_requests' && key !== 'max_tokens_in_flight' && key !== 'weight') {
      const near = suggest(key, properties.map((known) => known.name));
      session.report('E0209', entry.key.span, `an endpoint has no property \`${key}\``, near === undefined ? {} : {
        help: `did you mean \`${near}\`?`,
        fix: { message: `write \`${near}\``, edits: [{ span: entry.key.span, text: near }] },
      });
      continue;
    }
    const type: ValueType = property?.type ?? (key === 'url' || key === 'model' ? 'string' : 'count');
    if (entry.value.kind === 'object') session.report('E0301', entry.value.span, `\`${key}\` is ${describeType(type)}, and this is an object`);
    else checkGivenValue(session, place, type, entry.value, { kind: 'name', parts: [{ kind: 'ident', text: key, span: entry.key.span }], text: key, span: entry.key.span }, key);
    const inner = withoutParens(entry.value);
    const { defined } = session;
    if (key === 'tier' && inner.kind === 'string' && defined.tiersKnown && !defined.tiersOpen && !session.incomplete && !defined.tiers.has(inner.value)) {
      const near = suggest(inner.value, defined.tiers.keys());
      session.report('E0202', inner.span, `unknown tier ${JSON.stringify(inner.value)}`, near === undefined ? {} : { help: `did you mean ${JSON.stringify(near)}?` });
    }
  }
  return node.name.value;
};

/** Checks names, types and targets of a test; whether it passes is for whoever runs it. */
export const checkTest = (session: Session, block: Block, labels: Labels, node: TestNode): void => {
  const endpoints = new Set<string>();
  for (const step of node.steps) {
    if (step.kind === 'given-object') {
      const name = checkGivenObject(session, block, step);
      if (name !== undefined) endpoints.add(name);
    } else if (step.kind === 'given-facts') {
      for (const fact of step.facts) checkFact(session, block, fact);
    }
  }
  for (const step of node.steps) if (step.kind === 'expect') checkOutcome(session, block, labels, step.outcome, endpoints);
};

export const checkEnsure = (session: Session, block: Block, labels: Labels, node: EnsureNode): void => {
  if (node.when !== undefined) checkCondition(session, { scope: 'request', block, clause: 'when' }, node.when, 'after `when`');
  checkOutcome(session, block, labels, node.outcome, new Set());
};
