import { UsageError } from '../cli/command.ts';

const UNIT_MS: { readonly [unit: string]: number } = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A point of time as a command takes it: `2026-11-30`, `2026-11-30T08:00:00Z`, or so long ago: `90m`, `12h`, `7d`. Milliseconds since 1970. */
export function readTimeBound(option: string, text: string, nowEpochMs: number): number {
  const ago = /^(\d+)([smhd])$/.exec(text);
  if (ago !== null) return nowEpochMs - Number(ago[1]) * (UNIT_MS[ago[2] ?? ''] ?? 0);
  const at = /^\d{4}-\d{2}-\d{2}(?:T.*)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new UsageError(
      `--${option} must be a time such as 2026-11-30T08:00:00Z, or how long ago, such as 12h; got "${text}"`,
    );
  return at;
}
