/** What the proxy bench needs of the machine, and the two C programs. */
import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where Debian puts daemons, which need not be on a user's PATH. */
const SYSTEM_DIRECTORIES = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The path of a program, or undefined. */
export function findProgram(name: string): string | undefined {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_DIRECTORIES];
  return directories
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function requireProgram(name: string): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(describeMissing([name]));
  return path;
}

const DEBIAN_PACKAGES: Readonly<Record<string, string>> = {
  gcc: 'gcc libc6-dev',
  nginx: 'nginx-light',
  haproxy: 'haproxy',
  taskset: 'util-linux',
};

/** What is missing and how to get it, or undefined when all programs are there. */
export function describeMissing(programs: readonly string[]): string | undefined {
  const missing = programs.filter((name) => findProgram(name) === undefined);
  if (missing.length === 0) return undefined;
  const packages = missing.map((name) => DEBIAN_PACKAGES[name] ?? name).join(' ');
  return `the proxy bench needs ${missing.join(' and ')}; in Debian: apt-get install -y --no-install-recommends ${packages}`;
}

/** Throws, with what to do about it, unless this machine can run the bench. */
export function requireMachine(): void {
  if (process.platform !== 'linux')
    throw new Error(`the proxy bench reads /proc and needs Linux, not ${process.platform}`);
  if (availableParallelism() < 2)
    throw new Error('the proxy bench needs two cores: one for the subject, one for mock and load');
  const missing = describeMissing(['gcc', 'taskset']);
  if (missing !== undefined) throw new Error(missing);
}

export interface Programs {
  readonly mock: string;
  readonly load: string;
}

/** Compiles mock.c and load.c into a directory. */
export function compilePrograms(directory: string): Programs {
  const compiler = requireProgram('gcc');
  const compile = (name: string): string => {
    const output = join(directory, name);
    execFileSync(compiler, ['-O2', '-Wall', '-o', output, fileURLToPath(new URL(`${name}.c`, import.meta.url))]);
    return output;
  };
  return { mock: compile('mock'), load: compile('load') };
}

/** `nginx version: nginx/1.22.1` → `1.22.1`; undefined if the program is not installed. */
export function programVersion(name: string): string | undefined {
  const path = findProgram(name);
  if (path === undefined) return undefined;
  const { stdout, stderr } = spawnSync(path, ['-v'], { encoding: 'utf8' });
  return /\d+\.\d+\.\d+/.exec(`${stdout}${stderr}`)?.[0];
}

/** Binds this process, with all its threads, to cores: `1` or `0-1`. */
export function bindSelf(cores: string): void {
  execFileSync(requireProgram('taskset'), ['-acp', cores, String(process.pid)], { stdio: 'ignore' });
}
