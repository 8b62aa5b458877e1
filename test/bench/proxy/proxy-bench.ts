/**
 * Whole gateways side by side: the subject on core 0, mock and load generator on core 1, each measured in a fresh process. The figure to compare is the CPU time
 * of the subject's process tree per reply or frame; wall-clock figures on a shared machine say more about the neighbours.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchOptions, BenchReport, Suite } from '../report.ts';
import { chatBody } from './bodies.ts';
import { accepts, cpuTimeUs, freePort, machineTime, residentBytes, startOnCore } from './processes.ts';
import type { Child } from './processes.ts';
import { SUBJECTS } from './subjects.ts';
import type { Place, Subject } from './subjects.ts';
import { compilePrograms, requireMachine } from './tools.ts';
import type { Programs } from './tools.ts';

const SUBJECT_CORE = 0;
const DRIVER_CORE = 1;
const ENDPOINTS = 8;
const START_TIMEOUT_MS = 20_000;
const BODY_BYTES = 4096;

export const PROXY_MODES = ['json', 'sse', 'latency', 'memory'] as const;
export type ProxyMode = (typeof PROXY_MODES)[number];

export interface ProxyBenchOptions extends BenchOptions {
  readonly modes: readonly ProxyMode[];
  /** Names of subjects; empty for all that can run here. */
  readonly subjects: readonly string[];
  /** Open streams in the memory mode. */
  readonly streams: number;
  readonly niceness: number;
}

const OTHERS = { key: 'othersPercent', label: 'other load, %', digits: 0 };
const CPU_GOALS = [{ subject: 'signalbox', figure: 'cpuUs', atMost: 1.5, times: 'bare relay' }];
const BASELINES = ['nginx', 'bare relay'];

const SUITES: Readonly<Record<ProxyMode, Suite>> = {
  json: {
    name: 'proxy-json',
    title: 'Proxy, JSON replies: 64 connections, closed loop',
    figures: [
      { key: 'cpuUs', label: 'CPU µs / request', digits: 0 },
      { key: 'requestsPerSecond', label: 'requests/s', digits: 0 },
      { key: 'p50Us', label: 'p50 µs', digits: 0 },
      { key: 'p99Us', label: 'p99 µs', digits: 0 },
      { key: 'residentMiB', label: 'RSS MiB', digits: 0 },
      OTHERS,
    ],
    compared: 'cpuUs',
    baselines: BASELINES,
    goals: CPU_GOALS,
  },
  sse: {
    name: 'proxy-sse',
    title: 'Proxy, event streams: paced frames on independent streams',
    figures: [
      { key: 'cpuUs', label: 'CPU µs / frame', digits: 1 },
      { key: 'framesPerSecond', label: 'frames/s', digits: 0 },
      { key: 'delayP50Us', label: 'frame delay p50 µs', digits: 0 },
      { key: 'delayP99Us', label: 'p99 µs', digits: 0 },
      OTHERS,
    ],
    compared: 'cpuUs',
    baselines: BASELINES,
    goals: [],
  },
  latency: {
    name: 'proxy-latency',
    title: 'Proxy, latency: one connection, then 500 requests/s at fixed instants',
    figures: [
      { key: 'singleP50Us', label: 'one connection p50 µs', digits: 0 },
      { key: 'singleP99Us', label: 'p99 µs', digits: 0 },
      { key: 'pacedP50Us', label: '500/s p50 µs', digits: 0 },
      { key: 'pacedP99Us', label: 'p99 µs', digits: 0 },
      OTHERS,
    ],
    compared: 'singleP50Us',
    baselines: BASELINES,
    goals: [],
  },
  memory: {
    name: 'proxy-memory',
    title: 'Proxy, resident memory of open streams',
    figures: [
      { key: 'perStreamKB', label: 'KB / open stream', digits: 1 },
      { key: 'idleMiB', label: 'idle MiB', digits: 0 },
      { key: 'openMiB', label: 'with streams MiB', digits: 0 },
    ],
    compared: 'perStreamKB',
    baselines: BASELINES,
    goals: [{ subject: 'signalbox', figure: 'perStreamKB', atMost: 28 }],
  },
};

