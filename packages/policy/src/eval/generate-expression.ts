import { isKnown, isNumericType } from '@signalbox/plugin-api';
import type { Expression } from '../ir.ts';
import type { CompareOperator } from '../syntax/ast.ts';
import { OPPOSITE } from './compare-values.ts';
import type { FunctionWriter } from './function-writer.ts';
import { createFunctionWriter, numberLiteral, UNKNOWN_NUMBER, UNKNOWN_VALUE } from './function-writer.ts';

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>;
type Aggregate = Of<'aggregate'>;

/** Comparing one value with up to this many constants beats a look-up by hash. */
const INLINE_MEMBERS = 8;

/** Whether code is an identifier or a literal, which may be written twice; constants always are. */
const isSimple = (code: string): boolean => /^(?:[a-z]\d+|true|false|\(?-?\d[\d.e+-]*(?: \/ 0)?\)?)$/.test(code);

/**
 * Code that is true exactly when the bool expression is known to be `wanted`. This is the negation normal form: `not` only turns
 * `wanted` round, so comparisons with NaN and `undefined`, which are false in JavaScript, do Kleene's logic for nothing.
 */
export function truth(w: FunctionWriter, e: Expression, wanted: boolean): string {
  return hoistedUnlessSimple(w, e, (inner) => truthHere(inner, e, wanted));
}

/** Code for the number of an expression of any numeric type, or of a bool as 1 or 0; NaN is unknown. */
export function numeric(w: FunctionWriter, e: Expression): string {
  return hoistedUnlessSimple(w, e, (inner) => {
    const folded = w.module.foldNumber(e);
    if (folded !== undefined) return numberLiteral(folded);
    if (!isNumericType(e.type)) {
      const [assigned, again] = twice(inner, valueHere(inner, e));
      return `(${assigned} === true ? 1 : ${again} === false ? 0 : ${UNKNOWN_NUMBER})`;
    }
    if (!hasArithmetic(e)) return rawNumber(inner, e);
    const name = inner.temporary();
    // Infinity minus itself is NaN: what is not finite becomes unknown without a branch.
    return `((${name} = ${rawNumber(inner, e)}) + (${name} - ${name}))`;
  });
}

/** Code for the value of an expression; NaN for numbers and `undefined` for all else is unknown. */
export function value(w: FunctionWriter, e: Expression): string {
  if (isNumericType(e.type)) return numeric(w, e);
  return hoistedUnlessSimple(w, e, (inner) => valueHere(inner, e));
}

function hoistedUnlessSimple(w: FunctionWriter, e: Expression, generate: (w: FunctionWriter) => string): string {
  if (!w.perSlot || e.kind === 'constant' || e.kind === 'signal' || e.kind === 'property') return generate(w);
  if (w.module.readsCandidate(e)) return generate(w);
  const code = generate({ ...w, perSlot: false });
  return isSimple(code) ? code : w.hoist(code);
}

/** The code to evaluate first and the code for the same value again. */
function twice(w: FunctionWriter, code: string): readonly [first: string, again: string] {
  if (isSimple(code)) return [code, code];
  const name = w.temporary();
  return [`(${name} = ${code})`, name];
}

/** Whether `e` is a constant, and one that has a value. */
const isConstant = (e: Expression): e is Of<'constant'> => e.kind === 'constant' && isKnown(e.value);

const isListTyped = (e: Expression): boolean => typeof e.type === 'object' && 'list' in e.type;

const guard = (e: Expression, code: string): string =>
  isNumericType(e.type) ? `${code} === ${code}` : `${code} !== ${UNKNOWN_VALUE}`;

const guardUnlessConstant = (e: Expression, code: string): string => (isConstant(e) ? 'true' : guard(e, code));

function join(operator: '&&' | '||', parts: readonly string[]): string {
  const [absorbing, neutral] = operator === '&&' ? ['false', 'true'] : ['true', 'false'];
  if (parts.includes(absorbing)) return absorbing;
  const rest = parts.filter((part) => part !== neutral);
  if (rest.length === 0) return neutral;
  const [only = ''] = rest;
  // Conditions of this module stand in brackets, are calls, names or `!` before one of these; all others get theirs here.
  return rest.length === 1 && isClosed(only) ? only : `(${rest.join(` ${operator} `)})`;
}

