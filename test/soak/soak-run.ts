/** Load on a real gateway while its policy is replaced again and again, with samples of what it holds. */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDriver, startUpstreams, type Tally } from './support/driver.ts';
import { startInspectedGateway, sumOf, type InspectedGateway } from './support/gateway-under-test.ts';
import { editAt, replaceFile, TIERS } from './policies.ts';

export interface SoakOptions {
  /** Requests of the mix each second. */
  readonly rate: number;
  /** Streams of a token each `heldPaceMs` that are open all the time. */
  readonly heldStreams: number;
  /** The soak ends after this time, or after this many edits of the policy, whichever comes last. */
  readonly seconds: number;
  readonly edits: number;
  /** Time between edits; an edit is never made before the one before it has come to its end. */
  readonly editEveryMs: number;
  readonly sampleEveryMs: number;
  /** From sources, for tests that need no build. */
  readonly fromSource?: boolean;
  /** Where each sample is added as a line of JSON. */
  readonly samplesPath?: string;
  readonly onSample?: (sample: Sample) => void;
}

/** What the gateway held at one moment, after a full collection. Bytes. */
export interface Sample {
  readonly seconds: number;
  readonly heapUsed: number;
  readonly external: number;
  readonly rss: number;
  readonly descriptors: number;
  /** Handles and requests of the event loop. */
  readonly active: number;
  readonly inflight: number;
  readonly requests: number;
  readonly reloads: number;
}

export interface SoakResult {
  readonly samples: readonly Sample[];
  readonly load: Tally;
  readonly held: Tally;
  /** Before the load, and when all of it had ended. */
  readonly idleBefore: Sample;
  readonly idleAfter: Sample;
  readonly editsMade: number;
  readonly editsRefused: number;
  /** All that was not as it must be, apart from growth; empty if nothing was. */
  readonly faults: readonly string[];
}

const HELD_TOKENS = 60;
const HELD_PACE_MS = 250;
/** Connections to endpoints are closed after 4 s without use. */
const IDLE_MS = 6000;
const IN_FORCE_LIMIT_MS = 10_000;
const IN_FORCE_LOOK_MS = 10;

