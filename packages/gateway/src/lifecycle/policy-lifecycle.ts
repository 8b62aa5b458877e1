import type { Core, PolicyVersion } from '@signalbox/core';
import type { Clock, Logger, Plugin } from '@signalbox/plugin-api';
import { SignalboxError } from '@signalbox/plugin-api';
import type { PolicyProgram } from '@signalbox/policy';
import { hasErrors, toJsonReport } from '@signalbox/policy';
import type { DecisionRecord } from '@signalbox/telemetry';
import type { LoadedPolicy, PolicyLoader, PolicyTexts } from '../policy/load-policy.ts';
import { findingsText } from '../policy/load-policy.ts';
import type { FailedTest, GateReport } from '../policy-tests/policy-gate.ts';
import type { CanaryFault, CanaryFigures, CanaryJudge, CanaryRules } from './canary-judge.ts';
import { createCanaryJudge } from './canary-judge.ts';
import type { ShadowFigures, ShadowReport } from './shadow-report.ts';
import { createShadowReport } from './shadow-report.ts';
import type { KeptVersion, VersionFile, VersionOrigin, VersionStore } from './version-store.ts';
import { createVersionStore, filesOf } from './version-store.ts';

/** What the rest of the gateway does for a change of policy. */
export interface LifecycleHost<Equipment> {
  /** Reads what a program asks for beside routing: keys, certificates. Throws a SignalboxError if they are not in order. */
  equip(program: PolicyProgram): Equipment;
  /** A version is in force, with what it asks for. */
  enforced(version: PolicyVersion, equipment: Equipment): void;
  /** The version in force stays; what it asks for was read again. */
  refreshed(equipment: Equipment): void;
  /** These files are what the policy is made of now. */
  follow(loaded: LoadedPolicy): void;
  importPlugins(loaded: LoadedPolicy): Promise<readonly Plugin[]>;
  test(loaded: LoadedPolicy): Promise<GateReport>;
  /** The program with what stands in place of parts of it. */
  transform(program: PolicyProgram): Promise<PolicyProgram>;
  /** Something came of a policy other than by a call: a sentence. */
  tell(text: string): void;
}

export interface LifecycleOptions<Equipment> {
  readonly core: Core;
  readonly loader: PolicyLoader;
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly colour: boolean;
  readonly host: LifecycleHost<Equipment>;
}

/** What a change is made against: a condition that fails if something else changed in between. */
export interface Expectation {
  /** Entity tags of `If-Match`; `*` stands for any. */
  readonly tags?: readonly string[];
  readonly generation?: number;
}

/** Thrown (412) where something changed in between; `current` is how things stand. */
export class PolicyConflict extends SignalboxError {
  readonly current: PolicyState;

  constructor(current: PolicyState) {
    super(
      `the policy was changed by somebody else: ${current.policy} (generation ${current.generation}, tag ${current.etag}) is in force. Look at it, and try again`,
      { code: 'policy_changed', source: 'client', status: 412 },
    );
    this.current = current;
  }
}

/** Thrown (422) for texts that are not put on trial: they have errors, or fail their tests. */
export class TextsRefused extends SignalboxError {
  readonly diagnostics: readonly unknown[];
  readonly failedTests: readonly FailedTest[];
  readonly text: string;

  constructor(text: string, diagnostics: readonly unknown[], failedTests: readonly FailedTest[]) {
    super(`the policy is refused:\n${text.trimEnd()}`, { code: 'policy_refused', source: 'client', status: 422 });
    this.text = text;
    this.diagnostics = diagnostics;
    this.failedTests = failedTests;
  }
}

/** How things stand, in short. */
export interface PolicyState {
  readonly policy: string;
  readonly generation: number;
  /** Changes with every change of versions, pin and trials. */
  readonly etag: string;
  readonly pinned: boolean;
  /** The version of the policy file, where it waits for the pin to be taken away. */
  readonly held: string | null;
  readonly canary: string | null;
  readonly shadow: string | null;
}

/** What a change came to. */
export interface ChangeReport extends PolicyState {
  readonly changed: boolean;
  /** Findings of the policy and notes, as people read them. */
  readonly text: string;
}

