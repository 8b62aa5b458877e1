/** The gateways that are compared: how each is started in front of the mock's ports. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
  /** What stands behind the name, for the page. */
  readonly description: string;
  /** Why it cannot run here, and what to do about it; undefined if it can. */
  missing(): string | undefined;
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
  description: 'the load generator on the mock itself: the ceiling of the harness',
  missing: () => undefined,
  prepare: () => undefined,
};

const nginx: Subject = {
  name: 'nginx',
  description: 'one worker, `least_conn`, upstream keep-alive, no access log, `proxy_buffering off`',
  missing: () => describeMissing(['nginx']),
  prepare(place) {
    const servers = place.endpointPorts.map((port) => `    server 127.0.0.1:${port};`).join('\n');
    const values = { DIRECTORY: place.directory, PORT: place.port, SERVERS: servers };
    const path = writeConfiguration(place, 'nginx.conf', fromTemplate('nginx.conf.template', values));
    return { file: findProgram('nginx') ?? 'nginx', args: ['-c', path, '-p', place.directory, '-e', 'stderr'] };
  },
};

const haproxy: Subject = {
  name: 'haproxy',
  description: 'one thread, `leastconn`, `http-reuse always`, no log',
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

const bareRelay: Subject = {
  name: 'bare relay',
  description: '`bare-relay.ts`: node:http, undici `Pool.dispatch`, bytes passed on unread, under the same Node',
  missing: () => undefined,
  prepare: (place) => ({
    file: process.execPath,
    args: [
      fileURLToPath(new URL('bare-relay.ts', import.meta.url)),
      String(place.port),
      ...place.endpointPorts.map(String),
    ],
    env: PRODUCTION,
  }),
};

const built = join(repository, 'packages/gateway/dist/main.js');
const source = join(repository, 'packages/gateway/src/main.ts');

function signalbox(name: string, description: string, main: string, nodeOptions: readonly string[]): Subject {
  return {
    name,
    description,
    missing: () => (existsSync(main) ? undefined : `${main} is not there: npm run build`),
    prepare(place) {
      const endpoints = place.endpointPorts.map((port) => `"http://127.0.0.1:${port}"`).join(', ');
      const values = { PORT: place.port, ADMIN_PORT: place.adminPort, ENDPOINTS: endpoints };
      const path = writeConfiguration(place, 'five-rules.route', fromTemplate('five-rules.route.template', values));
      return { file: process.execPath, args: [...nodeOptions, main, 'serve', path], env: PRODUCTION };
    },
  };
}

/** By name, in the order of the tables. */
export const SUBJECTS: readonly Subject[] = [
  direct,
  nginx,
  haproxy,
  bareRelay,
  signalbox(
    'signalbox',
    '`signalbox serve` as built, the policy of `five-rules.route.template`, one worker',
    built,
    [],
  ),
  signalbox('signalbox (source)', 'the same, run from TypeScript sources', source, ['--conditions=@signalbox/source']),
];
