import { foreignPools } from '../syntax/foreign-words.ts';
import type { Json, Value } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Definitions, Expression, LimitDefinition } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { DefineNode } from '../syntax/ast.ts';
import { defineKeys, defineKinds } from './catalogue/define-kinds.ts';
import { checkExpression } from './expression.ts';
import { createObjectReader, readJson } from './object-reader.ts';
import type { Block, Place, Session } from './session.ts';
import type { DefinitionList } from './definition-list.ts';
import { defined } from './definition-list.ts';
import { mergeFacts, readTier, readEndpointDefinition } from './endpoint-definitions.ts';
import { DEFAULT_GATEWAY, readGateway } from './gateway-definition.ts';
import { reportInert } from './inert.ts';

const readTenant = (
  session: Session,
  place: Place,
  list: DefinitionList,
  node: DefineNode,
  name: string,
  prefix: string,
): void => {
  const reader = createObjectReader(
    session,
    place,
    node.body,
    `tenant ${JSON.stringify(name)}`,
    defineKeys.tenant,
    node.head,
  );
  const keys: string[] = [];
  for (const { text, span } of reader.items('keys')) {
    const hash = /^(?:sha256:)?([0-9a-f]{64})$/i.exec(text)?.[1];
    if (hash === undefined)
      session.report(
        'E0513',
        span,
        'the keys of a tenant are given by their SHA-256 hashes, 64 hexadecimal digits each',
      );
    else keys.push(hash.toLowerCase());
  }
  const limits: string[] = [];
  for (const { text: limit, span } of reader.items('limits')) {
    const full = session.defined.limits.has(prefix + limit) ? prefix + limit : limit;
    const known = session.defined.limits.get(full);
    if (known === undefined) {
      const near = suggest(limit, session.defined.limits.keys());
      if (!session.incomplete && !session.defined.lost.has('limit'))
        session.report(
          'E0222',
          span,
          `no \`define limit ${JSON.stringify(limit)}\` is known`,
          near === undefined ? {} : { help: `did you mean \`${near}\`?` },
        );
      continue;
    }
    known.used = true;
    session.observer?.defined('limit', full, span);
    limits.push(full);
  }
  const tenantClass = reader.word<'critical' | 'high' | 'normal' | 'low'>('class', [
    'critical',
    'high',
    'normal',
    'low',
  ]);
  const weight = reader.number('weight', 'number', { above: 0 }) ?? 1;
  const models = reader.texts('models');
  const fields: { [name: string]: Value } = {};
  for (const entry of reader.rest()) {
    const value = readJson(session, place, entry.value);
    if (value === undefined) continue;
    if (value === null || (typeof value === 'object' && !Array.isArray(value)))
      session.report('E0511', entry.value.span, 'a field of a tenant is a plain value or a list');
    else fields[entry.key.text] = value as Value;
  }
  list.tenants.push({
    name,
    keys,
    ...(tenantClass === undefined ? {} : { class: tenantClass }),
    weight,
    limits,
    ...(models === undefined ? {} : { models }),
    fields,
    span: node.span,
  });
};

