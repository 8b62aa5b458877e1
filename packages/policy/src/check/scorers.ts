import type { Expression, PickRef, ScorerRef, ScoreSum, ScoreTerm } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgsNode, ByNode, ExprNode, NameNode, PickNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { checkArguments } from './arguments.ts';
import type { NameTable } from './catalogue/catalogue.ts';
import type { ScorerEntry } from './catalogue/entries.ts';
import { copyExpression, measureExpression } from './copy-expression.ts';
import { checkExpression } from './expression.ts';
import { isConstant } from './fold.ts';
import { inlineScorer } from './inline.ts';
import { reportUnknownName, resolveName } from './resolve-name.ts';
import { findBinding } from './session.ts';
import type { Block, Place, Session } from './session.ts';
import { describeType, isNumeric, isPlainNumber } from './value-types.ts';

const RANKINGS = ['lowest', 'highest'] as const;
const isRanking = (name: string): name is 'lowest' | 'highest' => (RANKINGS as readonly string[]).includes(name);

/** Whether a `let` with this value is a scorer: it names one, or ranks an expression. */
export const looksLikeScorer = (session: Session, block: Block, node: ExprNode): boolean => {
  const inner = withoutParens(node);
  switch (inner.kind) {
    case 'arithmetic':
      return looksLikeScorer(session, block, inner.left) || looksLikeScorer(session, block, inner.right);
    case 'negate':
      return looksLikeScorer(session, block, inner.operand);
    case 'name':
      return isScorerName(session, block, inner);
    case 'call':
      return isRanking(inner.callee.text) || isScorerName(session, block, inner.callee);
    default:
      return false;
  }
};

const isScorerName = (session: Session, block: Block, name: NameNode): boolean => {
  const [first, ...rest] = name.parts;
  if (first === undefined) return false;
  const member = rest.map((part) => part.text).join('.');
  const binding = findBinding(block, first.text);
  if (binding?.kind === 'scorer') return rest.length === 0;
  if (binding?.kind === 'import') return binding.exports.get(member)?.kind === 'scorer';
  const table = binding?.kind === 'plugin' ? binding.table : binding === undefined ? session.catalogue : undefined;
  const key = binding === undefined ? name.text : member;
  return table !== undefined && table.scorers.has(key) && !table.values.has(key);
};

const scorerNames = (session: Session, block: Block): readonly string[] => {
  const names: string[] = [];
  for (let at: Block | undefined = block; at !== undefined; at = at.parent) {
    for (const binding of at.bindings.values()) {
      if (binding.kind === 'scorer') names.push(binding.name);
      if (binding.kind === 'plugin')
        names.push(...[...binding.table.scorers.keys()].map((name) => `${binding.name}.${name}`));
    }
  }
  return [...names, ...session.catalogue.scorers.keys(), ...RANKINGS];
};

const copyScorer = (scorer: ScorerRef): ScorerRef =>
  scorer.kind === 'expression' ? { ...scorer, expression: copyExpression(scorer.expression) } : { ...scorer };

const copyTerms = (terms: readonly ScoreTerm[]): readonly ScoreTerm[] =>
  terms.map((term) => ({ ...term, scorer: copyScorer(term.scorer) }));

/** How many parts the terms have. */
export const sizeOfTerms = (terms: readonly ScoreTerm[]): number =>
  terms.reduce(
    (sum, { scorer }) => sum + 1 + (scorer.kind === 'expression' ? measureExpression(scorer.expression).size : 0),
    0,
  );

/** Whether nothing feeds a property that a scorer reads: no plugin of this build, and not the host. */
const isUnfed = (session: Session, key: string): boolean =>
  session.unprovided.has(key) &&
  session.catalogue.values.get(key.slice('candidate.'.length))?.provider.kind === 'builtin';

