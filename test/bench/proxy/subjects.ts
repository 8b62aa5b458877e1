/** The gateways that are compared: how each is started in front of the mock's ports. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProxyMode } from './modes.ts';
import type { Command } from './processes.ts';
import { describeMissing, findProgram } from './tools.ts';

export interface Place {
  /** Port that the subject listens on. */
  readonly port: number;
  /** A second free port, for subjects that have an admin listener. */
  readonly adminPort: number;
  readonly endpointPorts: readonly number[];
  /** A directory of its own. */
  readonly directory: string;
}

export interface Subject {
  readonly name: string;
  /** `always`: a run without it is an error; `ifPresent`: left out where it is not installed; `asked`: only by `--subjects`. */
  readonly takesPart: 'always' | 'ifPresent' | 'asked';
  /** Modes in which it says something; all where absent. */
  readonly modes?: readonly ProxyMode[];
  /** Why it cannot run here, and what to do about it; undefined if it can. */
  missing(): string | undefined;
  /** Header lines that its clients must send. */
  readonly headers?: (place: Place) => readonly string[];
  /** Share of the usual number of replies and frames, for subjects so slow that a round would take minutes. */
  readonly effort?: number;
  /** The command that starts it; undefined for the mock itself. */
  prepare(place: Place): Command | undefined;
}

const repository = fileURLToPath(new URL('../../../', import.meta.url));

function fromTemplate(file: string, values: Readonly<Record<string, string | number>>): string {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8');
  return text.replaceAll(/@@(\w+)@@/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${file} names @@${name}@@, which has no value`);
    return String(value);
  });
}

function writeConfiguration(place: Place, name: string, text: string): string {
  mkdirSync(place.directory, { recursive: true });
  const path = join(place.directory, name);
  writeFileSync(path, text);
  return path;
}

const PRODUCTION = { NODE_ENV: 'production' };

const direct: Subject = {
  name: 'direct',
  takesPart: 'always',
  modes: ['json', 'sse', 'latency'],
  missing: () => undefined,
  prepare: () => undefined,
};

function nginxCommand(place: Place, configuration: string): Command {
  const path = writeConfiguration(place, 'nginx.conf', configuration);
  return { file: findProgram('nginx') ?? 'nginx', args: ['-c', path, '-p', place.directory, '-e', 'stderr'] };
}

const nginx: Subject = {
  name: 'nginx',
  takesPart: 'always',
  missing: () => describeMissing(['nginx']),
  prepare(place) {
    const servers = place.endpointPorts.map((port) => `    server 127.0.0.1:${port};`).join('\n');
    const values = { DIRECTORY: place.directory, PORT: place.port, SERVERS: servers };
    return nginxCommand(place, fromTemplate('nginx.conf.template', values));
  },
};

const nginxLua: Subject = {
  name: 'nginx + Lua',
  takesPart: 'ifPresent',
  missing: () => {
    if (
      ['/usr/lib/nginx/modules/ngx_http_lua_module.so', '/usr/share/lua/5.1/cjson'].every((path) => existsSync(path))
    ) {
      return describeMissing(['nginx']);
    }
    return 'the Lua module or cjson is missing; in Debian: apt-get install -y --no-install-recommends libnginx-mod-http-lua lua-cjson';
  },
  prepare(place) {
    const values = { DIRECTORY: place.directory, PORT: place.port, PORTS: place.endpointPorts.join(', ') };
    return nginxCommand(place, fromTemplate('nginx-lua.conf.template', values));
  },
};

const haproxy: Subject = {
  name: 'haproxy',
  takesPart: 'ifPresent',
  missing: () => describeMissing(['haproxy']),
  prepare(place) {
    const servers = place.endpointPorts.map((port) => `  server s${port} 127.0.0.1:${port} maxconn 6000`).join('\n');
    const path = writeConfiguration(
      place,
      'haproxy.cfg',
      fromTemplate('haproxy.cfg.template', { PORT: place.port, SERVERS: servers }),
    );
    return { file: findProgram('haproxy') ?? 'haproxy', args: ['-db', '-f', path] };
  },
};

interface ScriptOptions {
  readonly takesPart: Subject['takesPart'];
  readonly modes?: readonly ProxyMode[];
  readonly file: string;
  readonly nodeOptions?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A script of this folder that takes its port and the endpoints' as arguments. */
function ownScript(name: string, { takesPart, modes, file, nodeOptions = [], env = {} }: ScriptOptions): Subject {
  const script = fileURLToPath(new URL(file, import.meta.url));
  return {
    name,
    takesPart,
    ...(modes === undefined ? {} : { modes }),
    missing: () => undefined,
    prepare: (place) => ({
      file: process.execPath,
      args: [...nodeOptions, script, String(place.port), ...place.endpointPorts.map(String)],
      env: { ...PRODUCTION, ...env },
    }),
  };
}

const SOURCE_OPTIONS = ['--conditions=@signalbox/source'];
const netRelay = ownScript('raw net', { takesPart: 'always', file: 'net-relay.ts' });
const bareRelay = ownScript('bare relay', { takesPart: 'always', file: 'bare-relay.ts' });
const readingRelay = ownScript('reading relay', {
  takesPart: 'always',
  modes: ['json'],
  file: 'bare-relay.ts',
  env: { READ_BODY: '1' },
});
const dataPlane = ownScript('data plane', { takesPart: 'asked', file: 'data-plane.ts', nodeOptions: SOURCE_OPTIONS });

const portkeyMain = fileURLToPath(
  new URL('portkey/node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url),
);

const portkey: Subject = {
  name: 'portkey',
  takesPart: 'ifPresent',
  missing: () =>
    existsSync(portkeyMain)
      ? undefined
      : 'it is not installed: npm install --ignore-scripts --prefix test/bench/proxy/portkey',
  prepare: (place) => ({
    file: process.execPath,
    args: [portkeyMain, `--port=${place.port}`, '--headless'],
    env: { ...PRODUCTION, TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' },
  }),
  headers: (place) => [
    'x-portkey-provider: openai',
    `x-portkey-custom-host: http://127.0.0.1:${place.endpointPorts[0]}/v1`,
  ],
  effort: 0.2,
};

