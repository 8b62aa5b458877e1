import { explanationText, missingOutcomes } from '@signalbox/core';
import type { Coverage, EnsureResult, LeafCoverage, Share, TestResult } from '@signalbox/core';
import { renderPlaces } from '@signalbox/policy';
import type { DiagnosticLabel, Sources } from '@signalbox/policy';
import type { RunReport } from './run-files.ts';

export interface TextOptions {
  readonly colour: boolean;
}

type Paint = (style: keyof typeof ANSI, text: string) => string;

const ANSI = { green: '32', red: '31', yellow: '33', grey: '90', bold: '1' } as const;

const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    colour ? `\u001b[${ANSI[style]}m${text}\u001b[0m` : text;

/** A failed test as people read it: the place, what was expected and what came of it, and why, rule by rule. Empty for one that passed. */
export function failedTestText(test: TestResult, sources: Sources, { colour }: TextOptions): string {
  if (test.passed) return '';
  const paint = painter(colour);
  const places: readonly DiagnosticLabel[] =
    test.unmet.length === 0
      ? [{ span: test.span, message: shown(test.error ?? '') }]
      : test.unmet.map(({ span }) => ({ span, message: '' }));
  const lines = test.unmet.flatMap(({ expected, actual }) => [
    `    ${paint('green', 'expected')}  ${shown(expected)}`,
    `    ${paint('red', 'actual')}    ${shown(actual)}`,
  ]);
  const place = indented(renderPlaces(places, sources, { color: colour }));
  const why =
    test.explanation === undefined ? '' : `\n${indented(explanationText(test.explanation, { colour }), '    ')}`;
  return `${paint('red', '✗')} ${paint('bold', shown(test.label))}\n${place}${lines.map((line) => `${line}\n`).join('')}${why}`;
}

/** A refuted ensure, with the request that shows it. Empty for one that is not refuted. */
export function refutedEnsureText(ensure: EnsureResult, sources: Sources, { colour }: TextOptions): string {
  if (ensure.verdict !== 'refuted') return '';
  const paint = painter(colour);
  const witness = (ensure.witness ?? '').split('\n').map((line) => `      ${shown(line)}`);
  const why =
    ensure.explanation === undefined ? '' : `\n${indented(explanationText(ensure.explanation, { colour }), '    ')}`;
  return [
    `${paint('red', '✗')} ${paint('bold', shown(ensure.label))}`,
    indented(renderPlaces([{ span: ensure.span, message: '' }], sources, { color: colour })).trimEnd(),
    `    ${paint('green', 'claimed')}   ${shown(ensure.claim)}`,
    ...(ensure.reason === undefined
      ? []
      : [`    ${paint('red', 'but')}       a request may be ${shown(ensure.reason)}`]),
    `    ${paint('red', 'for example')}`,
    ...witness,
  ]
    .map((line) => `${line}\n`)
    .join('')
    .concat(why);
}

