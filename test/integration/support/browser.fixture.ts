import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Bundles the playground as `npm run build` does. */
export function buildPlayground(): void {
  const script = fileURLToPath(new URL('packages/console/scripts/build-site.ts', `file://${root}`));
  execFileSync(process.execPath, ['--conditions=@signalbox/source', script, '--quiet'], { cwd: root });
}

/** The Chromium of the system (test/integration/install.sh), without its sandbox, which containers do not offer. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

/** A page with all that it did that it should not. */
export interface WatchedPage {
  readonly page: Page;
  /** Violations of the content security policy, errors of scripts, warnings and errors of the console. */
  readonly faults: string[];
  /** Every request that left the page or its workers, as method and address. */
  readonly requests: readonly string[];
}

/** A page of a browser that lives as long as the tests of a file. */
export function useChromium(): (options?: BrowserContextOptions) => Promise<WatchedPage> {
  let browser: Browser;
  beforeAll(async () => {
    buildPlayground();
    browser = await startChromium();
  });
  afterAll(() => browser.close());
  return async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    return watch(await context.newPage());
  };
}

async function watch(page: Page): Promise<WatchedPage> {
  const faults: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`));
  await page.exposeFunction('reportViolation', (text: string) => faults.push(`violation: ${text}`));
  await page.addInitScript(() => {
    // The script runs in the page, where these are.
    const { document, reportViolation } = globalThis as unknown as {
      readonly document: EventTarget;
      readonly reportViolation: (text: string) => void;
    };
    document.addEventListener('securitypolicyviolation', (event) => {
      const { violatedDirective, blockedURI } = event as unknown as { violatedDirective: string; blockedURI: string };
      reportViolation(`${violatedDirective} ${blockedURI}`);
    });
  });
  return { page, faults, requests };
}

/** Resolves when the first decision is shown. */
export async function opened(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.locator('body[data-ready="true"]').waitFor();
}

/** Any static server: files of a folder under `/some/where/`, types by their ending, and no header that matters. */
export async function startStaticServer(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const types: { readonly [ending: string]: string } = {
    html: 'text/html',
    js: 'text/javascript',
    css: 'text/css',
    svg: 'image/svg+xml',
    json: 'application/json',
  };
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0]?.replace(/^\/some\/where\//, '') || 'index.html';
    try {
      const bytes = readFileSync(new URL(path, new URL('packages/console/dist/playground/', `file://${root}`)));
      response.setHeader('content-type', types[path.split('.').at(-1) ?? ''] ?? 'application/octet-stream').end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/some/where/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
