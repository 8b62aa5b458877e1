import { buildSemanticModel, completionsAt, compilePolicy, withAnalysis } from '../../../packages/policy/src/index.ts';
import type { CompileInput } from '../../../packages/policy/src/index.ts';
import { createLanguageHost } from '../../../packages/gateway/src/editor/language-host.ts';
import { startEditor } from '../../language-server/editor-client.ts';
import type { BenchPart, BenchReport, Suite } from '../report.ts';
import { longPolicy } from './long-policy.ts';

const LINES = [100, 1000] as const;
const COMPILE = 'compile, as the server and the command do';
const ROUND_TRIP = 'keystroke to findings, over the protocol';

const suite: Suite = {
  name: 'editor-keystroke',
  title: 'One keystroke in a policy: compiler, editor features, and the whole way through the language server',
  figures: [
    { key: 'cpuMs', label: 'CPU ms', digits: 1 },
    { key: 'ms', label: 'elapsed ms', digits: 1 },
  ],
  compared: 'ms',
  baselines: [],
  goals: [{ subject: ROUND_TRIP, case: '1,000 lines', figure: 'ms', atMost: 50 }],
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

interface Round {
  readonly name: string;
  readonly round: number;
  readonly times: number;
}

/** The median of some calls in this process, each on a text that has not been seen before. */
const inProcess = (
  report: BenchReport,
  where: string,
  subject: string,
  { round, times }: Round,
  work: (call: number) => void,
): void => {
  const elapsed: number[] = [];
  const cpu: number[] = [];
  for (let call = 0; call < times; call += 1) {
    const [start, used] = [performance.now(), process.cpuUsage()];
    work(call);
    const { user, system } = process.cpuUsage(used);
    elapsed.push(performance.now() - start);
    cpu.push((user + system) / 1000);
  }
  report.sample({
    suite: suite.name,
    case: where,
    subject,
    round,
    figures: { ms: median(elapsed), cpuMs: median(cpu) },
  });
};

/** From the last key of a word to the findings of the text with it, through a server process; pauses and transport included. */
const overProtocol = async (
  report: BenchReport,
  where: string,
  text: string,
  { round, times }: Round,
): Promise<void> => {
  const editor = await startEditor();
  try {
    editor.open('a.route', text);
    await editor.findings('a.route');
    const elapsed: number[] = [];
    for (let call = 0; call < times; call += 1) {
      const start = performance.now();
      editor.edit('a.route', { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }, '#');
      await editor.findings('a.route');
      elapsed.push(performance.now() - start);
      editor.edit('a.route', { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } }, '');
      await editor.findings('a.route');
    }
    report.sample({ suite: suite.name, case: where, subject: ROUND_TRIP, round, figures: { ms: median(elapsed) } });
  } finally {
    await editor.close();
  }
};

/** A policy of 100 and one of 1,000 lines: compile, model with references, completion, analysis, and a keystroke through the process. */
export const run: BenchPart = async (report, { rounds, smoke }) => {
  report.suite(suite);
  const host = createLanguageHost([]);
  for (const lines of smoke ? [100] : LINES) {
    const where = `${lines.toLocaleString('en')} lines`;
    const text = longPolicy(lines);
    const inputOf = (call: number): CompileInput => ({
      path: '/a.route',
      text: `${text}# ${call}\n`,
      manifests: host.manifests,
      checkOptions: host.checkOptions,
      unprovided: host.unprovided,
    });
    for (let warm = 0; warm < (smoke ? 1 : 20); warm += 1) withAnalysis(buildSemanticModel(inputOf(warm)).result);
    for (let round = 0; round < (smoke ? 1 : rounds); round += 1) {
      report.progress(`${where}, round ${round + 1}`);
      const one: Round = { name: where, round, times: smoke ? 2 : 15 };
      inProcess(report, where, COMPILE, one, (call) => void compilePolicy(inputOf(call)));
      inProcess(
        report,
        where,
        'compile, with all references',
        one,
        (call) => void buildSemanticModel(inputOf(call)).references('/a.route'),
      );
      const model = buildSemanticModel(inputOf(0));
      inProcess(
        report,
        where,
        'completion after `when`',
        one,
        () => void completionsAt(model, '/a.route', text.lastIndexOf(' when ') + 6),
      );
      const { result } = model;
      inProcess(report, where, 'analysis of conditions', one, () => void withAnalysis(result));
      await overProtocol(report, where, text, one);
    }
  }
};
