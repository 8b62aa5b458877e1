import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { writeFragment } from '../../packages/console/src/playground/fragment.ts';
import { EMPTY_STATE } from '../../packages/console/src/playground/state.ts';
import type { Bed } from '../e2e/support/gateway.fixture.ts';
import { startBed } from '../e2e/support/gateway.fixture.ts';
import { opened, startStaticServer, useChromium } from './support/browser.fixture.ts';
import type { WatchedPage } from './support/browser.fixture.ts';

const TOKEN = 'correct-horse';
const newPage = useChromium();
let bed: Bed;
let url: string;
let watched: WatchedPage;

beforeAll(async () => {
  bed = await startBed({
    engines: [{}, {}],
    policy: ([a, b]) => `
      define tier "8B" { model: "sim", endpoints: ["${a}", "${b}"] }
      default to tier "8B" by least_tokens`,
    gateway: { adminToken: TOKEN },
  });
  url = `${bed.gateway.adminUrl}/playground/`;
});
afterAll(() => bed.stop());

/** Whatever a test did: the policy of the page was kept, nothing failed, and nothing left for elsewhere or was sent. */
afterEach(async () => {
  const { faults, requests, page } = watched;
  const origin = new URL(page.url()).origin;
  await page.context().close();
  expect(faults).toEqual([]);
  expect(requests.filter((request) => !request.startsWith(`GET ${origin}/`))).toEqual([]);
});

const policy = (page: Page): Locator => page.locator('#policy .cm-content');
const body = (page: Page): Locator => page.locator('#body .cm-content');
const headline = (page: Page): Locator => page.locator('#decision .headline .title');
const problems = (page: Page): Locator => page.locator('#problems li');

/** Puts a text in place of an editor's by the keyboard alone, as if pasted. */
async function write(page: Page, editor: Locator, text: string): Promise<void> {
  await editor.focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

async function open(fragment = ''): Promise<Page> {
  watched = await newPage();
  await opened(watched.page, url + fragment);
  return watched.page;
}

/** What comes about in the page in its own time; the limit is for machines that are busy. */
const expectPoll = <T>(value: () => T | Promise<T>): ReturnType<typeof expect.poll<T>> =>
  expect.poll(value, { timeout: 20_000 });
const expectText = (locator: Locator, text: string | RegExp): Promise<void> =>
  expectPoll(() => locator.first().textContent()).toMatch(text);

/** Points at `target` until `card` shows: what is written over, as when findings come, loses the card that was about to show. */
const hoverUntil = async (target: Locator, card: Locator): Promise<void> =>
  expectPoll(async () => {
    await target.page().mouse.move(1, 1);
    await target.hover();
    return card
      .first()
      .waitFor({ timeout: 2000 })
      .then(
        () => true,
        () => false,
      );
  }).toBe(true);

const TIERS = `define gateway { models: ["auto"] }
define tier "8B" { model: "small", endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "large", endpoints: ["http://10.0.0.21:8000"] }
`;

describe('the first screen', () => {
  test('shows a decision at once, with its rules, its candidates and the tests of the policy', async () => {
    const page = await open();
    await expectText(headline(page), /^70B\/2$/);
    expect(await page.locator('.rules .matched .name').textContent()).toContain('hard');
    expect(await page.locator('.candidates tbody tr').count()).toBe(4);
    expect(await page.locator('.candidates .where .leaves').textContent()).toMatch(/false.*load < 95%/s);
    await expectText(page.locator('#test-count'), '3 ✓');
    await page.getByRole('tab', { name: 'As text' }).click();
    await expectText(page.locator('#decision-text'), /^→ 70B\/2 \(tier "70B"\) by route "hard"/);
  });

  test('each example decides, and has no problems', async () => {
    const page = await open();
    const names = await page
      .locator('#examples option:not([value=""])')
      .evaluateAll((options) => options.map((option) => (option as unknown as { value: string }).value));
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) {
      await page.locator('#examples').selectOption(name);
      await expectText(page.locator('#problem-count'), /no problems|warning/);
      await expectPoll(() => page.locator('#decision .headline.waiting').count()).toBe(0);
      await expectPoll(() => page.locator('#decision .headline.forward, #decision .headline.refused').count()).toBe(1);
    }
  });
});

