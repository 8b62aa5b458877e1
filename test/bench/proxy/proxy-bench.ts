/**
 * Whole gateways side by side: the subject on one core, mock and load generator on another, each measured in a fresh process. The figure to compare is the CPU time
 * of the subject's process tree per reply or frame; wall-clock figures on a shared machine say more about the neighbours.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { RequestOptions } from 'node:http';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchOptions, BenchReport } from '../report.ts';
import { chatBody } from './bodies.ts';
import { DRIVER_CORE, SUBJECT_CORE } from './drive.ts';
import type { Run } from './drive.ts';
import { AWAKE_MODES, MODES, SSE, SUITES } from './modes.ts';
import type { ModeResult, ProxyMode } from './modes.ts';
import { accepts, freePort, linesOf, startOnCore } from './processes.ts';
import type { Child } from './processes.ts';
import { SUBJECTS } from './subjects.ts';
import type { Place, Subject } from './subjects.ts';
import { bindSelf, compilePrograms, requireMachine } from './tools.ts';
import type { Programs } from './tools.ts';
import { workOf } from './work.ts';

const ENDPOINTS = 8;
const START_TIMEOUT_MS = 20_000;
const BODY_BYTES = 4096;

export interface ProxyBenchOptions extends BenchOptions {
  readonly modes: readonly ProxyMode[];
  /** Names of subjects; empty for all that can run here. */
  readonly subjects: readonly string[];
  /** Open streams in the memory mode. */
  readonly streams: number;
  readonly niceness: number;
}

async function startMock(
  programs: Programs,
  niceness: number,
  staysAwake: boolean,
): Promise<{ mock: Child; ports: number[] }> {
  const args = [String(ENDPOINTS), ...(staysAwake ? ['awake'] : [])];
  const mock = startOnCore(DRIVER_CORE, { file: programs.mock, args }, { niceness });
  for await (const line of linesOf(mock)) {
    const [word, ...ports] = line.split(' ');
    if (word === 'ready') return { mock, ports: ports.map(Number) };
  }
  throw new Error(`the mock did not start: ${mock.errorText()}`);
}

/** One POST on a connection of its own. */
function post(port: number, body: string, headers: readonly string[] = []): Promise<{ status: number; text: string }> {
  const entries = headers.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
  const options: RequestOptions = {
    host: '127.0.0.1',
    port,
    path: '/v1/chat/completions',
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test', ...Object.fromEntries(entries) },
  };
  return new Promise((resolve, reject) => {
    request(options, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, text: answer }), reject);
    })
      .once('error', reject)
      .end(body);
  });
}

interface Expectation {
  readonly name: string;
  readonly port: number;
  readonly headers: readonly string[];
  readonly mockPort: number;
}

/** Waits until the subject passes on the endpoint's answer; throws with what it said when it does not in time. */
async function waitForAnswers(subject: Child, { name, port, headers, mockPort }: Expectation): Promise<void> {
  const body = chatBody({ bytes: BODY_BYTES });
  const essence = (answer: string): string => {
    const { choices, usage } = JSON.parse(answer) as { readonly choices: unknown; readonly usage: unknown };
    return JSON.stringify([choices, usage]);
  };
  const expected = essence((await post(mockPort, body)).text);
  const deadline = performance.now() + START_TIMEOUT_MS;
  let last = 'nothing listened';
  while (performance.now() < deadline) {
    if (!subject.isRunning()) throw new Error(`${name} ended at once: ${subject.errorText()}`);
    if (await accepts(port)) {
      const answer = await post(port, body, headers);
      if (answer.status === 200 && essence(answer.text) === expected) return;
      last = `it answered ${answer.status} ${answer.text.slice(0, 300)}`;
    }
    await delay(100);
  }
  throw new Error(
    `${name} did not pass on the endpoint's answer within ${START_TIMEOUT_MS / 1000} s: ${last}\n${subject.errorText()}`,
  );
}

/** By name, or all that take part unasked. Peers that are not installed are told and left out; what was asked for, or is always there, must run. */
function chooseSubjects(options: ProxyBenchOptions, report: BenchReport): Subject[] {
  const asked = options.subjects.map((name) => {
    const subject = SUBJECTS.find((one) => one.name === name);
    if (subject === undefined) {
      throw new Error(`no subject "${name}"; there are: ${SUBJECTS.map((one) => one.name).join(', ')}`);
    }
    return subject;
  });
  const wanted = asked.length > 0 ? asked : SUBJECTS.filter(({ takesPart }) => takesPart !== 'asked');
  return wanted.filter((subject) => {
    const missing = subject.missing();
    if (missing === undefined) return true;
    if (asked.length > 0 || subject.takesPart === 'always') throw new Error(`${subject.name}: ${missing}`);
    report.progress(`left out: ${subject.name}: ${missing}`);
    return false;
  });
}

/** Rotated from round to round, and every other time backwards: other places and other neighbours. */
function orderOf<T>(items: readonly T[], round: number): T[] {
  const shift = round % items.length;
  const rotated = [...items.slice(shift), ...items.slice(0, shift)];
  return round % 2 === 1 ? rotated.toReversed() : rotated;
}

interface Context {
  readonly programs: Programs;
  readonly options: ProxyBenchOptions;
  readonly bodies: Run['bodies'];
  readonly directory: string;
}

async function measureOnce(subject: Subject, mode: ProxyMode, context: Context): Promise<ModeResult> {
  const { programs, options, bodies, directory } = context;
  const { niceness } = options;
  // The mock's own CPU time, which is that of `direct`, would be all of its core.
  const staysAwake = AWAKE_MODES.has(mode) && subject.name !== 'direct';
  const { mock, ports } = await startMock(programs, niceness, staysAwake);
  let child = mock;
  try {
    const [firstPort = 0] = ports;
    let port = firstPort;
    const place: Place = { port: await freePort(), adminPort: await freePort(), endpointPorts: ports, directory };
    const command = subject.prepare(place);
    if (command !== undefined) {
      mkdirSync(directory, { recursive: true });
      // A file, since a pipe that is read too slowly would hold the subject up.
      child = startOnCore(SUBJECT_CORE, command, { niceness, outputFile: join(directory, 'output') });
      port = place.port;
    }
    const headers = subject.headers?.(place) ?? [];
    await waitForAnswers(child, { name: subject.name, port, headers, mockPort: firstPort });
    const work = workOf(options.smoke, subject.effort ?? 1);
    const streams = options.smoke ? 100 : options.streams;
    const run = { programs, niceness, staysAwake, bodies, mock, subject: child, port, headers, work, streams };
    return await MODES[mode](run);
  } finally {
    if (child !== mock) await child.stop();
    await mock.stop();
  }
}

/** Runs the chosen modes over the chosen subjects, interleaved, and reports a sample of each in each round. */
export async function runProxyBench(report: BenchReport, options: ProxyBenchOptions): Promise<void> {
  requireMachine();
  const subjects = chooseSubjects(options, report);
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
    for (const mode of options.modes) {
      const suite = SUITES[mode];
      report.suite(suite);
      const chosen = subjects.filter(({ modes }) => modes === undefined || modes.includes(mode));
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
