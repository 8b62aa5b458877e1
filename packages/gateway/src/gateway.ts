import { dirname, resolve } from 'node:path';
import { readSite } from '@signalbox/console';
import { createCore, explanationHeader, explanationText } from '@signalbox/core';
import type { Core, EndpointStatus } from '@signalbox/core';
import type { Logger } from '@signalbox/plugin-api';
import { silentLogger, SignalboxError } from '@signalbox/plugin-api';
import type { GatewayDefinition, PolicyProgram, SecretRef } from '@signalbox/policy';
import { createProxy } from '@signalbox/proxy';
import type { ForwardingRules, Identity, IdentityRefusal, Proxy, UnroutedEnd } from '@signalbox/proxy';
import type { AuditDetail, DecisionRecord, Metrics } from '@signalbox/telemetry';
import { auditLine, createDecisionHistory, createMetrics, unroutedRecord } from '@signalbox/telemetry';
import { connectionLimit, openFileLimit } from './connection-limit.ts';
import type { AdminServer, ExplainReport, PolicyReport, ReloadReport } from './admin/admin-server.ts';
import { splitListen, startAdminServer, urlOf } from './admin/admin-server.ts';
import type { EndpointControl } from './admin/endpoint-control.ts';
import { createEndpointControl } from './admin/endpoint-control.ts';
import type { AuditSink } from './audit/audit-sink.ts';
import { openAuditSink } from './audit/audit-sink.ts';
import { explainHeld } from './explain/explain-held.ts';
import { readExplainRequest } from './explain/explain-request.ts';
import { forwardingRules } from './forwarding-rules.ts';
import type { KeyRing } from './keys/key-ring.ts';
import { keyFiles, loadKeys } from './keys/load-keys.ts';
import type { Expectation, LoadOutcome } from './lifecycle/policy-lifecycle.ts';
import { PolicyConflict, PolicyLifecycle } from './lifecycle/policy-lifecycle.ts';
import type { LoadedPolicy, PolicyLoader } from './policy/load-policy.ts';
import { createPolicyLoader, findingsText } from './policy/load-policy.ts';
import { testPolicy } from './policy-tests/policy-gate.ts';
import type { GateReport } from './policy-tests/policy-gate.ts';
import { createPolicyWatcher } from './policy/policy-watcher.ts';
import { unfedProperties } from './policy/unfed-properties.ts';
import { watchEventLoop } from './overload-guard.ts';
import { BUILTIN_PLUGINS } from './plugins/builtin-plugins.ts';
import type { Isolation } from './plugins/plugin-packages.ts';
import { importPlugins } from './plugins/plugin-packages.ts';
import { secretResolver } from './secrets.ts';
import { startOnlyNotes } from './start-only.ts';
import { systemClock, systemScheduler } from './system-time.ts';
import type { TlsFiles } from './tls-files.ts';
import { readTlsFiles, tlsPaths } from './tls-files.ts';

export type { ReloadReport } from './admin/admin-server.ts';

export interface GatewayOptions {
  readonly policyPath: string;
  /** The directory that shown paths are relative to; the process's own by default. */
  readonly cwd?: string;
  /** In place of `listen` and `admin` of the policy's `define gateway`. */
  readonly listen?: string;
  readonly admin?: string;
  /** Takes the next free port if the one to listen on is taken. */
  readonly nextFreePort?: boolean;
  readonly allowPlugins?: readonly string[];
  /** Plugin packages that run in a process of their own; none by default. */
  readonly isolation?: Isolation;
  readonly strict?: boolean;
  /** Lets anyone call on an address that others can reach, where the policy asks for no API keys. */
  readonly open?: boolean;
  readonly adminToken?: string | undefined;
  /** The environment variables that policies may name; the process's own by default. */
  readonly environment?: { readonly [name: string]: string | undefined };
  readonly logger?: Logger;
  /** Whether findings are rendered with colour. */
  readonly colour?: boolean;
  /** Called at the end of every request, of those too that no policy saw. */
  readonly onDecision?: (record: DecisionRecord) => void;
  /** Called for every reload that was tried, whatever came of it. */
  readonly onReload?: (report: ReloadReport) => void;
  /** Told in a sentence of what came of a policy other than by a call, as a canary that was rolled back. */
  readonly onPolicyEvent?: (text: string) => void;
  /** Changes a program before it is put in force: `dev` puts simulated engines in the place of endpoints. */
  readonly transform?: (program: PolicyProgram) => Promise<PolicyProgram>;
}

