import type { Json, Value } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type {
  Definitions,
  EndpointDefinition,
  EndpointFacts,
  Expression,
  GatewayDefinition,
  LimitDefinition,
  TenantDefinition,
  TierDefinition,
} from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { DefineNode, ExprNode, ObjectNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { PRECISIONS } from './catalogue/built-in-properties.ts';
import { defineKeys, defineKinds } from './catalogue/define-kinds.ts';
import type { DefinedNames } from './defined-names.ts';
import { isListenAddress, normaliseAddress } from './endpoint-address.ts';
import { checkExpression } from './expression.ts';
import { isConstant } from './fold.ts';
import { createObjectReader, declaredType, readJson } from './object-reader.ts';
import type { ObjectReader } from './object-reader.ts';
import type { Block, Place, Session } from './session.ts';
import { isTimeZone } from './time-window.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Definitions as they are gathered. */
export interface DefinitionList {
  gateway: GatewayDefinition | undefined;
  gatewaySpan: Span | undefined;
  readonly tiers: Mutable<TierDefinition>[];
  /** Endpoints of a `define` of their own, to be put into their tiers. */
  readonly endpoints: EndpointDefinition[];
  readonly slos: Definitions['slos'][number][];
  readonly tenants: TenantDefinition[];
  readonly limits: LimitDefinition[];
  readonly alarms: Definitions['alarms'][number][];
  readonly params: Definitions['params'][number][];
  readonly discoveries: NonNullable<Definitions['discoveries']>[number][];
  readonly profiles: NonNullable<Definitions['profiles']>[number][];
  /** Where each address was first given. */
  readonly addresses: Map<string, Span>;
  /** Where each name of an endpoint was first given. */
  readonly endpointNames: Map<string, Span>;
}

export const createDefinitionList = (): DefinitionList => ({
  gateway: undefined,
  gatewaySpan: undefined,
  tiers: [],
  endpoints: [],
  slos: [],
  tenants: [],
  limits: [],
  alarms: [],
  params: [],
  discoveries: [],
  profiles: [],
  addresses: new Map(),
  endpointNames: new Map(),
});

const DEFAULT_GATEWAY: GatewayDefinition = {
  listen: '127.0.0.1:8080',
  admin: '127.0.0.1:9901',
  workers: 1,
  models: [],
  unknownModel: 'reject',
  reportModel: 'alias',
  timezone: 'UTC',
  bodyLimit: 20 * 1024 * 1024,
  trustedProxies: [],
};

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

/** Leaves out what is undefined, as exact optional properties ask. */
const defined = <T extends object>(value: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T;

const readFacts = (session: Session, reader: ObjectReader): EndpointFacts => {
  const headers = reader.values('headers');
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value !== 'string') reader.fail('E0511', 'headers', `the header \`${name}\` takes a text`);
    else if (/^(authorization|proxy-authorization|x-api-key|api-key)$/i.test(name))
      reader.fail(
        'E0513',
        'headers',
        `the header \`${name}\` is a secret, which never stands in a policy`,
        'write `key: { env: "NAME" }`',
      );
    else if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[\r\n\0]/.test(value))
      reader.fail('E0511', 'headers', `\`${name}\` is no header`);
  }
  const precision = reader.word('precision', PRECISIONS);
  return defined<EndpointFacts>({
    model: reader.text('model'),
    gpu: reader.text('gpu'),
    gpuCount: reader.number('gpu_count', 'number', { minimum: 1, whole: true }),
    precision,
    modelSize: reader.number('model_size', 'count', { above: 0 }),
    engine: reader.word('engine', ['auto', 'vllm', 'sglang', 'tgi', 'trtllm', 'llamacpp', 'ollama', 'other']),
    maxRequests: reader.number('max_requests', 'count', { minimum: 1, whole: true }),
    maxTokensInFlight: reader.number('max_tokens_in_flight', 'count', { minimum: 1 }),
    maxBatch: reader.number('max_batch', 'count', { minimum: 1, whole: true }),
    contextWindow: reader.number('context_window', 'count', { minimum: 1 }),
    price: reader.number('price', 'money', { minimum: 0 }),
    zone: reader.text('zone'),
    region: reader.text('region'),
    labels: reader.values('labels'),
    key: reader.secret('key'),
    ca: reader.text('ca'),
    headers: headers as { readonly [name: string]: string } | undefined,
    ejection: reader.json('ejection'),
    role: reader.word('role', ['both', 'prefill', 'decode']),
    throughput: reader.number('throughput', 'rate', { above: 0 }),
    supports: reader.texts('supports'),
  });
};

