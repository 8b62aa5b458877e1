import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { SignalboxError } from '@signalbox/plugin-api';
import type { Command } from '../cli/command.ts';
import { EXIT_OK, UsageError } from '../cli/command.ts';
import { PLUGIN_TEMPLATES, pluginFiles } from './plugin-template.ts';

export const pluginNewCommand: Command = {
  name: 'plugin new',
  summary: 'write a plugin package that passes its contract suite',
  arguments: 'DIRECTORY',
  arity: [1, 1],
  help: `
Writes a package with a working plugin of the kind you ask for, a test that runs the contract suite, a README in the usual form and an
example policy. It needs no build step. Then:

  cd DIRECTORY && npm install && npm test

and name it in a policy:   use "signalbox-scorer-my-idea" as mine`,
  options: {
    kind: {
      type: 'string',
      value: 'KIND',
      help: `one of ${Object.keys(PLUGIN_TEMPLATES).join(', ')}; scorer by default`,
    },
    expression: {
      type: 'boolean',
      help: 'as an expression of the policy language, which the compiler puts in place: a scorer, filter or property',
    },
    name: {
      type: 'string',
      value: 'NAME',
      help: 'the name used in policies, in lower_snake_case; taken from the directory by default',
    },
  },
  run(input, terminal) {
    const kind = input.text('kind') ?? 'scorer';
    if (!Object.hasOwn(PLUGIN_TEMPLATES, kind)) {
      throw new UsageError(
        `there is no plugin kind "${kind}"; expected one of ${Object.keys(PLUGIN_TEMPLATES).join(', ')}`,
      );
    }
    const byExpression = input.flag('expression');
    if (byExpression && PLUGIN_TEMPLATES[kind]?.expression === undefined) {
      throw new UsageError(
        `a ${kind} cannot be an expression; --expression goes with --kind ${Object.keys(PLUGIN_TEMPLATES)
          .filter((one) => PLUGIN_TEMPLATES[one]?.expression !== undefined)
          .join(', ')}`,
      );
    }
    const directory = resolve(terminal.cwd, input.positionals[0] ?? '.');
    const packageName = directory.split(/[\\/]/).at(-1) ?? '';
    if (!/^[a-z][a-z0-9-]*$/.test(packageName)) {
      throw new UsageError(
        `"${packageName}" cannot be the name of a package; name the directory in kebab-case, for example signalbox-scorer-my-idea`,
      );
    }
    const name =
      input.text('name') ??
      packageName
        .replace(/^signalbox-/, '')
        .replace(new RegExp(`^${kind}-`), '')
        .replaceAll('-', '_');
    if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new UsageError(`--name must be in lower_snake_case, got "${name}"`);
    if (existsSync(directory) && readdirSync(directory).length > 0) {
      throw new SignalboxError(`${directory} is not empty; nothing was written. Name a new directory.`, {
        code: 'directory_not_empty',
        source: 'gateway',
      });
    }
    const files = pluginFiles({ kind, name, packageName, byExpression });
    for (const [path, text] of Object.entries(files)) {
      const target = join(directory, path);
      mkdirSync(join(target, '..'), { recursive: true });
      writeFileSync(target, text);
    }
    const shown = relative(terminal.cwd, directory) || '.';
    terminal.out(
      `Wrote ${Object.keys(files).length} files to ${shown}:\n${Object.keys(files)
        .map((path) => `  ${path}\n`)
        .join('')}\nNext:\n  cd ${shown} && npm install && npm test\n`,
    );
    return Promise.resolve(EXIT_OK);
  },
};
