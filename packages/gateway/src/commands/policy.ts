import { relative, resolve } from 'node:path';
import type {
  CanaryStatus,
  ChangeReport,
  PolicyState,
  ShadowStatus,
  VersionDetail,
  VersionRow,
} from '../lifecycle/policy-lifecycle.ts';
import type { Command, CommandInput, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import type { PolicyTexts } from '../policy/load-policy.ts';
import { policyRoot } from '../policy/policy-files.ts';
import type { AdminClient, Sent } from './admin-client.ts';
import { ADMIN_OPTIONS, adminClient } from './admin-client.ts';
import { canaryText, changeText, detailText, shadowText, versionTable } from './policy-text.ts';

export const policyCommand: Command = {
  name: 'policy',
  summary: 'the policy versions of a running gateway: list, roll back, pin, try',
  arguments:
    '[list | show ID | rollback [ID] | pin [ID] | unpin | shadow FILE|off|report | canary [FILE] | promote [ID] | abort [ID]]',
  arity: [0, 2],
  help: `
Asks the admin listener of a running gateway. \`list\`, which is the default, shows the versions that it keeps, newest first. ID is the first four
digits of a version's id, or more.

  show ID        what is known of a version, and its texts
  rollback [ID]  puts an earlier version in force: the one before, or the one named. The file is left as it is; its next change is put in force
  pin [ID]       holds what the policy file holds from now on back: it is compiled and tested, and not put in force. With an ID, of that version
  unpin          lets the policy file decide again
  shadow FILE    decides live requests by FILE too, without effect, and compares; \`report\` shows how they agree, \`off\` ends it
  canary FILE    lets a share of the requests go by FILE, each session or user by one version; rolled back by itself if it fails more requests, or
                 takes longer for the first token, than the version in force. Without FILE, how it stands
  promote [ID]   puts the canary in force. The policy file is left as it is: write the policy there too, for the next start reads it
  abort [ID]     ends the canary

  signalbox policy rollback
  signalbox policy shadow next.route --sample 10% && sleep 600 && signalbox policy shadow report
  signalbox policy canary next.route --share 5% --for 10m
  signalbox policy promote

A change fails, with exit code 1, if something else was changed since the version of --expect was in force.`,
  options: {
    ...ADMIN_OPTIONS,
    share: { type: 'string', value: 'PERCENT', help: 'canary: share of the requests, 5% by default' },
    for: {
      type: 'string',
      value: 'DURATION',
      help: 'canary: the window in which versions are compared, and the time after which it has passed; 10m by default',
    },
    'max-error-increase': {
      type: 'string',
      value: 'PERCENT',
      help: 'canary: how much more of its requests may fail than of those of the version in force; 1% by default',
    },
    'max-ttft-ratio': {
      type: 'string',
      value: 'FACTOR',
      help: 'canary: how many times as long its first tokens may take; 1.2 by default',
    },
    'min-requests': {
      type: 'string',
      value: 'COUNT',
      help: 'canary: requests of each version before they are compared; 20 by default',
    },
    sample: {
      type: 'string',
      value: 'PERCENT',
      help: 'shadow: share of the requests that are decided twice; 100% by default',
    },
    expect: {
      type: 'string',
      value: 'GENERATION',
      help: 'makes the change only if this generation is in force, as `list` shows it',
    },
    json: { type: 'boolean', help: 'the answer of the admin listener as JSON' },
  },
  async run(input, terminal) {
    const [verb = 'list', argument] = input.positionals;
    const run = VERBS[verb];
    if (run === undefined) throw new UsageError(`expected ${Object.keys(VERBS).join(', ')}, got "${verb}"`);
    checkOptions(input, verb, argument);
    const client = adminClient(input, terminal);
    const tell = (value: unknown, text: string): number => {
      terminal.out(input.flag('json') ? `${JSON.stringify(value, null, 2)}\n` : text);
      return EXIT_OK;
    };
    return run({ input, terminal, client, argument, tell });
  },
};

/** A large policy with many tests takes its time. */
const CHANGE_WITHIN_MS = 60_000;

interface Call {
  readonly input: CommandInput;
  readonly terminal: Terminal;
  readonly client: AdminClient;
  readonly argument: string | undefined;
  /** Prints an answer; the exit code. */
  readonly tell: (value: unknown, text: string) => number;
}

const VERBS: { readonly [verb: string]: (call: Call) => Promise<number> } = {
  async list({ client, argument, tell }) {
    refuseArgument(argument);
    const answer = (await client.call('GET', '/-/policy/versions')) as PolicyState & {
      readonly versions: readonly VersionRow[];
    };
    return tell(answer, versionTable(answer, answer.versions));
  },
  async show({ client, argument, tell }) {
    if (argument === undefined)
      throw new UsageError('show needs the id of a version; `signalbox policy list` lists them');
    const detail = (await client.call('GET', `/-/policy/versions/${encodeURIComponent(argument)}`)) as VersionDetail;
    return tell(detail, detailText(detail));
  },
  rollback: (call) => change(call, 'rollback', named(call.argument)),
  pin: (call) => change(call, 'pin', named(call.argument)),
  unpin(call) {
    refuseArgument(call.argument);
    return change(call, 'unpin', {});
  },
  promote: (call) => change(call, 'promote', named(call.argument)),
  abort: (call) => change(call, 'abort', named(call.argument)),
  async canary(call) {
    const { client, argument, input, terminal, tell } = call;
    if (argument !== undefined) return change(call, 'canary', { ...textsOf(argument, terminal), ...readRules(input) });
    const { canary } = (await client.call('GET', '/-/policy/canary')) as { readonly canary: CanaryStatus | null };
    tell({ canary }, canaryText(canary));
    return canary?.state === 'rolled_back' ? EXIT_FAILED : EXIT_OK;
  },
  async shadow(call) {
    const { client, argument, input, terminal, tell } = call;
    if (argument === 'off') return change(call, 'shadow/off', {});
    if (argument !== undefined && argument !== 'report') {
      const sample = readShare(input, 'sample', '100%');
      return change(call, 'shadow', { ...textsOf(argument, terminal), sample });
    }
    const { shadow } = (await client.call('GET', '/-/policy/shadow')) as { readonly shadow: ShadowStatus | null };
    return tell({ shadow }, shadowText(shadow));
  },
};

async function change({ client, input, tell, terminal }: Call, what: string, body: object): Promise<number> {
  const expected = input.text('expect');
  const generation = expected === undefined ? {} : { expected_generation: readCount('expect', expected, 1) };
  const sent: Sent = { body: { ...body, ...generation }, withinMs: CHANGE_WITHIN_MS };
  const report = (await client.call('POST', `/-/policy/${what}`, sent)) as ChangeReport;
  if (report.text !== '') terminal.err(report.text);
  return tell(report, changeText(what, report));
}

/** What each option is for; of the others a word would be without effect. */
const FOR: { readonly [option: string]: string } = {
  share: 'canary',
  for: 'canary',
  'max-error-increase': 'canary',
  'max-ttft-ratio': 'canary',
  'min-requests': 'canary',
  sample: 'shadow',
};

function checkOptions(input: CommandInput, verb: string, argument: string | undefined): void {
  for (const [option, owner] of Object.entries(FOR)) {
    const takes = verb === owner && argument !== undefined && argument !== 'off' && argument !== 'report';
    if (input.text(option) !== undefined && !takes) throw new UsageError(`--${option} is for ${owner} FILE alone`);
  }
}

function refuseArgument(argument: string | undefined): void {
  if (argument !== undefined) throw new UsageError(`unexpected argument "${argument}"`);
}

function named(id: string | undefined): object {
  if (id === undefined) return {};
  if (!/^[0-9a-f]{4,64}$/.test(id))
    throw new UsageError(`a version is named by four or more digits of its id, as \`list\` shows it; got "${id}"`);
  return { policy: id };
}

/** A policy file with what it imports, by paths from its folder. */
function textsOf(path: string, terminal: Terminal): PolicyTexts {
  const loaded = createPolicyLoader({ cwd: terminal.cwd, allowPlugins: [] }).load(path);
  const absolute = resolve(terminal.cwd, path);
  const nameOf = (file: string): string => relative(policyRoot(absolute), file).replaceAll('\\', '/');
  const files: { [name: string]: string } = {};
  // What is missing or wrong here the gateway says, with the plugins that it has.
  for (const [file, text] of loaded.texts) if (text !== undefined) files[nameOf(file)] = text;
  return { main: nameOf(absolute), files };
}

function readRules(input: CommandInput): object {
  const window = input.text('for');
  const ratio = input.text('max-ttft-ratio');
  const least = input.text('min-requests');
  return {
    share: readShare(input, 'share', '5%'),
    max_error_increase: readShare(input, 'max-error-increase', '1%'),
    ...(window === undefined ? {} : { for_seconds: readDuration(window) }),
    ...(ratio === undefined ? {} : { max_ttft_ratio: readNumber('max-ttft-ratio', ratio, 1, 1000) }),
    ...(least === undefined ? {} : { min_requests: readCount('min-requests', least, 2) }),
  };
}

function readShare(input: CommandInput, option: string, otherwise: string): number {
  const text = input.text(option) ?? otherwise;
  const match = /^(\d+(?:\.\d+)?)\s*%$/.exec(text);
  const percent = Number(match?.[1] ?? Number.NaN);
  if (percent >= 0 && percent <= 100) return percent / 100;
  throw new UsageError(`--${option} must be a percentage such as ${otherwise}, got "${text}"`);
}

const SECONDS: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400 };

function readDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(text);
  const seconds = Number(match?.[1] ?? Number.NaN) * (SECONDS[match?.[2] ?? ''] ?? Number.NaN);
  if (seconds >= 1 && seconds <= 7 * 86_400) return seconds;
  throw new UsageError(`--for must be a duration from 1s to 7d, such as 10m, got "${text}"`);
}

function readNumber(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= least && value <= most) return value;
  throw new UsageError(`--${option} must be a number from ${least} to ${most}, got "${text}"`);
}

function readCount(option: string, text: string, least: number): number {
  const value = readNumber(option, text, least, 1e9);
  if (Number.isInteger(value)) return value;
  throw new UsageError(`--${option} must be a whole number, got "${text}"`);
}
