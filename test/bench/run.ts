/** `npm run bench`: runs the parts named, keeps every sample as JSON lines, prints the tables, and with `--markdown` renews docs/performance.md. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { updatePage } from './performance-page.ts';
import { PROXY_MODES } from './proxy/modes.ts';
import type { ProxyMode } from './proxy/modes.ts';
import { runProxyBench } from './proxy/proxy-bench.ts';
import { programVersion } from './proxy/tools.ts';
import type { BenchPart, BenchReport, Sample, Suite } from './report.ts';
import { tabulate, toMarkdown, toText } from './results-table.ts';

const HELP = `npm run bench -- [PART…] [options]

parts (default: decision proxy)
  decision            in-process: each decision/*.bench.ts
  editor              compiler and language server: each editor/*.bench.ts
  decision/NAME       one of them; editor/NAME too
  proxy               json and sse
  json sse latency memory   one mode of the proxy bench
  all                 everything

options
  --rounds N          how often each subject is restarted and measured (default 5)
  --subjects A,B      subjects of the proxy bench (default: all that can run here)
  --streams N         open streams of the memory mode (default 5000)
  --nice N            niceness of the proxy bench's processes; below 0 needs root
  --smoke             the least work that shows everything runs; its figures mean nothing
  --markdown          write the tables into docs/performance.md
  --from FILE         do not run: tables from a results file; may be repeated
  --help`;

interface RunInfo {
  readonly kind: 'run';
  readonly at: string;
  readonly commit: string;
  readonly machine: string;
  readonly versions: string;
  readonly loadAverage: number;
  readonly smoke: boolean;
}
type Line = RunInfo | ({ readonly kind: 'suite' } & Suite) | ({ readonly kind: 'sample' } & Sample);

const here = new URL('./', import.meta.url);
const page = new URL('../../docs/performance.md', here);

function describeRun(smoke: boolean): RunInfo {
  const git = (...args: string[]): string => {
    try {
      return execFileSync('git', args, {
        cwd: fileURLToPath(here),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    } catch {
      return '';
    }
  };
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const others = ['nginx', 'haproxy']
    .map((name) => [name, programVersion(name)] as const)
    .filter(([, version]) => version !== undefined);
  return {
    kind: 'run',
    at: new Date().toISOString(),
    commit: `${git('rev-parse', '--short', 'HEAD') || 'unknown'}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ' with changes'}`,
    machine: `${availableParallelism()} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`,
    versions: [`Node ${process.versions.node}`, ...others.map(([name, version]) => `${name} ${version}`)].join(', '),
    loadAverage: loadavg()[0] ?? 0,
    smoke,
  };
}

/** What was found, in the order of finding. */
class Results {
  readonly #path: string | undefined;
  readonly #lines: { info: RunInfo; suite: Suite; samples: Sample[] }[] = [];
  #info: RunInfo | undefined;

  /** Appends each line to the file at `path`, if one is given. */
  constructor(path?: string) {
    this.#path = path;
  }

