import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RecordingUpstream } from '../edge/support/recording-upstream.ts';

export interface Product {
  readonly name: string;
  readonly version: string;
  /** What it offers; a case that needs more is not applicable. */
  readonly offers: ReadonlySet<'catalogue' | 'rename' | 'own-keys' | 'early-head' | 'several-servers'>;
  readonly port: number;
  /** What it routes model `m` to, and `alias` under the name `m`. */
  readonly upstream: RecordingUpstream;
  /** What it spreads model `pair` over, by load: two servers without a metrics page. */
  readonly pair: readonly RecordingUpstream[];
  /** Header lines, each with its line end, that each request needs; `rename` asks that `alias` be sent on as `m`. */
  headers(rename: boolean): string;
  /** The prefix of its own headers, which no client may pass through it. */
  readonly ownHeaderPrefix: string;
  alive(): boolean;
  /** The end of what it wrote to its standard output and error. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts a product, or says why it cannot be had. */
export type Starter = () => Promise<Product>;

const root = fileURLToPath(new URL('../../', import.meta.url));
const PORTKEY = '1.15.2';
/** The version beyond which Portkey's streams hang in its own HTTP server. */
const HONO_SERVER = '1.3.3';
const LITELLM = '1.108.7';

/** Characters of a product's output. */
const OUTPUT_KEPT = 1_000_000;

interface Launch {
  readonly name: string;
  readonly version: string;
  readonly offers: Product['offers'];
  readonly ownHeaderPrefix: string;
  readonly command: string;
  readonly args: (port: number, upstream: number, folder: string, pair: readonly number[]) => readonly string[];
  readonly env?: { readonly [name: string]: string };
  readonly headers: (upstream: number, rename: boolean) => string;
  /** A path that answers 200 as soon as it serves. */
  readonly readyPath: string;
  readonly startMs: number;
}

export async function startSignalbox(): Promise<Product> {
  const manifest = JSON.parse(readFileSync(join(root, 'packages/gateway/package.json'), 'utf8')) as {
    readonly version: string;
  };
  return launch({
    name: 'Signalbox',
    version: manifest.version,
    offers: new Set(['catalogue', 'rename', 'own-keys', 'early-head', 'several-servers']),
    ownHeaderPrefix: 'x-signalbox-',
    command: process.execPath,
    args: (port, upstream, folder, pair) => {
      const policy = join(folder, 'policy.route');
      writeFileSync(
        policy,
        `define gateway { models: ["alias"], early_head: 12s }
define tier "a" { model: "m", endpoints: ["http://127.0.0.1:${upstream}"] }
define tier "pair" { model: "pair", endpoints: ${JSON.stringify(pair.map((one) => `http://127.0.0.1:${one}`))} }
route when model == "pair" to tier "pair" by 0.5 * lowest(kv_cache_used) + 0.5 * least_requests
default to tier "a"
`,
      );
      const main = join(root, 'packages/gateway/src/main.ts');
      const listen = ['--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0'];
      return [
        '--conditions=@signalbox/source',
        '--import',
        import.meta.resolve('tsx'),
        main,
        'serve',
        policy,
        ...listen,
      ];
    },
    headers: () => '',
    readyPath: '/v1/models',
    startMs: 30_000,
  });
}

/** Installs `@portkey-ai/gateway` into `folder` unless it is there, and starts it. */
export async function startPortkey(folder: string): Promise<Product> {
  const home = join(folder, `portkey-${PORTKEY}`);
  const script = join(home, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(script)) {
    mkdirSync(home, { recursive: true });
    const manifest = {
      private: true,
      type: 'module',
      dependencies: { '@portkey-ai/gateway': PORTKEY },
      overrides: { '@hono/node-server': HONO_SERVER },
    };
    writeFileSync(join(home, 'package.json'), JSON.stringify(manifest));
    install('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--silent'], home);
  }
  return launch({
    name: 'Portkey',
    version: `${PORTKEY} (@hono/node-server ${HONO_SERVER})`,
    offers: new Set(['rename']),
    ownHeaderPrefix: 'x-portkey-',
    command: process.execPath,
    args: (port) => [script, `--port=${port}`, '--headless'],
    env: { NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' },
    headers: (upstream, rename) => {
      const host = `http://127.0.0.1:${upstream}/v1`;
      const config = {
        provider: 'openai',
        api_key: 'sk-x',
        custom_host: host,
        ...(rename ? { override_params: { model: 'm' } } : {}),
      };
      return `x-portkey-config: ${JSON.stringify(config)}\r\n`;
    },
    readyPath: '/',
    startMs: 30_000,
  });
}

/** Installs `litellm[proxy]` into a virtual environment in `folder` unless it is there, and starts it. */
export async function startLitellm(folder: string): Promise<Product> {
  const home = join(folder, `litellm-${LITELLM}`);
  const command = join(home, 'bin/litellm');
  if (!existsSync(command)) {
    mkdirSync(folder, { recursive: true });
    install('python3', ['-m', 'venv', home], folder);
    install(
      join(home, 'bin/pip'),
      ['install', '--quiet', '--disable-pip-version-check', `litellm[proxy]==${LITELLM}`],
      folder,
    );
  }
  const key = `sk-${randomBytes(24).toString('hex')}`;
  return launch({
    name: 'LiteLLM',
    version: LITELLM,
    offers: new Set(['catalogue', 'rename', 'own-keys', 'several-servers']),
    ownHeaderPrefix: 'x-litellm-',
    command,
    args: (port, upstream, own, pair) => {
      const model = (name: string, server: number = upstream): object => ({
        model_name: name,
        litellm_params: { model: 'openai/m', api_base: `http://127.0.0.1:${server}/v1`, api_key: 'sk-upstream' },
      });
      const file = join(own, 'config.yaml');
      // JSON is YAML.
      writeFileSync(
        file,
        JSON.stringify({
          model_list: [model('m'), model('alias'), ...pair.map((server) => model('pair', server))],
          router_settings: { routing_strategy: 'least-busy' },
          general_settings: { master_key: key },
        }),
      );
      return ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'];
    },
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_TELEMETRY: 'False' },
    headers: () => `authorization: Bearer ${key}\r\n`,
    readyPath: '/health/liveliness',
    startMs: 90_000,
  });
}

function install(command: string, args: readonly string[], cwd: string): void {
  const { status, error, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 600_000 });
  if (status !== 0)
    throw new Error(`${command} ${args[0]} failed: ${(error?.message ?? stderr).trim().split('\n').at(-1) ?? ''}`);
}

