import { expect, test } from 'vitest';
import { readArguments } from '../cli/command.ts';
import { serveCommand } from '../commands/serve.ts';
import { DEFAULT_LIMITS } from './isolation/isolated-plugin.ts';
import type { PluginChoice } from './plugin-options.ts';
import { readPluginChoice } from './plugin-options.ts';

const choice = (...argv: string[]): PluginChoice => readPluginChoice(readArguments(serveCommand, ['p.route', ...argv]));

test('nothing is isolated unless it is asked for', () => {
  expect(choice('--allow-plugin', 'a')).toEqual({
    allowPlugins: ['a'],
    isolation: { names: [], all: false, limits: DEFAULT_LIMITS },
  });
});

test('packages are isolated by name or all, with a limit for a call', () => {
  expect(choice('--isolate-plugin', 'a', '--isolate-plugin', 'b', '--isolate-timeout', '12.5ms').isolation).toEqual({
    names: ['a', 'b'],
    all: false,
    limits: { ...DEFAULT_LIMITS, callMs: 12.5 },
  });
  expect(choice('--isolate-plugins', '--isolate-timeout', '1s').isolation).toMatchObject({
    all: true,
    limits: { callMs: 1000 },
  });
});

test.each(['5', '0ms', '3s', '-1ms', 'soon'])('a limit of %s is a wrong usage', (text) => {
  expect(() => choice(`--isolate-timeout=${text}`)).toThrow(
    `--isolate-timeout must be a time of at most 2s, such as 5ms, got "${text}"`,
  );
});
