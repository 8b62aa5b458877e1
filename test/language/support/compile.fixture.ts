import { createOptionChecker } from '../../../packages/config/src/index.ts';
import { BUILTIN_PLUGINS } from '../../../packages/gateway/src/plugins/builtin-plugins.ts';
import type { PluginManifest } from '../../../packages/plugin-api/src/index.ts';
import { toManifest } from '../../../packages/plugin-api/src/index.ts';
import type { CompileInput } from '../../../packages/policy/src/index.ts';
import { packages } from './packages.fixture.ts';

const manifests: readonly PluginManifest[] = BUILTIN_PLUGINS.map(toManifest);
const checkOptions: CompileInput['checkOptions'] = createOptionChecker();

/** What a gateway compiles with: the plugins that it ships, the packages of the fixtures by `use`, and the files given. */
export function compileInput(
  text: string,
  files: { readonly [path: string]: string } = {},
  more: Partial<CompileInput> = {},
): CompileInput {
  return {
    path: 'policy.route',
    text,
    readFile: (path) => files[path],
    manifests,
    ...(checkOptions === undefined ? {} : { checkOptions }),
    resolvePlugin: (name) =>
      packages.get(name) ?? { error: { reason: 'not_found', message: `the package \`${name}\` was not found` } },
    nowEpochMs: Date.UTC(2026, 11, 1),
    ...more,
  };
}