export type VersionState = 'in_force' | 'canary' | 'shadow' | 'held' | 'retiring' | 'kept';

export interface VersionRow {
  readonly id: string;
  readonly state: VersionState;
  readonly pinned: boolean;
  readonly generation: number;
  readonly origin: VersionOrigin | null;
  readonly since: string | null;
  readonly inForceSince: string | null;
  /** Requests under way that it holds. */
  readonly requests: number;
  readonly decided: number;
  readonly files: readonly VersionFile[];
}

export interface VersionDetail extends VersionRow {
  readonly sources: { readonly [path: string]: string };
}

export interface CanaryOrder extends CanaryRules {
  readonly texts: PolicyTexts;
  readonly share: number;
}

export interface CanaryStatus {
  readonly policy: string;
  readonly generation: number;
  readonly share: number;
  readonly since: string;
  readonly rules: CanaryRules;
  /** `passed` once the whole time is over with requests enough and nothing amiss. */
  readonly state: 'running' | 'passed' | 'rolled_back' | 'promoted' | 'aborted' | 'overtaken';
  /** Why it was rolled back. */
  readonly fault: CanaryFault | null;
  readonly figures: CanaryFigures;
}

export interface ShadowStatus extends ShadowFigures {
  readonly policy: string;
  readonly since: string;
  readonly running: boolean;
}

/** What a reload came to, beside how things stand. */
export interface LoadOutcome {
  readonly ok: boolean;
  /** Whether another version is in force than before. */
  readonly changed: boolean;
  readonly diagnostics: readonly unknown[];
  readonly failedTests: readonly FailedTest[];
  readonly text: string;
  /** The version that waits for the pin to be taken away. */
  readonly held: string | null;
}

/** For metrics. */
export interface LifecycleFigures {
  readonly versions: { readonly [state in 'in_force' | 'canary' | 'shadow' | 'retiring']: number };
  readonly retiringRequests: number;
  readonly pinned: boolean;
  readonly canaryRequests: readonly {
    readonly version: 'in_force' | 'canary';
    readonly outcome: 'ok' | 'error';
    readonly count: number;
  }[];
  readonly canaryRollbacks: { readonly [reason in CanaryFault['reason']]: number };
  readonly shadowDecisions: { readonly [outcome in 'agreed' | 'moved' | 'failed']: number };
  readonly shadowSeconds: number;
}

/** Versions whose texts and programs are kept, and the characters that these may have together. */
const MOST_VERSIONS = 10;
const MOST_CHARACTERS = 16 * 2 ** 20;

interface RunningCanary {
  readonly version: PolicyVersion;
  readonly kept: KeptVersion;
  readonly order: CanaryOrder;
  readonly since: string;
  readonly sinceMs: number;
  readonly judge: CanaryJudge;
}

interface Prepared {
  readonly version: PolicyVersion;
  readonly kept: KeptVersion;
}

/**
 * Which policy version decides: loads, tests and puts versions in force, keeps the last ones for a way back, and runs those on trial.
 * Changes happen one after another.
 */
export class PolicyLifecycle<Equipment> {
  readonly #core: Core;
  readonly #loader: PolicyLoader;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #colour: boolean;
  readonly #host: LifecycleHost<Equipment>;
  readonly #store: VersionStore;
  #changes: Promise<unknown> = Promise.resolve();
  #revision = 0;
  #pinned = false;
  #held: string | undefined;
  /** Id of what the policy file held when it was last acted upon: the same again, read for the sake of a key file, is no reason to act. */
  #inFile = '';
  /** The other texts that the policy was made of when it was last read. */
  #imported: readonly (string | undefined)[] = [];
  #canary: RunningCanary | undefined;
  #lastCanary: CanaryStatus | undefined;
  #shadow: { readonly kept: KeptVersion; readonly since: string; readonly report: ShadowReport } | undefined;
  #lastShadow: ShadowStatus | undefined;
  readonly #canaryCounts = { in_force: { ok: 0, error: 0 }, canary: { ok: 0, error: 0 } };
  readonly #rollbacks = { error_rate: 0, ttft: 0 };
  readonly #shadowCounts = { agreed: 0, moved: 0, failed: 0 };
  #shadowMs = 0;

