import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { renderText } from '@signalbox/policy';
import type { Command, CommandInput, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import { createPolicyWatcher } from '../policy/policy-watcher.ts';
import { junitXml } from '../policy-tests/junit.ts';
import { lcovText } from '../policy-tests/lcov.ts';
import { createProgress } from '../policy-tests/progress.ts';
import { reportJson } from '../policy-tests/report-json.ts';
import { reportText, shownPercent } from '../policy-tests/report-text.ts';
import { runTestFiles } from '../policy-tests/run-files.ts';
import type { RunReport } from '../policy-tests/run-files.ts';
import { findTestFiles, listTestFiles } from '../policy-tests/test-files.ts';
import { systemClock } from '../system-time.ts';
import type { PluginChoice } from '../plugins/plugin-options.ts';
import { PLUGIN_OPTIONS, readPluginChoice } from '../plugins/plugin-options.ts';

const REQUESTS = 1000;
const MOST_REQUESTS = 1_000_000;
/** How often a watch looks for files that have come or gone, in milliseconds. */
const LOOK_MS = 1000;

export const testCommand: Command = {
  name: 'test',
  summary: 'run the tests of a policy, and tell what they do not cover',
  arguments: '[FILE|FOLDER …]',
  arity: [0, Infinity],
  help: `
Runs every test and ensure of the policies named: those in a policy, those in the *.test.route files beside it that import it; of a folder (the
current one by default) all below it. Each test has a gateway core of its own with the signals, endpoints and time that it gives, decided by
the same code as in production. A test that fails shows what was expected, what came of it, and why, rule by rule.

  signalbox test policy.route
  signalbox test policies --filter canary --watch
  signalbox test --junit report.xml --lcov lcov.info --fail-under 90

Coverage counts, each once: every rule (it took a request), every else part (it was come to), and every comparison in a when or where (true,
false, and unknown where a request can lack what it reads). --fail-under is held against the share of all of these.

Exit code 0: all passed. 1: a test failed, an ensure is refuted, a policy has errors, nothing was found to run, or too little is covered. 2: wrong usage.`,
  options: {
    filter: { type: 'string', value: 'TEXT', help: 'only tests and ensures whose name contains this' },
    watch: { type: 'boolean', help: 'run again whenever a file changes, comes or goes, until Ctrl-C' },
    coverage: { type: 'boolean', help: 'show every place that is not covered' },
    'fail-under': { type: 'string', value: 'PERCENT', help: 'exit 1 if less than this is covered' },
    json: { type: 'boolean', help: 'the report as JSON' },
    junit: { type: 'string', value: 'FILE', help: 'write the report as JUnit XML as well' },
    lcov: { type: 'string', value: 'FILE', help: 'write the coverage as an lcov tracefile as well' },
    requests: {
      type: 'string',
      value: 'NUMBER',
      help: `requests to try for each ensure that is not proved; ${REQUESTS} by default`,
    },
    ...PLUGIN_OPTIONS,
  },
  async run(input, terminal) {
    const settings = readSettings(input);
    if (!settings.watch) return (await runOnce(settings, terminal)).code;
    return watchTests(settings, terminal);
  },
};

interface Settings extends PluginChoice {
  readonly paths: readonly string[];
  readonly filter: string;
  readonly watch: boolean;
  readonly coverage: boolean;
  /** Percent. */
  readonly failUnder: number;
  readonly json: boolean;
  readonly junit: string | undefined;
  readonly lcov: string | undefined;
  readonly requests: number;
}

function readSettings(input: CommandInput): Settings {
  return {
    paths: input.positionals.length === 0 ? ['.'] : input.positionals,
    filter: input.text('filter') ?? '',
    watch: input.flag('watch'),
    coverage: input.flag('coverage'),
    failUnder: readNumber(input, 'fail-under', 0, 100, 'a number of percent from 0 to 100'),
    json: input.flag('json'),
    junit: input.text('junit'),
    lcov: input.text('lcov'),
    requests: readNumber(input, 'requests', REQUESTS, MOST_REQUESTS, `a number from 0 to ${MOST_REQUESTS}`),
    ...readPluginChoice(input),
  };
}

function readNumber(input: CommandInput, option: string, otherwise: number, most: number, expected: string): number {
  const written = input.text(option);
  if (written === undefined) return otherwise;
  const number = Number(written.replace(/%$/, ''));
  if (!/^\d+(\.\d+)?%?$/.test(written) || !(number <= most))
    throw new UsageError(`--${option} must be ${expected}, got "${written}"`);
  return number;
}

interface Run {
  readonly code: number;
  /** What was read, for a watcher. */
  readonly texts: ReadonlyMap<string, string | undefined>;
}

async function runOnce(settings: Settings, terminal: Terminal): Promise<Run> {
  const loader = createPolicyLoader({ cwd: terminal.cwd, allowPlugins: settings.allowPlugins });
  const found = findTestFiles(settings.paths, terminal.cwd, loader);
  const progress = createProgress(
    (text) => terminal.err(text),
    () => systemClock.now(),
  );
  const report = await runTestFiles({
    found,
    filter: settings.filter,
    requests: settings.requests,
    isolation: settings.isolation,
    now: () => systemClock.now(),
    onResult: progress,
  });
  writeReports(settings, terminal, report);
  const problems = problemsOf(settings, terminal, report);
  if (settings.json) terminal.out(reportJson(report));
  else if (report.counts.tests + report.counts.ensures > 0)
    terminal.out(
      reportText(report, { colour: terminal.colour, coverage: settings.coverage || tooLittle(settings, report) }),
    );
  for (const problem of problems) terminal.err(problem);
  return { code: report.passed && problems.length === 0 ? EXIT_OK : EXIT_FAILED, texts: found.texts };
}

function writeReports(settings: Settings, terminal: Terminal, report: RunReport): void {
  if (settings.junit !== undefined) writeFileSync(resolve(terminal.cwd, settings.junit), junitXml(report));
  if (settings.lcov !== undefined) writeFileSync(resolve(terminal.cwd, settings.lcov), lcovText(report.coverage));
}

const tooLittle = ({ failUnder }: Settings, { totals }: RunReport): boolean => totals.percent < failUnder;

/** What is wrong beside tests that fail, as people read it. */
function problemsOf(settings: Settings, terminal: Terminal, report: RunReport): readonly string[] {
  const broken = report.files.flatMap((file) => file.broken ?? []);
  const none =
    report.counts.tests + report.counts.ensures === 0 && broken.length === 0 && report.unreadable.length === 0;
  return [
    ...report.unreadable.map((message) => `signalbox test: ${message}\n`),
    ...broken.map(({ diagnostics, sources }) =>
      renderText(
        diagnostics.filter(({ severity }) => severity === 'error'),
        sources,
        { color: terminal.colour },
      ),
    ),
    ...(none ? [noTestsText(settings, report)] : []),
    ...(!none && tooLittle(settings, report)
      ? [
          `signalbox test: ${shownPercent(report.totals.percent)} is covered, and --fail-under asks for ${settings.failUnder} %\n`,
        ]
      : []),
  ];
}

function noTestsText({ filter, paths }: Settings, { files }: RunReport): string {
  const where = paths.join(', ');
  if (files.length === 0)
    return `signalbox test: there is no .route file in ${where}. Name a policy, or a folder that has one.\n`;
  if (filter !== '')
    return `signalbox test: no test or ensure in ${where} has ${JSON.stringify(filter)} in its name. Names are what stands in quotes after \`test\`.\n`;
  return `signalbox test: there are no tests in ${where}. Write one in the policy, or in a file beside it that ends in .test.route and imports it:

  test "a hard prompt goes to the large model" {
    given complexity = 72
    expect route "hard" to tier "70B"
  }
`;
}

/** Runs whenever something that was read has changed, until a signal ends it. */
async function watchTests(settings: Settings, terminal: Terminal): Promise<number> {
  let code = EXIT_OK;
  let changed: () => void = () => {};
  const watcher = createPolicyWatcher({ onChange: () => changed() });
  let listed = '';
  const list = (): string => {
    try {
      return listTestFiles(settings.paths, terminal.cwd).join('\n');
    } catch {
      // The run that follows says what cannot be read.
      return 'unreadable';
    }
  };
  // Sees files that have come or gone, and keeps the process, which the watcher alone would let end.
  const looking = setInterval(() => {
    if (list() !== listed) changed();
  }, LOOK_MS);
  const stopped = new Promise<'stopped'>((settle) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => settle('stopped'));
  });
  try {
    for (;;) {
      const change = new Promise<'changed'>((settle) => (changed = () => settle('changed')));
      listed = list();
      const run = await runOnce(settings, terminal);
      code = run.code;
      watcher.follow([...run.texts.keys()], run.texts);
      const files = `${run.texts.size} ${run.texts.size === 1 ? 'file' : 'files'}`;
      terminal.err(`watching ${files}; Ctrl-C ends it\n`);
      if ((await Promise.race([stopped, change])) === 'stopped') return code;
    }
  } finally {
    clearInterval(looking);
    watcher.close();
  }
}