/** Whether code can stand as an operand of any operator. */
function isClosed(code: string): boolean {
  if (!code.includes(' ')) return true;
  if (!/^!?\(/.test(code)) return false;
  let depth = 0;
  for (let index = code.indexOf('('); index < code.length; index++) {
    if (code[index] === '(') depth++;
    if (code[index] === ')' && --depth === 0) return index === code.length - 1;
  }
  return false;
}

function truthHere(w: FunctionWriter, e: Expression, wanted: boolean): string {
  switch (e.kind) {
    case 'constant':
      return e.value === wanted ? 'true' : 'false';
    case 'and':
    case 'or':
      return join(
        (e.kind === 'and') === wanted ? '&&' : '||',
        e.operands.map((operand) => truth(w, operand, wanted)),
      );
    case 'not':
      return truth(w, e.operand, !wanted);
    case 'compare':
      return compareTruth(w, e, wanted ? e.op : OPPOSITE[e.op]);
    case 'between': {
      const [first, again] = twice(w, numeric(w, e.value));
      const low = numeric(w, e.low);
      const high = numeric(w, e.high);
      return wanted ? `(${first} >= ${low} && ${again} <= ${high})` : `(${first} < ${low} || ${again} > ${high})`;
    }
    case 'in':
      return memberTruth(w, e.value, e.list, wanted);
    case 'contains':
      return isListTyped(e.value) ? memberTruth(w, e.part, e.value, wanted) : containsTruth(w, e, wanted);
    case 'matches': {
      const pattern = w.module.constant({ kind: 'pattern', pattern: e.pattern, flags: e.flags });
      if (e.prompt) return `(${w.module.runtime('matchesPrompt')}(${pattern}, ${value(w, e.value)}) === ${wanted})`;
      const [first, again] = twice(w, value(w, e.value));
      return `(${first} !== ${UNKNOWN_VALUE} && ${wanted ? '' : '!'}${pattern}.test(${again}))`;
    }
    case 'exists':
      return wanted ? isKnownCode(w, e.operand) : negated(isKnownCode(w, e.operand));
    case 'aggregate':
      return `${aggregateFunction(w, e, wanted ? 'true' : 'false')}(h)`;
    default:
      return `(${valueHere(w, e)} === ${wanted})`;
  }
}

const negated = (code: string): string => (code === 'true' ? 'false' : `!${code}`);

function isKnownCode(w: FunctionWriter, e: Expression): string {
  if (isConstant(e)) return 'true';
  if (!isNumericType(e.type)) return `(${value(w, e)} !== ${UNKNOWN_VALUE})`;
  const [first, again] = twice(w, numeric(w, e));
  return `(${first} === ${again})`;
}

function compareTruth(w: FunctionWriter, e: Of<'compare'>, op: CompareOperator): string {
  const numbers = isNumericType(e.left.type);
  if (op !== '==' && op !== '!=') return `(${numeric(w, e.left)} ${op} ${numeric(w, e.right)})`;
  if (isListTyped(e.left)) {
    const [left, leftAgain] = twice(w, value(w, e.left));
    const [right, rightAgain] = twice(w, value(w, e.right));
    const equal = `${w.module.runtime('sameValue')}(${leftAgain}, ${rightAgain})`;
    return `(${guard(e.left, left)} && ${guard(e.right, right)} && ${op === '==' ? '' : '!'}${equal})`;
  }
  if (numbers && op === '==') return `(${numeric(w, e.left)} === ${numeric(w, e.right)})`;
  const [left, leftAgain] = twice(w, value(w, e.left));
  const [right, rightAgain] = twice(w, value(w, e.right));
  const guards = [guardUnlessConstant(e.left, leftAgain), guardUnlessConstant(e.right, rightAgain)];
  // What equals something known is known; what is unequal to it may be unknown.
  if (op === '==')
    return join('&&', [`${left} === ${right}`, guards.includes('true') ? 'true' : guard(e.left, leftAgain)]);
  return join('&&', [`${left} !== ${right}`, ...guards]);
}

function memberTruth(w: FunctionWriter, needle: Expression, list: Expression, wanted: boolean): string {
  const members = literalMembers(list);
  if (members === undefined || isListTyped(needle)) {
    return `(${w.module.runtime('memberOf')}(${value(w, needle)}, ${listCode(w, list)}) === ${wanted})`;
  }
  const [first, again] = twice(w, value(w, needle));
  const constants = members.filter(isConstant).map((member) => member.value);
  const parts: string[] = [];
  if (constants.length > INLINE_MEMBERS) {
    const set = w.module.constant({
      kind: 'set',
      members: [...new Set(constants)].filter((member) => typeof member !== 'object'),
    });
    parts.push(`${wanted ? '' : '!'}${set}.has(${again})`);
  } else {
    for (const constant of constants) parts.push(`${again} ${wanted ? '===' : '!=='} ${w.module.value(constant)}`);
  }
  for (const member of members) {
    if (isConstant(member)) continue;
    const code = value(w, member);
    if (wanted) {
      parts.push(`${again} === ${code}`);
    } else {
      const [memberFirst, memberAgain] = twice(w, code);
      parts.push(`${memberFirst} !== ${again}`, guard(member, memberAgain));
    }
  }
  const unneeded = isConstant(needle) || (wanted && first === again && members.every(isConstant));
  // The guard leads because it is what evaluates the value.
  const known = isNumericType(needle.type) ? `${first} === ${again}` : `${first} !== ${UNKNOWN_VALUE}`;
  return join('&&', [unneeded ? 'true' : known, join(wanted ? '||' : '&&', parts)]);
}

/** The members of a list that is written out, else undefined. */
function literalMembers(list: Expression): readonly Expression[] | undefined {
  if (list.kind === 'list') return list.members;
  if (list.kind !== 'constant' || typeof list.value !== 'object') return undefined;
  const type = typeof list.type === 'object' && 'list' in list.type ? list.type.list : 'string';
  return list.value.map((member) => ({ kind: 'constant', value: member, type, scope: 'constant', span: list.span }));
}

/** An array for `memberOf`, in which single members may be unknown. */
function listCode(w: FunctionWriter, list: Expression): string {
  return list.kind === 'list' ? `[${list.members.map((member) => value(w, member)).join(', ')}]` : value(w, list);
}

function containsTruth(w: FunctionWriter, e: Of<'contains'>, wanted: boolean): string {
  const [text, textAgain] = twice(w, value(w, e.value));
  const [part, partAgain] = twice(w, value(w, e.part));
  return join('&&', [
    guardUnlessConstant(e.value, text),
    guardUnlessConstant(e.part, part),
    `${wanted ? '' : '!'}${textAgain}.includes(${partAgain})`,
  ]);
}

/** Whether the number of `e` is computed by an operator whose result may leave the finite numbers. */
function hasArithmetic(e: Expression): boolean {
  return e.kind === 'arithmetic' || (e.kind === 'negate' && hasArithmetic(e.operand));
}

/** As `numeric`, but an infinite result of arithmetic is left for the outermost operator to deal with. */
function rawNumber(w: FunctionWriter, e: Expression): string {
  switch (e.kind) {
    case 'constant':
      return typeof e.value === 'number' ? numberLiteral(e.value) : UNKNOWN_NUMBER;
    case 'signal':
      return w.signal(e.index, true);
    case 'property':
      return w.property(e.index);
    case 'negate':
      return `(-${rawOperand(w, e.operand)})`;
    case 'arithmetic': {
      // Infinity stays infinite or becomes NaN under every operator but one: as a divisor it would give 0.
      const right = e.op === '/' ? numeric(w, e.right) : rawOperand(w, e.right);
      return `(${rawOperand(w, e.left)} ${e.op} ${right})`;
    }
    case 'coalesce': {
      const [first, again] = twice(w, numeric(w, e.left));
      return `(${first} === ${again} ? ${again} : ${numeric(w, e.right)})`;
    }
    case 'call':
      return callCode(w, e);
    case 'aggregate':
      return `${aggregateFunction(w, e, 'value')}(h)`;
    default:
      throw new TypeError(`An expression of kind ${e.kind} has no number.`);
  }
}

function rawOperand(w: FunctionWriter, e: Expression): string {
  return hasArithmetic(e) && w.module.foldNumber(e) === undefined && !(w.perSlot && !w.module.readsCandidate(e))
    ? rawNumber(w, e)
    : numeric(w, e);
}

function callCode(w: FunctionWriter, e: Of<'call'>): string {
  const [only] = e.arguments;
  if ((e.function === 'min' || e.function === 'max') && only !== undefined && e.arguments.length === 1)
    return value(w, only);
  return `${w.module.runtime(e.function)}(${e.arguments.map((argument) => value(w, argument)).join(', ')})`;
}

function valueHere(w: FunctionWriter, e: Expression): string {
  switch (e.kind) {
    case 'constant':
      return w.module.value(e.value);
    case 'signal':
      return w.signal(e.index, false);
    case 'property':
      return w.property(e.index);
    case 'list':
      return `${w.module.runtime('listOf')}([${e.members.map((member) => value(w, member)).join(', ')}])`;
    case 'coalesce':
      return `(${value(w, e.left)} ?? ${value(w, e.right)})`;
    case 'call':
      return callCode(w, e);
    case 'not': {
      const [first, again] = twice(w, value(w, e.operand));
      return `(${first} === ${UNKNOWN_VALUE} ? ${again} : !${again})`;
    }
    case 'and':
    case 'or': {
      const decisive = e.kind === 'or';
      const operands = e.operands.map((operand) => twice(w, value(w, operand)));
      if (operands.length === 0) return String(!decisive);
      const decided = operands.map(([first]) => `${first} === ${decisive}`).join(' || ');
      const unknown = operands.map(([, again]) => `${again} === ${UNKNOWN_VALUE}`).join(' || ');
      return `(${decided} ? ${decisive} : ${unknown} ? ${UNKNOWN_VALUE} : ${!decisive})`;
    }
    case 'compare': {
      const [left, leftAgain] = twice(w, value(w, e.left));
      const [right, rightAgain] = twice(w, value(w, e.right));
      const negation = e.op === '!=' ? '!' : '';
      const result = isListTyped(e.left)
        ? `${negation}${w.module.runtime('sameValue')}(${leftAgain}, ${rightAgain})`
        : `${leftAgain} ${e.op === '==' || e.op === '!=' ? `${e.op}=` : e.op} ${rightAgain}`;
      return `(${guardFirst(e.left, left, leftAgain)} && ${guardFirst(e.right, right, rightAgain)} ? ${result} : ${UNKNOWN_VALUE})`;
    }
    case 'between': {
      const [first, again] = twice(w, numeric(w, e.value));
      const [low, lowAgain] = twice(w, numeric(w, e.low));
      const [high, highAgain] = twice(w, numeric(w, e.high));
      return `(${first} < ${low} || ${again} > ${high} ? false : ${again} >= ${lowAgain} && ${again} <= ${highAgain} ? true : ${UNKNOWN_VALUE})`;
    }
    case 'in':
      return `${w.module.runtime('memberOf')}(${value(w, e.value)}, ${listCode(w, e.list)})`;
    case 'contains':
      return isListTyped(e.value)
        ? `${w.module.runtime('memberOf')}(${value(w, e.part)}, ${listCode(w, e.value)})`
        : `${w.module.runtime('containsText')}(${value(w, e.value)}, ${value(w, e.part)})`;
    case 'matches': {
      const pattern = w.module.constant({ kind: 'pattern', pattern: e.pattern, flags: e.flags });
      return `${w.module.runtime(e.prompt ? 'matchesPrompt' : 'matchesText')}(${pattern}, ${value(w, e.value)})`;
    }
    case 'exists':
      return truthHere(w, e, true);
    case 'aggregate':
      return `${aggregateFunction(w, e, 'value')}(h)`;
    case 'negate':
    case 'arithmetic':
      return numeric(w, e);
  }
}

const guardFirst = (e: Expression, first: string, again: string): string =>
  isNumericType(e.type) ? `${first} === ${again}` : `${first} !== ${UNKNOWN_VALUE}`;

/** A helper function of the host for one aggregate: its known truth (`true`, `false`) or its value. */
function aggregateFunction(w: FunctionWriter, e: Aggregate, mode: 'true' | 'false' | 'value'): string {
  const f = createFunctionWriter(w.module, true);
  const { before, step, after } = aggregateParts(f, e, mode);
  const pool = w.module.pool(e.target);
  const body = [
    f.head(),
    `const q = h.pool(${pool}), s = q.slots, l = q.length;\n`,
    f.columns(),
    before,
    `for (let i = 0; i < l; i++) {\nconst e = s[i];\n${f.loads()}${step}}\n`,
    after,
  ].join('');
  return w.module.define('a', 'h', body);
}

interface AggregateParts {
  readonly before: string;
  readonly step: string;
  readonly after: string;
}

function aggregateParts(f: FunctionWriter, e: Aggregate, mode: 'true' | 'false' | 'value'): AggregateParts {
  if (e.function === 'count') {
    return { before: 'let m = 0;\n', step: `if (${truth(f, e.body, true)}) m++;\n`, after: 'return m;\n' };
  }
  if (e.function === 'any' || e.function === 'all') {
    const decisive = e.function === 'any';
    if (mode === 'value') {
      const step = `const x = ${value(f, e.body)};\nif (x === ${decisive}) return ${decisive};\nif (x === ${UNKNOWN_VALUE}) m = true;\n`;
      return { before: 'let m = l === 0;\n', step, after: `return m ? ${UNKNOWN_VALUE} : ${!decisive};\n` };
    }
    if ((mode === 'true') === decisive) {
      return { before: '', step: `if (${truth(f, e.body, decisive)}) return true;\n`, after: 'return false;\n' };
    }
    return { before: '', step: `if (!${truth(f, e.body, !decisive)}) return false;\n`, after: 'return l > 0;\n' };
  }
  const x = `const x = ${numeric(f, e.body)};\n`;
  if (e.function === 'min' || e.function === 'max') {
    const better = e.function === 'min' ? 'x < m' : 'x > m';
    return {
      before: `let m = ${UNKNOWN_NUMBER};\n`,
      step: `${x}if (${better} || m !== m) m = x;\n`,
      after: 'return m;\n',
    };
  }
  const result = e.function === 'sum' ? 'm + (m - m)' : '(m / j) + (m - m)';
  const empty = e.function === 'sum' ? '0' : UNKNOWN_NUMBER;
  return {
    before: 'let m = 0, j = 0;\n',
    step: `${x}if (x === x) {\nm += x;\nj++;\n}\n`,
    after: `return l === 0 ? ${empty} : j === 0 ? ${UNKNOWN_NUMBER} : ${result};\n`,
  };
}