/** How much work: enough for a figure, or just enough to show that it runs. */
const WORK = {
  full: { warmReplies: 50_000, replies: 40_000, warmFrames: 60_000, frames: 60_000, singles: 2000, pacedSeconds: 4 },
  smoke: { warmReplies: 300, replies: 500, warmFrames: 2000, frames: 3000, singles: 100, pacedSeconds: 1 },
};
/** 100 streams × 1 frame per 10 ms: as much as the slowest subject carries without a queue on one core. */
const SSE = { connections: 100, events: 150, eventGapUs: 10_000 };

/** What load.c prints. Times in µs. */
interface LoadResult {
  readonly seconds: number;
  /** CPU time of the load generator. */
  readonly cpuUs: number;
  readonly replies: number;
  readonly events: number;
  readonly errors: number;
  readonly not200: number;
  readonly open: number;
  readonly p50: number;
  readonly p99: number;
  readonly eventDelayP50: number;
  readonly eventDelayP99: number;
}

interface Measured {
  readonly result: LoadResult;
  /** CPU time of the subject while the load was measured. */
  readonly subjectCpuUs: number;
  /** Share of the machine's time that neither subject, mock nor load used, and that the host took away. */
  readonly othersPercent: number;
}

interface Run {
  readonly programs: Programs;
  readonly options: ProxyBenchOptions;
  readonly bodies: Readonly<Record<'json' | 'sse' | 'hold', string>>;
  readonly mock: Child;
  readonly subject: Child;
  readonly port: number;
}

type LoadFlags = readonly (string | number)[];

/** Runs the load generator; `during` runs while it measures. */
async function drive(
  run: Run,
  body: keyof Run['bodies'],
  flags: LoadFlags,
  during?: () => Promise<void>,
): Promise<Measured> {
  const args = ['-p', run.port, '-f', run.bodies[body], ...flags].map(String);
  const load = startOnCore(DRIVER_CORE, { file: run.programs.load, args }, run.options.niceness);
  const watched = run.subject === run.mock ? [run.mock.pid] : [run.subject.pid, run.mock.pid];
  const reading = (): { cpu: number[]; machine: ReturnType<typeof machineTime> } => ({
    cpu: watched.map(cpuTimeUs),
    machine: machineTime(),
  });
  let from = reading();
  let to = from;
  let text = '';
  let waiting: Promise<void> | undefined;
  for await (const line of createInterface({ input: load.stdout })) {
    if (line === 'measuring') {
      from = reading();
      waiting = during?.();
    } else {
      to = reading();
      text = line;
    }
  }
  await waiting;
  const code = await load.exited;
  if (code !== 0 || text === '') {
    throw new Error(`the load generator ended with ${code}: ${load.errorText()}; subject: ${run.subject.errorText()}`);
  }
  const spent = to.cpu.map((us, index) => us - (from.cpu[index] ?? 0));
  const result = JSON.parse(text) as LoadResult;
  const ours = spent.reduce((sum, us) => sum + us, result.cpuUs);
  const total = to.machine.totalUs - from.machine.totalUs;
  const others = to.machine.busyUs - from.machine.busyUs - ours + to.machine.stolenUs - from.machine.stolenUs;
  return {
    result,
    subjectCpuUs: spent[0] ?? Number.NaN,
    othersPercent: total > 0 ? Math.max(0, (100 * others) / total) : 0,
  };
}

function describeFaults({ result }: Measured): string | undefined {
  if (result.errors > 0) return `${result.errors} errors in ${result.replies} replies`;
  if (result.not200 > 0) return `${result.not200} replies of ${result.replies} were not 200`;
  return undefined;
}

interface ModeResult {
  readonly case: string;
  readonly figures: Record<string, number>;
  readonly invalid: string | undefined;
}