const built = join(repository, 'packages/gateway/dist/main.js');
const source = join(repository, 'packages/gateway/src/main.ts');

interface SignalboxOptions {
  readonly name: string;
  readonly takesPart: Subject['takesPart'];
  readonly main: string;
  readonly nodeOptions?: readonly string[];
  readonly options?: readonly string[];
}

function signalbox({ name, takesPart, main, nodeOptions = [], options = [] }: SignalboxOptions): Subject {
  return {
    name,
    takesPart,
    missing: () => (existsSync(main) ? undefined : `${main} is not there: npm run build`),
    prepare(place) {
      const endpoints = place.endpointPorts.map((port) => `"http://127.0.0.1:${port}"`).join(', ');
      const values = { PORT: place.port, ADMIN_PORT: place.adminPort, ENDPOINTS: endpoints };
      const path = writeConfiguration(place, 'five-rules.route', fromTemplate('five-rules.route.template', values));
      return { file: process.execPath, args: [...nodeOptions, main, 'serve', path, ...options], env: PRODUCTION };
    },
  };
}

/** By name, in the order of the tables; docs/performance.md says what each is. */
export const SUBJECTS: readonly Subject[] = [
  direct,
  nginx,
  nginxLua,
  haproxy,
  netRelay,
  bareRelay,
  portkey,
  readingRelay,
  dataPlane,
  signalbox({ name: 'signalbox', takesPart: 'always', main: built }),
  signalbox({ name: 'signalbox (quiet)', takesPart: 'asked', main: built, options: ['--log-level', 'error'] }),
  signalbox({ name: 'signalbox (source)', takesPart: 'asked', main: source, nodeOptions: SOURCE_OPTIONS }),
];
