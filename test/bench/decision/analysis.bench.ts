import { analysePolicy, compilePolicy, diffPolicies } from '../../../packages/policy/src/index.ts';
import type { PolicyProgram } from '../../../packages/policy/src/index.ts';
import type { BenchPart, Suite } from '../report.ts';

const suite: Suite = {
  name: 'analysis',
  title: 'Analysis of a policy, whole, and the difference of two that differ in one rule',
  figures: [
    { key: 'ms', label: 'CPU ms', digits: 0 },
    { key: 'proved', label: 'rules with a proof or an example, %', digits: 1 },
  ],
  compared: 'ms',
  baselines: ['compile'],
  goals: [{ subject: 'analysis', figure: 'ms', atMost: 5000 }],
};

/** Conditions over ten signals, one in fourteen of them a search that cannot be decided, the same in each run. */
function createConditions(): (parts: number) => string {
  let state = 1;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const leaves = [
    () => `complexity > ${random(100)}`,
    () => `complexity in ${random(50)}..${50 + random(50)}`,
    () => `prompt_tokens > ${random(64)}k`,
    () => `tools >= ${random(8)}`,
    () => 'stream',
    () => 'not stream',
    () => 'priority in ["high", "low"]',
    () => 'priority == "low"',
    () => `tenant.id == "t${random(200)}"`,
    () => `model == "m${random(20)}"`,
    () => `header["x-team"] != "a${random(9)}"`,
    () => `hour in ${random(10)}..${12 + random(10)}`,
    () => `turns > ${random(20)}`,
    () => `prompt matches r"x${random(5)}"`,
  ];
  return (parts) => Array.from({ length: parts }, () => leaves[random(leaves.length)]?.() ?? 'stream').join(' and ');
}

const SHAPES: { readonly [name: string]: () => (index: number) => string } = {
  'one tenant each': () => (index) => `tenant.id == "t${index}" and complexity > ${index % 100}`,
  'bands of one signal': () => (index) => `complexity in ${index / 10}..${index / 10 + 0.05} and stream`,
  'three random parts': () => {
    const conditions = createConditions();
    return () => conditions(3);
  },
  'five random parts': () => {
    const conditions = createConditions();
    return () => conditions(5);
  },
};

function textOf(rules: number, conditionOf: (index: number) => string, last = ''): string {
  const lines = Array.from({ length: rules }, (_, index) => `route "r${index}" when ${conditionOf(index)} to any`);
  return [...lines, last, 'default to any'].join('\n');
}

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'bench.route', text });
  if (program === undefined) throw new Error(diagnostics[0]?.message ?? 'the policy does not compile');
  return program;
}

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Compiling, analysing and comparing policies of 100 and 1,000 rules of four shapes, with the default budget. */
export const run: BenchPart = (report, { rounds, smoke }) => {
  report.suite(suite);
  const sizes = smoke ? [10] : [100, 1000];
  for (const [shape, create] of Object.entries(SHAPES))
    for (const size of sizes)
      for (let round = 0; round < (smoke ? 1 : rounds); round++) {
        const name = `${size} rules, ${shape}`;
        if (round === 0) report.progress(name);
        const text = textOf(size, create());
        let program = compile(text);
        const sample = (subject: string, ms: number, proved?: number): void =>
          report.sample({
            suite: suite.name,
            case: name,
            subject,
            round,
            figures: { ms, ...(proved === undefined ? {} : { proved }) },
          });
        sample(
          'compile',
          cpuMs(() => (program = compile(text))),
        );
        let proved = 0;
        const ms = cpuMs(() => {
          const { rules } = analysePolicy(program);
          proved = (100 * rules.filter(({ verdict }) => verdict !== 'not_proved').length) / rules.length;
        });
        sample('analysis', ms, proved);
        const changed = compile(
          textOf(size, create(), 'route "new" when complexity > 97 and stream to any else reject'),
        );
        sample(
          'diff',
          cpuMs(() => void diffPolicies(program, changed)),
        );
      }
};
