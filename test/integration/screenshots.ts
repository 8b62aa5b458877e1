/**
 * Writes the pictures of the playground that the docs show, light and dark: `npm run screenshots`. Needs the Chromium that
 * test/integration/install.sh installs.
 */
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { writeFragment } from '../../packages/console/src/playground/fragment.ts';
import { EMPTY_STATE } from '../../packages/console/src/playground/state.ts';
import { buildPlayground, opened, startChromium, startStaticServer } from './support/browser.fixture.ts';

const images = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const SCHEMES = ['light', 'dark'] as const;

const TIERS = `define tier "8B" {
  model: "llama-3.1-8b",
  endpoints: ["http://10.0.0.11:8000"]
}
define tier "70B" {
  model: "llama-3.1-70b",
  endpoints: ["http://10.0.0.21:8000"]
}
`;
const WITH_MISTAKES = `${TIERS}
route "hard" when tools > 2 to tier "70B" by least_tokns
reject when prompt_tokens > 5m with status 413
route "warm" when kv_cache_used < 90% to tier "70B"
default to tier "8B" by least_tokens
`;

type Scheme = (typeof SCHEMES)[number];

async function pageOf(
  browser: Browser,
  scheme: Scheme,
  size: { readonly width: number; readonly height: number },
): Promise<Page> {
  const context = await browser.newContext({ viewport: size, colorScheme: scheme, deviceScaleFactor: 2 });
  return context.newPage();
}

async function overview(browser: Browser, url: string, scheme: Scheme): Promise<void> {
  const page = await pageOf(browser, scheme, { width: 1360, height: 860 });
  await opened(page, url);
  await page.getByRole('tab', { name: 'Fleet' }).click();
  await page.locator('#test-count.good').waitFor();
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${images}playground-${scheme}.png` });
  await page.context().close();
}

/** The editor as it shows a mistake under the pointer, and the list of problems below it. */
async function diagnostics(browser: Browser, url: string, scheme: Scheme): Promise<void> {
  const page = await pageOf(browser, scheme, { width: 1360, height: 860 });
  await opened(page, `${url}#${await writeFragment({ ...EMPTY_STATE, policy: WITH_MISTAKES })}`);
  await page.locator('#policy .cm-lintRange-error', { hasText: 'least_tokns' }).hover();
  await page.locator('#policy .cm-tooltip-lint').waitFor();
  await page.locator('.panel.policy').screenshot({ path: `${images}diagnostics-${scheme}.png` });
  await page.context().close();
}

async function completion(browser: Browser, url: string, scheme: Scheme): Promise<void> {
  const page = await pageOf(browser, scheme, { width: 1360, height: 860 });
  await opened(page, url);
  await page.locator('#policy .cm-content').focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(`${TIERS}\nroute when compl`);
  await page.keyboard.press('Control+Space');
  await page.locator('.cm-completionInfo').waitFor();
  await page.screenshot({
    path: `${images}completion-${scheme}.png`,
    clip: { x: 0, y: 46, width: 920, height: 430 },
  });
  await page.context().close();
}

mkdirSync(images, { recursive: true });
buildPlayground();
const server = await startStaticServer();
const browser = await startChromium();
try {
  for (const scheme of SCHEMES) {
    await overview(browser, server.url, scheme);
    await diagnostics(browser, server.url, scheme);
    await completion(browser, server.url, scheme);
  }
} finally {
  await browser.close();
  await server.close();
}
