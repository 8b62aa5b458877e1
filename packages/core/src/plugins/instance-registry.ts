import { applyOptionDefaults, SignalboxError } from '@signalbox/plugin-api';
import type { Clock, Closeable, Json, Logger, OptionSchema, Plugin, PluginKind, Provided } from '@signalbox/plugin-api';
import { createSeededRandom } from '../seeded-random.ts';

/** What an instance is of. Two specs with equal `key`s share one instance, over reloads too. */
export interface InstanceSpec {
  readonly plugin: Plugin;
  readonly kind: PluginKind;
  readonly name: string;
  /** Options of the package as a whole, under `options`. */
  readonly packageOptions: { readonly [name: string]: Json };
  readonly options: { readonly [name: string]: Json };
  /** The rule that has an instance of its own; empty for one shared by the policy. */
  readonly rule: string;
}

/** One set-up instance and how many policy versions hold it. */
export interface HeldInstance {
  readonly key: string;
  readonly label: string;
  readonly onError: 'neutral' | 'fail';
  readonly reads: readonly string[];
  readonly instance: Closeable;
}

/**
 * Plugin instances by what they are of. A reload that keeps a plugin and its options keeps the instance and its state (a round robin goes
 * on where it was); the last version to let go of one closes it.
 */
export interface InstanceRegistry {
  /** Sets the instance up if nobody holds it. Throws SignalboxError `plugin_missing` or `plugin_setup`. */
  acquire(spec: InstanceSpec): HeldInstance;
  release(held: HeldInstance): void;
  /** Tells every instance that the endpoint at this slot has left the fleet. */
  forget(slot: number): void;
  readonly size: number;
}

/** What keeps state by endpoint. */
type Remembering = Closeable & { forget?(slot: number): void };

type WithSetup = Provided & { setup?: (context: unknown) => Closeable };

interface Entry {
  readonly held: HeldInstance;
  readonly plugin: Plugin;
  readonly abort: AbortController;
  holders: number;
}

export function createInstanceRegistry(clock: Clock, logger: Logger): InstanceRegistry {
  const current = new Map<string, Entry>();
  const entries = new Map<HeldInstance, Entry>();

  const setUp = (spec: InstanceSpec, key: string): Entry => {
    const label = `${spec.plugin.name}/${spec.name}`;
    const definition = (spec.plugin.provides[spec.kind] as { readonly [name: string]: WithSetup } | undefined)?.[
      spec.name
    ];
    if (definition?.setup === undefined) {
      throw new SignalboxError(`plugin "${spec.plugin.name}" provides no ${spec.kind} "${spec.name}" by function`, {
        code: 'plugin_missing',
        source: 'plugin',
      });
    }
    const { on_error: onError, ...given } = { ...spec.packageOptions, ...spec.options };
    const options = withDefaults(definition.options, given);
    const abort = new AbortController();
    let instance: Closeable;
    try {
      instance = definition.setup({
        options,
        logger: logger.child({ plugin: label }),
        clock,
        random: createSeededRandom(hashKey(key)),
        signal: abort.signal,
      });
    } catch (cause) {
      throw new SignalboxError(`plugin ${label}: setup failed: ${messageOf(cause)}`, {
        code: 'plugin_setup',
        source: 'plugin',
        cause,
      });
    }
    return {
      held: {
        key,
        label,
        onError: onError === 'fail' ? 'fail' : (definition.onError ?? 'neutral'),
        reads: definition.reads ?? [],
        instance,
      },
      plugin: spec.plugin,
      abort,
      holders: 0,
    };
  };

  return {
    get size() {
      return entries.size;
    },

    acquire(spec) {
      const key = JSON.stringify([
        spec.plugin.name,
        spec.kind,
        spec.name,
        spec.rule,
        sorted(spec.packageOptions),
        sorted(spec.options),
      ]);
      let entry = current.get(key);
      // Another object of the same name is another version of the plugin: it gets an instance of its own.
      if (entry === undefined || entry.plugin !== spec.plugin) {
        entry = setUp(spec, key);
        current.set(key, entry);
        entries.set(entry.held, entry);
      }
      entry.holders++;
      return entry.held;
    },

    forget(slot) {
      for (const { held } of entries.values()) {
        try {
          (held.instance as Remembering).forget?.(slot);
        } catch (cause) {
          logger.warn('a plugin failed to forget an endpoint', { plugin: held.label, error: messageOf(cause) });
        }
      }
    },

    release(held) {
      const entry = entries.get(held);
      if (entry === undefined || --entry.holders > 0) return;
      entries.delete(held);
      if (current.get(held.key) === entry) current.delete(held.key);
      entry.abort.abort();
      try {
        held.instance.close?.();
      } catch (cause) {
        logger.warn('a plugin failed to close', { plugin: held.label, error: messageOf(cause) });
      }
    },
  };
}

/** The message of anything that was thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function withDefaults(
  schema: OptionSchema | undefined,
  given: { readonly [name: string]: Json },
): { readonly [name: string]: Json } {
  if (schema === undefined) return Object.freeze(given);
  const filled = applyOptionDefaults(schema, given);
  const complete =
    typeof filled === 'object' && filled !== null && !Array.isArray(filled)
      ? (filled as { readonly [name: string]: Json })
      : given;
  return Object.freeze({ ...complete });
}

function sorted(options: { readonly [name: string]: Json }): readonly (readonly [string, Json])[] {
  return Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function hashKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
