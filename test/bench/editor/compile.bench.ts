import { createOptionChecker } from '../../../packages/config/src/index.ts';
import { BUILTIN_PLUGINS } from '../../../packages/gateway/src/plugins/builtin-plugins.ts';
import { toManifest } from '../../../packages/plugin-api/src/index.ts';
import {
  compilePolicy,
  formatPolicy,
  generate,
  instantiateGenerated,
  parsePolicy,
} from '../../../packages/policy/src/index.ts';
import type { CompileInput, CompileResult } from '../../../packages/policy/src/index.ts';
import type { BenchPart, Suite } from '../report.ts';

const RULES = [100, 1000] as const;
const COMPILE = 'compile: text to checked plan';

const suite: Suite = {
  name: 'editor-compile',
  title: 'From the text of a policy to what runs, by stage; a rule takes two lines',
  figures: [
    { key: 'cpuMs', label: 'CPU ms', digits: 1 },
    { key: 'perThousandLines', label: 'CPU ms / 1,000 lines', digits: 1 },
  ],
  compared: 'cpuMs',
  baselines: [],
  goals: [{ subject: COMPILE, case: '1,000 rules', figure: 'cpuMs', atMost: 500 }],
};

/** A policy of so many rules, each another, over ten tiers. */
function policyOf(rules: number): string {
  const tiers = Array.from(
    { length: 10 },
    (_, tier) =>
      `define tier "t${tier}" { model: "m${tier}", endpoints: ["http://10.0.${tier}.1:8000", "http://10.0.${tier}.2:8000"] }`,
  );
  const conditions = [
    (n: number) => `complexity > ${n % 97} and header["x-team"] == "team ${n}"`,
    (n: number) => `prompt_tokens in ${n}..${n + 500} and not stream`,
    (n: number) => `model == "m${n}" or prompt matches r"\\berror ${n}\\b"i`,
    (n: number) => `tenant.region in ["eu", "r${n}"] and tools > ${n % 7}`,
  ];
  const routes = Array.from({ length: rules }, (_, n) => {
    const when = conditions[n % conditions.length]?.(n) ?? '';
    return `route "rule ${n}" when ${when}\n  to tier "t${n % 10}" where predicted_ttft < ${100 + n}ms by 0.7 * least_tokens + 0.3 * least_latency with timeout ${1 + (n % 60)}s`;
  });
  return [...tiers, ...routes, 'default to tier "t0"', ''].join('\n');
}

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

export const run: BenchPart = (report, { rounds, smoke }) => {
  report.suite(suite);
  const manifests = BUILTIN_PLUGINS.map(toManifest);
  const checkOptions = createOptionChecker();
  const compile = (text: string): CompileResult => {
    const input: CompileInput = { path: 'a.route', text, manifests, checkOptions };
    return compilePolicy(input);
  };
  const texts = RULES.map((rules) => ({ rules, text: policyOf(rules) }));
  for (const { rules, text } of smoke ? texts.slice(0, 1) : texts) {
    const { program } = compile(text);
    if (program === undefined) throw new Error('the policy of the bench has an error');
    const stages: readonly (readonly [name: string, work: (text: string) => unknown])[] = [
      ['parse: text to tree', (one) => parsePolicy(one, { file: 'a.route' })],
      [COMPILE, compile],
      ['generate: plan to JavaScript, instantiated', () => instantiateGenerated(program, generate(program))],
      ['format', (one) => formatPolicy(one, { file: 'a.route' })],
    ];
    const lines = text.split('\n').length - 1;
    const times = smoke ? 1 : Math.max(5, Math.round(2000 / rules));
    for (let round = 0; round < rounds; round += 1) {
      for (const [subject, work] of stages) {
        const taken = Array.from({ length: times }, (_, call) => {
          const before = cpuMs();
          work(`${text}# ${round}.${call}\n`);
          return cpuMs() - before;
        });
        const cpu = median(taken);
        report.sample({
          suite: suite.name,
          case: `${rules.toLocaleString('en')} rules`,
          subject,
          round,
          figures: { cpuMs: cpu, perThousandLines: (1000 * cpu) / lines },
        });
      }
    }
  }
};
