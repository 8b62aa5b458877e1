import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import type { CompileResult } from '../compile.ts';
import { expressionRoles } from '../eval/roles.ts';
import type { Expression } from '../ir.ts';
import { arbitraryPolicyText, arbitrarySensiblePolicyText } from '../syntax/arbitrary.fixture.ts';
import { operandsOf } from '../operands-of.ts';

const compile = (text: string): CompileResult =>
  compilePolicy({
    path: 'main.route',
    text,
    manifests: fixtureManifests,
    resolvePlugin: () => ({ manifest: carbonManifest }),
    nowEpochMs: Date.UTC(2026, 11, 1),
  });

/** Each expression of a program, whole trees. */
const nodesOf = (result: CompileResult): readonly Expression[] => {
  const nodes: Expression[] = [];
  const visit = (expression: Expression): void => {
    nodes.push(expression);
    for (const operand of operandsOf(expression)) visit(operand);
  };
  const roots = result.program === undefined ? [] : expressionRoles(result.program).map(({ expression }) => expression);
  // The parts of a rule's condition stand beside the whole that they are parts of.
  const parts = new Set(roots.flatMap((root) => (root.kind === 'and' ? root.operands : [])));
  for (const root of roots) if (!parts.has(root)) visit(root);
  return nodes;
};

/** Fails with the reason, or gives true. */
const isSound = (text: string, result: CompileResult): boolean => {
  expect(result.program === undefined).toBe(result.diagnostics.some(({ severity }) => severity === 'error'));
  for (const { span, message, fix } of result.diagnostics) {
    expect(span.file).toBe('main.route');
    expect(0 <= span.start && span.start <= span.end && span.end <= text.length).toBe(true);
    expect(message).not.toMatch(/[\n\r]|undefined|\[object|NaN/);
    for (const edit of fix?.edits ?? [])
      expect(edit.span.start <= edit.span.end && edit.span.end <= text.length).toBe(true);
  }
  const nodes = nodesOf(result);
  expect(new Set(nodes).size).toBe(nodes.length);
  for (const node of nodes) {
    if (node.kind === 'signal') expect(result.program?.signals[node.index]).toBeDefined();
    if (node.kind === 'property') expect(result.program?.properties[node.index]).toBeDefined();
  }
  return true;
};

/** Rules out of parts that fit together, so that most of the policies are right. */
const numeric = fc.constantFrom(
  'complexity',
  'prompt_tokens',
  'turns',
  'words',
  '5',
  '32k',
  'count(healthy)',
  'max(queue_depth, tier "a")',
  'clamp(words, 1, 50)',
  'big',
  '(max_tokens ?? 100)',
);
const condition: fc.Arbitrary<string> = fc.letrec<{ expr: string }>((tie) => ({
  expr: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(numeric, fc.constantFrom('>', '<=', '==', '!='), numeric).map((parts) => parts.join(' ')),
    fc.constantFrom(
      'stream',
      'hard',
      'true',
      'priority == "low"',
      'session exists',
      'model in ["a", "b"]',
      'complexity in 10..50',
      'prompt matches r"a+b"',
      'cluster.saturation > 85%',
      'usage("free") > 50%',
      'alarm.hot',
      'any(load > 90%)',
    ),
    fc.tuple(tie('expr'), fc.constantFrom('and', 'or'), tie('expr')).map(([a, op, b]) => `(${a} ${op} ${b})`),
    tie('expr').map((inner) => `not (${inner})`),
  ),
})).expr;
const filter = fc.constantFrom(
  'healthy',
  'not draining',
  'load < 95%',
  'kv_cache_used < 90% and not hot_one',
  'among(session, 2)',
  'under_load(90%)',
  'lora in loras',
  'warm',
  'hot_one',
  'labels.rack == "r1"',
);
const by = fc.constantFrom(
  'least_tokens',
  '0.7 * prefix_cache + 0.3 * least_tokens then least_latency',
  'mine',
  'lowest(queue_depth)',
  '2 * highest(throughput) + mine',
  'least_latency(window: 5s)',
);
const modifier = fc.constantFrom(
  'affinity session',
  'timeout 90s',
  'retry 2',
  'affinity(session ?? user, bound: 1.5)',
  'priority low',
  'header "x-a" "b"',
  'fallback pool',
  'affinity prefix(2k)',
);
const destination = fc
  .tuple(
    fc.constantFrom('pool', 'any', 'tier "a", tier "b"', '60% tier "a", 40% tier "b"', 'endpoint "a/1"'),
    fc.option(filter),
    fc.option(by),
    fc.option(modifier),
  )
  .map(
    ([to, where, score, mod]) =>
      `to ${to}${where === null ? '' : ` where ${where}`}${score === null ? '' : ` by ${score}`}${mod === null ? '' : ` with ${mod}`}`,
  );
const route = fc
  .tuple(condition, destination, fc.option(destination))
  .map(([when, to, other]) => `route when ${when} ${to}${other === null ? '' : ` else ${other}`}`);
