import type { Value } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import { OPPOSITE } from '../eval/compare-values.ts';
import { operandsOf } from '../operands-of.ts';
import type { Expression, PolicyProgram } from '../ir.ts';
import type { Span } from '../syntax/span.ts';
import { allOf, FALSE, isIn, negate, someOf, TRUE } from './formula.ts';
import type { Formula } from './formula.ts';
import { meaningKey, referenceKey } from './meaning-key.ts';
import type { MonotoneStep } from './monotone.ts';
import { compareTerms, isKnownTerm, termOf } from './term.ts';
import type { Case, Comparison, Term } from './term.ts';
import { choiceBit, propertyShape, shapeOf, signalShape } from './variable.ts';
import type { Variable, VariableShape, Vocabulary } from './variable.ts';

/** Conditions of one program as statements over the variables of a vocabulary. Each gives the same object for the same expression. */
export interface Translator {
  /** The statement that a condition is known true. */
  truth(expression: Expression): Formula;
  /** The statement that a condition is known false. */
  falsity(expression: Expression): Formula;
  /** The statement that a value is known. */
  known(expression: Expression): Formula;
}

export interface TranslatorOptions {
  /**
   * The endpoint in hand. `facts` are properties that are settled, as its region, undefined for one that is settled to be unknown; every
   * other property is a variable, told from those of other endpoints by the name.
   */
  readonly endpoint?: { readonly name: string; readonly facts: ReadonlyMap<string, Value | undefined> };
}

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>;

const MAX_CASES = 16;
const MAX_TEXT = 60;
const COUNTS: readonly [number, number, 'whole'] = [0, 2 ** 53, 'whole'];

