// Writes manifest.json beside the package.json of each plugin package named on the command line, from the plugin's code.
//   node --conditions=@signalbox/source packages/testkit/scripts/write-manifest.ts plugins/*
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { toManifest } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';

for (const folder of process.argv.slice(2)) {
  const description = JSON.parse(readFileSync(resolve(folder, 'package.json'), 'utf8')) as { signalbox?: unknown };
  if (typeof description.signalbox !== 'string') {
    process.stderr.write(
      `${folder}/package.json has no "signalbox": name the manifest file there, for example "./manifest.json"\n`,
    );
    process.exitCode = 1;
    continue;
  }
  const module = (await import(pathToFileURL(resolve(folder, 'src/index.ts')).href)) as { default: Plugin };
  const path = resolve(folder, description.signalbox);
  writeFileSync(path, `${JSON.stringify(toManifest(module.default), null, 2)}\n`);
  process.stdout.write(`${path}\n`);
}
