import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ReplayEndpoint } from './fleet.ts';
import { replayModel } from './fleet.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A gateway in a process of its own. */
export interface GatewayProcess {
  readonly url: string;
  readonly pid: number;
  /** Asks it to end, and kills it where it has not within five seconds. */
  stop(): Promise<void>;
}

/** The policy of one run: one tier of the four endpoints with what an operator knows of each, and one scorer. */
export function policyText(
  scorer: string,
  endpoints: readonly (ReplayEndpoint & { readonly url: string })[],
  ports: { readonly listen: number; readonly admin: number },
): string {
  const list = endpoints.map(
    ({ name, url, gpu, gpuCount, maxBatch }) =>
      `    { name: "${name}", url: "${url}", gpu: "${gpu}", gpu_count: ${gpuCount}, max_batch: ${maxBatch} }`,
  );
  return `define gateway { listen: "127.0.0.1:${ports.listen}", admin: "127.0.0.1:${ports.admin}" }

define tier "70B" {
  model: "${replayModel}"
  endpoints: [
${list.join(',\n')}
  ]
}

default to tier "70B" by ${scorer}
`;
}

/** Starts `signalbox serve` on the policy and resolves when it takes requests. Rejects with what it printed if it ends or is not ready in time. */
export async function startGatewayProcess(
  scorer: string,
  endpoints: readonly (ReplayEndpoint & { readonly url: string })[],
): Promise<GatewayProcess> {
  const [listen, admin] = await freePorts();
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-replay-'));
  const file = join(folder, 'replay.route');
  writeFileSync(file, policyText(scorer, endpoints, { listen, admin }));
  const child = spawn(
    process.execPath,
    ['--conditions=@signalbox/source', '--import', 'tsx', 'packages/gateway/src/main.ts', 'serve', file],
    { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed = (printed + chunk.toString()).slice(-4000)));
  const stop = async (): Promise<void> => {
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(`http://127.0.0.1:${admin}/readyz`, child);
  } catch (error) {
    await stop();
    throw new Error(`the gateway did not start (${(error as Error).message}); it printed:\n${printed}`, {
      cause: error,
    });
  }
  return { url: `http://127.0.0.1:${listen}`, pid: child.pid ?? 0, stop };
}

async function ready(url: string, child: ChildProcess): Promise<void> {
  const limitMs = 30_000;
  const giveUpMs = performance.now() + limitMs;
  while (performance.now() < giveUpMs) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`);
    const ok = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not ready within ${limitMs} ms`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // An interrupt: no request is open, and a SIGTERM would first wait for load balancers.
  child.kill('SIGINT');
  const killer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await ended;
  clearTimeout(killer);
}

/** Two ports of 127.0.0.1 that were free a moment ago. */
async function freePorts(): Promise<readonly [number, number]> {
  const servers = [createServer(), createServer()] as const;
  const ports = [0, 0] as [number, number];
  for (const [i, server] of servers.entries()) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ports[i] = (server.address() as AddressInfo).port;
  }
  for (const server of servers) {
    server.close();
    await once(server, 'close');
  }
  return ports;
}
