// The import directions of docs/design/architecture.md, enforced. `npm run check:imports` also runs them over test/imports/known-bad, which must fail.
import { fileURLToPath } from 'node:url';

const OURS = '^packages/|^plugins/';

/** Which packages each package may import; everything else of ours is forbidden. */
const ALLOWED = {
  'plugin-api': [],
  chwbl: [],
  'hardware-profiles': [],
  policy: ['plugin-api'],
  'openai-wire': ['plugin-api'],
  config: ['plugin-api'],
  telemetry: ['plugin-api'],
  core: ['plugin-api', 'chwbl', 'hardware-profiles', 'policy', 'openai-wire', 'telemetry'],
  'language-server': ['plugin-api', 'policy'],
  proxy: ['plugin-api', 'core', 'openai-wire', 'telemetry'],
  simulator: ['plugin-api', 'hardware-profiles', 'openai-wire'],
  testkit: ['plugin-api'],
  console: ['plugin-api', 'policy', 'openai-wire', 'config', 'telemetry', 'core'],
};

/** Libraries with one user. */
const ONE_USER = {
  chevrotain: 'policy',
  ajv: 'config',
  '@codemirror': 'console',
  pino: 'telemetry',
  'prom-client': 'telemetry',
  undici: 'proxy',
  'vscode-languageserver': 'language-server',
};

/** Composition roots beside gateway: they bring the first-party plugins along. */
const WITH_PLUGINS = new Set(['console']);

/** What of ours a package may import, as a pattern. */
const allowedPattern = (name, allowed) =>
  `^packages/(${[name, ...allowed].join('|')})/${WITH_PLUGINS.has(name) ? '|^plugins/' : ''}`;

const packageRules = Object.entries(ALLOWED).map(([name, allowed]) => ({
  name: `${name}-imports`,
  comment: `package ${name} may import ${allowed.length === 0 ? 'nothing of ours' : allowed.join(', ')}`,
  severity: 'error',
  from: { path: `^packages/${name}/src/`, pathNot: '\\.test\\.ts$|\\.fixture\\.ts$' },
  to: { path: OURS, pathNot: allowedPattern(name, allowed) },
}));

const testRules = Object.entries(ALLOWED).map(([name, allowed]) => ({
  name: `${name}-test-imports`,
  comment: `tests obey the import rules of their package; chwbl, plugin-api and testkit are open to every test`,
  severity: 'error',
  from: { path: `^packages/${name}/src/.*(\\.test|\\.fixture)\\.ts$` },
  to: { path: OURS, pathNot: allowedPattern(name, [...allowed, 'testkit', 'plugin-api', 'config']) },
}));

const singleUserRules = Object.entries(ONE_USER).map(([library, user]) => ({
  name: `${library}-only-in-${user}`,
  severity: 'error',
  from: { path: OURS, pathNot: [`^packages/${user}/`, '\\.test\\.ts$', '^packages/[^/]+/(scripts|bench)/'] },
  to: { path: `node_modules/${library}/` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...packageRules,
    ...testRules,
    ...singleUserRules,
    {
      name: 'plugins-import-the-contract-only',
      severity: 'error',
      from: { path: '^plugins/([^/]+)/' },
      to: { path: OURS, pathNot: '^packages/(plugin-api|chwbl|hardware-profiles|testkit)/|^plugins/$1/' },
    },
    {
      name: 'no-node-modules-in-portable-packages',
      comment: 'these run in browsers and workers: no node: module',
      severity: 'error',
      from: {
        path: '^packages/(plugin-api|chwbl|hardware-profiles|policy|openai-wire|config|core)/src/|^packages/console/src/(playground|page)/|^plugins/[^/]+/src/',
        pathNot: '\\.test\\.ts$|\\.fixture\\.ts$',
      },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'fastify-in-proxy-and-gateway',
      severity: 'error',
      from: { path: OURS, pathNot: '^packages/(proxy|gateway)/|\\.test\\.ts$' },
      to: { path: 'node_modules/fastify/' },
    },
    {
      name: 'packages-are-entered-by-their-index',
      severity: 'error',
      from: { path: '^(packages|plugins)/([^/]+)/' },
      to: { path: '^(packages|plugins)/[^/]+/src/', pathNot: ['^$1/$2/', '/src/index\\.ts$'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: { pathNot: '\\.test\\.ts$' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: fileURLToPath(new URL('tsconfig.json', import.meta.url)) },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@signalbox/source', 'import', 'types', 'node', 'default'],
    },
  },
};
