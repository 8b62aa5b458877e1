import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packExtension } from './pack-extension.ts';

/** `npm run vsix`: writes the package beside what was built, and says where. */
const { name, content } = packExtension();
const path = fileURLToPath(new URL(`../dist/${name}`, import.meta.url));
writeFileSync(path, content);
process.stdout.write(`${path}\n`);
