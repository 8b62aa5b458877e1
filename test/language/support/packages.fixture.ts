import type { PluginManifest } from '../../../packages/plugin-api/src/index.ts';
import type { ResolvedPlugin } from '../../../packages/policy/src/index.ts';
import { carbonManifest } from '../../../packages/policy/fixtures/catalogue.fixture.ts';

const plugin = (
  name: string,
  entries: PluginManifest['entries'],
  more: Partial<PluginManifest> = {},
): ResolvedPlugin => ({ manifest: { manifestVersion: 1, name, apiVersion: 1, entries, ...more } });

const greenest = { kind: 'scorer', name: 'greenest', doc: 'Green.' } as const;

/** Packages that policies under `errors` name, one for each thing that can be wrong with a package. */
export const packages: ReadonlyMap<string, ResolvedPlugin> = new Map([
  ['@acme/signalbox-carbon', { manifest: carbonManifest }],
  [
    'plugin-that-provides-a-signal-called-when',
    plugin('p', [{ kind: 'signal', name: 'when', doc: 'When.', type: 'number' }]),
  ],
  ['some-package', { error: { reason: 'not_allowed', message: '"some-package" may not be loaded' } }],
  ['plugin-with-a-broken-manifest', plugin('p', [{ kind: 'scorer' } as never])],
  [
    'plugin-with-a-broken-expression',
    plugin('p', [{ kind: 'scorer', name: 'typo', doc: 'x', expression: 'queue_dept + 1' }]),
  ],
  ['plugin-of-the-future', plugin('p', [greenest], { apiVersion: 7 })],
  [
    '@acme/plugin-that-needs-a-key',
    plugin('p', [greenest], {
      options: {
        type: 'object',
        properties: { key: { type: 'object', additionalProperties: { type: 'string' } } },
        required: ['key'],
        additionalProperties: false,
      },
    }),
  ],
  ['plugin-a', plugin('a', [greenest])],
  ['plugin-b', plugin('b', [greenest])],
]);