describe('writing a policy', () => {
  test('a mistake is marked where it stands, in the words of the command line, and put right by its quick fix', async () => {
    const page = await open();
    await write(page, policy(page), `${TIERS}default to tier "8B" by least_tokns`);
    await expectText(problems(page), /4:25error\[E0204\]unknown scorer least_tokns.*did you mean least_tokens/s);
    await expectPoll(() => page.locator('#policy .cm-lintRange-error').allTextContents()).toEqual(['least_tokns']);
    await expectText(page.locator('#decision .headline .detail'), /has an error/);
    await hoverUntil(page.locator('#policy .cm-lintRange-error'), page.locator('#policy .cm-tooltip-lint'));
    await expectText(page.locator('#policy .cm-tooltip-lint'), /E0204.*unknown scorer/s);
    await page.locator('#policy .cm-diagnosticAction').click();
    await expectText(page.locator('#problem-count'), 'no problems');
    expect(await policy(page).textContent()).toContain('by least_tokens');
    await expectText(headline(page), /^8B\/\d$/);
  });

  test('names are completed by what may stand there, and explained under the pointer', async () => {
    const page = await open();
    await write(page, policy(page), `${TIERS}default to tier "8B" by `);
    await page.keyboard.press('Control+Space');
    await page.locator('.cm-tooltip-autocomplete').waitFor();
    const offered = await page.locator('.cm-tooltip-autocomplete .cm-completionLabel').allTextContents();
    expect(offered).toContain('least_tokens');
    expect(offered).not.toContain('complexity');
    await page.keyboard.insertText('least_tok');
    await expectText(page.locator('.cm-tooltip-autocomplete li[aria-selected]'), 'least_tokens');
    // By a click: keys are ignored for a moment after the list appears, and then mean something else.
    await page.locator('.cm-tooltip-autocomplete li[aria-selected]').click();
    await expectText(policy(page), /by least_tokens$/);
    await hoverUntil(policy(page).getByText('least_tokens'), page.locator('.hover-card .title'));
    await expectText(page.locator('.hover-card .title'), /scorer least_tokens/);
  });

  test('words are coloured by what the compiler takes them for', async () => {
    const page = await open();
    await write(
      page,
      policy(page),
      `${TIERS}route when complexity > 50 to tier "70B" by least_tokens\ndefault to tier "8B"`,
    );
    await expectPoll(() => page.locator('#policy .mark-signal').allTextContents()).toEqual(['complexity']);
    expect(await page.locator('#policy .mark-scorer').allTextContents()).toEqual(['least_tokens']);
    expect(await page.locator('#policy .mark-number').allTextContents()).toEqual(['50']);
  });

  test('Format lays it out', async () => {
    const page = await open();
    await write(page, policy(page), `${TIERS}default   to tier "8B"   by   least_tokens`);
    await page.locator('#format').click();
    await expectPoll(() => policy(page).textContent()).toContain('default to tier "8B" by least_tokens');
  });

  test('its tests run, and what failed is said', async () => {
    const page = await open();
    const wrong = `test "hard goes to the small" { given complexity = 80 expect to tier "70B" }`;
    await write(page, policy(page), `${TIERS}default to tier "8B" by least_tokens\n${wrong}`);
    await expectText(page.locator('#test-count'), '1 ✗');
    await page.getByRole('tab', { name: /Tests/ }).click();
    await expectText(page.locator('#tests .failed'), /hard goes to the small.*expected to tier "70B"; got .*8B/s);
  });

  test('analysis finds a rule that no request reaches, with the same code as on the command line', async () => {
    const page = await open();
    const rules = `route "a" when complexity > 50 to tier "70B"\nroute "b" when complexity > 60 to tier "70B"\ndefault to tier "8B"`;
    await write(page, policy(page), TIERS + rules);
    await expectText(problems(page), /5:1warning\[W0502\]/);
  });
});

describe('another request, another fleet', () => {
  test('the decision follows the request', async () => {
    const page = await open();
    await expectText(headline(page), /^70B\/2$/);
    await write(
      page,
      body(page),
      '{ "model": "auto", "messages": [{ "role": "user", "content": "Is Paris in France?" }] }',
    );
    await expectText(headline(page), /^8B\/\d$/);
    await page.locator('#headers').fill('x-session-id: s-1');
    await expectText(page.locator('.rules .matched .name').first(), /conversation/);
    await write(page, body(page), '{ "model": ');
    await expectText(page.locator('#request-problem'), /not JSON/);
  });

  test('the decision follows the fleet, whose values are checked as the language has them', async () => {
    const page = await open();
    await page.getByRole('tab', { name: 'Fleet' }).click();
    await page.getByLabel('queued_tokens of 70B/2').fill('30k');
    await expectText(headline(page), /^70B\/3$/);
    await page.getByLabel('state of 70B/3').selectOption('draining');
    await expectText(headline(page), /^70B\/1$/);
    await page.getByLabel('kv_cache_used of 70B/1').fill('50');
    await expectText(page.locator('#fleet .problems li'), /E0305.*kv_cache_used.*write 50%/s);
    expect(await page.getByLabel('kv_cache_used of 70B/1').getAttribute('aria-invalid')).toBe('true');
    await expectText(headline(page), /^70B\/1$/);
  });
});

