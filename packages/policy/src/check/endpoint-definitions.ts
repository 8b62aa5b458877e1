import { suggest } from '../diagnostics/suggest.ts';
import type { EndpointDefinition, EndpointFacts } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { DefineNode, ExprNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { PRECISIONS } from './catalogue/built-in-properties.ts';
import { defineKeys } from './catalogue/define-kinds.ts';
import { normaliseAddress } from './endpoint-address.ts';
import { checkExpression } from './expression.ts';
import { isConstant } from './fold.ts';
import { reportInert } from './inert.ts';
import { createObjectReader } from './object-reader.ts';
import type { ObjectReader } from './object-reader.ts';
import type { Place, Session } from './session.ts';
import type { DefinitionList } from './definition-list.ts';
import { defined } from './definition-list.ts';

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
  const role = reader.word('role', ['both', 'prefill', 'decode']);
  const roleEntry = reader.entry('role');
  if (roleEntry !== undefined && role !== undefined && role !== 'both')
    reportInert(session, 'endpoint.role', roleEntry.key.span);
  return defined<EndpointFacts>({
    model: reader.text('model'),
    gpu: reader.text('gpu'),
    gpuCount: reader.number('gpu_count', 'number', { minimum: 1, whole: true }),
    precision,
    modelSize: reader.number('model_size', 'count', { above: 0 }),
    engine: reader.word('engine', ['auto', 'vllm', 'sglang', 'tgi', 'trtllm', 'llamacpp', 'ollama', 'other']),
    maxRequests: reader.number('max_requests', 'count', { minimum: 1, whole: true }),
    adaptiveLimit: reader.constant('adaptive_limit', 'bool') as boolean | undefined,
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
    role,
    throughput: reader.number('throughput', 'rate', { above: 0 }),
    supports: reader.texts('supports'),
  });
};

export const mergeFacts = <T extends EndpointFacts>(tier: EndpointFacts, own: T): T => ({
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

export const readTier = (
  session: Session,
  place: Place,
  list: DefinitionList,
  node: DefineNode,
  name: string,
): void => {
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
  // Of a tier that is defined twice the tier is told, not each endpoint.
  if (list.tiers.some((known) => known.name === tier)) return undefined;
  if (!isFreeName(session, list, standardName, item.span)) return undefined;
  return url === undefined ? undefined : { name: standardName, url, tier, weight: 1, span: item.span };
};

export const readEndpointDefinition = (
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
    const { tiersKnown, tiersOpen, lost } = session.defined;
    if (tiersKnown && !tiersOpen && !lost.has('tier') && !session.incomplete) {
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
  const tierSpan = reader.entry('tier')?.value.span;
  if (tier !== undefined && tierSpan !== undefined) session.observer?.defined('tier', tier, tierSpan);
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
