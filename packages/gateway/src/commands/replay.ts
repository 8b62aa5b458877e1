import { createReplayer } from '@signalbox/core';
import type { Command } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { loadWithPlugins } from '../policy/load-with-plugins.ts';
import { auditLines } from '../replay/audit-lines.ts';
import { createReplayCollector } from '../replay/replay-report.ts';
import { replayReportText } from '../replay/report-text.ts';
import { readTimeBound } from '../replay/time-bound.ts';
import { PLUGIN_OPTIONS, readPluginChoice } from '../plugins/plugin-options.ts';

/** After so many lines progress is told. */
const PROGRESS_LINES = 10_000;

export const replayCommand: Command = {
  name: 'replay',
  summary: 'which recorded requests another policy would send elsewhere',
  arguments: 'AUDIT [AUDIT …]',
  arity: [1, Number.POSITIVE_INFINITY],
  help: `
Decides the requests of audit files again under another policy, by what was recorded of them, and says how many move: by tier, and by rule and tier, with requests to look at.
What was not recorded is not guessed at: such requests are counted as not decidable, with what is missing. On the version that made them, decisions come out as they were.
Files are read as streams, one after another, .gz too; - is standard input. Lines that cannot be read are counted and named.
Exit code 1: the policy has errors, more moved than --max-moved allows, or a decision that this very version made came out otherwise.

  signalbox replay audit.ndjson --policy new.route
  signalbox replay audit.ndjson.2.gz audit.ndjson.1 audit.ndjson --policy new.route --since 24h --max-moved 5`,
  options: {
    policy: { type: 'string', value: 'FILE', help: 'the policy to decide by' },
    since: {
      type: 'string',
      value: 'TIME',
      help: 'only requests from then on: 2026-11-30T08:00:00Z, or 12h for so long ago',
    },
    until: { type: 'string', value: 'TIME', help: 'only requests before then' },
    'max-moved': {
      type: 'string',
      value: 'PERCENT',
      help: 'exit code 1 if a larger share moves to another tier, is refused or queued otherwise',
    },
    json: { type: 'boolean', help: 'the report as JSON' },
    ...PLUGIN_OPTIONS,
  },
  async run(input, terminal) {
    const policyPath = input.text('policy');
    if (policyPath === undefined) throw new UsageError('--policy FILE is needed: the policy to decide by');
    const now = Date.now();
    const bound = (option: string, otherwise: number): number => {
      const text = input.text(option);
      return text === undefined ? otherwise : readTimeBound(option, text, now);
    };
    const [since, until] = [bound('since', Number.NEGATIVE_INFINITY), bound('until', Number.POSITIVE_INFINITY)];
    const mostMoved = readPercent(input.text('max-moved'));
    const policy = await loadWithPlugins(policyPath, readPluginChoice(input), terminal);
    if (policy === undefined) return EXIT_FAILED;
    const replayer = createReplayer({ ...policy, environment: (name) => terminal.env[name] });
    const collector = createReplayCollector(replayer.policy);
    try {
      for await (const line of auditLines(input.positionals, { cwd: terminal.cwd, stdin: process.stdin })) {
        const { record } = line;
        if (record === undefined || record.timeMs < since || record.timeMs >= until) collector.skip(line);
        else collector.add(line, record, replayer.replay(record));
        if (collector.lines % PROGRESS_LINES === 0) {
          terminal.err(`${collector.lines.toLocaleString('en-US')} lines read, at ${line.file}:${line.line}\n`);
        }
      }
    } finally {
      replayer.close();
    }
    const report = collector.report();
    terminal.out(
      input.flag('json')
        ? `${JSON.stringify(report, null, 2)}\n`
        : replayReportText(report, { colour: terminal.colour }),
    );
    return report.own.differing.length > 0 || report.movedShare > mostMoved ? EXIT_FAILED : EXIT_OK;
  },
};

/** A percentage as a fraction; infinite where none is given. */
function readPercent(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const match = /^(\d+(?:\.\d+)?)%?$/.exec(text);
  if (match === null) throw new UsageError(`--max-moved must be a percentage such as 5, got "${text}"`);
  return Number(match[1]) / 100;
}