export function createTranslator(
  program: PolicyProgram,
  vocabulary: Vocabulary,
  options: TranslatorOptions = {},
): Translator {
  const truths = new WeakMap<Expression, Formula>();
  const falsities = new WeakMap<Expression, Formula>();
  const casesOf = new WeakMap<Expression, readonly Case[]>();
  const texts = new Map(program.files.map(({ path, text }) => [path, text]));
  const { endpoint } = options;

  const textOf = (span: Span): string => {
    const written = (texts.get(span.file) ?? '').slice(span.start, span.end).replaceAll(/\s+/g, ' ');
    return written.length <= MAX_TEXT ? written : `${written.slice(0, MAX_TEXT - 1)}…`;
  };

  const variableOf = (expression: Of<'signal' | 'property'>): Variable => {
    const ref = (expression.kind === 'signal' ? program.signals : program.properties)[expression.index];
    if (ref === undefined) throw new TypeError('An expression reads what its program does not list.');
    const own = referenceKey(program, ref);
    if (expression.kind === 'signal')
      return vocabulary.variable(own, () => signalShape(ref as PolicyProgram['signals'][number], own));
    const key = propertyKey(own, endpoint?.name);
    return vocabulary.variable(key, () => propertyShape(ref, key));
  };

  /** A part that cannot be followed, as a variable of its type. */
  const opaque = (expression: Expression): Variable => {
    const reads = readsCandidate(expression) ? ` of ${endpoint?.name ?? ''}` : '';
    const key = `opaque ${meaningKey(program, expression)}${reads}`;
    return vocabulary.variable(key, (): VariableShape => {
      const isCount = expression.kind === 'aggregate' && expression.function === 'count';
      return {
        key,
        text: textOf(expression.span),
        type: expression.type,
        ...(isCount ? shapeOf('count', true, COUNTS) : shapeOf(expression.type, false)),
        opaque: true,
      };
    });
  };

  const whole = (expression: Expression): readonly Case[] => [{ guard: TRUE, term: termOf(opaque(expression)) }];

  const cases = (expression: Expression): readonly Case[] => {
    let found = casesOf.get(expression);
    if (found === undefined) {
      found = findCases(expression);
      if (found.length > MAX_CASES) found = whole(expression);
      casesOf.set(expression, found);
    }
    return found;
  };

  const findCases = (expression: Expression): readonly Case[] => {
    switch (expression.kind) {
      case 'constant':
        return [{ guard: TRUE, term: { kind: 'constant', value: expression.value } }];
      case 'signal':
        return [{ guard: TRUE, term: termOf(variableOf(expression)) }];
      case 'property': {
        const key = program.properties[expression.index]?.key ?? '';
        if (endpoint?.facts.has(key) !== true) return [{ guard: TRUE, term: termOf(variableOf(expression)) }];
        const value = endpoint.facts.get(key);
        return [{ guard: TRUE, term: value === undefined ? { kind: 'unknown' } : { kind: 'constant', value } }];
      }
      case 'coalesce': {
        if (expression.type === 'bool') return whole(expression);
        const left = cases(expression.left);
        const missing = negate(known(expression.left));
        return [
          ...left.map(({ guard, term }) => ({ guard: allOf([guard, isKnownTerm(term)]), term })),
          ...cases(expression.right).map(({ guard, term }) => ({ guard: allOf([guard, missing]), term })),
        ].filter(({ guard }) => guard.kind !== 'false');
      }
      case 'negate':
      case 'arithmetic':
      case 'call': {
        if (!isNumericType(expression.type)) return whole(expression);
        const operands = operandsOf(expression);
        if (!operands.every((operand) => isNumericType(operand.type))) return whole(expression);
        const found: Case[] = [];
        for (const { guard, terms } of combinations(operands.map(cases))) {
          const term = computed(expression, terms);
          if (term === undefined) return whole(expression);
          found.push({ guard, term });
        }
        return found;
      }
      default:
        return whole(expression);
    }
  };

  /** The statement that `holds` holds of the terms of some case of each operand. */
  const overCases = (operands: readonly Expression[], holds: (terms: readonly Term[]) => Formula): Formula =>
    someOf(combinations(operands.map(cases)).map(({ guard, terms }) => allOf([guard, holds(terms)])));

  const known = (expression: Expression): Formula => {
    if (expression.type === 'bool') return someOf([truth(expression), falsity(expression)]);
    if (expression.kind === 'list') return allOf(expression.members.map(known));
    return overCases([expression], ([term]) => (term === undefined ? FALSE : isKnownTerm(term)));
  };

  const compare = (op: Comparison, left: Expression, right: Expression): Formula =>
    overCases([left, right], ([first, second]) =>
      first === undefined || second === undefined ? FALSE : compareTerms(vocabulary, op, first, second),
    );

  const flag = (variable: Variable, value: boolean): Formula =>
    isIn(variable, { kind: 'choice', mask: choiceBit(variable, value) });

  /** A part of its own that is true, or false, only where all that it needs is known. */
  const opaqueFlag = (expression: Expression, value: boolean, needs: readonly Expression[]): Formula =>
    allOf([...needs.map(known), flag(opaque(expression), value)]);

  const isMember = (expression: Expression, value: Expression, list: Expression, wanted: boolean): Formula => {
    if (list.kind === 'list') {
      const parts = list.members.map((member) => compare(wanted ? '==' : '!=', value, member));
      return wanted ? someOf(parts) : allOf(parts);
    }
    if (list.kind !== 'constant' || typeof list.value !== 'object') return opaqueFlag(expression, wanted, [value]);
    const members = list.value;
    return overCases([value], ([term]) => {
      if (term === undefined) return FALSE;
      const parts = members.map((member) =>
        compareTerms(vocabulary, wanted ? '==' : '!=', term, { kind: 'constant', value: member }),
      );
      return wanted ? someOf(parts) : allOf([isKnownTerm(term), ...parts]);
    });
  };

  /** The statement that a bool that is no `and`, `or` or `not` is known to be `wanted`. */
  const leaf = (expression: Expression, wanted: boolean): Formula => {
    switch (expression.kind) {
      case 'constant':
        return expression.value === wanted ? TRUE : FALSE;
      case 'signal':
        return flag(variableOf(expression), wanted);
      case 'property': {
        const key = program.properties[expression.index]?.key ?? '';
        if (endpoint?.facts.has(key) !== true) return flag(variableOf(expression), wanted);
        return endpoint.facts.get(key) === wanted ? TRUE : FALSE;
      }
      case 'compare': {
        const { left, right, op } = expression;
        if (left.type === 'bool') {
          const same = (op === '==') === wanted;
          return someOf([
            allOf([truth(left), same ? truth(right) : falsity(right)]),
            allOf([falsity(left), same ? falsity(right) : truth(right)]),
          ]);
        }
        if (typeof left.type === 'object' && 'list' in left.type) return opaqueFlag(expression, wanted, [left, right]);
        return compare(wanted ? op : OPPOSITE[op], left, right);
      }
      case 'between': {
        const { value, low, high } = expression;
        return wanted
          ? allOf([compare('<=', low, value), compare('<=', value, high)])
          : someOf([compare('>', low, value), compare('>', value, high)]);
      }
      case 'in':
        return isMember(expression, expression.value, expression.list, wanted);
      case 'contains': {
        const { value, part } = expression;
        if (typeof value.type === 'object' && 'list' in value.type) return isMember(expression, part, value, wanted);
        return opaqueFlag(expression, wanted, [value, part]);
      }
      case 'matches':
        return opaqueFlag(expression, wanted, [expression.value]);
      case 'exists':
        return wanted ? known(expression.operand) : negate(known(expression.operand));
      case 'coalesce': {
        const { left, right } = expression;
        const own = wanted ? truth : falsity;
        return someOf([own(left), allOf([negate(known(left)), own(right)])]);
      }
      default:
        return opaqueFlag(expression, wanted, []);
    }
  };

  const truth = (expression: Expression): Formula => {
    let formula = truths.get(expression);
    if (formula !== undefined) return formula;
    if (expression.kind === 'and') formula = allOf(expression.operands.map(truth));
    else if (expression.kind === 'or') formula = someOf(expression.operands.map(truth));
    else formula = expression.kind === 'not' ? falsity(expression.operand) : leaf(expression, true);
    truths.set(expression, formula);
    return formula;
  };

  const falsity = (expression: Expression): Formula => {
    let formula = falsities.get(expression);
    if (formula !== undefined) return formula;
    if (expression.kind === 'and') formula = someOf(expression.operands.map(falsity));
    else if (expression.kind === 'or') formula = allOf(expression.operands.map(falsity));
    else formula = expression.kind === 'not' ? truth(expression.operand) : leaf(expression, false);
    falsities.set(expression, formula);
    return formula;
  };

  return { truth, falsity, known };
}

