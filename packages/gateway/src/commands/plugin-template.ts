/** What a template is filled with. */
export interface PluginTemplateInput {
  readonly kind: string;
  /** lower_snake_case, as policies name it. */
  readonly name: string;
  readonly packageName: string;
  /** Given as an expression of the policy language, where the kind can be. */
  readonly byExpression?: boolean;
}

interface PluginTemplate {
  /** The object literal of the definition, as JavaScript. */
  readonly definition: string;
  /** The contract suite of testkit that fits. */
  readonly contract: string;
  /** How a policy uses it. */
  readonly usage: (name: string) => string;
  readonly formula: string;
  /** The same or its like by expression, for the kinds that may be given so. */
  readonly expression?: { readonly definition: string; readonly formula: string };
}

const TARGET =
  'define tier "8B" { model: "llama-3.1-8b", endpoints: ["http://127.0.0.1:8001", "http://127.0.0.1:8002"] }';

const FILTER_FACTS = `doc: 'Holds while an endpoint has fewer than \`most\` requests in flight.',
      options: {
        type: 'object',
        properties: { most: { type: 'number', minimum: 1, default: 8, description: 'Requests in flight at which it is left out.' } },
        additionalProperties: false,
      },
      reads: ['candidate.inflight_requests'],`;

/** A working example of each kind of plugin API 1, by function, and by expression where the kind can be given so. */
export const PLUGIN_TEMPLATES: { readonly [kind: string]: PluginTemplate } = {
  scorer: {
    contract: 'scorerContract',
    formula: 'cost = in-flight requests × `weight`; lower is better',
    expression: {
      formula: 'cost = (in-flight requests + `ahead`) ÷ weight of the endpoint; lower is better',
      definition: `{
      doc: 'Prefers endpoints with few requests in flight for their weight.',
      cost: true,
      options: {
        type: 'object',
        properties: { ahead: { type: 'number', minimum: 0, default: 1, description: 'Requests added to those in flight.' } },
        additionalProperties: false,
      },
      reads: ['candidate.inflight_requests', 'candidate.weight'],
      expression: '(inflight_requests + ahead) / weight',
    }`,
    },
    usage: (name) => `default to tier "8B" by mine.${name}`,
    definition: `{
      doc: 'Prefers endpoints with few requests in flight.',
      cost: true,
      options: {
        type: 'object',
        properties: { weight: { type: 'number', exclusiveMinimum: 0, default: 1, description: 'Cost of one request.' } },
        additionalProperties: false,
      },
      reads: ['candidate.inflight_requests'],
      setup({ options }) {
        return {
          score(_request, candidates, out) {
            const inflight = candidates.column('candidate.inflight_requests');
            for (let i = 0; i < candidates.length; i++) out[i] = inflight[candidates.slots[i]] * options.weight;
          },
        };
      },
    }`,
  },
  filter: {
    contract: 'filterContract',
    formula: 'true while in-flight requests < `most`',
    expression: {
      formula: 'true while in-flight requests < `most`',
      definition: `{
      ${FILTER_FACTS}
      expression: 'inflight_requests < most',
    }`,
    },
    usage: (name) => `default to tier "8B" where mine.${name} by least_tokens`,
    definition: `{
      ${FILTER_FACTS}
      setup({ options }) {
        return {
          filter(_request, candidates, out) {
            const inflight = candidates.column('candidate.inflight_requests');
            for (let i = 0; i < candidates.length; i++) {
              const requests = inflight[candidates.slots[i]];
              out[i] = Number.isNaN(requests) ? 2 : requests < options.most ? 1 : 0;
            }
          },
        };
      },
    }`,
  },
  property: {
    contract: 'propertyContract',
    formula: 'in-flight requests ÷ weight of the endpoint',
    expression: {
      formula: 'in-flight requests ÷ weight of the endpoint',
      definition: `{
      doc: 'In-flight requests per unit of weight.',
      type: 'number',
      reads: ['candidate.inflight_requests', 'candidate.weight'],
      expression: 'inflight_requests / weight',
    }`,
    },
    usage: (name) => `default to tier "8B" by lowest(mine.${name})`,
    definition: `{
      doc: 'In-flight requests per unit of weight.',
      type: 'number',
      reads: ['candidate.inflight_requests', 'candidate.weight'],
      setup() {
        return {
          fill(_request, candidates, out) {
            const inflight = candidates.column('candidate.inflight_requests');
            const weight = candidates.column('candidate.weight');
            for (let i = 0; i < candidates.length; i++) {
              const slot = candidates.slots[i];
              out[i] = inflight[slot] / weight[slot];
            }
          },
        };
      },
    }`,
  },
  picker: {
    contract: 'pickerContract',
    formula: 'the best of three candidates drawn at random',
    usage: (name) => `default to tier "8B" by least_tokens pick mine.${name}`,
    definition: `{
      doc: 'Scores three candidates drawn at random, and takes the best of them.',
      setup() {
        return {
          sample(candidates, random, out) {
            const wanted = Math.min(3, candidates.length);
            let found = 0;
            while (found < wanted) {
              const position = Math.floor(random.next() * candidates.length);
              let seen = false;
              for (let i = 0; i < found; i++) if (out[i] === position) seen = true;
              if (!seen) out[found++] = position;
            }
            return found;
          },
        };
      },
    }`,
  },
  signal: {
    contract: 'signalContract',
    formula: 'number of exclamation marks in the last user message',
    usage: (name) => `route when mine.${name} > 3 to tier "8B" by least_tokens\ndefault to tier "8B" by least_tokens`,
    definition: `{
      doc: 'How many exclamation marks the last user message has.',
      type: 'number',
      setup() {
        return {
          evaluate(request) {
            const text = request.lastUserMessage();
            return text === undefined ? Number.NaN : text.split('!').length - 1;
          },
        };
      },
    }`,
  },
  admission: {
    contract: 'admissionContract',
    formula: 'true when an endpoint of the target has fewer than `most` requests in flight; unknown when none is known',
    usage: (name) =>
      `queue when not mine.${name}(tier "8B", most: 4) with max_wait 2s\ndefault to tier "8B" by least_tokens`,
    definition: `{
      doc: 'Holds while some endpoint of the target has fewer than \`most\` requests in flight.',
      arguments: [{ name: 'target', kind: 'target' }],
      options: {
        type: 'object',
        properties: { most: { type: 'number', minimum: 1, default: 8, description: 'Requests in flight at which an endpoint is full.' } },
        additionalProperties: false,
      },
      reads: ['candidate.inflight_requests'],
      setup({ options }) {
        return {
          holds(_request, candidates) {
            const inflight = candidates.column('candidate.inflight_requests');
            let known = false;
            for (let i = 0; i < candidates.length; i++) {
              const requests = inflight[candidates.slots[i]];
              if (requests < options.most) return true;
              if (!Number.isNaN(requests)) known = true;
            }
            return known ? false : undefined;
          },
        };
      },
    }`,
  },
};

