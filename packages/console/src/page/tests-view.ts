import type { Finding } from '../playground/findings.ts';
import type { PolicyTrial } from '../playground/policy-service.ts';
import { element, inlineMarks } from './dom.ts';

/** Draws the outcome of the policy's own tests and ensures. `onReveal` shows a place of the policy. */
export function drawTests(
  trial: PolicyTrial,
  onReveal: (offsets: { readonly from: number; readonly to: number }) => void,
): Node[] {
  const { report, findings } = trial;
  if (report === undefined) {
    const hasErrors = findings.some(({ severity }) => severity === 'error');
    const text = hasErrors
      ? 'Tests run as soon as the policy has no errors.'
      : 'This policy has no tests. Write one: test "what it shows" { given complexity = 72 expect route "hard" }';
    return [element('p', { className: 'empty', textContent: text })];
  }
  const row = (
    state: 'passed' | 'failed' | 'open',
    name: string,
    span: { readonly start: number; readonly end: number },
    ...details: readonly string[]
  ): HTMLElement => {
    const go = element('button', { type: 'button', className: 'name', title: 'Show in the policy', textContent: name });
    go.addEventListener('click', () => onReveal({ from: span.start, to: span.end }));
    const said = { passed: 'passed', failed: 'failed', open: 'not proved' }[state];
    return element(
      'li',
      { className: state },
      element('span', { className: 'mark', attributes: { role: 'img', 'aria-label': said }, title: said }),
      go,
      ...details
        .filter((text) => text !== '')
        .map((text) => element('p', { className: 'detail' }, ...inlineMarks(text))),
    );
  };
  const { tests, ensures, totals } = report;
  return [
    element(
      'ul',
      { className: 'tests' },
      ...tests.map(({ label, span, passed, unmet, error }) =>
        row(
          passed ? 'passed' : 'failed',
          label,
          span,
          ...unmet.map(({ expected, actual }) => `expected ${expected}; got ${actual}`),
          error ?? '',
        ),
      ),
      ...ensures.map(({ label, span, verdict, claim, witness, reason }) =>
        row(
          verdict === 'proved' ? 'passed' : verdict === 'refuted' ? 'failed' : 'open',
          label,
          span,
          verdict === 'proved' ? `${claim}: proved for every request` : '',
          verdict === 'refuted' ? `${claim}: refuted${witness === undefined ? '' : ` by ${witness}`}` : '',
          verdict === 'not_proved' ? `${claim}: not proved${reason === undefined ? '' : `, ${reason}`}` : '',
        ),
      ),
    ),
    element('p', {
      className: 'note',
      textContent: `Coverage ${totals.percent.toFixed(0)} %: ${totals.rules.covered} of ${totals.rules.total} rules matched, ${totals.outcomes.covered} of ${totals.outcomes.total} outcomes of comparisons seen.`,
    }),
  ];
}

export interface ProblemActions {
  readonly reveal: (finding: Finding) => void;
  readonly fix: (finding: Finding) => void;
}

/** The list of findings under the editor: the same text and codes as on the command line. */
export function drawProblems(findings: readonly Finding[], { reveal, fix }: ProblemActions): Node[] {
  return findings.map((finding) => {
    const { severity, code, message, help, line, column, fix: proposed } = finding;
    const go = element(
      'button',
      { type: 'button', className: 'finding' },
      element('span', { className: 'place', textContent: `${line}:${column}` }),
      element('span', { className: 'code', textContent: `${severity}[${code}]` }),
      element('span', {}, ...inlineMarks(message)),
    );
    go.addEventListener('click', () => reveal(finding));
    const repair = element(
      'button',
      { type: 'button', className: 'fix' },
      'Fix: ',
      ...inlineMarks(proposed?.message ?? ''),
    );
    repair.addEventListener('click', () => fix(finding));
    return element(
      'li',
      { className: severity },
      go,
      help === undefined ? undefined : element('p', { className: 'help' }, ...inlineMarks(help)),
      proposed === undefined ? undefined : repair,
    );
  });
}
