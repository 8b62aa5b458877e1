// The manifest is what the compiler and editors read; they never run the plugin.
import { writeFileSync } from 'node:fs';
import { toManifest } from '@signalbox/plugin-api';
import plugin from './dist/index.js';

writeFileSync(new URL('manifest.json', import.meta.url), `${JSON.stringify(toManifest(plugin), null, 2)}\n`);
