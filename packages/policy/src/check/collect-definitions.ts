import { withoutParens } from '../syntax/ast.ts';
import type { DefineNode, ExprNode, ObjectNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { defineKeys } from './catalogue/define-kinds.ts';
import type { DefinedNames } from './defined-names.ts';
import { declaredType } from './object-reader.ts';
import type { Session } from './session.ts';
import { isTimeZone } from './time-window.ts';

const valueOf = (body: ObjectNode, key: string): ExprNode | undefined => {
  const entry = body.entries.find((candidate) => candidate.key.text === key);
  return entry === undefined ? undefined : withoutParens(entry.value);
};

const textOf = (node: ExprNode | undefined): string | undefined => (node?.kind === 'string' ? node.value : undefined);

/** Notes the names that a definition introduces, before anything is checked, so that rules may stand above it. `prefix` is an import's. */
export const collectDefinition = (
  names: DefinedNames,
  node: DefineNode,
  prefix: string,
  own: boolean,
  report: Session['report'],
): void => {
  const kind = node.definedKind.text;
  const label = node.name?.value;
  const name = label === undefined ? undefined : prefix + label;
  const span = node.name?.span ?? node.definedKind.span;
  const put = <T extends { readonly span: Span }>(map: Map<string, T | undefined>, key: string, value: T): void => {
    const before = map.get(key);
    if (before !== undefined) {
      report('E0213', span, `\`${kind} ${JSON.stringify(key)}\` is defined twice`, {
        labels: [{ span: before.span, message: 'first defined here' }],
      });
      return;
    }
    map.set(key, value);
  };
  if (kind === 'gateway') {
    const zone = textOf(valueOf(node.body, 'timezone'));
    if (zone !== undefined && isTimeZone(zone)) names.timezone = zone;
    return;
  }
  if (name === undefined) return;
  const defined = { name, span, own, used: false };
  switch (kind) {
    case 'tier': {
      names.tiersKnown = true;
      put(names.tiers, name, defined);
      const endpoints = valueOf(node.body, 'endpoints');
      const items = endpoints?.kind === 'list' ? endpoints.items : endpoints === undefined ? [] : [endpoints];
      for (const [index, item] of items.entries()) {
        const inner = withoutParens(item);
        const given = inner.kind === 'object' ? textOf(valueOf(inner, 'name')) : undefined;
        names.endpoints.set(given === undefined ? `${name}/${index + 1}` : given, undefined);
        if (inner.kind === 'object') collectTypes(names.labels, valueOf(inner, 'labels'));
      }
      collectTypes(names.labels, valueOf(node.body, 'labels'));
      return;
    }
    case 'endpoint':
      put(names.endpoints, name, defined);
      collectTypes(names.labels, valueOf(node.body, 'labels'));
      return;
    case 'slo':
      put(names.slos, name, defined);
      return;
    case 'limit':
      put(names.limits, name, defined);
      return;
    case 'alarm':
      put(names.alarms, name, defined);
      return;
    case 'param': {
      const standard = valueOf(node.body, 'default');
      put(names.params, name, {
        ...defined,
        type: (standard === undefined ? undefined : declaredType(standard)) ?? 'string',
      });
      return;
    }
    case 'tenant':
      put(names.tenants, name, defined);
      for (const entry of node.body.entries) {
        if (defineKeys.tenant.includes(entry.key.text)) continue;
        const type = declaredType(entry.value);
        if (type !== undefined && !names.tenantFields.has(entry.key.text)) names.tenantFields.set(entry.key.text, type);
      }
      return;
    case 'discovery': {
      const tiers = valueOf(node.body, 'tiers') ?? valueOf(node.body, 'tier');
      const items = tiers?.kind === 'list' ? tiers.items : tiers === undefined ? [] : [tiers];
      const known = items.map((item) => textOf(withoutParens(item))).filter((text) => text !== undefined);
      for (const tier of known) if (!names.tiers.has(prefix + tier)) names.tiers.set(prefix + tier, undefined);
      if (known.length > 0) names.tiersKnown = true;
      else names.tiersOpen = true;
      return;
    }
    default:
  }
};

const collectTypes = (types: DefinedNames['labels'], node: ExprNode | undefined): void => {
  if (node?.kind !== 'object') return;
  for (const entry of node.entries) {
    const type = declaredType(entry.value);
    if (type !== undefined && !types.has(entry.key.text)) types.set(entry.key.text, type);
  }
};