  constructor({ core, loader, path, clock, logger, colour, host }: LifecycleOptions<Equipment>) {
    this.#core = core;
    this.#loader = loader;
    this.#path = path;
    this.#clock = clock;
    this.#logger = logger;
    this.#colour = colour;
    this.#host = host;
    this.#store = createVersionStore({
      most: MOST_VERSIONS,
      mostCharacters: MOST_CHARACTERS,
      now: () => this.#timestamp(),
      needed: (id) => id === this.#core.active?.id || id === this.#held || this.#trials().includes(id),
    });
  }

  // --- what the policy file says

  /** Puts the first version in force: it was loaded without errors. Gives the gate's report, with `passed` false where nothing was done. */
  async start(loaded: LoadedPolicy): Promise<GateReport> {
    const equipment = this.#host.equip(programOf(loaded));
    this.#host.follow(loaded);
    this.#remember(loaded);
    this.#inFile = programOf(loaded).hash;
    const gate = await this.#host.test(loaded);
    if (gate.passed) this.#enforce(await this.#prepare(loaded, 'start'), equipment);
    return gate;
  }

  /** Reads the policy file again. `file`: because one of its files changed. */
  reload(origin: 'file' | 'sighup' | 'admin', expected?: Expectation): Promise<LoadOutcome> {
    return this.#exclusive(expected, () => this.#reload(origin));
  }

  async #reload(origin: 'file' | 'sighup' | 'admin' | 'unpin'): Promise<LoadOutcome> {
    const loaded = await this.#loader.loadAside(this.#path, this.#imported);
    this.#host.follow(loaded);
    this.#remember(loaded);
    refuseEmpty(this.#path, loaded);
    const text = findingsText(loaded, this.#colour);
    const outcome: LoadOutcome = {
      ok: true,
      changed: false,
      diagnostics: toJsonReport(loaded.diagnostics, loaded.sources).diagnostics,
      failedTests: [],
      text,
      held: this.#held ?? null,
    };
    if (loaded.program === undefined || hasErrors(loaded.diagnostics)) return { ...outcome, ok: false };
    const { hash } = loaded.program;
    const id = idOf(hash);
    const isOld = origin === 'file' && hash === this.#inFile;
    if (id === this.#core.active?.id || isOld || (this.#pinned && id === this.#held)) {
      const inForce = this.#core.active?.program ?? loaded.program;
      this.#host.refreshed(this.#host.equip(id === this.#core.active?.id ? loaded.program : inForce));
      if (id === this.#core.active?.id) this.#hold(undefined);
      this.#inFile = hash;
      return { ...outcome, held: this.#held ?? null };
    }
    const equipment = this.#host.equip(loaded.program);
    const gate = await this.#host.test(loaded);
    if (!gate.passed) return { ...outcome, ok: false, text: text + gate.text, failedTests: gate.failed };
    const prepared = await this.#prepare(loaded, origin);
    this.#inFile = hash;
    if (this.#pinned) {
      this.#core.discard(prepared.version);
      this.#hold(id);
      this.#logger.warn('the policy file has a new version, which is held back: a version is pinned', {
        policy: this.#core.active?.id,
        held: id,
      });
      return { ...outcome, held: id };
    }
    this.#enforce(prepared, equipment);
    return { ...outcome, changed: true, held: null };
  }

  // --- what operators ask for

  /** Puts an earlier version in force: the one before by default, or one whose id begins so. */
  rollback(start: string | undefined, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, async () => {
      const kept = start === undefined ? this.#before() : this.#store.find(start);
      return this.#changeTo(kept, 'rollback');
    });
  }

  /** Holds versions of the policy file back from now on; with an id, puts that version in force first. */
  pin(start: string | undefined, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, async () => {
      const report = start === undefined ? this.#report(false) : await this.#changeTo(this.#store.find(start), 'pin');
      const changed = report.changed || !this.#pinned;
      this.#pinned = true;
      if (changed) this.#touch('a policy version is pinned');
      return this.#report(changed);
    });
  }

  /** Lets the policy file decide again: what it holds is put in force if it is another version and passes its tests. */
  unpin(expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, async () => {
      if (!this.#pinned) return this.#report(false);
      this.#pinned = false;
      this.#hold(undefined);
      this.#touch('policy versions are no longer pinned');
      const outcome = await this.#reload('unpin').catch((error: unknown) => {
        if (error instanceof SignalboxError) return { ok: false, text: `${error.message}\n` };
        throw error;
      });
      const note = outcome.ok ? '' : 'the policy file is refused; the version in force stays\n';
      return { ...this.#report(true), text: outcome.text + note };
    });
  }

  startCanary(order: CanaryOrder, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, async () => {
      const loaded = await this.#loadTexts(order.texts);
      const id = idOf(programOf(loaded).hash);
      const running = this.#canary;
      if (running !== undefined) {
        if (running.kept.id === id && sameRules(running.order, order)) return this.#report(false);
        throw canaryRunning(`the canary ${running.kept.id} is running; abort or promote it first`);
      }
      if (id === this.#core.active?.id) throw inForceAlready(id);
      const { version, kept } = await this.#prepareTrial(loaded, 'canary', (prepared) =>
        this.#core.startCanary({ version: prepared, share: order.share }),
      );
      const { texts: _, share: __, ...rules } = order;
      this.#canary = {
        version,
        kept,
        order,
        since: this.#timestamp(),
        sinceMs: this.#clock.epochMs(),
        judge: createCanaryJudge(rules, () => this.#clock.now()),
      };
      this.#touch('a canary has started', { canary: id, share: order.share });
      return { ...this.#report(true), text: findingsText(loaded, false) };
    });
  }

  /** Puts the canary in force; `id` is the one that is meant. */
  promote(id: string | undefined, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, () => {
      const canary = this.#canary;
      if (canary === undefined) {
        if (id !== undefined && this.#core.active?.id.startsWith(id) === true) return this.#report(false);
        throw noCanary();
      }
      if (id !== undefined && !canary.kept.id.startsWith(id)) throw new PolicyConflict(this.state());
      const equipment = this.#host.equip(canary.version.program);
      this.#endCanary('promoted');
      canary.kept.origin = 'promote';
      this.#enforce({ version: canary.version, kept: canary.kept }, equipment);
      return this.#report(true);
    });
  }

  /** Ends the canary; `id` is the one that is meant. */
  abort(id: string | undefined, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, () => {
      const canary = this.#canary;
      if (canary === undefined) return this.#report(false);
      if (id !== undefined && !canary.kept.id.startsWith(id)) throw new PolicyConflict(this.state());
      this.#endCanary('aborted');
      this.#core.endCanary();
      this.#touch('the canary was aborted', { canary: canary.kept.id });
      return this.#report(true);
    });
  }

  startShadow(texts: PolicyTexts, sample: number, expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, async () => {
      const loaded = await this.#loadTexts(texts);
      const report = createShadowReport(sample);
      const { kept } = await this.#prepareTrial(loaded, 'shadow', (version) =>
        this.#core.startShadow({
          version,
          share: sample,
          onCompared: (comparison) => {
            report.add(comparison);
            const { inForce, shadow, tookMs } = comparison;
            const moved = inForce.tier !== shadow?.tier || inForce.rule !== shadow.rule || inForce.code !== shadow.code;
            this.#shadowCounts[shadow === undefined ? 'failed' : moved ? 'moved' : 'agreed']++;
            this.#shadowMs += tookMs;
          },
        }),
      );
      this.#shadow = { kept, since: this.#timestamp(), report };
      this.#touch('a shadow policy decides along', { shadow: kept.id, sample });
      return { ...this.#report(true), text: findingsText(loaded, false) };
    });
  }

  endShadow(expected?: Expectation): Promise<ChangeReport> {
    return this.#exclusive(expected, () => {
      if (this.#shadow === undefined) return this.#report(false);
      this.#closeShadow();
      this.#core.endShadow();
      this.#touch('the shadow policy is off');
      return this.#report(true);
    });
  }

  // --- what there is to see

  state(): PolicyState {
    const active = this.#core.active;
    const generation = active?.generation ?? 0;
    return {
      policy: active?.id ?? '',
      generation,
      etag: `"${generation}-${this.#revision}"`,
      pinned: this.#pinned,
      held: this.#held ?? null,
      canary: this.#canary?.kept.id ?? null,
      shadow: this.#shadow?.kept.id ?? null,
    };
  }

  /** Every version that is kept or still holds requests, the newest first. */
  list(): readonly VersionRow[] {
    const kept = this.#store.list();
    const known = new Set(kept.map(({ id }) => id));
    const forgotten = [...new Set(this.#core.versions().map(({ id }) => id))].filter((id) => !known.has(id));
    return [...kept.map((version) => this.#row(version.id, version)), ...forgotten.map((id) => this.#row(id))];
  }

  show(start: string): VersionDetail {
    const kept = this.#store.find(start);
    return { ...this.#row(kept.id, kept), sources: Object.fromEntries(kept.sources) };
  }

  /** The canary that runs, else the last that did. */
  canary(): CanaryStatus | undefined {
    return this.#canary === undefined
      ? this.#lastCanary
      : this.#canaryStatus(this.#canary, this.#canary.judge.passed() ? 'passed' : 'running');
  }

  /** The shadow that decides, else the last that did. */
  shadow(): ShadowStatus | undefined {
    return this.#shadow === undefined ? this.#lastShadow : shadowStatus(this.#shadow, true);
  }

  figures(): LifecycleFigures {
    const versions = { in_force: 0, canary: 0, shadow: 0, retiring: 0 };
    let retiringRequests = 0;
    for (const version of this.#core.versions()) {
      const state = this.#liveState(version);
      versions[state]++;
      if (state === 'retiring') retiringRequests += version.requests;
    }
    return {
      versions,
      retiringRequests,
      pinned: this.#pinned,
      canaryRequests: (['in_force', 'canary'] as const).flatMap((version) =>
        (['ok', 'error'] as const).map((outcome) => ({
          version,
          outcome,
          count: this.#canaryCounts[version][outcome],
        })),
      ),
      canaryRollbacks: this.#rollbacks,
      shadowDecisions: this.#shadowCounts,
      shadowSeconds: this.#shadowMs / 1000,
    };
  }

  /** Takes each request that has ended. */
  observe(record: DecisionRecord): void {
    this.#store.decided(record.policy);
    const canary = this.#canary;
    if (canary === undefined || record.timeMs < canary.sinceMs) return;
    const { generation } = record;
    const byCanary = generation === canary.version.generation;
    if (!byCanary && generation !== this.#core.active?.generation) return;
    const failed = record.status >= 400 || record.code !== '';
    if (record.status !== 499) this.#canaryCounts[byCanary ? 'canary' : 'in_force'][failed ? 'error' : 'ok']++;
    const fault = canary.judge.observe(byCanary ? 'canary' : 'inForce', record);
    if (fault !== undefined) this.#rollBackCanary(canary, fault);
  }

  // --- inside

  /** One change after another; each is refused if what it expects does not hold when its turn comes. */
  #exclusive<T>(expected: Expectation | undefined, change: () => T | Promise<T>): Promise<T> {
    const next = this.#changes.then(() => {
      if (!this.#meets(expected)) throw new PolicyConflict(this.state());
      return change();
    });
    this.#changes = next.catch(() => {});
    return next;
  }

  #meets(expected: Expectation | undefined): boolean {
    const { etag, generation } = this.state();
    if (expected?.tags !== undefined && !expected.tags.includes('*') && !expected.tags.includes(etag)) return false;
    return expected?.generation === undefined || expected.generation === generation;
  }

  #before(): KeptVersion {
    const earlier = this.#store.before(this.#core.active?.id ?? '');
    if (earlier === undefined) throw noEarlierVersion();
    return earlier;
  }

  async #changeTo(kept: KeptVersion, origin: 'rollback' | 'pin'): Promise<ChangeReport> {
    if (kept.id === this.#core.active?.id) return this.#report(false);
    if (kept.id === this.#canary?.kept.id)
      throw canaryRunning(`${kept.id} is the canary; promote it to put it in force`);
    const equipment = this.#host.equip(kept.program);
    const version = this.#core.prepare(kept.program, kept.plugins);
    kept.origin = origin;
    this.#enforce({ version, kept }, equipment);
    return this.#report(true);
  }

  #enforce({ version, kept }: Prepared, equipment: Equipment): void {
    const before = this.#core.active?.id;
    this.#core.activate(version);
    if (this.#canary !== undefined && this.#core.canary === undefined) this.#endCanary('overtaken');
    if (this.#shadow !== undefined && this.#core.shadow === undefined) this.#closeShadow();
    kept.generation = version.generation;
    this.#store.enforced(version.id, kept.origin === 'rollback' || kept.origin === 'pin');
    if (this.#held === version.id) this.#held = undefined;
    this.#host.enforced(version, equipment);
    this.#touch('a policy version is in force', { before, origin: kept.origin });
  }

  #hold(id: string | undefined): void {
    if (id === this.#held) return;
    this.#held = id;
    this.#revision++;
  }

  #touch(what: string, fields: { readonly [name: string]: unknown } = {}): void {
    this.#revision++;
    const { policy, generation } = this.state();
    this.#logger.info(what, { policy, generation, ...fields });
  }

  async #loadTexts(texts: PolicyTexts): Promise<LoadedPolicy> {
    const loaded = await this.#loader.loadTexts(this.#path, texts);
    const findings = toJsonReport(loaded.diagnostics, loaded.sources).diagnostics;
    if (loaded.program === undefined || hasErrors(loaded.diagnostics))
      throw new TextsRefused(findingsText(loaded, false), findings, []);
    const gate = await this.#host.test(loaded);
    if (!gate.passed) throw new TextsRefused(gate.text, findings, gate.failed);
    return loaded;
  }

  async #prepare(loaded: LoadedPolicy, origin: VersionOrigin): Promise<Prepared> {
    const plugins = await this.#host.importPlugins(loaded);
    const program = await this.#host.transform(programOf(loaded));
    const version = this.#core.prepare(program, plugins);
    const kept = this.#store.keep({ id: version.id, program, plugins, sources: loaded.sources, origin });
    return { version, kept };
  }

  async #prepareTrial(
    loaded: LoadedPolicy,
    origin: 'canary' | 'shadow',
    start: (version: PolicyVersion) => void,
  ): Promise<Prepared> {
    const plugins = await this.#host.importPlugins(loaded);
    const program = await this.#host.transform(programOf(loaded));
    const version = this.#core.prepare(program, plugins);
    try {
      start(version);
    } catch (error) {
      this.#core.discard(version);
      throw error;
    }
    const known = this.#store.get(version.id);
    const kept = this.#store.keep({
      id: version.id,
      program,
      plugins,
      sources: loaded.sources,
      origin: known?.id === this.#core.active?.id ? (known?.origin ?? origin) : origin,
    });
    if (version.id !== this.#core.active?.id) kept.generation = version.generation;
    return { version, kept };
  }

  #remember({ texts }: LoadedPolicy): void {
    this.#imported = [...texts.values()].slice(1);
  }

  #rollBackCanary(canary: RunningCanary, fault: CanaryFault): void {
    this.#rollbacks[fault.reason]++;
    this.#endCanary('rolled_back', fault);
    this.#core.endCanary();
    this.#revision++;
    const { id } = canary.kept;
    this.#logger.error('the canary was rolled back', { canary: id, reason: fault.reason, text: fault.text });
    this.#host.tell(`the canary ${id} was rolled back: ${fault.text}`);
  }

  #endCanary(state: CanaryStatus['state'], fault: CanaryFault | null = null): void {
    if (this.#canary !== undefined) this.#lastCanary = { ...this.#canaryStatus(this.#canary, state), fault };
    this.#canary = undefined;
  }

  #canaryStatus({ kept, version, order, since, judge }: RunningCanary, state: CanaryStatus['state']): CanaryStatus {
    const { forMs, maxErrorIncrease, maxTtftRatio, minRequests, share } = order;
    return {
      policy: kept.id,
      generation: version.generation,
      share,
      since,
      rules: { forMs, maxErrorIncrease, maxTtftRatio, minRequests },
      state,
      fault: null,
      figures: judge.figures(),
    };
  }

  #closeShadow(): void {
    if (this.#shadow !== undefined) this.#lastShadow = shadowStatus(this.#shadow, false);
    this.#shadow = undefined;
  }

  #trials(): readonly string[] {
    return [this.#canary?.kept.id, this.#shadow?.kept.id].filter((id) => id !== undefined);
  }

  #liveState(version: PolicyVersion): 'in_force' | 'canary' | 'shadow' | 'retiring' {
    if (version === this.#core.active) return 'in_force';
    if (version === this.#core.canary?.version) return 'canary';
    return version === this.#core.shadow?.version ? 'shadow' : 'retiring';
  }

  #row(id: string, kept?: KeptVersion): VersionRow {
    const live = this.#core.versions().filter((version) => version.id === id);
    const states = live.map((version) => this.#liveState(version));
    const state =
      (['in_force', 'canary', 'shadow'] as const).find((one) => states.includes(one)) ??
      (id === this.#held ? 'held' : live.some(({ requests }) => requests > 0) ? 'retiring' : 'kept');
    return {
      id,
      state,
      pinned: state === 'in_force' && this.#pinned,
      generation: live.at(-1)?.generation ?? kept?.generation ?? 0,
      origin: kept?.origin ?? null,
      since: kept?.since ?? null,
      inForceSince: kept?.inForceSince ?? null,
      requests: live.reduce((sum, { requests }) => sum + requests, 0),
      decided: kept?.decided ?? 0,
      files: kept === undefined ? [] : filesOf(kept),
    };
  }

  #report(changed: boolean): ChangeReport {
    return { ...this.state(), changed, text: '' };
  }

  #timestamp(): string {
    return new Date(this.#clock.epochMs()).toISOString();
  }
}

