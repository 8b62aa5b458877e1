import { parse } from 'acorn';
import type { Node } from 'acorn';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Expression } from '../ir.ts';
import { programParts, TABLE } from './arbitrary-program.fixture.ts';
import { createEvaluators } from './create-evaluators.ts';
import { generate } from './generate.ts';
import { instantiateGenerated } from './instantiate-generated.ts';
import { constant, hostOf, programOf, SPAN } from './program.fixture.ts';
import { RUNTIME } from './runtime.ts';

const ALLOWED_NODES: ReadonlySet<string> = new Set([
  'ArrayExpression',
  'AssignmentExpression',
  'BinaryExpression',
  'BlockStatement',
  'CallExpression',
  'ConditionalExpression',
  'ExpressionStatement',
  'ForStatement',
  'FunctionDeclaration',
  'Identifier',
  'IfStatement',
  'Literal',
  'LogicalExpression',
  'MemberExpression',
  'Program',
  'ReturnStatement',
  'UnaryExpression',
  'UpdateExpression',
  'VariableDeclaration',
  'VariableDeclarator',
]);
const ALLOWED_OPERATORS: ReadonlySet<string> = new Set([
  '+',
  '-',
  '*',
  '/',
  '<',
  '<=',
  '>',
  '>=',
  '===',
  '!==',
  '&&',
  '||',
  '??',
  '!',
  'void',
  '=',
  '+=',
  '++',
]);
const ALLOWED_MEMBERS: ReadonlySet<string> = new Set([
  'n',
  'v',
  'column',
  'pool',
  'slots',
  'length',
  'test',
  'has',
  'includes',
]);

type AnyNode = Node & { readonly [key: string]: unknown };

const isNode = (value: unknown): value is AnyNode => typeof value === 'object' && value !== null && 'type' in value;

/** What stands in the text that the generator has no business to write. */
function problems(text: string): readonly string[] {
  const found: string[] = [];
  const complain = (condition: boolean, message: string): void => {
    if (!condition) found.push(message);
  };
  const visit = (node: AnyNode, role: string): void => {
    complain(ALLOWED_NODES.has(node.type), `node ${node.type}`);
    if (node.type === 'Identifier') {
      const name = String(node['name']);
      complain(
        role === 'member name' ? ALLOWED_MEMBERS.has(name) : /^(?:K|[a-z]\d*)$/.test(name),
        `identifier ${name}`,
      );
    }
    if (node.type === 'Literal') {
      const value = node['value'];
      const isDirective = role === 'directive' && value === 'use strict';
      complain(isDirective || typeof value === 'boolean' || Number.isFinite(value), `literal ${String(node['raw'])}`);
    }
    if ('operator' in node)
      complain(ALLOWED_OPERATORS.has(String(node['operator'])), `operator ${String(node['operator'])}`);
    if (node.type === 'MemberExpression' && node['computed'] === true) {
      const object = node['object'];
      complain(
        isNode(object) && object.type === 'Identifier' && /^(?:K|[nvso]|c\d+)$/.test(String(object['name'])),
        'computed member',
      );
    }
    for (const [key, value] of Object.entries(node)) {
      const named = node.type === 'MemberExpression' && node['computed'] !== true && key === 'property';
      const childRole = named ? 'member name' : 'directive' in node ? 'directive' : key;
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, childRole);
    }
  };
  visit(parse(text, { ecmaVersion: 2022, allowReturnOutsideFunction: true }) as unknown as AnyNode, 'root');
  return found;
}

const text = (value: string): Expression => constant(value);
const signal = (index: number, type: Expression['type']): Expression => ({
  kind: 'signal',
  index,
  type,
  scope: 'request',
  span: SPAN,
});

