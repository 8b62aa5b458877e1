// Runs the import rules over the workspace and over a fixture that breaks them. Fails if a rule is broken, if the fixture passes, or if
// fewer modules than expected were seen (a checker that cannot read the sources finds nothing wrong with them).
import { cruise } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { fileURLToPath } from 'node:url';
import config from '../.dependency-cruiser.mjs';

const MINIMUM_MODULES = 400;
const root = fileURLToPath(new URL('..', import.meta.url));

async function run(baseDir, places) {
  process.chdir(baseDir);
  const { output } = await cruise(
    places,
    { ...config.options, baseDir, validate: true, ruleSet: { forbidden: config.forbidden, options: config.options } },
    config.options.enhancedResolveOptions,
    { tsConfig: extractTSConfig(fileURLToPath(new URL('../tsconfig.json', import.meta.url))) },
  );
  return output;
}

const bad = await run(fileURLToPath(new URL('../test/imports/known-bad/', import.meta.url)), ['packages']);
const found = new Set(bad.summary.violations.map(({ rule }) => rule.name));
for (const expected of ['chwbl-imports', 'no-node-modules-in-portable-packages']) {
  if (!found.has(expected)) {
    console.error(`imports: the known-bad fixture was not caught by the rule ${expected}`);
    process.exit(1);
  }
}

const result = await run(root, ['packages', 'plugins']);
const seen = result.modules.filter(({ source }) => /^(packages|plugins)\//.test(source)).length;
for (const { rule, from, to } of result.summary.violations) console.error(`imports: ${rule.name}: ${from} → ${to}`);
if (seen < MINIMUM_MODULES)
  console.error(`imports: only ${seen} modules were seen, expected at least ${MINIMUM_MODULES}`);
if (result.summary.error > 0 || seen < MINIMUM_MODULES) process.exit(1);
console.log(`imports: ${seen} modules obey the rules, and the known-bad fixture is caught`);
