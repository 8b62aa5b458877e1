import type { Plugin, Value } from '@signalbox/plugin-api';
import type { PolicyProgram } from '@signalbox/policy';
import { isOverLimit, limitRetryAfter } from './bound-limits.ts';
import type { BoundLimit, BoundPolicy } from './bound-policy.ts';
import type { Fleet } from './fleet/fleet.ts';
import { Frame } from './frame.ts';
import { knownModels } from './known-models.ts';
import type { LimitLedger } from './limits.ts';
import type { RouteRequest } from './router.ts';
import { unsupportedParts } from './unsupported.ts';
import { sessionOf } from './signals/signal-producers.ts';

/** How many idle frames a version keeps. */
const MOST_IDLE_FRAMES = 1024;

/**
 * One policy, bound and immutable, for as long as it is in force or some request that entered with it is under way. Health, ledgers,
 * queues, limits and what is learned stand outside and survive it.
 */
export class PolicyVersion {
  /** The first twelve digits of the program's hash. */
  readonly id: string;
  readonly generation: number;
  readonly program: PolicyProgram;
  readonly policy: BoundPolicy;
  readonly limitsByName: ReadonlyMap<string, BoundLimit>;
  readonly models: ReadonlySet<string>;
  /** The plugins that it was bound with. */
  readonly plugins: readonly Plugin[];
  /** What the policy asks for and core does not act on, one sentence each. */
  readonly notices: readonly string[];
  readonly #anyModel: boolean;
  readonly #fleet: Fleet;
  readonly #idle: Frame[] = [];
  readonly #onRetired: (version: PolicyVersion) => void;
  #requests = 0;
  #lastKnown: string | undefined;
  #superseded = false;
  #retired = false;

  constructor(
    program: PolicyProgram,
    policy: BoundPolicy,
    generation: number,
    fleet: Fleet,
    onRetired: (version: PolicyVersion) => void,
    plugins: readonly Plugin[] = [],
  ) {
    this.plugins = plugins;
    this.id = program.hash.slice(0, 12);
    this.generation = generation;
    this.program = program;
    this.policy = policy;
    this.limitsByName = new Map(policy.limits.map((limit) => [limit.definition.name, limit]));
    const known = knownModels(program);
    this.models = known.names;
    this.notices = unsupportedParts(program);
    this.#anyModel = known.any;
    this.#fleet = fleet;
    this.#onRetired = onRetired;
  }

  /** Requests that entered with this version and have not ended. */
  get requests(): number {
    return this.#requests;
  }

  get retired(): boolean {
    return this.#retired;
  }

  /** A frame for a request that enters. */
  enter(): Frame {
    this.#requests++;
    return this.#idle.pop() ?? new Frame(this.policy.shape);
  }

  /** Takes the frame of a request back, which may be long before the request leaves. */
  giveBack(frame: Frame): void {
    frame.forget();
    if (this.#idle.length < MOST_IDLE_FRAMES) this.#idle.push(frame);
  }

  /** A request has ended; the last one of a superseded version retires it. */
  leave(): void {
    this.#requests--;
    this.#retireIfDone();
  }

  /** It is in force, maybe for the second time. */
  enforce(): void {
    this.#superseded = false;
  }

  /** Another version is in force, or this one never will be. */
  supersede(): void {
    this.#superseded = true;
    this.#retireIfDone();
  }

  isKnownModel(model: string): boolean {
    if (this.#anyModel || model === this.#lastKnown || model === '') return true;
    if (this.models.has(model)) {
      this.#lastKnown = model;
      return true;
    }
    return this.#fleet.adapters().has(model);
  }

  sessionOf(frame: Frame): Value | undefined {
    return sessionOf(frame);
  }

  /** Seconds after which a request over this limit, or one that it is a share of, may succeed. */
  limitRetryAfter(name: string, frame: Frame, ledger: LimitLedger): number {
    return limitRetryAfter(this.limitsByName, name, frame, ledger);
  }

  /** Seconds until the last of the limits that this request exceeds has room for it; 1 if it exceeds none. */
  overLimitRetryAfter(frame: Frame, ledger: LimitLedger): number {
    let seconds = 1;
    for (const name of this.limitsByName.keys()) {
      if (isOverLimit(this.limitsByName, name, frame, ledger))
        seconds = Math.max(seconds, this.limitRetryAfter(name, frame, ledger));
    }
    return seconds;
  }

  #retireIfDone(): void {
    if (!this.#superseded || this.#retired || this.#requests > 0) return;
    this.#retired = true;
    this.#onRetired(this);
  }
}

/** Points a frame at a request: who, when, and the estimates that every lease needs. */
export function openFrame(
  frame: Frame,
  request: RouteRequest,
  version: PolicyVersion,
  at: { readonly nowMs: number; readonly epochMs: number; readonly seed: number },
): void {
  frame.request = request;
  frame.parsed = request.parsed;
  frame.tenant = request.tenant === undefined ? undefined : version.policy.tenants.get(request.tenant);
  frame.nowMs = at.nowMs;
  frame.epochMs = at.epochMs;
  frame.seed = at.seed;
}