/** The files of a new plugin package by relative path. */
export function pluginFiles({ kind, name, packageName, byExpression = false }: PluginTemplateInput): {
  readonly [path: string]: string;
} {
  const template = PLUGIN_TEMPLATES[kind];
  if (template === undefined) return {};
  const { definition, formula } = (byExpression ? template.expression : undefined) ?? template;
  const json = {
    name: packageName,
    version: '0.1.0',
    description: `Signalbox ${kind} ${name}`,
    type: 'module',
    license: 'Apache-2.0',
    engines: { node: '>=22.19' },
    exports: { '.': './index.js', './package.json': './package.json' },
    files: ['index.js', 'manifest.json', 'policy.route', 'README.md'],
    signalbox: './manifest.json',
    scripts: { manifest: 'node write-manifest.js', test: 'node write-manifest.js && node --test' },
    peerDependencies: { '@signalbox/plugin-api': '^0.1.0' },
    devDependencies: { '@signalbox/plugin-api': '^0.1.0', '@signalbox/testkit': '^0.1.0' },
  };
  const pluginName = packageName;
  return {
    'package.json': `${JSON.stringify(json, null, 2)}\n`,
    'index.js': `import { definePlugin } from '@signalbox/plugin-api';

export default definePlugin({
  name: '${pluginName}',
  apiVersion: 1,
  provides: {
    ${kind}: {
      ${name}: ${definition.replaceAll('\n', '\n  ')},
    },
  },
});
`,
    'write-manifest.js': `// The manifest is what the compiler and editors read; they never run the plugin.
import { writeFileSync } from 'node:fs';
import { toManifest } from '@signalbox/plugin-api';
import plugin from './index.js';

writeFileSync(new URL('manifest.json', import.meta.url), JSON.stringify(toManifest(plugin), null, 2) + '\\n');
`,
    'plugin.test.js': `import { test } from 'node:test';
import { ${template.contract} } from '@signalbox/testkit';
import plugin from './index.js';

for (const check of ${template.contract}(plugin, '${name}')) test(check.name, () => check.run());
`,
    'policy.route': `use "${packageName}" as mine

${TARGET}

${template.usage(name)}
`,
    'README.md': `# ${packageName}

**Type**: ${kind} \`${name}\`

**What it does**: ${formula}.

**When to use, when not**: say here.

**Reads**: see \`reads\` in index.js. **Options**: see \`options\` in index.js.

\`\`\`route
use "${packageName}" as mine

${TARGET}

${template.usage(name)}
\`\`\`
`,
    '.gitignore': 'node_modules/\n',
  };
}