/** A running gateway: data plane, admin listener and policy reload in one process. */
export interface Gateway {
  readonly url: string;
  readonly adminUrl: string;
  /** The definition in force of `define gateway`. */
  readonly definition: GatewayDefinition;
  /** Findings of the policy that was started with: warnings and notes. */
  readonly startFindings: string;
  /** Whether callers need an API key. */
  readonly asksForKeys: boolean;
  /** Reads the policy file again, because somebody asks: by a signal unless it is said. */
  reload(origin?: 'sighup' | 'admin'): Promise<ReloadReport>;
  /** Leases open. */
  inflight(): number;
  endpoints(): readonly EndpointStatus[];
  /** The last decisions, newest first. */
  decisions(limit: number): readonly DecisionRecord[];
  /** Stops: not ready, no new connections, running requests get `graceMs`, then they end with an error. A later call may hurry. */
  stop(options: StopOptions): Promise<void>;
}

export interface StopOptions {
  /** How long connections are still accepted while load balancers learn of it. */
  readonly acceptMs?: number;
  readonly graceMs: number;
}

/** Decisions kept in memory for the admin listener. */
const HISTORY = 500;
const PORTS_TRIED = 20;
/** How long the audit file may take to be written at the end. */
const AUDIT_CLOSE_MS = 5000;
const ANYONE: Identity = Object.freeze({ kind: 'known' });

/** What a program asks for beside routing. */
interface Equipment {
  readonly keys: KeyRing | undefined;
  readonly tls: TlsFiles | undefined;
}

/** Thrown when the policy to start with has errors; `text` has the findings as people read them. */
export class PolicyRefused extends SignalboxError {
  readonly text: string;

  constructor(path: string, text: string) {
    super(`${path} was not put in force`, { code: 'policy_refused', source: 'gateway' });
    this.text = text;
  }
}

