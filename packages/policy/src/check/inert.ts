import type { Span } from '../syntax/span.ts';
import type { Session } from './session.ts';

/** What happens in place of each thing that may be written and that a build may not act on. */
const INSTEAD = {
  'with.hedge': 'each request is sent to one endpoint at a time',
  'with.mirror': 'no copies are sent',
  'with.prefill': 'one endpoint serves prefill and decode',
  'define.discovery': 'endpoints are those that tiers list',
  'define.profile': 'write `throughput` in the tier',
  'gateway.cors': 'no CORS headers are sent',
  'gateway.shared': 'limits are those of this process alone',
  'gateway.workers': 'one thread serves',
  'endpoint.role': 'every endpoint serves prefill and decode',
} as const;

/** Something that may be written, by where it stands. */
type InertKey = keyof typeof INSTEAD;

/** Warns of what is written and is without effect in this build, where the host says that it is. */
export const reportInert = (session: Session, key: InertKey, span: Span): void => {
  if (!session.unprovided.has(key)) return;
  const name = key.slice(key.indexOf('.') + 1);
  session.report('W0521', span, `\`${name}\` is not acted on in this build`, { help: INSTEAD[key] });
};

/** The same, for keys that are not among those that a build may lack: nothing happens. */
export const reportInertModifier = (session: Session, name: string, span: Span): void => {
  const key = `with.${name}`;
  if (key in INSTEAD) reportInert(session, key as InertKey, span);
};
