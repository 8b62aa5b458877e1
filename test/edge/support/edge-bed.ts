import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import {
  startGateway,
  type Gateway,
  type GatewayOptions,
  type ReloadReport,
} from '../../../packages/gateway/src/gateway.ts';
import { silentLogger } from '../../../packages/plugin-api/src/index.ts';
import { RecordingUpstream } from './recording-upstream.ts';

export const CHAT = '/v1/chat/completions';
export const BODY = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';

/** A gateway as `serve` runs it, in front of an upstream that records bytes. */
export interface EdgeBed {
  readonly gateway: Gateway;
  readonly port: number;
  readonly adminPort: number;
  readonly upstream: RecordingUpstream;
  /** Where the policy and the files beside it are. */
  readonly folder: string;
  /** Writes the policy anew and has it read. */
  reload(options: EdgePolicy): Promise<ReloadReport>;
  stop(): Promise<void>;
}

export interface EdgePolicy {
  /** What stands in `define gateway`. */
  readonly gateway?: string;
  /** More statements before the default route. */
  readonly statements?: string;
}

export interface EdgeBedOptions extends EdgePolicy, Partial<Omit<GatewayOptions, 'policyPath'>> {
  /** Files beside the policy, by name. */
  readonly files?: { readonly [name: string]: string };
}

export async function startEdgeBed({
  gateway: keys = '',
  statements = '',
  files = {},
  ...options
}: EdgeBedOptions = {}): Promise<EdgeBed> {
  const upstream = new RecordingUpstream();
  await upstream.listen();
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-edge-'));
  const policyPath = join(folder, 'policy.route');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const write = (policy: EdgePolicy): void =>
    writeFileSync(
      policyPath,
      `define gateway { ${policy.gateway ?? ''} }\n${policy.statements ?? ''}\ndefine tier "a" { model: "m", endpoints: ["http://127.0.0.1:${upstream.port}"] }\ndefault to tier "a"\n`,
    );
  write({ gateway: keys, statements });
  const gateway = await startGateway({
    policyPath,
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    logger: silentLogger,
    ...options,
  });
  const port = Number(new URL(gateway.url).port);
  return {
    gateway,
    port,
    adminPort: Number(new URL(gateway.adminUrl).port),
    upstream,
    folder,
    reload: (policy) => {
      write(policy);
      return gateway.reload();
    },
    async stop() {
      await gateway.stop({ graceMs: 0 });
      upstream.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Asserts that nothing is left behind: no lease, no lease fault, and an answer for a clean request. */
export async function expectQuiet({ gateway, upstream }: EdgeBed): Promise<void> {
  const answer = await fetch(`${gateway.url}${CHAT}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: BODY,
  });
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  await expect.poll(() => gateway.inflight()).toBe(0);
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(/^signalbox_lease_leak_total 0$/m);
  upstream.take();
}

/** A chat request with these header lines (each with its line end) and this body. */
export function post(lines = '', body: string = BODY, target: string = CHAT): string {
  return `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body, 'latin1')}\r\n${lines}\r\n${body}`;
}

export function errorOf(body: string): { readonly code: string; readonly type: string; readonly message: string } {
  return (
    JSON.parse(body) as { readonly error: { readonly code: string; readonly type: string; readonly message: string } }
  ).error;
}