const MODES: Readonly<Record<ProxyMode, (run: Run) => Promise<ModeResult>>> = {
  async json(run) {
    const { warmReplies, replies } = WORK[run.options.smoke ? 'smoke' : 'full'];
    const measured = await drive(run, 'json', ['-c', 64, '-W', warmReplies, '-N', replies, '-t', 60]);
    const { result } = measured;
    const figures = {
      cpuUs: measured.subjectCpuUs / result.replies,
      requestsPerSecond: result.replies / result.seconds,
      p50Us: result.p50,
      p99Us: result.p99,
      residentMiB: residentBytes(run.subject.pid) / 2 ** 20,
      othersPercent: measured.othersPercent,
    };
    return { case: '4 KB', figures, invalid: describeFaults(measured) };
  },

  async sse(run) {
    const { warmReplies, warmFrames, frames } = WORK[run.options.smoke ? 'smoke' : 'full'];
    await drive(run, 'json', ['-c', 64, '-N', warmReplies, '-t', 60]);
    const rampMs = (SSE.events * SSE.eventGapUs) / 1000;
    const flags = ['-s', '-c', SSE.connections, '-o', rampMs, '-w', warmFrames, '-n', frames, '-t', 60];
    const measured = await drive(run, 'sse', flags);
    const { result } = measured;
    const figures = {
      cpuUs: measured.subjectCpuUs / result.events,
      framesPerSecond: result.events / result.seconds,
      delayP50Us: result.eventDelayP50,
      delayP99Us: result.eventDelayP99,
      othersPercent: measured.othersPercent,
    };
    const offered = (SSE.connections * 1e6) / SSE.eventGapUs;
    return {
      case: `${SSE.connections} streams, ${offered / 1000}k frames/s offered`,
      figures,
      invalid: describeFaults(measured),
    };
  },

  async latency(run) {
    const { warmReplies, singles, pacedSeconds } = WORK[run.options.smoke ? 'smoke' : 'full'];
    await drive(run, 'json', ['-c', 16, '-N', warmReplies, '-t', 60]);
    const single = await drive(run, 'json', ['-c', 1, '-W', singles / 10, '-N', singles, '-t', 30]);
    const paced = await drive(run, 'json', ['-c', 32, '-r', 500, '-W', 100, '-t', pacedSeconds]);
    const figures = {
      singleP50Us: single.result.p50,
      singleP99Us: single.result.p99,
      pacedP50Us: paced.result.p50,
      pacedP99Us: paced.result.p99,
      othersPercent: Math.max(single.othersPercent, paced.othersPercent),
    };
    return { case: '4 KB', figures, invalid: describeFaults(single) ?? describeFaults(paced) };
  },

  async memory(run) {
    const { warmReplies } = WORK[run.options.smoke ? 'smoke' : 'full'];
    const streams = run.options.smoke ? 100 : run.options.streams;
    await drive(run, 'json', ['-c', 8, '-N', Math.ceil(warmReplies / 4), '-t', 60]);
    await delay(500);
    const idle = residentBytes(run.subject.pid);
    const rampMs = streams;
    let open = 0;
    const measured = await drive(
      run,
      'hold',
      ['-s', '-c', streams, '-o', rampMs, '-t', rampMs / 1000 + 4],
      async () => {
        await delay(rampMs + 1500);
        for (let reading = 0; reading < 4; reading++) {
          open = Math.max(open, residentBytes(run.subject.pid));
          await delay(400);
        }
      },
    );
    const figures = { perStreamKB: (open - idle) / 1024 / streams, idleMiB: idle / 2 ** 20, openMiB: open / 2 ** 20 };
    const short =
      measured.result.open < streams ? `only ${measured.result.open} of ${streams} streams were open` : undefined;
    return { case: `${streams} streams`, figures, invalid: describeFaults(measured) ?? short };
  },
};

async function startMock(programs: Programs, niceness: number): Promise<{ mock: Child; ports: number[] }> {
  const mock = startOnCore(DRIVER_CORE, { file: programs.mock, args: [String(ENDPOINTS)] }, niceness);
  for await (const line of createInterface({ input: mock.stdout })) {
    const [word, ...ports] = line.split(' ');
    if (word === 'ready') return { mock, ports: ports.map(Number) };
  }
  throw new Error(`the mock did not start: ${mock.errorText()}`);
}

async function post(port: number, body: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test', connection: 'close' },
    body,
  });
  return { status: response.status, text: await response.text() };
}

/** Waits until the subject answers as the mock does; throws with what it said when it does not in time. */
async function waitForAnswers(subject: Child, name: string, port: number, mockPort: number): Promise<void> {
  const body = chatBody({ bytes: BODY_BYTES });
  const expected: unknown = JSON.parse((await post(mockPort, body)).text);
  const deadline = performance.now() + START_TIMEOUT_MS;
  let last = 'nothing listened';
  while (performance.now() < deadline) {
    if (!subject.isRunning()) throw new Error(`${name} ended at once: ${subject.errorText()}`);
    if (await accepts(port)) {
      const { status, text } = await post(port, body);
      if (status === 200 && JSON.stringify(JSON.parse(text)) === JSON.stringify(expected)) return;
      last = `it answered ${status} ${text.slice(0, 300)}`;
    }
    await delay(100);
  }
  throw new Error(
    `${name} did not answer as the endpoint does within ${START_TIMEOUT_MS / 1000} s: ${last}\n${subject.errorText()}`,
  );
}