function programOf({ program }: LoadedPolicy): PolicyProgram {
  if (program === undefined)
    throw new SignalboxError('the policy has errors', { code: 'policy_refused', source: 'gateway' });
  return program;
}

/** The first twelve digits of a program's hash, as a version is called. */
function idOf(hash: string): string {
  return hash.slice(0, 12);
}

/** An empty text is a whole policy by the grammar, one that refuses everything: on a reload it is a file in the middle of being written. */
function refuseEmpty(path: string, { texts }: LoadedPolicy): void {
  const [main = ''] = texts.values();
  if (main.replace(/^\ufeff/, '').trim() !== '') return;
  throw new SignalboxError(`${path} is empty: cut off, or in the middle of being written`, {
    code: 'policy_empty',
    source: 'gateway',
  });
}

function canaryRunning(message: string): SignalboxError {
  return new SignalboxError(message, { code: 'canary_running', source: 'client', status: 409 });
}

function noCanary(): SignalboxError {
  return new SignalboxError('no canary is running', { code: 'no_canary', source: 'client', status: 409 });
}

function inForceAlready(id: string): SignalboxError {
  return new SignalboxError(`the policy ${id} is in force already`, {
    code: 'version_in_force',
    source: 'client',
    status: 409,
  });
}

function noEarlierVersion(): SignalboxError {
  return new SignalboxError('no earlier version is kept; "signalbox policy list" lists those that are', {
    code: 'version_unknown',
    source: 'client',
    status: 409,
  });
}

function sameRules(a: CanaryOrder, b: CanaryOrder): boolean {
  return (
    a.share === b.share &&
    a.forMs === b.forMs &&
    a.maxErrorIncrease === b.maxErrorIncrease &&
    a.maxTtftRatio === b.maxTtftRatio &&
    a.minRequests === b.minRequests
  );
}

function shadowStatus(
  { kept, since, report }: { readonly kept: KeptVersion; readonly since: string; readonly report: ShadowReport },
  running: boolean,
): ShadowStatus {
  return { policy: kept.id, since, running, ...report.figures() };
}
