/** Child processes on a chosen core, what they have used, and their end. Linux only: reads /proc. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** `getconf CLK_TCK`; fixed at 100 on every architecture that Node runs on. */
const CLOCK_TICKS_PER_SECOND = 100;
const STDERR_KEPT = 4000;

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Child {
  readonly pid: number;
  /** Its output, unless that goes to a file. */
  readonly stdout: Readable | undefined;
  /** The last part of its error output. */
  errorText(): string;
  /** Exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  isRunning(): boolean;
  /** SIGTERM, and SIGKILL after three seconds. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly niceness?: number;
  /** Where its output goes; a pipe to this process if absent. */
  readonly outputFile?: string;
}

/** Starts a command bound to one core. `taskset` replaces itself by the command, so the pid is the command's. */
export function startOnCore(core: number, command: Command, { niceness = 0, outputFile }: StartOptions = {}): Child {
  const args = ['-n', String(niceness), 'taskset', '-c', String(core), command.file, ...command.args];
  const output = outputFile === undefined ? 'pipe' : openSync(outputFile, 'w');
  const child = spawn('nice', args, {
    stdio: ['ignore', output, 'pipe'],
    env: { ...process.env, ...command.env },
  });
  if (typeof output === 'number') closeSync(output);
  const { pid } = child;
  if (pid === undefined) throw new Error(`could not start ${command.file}: is "nice" on the PATH?`);
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const endWithParent = (): void => {
    child.kill('SIGTERM');
  };
  process.once('exit', endWithParent);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-STDERR_KEPT);
  });
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => {
      process.off('exit', endWithParent);
      resolve(code ?? signal ?? 'unknown');
    });
  });
  return {
    pid,
    stdout: child.stdout ?? undefined,
    errorText: () => errors,
    exited,
    isRunning,
    async stop() {
      if (isRunning()) child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), 3000);
      await exited;
      clearTimeout(kill);
    },
  };
}

/** The process and all that it has started. */
function processTree(pid: number): number[] {
  const tree = [pid];
  for (const parent of tree) {
    try {
      for (const thread of readdirSync(`/proc/${parent}/task`)) {
        const children = readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').trim();
        if (children !== '') tree.push(...children.split(' ').map(Number));
      }
    } catch {
      // It ended while we looked.
    }
  }
  return tree;
}

function sumOverTree(pid: number, read: (directory: string) => number): number {
  let sum = 0;
  for (const member of processTree(pid)) {
    try {
      sum += read(`/proc/${member}`);
    } catch {
      // It ended while we looked.
    }
  }
  return sum;
}

/** User and system time of a process tree since its start, in µs. */
export function cpuTimeUs(pid: number): number {
  return sumOverTree(pid, (directory) => {
    // The second field, the name in parentheses, may hold spaces: what follows starts with field 3.
    const fields = readFileSync(`${directory}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return ((Number(fields[11]) + Number(fields[12])) * 1e6) / CLOCK_TICKS_PER_SECOND;
  });
}

/** Resident memory of a process tree, in bytes. */
export function residentBytes(pid: number): number {
  return sumOverTree(
    pid,
    (directory) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`${directory}/status`, 'utf8'))?.[1]) * 1024,
  );
}

export interface MachineTime {
  /** All cores, in µs: what ran, what the host took away, and the whole. */
  readonly busyUs: number;
  readonly stolenUs: number;
  readonly totalUs: number;
}

export function machineTime(): MachineTime {
  const [user = 0, nice = 0, system = 0, idle = 0, ioWait = 0, irq = 0, softIrq = 0, stolen = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n', 1)[0]!
    .split(/\s+/)
    .slice(1)
    .map((ticks) => (Number(ticks) * 1e6) / CLOCK_TICKS_PER_SECOND);
  const busyUs = user + nice + system + irq + softIrq;
  return { busyUs, stolenUs: stolen, totalUs: busyUs + idle + ioWait + stolen };
}

/** A loopback port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  return address.port;
}

/** Whether something accepts connections on the port. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (answer: boolean) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', settle(true)).once('error', settle(false));
  });
}

/** The output of a process, line by line, until it ends. */
export function linesOf(child: Child): AsyncIterable<string> {
  if (child.stdout === undefined) throw new Error('its output goes to a file');
  return createInterface({ input: child.stdout });
}
