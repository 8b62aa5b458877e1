import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../../../packages/plugin-api/src/index.ts';
import type { Gateway, GatewayOptions, ReloadReport } from '../../../packages/gateway/src/gateway.ts';
import { startGateway } from '../../../packages/gateway/src/gateway.ts';
import type { SimulatedEngine, SimulatedEngineOptions } from '../../../packages/simulator/src/index.ts';
import { createPacer, startSimulatedEngine } from '../../../packages/simulator/src/index.ts';

/** A gateway in this process with a policy file in a folder of its own, and the engines that it routes to. */
export interface Bed {
  readonly gateway: Gateway;
  readonly policyPath: string;
  readonly engines: readonly SimulatedEngine[];
  /** Results of reloads, in order. */
  readonly reloads: readonly ReloadReport[];
  writePolicy(text: string): void;
  /** The path of a file beside the policy. */
  path(name: string): string;
  stop(): Promise<void>;
}

export interface BedOptions {
  /** One simulated engine each. */
  readonly engines: readonly Partial<SimulatedEngineOptions>[];
  /** The policy, given the engines' addresses. */
  readonly policy: (urls: readonly string[]) => string;
  /** Files beside the policy, by name. */
  readonly files?: { readonly [name: string]: string };
  readonly gateway?: Partial<GatewayOptions>;
}

export const FAST: Partial<SimulatedEngineOptions> = {
  speed: { tokensPerSecond: 2000, prefillTokensPerSecond: 200_000 },
};

export async function startBed({ engines: wanted, policy, files = {}, gateway: more = {} }: BedOptions): Promise<Bed> {
  const pacer = createPacer();
  const engines = await Promise.all(
    wanted.map((options) => startSimulatedEngine({ model: 'sim', pacer, ...FAST, ...options })),
  );
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'));
  const policyPath = join(folder, 'policy.route');
  writeFileSync(policyPath, policy(engines.map(({ url }) => url)));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const reloads: ReloadReport[] = [];
  const gateway = await startGateway({
    policyPath,
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    logger: silentLogger,
    onReload: (report) => reloads.push(report),
    ...more,
  });
  return {
    gateway,
    policyPath,
    engines,
    reloads,
    writePolicy: (text) => writeFileSync(policyPath, text),
    path: (name) => join(folder, name),
    async stop() {
      await gateway.stop({ graceMs: 0 });
      await Promise.all(engines.map((engine) => engine.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when the condition holds, looked at on each turn of the event loop; rejects with `what` after `limitMs`. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 10_000,
): Promise<void> {
  const giveUpMs = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > giveUpMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