const scorerOf = (
  session: Session,
  place: Place,
  entry: ScorerEntry,
  name: string,
  span: Span,
  args: ArgsNode | undefined,
): ScorerRef | undefined => {
  if (args !== undefined && entry.options === undefined && entry.parameters.length === 0) {
    session.report('E0309', args.span, `\`${name}\` takes no arguments`, {
      fix: { message: 'remove the brackets', edits: [{ span: args.span, text: '' }] },
    });
    return undefined;
  }
  const checked = checkArguments(session, place, entry, name, span, args);
  if (checked === undefined) return undefined;
  const reads = entry.reads.filter((key) => key.startsWith('candidate.'));
  if (reads.length > 0 && reads.every((key) => isUnfed(session, key))) {
    session.report(
      'W0516',
      span,
      `nothing feeds what \`${name}\` reads in this build or fleet, so it rates all endpoints alike`,
      {
        help: `it reads ${reads.map((key) => `\`${key.slice('candidate.'.length)}\``).join(', ')}`,
      },
    );
  }
  if (entry.expression !== undefined) {
    const expression = inlineScorer(session, place, entry, entry.expression, span, checked);
    if (expression === undefined) return undefined;
    return { kind: 'expression', name, expression, direction: entry.cost ? 'lowest' : 'score', span };
  }
  return {
    kind: 'function',
    name: entry.name,
    provider: entry.provider,
    options: checked.options ?? {},
    cost: entry.cost,
    instance: entry.instance,
    reads: entry.reads,
    span,
  };
};

/** The scorer that a destination without `by` has. */
export const defaultScore = (session: Session, place: Place, span: Span): readonly ScoreSum[] => {
  const entry = session.catalogue.scorers.get('least_tokens');
  const scorer = entry === undefined ? undefined : scorerOf(session, place, entry, 'least_tokens', span, undefined);
  return scorer === undefined ? [] : [{ terms: [{ weight: 1, scorer }], span }];
};

const reportProperty = (session: Session, node: ExprNode, better: 'low' | 'high', code: 'E0322' = 'E0322'): void => {
  const text = session.textOf(node.span);
  const ranking = better === 'low' ? 'lowest' : 'highest';
  const written = `${ranking}(${text})`;
  session.report(code, node.span, `\`${text}\` is a property, and after \`by\` stands a scorer`, {
    help: `write \`${written}\``,
    fix: {
      message: `write \`${written}\``,
      edits: [{ span: node.span, text: `${ranking}(${session.rawOf(node.span)})` }],
    },
  });
};

/** What a node that is no scorer could have been meant as; reports it. */
const reportNoScorer = (session: Session, place: Place, node: ExprNode, value: Expression): void => {
  if (value.scope === 'candidate' && isNumeric(value.type)) {
    const property = value.kind === 'property' ? session.properties[value.index]?.key : undefined;
    const entry = property === undefined ? undefined : session.catalogue.values.get(property);
    reportProperty(session, node, entry?.kind === 'property' ? entry.better : 'low');
    return;
  }
  const text = session.textOf(node.span);
  if (value.scope === 'candidate') {
    session.report('E0322', node.span, `\`${text}\` is ${describeType(value.type)}, and after \`by\` stands a scorer`, {
      help: 'conditions on an endpoint stand in `where`',
    });
    return;
  }
  if (isConstant(value)) {
    const written = `${session.rawOf(node.span)} * least_tokens`;
    session.report('E0323', node.span, `\`${text}\` scores every endpoint alike`, {
      help: `multiply a scorer by it: \`${text} * least_tokens\``,
      ...(isPlainNumber(value.type) || value.type === 'percent'
        ? { fix: { message: `write \`${text} * least_tokens\``, edits: [{ span: node.span, text: written }] } }
        : {}),
    });
    return;
  }
  session.report('E0323', node.span, `\`${text}\` is the same for every endpoint, so it cannot choose among them`, {
    help: 'after `by` stand scorers, `lowest(…)` and `highest(…)` of properties',
  });
};

