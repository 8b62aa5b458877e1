import { EXAMPLE_NAMES, EXAMPLES, FIRST_EXAMPLE } from '../playground/examples.ts';
import type { ExampleName } from '../playground/examples.ts';
import { readFragment, writeFragment } from '../playground/fragment.ts';
import type { Finding } from '../playground/findings.ts';
import type { Evaluation, PolicyOutline } from '../playground/policy-service.ts';
import { NoAnswer, WorkerClient } from '../playground/worker-client.ts';
import { DEFAULT_TIME, readState } from '../playground/state.ts';
import type { PlaygroundState } from '../playground/state.ts';
import { createBodyEditor } from './body-editor.ts';
import { drawDecision } from './decision-view.ts';
import { byId, element } from './dom.ts';
import { exampleState } from './examples.ts';
import { createFleetEditor } from './fleet-editor.ts';
import { offerGateway } from './gateway-link.ts';
import { createNotices } from './notices.ts';
import { createPolicyEditor } from './policy-editor.ts';
import { setUpTabs } from './tabs.ts';
import { drawProblems, drawTests } from './tests-view.ts';

/** File name of the worker that compiles and decides; the build fills it in. */
declare const POLICY_WORKER: string;

/** Milliseconds that a decision, and all tests together, may take. */
const DECISION_LIMIT_MS = 2000;
const TESTS_LIMIT_MS = 5000;
/** Quiet time after the last edit before analysis and tests run. */
const TESTS_DELAY_MS = 400;
const DRAFT_KEY = 'signalbox.playground.draft';