/** A whole run as people read it. */
export function reportText(report: RunReport, options: TextOptions & { readonly coverage: boolean }): string {
  const paint = painter(options.colour);
  const { sources } = report;
  const blocks = report.files.flatMap((file) => [
    ...file.tests.map((test) => failedTestText(test, sources, options)),
    ...file.ensures.map((ensure) => refutedEnsureText(ensure, sources, options)),
  ]);
  const failures = blocks.filter((block) => block !== '').join('\n');
  const rows = report.files
    .filter(({ tests, ensures }) => tests.length + ensures.length > 0)
    .flatMap((file) => [
      paint('bold', file.path),
      ...file.tests.map(({ label, passed }) => `  ${mark(passed, paint)} ${shown(label)}`),
      ...file.ensures.map((ensure) => `  ${ensureRow(ensure, paint)}`),
    ]);
  const parts = [
    rows.map((row) => `${row}\n`).join(''),
    failures,
    options.coverage ? coverageText(report.coverage, sources, options) : '',
    summary(report, paint),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function mark(passed: boolean, paint: Paint): string {
  return passed ? paint('green', '✓') : paint('red', '✗');
}

function ensureRow({ label: written, verdict, reason, tried }: EnsureResult, paint: Paint): string {
  const label = shown(written);
  if (verdict === 'proved') return `${paint('green', '✓')} ${label} ${paint('grey', '(proved)')}`;
  if (verdict === 'refuted') return `${paint('red', '✗')} ${label}`;
  const why = reason === undefined ? '' : `: ${shown(reason)}`;
  return `${paint('yellow', '?')} ${label} ${paint('grey', `(not proved, ${tried} ${tried === 1 ? 'request' : 'requests'} tried${why})`)}`;
}

function summary({ counts, totals, files }: RunReport, paint: Paint): string {
  const { tests, failed, ensures, proved, refuted, notProved } = counts;
  const broken = files.filter((file) => file.broken !== undefined).length;
  const parts = [
    ...(broken === 0 ? [] : [paint('red', `${broken} ${broken === 1 ? 'policy has' : 'policies have'} errors`)]),
    ...(failed === 0 ? [] : [paint('red', `${failed} failed`)]),
    paint(failed === 0 ? 'green' : 'bold', `${tests - failed} passed`),
    ...(ensures === 0
      ? []
      : [
          [
            ...(proved === 0 ? [] : [`${proved} proved`]),
            ...(refuted === 0 ? [] : [paint('red', `${refuted} refuted`)]),
            ...(notProved === 0 ? [] : [`${notProved} not proved`]),
          ].join(', '),
        ]),
  ];
  const { rules, elses, outcomes, percent } = totals;
  const covered = `coverage ${shownPercent(percent)}: rules ${share(rules)}, else parts ${share(elses)}, outcomes of conditions ${share(outcomes)}`;
  return `${parts.join(', ')}\n${covered}\n`;
}

/** Rounded down, so that 100 % is all. */
export function shownPercent(percent: number): string {
  return `${String(Math.floor(percent * 10) / 10)} %`;
}

const share = ({ covered, total }: Share): string => `${covered}/${total}`;

/** What tests have not shown: rules that took no request, `else` parts that were not come to, and outcomes of conditions, each at its place. */
export function coverageText(coverage: Coverage, sources: Sources, { colour }: TextOptions): string {
  const paint = painter(colour);
  const missing = uncovered(coverage);
  if (missing.length === 0) return `${paint('green', 'every rule, else part and outcome of a condition is covered')}\n`;
  return `${paint('bold', 'not covered')}\n${renderPlaces(missing, sources, { color: colour })}`;
}

function uncovered({ rules, leaves }: Coverage): readonly DiagnosticLabel[] {
  const places = [
    ...rules.flatMap((rule) => [
      ...(rule.matched > 0 ? [] : [{ span: rule.span, message: rule.reached > 0 ? 'never matched' : 'never reached' }]),
      ...rule.elses.flatMap(({ span, reached }) => (reached > 0 ? [] : [{ span, message: 'never reached' }])),
    ]),
    ...leaves.flatMap((leaf) => {
      const outcomes = missingOutcomes(leaf);
      return outcomes.length === 0 ? [] : [{ span: leaf.span, message: neverText(leaf, outcomes) }];
    }),
  ];
  return places.toSorted((a, b) =>
    a.span.file === b.span.file ? a.span.start - b.span.start : a.span.file < b.span.file ? -1 : 1,
  );
}

function neverText(leaf: LeafCoverage, outcomes: readonly string[]): string {
  const evaluated = leaf.true + leaf.false + leaf.unknown > 0;
  return evaluated ? `never ${outcomes.join(', never ')}` : 'never evaluated';
}

function indented(text: string, by = '  '): string {
  return text.replaceAll(/^(?=.)/gm, by);
}

/** Text of a policy as a terminal may get it: control characters are shown as U+FFFD. */
function shown(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\uFFFD');
}