  add(line: Line): void {
    if (this.#path !== undefined) appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
    if (line.kind === 'run') {
      this.#info = line;
    } else if (line.kind === 'suite') {
      if (this.#info === undefined) throw new Error('a results file starts with a line of kind "run"');
      this.#lines.push({ info: this.#info, suite: line, samples: [] });
    } else {
      const suite = this.#lines.findLast(({ suite: { name } }) => name === line.suite);
      if (suite === undefined) throw new Error(`a sample of "${line.suite}", a suite that was not declared`);
      suite.samples.push(line);
    }
  }

  /** The last of each suite. */
  suites(): { info: RunInfo; suite: Suite; samples: readonly Sample[] }[] {
    return [
      ...new Map(this.#lines.filter(({ samples }) => samples.length > 0).map((one) => [one.suite.name, one])).values(),
    ];
  }
}

function readResults(files: readonly string[]): Results {
  const results = new Results();
  for (const file of files) {
    for (const line of readFileSync(file, 'utf8').split('\n')) if (line !== '') results.add(JSON.parse(line) as Line);
  }
  return results;
}

/** Folders of parts that run in this process, or start what they need by themselves. */
const FOLDERS = ['decision', 'editor'];

/** Every part of them, as `decision/pipeline`. */
function localParts(): string[] {
  return FOLDERS.flatMap((folder) => {
    const place = new URL(`${folder}/`, here);
    if (!existsSync(place)) return [];
    return readdirSync(place)
      .filter((file) => file.endsWith('.bench.ts'))
      .map((file) => `${folder}/${file.slice(0, -'.bench.ts'.length)}`)
      .toSorted();
  });
}

async function loadPart(name: string): Promise<BenchPart> {
  const module = (await import(new URL(`${name}.bench.ts`, here).href)) as { readonly run?: unknown };
  if (typeof module.run !== 'function') throw new Error(`${name}.bench.ts exports no function "run" (see report.ts)`);
  return module.run as BenchPart;
}

/** The local parts and proxy modes that the words name. */
function chooseParts(words: readonly string[]): { parts: string[]; modes: ProxyMode[] } {
  const known = localParts();
  const parts = new Set<string>();
  const modes = new Set<ProxyMode>();
  for (const word of words.length === 0 ? ['decision', 'proxy'] : words) {
    const mode = PROXY_MODES.find((one) => one === word);
    const named = known.filter((name) => name === word || name.startsWith(`${word}/`) || word === 'all');
    if (mode !== undefined) modes.add(mode);
    else if (named.length === 0 && ![...FOLDERS, 'proxy', 'all'].includes(word))
      throw new Error(`no part "${word}"\n\n${HELP}`);
    for (const name of named) parts.add(name);
    if (word === 'proxy' || word === 'all')
      for (const one of word === 'all' ? PROXY_MODES : (['json', 'sse'] as const)) modes.add(one);
  }
  return { parts: [...parts], modes: [...modes] };
}

function positiveInteger(text: string, option: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${option} takes a number from 1, not "${text}"`);
  return value;
}

function show(results: Results, markdown: boolean): void {
  const blocks = results.suites().map(({ info, suite, samples }) => {
    const table = tabulate(suite, samples);
    console.log(`\n${suite.title}\n${toText(table)}`);
    const rounds = Math.max(...samples.map(({ round }) => round)) + 1;
    const caption = `${info.at.slice(0, 16).replace('T', ' ')} UTC, commit ${info.commit}, ${info.machine}; ${info.versions}; ${rounds} rounds, load average at the start ${info.loadAverage.toFixed(1)}.`;
    return { name: suite.name, text: `**${suite.title}.** ${caption}\n\n${toMarkdown(table)}`, smoke: info.smoke };
  });
  if (!markdown) return;
  if (blocks.some(({ smoke }) => smoke)) throw new Error('the figures of a smoke run do not go on the page');
  updatePage(page, blocks);
  console.log(`\nwritten: ${fileURLToPath(page)}`);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      subjects: { type: 'string', default: '' },
      streams: { type: 'string', default: '5000' },
      nice: { type: 'string', default: '0' },
      smoke: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
      from: { type: 'string', multiple: true },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  if (values.from !== undefined) {
    show(readResults(values.from), values.markdown);
    return;
  }
  const { parts, modes } = chooseParts(positionals);
  const options = { rounds: positiveInteger(values.rounds, 'rounds'), smoke: values.smoke };
  const info = describeRun(values.smoke);
  mkdirSync(new URL('results/', here), { recursive: true });
  const path = fileURLToPath(new URL(`results/${info.at.replaceAll(/[:.]/g, '-')}.jsonl`, here));
  const results = new Results(path);
  results.add(info);
  const report: BenchReport = {
    suite(suite) {
      results.add({ kind: 'suite', ...suite });
      console.log(`\n# ${suite.title}`);
    },
    sample(sample) {
      results.add({ kind: 'sample', ...sample });
      const figures = Object.entries(sample.figures).map(([key, value]) => `${key} ${Number(value.toPrecision(4))}`);
      console.log(
        `${sample.case}, ${sample.subject}, round ${sample.round + 1}: ${sample.invalid ?? figures.join(', ')}`,
      );
    },
    progress: (text) => console.log(text),
  };
  for (const name of parts) await (await loadPart(name))(report, options);
  if (modes.length > 0) {
    const subjects = values.subjects === '' ? [] : values.subjects.split(',');
    const streams = positiveInteger(values.streams, 'streams');
    await runProxyBench(report, { ...options, modes, subjects, streams, niceness: Number(values.nice) });
  }
  show(results, values.markdown);
  console.log(`\nsamples: ${path}`);
}

// Ending by a signal runs the "exit" handlers, which end the processes that were started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
try {
  await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
