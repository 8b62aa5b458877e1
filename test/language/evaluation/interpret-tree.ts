import type { ExprNode, NameNode } from '../../../packages/policy/src/index.ts';

/*
 * What an expression means, read from the tree of its text and from the reference alone: no types, no folding, no tables, no plan. The
 * compiled program is held against it, so that a fault anywhere between the text and the evaluators shows.
 */

/** A value; `undefined` is unknown. */
export type TreeValue = number | string | boolean | readonly TreeValue[] | undefined;

/** The facts that a policy can ask for, by the name as it is written. */
export interface Facts {
  /** A fact of the request: `complexity`, `header["x-slo"]`. Undefined for a name that is none. */
  readonly request: ReadonlyMap<string, TreeValue>;
  /** A fact of an endpoint, by its number. */
  readonly endpoint: ReadonlyMap<string, readonly TreeValue[]>;
  /** Endpoints that aggregates range over, by the name of the target. */
  readonly pools: { readonly [target: string]: readonly number[] };
}

/** The value of an expression for a request, and in candidate scope for an endpoint. */
export function interpretTree(node: ExprNode, facts: Facts, endpoint?: number): TreeValue {
  const of = (inner: ExprNode): TreeValue => interpretTree(inner, facts, endpoint);
  switch (node.kind) {
    case 'number':
    case 'count':
    case 'duration':
    case 'bytes':
    case 'percent':
    case 'money':
    case 'rate':
    case 'string':
    case 'bool':
      return node.value;
    case 'paren':
      return of(node.inner);
    case 'name':
      return factOf(node.text, facts, endpoint);
    case 'index':
      return factOf(`${node.object.text}[${JSON.stringify(of(node.index))}]`, facts, endpoint);
    case 'list':
      return node.items.map(of);
    case 'or':
      return kleene(node.operands.map(of), true);
    case 'and':
      return kleene(node.operands.map(of), false);
    case 'not': {
      const value = of(node.operand);
      return typeof value === 'boolean' ? !value : undefined;
    }
    case 'negate':
      return calculate('-', 0, of(node.operand));
    case 'arithmetic':
      return calculate(node.operator, of(node.left), of(node.right));
    case 'coalesce':
      return node.operands.map(of).find((value) => whole(value) !== undefined);
    case 'compare':
      return compare(node.operator, of(node.left), of(node.right));
    case 'exists':
      return whole(of(node.subject)) !== undefined;
    case 'matches': {
      const text = of(node.subject);
      return typeof text === 'string' ? new RegExp(node.regex.source, node.regex.flags).test(text) : undefined;
    }
    case 'contains': {
      const [value, item] = [of(node.subject), of(node.item)];
      if (typeof value === 'string') return typeof item === 'string' ? value.includes(item) : undefined;
      return member(item, value);
    }
    case 'in': {
      const subject = of(node.subject);
      const found =
        node.set.kind === 'range'
          ? kleene([compare('<=', of(node.set.low), subject), compare('<=', subject, of(node.set.high))], false)
          : member(subject, of(node.set));
      return typeof found === 'boolean' ? found !== node.negated : undefined;
    }
    case 'call':
      return call(
        node.callee,
        node.args.items.map((item) => item.value),
        facts,
        endpoint,
      );
    default:
      throw new Error(`a ${node.kind} has no value`);
  }
}

function factOf(name: string, facts: Facts, endpoint: number | undefined): TreeValue {
  if (facts.request.has(name)) return facts.request.get(name);
  const column = facts.endpoint.get(name);
  if (column === undefined || endpoint === undefined) throw new Error(`nothing is known of ${name} here`);
  return column[endpoint];
}

/** A list that holds an unknown is itself unknown, except to `in`. */
function whole(value: TreeValue): TreeValue {
  return typeof value === 'object' && value.some((part) => whole(part) === undefined) ? undefined : value;
}

/** `or` is decided by a true, `and` by a false. */
function kleene(values: readonly TreeValue[], decisive: boolean): TreeValue {
  if (values.includes(decisive)) return decisive;
  return values.includes(undefined) ? undefined : !decisive;
}

