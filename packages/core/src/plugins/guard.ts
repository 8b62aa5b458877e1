import type { Logger } from '@signalbox/plugin-api';
import type { HeldInstance } from './instance-registry.ts';
import { messageOf } from './instance-registry.ts';
import type { RefusalCause } from '../request-state.ts';

/** Thrown through a decision when a plugin with `on_error: fail` threw: the request is refused with 500 `plugin_failed`. */
export class PluginFailure extends Error {
  readonly plugin: string;

  constructor(plugin: string) {
    super(`plugin ${plugin} failed`);
    this.name = 'PluginFailure';
    this.plugin = plugin;
  }
}

/** The refusal that a plugin's failure makes of a request; throws whatever else was thrown. */
export function refusalFor(error: unknown): RefusalCause {
  if (!(error instanceof PluginFailure)) throw error;
  return { status: 500, code: 'plugin_failed', message: error.message, retryAfterSeconds: undefined };
}

/** What `run` gives; undefined where a plugin failed and no request is there to be refused for it. */
export function unlessFailed<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof PluginFailure)) throw error;
    return undefined;
  }
}

/** Failures of plugins, by label, since the start. */
export interface PluginGuard {
  /** Counts what an instance threw, and throws PluginFailure if it asked for that. */
  failed(held: HeldInstance, cause: unknown): void;
  /** Counts values that a scorer gave and that were not finite. */
  invalid(held: HeldInstance, count: number): void;
  readonly failures: ReadonlyMap<string, number>;
  readonly invalidValues: ReadonlyMap<string, number>;
}

/** Logs the first failure of each plugin and every hundredth after it. */
export function createPluginGuard(logger: Logger): PluginGuard {
  const failures = new Map<string, number>();
  const invalidValues = new Map<string, number>();
  return {
    failures,
    invalidValues,
    failed(held, cause) {
      const count = (failures.get(held.label) ?? 0) + 1;
      failures.set(held.label, count);
      if (count % 100 === 1)
        logger.error('a plugin threw', { plugin: held.label, failures: count, error: messageOf(cause) });
      if (held.onError === 'fail') throw new PluginFailure(held.label);
    },
    invalid(held, count) {
      invalidValues.set(held.label, (invalidValues.get(held.label) ?? 0) + count);
    },
  };
}