/** The names must exist; of all, those that cannot run here are told and left out. */
function chooseSubjects(options: ProxyBenchOptions, report: BenchReport): Subject[] {
  if (options.subjects.length === 0) {
    return SUBJECTS.filter((subject) => {
      const missing = subject.missing();
      if (missing !== undefined) report.progress(`left out: ${subject.name}: ${missing}`);
      return missing === undefined;
    });
  }
  return options.subjects.map((name) => {
    const subject = SUBJECTS.find((one) => one.name === name);
    if (subject === undefined)
      throw new Error(`no subject "${name}"; there are: ${SUBJECTS.map((one) => one.name).join(', ')}`);
    const missing = subject.missing();
    if (missing !== undefined) throw new Error(missing);
    return subject;
  });
}

/** Rotated from round to round, and every other time backwards: other places and other neighbours. */
function orderOf<T>(items: readonly T[], round: number): T[] {
  const shift = round % items.length;
  const rotated = [...items.slice(shift), ...items.slice(0, shift)];
  return round % 2 === 1 ? rotated.toReversed() : rotated;
}

async function measureOnce(
  subject: Subject,
  mode: ProxyMode,
  context: Omit<Run, 'mock' | 'subject' | 'port'> & { readonly directory: string },
): Promise<ModeResult> {
  const { programs, options, directory } = context;
  const { mock, ports } = await startMock(programs, options.niceness);
  let child = mock;
  try {
    const [firstPort = 0] = ports;
    let port = firstPort;
    const place: Place = { port: await freePort(), adminPort: await freePort(), endpointPorts: ports, directory };
    const command = subject.prepare(place);
    if (command !== undefined) {
      mkdirSync(directory, { recursive: true });
      child = startOnCore(SUBJECT_CORE, command, options.niceness);
      port = place.port;
      child.stdout.resume();
    }
    await waitForAnswers(child, subject.name, port, firstPort);
    return await MODES[mode]({ ...context, mock, subject: child, port });
  } finally {
    if (child !== mock) await child.stop();
    await mock.stop();
  }
}

function bindSelf(cores: string): void {
  execFileSync('taskset', ['-acp', cores, String(process.pid)], { stdio: 'ignore' });
}

/** Runs the chosen modes over the chosen subjects, interleaved, and reports a sample of each in each round. */
export async function runProxyBench(report: BenchReport, options: ProxyBenchOptions): Promise<void> {
  requireMachine();
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  // The bench's own work goes where the driver is: the subject's core is the subject's alone.
  bindSelf(String(DRIVER_CORE));
  try {
    const programs = compilePrograms(directory);
    const write = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const bodies = {
      json: write('json.json', chatBody({ bytes: BODY_BYTES })),
      sse: write(
        'sse.json',
        chatBody({ bytes: BODY_BYTES, stream: true, events: SSE.events, eventGapUs: SSE.eventGapUs }),
      ),
      hold: write('hold.json', chatBody({ bytes: BODY_BYTES, stream: true, events: 100, eventGapUs: 1_000_000 })),
    };
    const subjects = chooseSubjects(options, report);
    for (const mode of options.modes) {
      const suite = SUITES[mode];
      report.suite(suite);
      const chosen = mode === 'memory' ? subjects.filter(({ name }) => name !== 'direct') : subjects;
      for (let round = 0; round < options.rounds; round++) {
        for (const subject of orderOf(chosen, round)) {
          const own = join(directory, `${mode}-${round}-${subject.name.replaceAll(/\W+/g, '-')}`);
          const {
            case: name,
            figures,
            invalid,
          } = await measureOnce(subject, mode, { programs, options, bodies, directory: own });
          report.sample({
            suite: suite.name,
            case: name,
            subject: subject.name,
            round,
            figures,
            ...(invalid === undefined ? {} : { invalid }),
          });
        }
      }
    }
  } finally {
    bindSelf(`0-${availableParallelism() - 1}`);
    rmSync(directory, { recursive: true, force: true });
  }
}
