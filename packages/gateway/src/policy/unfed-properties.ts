import { ENGINE_FED_KEYS, UNFED_KEYS } from '@signalbox/core';
import type { PolicyProgram } from '@signalbox/policy';

/** Catalogue keys, as the compiler takes them, that this gateway has no source for: it reads no reports of engines. */
export const UNPROVIDED: readonly string[] = Object.freeze([...UNFED_KEYS, ...ENGINE_FED_KEYS]);

/** The properties that a policy reads and that are unknown for every endpoint here, so that the rest of its rules decides alone. */
export function unfedProperties({ properties }: PolicyProgram): readonly string[] {
  const names = properties
    .filter(({ key, provider }) => provider.kind === 'builtin' && UNPROVIDED.includes(`candidate.${key}`))
    .map(({ key }) => key);
  return [...new Set(names)].toSorted();
}
