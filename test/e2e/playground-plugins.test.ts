import { expect, test } from 'vitest';
import { PLAYGROUND_PLUGINS } from '../../packages/console/src/playground/plugins.ts';
import { BUILTIN_PLUGINS } from '../../packages/gateway/src/plugins/builtin-plugins.ts';

test('the playground has the plugins that every gateway has, in the same order', () => {
  expect(PLAYGROUND_PLUGINS).toEqual(BUILTIN_PLUGINS);
});
