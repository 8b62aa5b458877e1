import type { SiteFile } from '@signalbox/console';
import { fastify } from 'fastify';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import type { AdminSource } from './admin-server.ts';
import { startAdminServer } from './admin-server.ts';
import { isPlayground, servePlayground } from './playground.ts';

const SITE: readonly SiteFile[] = [
  ['index.html', 'text/html; charset=utf-8', "default-src 'self'", false, '"page"', '<p>'],
  ['main-1a2b.js', 'text/javascript; charset=utf-8', "default-src 'none'", true, '"script"', 'run()'],
  ['gateway.json', 'application/json; charset=utf-8', "default-src 'none'", false, '"facts"', '{}'],
].map(([path, type, contentSecurityPolicy, isImmutable, etag, text]) => ({
  path: String(path),
  type: String(type),
  contentSecurityPolicy: String(contentSecurityPolicy),
  isImmutable: isImmutable === true,
  etag: String(etag),
  bytes: new TextEncoder().encode(String(text)),
}));

let app: FastifyInstance;
const serve = (site: readonly SiteFile[] | undefined): void => {
  app = fastify();
  servePlayground(app, site);
};
afterEach(() => app.close());

describe('the playground on the admin listener', () => {
  test('each file has its type and its own content security policy, and is read as nothing else', async () => {
    serve(SITE);
    for (const { path, type, contentSecurityPolicy } of SITE) {
      const { statusCode, headers } = await app.inject(`/playground/${path}`);
      expect(statusCode).toBe(200);
      expect(headers).toMatchObject({
        'content-type': type,
        'content-security-policy': contentSecurityPolicy,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
    }
  });

  test('the folder is the page, and its name without a slash leads there', async () => {
    serve(SITE);
    expect((await app.inject('/playground/')).body).toBe('<p>');
    const { statusCode, headers } = await app.inject('/playground');
    expect([statusCode, headers.location]).toEqual([308, 'playground/']);
  });

  test('files whose name changes with their content are kept for ever; the page is asked for each time, and sent if it changed', async () => {
    serve(SITE);
    const script = await app.inject('/playground/main-1a2b.js');
    expect(script.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const page = await app.inject('/playground/');
    expect(page.headers).toMatchObject({ 'cache-control': 'no-cache', etag: '"page"' });
    const again = (tags: string): Promise<LightMyRequestResponse> =>
      app.inject({ url: '/playground/', headers: { 'if-none-match': tags } });
    for (const tags of ['"page"', 'W/"page"', '"x", "page"', '*'])
      expect(await again(tags)).toMatchObject({ statusCode: 304, body: '' });
    expect(await again('"x"')).toMatchObject({ statusCode: 200, body: '<p>' });
  });

  test('HEAD has the headers alone, and nothing is reached by another method', async () => {
    serve(SITE);
    const head = await app.inject({ method: 'HEAD', url: '/playground/main-1a2b.js' });
    expect(head).toMatchObject({ statusCode: 200, body: '' });
    expect(head.headers['content-length']).toBe('5');
    expect((await app.inject({ method: 'POST', url: '/playground/' })).statusCode).toBe(404);
  });

  test('the page is told where policy and fleet are', async () => {
    serve(SITE);
    expect((await app.inject('/playground/gateway.json')).json()).toEqual({
      endpoints: '../-/endpoints',
      versions: '../-/policy/versions',
    });
  });

  test.each(['other.js', '..%2fpackage.json', '%2e%2e/secret', 'site.json', 'sub/index.html'])(
    'what is not one of its files is not there: %s',
    async (path) => {
      serve(SITE);
      expect((await app.inject(`/playground/${path}`)).statusCode).toBe(404);
    },
  );

  test('where it is not built, it says how to build it', async () => {
    serve(undefined);
    const { statusCode, body } = await app.inject('/playground/');
    expect(statusCode).toBe(404);
    expect(body).toMatch(/npm run build:playground/);
  });

  test('its files need no token where one is set; all else does, also what is in its folder and is no file of it', async () => {
    serve(undefined);
    const server = await startAdminServer({
      listen: '127.0.0.1:0',
      token: 'secret',
      playground: SITE,
      source: {} as AdminSource,
    });
    try {
      const statusOf = async (path: string): Promise<number> => (await fetch(server.url + path)).status;
      for (const path of ['/playground', '/playground/', '/playground/main-1a2b.js', '/playground/gateway.json'])
        expect([path, await statusOf(path)]).toEqual([path, 200]);
      for (const path of [
        '/playground/site.json',
        '/playground/../-/policy',
        '/-/endpoints',
        '/-/policy/versions',
        '/',
      ])
        expect([path, await statusOf(path)]).toEqual([path, 401]);
    } finally {
      await server.close();
    }
  });

  test('its routes, and no others, are open', () => {
    expect(['/playground', '/playground/', '/playground/main-1a2b.js'].every(isPlayground)).toBe(true);
    expect([undefined, '/', '/playgroundx', '/-/policy', '/-/playground/'].some(isPlayground)).toBe(false);
  });
});
