import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SecretRef } from '@signalbox/policy';

/**
 * Reads secrets by reference: an environment variable, or a file relative to the policy's folder, of which trailing line breaks are cut.
 * `undefined` for one that is missing, empty or unreadable.
 */
export function secretResolver(
  folder: string,
  env: { readonly [name: string]: string | undefined },
): (ref: SecretRef) => string | undefined {
  return (ref) => {
    if ('env' in ref) return env[ref.env] || undefined;
    try {
      return readFileSync(resolve(folder, ref.file), 'utf8').replace(/[\r\n]+$/, '') || undefined;
    } catch {
      return undefined;
    }
  };
}
