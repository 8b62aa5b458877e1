import type { Definitions } from '@signalbox/policy';

/**
 * How two policies define different fleets, as half a sentence; undefined where they define the same. Places in the text do not count.
 * Versions that decide at the same time share one fleet, whose endpoints have one price, limit and key each.
 */
export function fleetDifference(inForce: Definitions, other: Definitions): string | undefined {
  const before = new Map(inForce.tiers.map((tier) => [tier.name, tier]));
  const after = new Map(other.tiers.map((tier) => [tier.name, tier]));
  for (const [name, tier] of after) {
    const known = before.get(name);
    if (known === undefined) return `it defines the tier ${JSON.stringify(name)}, which the policy in force has not`;
    if (plain(known) !== plain(tier)) return `it defines the tier ${JSON.stringify(name)} differently`;
  }
  for (const name of before.keys()) {
    if (!after.has(name)) return `it does not define the tier ${JSON.stringify(name)}`;
  }
  if (plain(inForce.discoveries) !== plain(other.discoveries)) return 'its `define discovery` is another';
  return plain(inForce.profiles) === plain(other.profiles) ? undefined : 'its `define profile` is another';
}

function plain(value: unknown): string {
  return JSON.stringify(value, (key, part: unknown) => (key === 'span' && isSpan(part) ? undefined : part)) ?? '';
}

function isSpan(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'file' in value && 'start' in value && 'end' in value;
}