const weightOf = (session: Session, place: Place, node: ExprNode): number | undefined => {
  const value = checkExpression(session, { ...place, scope: 'request' }, node);
  if (value === undefined) return undefined;
  const text = session.textOf(node.span);
  if (!isConstant(value) || typeof value.value !== 'number') {
    session.report('E0326', node.span, `the weight \`${text}\` is not a constant number`, {
      help: 'weights are written numbers',
    });
    return undefined;
  }
  if (!isPlainNumber(value.type) && value.type !== 'percent') {
    session.report(
      'E0326',
      node.span,
      `the weight \`${text}\` is ${describeType(value.type)}, and a weight is a plain number`,
    );
    return undefined;
  }
  if (value.value < 0) {
    session.report('E0325', node.span, `the weight \`${text}\` is negative`, {
      help: 'write the opposite preference by `lowest(…)` or `highest(…)`',
    });
    return undefined;
  }
  return value.value;
};

const scale = (terms: readonly ScoreTerm[] | undefined, by: number | undefined): readonly ScoreTerm[] | undefined =>
  terms === undefined || by === undefined ? undefined : terms.map((term) => ({ ...term, weight: term.weight * by }));

/** The terms of a sum of scorers, or undefined where an error has been reported. */
export const checkTerms = (session: Session, place: Place, node: ExprNode): readonly ScoreTerm[] | undefined => {
  const inner = withoutParens(node);
  const isScorer = (side: ExprNode): boolean => looksLikeScorer(session, place.block, side);
  switch (inner.kind) {
    case 'arithmetic': {
      const { operator, left, right } = inner;
      if (!isScorer(left) && !isScorer(right)) break;
      if (operator === '+') {
        const [a, b] = [checkTerms(session, place, left), checkTerms(session, place, right)];
        return a === undefined || b === undefined ? undefined : [...a, ...b];
      }
      if (operator === '-') {
        session.report('E0324', inner.operatorSpan, 'scores are added, and the higher one wins', {
          help: 'write `+`; the opposite preference is `lowest(…)` or `highest(…)` of a property',
          ...(isScorer(right)
            ? { fix: { message: 'write `+`', edits: [{ span: inner.operatorSpan, text: '+' }] } }
            : {}),
        });
        return undefined;
      }
      if (isScorer(left) && isScorer(right)) {
        session.report('E0326', inner.operatorSpan, 'scorers are not multiplied or divided by each other', {
          help: 'add them, each with a weight',
        });
        return undefined;
      }
      if (operator === '*') {
        const [scorer, weight] = isScorer(left) ? [left, right] : [right, left];
        const by = weightOf(session, place, weight);
        return scale(checkTerms(session, place, scorer), by);
      }
      if (isScorer(right)) {
        session.report('E0326', inner.operatorSpan, 'a number is not divided by a scorer', {
          help: 'multiply the scorer by a weight',
        });
        return undefined;
      }
      const by = weightOf(session, place, right);
      if (by === 0) {
        session.report('E0325', right.span, 'division by zero');
        return undefined;
      }
      return scale(checkTerms(session, place, left), by === undefined ? undefined : 1 / by);
    }
    case 'negate':
      if (!isScorer(inner.operand)) break;
      session.report(
        'E0324',
        { ...inner.span, end: inner.operand.span.start },
        'a score has no minus: the higher one wins',
        {
          help: 'write the opposite preference as `lowest(…)` or `highest(…)` of a property',
        },
      );
      return undefined;
    case 'name':
      return checkScorerName(session, place, inner, inner, undefined);
    case 'call':
      if (isRanking(inner.callee.text) && findBinding(place.block, inner.callee.text) === undefined)
        return checkRanking(session, place, inner.callee.text, inner, inner.args);
      return checkScorerName(session, place, inner, inner.callee, inner.args);
    default:
  }
  const value = checkExpression(session, place, inner);
  if (value !== undefined) reportNoScorer(session, place, node, value);
  return undefined;
};

