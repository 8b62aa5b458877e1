import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cpuTimeUs, residentBytes } from '../../bench/proxy/processes.ts';
import { openInspector, type Inspector } from './inspector.ts';

/** `signalbox serve` in a process of its own, watched from outside. */
export interface GatewayUnderTest {
  readonly pid: number;
  readonly port: number;
  /** What Prometheus would read: the value of each series, by its name with labels as they are written. */
  metrics(): Promise<ReadonlyMap<string, number>>;
  /** The identity of the policy in force and how many were before it. */
  policy(): Promise<{ readonly policy: string; readonly generation: number }>;
  /** The status of a GET on the admin listener; undefined if nothing answers. */
  status(path: string): Promise<number | undefined>;
  /** File descriptors that are open. */
  descriptors(): number;
  residentBytes(): number;
  cpuUs(): number;
  /** The last part of what it wrote on standard error. */
  errorText(): string;
  signal(name: NodeJS.Signals): void;
  /** Exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** SIGINT, and SIGKILL after five seconds. */
  stop(): Promise<void>;
}

export interface InspectedGateway extends GatewayUnderTest {
  readonly inspector: Inspector;
}

export interface GatewayStart {
  readonly policyPath: string;
  /** From sources, for tests that need no build; by default as built. */
  readonly fromSource?: boolean;
}

const built = fileURLToPath(new URL('../../../packages/gateway/dist/main.js', import.meta.url));
const source = fileURLToPath(new URL('../../../packages/gateway/src/main.ts', import.meta.url));
const ERROR_TEXT_KEPT = 20_000;

/** Starts it on free ports of loopback, and resolves when it takes requests. */
export async function startGateway(start: GatewayStart): Promise<GatewayUnderTest> {
  return (await launch(start, [])).gateway;
}

/** The same, with the inspector of Node on a free port of loopback: the gateway itself knows nothing of it. */
export async function startInspectedGateway(start: GatewayStart): Promise<InspectedGateway> {
  const { gateway } = await launch(start, ['--inspect=127.0.0.1:0']);
  const url = /Debugger listening on (ws:\S+)/.exec(gateway.errorText())?.[1];
  if (url === undefined) throw new Error(`no inspector: ${gateway.errorText()}`);
  const inspector = await openInspector(url);
  return {
    ...gateway,
    inspector,
    stop() {
      inspector.close();
      return gateway.stop();
    },
  };
}

async function launch(
  { policyPath, fromSource = false }: GatewayStart,
  nodeOptions: readonly string[],
): Promise<{ readonly gateway: GatewayUnderTest }> {
  if (!fromSource && !existsSync(built)) throw new Error(`${built} is not there: npm run build`);
  const main = fromSource ? ['--conditions=@signalbox/source', source] : [built];
  const child = spawn(
    process.execPath,
    [...nodeOptions, ...main, 'serve', policyPath, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '' } },
  );
  const endWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithParent);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-ERROR_TEXT_KEPT)));
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      process.off('exit', endWithParent);
      resolve(code ?? signal ?? 'unknown');
    });
  });
  const { url, admin } = await listening(child, ended, () => errors);
  const pid = child.pid ?? 0;
  const get = (path: string): Promise<Response> => fetch(admin + path, { headers: { connection: 'close' } });
  return {
    gateway: {
      pid,
      port: Number(new URL(url).port),
      metrics: async () => readMetrics(await (await get('/metrics')).text()),
      policy: async () => (await (await get('/-/policy')).json()) as { policy: string; generation: number },
      status: (path) =>
        get(path).then(
          async (response) => {
            await response.arrayBuffer();
            return response.status;
          },
          () => undefined,
        ),
      descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
      residentBytes: () => residentBytes(pid),
      cpuUs: () => cpuTimeUs(pid),
      errorText: () => errors,
      signal: (name) => void child.kill(name),
      ended,
      async stop() {
        child.kill('SIGINT');
        const kill = setTimeout(() => child.kill('SIGKILL'), 5000);
        await ended;
        clearTimeout(kill);
      },
    },
  };
}

/** Waits for the line of the log that says where it listens; what is logged after that is read and dropped. */
async function listening(
  child: ChildProcess,
  ended: Promise<unknown>,
  errorText: () => string,
): Promise<{ readonly url: string; readonly admin: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly url: string; readonly admin: string }>();
  let text = '';
  const look = (part: Buffer): void => {
    text += part.toString();
    const line = text.split('\n').find((whole) => whole.includes('"msg":"listening"') && whole.endsWith('}'));
    if (line === undefined) return;
    child.stdout?.off('data', look).resume();
    resolve(JSON.parse(line) as { url: string; admin: string });
  };
  child.stdout?.on('data', look);
  void ended.then((code) => reject(new Error(`the gateway ended with ${String(code)}: ${errorText()}`)));
  return promise;
}

function readMetrics(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

/** The sum over all series of a metric. */
export function sumOf(metrics: ReadonlyMap<string, number>, name: string): number {
  let sum = 0;
  for (const [series, value] of metrics) if (series === name || series.startsWith(`${name}{`)) sum += value;
  return sum;
}
