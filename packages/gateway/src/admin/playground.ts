import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SiteFile } from '@signalbox/console';

/** The folder of the admin listener that the playground stands in. */
const FOLDER = '/playground/';
/** Said in place of the page where it was not built. */
const NOT_BUILT = 'The playground is not built here. Run `npm run build:playground`, and start the gateway again.\n';
/** Tells the page where policy and fleet of this gateway are; what a static server has here says nothing. */
const GATEWAY_FILE = 'gateway.json';
const GATEWAY_FACTS = JSON.stringify({ endpoints: '../-/endpoints', versions: '../-/policy/versions' });

/**
 * Serves the playground's files: they are the same for everybody and hold nothing of this gateway, so they need no token. What the page
 * asks the admin API for needs one as ever.
 */
export function servePlayground(app: FastifyInstance, site: readonly SiteFile[] | undefined): void {
  app.get('/playground', (_request, reply) => reply.redirect('playground/', 308));
  if (site === undefined)
    app.get(FOLDER, (_request, reply) => reply.code(404).type('text/plain; charset=utf-8').send(NOT_BUILT));
  for (const file of site ?? []) {
    const paths = file.path === 'index.html' ? ['', file.path] : [file.path];
    for (const path of paths) app.get(FOLDER + path, (request, reply) => send(request, reply, file));
  }
}

/** Whether a route of the admin listener is one of the playground's files. */
export function isPlayground(route: string | undefined): boolean {
  return route === '/playground' || route?.startsWith(FOLDER) === true;
}

function send(request: FastifyRequest, reply: FastifyReply, file: SiteFile): FastifyReply {
  const own = file.path === GATEWAY_FILE;
  reply
    .header('content-type', file.type)
    .header('content-security-policy', file.contentSecurityPolicy)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-resource-policy', 'same-origin')
    .header('cache-control', file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache');
  if (own) return reply.send(GATEWAY_FACTS);
  reply.header('etag', file.etag);
  const known = (request.headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return known.includes(file.etag) || known.includes('*')
    ? reply.code(304).send()
    : reply.send(Buffer.from(file.bytes));
}