/** The key of a property's variable for an endpoint. */
export const propertyKey = (own: string, endpoint: string | undefined): string => `property ${endpoint ?? ''} ${own}`;

const readsCandidate = (expression: Expression): boolean =>
  expression.kind === 'property' || (expression.kind !== 'aggregate' && operandsOf(expression).some(readsCandidate));

/** Every choice of one case of each operand whose guards can hold together. */
function combinations(
  operands: readonly (readonly Case[])[],
): readonly { readonly guard: Formula; readonly terms: readonly Term[] }[] {
  let found: readonly { readonly guard: Formula; readonly terms: readonly Term[] }[] = [{ guard: TRUE, terms: [] }];
  for (const own of operands) {
    found = found.flatMap(({ guard, terms }) =>
      own.map((one) => ({ guard: allOf([guard, one.guard]), terms: [...terms, one.term] })),
    );
    found = found.filter(({ guard }) => guard.kind !== 'false');
  }
  return found;
}

/** The result of a calculation over terms; undefined where it cannot be followed. */
function computed(expression: Of<'negate' | 'arithmetic' | 'call'>, terms: readonly Term[]): Term | undefined {
  if (terms.some(({ kind }) => kind === 'unknown')) return { kind: 'unknown' };
  const constants = terms.map((term) => (term.kind === 'constant' ? Number(term.value) : undefined));
  const varying = terms.filter((term) => term.kind !== 'constant');
  const [only] = varying;
  if (varying.length > 1) return undefined;
  if (only === undefined) {
    const value = calculate(
      expression,
      constants.map((constant) => constant ?? Number.NaN),
    );
    if (value === undefined) return undefined;
    return Number.isNaN(value) ? { kind: 'unknown' } : { kind: 'constant', value };
  }
  if (only.kind !== 'number') return undefined;
  const step = stepOf(expression, constants);
  return step === undefined ? undefined : { ...only, steps: [...only.steps, ...step] };
}

/** NaN is unknown; undefined is a function that is not followed. */
function calculate(expression: Of<'negate' | 'arithmetic' | 'call'>, values: readonly number[]): number | undefined {
  const [first = Number.NaN, second = Number.NaN, third = Number.NaN] = values;
  if (expression.kind === 'negate') return -first;
  if (expression.kind === 'arithmetic') {
    const result = {
      '+': first + second,
      '-': first - second,
      '*': first * second,
      '/': first / second,
    }[expression.op];
    return Number.isFinite(result) ? result : Number.NaN;
  }
  switch (expression.function) {
    case 'min':
      return Math.min(...values);
    case 'max':
      return Math.max(...values);
    case 'clamp':
      return first > third || second > third ? third : Math.max(first, second);
    default:
      return undefined;
  }
}

/** A calculation with exactly one operand that varies, as steps; `constants` holds undefined at its place. */
function stepOf(
  expression: Of<'negate' | 'arithmetic' | 'call'>,
  constants: readonly (number | undefined)[],
): readonly MonotoneStep[] | undefined {
  const [first, second, third] = constants;
  if (expression.kind === 'negate') return [{ op: 'negate' }];
  if (expression.kind === 'arithmetic') {
    const by = first ?? second ?? Number.NaN;
    if (!Number.isFinite(by)) return undefined;
    switch (expression.op) {
      case '+':
        return [{ op: 'add', by }];
      case '-':
        return first === undefined ? [{ op: 'add', by: -by }] : [{ op: 'minuend', by }];
      case '*':
        return by === 0 ? undefined : [{ op: 'multiply', by }];
      case '/':
        return first === undefined && by !== 0 ? [{ op: 'divide', by }] : undefined;
    }
  }
  const numbers = constants.filter((constant) => constant !== undefined);
  switch (expression.function) {
    case 'min':
      return numbers.map((by) => ({ op: 'least', by }));
    case 'max':
      return numbers.map((by) => ({ op: 'most', by }));
    case 'clamp':
      return first === undefined && second !== undefined && third !== undefined
        ? [{ op: 'clamp', low: second, high: third }]
        : undefined;
    default:
      return undefined;
  }
}
