import { readdirSync, readFileSync } from 'node:fs';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import type { CompileInput } from '../compile.ts';

const folder = new URL('../../fixtures/examples/', import.meta.url);

const read = (path: string): string | undefined => {
  try {
    return readFileSync(new URL(path, folder), 'utf8');
  } catch {
    return undefined;
  }
};

/** The example policies of the language, by path. */
export const examplePolicies: ReadonlyMap<string, string> = new Map(
  [...readdirSync(folder).filter((name) => name.endsWith('.route')), 'shared/tenants.route'].map((path) => [
    path,
    read(path) ?? '',
  ]),
);

/** Compiles a text as if it stood beside the example policies. `files` come before those on disk. */
export const besideExamples = (
  path: string,
  text: string,
  files: { readonly [path: string]: string } = {},
): CompileInput => ({
  path,
  text,
  readFile: (wanted) => files[wanted] ?? read(wanted),
  manifests: fixtureManifests,
  resolvePlugin: (name) =>
    name === '@acme/signalbox-carbon' ? { manifest: carbonManifest } : { error: `${name} was not found` },
  nowEpochMs: Date.UTC(2026, 11, 1),
});