const scheduler = {
  setTimer(delayMs: number, run: () => void): () => void {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
const client = (limitMs: number): WorkerClient =>
  new WorkerClient({ start: () => new Worker(new URL(POLICY_WORKER, document.baseURI)), scheduler, limitMs });

async function start(): Promise<void> {
  const decisions = client(DECISION_LIMIT_MS);
  const trials = client(TESTS_LIMIT_MS);
  const notices = createNotices(byId('notices', HTMLElement));
  let state = readDraft() ?? exampleState(FIRST_EXAMPLE);
  const fragment = await readFragment(location.hash);
  if (fragment.kind === 'state') state = fragment.state;
  if (fragment.kind === 'unreadable') notices.say(fragment.message, 'bad');

  const problems = byId('problems', HTMLElement);
  const problemCount = byId('problem-count', HTMLElement);
  const decision = byId('decision', HTMLElement);
  const asText = byId('decision-text', HTMLElement);
  const tests = byId('tests', HTMLElement);
  const testCount = byId('test-count', HTMLElement);
  const headers = byId('headers', HTMLTextAreaElement);
  const time = byId('time', HTMLInputElement);
  const tenant = byId('tenant', HTMLSelectElement);
  const requestProblem = byId('request-problem', HTMLElement);
  const examples = byId('examples', HTMLSelectElement);
  const properties = await decisions.call('properties');

  const policyEditor = createPolicyEditor({
    host: byId('policy', HTMLElement),
    text: state.policy,
    onText: (policy) => change({ policy }),
    onFormat: () => void format(),
    complete: (place) => decisions.call('complete', place),
    hover: (place) => decisions.call('hover', place),
  });
  const bodyEditor = createBodyEditor(byId('body', HTMLElement), state.body, (body) => change({ body }));
  const fleetEditor = createFleetEditor(byId('fleet', HTMLElement), properties, (fleet) => change({ fleet }));

  let outline: PolicyOutline = { tiers: [], tenants: [], reads: [], rules: [] };
  let cancelTests: (() => void) | undefined;
  /** What analysis adds, of one text. */
  let analysed: { readonly policy: string; readonly findings: readonly Finding[] } | undefined;

  function change(part: Partial<PlaygroundState>): void {
    const before = state;
    state = { ...state, ...part };
    keepDraft(state);
    void decide();
    if (before.policy !== state.policy || before.time !== state.time) {
      cancelTests?.();
      cancelTests = scheduler.setTimer(TESTS_DELAY_MS, () => void runTests());
    }
  }

  /** Shows another state in every field, and offers the one before back. */
  function open(next: PlaygroundState, said?: string): void {
    const before = state;
    state = next;
    policyEditor.setText(next.policy);
    bodyEditor.setText(next.body);
    showFields();
    change({ ...next });
    if (said !== undefined && JSON.stringify(before) !== JSON.stringify(next))
      notices.say(said, 'good', { name: 'Bring back what was here', run: () => open(before) });
    void runTests();
  }

  function showFields(): void {
    headers.value = state.headers;
    time.value = state.time;
    tenant.replaceChildren(
      ...['', ...new Set([...outline.tenants, ...(state.tenant === '' ? [] : [state.tenant])])].map((name) =>
        element('option', { value: name, textContent: name === '' ? 'none' : name, selected: name === state.tenant }),
      ),
    );
    byId('tenant-field', HTMLElement).hidden = outline.tenants.length === 0 && state.tenant === '';
    fleetEditor.show(state.fleet, outline.tiers, outline.reads);
  }

  async function decide(): Promise<void> {
    const asked = state;
    document.body.dataset['busy'] = 'true';
    try {
      const evaluation = await decisions.call('evaluate', asked);
      notices.settle('worker');
      show(asked, evaluation);
    } catch (error) {
      if (!(error instanceof NoAnswer) || error.reason === 'superseded') return;
      decision.dataset['stale'] = 'true';
      notices.keep(
        'worker',
        `No decision: ${error.message}. The compiler was started afresh; change the policy or the request to try again.`,
      );
    }
    document.body.dataset['busy'] = 'false';
  }

  function show(asked: PlaygroundState, evaluation: Evaluation): void {
    if (asked.policy === state.policy) {
      const findings = analysed?.policy === asked.policy ? analysed.findings : evaluation.findings;
      showFindings(asked.policy, findings, evaluation);
    }
    if (evaluation.outline !== undefined) outline = evaluation.outline;
    showFields();
    fleetEditor.showProblems(evaluation.cellProblems);
    const problem = evaluation.requestProblem;
    bodyEditor.show(problem);
    requestProblem.textContent = problem?.message ?? '';
    headers.setAttribute('aria-invalid', String(problem?.field === 'headers'));
    decision.replaceChildren(...drawDecision(evaluation, (rule) => policyEditor.reveal(rule)));
    decision.dataset['stale'] = 'false';
    asText.textContent =
      evaluation.decision?.kind === 'explained' ? evaluation.decision.text : (decision.textContent ?? '');
  }

  function showFindings(text: string, findings: readonly Finding[], evaluation?: Evaluation): void {
    policyEditor.show(text, findings, evaluation?.marks);
    problems.replaceChildren(
      ...drawProblems(findings, {
        reveal: (finding) => policyEditor.reveal(finding),
        fix: (finding) => policyEditor.fix(finding),
      }),
    );
    problemCount.textContent = countText(findings);
    problemCount.className = findings.some(({ severity }) => severity === 'error')
      ? 'bad'
      : findings.length > 0
        ? 'warn'
        : 'good';
  }

  async function runTests(): Promise<void> {
    const { policy, time: at } = state;
    tests.dataset['stale'] = 'true';
    try {
      const trial = await trials.call('tryOut', { policy, time: at });
      if (policy !== state.policy) return;
      analysed = { policy, findings: trial.findings };
      showFindings(policy, trial.findings);
      tests.replaceChildren(...drawTests(trial, (range) => policyEditor.reveal(range)));
      const { report } = trial;
      const all =
        report === undefined
          ? []
          : [
              ...report.tests.map(({ passed }) => passed),
              ...report.ensures.map(({ verdict }) => verdict !== 'refuted'),
            ];
      const failed = all.filter((passed) => !passed).length;
      testCount.textContent = all.length === 0 ? '' : failed === 0 ? `${all.length} ✓` : `${failed} ✗`;
      testCount.className = `count ${failed === 0 ? 'good' : 'bad'}`;
    } catch (error) {
      if (!(error instanceof NoAnswer) || error.reason === 'superseded') return;
      tests.replaceChildren(
        element('p', { className: 'empty', textContent: `The tests did not finish: ${error.message}.` }),
      );
      testCount.textContent = '';
    }
    tests.dataset['stale'] = 'false';
  }

  async function format(): Promise<void> {
    const { policy } = state;
    const laidOut = await decisions.call('format', policy).catch(() => policy);
    if (policy === state.policy) policyEditor.setText(laidOut);
  }

  async function openFragment(): Promise<void> {
    const read = await readFragment(location.hash);
    if (read.kind === 'state') open(read.state, 'Opened a shared link.');
    if (read.kind === 'unreadable') notices.say(read.message, 'bad');
  }

  async function share(): Promise<void> {
    const written = await writeFragment(state);
    history.replaceState(null, '', `#${written}`);
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    notices.say(
      copied === true
        ? 'The link is copied. It holds the policy, the request and the fleet; nothing was sent anywhere.'
        : 'The link is in the address bar. It holds the policy, the request and the fleet; nothing was sent anywhere.',
      'good',
    );
  }

  examples.append(
    ...EXAMPLE_NAMES.map((name) => element('option', { value: name, textContent: EXAMPLES[name].title })),
  );
  examples.addEventListener('change', () => {
    const name = EXAMPLE_NAMES.find((known): known is ExampleName => known === examples.value);
    examples.value = '';
    if (name !== undefined) open(exampleState(name), `Opened the example “${EXAMPLES[name].title}”.`);
  });
  headers.addEventListener('input', () => change({ headers: headers.value }));
  time.addEventListener('input', () => change({ time: time.value === '' ? DEFAULT_TIME : time.value }));
  tenant.addEventListener('change', () => change({ tenant: tenant.value }));
  byId('format', HTMLButtonElement).addEventListener('click', () => void format());
  byId('share', HTMLButtonElement).addEventListener('click', () => void share());
  window.addEventListener('hashchange', () => {
    void openFragment();
  });
  setUpTabs(byId('inputs', HTMLElement));
  setUpTabs(byId('results', HTMLElement));
  showFields();
  await Promise.all([decide(), runTests()]);
  document.body.dataset['ready'] = 'true';
  await offerGateway({
    button: byId('gateway', HTMLButtonElement),
    notices,
    load: ({ text, imports }, fleet) =>
      open(
        { ...state, policy: text, fleet },
        imports.length === 0
          ? 'Policy and fleet are those of the gateway.'
          : `Policy and fleet are those of the gateway. What the policy imports is not here: ${imports.join(', ')}.`,
      ),
  });
}

function countText(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'no problems';
  return (['error', 'warning', 'note'] as const)
    .map((severity) => [findings.filter((one) => one.severity === severity).length, severity] as const)
    .filter(([count]) => count > 0)
    .map(([count, severity]) => `${count} ${severity}${count === 1 ? '' : 's'}`)
    .join(', ');
}

/** The draft lives as long as the tab, and only in it. */
function readDraft(): PlaygroundState | undefined {
  try {
    return readState(JSON.parse(sessionStorage.getItem(DRAFT_KEY) ?? 'null'));
  } catch {
    return undefined;
  }
}

function keepDraft(state: PlaygroundState): void {
  try {
    sessionStorage.setItem(DRAFT_KEY, JSON.stringify(state));
  } catch {
    // A browser without storage, or a draft too large for it: the page works all the same.
  }
}

void start();
