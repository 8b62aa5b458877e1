import type { Affinity, Expression } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, ArgsNode, ExprNode } from '../syntax/ast.ts';
import { checkExpression } from './expression.ts';
import { isConstant } from './fold.ts';
import { describeType, formatNumber, isPlainNumber } from './value-types.ts';
import type { Work } from './modifier-forms.ts';
import {
  named,
  positional,
  missingValue,
  surplus,
  surplusArgs,
  singleValue,
  expressionOf,
  wordOf,
} from './modifier-forms.ts';

const AFFINITY_OPTIONS = ['bound', 'unit', 'method'];

const METHODS: readonly Affinity['method'][] = ['bounded_rendezvous', 'modulo_md5'];

const UNITS: readonly Affinity['unit'][] = ['requests', 'tokens'];

const affinityKeys = (
  work: Work,
): { readonly keys: readonly ExprNode[]; readonly args: ArgsNode | undefined } | undefined => {
  const { node } = work;
  const [part] = node.parts;
  if (part === undefined && node.args !== undefined) {
    const own = positional(node.args);
    const [first, extra] = own;
    if (first === undefined) {
      missingValue(work);
      return undefined;
    }
    if (extra !== undefined) {
      work.session.report('E0409', extra.span, '`affinity` takes one key', {
        help: `a key of several parts is a list: \`affinity [${own.map((item) => work.session.textOf(item.value.span)).join(', ')}]\``,
      });
      return undefined;
    }
    const rest = { ...node.args, items: node.args.items.filter((item) => item !== first) };
    if (!surplusArgs(work, rest, AFFINITY_OPTIONS)) return undefined;
    const inner = withoutParens(first.value);
    return { keys: inner.kind === 'list' ? inner.items : [first.value], args: rest };
  }
  if (part?.value.kind === 'name' && part.args !== undefined) {
    // `prefix(2k)`: what is no option of the affinity belongs to the name.
    const entry = work.session.catalogue.values.get(part.value.text);
    const own = [
      ...(entry?.parameters.map((parameter) => parameter.name) ?? []),
      ...Object.keys(entry?.options?.properties ?? {}),
    ];
    const isOption = (item: ArgNode): boolean => item.name !== undefined && !own.includes(item.name.text);
    const options = { ...part.args, items: part.args.items.filter(isOption) };
    const rest = { ...part.args, items: part.args.items.filter((item) => !isOption(item)) };
    const [, extra] = node.parts;
    if (extra !== undefined) {
      surplus(work, extra);
      return undefined;
    }
    if (!surplusArgs(work, options, AFFINITY_OPTIONS)) return undefined;
    return {
      keys: [rest.items.length === 0 ? part.value : { kind: 'call', callee: part.value, args: rest, span: part.span }],
      args: options,
    };
  }
  const value = singleValue(work, AFFINITY_OPTIONS);
  if (value === undefined) return undefined;
  return { keys: value.node.kind === 'list' ? value.node.items : [value.node], args: value.args };
};

export const checkAffinity = (work: Work): boolean => {
  const { session } = work;
  const found = affinityKeys(work);
  if (found === undefined) return false;
  if (found.keys.length === 0) return missingValue(work);
  const key: Expression[] = [];
  for (const node of found.keys) {
    const expression = expressionOf(work, node, undefined);
    if (expression === undefined) continue;
    if (isConstant(expression)) {
      session.report(
        'E0409',
        node.span,
        `\`${session.textOf(node.span)}\` is the same for every request, so all would stick to one endpoint`,
        { help: `write \`${work.spec.form}\`` },
      );
      continue;
    }
    key.push(expression);
  }
  const method = wordOf(work, named(found.args, 'method'), METHODS, 'bounded_rendezvous');
  const unit = wordOf(work, named(found.args, 'unit'), UNITS, 'requests');
  let bound: number | undefined = 1.25;
  const written = named(found.args, 'bound');
  if (written !== undefined) {
    const expression = checkExpression(session, { ...work.place, scope: 'constant' }, written.value);
    const number =
      expression !== undefined &&
      isConstant(expression) &&
      typeof expression.value === 'number' &&
      (isPlainNumber(expression.type) || expression.type === 'percent')
        ? expression.value
        : undefined;
    if (expression !== undefined && number === undefined)
      session.report(
        'E0409',
        written.value.span,
        `\`bound\` is a number, and this is ${describeType(expression.type)}`,
      );
    if (number !== undefined && !(number >= 1)) {
      session.report(
        'E0410',
        written.value.span,
        `a bound of ${formatNumber(number, 'number')} leaves some requests no endpoint`,
        { help: 'a bound is 1 or more; 1.25 is usual' },
      );
    }
    bound = number !== undefined && number >= 1 ? number : undefined;
  }
  if (key.length < found.keys.length || method === undefined || unit === undefined || bound === undefined) return false;
  work.draft.affinity = { key, method, bound, unit, span: work.node.span };
  return true;
};
