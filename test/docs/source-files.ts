import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repositoryRoot: string = fileURLToPath(new URL('../..', import.meta.url));

/** Texts of the shipped sources below `folder` by path from the root: no tests, fixtures or scripts. */
export function sourceFiles(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter(
      (path) =>
        /\/src\/.*\.ts$/.test(path) &&
        !/\/(node_modules|dist|bench)\//.test(path) &&
        !/\.(test|fixture)\.ts$/.test(path),
    );
  return new Map(files.map((path) => [path, readFileSync(join(repositoryRoot, path), 'utf8')]));
}