const checkRanking = (
  session: Session,
  place: Place,
  name: 'lowest' | 'highest',
  node: ExprNode,
  args: ArgsNode,
): readonly ScoreTerm[] | undefined => {
  if (node.kind === 'call') session.observer?.word(node.callee.span, name);
  const [item] = args.items;
  if (item === undefined || args.items.length > 1 || item.name !== undefined) {
    session.report('E0309', args.span, `\`${name}\` takes one expression`, { help: `write \`${name}(queue_depth)\`` });
    return undefined;
  }
  if (looksLikeScorer(session, place.block, item.value)) {
    session.report(
      'E0311',
      item.value.span,
      `\`${name}\` ranks a property, and \`${session.textOf(item.value.span)}\` is a scorer already`,
      {
        fix: { message: 'remove the ranking', edits: [{ span: node.span, text: session.rawOf(item.value.span) }] },
      },
    );
    return undefined;
  }
  const expression = checkExpression(session, place, item.value);
  if (expression === undefined) return undefined;
  if (!isNumeric(expression.type)) {
    session.report('E0311', item.value.span, `\`${name}\` ranks numbers, and this is ${describeType(expression.type)}`);
    return undefined;
  }
  if (expression.scope !== 'candidate') {
    session.report(
      'E0323',
      item.value.span,
      `\`${session.textOf(item.value.span)}\` is the same for every endpoint, so it cannot choose among them`,
    );
    return undefined;
  }
  return [{ weight: 1, scorer: { kind: 'expression', name, expression, direction: name, span: node.span } }];
};

const checkScorerName = (
  session: Session,
  place: Place,
  node: ExprNode,
  name: NameNode,
  args: ArgsNode | undefined,
): readonly ScoreTerm[] | undefined => {
  const resolved = resolveName(session, place.block, name);
  if (resolved.kind === 'poison') return undefined;
  if (resolved.kind === 'binding') {
    const { binding } = resolved;
    if (binding.kind === 'scorer') {
      if (args === undefined) return session.spend(binding.size, name.span) ? copyTerms(binding.terms) : undefined;
      session.report('E0309', args.span, `\`${name.text}\` takes no arguments`, {
        labels: [{ span: binding.span, message: 'defined here' }],
      });
      return undefined;
    }
    if (binding.kind === 'value') {
      reportNoScorer(session, place, node, binding.expression);
      return undefined;
    }
    session.report('E0204', name.span, `\`${name.text}\` is no scorer`, {
      labels: [{ span: binding.span, message: 'it stands for this' }],
    });
    return undefined;
  }
  if (resolved.kind === 'table') {
    const entry = findScorer(resolved.table, resolved.name);
    if (entry !== undefined) {
      const scorer = scorerOf(session, place, entry, name.text, node.span, args);
      return scorer === undefined ? undefined : [{ weight: 1, scorer }];
    }
    const value = resolved.table.values.get(resolved.name);
    if (value?.kind === 'property' && isNumeric(value.type)) {
      reportProperty(session, node, value.better);
      return undefined;
    }
    if (
      value !== undefined ||
      /^(labels|tenant|alarm|param)\./.test(name.text) ||
      (args !== undefined && isKnownFunction(name.text))
    ) {
      const checked = checkExpression(session, place, node);
      if (checked !== undefined) reportNoScorer(session, place, node, checked);
      return undefined;
    }
    const picker = resolved.table.pickers.get(resolved.name);
    if (picker !== undefined) {
      session.report('E0204', name.span, `\`${name.text}\` is a picker, not a scorer`, {
        help: `write \`pick ${name.text}\` after \`by\``,
      });
      return undefined;
    }
  }
  const properties = [...session.catalogue.values.values()]
    .filter((entry) => entry.kind === 'property')
    .map((entry) => entry.name);
  reportUnknownName(session, place.block, name, name.span, {
    code: 'E0204',
    what: 'scorer',
    candidates: [scorerNames(session, place.block), properties],
  });
  return undefined;
};

