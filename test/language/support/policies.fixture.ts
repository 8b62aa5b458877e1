import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A whole policy without an error, with the files that it imports. */
export interface ValidPolicy {
  readonly name: string;
  readonly text: string;
  readonly files: { readonly [path: string]: string };
}

const folder = (path: string): string => fileURLToPath(new URL(`../../../${path}/`, import.meta.url));

function policiesOf(path: string, files: { readonly [path: string]: string }): readonly ValidPolicy[] {
  return readdirSync(folder(path))
    .filter((name) => name.endsWith('.route') && !name.endsWith('.test.route'))
    .toSorted()
    .map((name) => ({ name: `${path}/${name}`, text: readFileSync(folder(path) + name, 'utf8'), files }));
}

const examples = 'packages/policy/fixtures/examples';

/** The examples of the language and those that users start from. */
export const validPolicies: readonly ValidPolicy[] = [
  ...policiesOf(examples, {
    'shared/tenants.route': readFileSync(`${folder(examples)}shared/tenants.route`, 'utf8'),
    'main.route': readFileSync(`${folder(examples)}main.route`, 'utf8'),
  }),
  ...policiesOf('examples/policies', {}),
];
