import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RecordingUpstream } from './recording-upstream.ts';

/** Another proxy in front of an upstream of its own that records bytes. */
export interface Peer {
  readonly version: string;
  readonly port: number;
  readonly upstream: RecordingUpstream;
  stop(): Promise<void>;
}

const nginxConfig = (folder: string, port: number, upstream: number): string => `
daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.err;
events { worker_connections 256; }
http {
  access_log off; client_max_body_size 20m; client_body_temp_path ${folder}/nb; proxy_temp_path ${folder}/np;
  fastcgi_temp_path ${folder}/nf; uwsgi_temp_path ${folder}/nu; scgi_temp_path ${folder}/ns;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://127.0.0.1:${upstream}; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;

const haproxyConfig = (port: number, upstream: number): string => `
global
  nbthread 1
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 5s
frontend f
  bind 127.0.0.1:${port}
  default_backend b
backend b
  server s 127.0.0.1:${upstream}
`;

const varnishConfig = (upstream: number): string => `
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "${upstream}"; }
sub vcl_backend_response { set beresp.uncacheable = true; }
`;

/** Debian's nginx with what a reverse proxy needs and its defaults for the rest. */
export async function startNginx(): Promise<Peer> {
  return startPeer(
    'nginx',
    ['-v'],
    /nginx\/([\d.]+)/,
    (folder, port, upstream) => nginxConfig(folder, port, upstream),
    (file, folder) => ['-c', file, '-p', folder],
  );
}

/** Debian's HAProxy in HTTP mode with its defaults. */
export async function startHaproxy(): Promise<Peer> {
  return startPeer(
    'haproxy',
    ['-v'],
    /version ([\d.]+)/,
    (_folder, port, upstream) => haproxyConfig(port, upstream),
    (file) => ['-db', '-f', file],
  );
}

/** Debian's Varnish, which stores nothing: each request is passed on. */
export async function startVarnish(): Promise<Peer> {
  return startPeer(
    'varnishd',
    ['-V'],
    /varnish-([\d.]+)/,
    (_folder, _port, upstream) => varnishConfig(upstream),
    (file, folder, port) => {
      const bounded = '-F -j none -s malloc,16m -t 0 -p thread_pools=1 -p thread_pool_min=10'.split(' ');
      return [...bounded, '-n', join(folder, 'work'), '-a', `127.0.0.1:${port}`, '-f', file];
    },
  );
}

async function startPeer(
  command: string,
  versionArguments: readonly string[],
  versionIn: RegExp,
  config: (folder: string, port: number, upstream: number) => string,
  commandLine: (file: string, folder: string, port: number) => readonly string[],
): Promise<Peer> {
  const said = spawnSync(command, versionArguments, { encoding: 'utf8' });
  if (said.error !== undefined)
    throw new Error(`${command} is not installed; run \`bash test/integration/install.sh\` first`, {
      cause: said.error,
    });
  const version = `${command} ${versionIn.exec(`${said.stdout}${said.stderr}`)?.[1] ?? '?'}`;
  const upstream = new RecordingUpstream();
  const upstreamPort = await upstream.listen();
  const folder = mkdtempSync(join(tmpdir(), `signalbox-${command}-`));
  const port = await freePort();
  const file = join(folder, 'peer.conf');
  writeFileSync(file, config(folder, port, upstreamPort));
  const child = spawn(command, commandLine(file, folder, port), { stdio: ['ignore', 'ignore', 'pipe'] });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  await listening(port, child, () => `${version} ended: ${err}`);
  return {
    version,
    port,
    upstream,
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null) {
        child.kill('SIGKILL');
        await ended;
      }
      upstream.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function listening(port: number, child: ChildProcess, fault: () => string): Promise<void> {
  const giveUpMs = performance.now() + 15_000;
  for (;;) {
    if (child.exitCode !== null || performance.now() > giveUpMs) throw new Error(fault());
    const socket = connect(port, '127.0.0.1');
    const open = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
