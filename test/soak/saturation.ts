/** The rate at which gateway, endpoints and client together have no time left on this machine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { editAt, replaceFile, TIERS } from './policies.ts';
import { startDriver, startUpstreams } from './support/driver.ts';
import { startGateway } from './support/gateway-under-test.ts';

const FIRST_RATE = 100;
const LAST_RATE = 12_800;
const STEP_MS = 5000;
/** A rate is carried if so much of what was sent had been answered, and the gateway had so much of its core left. */
const ANSWERED_SHARE = 0.97;
const BUSY_SHARE = 0.9;
/** Two seconds are what the longest stream takes. */
const TAIL_SECONDS = 2;

/** Doubles the rate of the mix until it is no longer carried, and gives that rate. */
export async function saturatingRate(say: (step: string) => void): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-saturation-'));
  const policyPath = join(folder, 'soak.route');
  const upstreams = await startUpstreams([...TIERS, ...TIERS]);
  replaceFile(policyPath, editAt(0, upstreams.urls).text);
  const gateway = await startGateway({ policyPath });
  try {
    for (let rate = FIRST_RATE; rate <= LAST_RATE; rate *= 2) {
      const cpuBefore = gateway.cpuUs();
      const beganMs = performance.now();
      const driver = startDriver({ kind: 'load', port: gateway.port, rate, firstSeed: 1 });
      await sleep(STEP_MS);
      driver.stop();
      const busy = (gateway.cpuUs() - cpuBefore) / 1000 / (performance.now() - beganMs);
      const { whole, left, faults } = await driver.done;
      const seconds = (performance.now() - beganMs) / 1000;
      const answered = (whole + left) / (rate * (STEP_MS / 1000));
      say(
        `${rate} requests/s: ${(answered * 100).toFixed(0)} % sent and answered, ${faults} failed, gateway ${(busy * 100).toFixed(0)} % of a core`,
      );
      if (answered < ANSWERED_SHARE || faults > 0 || busy > BUSY_SHARE || seconds > STEP_MS / 1000 + TAIL_SECONDS)
        return rate;
    }
    return LAST_RATE;
  } finally {
    await gateway.stop();
    await upstreams.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