const mergeFacts = <T extends EndpointFacts>(tier: EndpointFacts, own: T): T => ({
  ...tier,
  ...own,
  ...(tier.labels !== undefined && own.labels !== undefined ? { labels: { ...tier.labels, ...own.labels } } : {}),
  ...(tier.headers !== undefined && own.headers !== undefined ? { headers: { ...tier.headers, ...own.headers } } : {}),
});

/** Whether no other endpoint has the name; reports and gives false where one has. */
const isFreeName = (session: Session, list: DefinitionList, name: string, span: Span): boolean => {
  const before = list.endpointNames.get(name);
  if (before === undefined) {
    list.endpointNames.set(name, span);
    return true;
  }
  session.report('E0213', span, `the endpoint name ${JSON.stringify(name)} is used twice`, {
    labels: [{ span: before, message: 'first used here' }],
  });
  return false;
};

/** The address of an endpoint, normalised and unique; reports and gives undefined where it is wrong. */
const addressOf = (session: Session, list: DefinitionList, text: string, span: Span): string | undefined => {
  const address = normaliseAddress(text);
  if ('problem' in address) {
    session.report(
      'E0514',
      span,
      `${JSON.stringify(text)} is no address of an endpoint: ${address.problem}`,
      address.help === undefined ? {} : { help: address.help },
    );
    return undefined;
  }
  const before = list.addresses.get(address.url);
  if (before !== undefined) {
    session.report('E0213', span, `the endpoint \`${address.url}\` is defined twice`, {
      labels: [{ span: before, message: 'first defined here' }],
      help: 'an endpoint is one address and belongs to one tier',
    });
    return undefined;
  }
  list.addresses.set(address.url, span);
  return address.url;
};

const readTier = (session: Session, place: Place, list: DefinitionList, node: DefineNode, name: string): void => {
  const reader = createObjectReader(
    session,
    place,
    node.body,
    `tier ${JSON.stringify(name)}`,
    defineKeys.tier,
    node.head,
  );
  reader.require('model', 'model: "…"');
  const facts = readFacts(session, reader);
  const written = reader.entry('endpoints');
  const inner = written === undefined ? undefined : withoutParens(written.value);
  const items = inner === undefined ? [] : inner.kind === 'list' ? inner.items : [inner];
  const endpoints: EndpointDefinition[] = [];
  for (const [index, item] of items.entries()) {
    const endpoint = readEndpoint(session, place, list, item, name, `${name}/${index + 1}`);
    if (endpoint !== undefined) endpoints.push(mergeFacts(facts, endpoint));
  }
  reader.finish();
  list.tiers.push({ ...facts, name, endpoints, span: node.span });
};

/** An endpoint in the list of a tier: an address, or an object with `url` and facts of its own. */
const readEndpoint = (
  session: Session,
  place: Place,
  list: DefinitionList,
  item: ExprNode,
  tier: string,
  standardName: string,
): EndpointDefinition | undefined => {
  const inner = withoutParens(item);
  if (inner.kind === 'object') {
    const reader = createObjectReader(
      session,
      place,
      inner,
      'an endpoint',
      defineKeys.endpoint.filter((key) => key !== 'tier'),
    );
    reader.require('url', 'url: "http://…"');
    const text = reader.text('url');
    const name = reader.text('name') ?? standardName;
    const weight = reader.number('weight', 'number', { above: 0 }) ?? 1;
    const own = readFacts(session, reader);
    reader.finish();
    const url =
      text === undefined ? undefined : addressOf(session, list, text, reader.entry('url')?.value.span ?? inner.span);
    if (!isFreeName(session, list, name, reader.entry('name')?.value.span ?? inner.span)) return undefined;
    return url === undefined ? undefined : { ...own, name, url, tier, weight, span: inner.span };
  }
  const expression = checkExpression(session, { ...place, scope: 'constant', clause: 'endpoints' }, item);
  if (expression === undefined) return undefined;
  if (!isConstant(expression) || typeof expression.value !== 'string') {
    session.report('E0511', item.span, 'an endpoint is an address, or an object with `url`', {
      help: 'write `"http://10.0.0.1:8000"` or `{ url: "http://10.0.0.1:8000", weight: 2 }`',
    });
    return undefined;
  }
  const url = addressOf(session, list, expression.value, item.span);
  if (!isFreeName(session, list, standardName, item.span)) return undefined;
  return url === undefined ? undefined : { name: standardName, url, tier, weight: 1, span: item.span };
};