function calculate(operator: '+' | '-' | '*' | '/', left: TreeValue, right: TreeValue): TreeValue {
  if (typeof left !== 'number' || typeof right !== 'number') return undefined;
  const value = { '+': left + right, '-': left - right, '*': left * right, '/': left / right }[operator];
  return Number.isFinite(value) ? value : undefined;
}

function compare(operator: string, left: TreeValue, right: TreeValue): TreeValue {
  const [a, b] = [whole(left), whole(right)];
  if (a === undefined || b === undefined) return undefined;
  if (operator === '==') return same(a, b);
  if (operator === '!=') return !same(a, b);
  if (typeof a !== 'number' || typeof b !== 'number') throw new Error('only numbers have an order');
  return { '<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b }[operator];
}

const same = (a: TreeValue, b: TreeValue): boolean =>
  typeof a === 'object' && typeof b === 'object' ? JSON.stringify(a) === JSON.stringify(b) : a === b;

function member(value: TreeValue, list: TreeValue): TreeValue {
  if (value === undefined || typeof list !== 'object') return undefined;
  if (list.some((item) => item !== undefined && same(item, value))) return true;
  return list.includes(undefined) ? undefined : false;
}

function call(callee: NameNode, args: readonly ExprNode[], facts: Facts, endpoint: number | undefined): TreeValue {
  const plain = args.filter((arg) => arg.kind !== 'ref' && !(arg.kind === 'name' && arg.text === 'any'));
  const [first, second] = plain;
  if (first === undefined) throw new Error(`${callee.text} has no argument`);
  const valueOf = (node: ExprNode): TreeValue => interpretTree(node, facts, endpoint);
  switch (callee.text) {
    case 'number':
      return toNumber(valueOf(first));
    case 'duration':
      return toDuration(valueOf(first), second?.kind === 'name' ? second.text : 's');
    case 'bool':
      return toBool(valueOf(first));
    case 'lower': {
      const text = valueOf(first);
      return typeof text === 'string' ? text.toLowerCase() : undefined;
    }
    case 'list': {
      const [text, separator] = [valueOf(first), second === undefined ? undefined : valueOf(second)];
      if (typeof text !== 'string' || typeof separator !== 'string') return undefined;
      return text
        .split(separator)
        .map((part) => part.trim())
        .filter((part) => part !== '');
    }
    case 'min':
    case 'max':
      if (second !== undefined) return extreme(callee.text, plain.map(valueOf));
  }
  const target = args.find((arg) => arg.kind === 'ref');
  const pool = facts.pools[target?.kind === 'ref' ? target.label.value : 'any'] ?? [];
  return aggregate(
    callee.text,
    pool.map((slot) => interpretTree(first, facts, slot)),
  );
}

const isNumber = (value: TreeValue): value is number => typeof value === 'number';

function extreme(name: 'min' | 'max', values: readonly TreeValue[]): TreeValue {
  return values.every(isNumber) ? Math[name](...values) : undefined;
}

function aggregate(name: string, values: readonly TreeValue[]): TreeValue {
  if (name === 'count') return values.filter((value) => value === true).length;
  if (name === 'any' || name === 'all') {
    return values.length === 0 ? undefined : kleene(values, name === 'any');
  }
  const known = values.filter(isNumber);
  if (values.length === 0) return name === 'sum' ? 0 : undefined;
  if (known.length === 0) return undefined;
  const sum = known.reduce((total, value) => total + value, 0);
  switch (name) {
    case 'min':
      return Math.min(...known);
    case 'max':
      return Math.max(...known);
    case 'avg':
      return finite(sum / known.length);
    case 'sum':
      return finite(sum);
    default:
      throw new Error(`${name} is no function`);
  }
}

const finite = (value: number): TreeValue => (Number.isFinite(value) ? value : undefined);

function toNumber(text: TreeValue): TreeValue {
  return typeof text === 'string' && /^\s*[+-]?\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function toDuration(text: TreeValue, unit: string): TreeValue {
  const value = toNumber(text);
  const seconds =
    new Map([
      ['ms', 0.001],
      ['s', 1],
      ['m', 60],
    ]).get(unit) ?? Number.NaN;
  return isNumber(value) && value >= 0 ? finite(value * seconds) : undefined;
}

function toBool(text: TreeValue): TreeValue {
  if (typeof text !== 'string') return undefined;
  return new Map([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ]).get(text.trim().toLowerCase());
}
