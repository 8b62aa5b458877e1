import { createLineIndex } from '@signalbox/policy';
import type { RunReport } from './run-files.ts';
import { failedTestText, refutedEnsureText } from './report-text.ts';

/**
 * A run as JUnit XML, as CI servers read it: a suite for each file, a case for each test and ensure. An ensure that is not proved passes, and
 * says so in its output; a policy with errors is a case that is in error.
 */
export function junitXml({ files, sources, unreadable }: RunReport): string {
  const suites = files.map((file) => {
    const suite = file.path;
    const tests = file.tests.map((test) => {
      const failed = failedTestText(test, sources, { colour: false });
      const message = test.unmet.map(({ expected, actual }) => `expected ${expected}, got ${actual}`).join('; ');
      return caseXml(suite, test, failed === '' ? '' : problemXml('failure', message || (test.error ?? ''), failed));
    });
    const ensures = file.ensures.map((ensure) => {
      const refuted = refutedEnsureText(ensure, sources, { colour: false });
      const note = `not proved, ${ensure.tried} requests tried${ensure.reason === undefined ? '' : `: ${ensure.reason}`}`;
      const inside =
        refuted !== ''
          ? problemXml('failure', `refuted: ${ensure.claim}`, refuted)
          : ensure.verdict === 'proved'
            ? ''
            : `<system-out>${text(note)}</system-out>`;
      return caseXml(suite, ensure, inside);
    });
    const errors = (file.broken?.diagnostics ?? []).filter(({ severity }) => severity === 'error');
    const broken =
      file.broken === undefined
        ? []
        : [
            caseXml(
              suite,
              { label: 'compiles', durationMs: 0 },
              problemXml(
                'error',
                `${errors.length} errors`,
                errors.map((one) => `${placeOf(one.span, sources)} ${one.code} ${one.message}`).join('\n'),
              ),
            ),
          ];
    return suiteXml(suite, [...tests, ...ensures, ...broken], [...file.tests, ...file.ensures]);
  });
  const unread = unreadable.map((message) =>
    suiteXml(
      'files',
      [caseXml('files', { label: 'can be read', durationMs: 0 }, problemXml('error', message, message))],
      [],
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="signalbox">\n${[...suites, ...unread].join('')}</testsuites>\n`;
}

interface Timed {
  readonly durationMs: number;
}

function suiteXml(name: string, cases: readonly string[], timed: readonly Timed[]): string {
  const failures = cases.filter((one) => one.includes('<failure ')).length;
  const errors = cases.filter((one) => one.includes('<error ')).length;
  const timeMs = timed.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const counts = `tests="${cases.length}" failures="${failures}" errors="${errors}" skipped="0" time="${seconds(timeMs)}"`;
  return `  <testsuite name="${attribute(name)}" ${counts}>\n${cases.join('')}  </testsuite>\n`;
}

function caseXml(suite: string, { label, durationMs }: Timed & { readonly label: string }, inside: string): string {
  const head = `    <testcase name="${attribute(label)}" classname="${attribute(suite)}" time="${seconds(durationMs)}"`;
  return inside === '' ? `${head}/>\n` : `${head}>\n      ${inside}\n    </testcase>\n`;
}

function problemXml(kind: 'failure' | 'error', message: string, details: string): string {
  return `<${kind} message="${attribute(message)}" type="${kind}">${text(details)}</${kind}>`;
}

function placeOf(span: { readonly file: string; readonly start: number }, sources: RunReport['sources']): string {
  const { line, column } = createLineIndex(sources.get(span.file) ?? '').positionAt(span.start);
  return `${span.file}:${line}:${column}`;
}

const seconds = (ms: number): string => (Math.max(0, ms) / 1000).toFixed(3);

/** Text as XML 1.0 may hold it: what it cannot hold at all is shown as U+FFFD. */
function text(raw: string): string {
  return raw
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}

function attribute(raw: string): string {
  return text(raw)
    .replaceAll('"', '&quot;')
    .replaceAll('\n', '&#10;')
    .replaceAll('\r', '&#13;')
    .replaceAll('\t', '&#9;');
}