const isKnownFunction = (name: string): boolean =>
  ['min', 'max', 'avg', 'sum', 'count', 'any', 'all', 'clamp', 'number', 'duration', 'bool', 'list', 'lower'].includes(
    name,
  );

const findScorer = (table: NameTable, name: string): ScorerEntry | undefined => table.scorers.get(name);

/** One sum of a `by` clause with its weights normalised to sum 1. */
const checkSum = (session: Session, place: Place, node: ExprNode): ScoreSum | undefined => {
  const terms = checkTerms(session, place, node);
  if (terms === undefined) return undefined;
  const total = terms.reduce((sum, term) => sum + term.weight, 0);
  if (!(total > 0)) {
    session.report('E0325', node.span, 'all weights are zero', { help: 'at least one weight is above zero' });
    return undefined;
  }
  return { terms: terms.map((term) => ({ ...term, weight: term.weight / total })), span: node.span };
};

/** `by a then b`. Undefined where an error has been reported. */
export const checkScores = (session: Session, place: Place, by: ByNode): readonly ScoreSum[] | undefined => {
  const sums = by.tiers.map((tier) => checkSum(session, { ...place, scope: 'candidate', clause: 'by' }, tier));
  const found = sums.filter((sum) => sum !== undefined);
  return found.length < sums.length ? undefined : found;
};

/** `pick softmax(temperature: 0.2)`. Undefined where an error has been reported. */
export const checkPick = (
  session: Session,
  place: Place,
  name: NameNode,
  args: ArgsNode | undefined,
  span: Span,
): PickRef | undefined => {
  const resolved = resolveName(session, place.block, name);
  if (resolved.kind === 'poison') return undefined;
  if (resolved.kind === 'binding') {
    if (resolved.binding.kind === 'picker' && args === undefined) return { ...resolved.binding.pick };
    session.report('E0205', name.span, `\`${name.text}\` is no picker`, {
      labels: [{ span: resolved.binding.span, message: 'it stands for this' }],
    });
    return undefined;
  }
  if (resolved.kind === 'table') {
    const entry = resolved.table.pickers.get(resolved.name);
    if (entry !== undefined) {
      if (args !== undefined && entry.options === undefined) {
        session.report('E0309', args.span, `\`${name.text}\` takes no arguments`, {
          fix: { message: 'remove the brackets', edits: [{ span: args.span, text: '' }] },
        });
        return undefined;
      }
      session.observer?.entry(name.span, entry, args);
      const checked = checkArguments(session, place, entry, name.text, span, args);
      return checked === undefined
        ? undefined
        : { name: entry.name, provider: entry.provider, options: checked.options ?? {}, span };
    }
    if (resolved.table.scorers.has(resolved.name)) {
      session.report('E0205', name.span, `\`${name.text}\` is a scorer, not a picker`, {
        help: `write it after \`by\`: \`by ${name.text}\``,
      });
      return undefined;
    }
  }
  reportUnknownName(session, place.block, name, name.span, {
    code: 'E0205',
    what: 'picker',
    candidates: [[...session.catalogue.pickers.keys()]],
  });
  return undefined;
};

export const checkPickClause = (session: Session, place: Place, pick: PickNode): PickRef | undefined =>
  checkPick(session, place, pick.name, pick.args, pick.span);

/** Whether a `let` with this value is a picker. */
export const looksLikePicker = (session: Session, block: Block, node: ExprNode): boolean => {
  const inner = withoutParens(node);
  const name = inner.kind === 'name' ? inner : inner.kind === 'call' ? inner.callee : undefined;
  if (name === undefined) return false;
  const [first, ...rest] = name.parts;
  const binding = first === undefined ? undefined : findBinding(block, first.text);
  if (binding?.kind === 'picker') return rest.length === 0;
  const table = binding?.kind === 'plugin' ? binding.table : binding === undefined ? session.catalogue : undefined;
  const key = binding === undefined ? name.text : rest.map((part) => part.text).join('.');
  return table?.pickers.has(key) === true && !table.scorers.has(key) && !table.values.has(key);
};
