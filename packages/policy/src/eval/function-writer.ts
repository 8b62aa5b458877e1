import type { Value } from '@signalbox/plugin-api';
import type { Expression, TargetRef } from '../ir.ts';
import type { GeneratedConstant } from './artefact.ts';
import { EVERY_ENDPOINT, targetKey } from './reads.ts';
import { operandsOf } from '../operands-of.ts';
import type { RuntimeName } from './runtime.ts';

/** The parts of one generated program that its functions share: constants, helper functions, functions by their body. */
export interface ModuleWriter {
  /** The identifier of a constant; equal ones share it. */
  constant(constant: GeneratedConstant): string;
  runtime(name: RuntimeName): string;
  value(value: Value): string;
  /** The identifier of a function with these parameters and body; equal ones share it. */
  define(prefix: 'f' | 'a', parameters: string, body: string): string;
  pool(target: TargetRef | undefined): number;
  /** Whether an expression reads a property of the candidate in hand; aggregates do not. */
  readsCandidate(expression: Expression): boolean;
  /** The number of an expression of constants alone, NaN if that is unknown; undefined if it is not constant. */
  foldNumber(expression: Expression): number | undefined;
  finish(functions: readonly string[]): { readonly text: string; readonly constants: readonly GeneratedConstant[] };
}

export function createModuleWriter(targets: readonly TargetRef[]): ModuleWriter {
  const constants: GeneratedConstant[] = [];
  const constantNames = new Map<string, string>();
  const functionNames = new Map<string, string>();
  const definitions: string[] = [];
  const poolIndices = new Map(targets.map((target, index) => [targetKey(target), index]));

  const constant = (entry: GeneratedConstant): string => {
    const key = JSON.stringify(entry, tellNumbersApart);
    let name = constantNames.get(key);
    if (name === undefined) {
      name = `k${constants.length}`;
      constants.push(Object.freeze(entry));
      constantNames.set(key, name);
    }
    return name;
  };

  const readsCandidate = memoised(
    (e: Expression): boolean => e.kind === 'property' || (e.kind !== 'aggregate' && operandsOf(e).some(readsCandidate)),
  );

  const foldNumber = memoised((e: Expression): number | undefined => {
    if (e.kind === 'constant') return typeof e.value === 'number' ? e.value : undefined;
    if (e.kind === 'negate') {
      const operand = foldNumber(e.operand);
      return operand === undefined ? undefined : -operand;
    }
    if (e.kind !== 'arithmetic') return undefined;
    const left = foldNumber(e.left);
    const right = foldNumber(e.right);
    if (left === undefined || right === undefined) return undefined;
    const result = ARITHMETIC[e.op](left, right);
    return Number.isFinite(result) ? result : Number.NaN;
  });

  return {
    readsCandidate,
    foldNumber,
    constant,
    runtime: (name) => constant({ kind: 'runtime', name }),
    value: (value) => {
      if (typeof value === 'number') return numberLiteral(value);
      if (typeof value === 'boolean') return value ? 'true' : 'false';
      return constant({ kind: 'value', value });
    },
    define: (prefix, parameters, body) => {
      const key = `${prefix}(${parameters}){${body}}`;
      let name = functionNames.get(key);
      if (name === undefined) {
        name = `${prefix}${functionNames.size}`;
        functionNames.set(key, name);
        definitions.push(`function ${name}(${parameters}) {\n${body}}\n`);
      }
      return name;
    },
    pool: (target) => {
      const index = poolIndices.get(targetKey(target ?? EVERY_ENDPOINT));
      if (index === undefined) throw new TypeError('An aggregate ranges over a pool that its program does not list.');
      return index;
    },
    finish: (functions) => {
      const prelude = constants.map((_, index) => `const k${index} = K[${index}];\n`).join('');
      const text = `'use strict';\n${prelude}${definitions.join('')}return [${functions.join(', ')}];\n`;
      return Object.freeze({ text, constants: Object.freeze(constants) });
    },
  };
}

/** JSON has one form for NaN and both infinities, and one for both zeros. */
function tellNumbersApart(_name: string, value: unknown): unknown {
  const told = typeof value !== 'number' || (Number.isFinite(value) && !Object.is(value, -0));
  return told ? value : { number: Object.is(value, -0) ? '-0' : String(value) };
}

const ARITHMETIC: { readonly [Operator in '+' | '-' | '*' | '/']: (left: number, right: number) => number } = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => left / right,
};

function memoised<Result>(compute: (expression: Expression) => Result): (expression: Expression) => Result {
  const known = new Map<Expression, Result>();
  return (expression) => {
    const hit = known.get(expression);
    if (hit !== undefined || known.has(expression)) return hit as Result;
    const result = compute(expression);
    known.set(expression, result);
    return result;
  };
}

/** JavaScript text of a number. */
export function numberLiteral(value: number): string {
  if (Number.isNaN(value)) return UNKNOWN_NUMBER;
  if (value === Infinity) return '(1 / 0)';
  if (value === -Infinity) return '(-1 / 0)';
  return value < 0 ? `(${value})` : String(value);
}

export const UNKNOWN_NUMBER = '(0 / 0)';
export const UNKNOWN_VALUE = 'void 0';

/** What one generated function needs before its own code: reads, columns, temporaries. */
export interface FunctionWriter {
  readonly module: ModuleWriter;
  /** Whether the code stands in a loop over slots. */
  readonly perSlot: boolean;
  /** The identifier of a signal's value. */
  signal(index: number, numeric: boolean): string;
  /** The identifier of a property's value for the slot in hand. */
  property(index: number): string;
  /** A fresh identifier to assign to. */
  temporary(): string;
  /** The identifier of a value computed once before the loop. */
  hoist(code: string): string;
  /** Reads, temporaries and hoisted values; stands before columns are fetched. */
  head(): string;
  /** Fetches columns of the slots `s[0..l)`. */
  columns(): string;
  /** Reads the columns of slot `e`. */
  loads(): string;
}

export function createFunctionWriter(module: ModuleWriter, perSlot: boolean): FunctionWriter {
  const signals = new Map<number, boolean>();
  const properties = new Set<number>();
  const hoisted = new Map<string, string>();
  let temporaries = 0;
  return {
    module,
    perSlot,
    signal: (index, numeric) => {
      signals.set(index, numeric);
      return `s${index}`;
    },
    property: (index) => {
      if (!perSlot) throw new TypeError('A property of one endpoint is read where no endpoint is in hand.');
      properties.add(index);
      return `p${index}`;
    },
    temporary: () => `t${temporaries++}`,
    hoist: (code) => {
      let name = hoisted.get(code);
      if (name === undefined) {
        name = `g${hoisted.size}`;
        hoisted.set(code, name);
      }
      return name;
    },
    head: () => {
      const kinds = [...signals.values()];
      const arrays = [...(kinds.includes(true) ? ['n = h.n'] : []), ...(kinds.includes(false) ? ['v = h.v'] : [])];
      const reads = [...signals].map(([index, numeric]) => `s${index} = ${numeric ? 'n' : 'v'}[${index}]`);
      const names = Array.from({ length: temporaries }, (_, index) => `t${index}`);
      return [
        ...[...arrays, ...reads].map((declaration) => `const ${declaration};\n`),
        names.length === 0 ? '' : `let ${names.join(', ')};\n`,
        ...[...hoisted].map(([code, name]) => `const ${name} = ${code};\n`),
      ].join('');
    },
    columns: () => [...properties].map((index) => `const c${index} = h.column(${index}, s, l);\n`).join(''),
    loads: () => [...properties].map((index) => `const p${index} = c${index}[e];\n`).join(''),
  };
}
