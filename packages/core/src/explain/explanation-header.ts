import type { Value } from '@signalbox/plugin-api';
import type { DecisionRecord } from '@signalbox/telemetry';

/**
 * A decision in one short line, for a header, what matters most first, as the line may be cut: the endpoint and the rule, how the first of
 * the shortlist scored, what was left out, and what was read of the request.
 */
export function explanationHeader(record: DecisionRecord): string {
  const { route, decided, endpoint, code, reasons, shortlist, dropped, signals } = record;
  const step = decided === undefined || decided.step <= 0 ? '' : ` else ${decided.step}`;
  const rule = route === '' ? (decided?.admission ?? '') : route;
  const by = rule === '' ? '' : ` by ${JSON.stringify(rule)}${step}`;
  const scored = shortlist.map((one) => `${one.endpoint} ${named(one.parts)}`.trimEnd());
  const others = (decided?.candidates ?? 0) - shortlist.length;
  return [
    `${endpoint === '' ? code || (reasons[0] ?? '') : endpoint}${by}`,
    scored.length === 0 ? '' : `${scored.join(' > ')}${others > 0 ? ` > ${others} more` : ''}`,
    named(dropped, 'left out: '),
    named(signals),
  ]
    .filter((part) => part !== '')
    .join('; ');
}

function named(values: { readonly [name: string]: Value | null }, before: string = ''): string {
  const parts = Object.entries(values).map(([name, value]) => `${name}=${shown(value)}`);
  return parts.length === 0 ? '' : before + parts.join(' ');
}

function shown(value: Value | null): string {
  if (value === null) return '?';
  return typeof value === 'number' ? String(Number(value.toPrecision(4))) : JSON.stringify(value);
}