const policy = fc
  .tuple(fc.array(route, { minLength: 1, maxLength: 4 }), fc.array(route, { maxLength: 2 }), condition)
  .map(
    ([
      routes,
      grouped,
      when,
    ]) => `define tier "a" { model: "m", endpoints: ["http://10.0.0.1:8000", "http://10.0.0.2:8000"] }
define tier "b" { model: "n", endpoints: ["http://10.0.0.3:8000"], labels: { rack: "r1" } }
define limit "free" { key: tenant.id, requests: 60/min }
define alarm "hot" { when: cluster.saturation > 85%, until: cluster.saturation < 70%, for: 5s }
let big = prompt_tokens * 2
let hard = complexity > 50 and big > 5k
let hot_one = load > 80%
let mine = 0.5 * least_tokens + 0.5 * prefix_cache
let pool = tier "a"
reject when ${when}
group "g" when ${when} with timeout 30s, affinity user { let inner = hard or stream
${grouped.join('\n')} route when inner to pool }
${routes.join('\n')}
default to any`,
  );

describe('on random policies', () => {
  test('of the grammar, checking never throws, places are inside the text, and expressions are shared nowhere', () => {
    fc.assert(
      fc.property(arbitraryPolicyText, (text) => {
        expect(isSound(text, compile(text))).toBe(true);
      }),
      { numRuns: 600 },
    );
  });

  test('made of fitting parts, nothing is reported as an error', () => {
    fc.assert(
      fc.property(policy, (text) => {
        const result = compile(text);
        expect(result.diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
        expect(isSound(text, result)).toBe(true);
        expect(structuredClone(result.program)).toEqual(result.program);
      }),
      { numRuns: 150 },
    );
  });

  test('of the front end that make sense, nothing is reported as an error', () => {
    fc.assert(
      fc.property(arbitrarySensiblePolicyText, (text) => {
        const result = compile(text);
        expect(result.diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
        expect(isSound(text, result)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('cut anywhere, checking never throws', () => {
    fc.assert(
      fc.property(policy, fc.double({ min: 0, max: 1, noNaN: true }), (text, share) => {
        const cut = text.slice(0, Math.floor(text.length * share));
        expect(isSound(cut, compile(cut))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});

test('a doubling chain of lets is refused and not expanded without end', () => {
  const lets = Array.from({ length: 40 }, (_, index) => `let x${index + 1} = x${index} + x${index}`).join('\n');
  const { diagnostics } = compile(`let x0 = prompt_tokens\n${lets}\nroute when x40 > 5 to any\ndefault to any`);
  expect(diagnostics.map(({ code }) => code)).toContain('E0142');
});

test('a long chain of lets is refused and does not exhaust the stack', () => {
  const lets = Array.from({ length: 15_000 }, (_, index) => `let x${index + 1} = x${index} + 1.5`).join('\n');
  const { diagnostics } = compile(`let x0 = prompt_tokens\n${lets}\nroute when x15000 > 5 to any\ndefault to any`);
  expect(diagnostics.map(({ code }) => code)).toContain('E0142');
});

test('a policy that would grow without bound is refused', () => {
  const sum = Array.from({ length: 200 }, () => 'prompt_tokens').join(' + ');
  const rules = Array.from({ length: 8000 }, (_, index) => `route "r${index}" when big > ${index} to any`).join('\n');
  const { diagnostics } = compile(`let big = ${sum}\n${rules}\ndefault to any`);
  expect(diagnostics.filter(({ code }) => code === 'E0142')).toHaveLength(1);
  const grouped = compile(
    `group "g" when ${sum} > 5 { ${rules.replaceAll('big', 'turns')} }\ndefault to any`,
  ).diagnostics;
  expect(grouped.filter(({ code }) => code === 'E0142')).toHaveLength(1);
});

test('a policy of 1,000 rules compiles within ten times the bar', () => {
  const rules = Array.from(
    { length: 1000 },
    (_, index) =>
      `route "r${index}" when complexity > ${index % 90} and (model == "m${index}" or prompt matches r"word${index}\\b") to tier "a", tier "b" where load < 95% and kv_cache_used < 90% by 0.7 * prefix_cache + 0.3 * least_tokens with affinity session, timeout 90s`,
  ).join('\n');
  const text = `define tier "a" { model: "m", endpoints: ["http://10.0.0.1:8000"] }\ndefine tier "b" { model: "n", endpoints: ["http://10.0.0.2:8000"] }\n${rules}\ndefault to any`;
  compile(text);
  const start = performance.now();
  const { program, diagnostics } = compile(text);
  const elapsed = performance.now() - start;
  console.log(`1,000 rules: ${elapsed.toFixed(0)} ms`);
  expect(diagnostics).toEqual([]);
  expect(program?.routes.length).toBe(1001);
  expect(elapsed).toBeLessThan(5000);
});