async function launch(plan: Launch): Promise<Product> {
  const upstream = new RecordingUpstream();
  const upstreamPort = await upstream.listen();
  const pair = [new RecordingUpstream(), new RecordingUpstream()];
  const pairPorts = await Promise.all(pair.map((one) => one.listen()));
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-conformance-'));
  const port = await freePort();
  const child = spawn(plan.command, plan.args(port, upstreamPort, folder, pairPorts), {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', ...plan.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const hear = (text: string): void => {
    said = `${said}${text}`.slice(-OUTPUT_KEPT);
  };
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<void> => {
    await end(child);
    for (const one of [upstream, ...pair]) one.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(
      `http://127.0.0.1:${port}${plan.readyPath}`,
      plan.startMs,
      alive,
      () => `${plan.name} did not start: ${said.trim().split('\n').slice(-3).join(' | ')}`,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  const { name, version, offers, ownHeaderPrefix } = plan;
  return {
    name,
    version,
    offers,
    ownHeaderPrefix,
    port,
    upstream,
    pair,
    headers: (rename) => plan.headers(upstreamPort, rename),
    alive,
    output: () => said,
    stop,
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function ready(url: string, limitMs: number, alive: () => boolean, fault: () => string): Promise<void> {
  const giveUpMs = performance.now() + limitMs;
  for (;;) {
    if (!alive() || performance.now() > giveUpMs) throw new Error(fault());
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