const readLimit = (
  session: Session,
  place: Place,
  list: DefinitionList,
  node: DefineNode,
  name: string,
  prefix: string,
): void => {
  const reader = createObjectReader(
    session,
    { ...place, scope: 'request' },
    node.body,
    `limit ${JSON.stringify(name)}`,
    defineKeys.limit,
    node.head,
  );
  const request: Place = { ...place, scope: 'request', clause: 'key' };
  reader.require('key', 'key: tenant.id');
  const keyNode = reader.entry('key');
  const key: Expression[] = [];
  if (keyNode !== undefined) {
    const inner = withoutParens(keyNode.value);
    for (const part of inner.kind === 'list' ? inner.items : [inner]) {
      const expression = checkExpression(session, request, part);
      if (expression !== undefined) key.push(expression);
    }
  }
  const amounts = {
    requests: reader.rate('requests', 'count'),
    tokens: reader.rate('tokens', 'count'),
    inputTokens: reader.rate('input_tokens', 'count'),
    outputTokens: reader.rate('output_tokens', 'count'),
    cost: reader.rate('cost', 'money'),
    concurrency: reader.number('concurrency', 'count', { minimum: 1, whole: true }),
  };
  const when = reader.condition('when');
  const charge = reader.word('charge', ['reserve', 'after']) ?? 'reserve';
  const share = reader.text('share_of');
  const shareOf = share === undefined ? undefined : session.defined.limits.has(prefix + share) ? prefix + share : share;
  if (shareOf !== undefined) {
    const parent = session.defined.limits.get(shareOf);
    if (parent === undefined || shareOf === name) {
      const near = suggest(shareOf, session.defined.limits.keys());
      session.report(
        'E0222',
        reader.entry('share_of')?.value.span ?? node.span,
        shareOf === name ? 'a limit is no share of itself' : `no \`define limit ${JSON.stringify(shareOf)}\` is known`,
        near === undefined || near === name ? {} : { help: `did you mean \`${near}\`?` },
      );
    } else {
      parent.used = true;
      session.observer?.defined('limit', shareOf, reader.entry('share_of')?.value.span ?? node.span);
    }
  }
  reader.finish();
  if (
    ['requests', 'tokens', 'input_tokens', 'output_tokens', 'cost', 'concurrency'].every(
      (amount) => !reader.has(amount),
    )
  ) {
    if (reader.fine())
      session.report('E0512', node.head, `limit ${JSON.stringify(name)} limits nothing`, {
        help: 'write `requests`, `tokens`, `input_tokens`, `output_tokens`, `cost` or `concurrency`',
      });
    return;
  }
  list.limits.push({
    ...defined<Partial<LimitDefinition>>({ ...amounts, when, shareOf }),
    name,
    key,
    charge,
    span: node.span,
  });
};

const readAlarm = (session: Session, place: Place, list: DefinitionList, node: DefineNode, name: string): void => {
  const reader = createObjectReader(
    session,
    { ...place, scope: 'cluster' },
    node.body,
    `alarm ${JSON.stringify(name)}`,
    defineKeys.alarm,
    node.head,
  );
  reader.require('when', 'when: cluster.saturation > 85%');
  const when = reader.condition('when');
  const until = reader.condition('until');
  const duration = reader.number('for', 'duration', { minimum: 0 }) ?? 0;
  reader.finish();
  if (when !== undefined)
    list.alarms.push({ name, when, ...(until === undefined ? {} : { until }), for: duration, span: node.span });
};

const readParam = (session: Session, place: Place, list: DefinitionList, node: DefineNode, name: string): void => {
  const reader = createObjectReader(
    session,
    place,
    node.body,
    `param ${JSON.stringify(name)}`,
    defineKeys.param,
    node.head,
  );
  const env = reader.text('env');
  const type = session.defined.params.get(name)?.type ?? 'string';
  const standard = reader.has('default') ? reader.constant('default', type) : undefined;
  reader.finish();
  if (!reader.has('env') && !reader.has('default')) {
    if (reader.fine())
      session.report('E0512', node.head, `param ${JSON.stringify(name)} has neither \`env\` nor \`default\``, {
        help: 'write `env: "NAME"`, `default: …`, or both',
      });
    return;
  }
  list.params.push({
    name,
    ...(env === undefined ? {} : { env }),
    ...(standard === undefined ? {} : { default: standard }),
    type,
    span: node.span,
  });
};