export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-soak-'));
  const policyPath = join(folder, 'soak.route');
  const upstreams = await startUpstreams([...TIERS, ...TIERS]);
  let gateway: InspectedGateway | undefined;
  try {
    replaceFile(policyPath, editAt(0, upstreams.urls).text);
    gateway = await startInspectedGateway({ policyPath, fromSource: options.fromSource ?? false });
    return await new Soak(options, gateway, policyPath, upstreams.urls).run();
  } finally {
    await gateway?.stop();
    await upstreams.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Soak {
  readonly #options: SoakOptions;
  readonly #gateway: InspectedGateway;
  readonly #policyPath: string;
  readonly #urls: readonly string[];
  readonly #beganMs = performance.now();
  readonly #samples: Sample[] = [];
  readonly #faults: string[] = [];
  /** The tier that each version sends requests to. */
  readonly #tierOf = new Map<string, string>();
  #editsMade = 0;
  #editsRefused = 0;

  constructor(options: SoakOptions, gateway: InspectedGateway, policyPath: string, urls: readonly string[]) {
    this.#options = options;
    this.#gateway = gateway;
    this.#policyPath = policyPath;
    this.#urls = urls;
  }

  async run(): Promise<SoakResult> {
    const { rate, heldStreams } = this.#options;
    const { port } = this.#gateway;
    this.#tierOf.set((await this.#gateway.policy()).policy, 'north');
    const idleBefore = await this.#sample();
    const load = startDriver({ kind: 'load', port, rate, firstSeed: 1 });
    const held = startDriver({
      kind: 'streams',
      port,
      streams: heldStreams,
      perSecond: 200,
      tokens: HELD_TOKENS,
      paceMs: HELD_PACE_MS,
      firstSeed: 1_000_000_000,
      again: true,
    });
    const tallies = Promise.all([load.done, held.done]);
    await Promise.race([tallies, this.#work()]);
    load.stop();
    held.stop();
    const [loadTally, heldTally] = await tallies;
    await sleep(IDLE_MS);
    const idleAfter = await this.#sample();
    await this.#check(loadTally, heldTally);
    return {
      samples: this.#samples,
      load: loadTally,
      held: heldTally,
      idleBefore,
      idleAfter,
      editsMade: this.#editsMade,
      editsRefused: this.#editsRefused,
      faults: this.#faults,
    };
  }

  /** Edits and takes samples until it has been long enough. */
  async #work(): Promise<void> {
    const { seconds, edits, editEveryMs, sampleEveryMs, samplesPath, onSample } = this.#options;
    const untilMs = this.#now() + seconds * 1000;
    let editing = Promise.resolve();
    let editAtMs = this.#now();
    let sampleAtMs = this.#now() + sampleEveryMs;
    while (this.#now() < untilMs || this.#editsMade < edits) {
      if (this.#now() >= editAtMs) {
        await editing;
        editAtMs = Math.max(editAtMs + editEveryMs, this.#now());
        editing = this.#edit();
      }
      if (this.#now() >= sampleAtMs) {
        sampleAtMs += sampleEveryMs;
        const sample = await this.#sample();
        this.#samples.push(sample);
        if (samplesPath !== undefined) appendFileSync(samplesPath, `${JSON.stringify(sample)}\n`);
        onSample?.(sample);
      }
      await sleep(Math.max(1, Math.min(editAtMs, sampleAtMs, untilMs) - this.#now()));
    }
    await editing;
  }

  #now(): number {
    return performance.now() - this.#beganMs;
  }

  /** Replaces the policy, and waits until it is in force; or, if it must be refused, until it was. */
  async #edit(): Promise<void> {
    const number = ++this.#editsMade;
    const edit = editAt(number, this.#urls);
    const before = await this.#gateway.policy();
    const failuresBefore = await this.#refusals();
    replaceFile(this.#policyPath, edit.text);
    const giveUpMs = this.#now() + IN_FORCE_LIMIT_MS;
    while (this.#now() < giveUpMs) {
      await sleep(IN_FORCE_LOOK_MS);
      const after = await this.#gateway.policy();
      if (edit.tier === undefined) {
        if ((await this.#refusals()) === failuresBefore) continue;
        this.#editsRefused++;
        if (after.policy !== before.policy)
          this.#faults.push(`edit ${number} is broken, and changed the policy in force`);
        return;
      }
      if (after.policy === before.policy) continue;
      this.#tierOf.set(after.policy, edit.tier);
      return;
    }
    this.#faults.push(`edit ${number} was not seen within ${IN_FORCE_LIMIT_MS} ms`);
  }

  async #refusals(): Promise<number> {
    return sumOf(await this.#gateway.metrics(), 'signalbox_config_reload_failures_total');
  }

  async #sample(): Promise<Sample> {
    const { heapUsed, external } = await this.#gateway.inspector.memoryAfterCollection();
    const active = await this.#gateway.inspector.evaluate('process.getActiveResourcesInfo().length');
    const metrics = await this.#gateway.metrics();
    return {
      seconds: Math.round(this.#now()) / 1000,
      heapUsed,
      external,
      rss: this.#gateway.residentBytes(),
      descriptors: this.#gateway.descriptors(),
      active: Number(active),
      inflight: sumOf(metrics, 'signalbox_inflight_requests'),
      requests: sumOf(metrics, 'signalbox_requests_total'),
      reloads: sumOf(metrics, 'signalbox_config_reloads_total'),
    };
  }

  /** What must hold when all requests have ended. */
  async #check(...tallies: readonly Tally[]): Promise<void> {
    for (const { faults, faultTexts } of tallies)
      if (faults > 0) this.#faults.push(`${faults} requests failed:`, ...faultTexts);
    for (const { byVersion } of tallies) {
      for (const [version, count] of Object.entries(byVersion)) {
        const [policy = '', tier] = version.split(' ');
        if (this.#tierOf.get(policy) !== tier)
          this.#faults.push(
            `${count} requests of policy "${policy}" went to tier "${tier}", not "${this.#tierOf.get(policy)}"`,
          );
      }
    }
    const metrics = await this.#gateway.metrics();
    for (const name of ['inflight_requests', 'inflight_tokens', 'queue_size', 'lease_leak_total']) {
      const value = sumOf(metrics, `signalbox_${name}`);
      if (value !== 0) this.#faults.push(`${name} is ${value} when all requests have ended, not 0`);
    }
    // A client that leaves before its request was read whole is not counted.
    const sent = tallies.reduce((sum, { whole, left, faults }) => sum + whole + left + faults, 0);
    const counted = sumOf(metrics, 'signalbox_requests_total');
    const left = tallies.reduce((sum, tally) => sum + tally.left, 0);
    if (counted > sent || counted < sent - left)
      this.#faults.push(`${counted} requests were counted of ${sent} that were sent`);
  }
}
