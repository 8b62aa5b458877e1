import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcessWithoutNullStreams, SpawnSyncOptions, StdioOptions } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../../packages/gateway/src/cli/run.ts';
import { COMMANDS } from '../../../packages/gateway/src/commands/commands.ts';

const main = fileURLToPath(new URL('../../../packages/gateway/src/main.ts', import.meta.url));
const tsx = import.meta.resolve('tsx');
const nodeArguments = ['--conditions=@signalbox/source', '--import', tsx, main];
const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, NODE_OPTIONS: '' };

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs `signalbox ARGS` to its end, in this process. */
export async function signalbox(args: readonly string[], cwd: string): Promise<Finished> {
  let out = '';
  let err = '';
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
    colour: false,
    cwd,
    env: {},
  };
  const code = await runCommandLine(COMMANDS, args, '0.0.0', terminal);
  return { code, out, err };
}

/** Runs `signalbox ARGS` to its end, in a process of its own with this standard input. */
export function signalboxWithInput(args: readonly string[], cwd: string, input: string): Finished {
  return finished(args, { cwd, input });
}

/** The same with these files as standard input, output and error. */
export function spawnSignalbox(args: readonly string[], cwd: string, stdio: StdioOptions): Finished {
  return finished(args, { cwd, stdio });
}

/** The same in a process whose heap may hold so many megabytes. */
export function signalboxWithHeap(args: readonly string[], cwd: string, megabytes: number): Finished {
  return finished(args, { cwd, timeout: 200_000 }, { NODE_OPTIONS: `--max-old-space-size=${megabytes}` });
}

function finished(args: readonly string[], options: SpawnSyncOptions, more: typeof process.env = {}): Finished {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeArguments, ...args], {
    timeout: 60_000,
    ...options,
    encoding: 'utf8',
    env: { ...env, ...more },
  });
  return { code: status, out: stdout, err: stderr };
}

/** Runs `signalbox ARGS` in a process of its own, whose standard output is closed by its reader after the first bytes. */
export async function untilFirstBytes(args: readonly string[], cwd: string): Promise<Omit<Finished, 'out'>> {
  const child = spawn(process.execPath, [...nodeArguments, ...args], { cwd, env });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, err };
}

/** A `signalbox` that runs on. */
export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly err: () => string;
  /** Resolves when the text has appeared on standard output or error; rejects when the process ends first. */
  saw(text: string | RegExp): Promise<void>;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
}

export function startSignalbox(args: readonly string[], cwd: string = process.cwd()): Running {
  const child = spawn(process.execPath, [...nodeArguments, ...args], { cwd, env });
  let out = '';
  let err = '';
  const watchers = new Set<() => void>();
  const add = (kind: 'out' | 'err') => (chunk: string) => {
    if (kind === 'out') out += chunk;
    else err += chunk;
    for (const watcher of watchers) watcher();
  };
  child.stdout.setEncoding('utf8').on('data', add('out'));
  child.stderr.setEncoding('utf8').on('data', add('err'));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return {
    child,
    out: () => out,
    err: () => err,
    ended,
    saw(text) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const all = `${out}\n${err}`;
          if (typeof text === 'string' ? all.includes(text) : text.test(all)) {
            watchers.delete(look);
            resolve();
          }
        };
        watchers.add(look);
        void ended.then((code) =>
          reject(new Error(`ended with ${code} before ${String(text)} was seen:\n${out}\n${err}`)),
        );
        look();
      });
    },
  };
}
