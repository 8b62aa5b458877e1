import type { GatewayDefinition } from '../ir.ts';
import type { DefineNode } from '../syntax/ast.ts';
import { defineKeys } from './catalogue/define-kinds.ts';
import { isListenAddress } from './endpoint-address.ts';
import { networkProblem } from './network-address.ts';
import { reportInert } from './inert.ts';
import { createObjectReader } from './object-reader.ts';
import type { Place, Session } from './session.ts';
import { isTimeZone } from './time-window.ts';
import type { DefinitionList } from './definition-list.ts';
import { defined } from './definition-list.ts';

export const DEFAULT_GATEWAY: GatewayDefinition = {
  listen: '127.0.0.1:8080',
  admin: '127.0.0.1:9901',
  workers: 1,
  models: [],
  unknownModel: 'reject',
  reportModel: 'alias',
  timezone: 'UTC',
  bodyLimit: 20 * 1024 * 1024,
  drain: { accept: 10, grace: 300 },
  trustedProxies: [],
};

export const readGateway = (session: Session, place: Place, list: DefinitionList, node: DefineNode): void => {
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
  const networks = reader.items('trusted_proxies');
  for (const { text, span } of networks) {
    const fault = networkProblem(text);
    if (fault !== undefined)
      session.report('E0514', span, `${JSON.stringify(text)} is no network: ${fault.problem}`, { help: fault.help });
  }
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
  const drain = reader.object('drain');
  const accept = drain?.number('accept', 'duration', { minimum: 0 });
  const grace = drain?.number('grace', 'duration', { minimum: 0 });
  drain?.finish();
  const shared = reader.object('shared');
  const url = shared?.text('url');
  if (shared !== undefined) {
    shared.require('url', 'url: "redis://…"');
    shared.finish();
    if (url !== undefined && /^[a-z]+:\/\/[^/]*:[^/]*@/i.test(url))
      shared.fail('E0513', 'url', 'the address holds a password, which never stands in a policy');
  }
  const workers = reader.number('workers', 'number', { minimum: 1, maximum: 256, whole: true });
  for (const key of ['workers', 'cors', 'shared'] as const) {
    const entry = reader.entry(key);
    if (entry !== undefined && (key !== 'workers' || (workers ?? 1) > 1))
      reportInert(session, `gateway.${key}`, entry.key.span);
  }
  list.gateway = {
    ...DEFAULT_GATEWAY,
    ...defined<Partial<GatewayDefinition>>({
      listen: listener('listen'),
      admin: listener('admin'),
      workers,
      models: reader.texts('models'),
      unknownModel: reader.word('unknown_model', ['reject', 'route']),
      reportModel: reader.word('report_model', ['alias', 'real']),
      timezone,
      bodyLimit: reader.number('body_limit', 'bytes', { minimum: 1024 }),
      earlyHead: reader.number('early_head', 'duration', { minimum: 1 }),
      explainHeader: reader.word('explain_header', ['off', 'asked', 'all']),
      drain: {
        accept: accept ?? DEFAULT_GATEWAY.drain.accept,
        grace: grace ?? DEFAULT_GATEWAY.drain.grace,
      },
      trustedProxies: networks.map(({ text }) => text),
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