describe('sharing', () => {
  test('a link carries policy, request and fleet to another browser, and nothing is sent for it', async () => {
    const page = await open();
    await write(page, policy(page), `${TIERS}default to tier "8B" by lowest(queued_tokens) # mine ✓`);
    await page.getByRole('tab', { name: 'Fleet' }).click();
    await page.getByLabel('queued_tokens of 8B/1').fill('9k');
    await expectText(headline(page), /^8B\/2$/);
    await expectPoll(() => page.locator('#tests').getAttribute('data-stale')).toBe('false');
    const before = watched.requests.length;
    await page.locator('#share').click();
    await expectPoll(() => page.url()).toMatch(/#v1\.[\w-]+$/);
    // A worker may still be on its way; what the page holds is on none.
    for (const request of watched.requests.slice(before)) expect(request).toMatch(/^GET [^?#]*\/playground\/[\w.-]+$/);
    const link = page.url();
    await page.context().close();
    watched = await newPage();
    await opened(watched.page, link);
    await expectText(headline(watched.page), /^8B\/2$/);
    expect(await policy(watched.page).textContent()).toContain('# mine ✓');
  });

  test('a link that is rubbish is said to be, and what was there stays', async () => {
    const page = await open();
    await write(page, policy(page), `${TIERS}default to tier "8B" by least_tokens # kept`);
    await expectText(headline(page), /^8B\/\d$/);
    for (const rubbish of ['#v1.rubbish', '#v9.AAAA', '#something']) {
      await page.goto(url + rubbish);
      await expectText(page.locator('.notice.bad'), /could not be opened/);
      expect(await policy(page).textContent()).toContain('# kept');
      await page.reload();
      await page.locator('body[data-ready="true"]').waitFor();
      await expectText(page.locator('.notice.bad'), /could not be opened/);
      expect(await policy(page).textContent()).toContain('# kept');
    }
  });
});

test('the keyboard alone reaches and does everything', async () => {
  const page = await open();
  const focused = (): Promise<string> =>
    page.evaluate(() => {
      const { document } = globalThis as unknown as { document: { activeElement: { id: string } | null } };
      return document.activeElement?.id ?? '';
    });
  const tabTo = async (id: string): Promise<void> => {
    for (let presses = 0; presses < 60 && (await focused()) !== id; presses++) await page.keyboard.press('Tab');
    expect(await focused()).toBe(id);
  };
  await tabTo('policy');
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(`${TIERS}default to tier "8B" by least_tokns`);
  await expectText(problems(page), /E0204/);
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('F8');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+.');
  await expectText(page.locator('#problem-count'), 'no problems');
  // Tab leaves the editor: it is no trap.
  await page.keyboard.press('Tab');
  await tabTo('request-tab');
  await page.keyboard.press('ArrowRight');
  expect(await focused()).toBe('fleet-tab');
  await page.getByLabel('queued_tokens of 8B/1').waitFor();
  await tabTo('decision-tab');
  await page.keyboard.press('End');
  expect(await focused()).toBe('tests-tab');
  expect(await page.locator('#tests').isVisible()).toBe(true);
});

test('every field has a name for those who cannot see it', async () => {
  const page = await open();
  for (const tab of ['Request', 'Fleet', 'Decision', 'As text']) {
    await page.getByRole('tab', { name: tab }).click();
    const snapshot = await page.locator('body').ariaSnapshot();
    expect(snapshot).not.toMatch(/^\s*- (button|textbox|combobox|checkbox|tab|link)(?: \[.*\])?:?\s*$/m);
  }
  await page.getByRole('textbox', { name: 'Policy', exact: true }).waitFor();
});

test('a policy that takes too long is stopped, the page says so, and the next one is decided', async () => {
  const rules = Array.from(
    { length: 14_000 },
    (_, i) => `route "r${i}" when words > ${i} and questions < ${i} to tier "8B"`,
  );
  const text = `${TIERS}${rules.join('\n')}\ndefault to tier "8B" by least_tokens`;
  const page = await open(`#${await writeFragment({ ...EMPTY_STATE, policy: text })}`);
  await expectText(page.locator('.notice.bad'), /took longer than 2 s and was stopped/);
  await write(page, policy(page), `${TIERS}default to tier "70B" by least_tokens`);
  await write(page, body(page), '{ "model": "auto", "messages": [{ "role": "user", "content": "Hello" }] }');
  await expectText(headline(page), /^70B\/1$/);
  await expectPoll(() => page.locator('.notice.bad').count()).toBe(0);
});

test('the compiler runs where code from strings is forbidden, and options are checked where it is not', async () => {
  const page = await open();
  await write(page, policy(page), `${TIERS}default to tier "8B" by least_latency(percentile: 200%)`);
  await expectText(problems(page), /error\[E05\d\d\]/);
  const makesCode = (worker: ReturnType<Page['workers']>[number]): Promise<string> =>
    // What a debugger evaluates may always make code; what a timer runs may do what the worker may.
    worker.evaluate(
      () =>
        new Promise<string>((resolve) => {
          setTimeout(() => {
            try {
              // oxlint-disable-next-line typescript/no-implied-eval -- it is what must fail
              resolve(String(new Function('return 1')()));
            } catch (error) {
              resolve((error as Error).name);
            }
          });
        }),
    );
  const workers = await Promise.all(
    page.workers().map(async (worker) => [worker.url(), await makesCode(worker)] as const),
  );
  const policyWorkers = workers.filter(([address]) => address.includes('policy-worker'));
  expect(policyWorkers.length).toBeGreaterThan(0);
  for (const [, outcome] of policyWorkers) expect(outcome).toBe('EvalError');
  for (const [, outcome] of workers.filter(([address]) => address.includes('option-worker'))) expect(outcome).toBe('1');
  expect(watched.requests.some((request) => request.includes('option-worker'))).toBe(true);
});

test('policy and fleet of the gateway are read with its token, and without one they are not', async () => {
  const cordoned = await fetch(`${bed.gateway.adminUrl}/-/endpoints/8B%2F1/cordon`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  expect(cordoned.status).toBe(200);
  const page = await open();
  await page.locator('#gateway').click();
  await page.locator('#token').fill(TOKEN);
  await page.getByRole('button', { name: 'Use it' }).click();
  await expectText(page.locator('.notice.good'), /are those of the gateway/);
  await expectText(policy(page), bed.engines[0]?.url ?? 'no engine');
  await page.getByRole('tab', { name: 'Fleet' }).click();
  await expectPoll(() => page.getByLabel('state of 8B/1').inputValue()).toBe('draining');
  await page.getByRole('tab', { name: 'Request' }).click();
  await write(page, body(page), '{ "model": "sim", "messages": [{ "role": "user", "content": "Hello" }] }');
  await expectText(headline(page), /^8B\/2$/);
  await page.getByRole('button', { name: 'Bring back what was here' }).click();
  await expectText(policy(page), /A tour of the language/);
  // Chromium notes the first answer, 401, in the console.
  const refused = watched.faults.findIndex((fault) => fault.includes('401'));
  expect(refused).toBeGreaterThanOrEqual(0);
  watched.faults.splice(refused, 1);
});

test('any static server can serve it from any folder, with no header of its own', async () => {
  const server = await startStaticServer();
  try {
    watched = await newPage();
    await opened(watched.page, server.url);
    await expectText(headline(watched.page), /^70B\/2$/);
    expect(await watched.page.locator('#gateway').isVisible()).toBe(false);
    expect(watched.requests.every((request) => request.startsWith(`GET ${server.url}`))).toBe(true);
  } finally {
    await server.close();
  }
});

test('a narrow screen has everything, one below the other, and nothing wider than it', async () => {
  watched = await newPage({ viewport: { width: 390, height: 844 } });
  await opened(watched.page, url);
  await expectText(headline(watched.page), /^70B\/2$/);
  const [wide, width] = await watched.page.evaluate(() => {
    const { document } = globalThis as unknown as {
      document: { documentElement: { scrollWidth: number; clientWidth: number } };
    };
    return [document.documentElement.scrollWidth, document.documentElement.clientWidth] as const;
  });
  expect(wide).toBeLessThanOrEqual(width);
});
