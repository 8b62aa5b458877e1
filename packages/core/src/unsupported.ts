import type { Modifiers, PolicyProgram } from '@signalbox/policy';
import { UNFED_KEYS } from './unfed-keys.ts';

/**
 * What a policy asks for and core does not act on, one sentence each, for the log and the status page: a request is routed as though it
 * were not written, and nobody should have to find that out by measurement.
 */
export function unsupportedParts(program: PolicyProgram): readonly string[] {
  const notes = new Set<string>();
  const look = (modifiers: Modifiers, where: string): void => {
    if (modifiers.hedge !== undefined)
      notes.add(`${where}: \`hedge\` is not acted on; each request is sent once at a time`);
    if (modifiers.mirror !== undefined) notes.add(`${where}: \`mirror\` is not acted on; no copies are sent`);
    if (modifiers.prefill !== undefined)
      notes.add(`${where}: \`prefill\` is not acted on; one endpoint serves prefill and decode`);
  };
  for (const rule of program.admission) look(rule.with, `rule ${JSON.stringify(rule.label)}`);
  for (const rule of program.routes) {
    for (const step of rule.steps) if (step.kind !== 'next') look(step.with, `route ${JSON.stringify(rule.label)}`);
  }
  for (const property of program.properties) {
    if (property.provider.kind === 'builtin' && UNFED_KEYS.includes(`candidate.${property.key}`)) {
      notes.add(`\`${property.key}\` is unknown for every endpoint: nothing in this build feeds it`);
    }
  }
  for (const discovery of program.definitions.discoveries ?? []) {
    notes.add(`discovery ${JSON.stringify(discovery.name)} is not acted on; endpoints are those that tiers list`);
  }
  for (const profile of program.definitions.profiles ?? []) {
    notes.add(`profile ${JSON.stringify(profile.name)} is not acted on; state \`throughput\` on the tier`);
  }
  const { gateway } = program.definitions;
  if (gateway.workers > 1) notes.add('`workers` is not acted on: one thread serves');
  if (gateway.cors !== undefined) notes.add('`cors` is not acted on: no CORS headers are sent');
  if (gateway.shared !== undefined) notes.add('`shared` is not acted on: limits are this process’s own');
  if (
    program.definitions.tiers.some(({ endpoints }) =>
      endpoints.some(({ role }) => role !== undefined && role !== 'both'),
    )
  ) {
    notes.add('`role` is not acted on: every endpoint serves prefill and decode');
  }
  for (const note of tenantsWithoutKeys(program)) notes.add(note);
  return [...notes];
}

/** A sentence where tenants are defined and nothing tells which request is whose; no diagnostic says so, as keys may stand elsewhere. */
export function tenantsWithoutKeys(program: PolicyProgram): readonly string[] {
  const { gateway, tenants } = program.definitions;
  return tenants.length > 0 && gateway.keys === undefined && tenants.every(({ keys }) => keys.length === 0)
    ? ['no API keys tell the tenants apart: `tenant` is unknown for every request']
    : [];
}