const readEndpointDefinition = (
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
    `endpoint ${JSON.stringify(name)}`,
    defineKeys.endpoint,
    node.head,
  );
  reader.require('url', 'url: "http://…"');
  reader.require('tier', 'tier: "…"');
  const text = reader.text('url');
  const written = reader.text('tier');
  const weight = reader.number('weight', 'number', { above: 0 }) ?? 1;
  const own = readFacts(session, reader);
  const given = reader.text('name');
  reader.finish();
  const tier =
    written === undefined ? undefined : session.defined.tiers.has(prefix + written) ? prefix + written : written;
  if (tier !== undefined && !session.defined.tiers.has(tier)) {
    if (session.defined.tiersKnown && !session.defined.tiersOpen && !session.incomplete) {
      const near = suggest(tier, session.defined.tiers.keys());
      session.report(
        'E0202',
        reader.entry('tier')?.value.span ?? node.span,
        `unknown tier ${JSON.stringify(tier)}`,
        near === undefined ? {} : { help: `did you mean ${JSON.stringify(near)}?` },
      );
      return;
    }
  }
  const url =
    text === undefined ? undefined : addressOf(session, list, text, reader.entry('url')?.value.span ?? node.span);
  if (
    !isFreeName(session, list, given ?? name, node.name?.span ?? node.head) ||
    url === undefined ||
    tier === undefined
  )
    return;
  list.endpoints.push({ ...own, name: given ?? name, url, tier, weight, span: node.span });
};

const readGateway = (session: Session, place: Place, list: DefinitionList, node: DefineNode): void => {
  if (list.gatewaySpan !== undefined) {
    session.report('E0213', node.head, '`gateway` is defined twice', {
      labels: [{ span: list.gatewaySpan, message: 'first defined here' }],
    });
    return;
  }
  list.gatewaySpan = node.head;
  const reader = createObjectReader(session, place, node.body, 'the gateway', defineKeys.gateway, node.head);
  const listener = (key: 'listen' | 'admin'): string | undefined => {
    const text = reader.text(key);
    if (text === undefined || isListenAddress(text)) return text;
    return reader.fail(
      'E0514',
      key,
      `${JSON.stringify(text)} is no address to listen on`,
      'write `host:port`, as in `0.0.0.0:8080`',
    );
  };
  const timezone = reader.text('timezone');
  if (timezone !== undefined && !isTimeZone(timezone)) {
    session.report(
      'E0327',
      reader.entry('timezone')?.value.span ?? node.span,
      `\`${timezone}\` is no known time zone`,
      { help: 'write it as in `Europe/Berlin`' },
    );
  }
  const tls = reader.object('tls');
  const cert = tls?.text('cert');
  const key = tls?.text('key');
  if (tls !== undefined) {
    tls.require('cert', 'cert: "path"');
    tls.require('key', 'key: "path"');
    tls.finish();
  }
  const audit = reader.object('audit');
  const file = audit?.text('file');
  const record = audit?.word('record', ['read', 'all']);
  if (audit !== undefined) {
    audit.require('file', 'file: "path"');
    audit.finish();
  }
  const shared = reader.object('shared');
  const url = shared?.text('url');
  if (shared !== undefined) {
    shared.require('url', 'url: "redis://…"');
    shared.finish();
    if (url !== undefined && /^[a-z]+:\/\/[^/]*:[^/]*@/i.test(url))
      shared.fail('E0513', 'url', 'the address holds a password, which never stands in a policy');
  }
  list.gateway = {
    ...DEFAULT_GATEWAY,
    ...defined<Partial<GatewayDefinition>>({
      listen: listener('listen'),
      admin: listener('admin'),
      workers: reader.number('workers', 'number', { minimum: 1, maximum: 256, whole: true }),
      models: reader.texts('models'),
      unknownModel: reader.word('unknown_model', ['reject', 'route']),
      reportModel: reader.word('report_model', ['alias', 'real']),
      timezone,
      bodyLimit: reader.number('body_limit', 'bytes', { minimum: 1024 }),
      trustedProxies: reader.texts('trusted_proxies'),
      keys: reader.secret('keys'),
      cors: reader.json('cors'),
      tls: cert !== undefined && key !== undefined ? { cert, key } : undefined,
      audit: file === undefined ? undefined : { file, record: record ?? 'read' },
      shared: url === undefined ? undefined : { url },
    }),
    span: node.span,
  };
  reader.finish();
};

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
      if (!session.incomplete)
        session.report(
          'E0222',
          span,
          `no \`define limit ${JSON.stringify(limit)}\` is known`,
          near === undefined ? {} : { help: `did you mean \`${near}\`?` },
        );
      continue;
    }
    known.used = true;
    limits.push(full);
  }
  const tenantClass = reader.word<'critical' | 'high' | 'normal' | 'low'>('class', [
    'critical',
    'high',
    'normal',
    'low',
  ]);
  const weight = reader.number('weight', 'number', { above: 0 }) ?? 1;
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
    } else parent.used = true;
  }
  reader.finish();
  if (
    ['requests', 'tokens', 'input_tokens', 'output_tokens', 'cost', 'concurrency'].every(
      (amount) => !reader.has(amount),
    )
  ) {
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
    const near = suggest(kind, defineKinds);
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
