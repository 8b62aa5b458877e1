import type { RequestView, Value } from '@signalbox/plugin-api';

/** Signals by key, with or without `request.`; cluster values with `cluster.`. `undefined` and NaN are unknown. */
export interface SignalValues {
  readonly [key: string]: Value | undefined;
}

export interface RequestViewOptions {
  /** uint32, default 1. */
  readonly seed?: number;
  /** Keys that were declared; as in the host, all others read as unknown. Absent: every key may be read. */
  readonly reads?: readonly string[];
  /** Told each key that is asked for. */
  readonly onRead?: (key: string) => void;
}

/** The reference RequestView over plain values: `requestView({ prompt_tokens: 100, 'cluster.saturation': 0.4 })`. */
export function requestView(signals: SignalValues = {}, options: RequestViewOptions = {}): RequestView {
  const values = new Map<string, Value | undefined>();
  for (const [key, value] of Object.entries(signals)) {
    values.set(key.startsWith('request.') || key.startsWith('cluster.') ? key : `request.${key}`, value);
  }
  const declared = options.reads === undefined ? undefined : new Set(options.reads);
  const read = (key: string): Value | undefined => {
    options.onRead?.(key);
    return declared === undefined || declared.has(key) ? values.get(key) : undefined;
  };
  return {
    seed: (options.seed ?? 1) >>> 0,
    number(key) {
      const value = read(key);
      return typeof value === 'number' ? value : Number.NaN;
    },
    value(key) {
      const value = read(key);
      return value === value ? value : undefined;
    },
  };
}