const readSlo = (session: Session, place: Place, list: DefinitionList, node: DefineNode, name: string): void => {
  const reader = createObjectReader(
    session,
    place,
    node.body,
    `slo ${JSON.stringify(name)}`,
    defineKeys.slo,
    node.head,
  );
  const objectives = defined<{ readonly ttft?: number; readonly tpot?: number; readonly latency?: number }>({
    ttft: reader.number('ttft', 'duration', { above: 0 }),
    tpot: reader.number('tpot', 'duration', { above: 0 }),
    latency: reader.number('latency', 'duration', { above: 0 }),
  });
  reader.finish();
  if (reader.fine() && Object.keys(objectives).length === 0) {
    session.report('E0512', node.head, `slo ${JSON.stringify(name)} states no objective`, {
      help: 'write `ttft: 500ms`, `tpot: 40ms` or `latency: 30s`',
    });
    return;
  }
  list.slos.push({ name, ...objectives, span: node.span });
};

/** Checks one `define` and adds what it makes. `prefix` is put before names that an import brings under an alias. */
export const checkDefinition = (
  session: Session,
  block: Block,
  list: DefinitionList,
  node: DefineNode,
  prefix: string,
): void => {
  const kind = node.definedKind.text;
  const place: Place = { scope: 'constant', block, clause: 'define' };
  if (!(defineKinds as readonly string[]).includes(kind)) {
    const near = foreignPools.has(kind) ? 'tier' : suggest(kind, defineKinds);
    session.report(
      'E0207',
      node.definedKind.span,
      `unknown kind of definition \`${kind}\``,
      near === undefined
        ? { help: `kinds are ${defineKinds.join(', ')}` }
        : {
            help: `did you mean \`${near}\`?`,
            fix: { message: `write \`${near}\``, edits: [{ span: node.definedKind.span, text: near }] },
          },
    );
    return;
  }
  if (kind === 'gateway') {
    if (node.name !== undefined)
      session.report('E0229', node.name.span, '`gateway` takes no name', {
        fix: { message: 'remove the name', edits: [{ span: node.name.span, text: '' }] },
      });
    readGateway(session, place, list, node);
    return;
  }
  if (node.name === undefined) {
    session.report('E0229', node.head, `\`define ${kind}\` needs a name`, {
      help: `write \`define ${kind} "…" { … }\``,
    });
    return;
  }
  if (node.name.value === '') {
    session.report('E0229', node.name.span, 'the name is empty');
    return;
  }
  const name = prefix + node.name.value;
  switch (kind) {
    case 'tier':
      return readTier(session, place, list, node, name);
    case 'endpoint':
      return readEndpointDefinition(session, place, list, node, name, prefix);
    case 'slo':
      return readSlo(session, place, list, node, name);
    case 'tenant':
      return readTenant(session, place, list, node, name, prefix);
    case 'limit':
      return readLimit(session, place, list, node, name, prefix);
    case 'alarm':
      return readAlarm(session, place, list, node, name);
    case 'param':
      return readParam(session, place, list, node, name);
    default: {
      const options = readJson(session, place, node.body) as { readonly [key: string]: Json } | undefined;
      if (options === undefined) return;
      reportInert(session, kind === 'discovery' ? 'define.discovery' : 'define.profile', node.head);
      (kind === 'discovery' ? list.discoveries : list.profiles).push({ name, options, span: node.span });
    }
  }
};

/** The definitions of the program: single endpoints put into their tiers, facts merged, defaults filled in. */
export const finishDefinitions = (list: DefinitionList): Definitions => {
  const tiers = [...list.tiers];
  for (const definition of list.endpoints) {
    const index = tiers.findIndex((tier) => tier.name === definition.tier);
    const tier = tiers[index];
    if (tier === undefined) {
      tiers.push({ name: definition.tier, endpoints: [definition], span: definition.span });
      continue;
    }
    const { name: _name, endpoints, span: _span, ...facts } = tier;
    tiers[index] = { ...tier, endpoints: [...endpoints, mergeFacts(facts, definition)] };
  }
  return {
    gateway: list.gateway ?? DEFAULT_GATEWAY,
    tiers,
    slos: list.slos,
    tenants: list.tenants,
    limits: list.limits,
    alarms: list.alarms,
    params: list.params,
    discoveries: list.discoveries,
    profiles: list.profiles,
  };
};