describe('generated text', () => {
  test('holds minted identifiers, finite numbers and listed operators only', () => {
    fc.assert(
      fc.property(programParts(4), (parts) => {
        expect(problems(generate(programOf(TABLE, parts)).text)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('the check of the text finds what it is for', () => {
    expect(problems("'use strict';\nreturn [fetch(1)];")).toEqual(['identifier fetch']);
    expect(problems('const k0 = K[0];\nreturn [k0.constructor];')).toEqual(['identifier constructor']);
    expect(problems('const k0 = K[0];\nreturn [k0["x"], `${k0}`];')).toContain('literal "x"');
    expect(problems('return [() => 1];')).toEqual(['node ArrowFunctionExpression']);
  });

  test('is the same whatever strings, lists and patterns the policy holds', () => {
    const withText = (hostile: string): string =>
      generate(
        programOf(TABLE, {
          predicates: [
            {
              kind: 'compare',
              op: '==',
              left: signal(6, 'string'),
              right: text(hostile),
              type: 'bool',
              scope: 'request',
              span: SPAN,
            },
            {
              kind: 'in',
              value: signal(6, 'string'),
              list: constant([hostile, 'x']),
              type: 'bool',
              scope: 'request',
              span: SPAN,
            },
            {
              kind: 'matches',
              value: signal(6, 'string'),
              pattern: hostile,
              flags: '',
              prompt: true,
              type: 'bool',
              scope: 'request',
              span: SPAN,
            },
          ],
        }),
      ).text;
    fc.assert(fc.property(fc.string(), (hostile) => withText(`#${hostile}`) === withText('y')));
    expect(withText('`${process.exit()}`"\'\\\n\u2028')).toBe(withText('y'));
  });

  test('asks only for functions that the runtime has', () => {
    fc.assert(
      fc.property(programParts(4), (parts) => {
        const asked = generate(programOf(TABLE, parts)).constants.filter((entry) => entry.kind === 'runtime');
        expect(asked.filter((entry) => typeof RUNTIME[entry.name] !== 'function')).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  test('reads each signal once in a function, and fetches each column once', () => {
    const p0: Expression = { kind: 'property', index: 0, type: 'number', scope: 'candidate', span: SPAN };
    const product: Expression = {
      kind: 'arithmetic',
      op: '*',
      left: p0,
      right: signal(0, 'number'),
      type: 'number',
      scope: 'candidate',
      span: SPAN,
    };
    const sum: Expression = {
      kind: 'arithmetic',
      op: '+',
      left: product,
      right: product,
      type: 'number',
      scope: 'candidate',
      span: SPAN,
    };
    const generated = generate(programOf(TABLE, { scores: [sum] })).text;
    expect(generated.match(/n\[0\]/g)).toHaveLength(1);
    expect(generated.match(/h\.column\(0, s, l\)/g)).toHaveLength(1);
  });

  test('computes what no candidate changes before the loop', () => {
    const p0: Expression = { kind: 'property', index: 0, type: 'number', scope: 'candidate', span: SPAN };
    const half: Expression = {
      kind: 'arithmetic',
      op: '/',
      left: signal(0, 'number'),
      right: constant(2),
      type: 'number',
      scope: 'request',
      span: SPAN,
    };
    const where: Expression = {
      kind: 'compare',
      op: '<',
      left: p0,
      right: half,
      type: 'bool',
      scope: 'candidate',
      span: SPAN,
    };
    const generated = generate(programOf(TABLE, { filters: [where] })).text;
    expect(generated.indexOf('(s0 / 2)')).toBeGreaterThan(0);
    expect(generated.indexOf('(s0 / 2)')).toBeLessThan(generated.indexOf('for ('));
  });

  test('equal expressions share one function', () => {
    const when = (): Expression => ({
      kind: 'compare',
      op: '>',
      left: signal(0, 'number'),
      right: constant(50),
      type: 'bool',
      scope: 'request',
      span: SPAN,
    });
    const generated = generate(programOf(TABLE, { predicates: [when(), when(), when()] })).text;
    expect(generated.match(/function /g)).toHaveLength(1);
  });

  test('grows in proportion to the expression, also where truth and value alternate', () => {
    const size = (depth: number): number => {
      let e: Expression = signal(3, 'bool');
      for (let level = 0; level < depth; level++) {
        const negated: Expression = { kind: 'not', operand: e, type: 'bool', scope: 'request', span: SPAN };
        const either: Expression = {
          kind: 'or',
          operands: [negated, signal(4, 'bool')],
          type: 'bool',
          scope: 'request',
          span: SPAN,
        };
        const same: Expression = {
          kind: 'compare',
          op: '!=',
          left: either,
          right: signal(5, 'bool'),
          type: 'bool',
          scope: 'request',
          span: SPAN,
        };
        e = { kind: 'coalesce', left: same, right: signal(3, 'bool'), type: 'bool', scope: 'request', span: SPAN };
      }
      return generate(programOf(TABLE, { predicates: [e] })).text.length;
    };
    expect(size(60)).toBeLessThan(2.5 * size(30));
  });
});

describe('instantiation', () => {
  test('an artefact of another program is refused', () => {
    const one = programOf(TABLE, { predicates: [constant(true)] });
    const two = programOf(TABLE, { predicates: [constant(true), constant(false)] });
    expect(() => instantiateGenerated(two, generate(one))).toThrow('another program');
  });

  test.each(['generated', 'interpreted'] as const)(
    '%s evaluators refuse an expression that is not part of the program',
    (mode) => {
      const program = programOf(TABLE, { predicates: [constant(true)] });
      const evaluators = createEvaluators(program, { mode });
      expect(() => evaluators.predicate(constant(true))).toThrow('not part of the program');
      expect(() => evaluators.filter(constant(true))).toThrow('not part of the program');
    },
  );

  test('interpreted evaluators work where code from strings is forbidden, generated ones say so', () => {
    const program = programOf(TABLE, { predicates: [constant(true)] });
    const [when] = program.routes.map((route) => route.when);
    const original = globalThis.Function;
    const forbidden = function (): never {
      throw new EvalError('forbidden');
    };
    globalThis.Function = forbidden as unknown as FunctionConstructor;
    try {
      const evaluators = createEvaluators(program, { mode: 'interpreted' });
      const host = hostOf(program, evaluators.targets, { signals: [], properties: [], pools: {} });
      expect(when !== undefined && evaluators.predicate(when)(host)).toBe(true);
      expect(() => createEvaluators(program, { mode: 'generated' })).toThrow(EvalError);
    } finally {
      globalThis.Function = original;
    }
  });
});

test('lists that JSON writes alike are constants of their own', () => {
  const numbers = [Infinity, -Infinity, Number.MAX_VALUE, 0, -0, 1];
  const pairs = numbers.flatMap((a) => numbers.map((b) => [a, b] as const));
  const predicates = pairs.map(([a, b]): Expression => ({
    kind: 'compare',
    op: '==',
    left: constant([a]),
    right: constant([b]),
    type: 'bool',
    scope: 'constant',
    span: SPAN,
  }));
  const program = programOf(TABLE, { predicates });
  const evaluators = instantiateGenerated(program, generate(program));
  const host = hostOf(program, evaluators.targets, { signals: [], properties: [], pools: {} });
  expect(predicates.map((predicate) => evaluators.predicate(predicate)(host))).toEqual(pairs.map(([a, b]) => a === b));
});