/**
 * Compiles the policy, starts listening and returns when traffic is welcome. Throws PolicyRefused for a policy with errors, and
 * SignalboxError for an address that cannot be had, a plugin that cannot be loaded or a secret that is missing.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const gateway = new RunningGateway(options);
  await gateway.start();
  return gateway;
}

class RunningGateway implements Gateway {
  url = '';
  adminUrl = '';
  startFindings = '';
  readonly #options: GatewayOptions;
  readonly #cwd: string;
  readonly #logger: Logger;
  readonly #loader: PolicyLoader;
  readonly #core: Core;
  readonly #endpointControl: EndpointControl;
  readonly #metrics: Metrics;
  /** Where paths in the policy start from. */
  readonly #folder: string;
  readonly #readSecret: (ref: SecretRef) => string | undefined;
  readonly #history = createDecisionHistory(HISTORY);
  readonly #lifecycle: PolicyLifecycle<Equipment>;
  readonly #watcher = createPolicyWatcher({ onChange: () => void this.#reload('file') });
  #stopWatchingLoop: (() => void) | undefined;
  #proxy: Proxy | undefined;
  #keys: KeyRing | undefined;
  #forwarding: ForwardingRules | undefined;
  #earlyHeadMs = Number.POSITIVE_INFINITY;
  #audit: AuditSink | undefined;
  #auditDetail: AuditDetail = 'read';
  /** The definition that it was started with. */
  #started: GatewayDefinition | undefined;
  /** The host that is listened on; settled at start. */
  #host: string | undefined;
  #adminServer: AdminServer | undefined;
  #draining = false;
  #since = new Date().toISOString();
  #lastReload: { readonly ok: boolean; readonly text: string } = { ok: true, text: '' };

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#cwd = options.cwd ?? process.cwd();
    this.#logger = options.logger ?? silentLogger;
    this.#loader = createPolicyLoader({
      cwd: this.#cwd,
      allowPlugins: options.allowPlugins ?? [],
      strict: options.strict ?? false,
    });
    this.#folder = dirname(resolve(this.#cwd, options.policyPath));
    const environment = options.environment ?? process.env;
    this.#readSecret = secretResolver(this.#folder, environment);
    this.#core = createCore({
      clock: systemClock,
      scheduler: systemScheduler,
      logger: this.#logger,
      seed: (Math.random() * 2 ** 32) >>> 0,
      onDecision: (record) => this.#record(record),
      resolveSecret: this.#readSecret,
      environment: (name) => environment[name],
      onEndpointGone: (target) => this.#proxy?.retire(target),
    });
    this.#endpointControl = createEndpointControl(this.#core, this.#logger);
    this.#lifecycle = new PolicyLifecycle<Equipment>({
      core: this.#core,
      loader: this.#loader,
      path: options.policyPath,
      clock: systemClock,
      logger: this.#logger,
      colour: options.colour ?? false,
      host: {
        equip: (program) => ({
          keys: this.#loadKeys(program),
          tls: readTlsFiles(program.definitions.gateway, this.#folder),
        }),
        enforced: (_version, equipment) => this.#enforced(equipment),
        refreshed: (equipment) => this.#refreshed(equipment),
        follow: (loaded) => this.#follow(loaded),
        importPlugins: async ({ packages }) => [
          ...BUILTIN_PLUGINS,
          ...(await importPlugins(packages.values(), options.isolation)),
        ],
        test: (loaded) => this.#test(loaded),
        transform: async (program) => (await options.transform?.(program)) ?? program,
        tell: (text) => options.onPolicyEvent?.(text),
      },
    });
    this.#metrics = createMetrics({
      endpoints: () => this.#core.endpoints().map(({ name, ...status }) => ({ ...status, endpoint: name })),
      queues: () =>
        this.#core
          .status()
          .queues.flatMap(({ label, byPriority }) =>
            Object.entries(byPriority).map(([priority, size]) => ({ tier: label, class: priority, size })),
          ),
      queueRates: () => this.#core.status().queues.map(({ label, ...rate }) => ({ ...rate, tier: label })),
      panicking: () => tiersInPanic(this.#core.endpoints()),
      plugins: () => this.#pluginFigures(),
      unknownScorers: () => this.#core.status().unknownScorers,
      leaseLeaks: () => this.#core.status().leaseFaults,
      connectionsDropped: () => this.#proxy?.stats.connectionsDropped ?? 0,
      audit: () => this.#audit,
      lifecycle: () => this.#lifecycle.figures(),
    });
  }

  get definition(): GatewayDefinition {
    const active = this.#core.active;
    if (active === undefined)
      throw new SignalboxError('the gateway has no policy', { code: 'no_policy', source: 'gateway' });
    return active.program.definitions.gateway;
  }

  get asksForKeys(): boolean {
    return this.#keys !== undefined;
  }

  async start(): Promise<void> {
    const loaded = this.#loader.load(this.#options.policyPath);
    this.startFindings = findingsText(loaded, this.#options.colour ?? false);
    if (loaded.program === undefined) throw new PolicyRefused(this.#options.policyPath, this.startFindings);
    try {
      this.#host = splitListen(this.#options.listen ?? loaded.program.definitions.gateway.listen).host;
      const gate = await this.#lifecycle.start(loaded);
      if (!gate.passed) throw new PolicyRefused(this.#options.policyPath, this.startFindings + gate.text);
      const definition = this.definition;
      this.#started = definition;
      if (definition.audit !== undefined) {
        this.#auditDetail = definition.audit.record;
        this.#audit = await this.#openAudit(definition.audit.file);
      }
      this.#adminServer = await startAdminServer({
        listen: this.#options.admin ?? definition.admin,
        token: this.#options.adminToken,
        nextFreePort: this.#options.nextFreePort ?? false,
        playground: readSite(),
        logger: this.#logger,
        source: {
          ready: () => !this.#draining && this.#core.router.ready(),
          metrics: async () => ({ contentType: this.#metrics.contentType, text: await this.#metrics.expose() }),
          reload: (expected) => this.#reload('admin', expected),
          policy: () => this.#policyReport(),
          explain: (body) => Promise.resolve(this.#explain(body)),
          explainRecorded: (requestId) => this.#explainRecorded(requestId),
          decisions: (limit) => this.#history.recent(limit),
          endpoints: this.#endpointControl,
          lifecycle: this.#lifecycle,
        },
      });
      this.adminUrl = this.#adminServer.url;
      this.#stopWatchingLoop = watchEventLoop((level, { utilisation, delayMs }) => {
        this.#core.shed(level);
        const fields = { classes: level, utilisation: Number(utilisation.toFixed(3)), delay_ms: Math.round(delayMs) };
        if (level > 0) this.#logger.warn('the event loop is overloaded; the lowest classes are refused', fields);
        else this.#logger.info('the event loop has recovered; all classes are admitted', fields);
      });
      await this.#listen(definition);
    } catch (error) {
      await this.stop({ graceMs: 0 });
      throw error;
    }
  }

  async #listen(definition: GatewayDefinition): Promise<void> {
    const { host, port } = splitListen(this.#options.listen ?? definition.listen);
    const attempts = this.#options.nextFreePort === true && port !== 0 ? PORTS_TRIED : 1;
    for (let tried = 0; ; tried++) {
      const proxy = this.#createProxy(definition);
      try {
        const bound = await proxy.listen({ host, port: port === 0 ? 0 : port + tried });
        this.#proxy = proxy;
        this.url = urlOf(definition.tls === undefined ? 'http' : 'https', host, bound.port);
        return;
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause;
        if (tried + 1 < attempts) continue;
        throw new SignalboxError(
          `the address ${host}:${port} is in use; stop what listens there, or write another \`listen\` in define gateway, or start with --listen`,
          { code: 'address_in_use', source: 'gateway', cause },
        );
      }
    }
  }

  #createProxy(definition: GatewayDefinition): Proxy {
    const tls = readTlsFiles(definition, this.#folder);
    return createProxy({
      router: this.#core.router,
      clock: systemClock,
      logger: this.#logger,
      limits: { bodyBytes: definition.bodyLimit, connections: connectionLimit(openFileLimit()) },
      reportModel: () => (this.definition.reportModel === 'real' ? 'real' : 'asked'),
      hooks: {
        identify: (credential) => this.#identify(credential),
        policy: () => this.#core.active?.id ?? '',
        unrouted: (end) => this.#recordUnrouted(end),
        limitHeaders: (decision) => this.#core.limitHeaders(decision),
        explain: (decision, asked) => this.#explainHeader(decision, asked),
      },
      forwarding: () => this.#forwarding,
      earlyHeadMs: () => this.#earlyHeadMs,
      ...(tls === undefined ? {} : { tls }),
    });
  }

  async #openAudit(path: string): Promise<AuditSink> {
    try {
      return await openAuditSink({ file: resolve(this.#folder, path), logger: this.#logger });
    } catch (cause) {
      throw new SignalboxError(`the audit file ${path} cannot be written: ${(cause as Error).message}`, {
        code: 'audit_unwritable',
        source: 'gateway',
        cause,
      });
    }
  }

  /** The keys that a policy asks for. Throws a SignalboxError if they are not in order, or if there are none where others can call. */
  #loadKeys({ definitions }: PolicyProgram): KeyRing | undefined {
    const keys = loadKeys(definitions, this.#readSecret);
    const host = this.#host ?? '';
    if (keys !== undefined || this.#options.open === true || isLoopback(host)) return keys;
    throw new SignalboxError(
      `anyone could call: the policy asks for no API keys, and ${host === '' ? 'every address' : host} is listened on, which others can reach. ` +
        'Write `keys` in define gateway (`signalbox key new` makes one), listen on 127.0.0.1, or start with --open if the network keeps strangers out.',
      { code: 'listen_open', source: 'gateway' },
    );
  }

  #identify(credential: string | undefined): Identity | IdentityRefusal {
    return this.#keys === undefined ? ANYONE : this.#keys.identify(credential);
  }

  #follow(loaded: LoadedPolicy): void {
    const program = loaded.program ?? this.#core.active?.program;
    this.#watcher.follow(
      [
        ...loaded.texts.keys(),
        ...(program === undefined ? [] : keyFiles(program.definitions, this.#folder)),
        ...(program === undefined ? [] : tlsPaths(program.definitions.gateway, this.#folder)),
      ],
      loaded.texts,
    );
  }

  reload(origin: 'sighup' | 'admin' = 'sighup'): Promise<ReloadReport> {
    return this.#reload(origin);
  }

  async #reload(origin: 'file' | 'sighup' | 'admin', expected?: Expectation): Promise<ReloadReport> {
    const keysBefore = this.#keys?.fingerprint;
    let outcome: LoadOutcome;
    try {
      outcome = await this.#lifecycle.reload(origin, expected);
    } catch (error) {
      if (error instanceof PolicyConflict) throw error;
      if (!(error instanceof SignalboxError)) this.#logger.error('the reload failed', { error: String(error) });
      const text = `${(error as Error).message}\n`;
      const { held } = this.#lifecycle.state();
      outcome = { ok: false, changed: false, diagnostics: [], failedTests: [], text, held };
    }
    const { config } = this.#metrics;
    config.reloads++;
    config.lastSuccessful = outcome.ok;
    if (outcome.ok) config.lastSuccessEpochSeconds = Date.now() / 1000;
    else config.failures++;
    const notes = outcome.changed && this.#started !== undefined ? startOnlyNotes(this.#started, this.definition) : '';
    const report: ReloadReport = {
      ...outcome,
      text: outcome.text + notes,
      keys: this.#keys?.size ?? null,
      keysChanged: this.#keys?.fingerprint !== keysBefore,
      ...this.#identity(),
    };
    this.#lastReload = { ok: report.ok, text: report.text };
    this.#options.onReload?.(report);
    return report;
  }

  #identity(): { readonly policy: string; readonly generation: number } {
    const { policy, generation } = this.#lifecycle.state();
    return { policy, generation };
  }

  async #test(loaded: LoadedPolicy): Promise<GateReport> {
    const plugins = await importPlugins(loaded.packages.values(), this.#options.isolation);
    return testPolicy(loaded, {
      plugins: [...BUILTIN_PLUGINS, ...plugins],
      colour: this.#options.colour ?? false,
      now: () => systemClock.now(),
    });
  }

  #enforced(equipment: Equipment): void {
    const version = this.#core.active;
    if (version === undefined) return;
    const { trustedProxies, earlyHead } = version.program.definitions.gateway;
    this.#forwarding = forwardingRules(trustedProxies);
    this.#earlyHeadMs = earlyHead === undefined ? Number.POSITIVE_INFINITY : earlyHead * 1000;
    this.#refreshed(equipment);
    this.#since = new Date().toISOString();
    this.#metrics.setModels(version.models);
    this.#metrics.config.hash = version.id;
    this.#tellUnfed(unfedProperties(version.program));
    this.#metrics.config.lastSuccessful = true;
    this.#metrics.config.lastSuccessEpochSeconds = Date.now() / 1000;
  }

  #refreshed({ keys, tls }: Equipment): void {
    this.#setKeys(keys);
    this.#setTls(tls);
  }

  /** Says once of each property that nothing feeds it; metric and policy report say it for as long as it lasts. */
  #tellUnfed(properties: readonly string[]): void {
    const { config } = this.#metrics;
    for (const property of properties.filter((name) => !config.unfed.includes(name)))
      this.#logger.warn(
        'a property is unknown for every endpoint: no reports of engines are read; the rest of the rule decides',
        {
          property,
        },
      );
    config.unfed = properties;
  }

  #setKeys(keys: KeyRing | undefined): void {
    const before = this.#keys;
    this.#keys = keys;
    if (keys?.fingerprint === before?.fingerprint) return;
    if (keys === undefined) this.#logger.warn('no API keys are asked for any more');
    else this.#logger.info('API keys are in force', { count: keys.size });
  }

  /** New connections get the new certificate. Whether the listener speaks TLS at all was settled at start. */
  #setTls(tls: TlsFiles | undefined): void {
    if (tls !== undefined) this.#proxy?.setCertificate(tls);
  }

  #record(record: DecisionRecord): void {
    this.#metrics.record(record);
    this.#lifecycle.observe(record);
    this.#history.add(record);
    this.#audit?.add(() => auditLine(record, this.#auditDetail));
    this.#options.onDecision?.(record);
  }

  #recordUnrouted(end: UnroutedEnd): void {
    this.#metrics.recordUnrouted(end.status, end.code, end.durationMs);
    const record = unroutedRecord({ ...end, timeMs: systemClock.epochMs() }, this.#core.active?.id ?? '');
    this.#audit?.add(() => auditLine(record, this.#auditDetail));
    this.#options.onDecision?.(record);
  }

  #pluginFigures(): { plugin: string; errors: number; invalidValues: number }[] {
    const { pluginFailures, pluginInvalidValues } = this.#core.status();
    const names = new Set([...pluginFailures.keys(), ...pluginInvalidValues.keys()]);
    return [...names].map((plugin) => ({
      plugin,
      errors: pluginFailures.get(plugin) ?? 0,
      invalidValues: pluginInvalidValues.get(plugin) ?? 0,
    }));
  }

  #policyReport(): PolicyReport {
    return {
      ...this.#lifecycle.state(),
      file: this.#options.policyPath,
      since: this.#since,
      keys: this.#keys?.size ?? null,
      lastReload: this.#lastReload,
      unfed: this.#metrics.config.unfed,
      endpoints: this.#core.endpoints(),
    };
  }

  /** Only where the operator has allowed it: it tells of the fleet. */
  #explainHeader(decision: DecisionRecord, asked: boolean): string | undefined {
    const { explainHeader } = this.definition;
    return explainHeader === 'all' || (explainHeader === 'asked' && asked) ? explanationHeader(decision) : undefined;
  }

  #explainRecorded(requestId: string): ExplainReport | undefined {
    const record = this.#history.find(requestId);
    if (record === undefined) return undefined;
    const explanation = explainHeld(record, this.#core.versions(), this.#options.environment);
    return { explanation, text: explanationText(explanation) };
  }

  #explain(body: unknown): ExplainReport {
    const request = readExplainRequest(body, systemClock.now());
    const explanation = this.#core.explain(request);
    return { explanation, text: explanationText(explanation, { colour: false }) };
  }

  inflight(): number {
    return this.#core.status().leasesOpen;
  }

  endpoints(): readonly EndpointStatus[] {
    return this.#core.endpoints();
  }

  decisions(limit: number): readonly DecisionRecord[] {
    return this.#history.recent(limit);
  }

  async stop({ acceptMs = 0, graceMs }: StopOptions): Promise<void> {
    this.#draining = true;
    this.#watcher.close();
    this.#stopWatchingLoop?.();
    await this.#proxy?.close({ acceptMs, graceMs, ...(graceMs === 0 ? { forceMs: 500 } : {}) });
    await this.#adminServer?.close();
    await this.#audit?.close(graceMs === 0 ? 500 : AUDIT_CLOSE_MS);
    this.#core.close();
  }
}

/** Whether only this machine can reach a host to listen on. An empty one is every address. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Tiers of which fewer than half of the endpoints that are to serve are healthy: there, routing ignores health. */
function tiersInPanic(endpoints: readonly EndpointStatus[]): string[] {
  const tiers = Map.groupBy(
    endpoints.filter(({ defined, state }) => defined && state !== 'draining'),
    ({ tier }) => tier,
  );
  return [...tiers]
    .filter(([, members]) => members.filter(({ healthy }) => healthy).length * 2 < members.length)
    .map(([tier]) => tier);
}
