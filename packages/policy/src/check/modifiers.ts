import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression, FailureCause, Modifiers } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, WithNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { PRIORITIES } from './catalogue/built-in-signals.ts';
import { modifierTable, modifierNames } from './catalogue/modifiers.ts';
import type { ModifierPlace } from './catalogue/modifiers.ts';
import { checkExpression } from './expression.ts';
import { reportInertModifier } from './inert.ts';
import { checkEnumMember } from './mismatch.ts';
import { constantOf, isConstant } from './fold.ts';
import { firstPartyNames } from './catalogue/first-party-names.ts';
import { findBinding } from './session.ts';
import type { Place, Session } from './session.ts';
import { describeType, isPlainNumber } from './value-types.ts';
import { checkAffinity } from './affinity.ts';
import { FORBIDDEN_HEADERS, HEADER_NAME, checkField, checkDrop } from './body-modifiers.ts';
import type { Draft, Work } from './modifier-forms.ts';
import {
  named,
  positional,
  wrongForm,
  missingValue,
  surplus,
  surplusArgs,
  singleValue,
  expressionOf,
  checkDuration,
  numberOf,
  targetOf,
  pairOf,
  wordOf,
} from './modifier-forms.ts';

const CAUSES: readonly FailureCause[] = [
  'saturated',
  'connect',
  'error',
  'timeout',
  'first_token',
  'rate_limited',
  'context_exceeded',
];

const FALLBACK_CAUSES: readonly FailureCause[] = ['saturated', 'connect', 'error', 'timeout', 'first_token'];

/** A request that is too long for one endpoint of a destination is too long for the others. */
const RETRY_CAUSES: readonly FailureCause[] = CAUSES.filter((cause) => cause !== 'context_exceeded');

/** What a `with` clause makes, and whether all of it was right. */
export interface CheckedModifiers {
  readonly modifiers: Modifiers;
  readonly fine: boolean;
}

const durationOf = (work: Work): Expression | undefined => {
  const value = singleValue(work);
  if (value === undefined) return undefined;
  const expression = expressionOf(work, value.node, 'duration');
  if (expression === undefined) return undefined;
  return checkDuration(work, expression, value.node) ? expression : undefined;
};

/** `on: [connect, error]`; undefined where an error has been reported. */
const causesOf = (work: Work, item: ArgNode, allowed: readonly FailureCause[]): readonly FailureCause[] | undefined => {
  const inner = withoutParens(item.value);
  const nodes = inner.kind === 'list' ? inner.items : [inner];
  const causes: FailureCause[] = [];
  let fine = true;
  for (const node of nodes) {
    const word = withoutParens(node);
    const text = word.kind === 'name' ? word.text : word.kind === 'string' ? word.value : undefined;
    const cause = allowed.find((known) => known === text);
    if (cause !== undefined) {
      if (!causes.includes(cause)) causes.push(cause);
      continue;
    }
    fine = false;
    const near = text === undefined ? undefined : suggest(text, allowed);
    work.session.report(
      'E0405',
      node.span,
      `\`${work.session.textOf(node.span)}\` is no cause of a ${work.node.name.text}`,
      near === undefined
        ? { help: `causes are ${allowed.join(', ')}` }
        : {
            help: `did you mean \`${near}\`?`,
            fix: { message: `write \`${near}\``, edits: [{ span: node.span, text: near }] },
          },
    );
  }
  if (nodes.length === 0) {
    work.session.report('E0405', item.value.span, 'the list of causes is empty', {
      help: `causes are ${allowed.join(', ')}`,
    });
    return undefined;
  }
  return fine ? causes : undefined;
};

/** An object key of `Modifiers` that holds a duration. */
const DURATION_FIELDS: {
  readonly [name: string]: 'timeout' | 'attemptTimeout' | 'firstToken' | 'idle' | 'retryAfter' | 'maxWait';
} = {
  timeout: 'timeout',
  attempt_timeout: 'attemptTimeout',
  first_token: 'firstToken',
  idle: 'idle',
  retry_after: 'retryAfter',
  max_wait: 'maxWait',
};

const checkHedge = (work: Work): boolean => {
  const { node, session } = work;
  const args = node.parts[0]?.args ?? node.args;
  const [part, extra] = node.parts;
  if (extra !== undefined) return surplus(work, extra);
  const own = positional(args);
  if (
    !surplusArgs(
      work,
      args === undefined ? undefined : { ...args, items: args.items.filter((item) => item.name !== undefined) },
      ['after', 'share'],
    )
  )
    return false;
  const afterNode = part?.value ?? named(args, 'after')?.value ?? own[0]?.value;
  if (part !== undefined && own.length > 0) return wrongForm(work, args?.span ?? node.span, 'these arguments');
  let after: Expression | undefined;
  if (afterNode !== undefined) {
    after = expressionOf(work, afterNode, 'duration');
    if (after === undefined || !checkDuration(work, after, afterNode)) return false;
  }
  const shareNode = named(args, 'share')?.value;
  let share: number | undefined;
  if (shareNode !== undefined) {
    const expression = checkExpression(session, { ...work.place, scope: 'constant' }, shareNode);
    if (expression === undefined) return false;
    if (!isConstant(expression) || expression.type !== 'percent' || typeof expression.value !== 'number')
      return wrongForm(work, shareNode.span, `${describeType(expression.type)} as a share`);
    if (expression.value <= 0 || expression.value > 1) {
      session.report('E0414', shareNode.span, 'the share of a hedge lies above 0 % and up to 100 %');
      return false;
    }
    share = expression.value;
  }
  if (after === undefined && share === undefined) return missingValue(work);
  work.draft.hedge = { ...(after === undefined ? {} : { after }), ...(share === undefined ? {} : { share }) };
  return true;
};

const checkOne = (work: Work): boolean => {
  const { session, node, draft, spec } = work;
  const duration = DURATION_FIELDS[spec.name];
  if (duration !== undefined) {
    const expression = durationOf(work);
    if (expression === undefined) return false;
    draft[duration] = expression;
    return true;
  }
  switch (spec.name) {
    case 'affinity':
      return checkAffinity(work);
    case 'hedge':
      return checkHedge(work);
    case 'retry': {
      const value = singleValue(work, ['on']);
      const attempts = value === undefined ? undefined : numberOf(work, value.node, 'retry', 0, 10);
      const item = named(value?.args, 'on');
      const on = item === undefined ? undefined : causesOf(work, item, RETRY_CAUSES);
      if (attempts === undefined || (item !== undefined && on === undefined)) return false;
      draft.retry = { attempts, ...(on === undefined ? {} : { on }) };
      return true;
    }
    case 'fallback': {
      const found = targetOf(work, node.parts, ['on']);
      const item = named(found?.args, 'on');
      const on = item === undefined ? FALLBACK_CAUSES : causesOf(work, item, CAUSES);
      if (found === undefined || on === undefined) return false;
      draft.fallbacks = [...(draft.fallbacks ?? []), { target: found.target, on, span: node.span }];
      return true;
    }
    case 'mirror': {
      const [first, ...rest] = node.parts;
      const percent = first?.value.kind === 'percent' ? first.value : undefined;
      if (percent !== undefined && (percent.value < 0 || percent.value > 1)) {
        session.report('E0414', percent.span, `the share \`${percent.raw}\` is above 100 %`);
        return false;
      }
      const found = targetOf(work, percent === undefined ? node.parts : rest, []);
      if (found === undefined) return false;
      draft.mirror = [...(draft.mirror ?? []), { target: found.target, share: percent?.value ?? 1 }];
      return true;
    }
    case 'prefill': {
      const found = targetOf(work, node.parts, []);
      if (found === undefined) return false;
      draft.prefill = found.target;
      return true;
    }
    case 'sticky': {
      const value = singleValue(work);
      const expression = value === undefined ? undefined : expressionOf(work, value.node, undefined);
      if (value === undefined || expression === undefined) return false;
      if (isConstant(expression))
        return wrongForm(work, value.node.span, 'a constant: every request would take the same arm');
      draft.sticky = expression;
      return true;
    }
    case 'priority': {
      const value = singleValue(work);
      if (value === undefined) return false;
      const type: ValueType = { enum: PRIORITIES };
      const inner = withoutParens(value.node);
      const isFree =
        inner.kind === 'name' &&
        inner.parts.length === 1 &&
        !session.catalogue.values.has(inner.text) &&
        findBinding(work.place.block, inner.text) === undefined;
      const word = inner.kind === 'name' && (PRIORITIES.includes(inner.text) || isFree) ? inner : undefined;
      const expression =
        word === undefined ? expressionOf(work, value.node, type) : constantOf(word.text, 'string', word.span);
      if (expression === undefined || !checkEnumMember(session, work.place, type, expression, value.node, 'priority'))
        return false;
      draft.priority = expression;
      return true;
    }
    case 'overflow': {
      const value = singleValue(work);
      const words: readonly ('oldest' | 'newest' | 'lowest' | 'refuse')[] = ['oldest', 'newest', 'lowest', 'refuse'];
      const word =
        value === undefined
          ? undefined
          : wordOf(work, { kind: 'arg', value: value.node, span: value.node.span }, words, 'refuse');
      if (word === undefined) return false;
      draft.overflow = word;
      return true;
    }
    case 'max_depth': {
      const value = singleValue(work);
      const depth = value === undefined ? undefined : numberOf(work, value.node, 'max_depth', 0, 1_000_000);
      if (depth === undefined) return false;
      draft.maxDepth = depth;
      return true;
    }
    case 'status': {
      const value = singleValue(work);
      const expression =
        value === undefined ? undefined : checkExpression(session, { ...work.place, scope: 'constant' }, value.node);
      if (value === undefined || expression === undefined) return false;
      if (!isConstant(expression) || typeof expression.value !== 'number' || !isPlainNumber(expression.type))
        return wrongForm(work, value.node.span, describeType(expression.type));
      if (!Number.isInteger(expression.value) || expression.value < 400 || expression.value > 599) {
        session.report('E0415', value.node.span, `\`${session.textOf(value.node.span)}\` is no status of a refusal`, {
          help: 'a refusal has a status from 400 to 599, such as 429 or 503',
        });
        return false;
      }
      draft.status = expression.value;
      return true;
    }
    case 'message':
    case 'model': {
      const value = singleValue(work);
      const expression = value === undefined ? undefined : expressionOf(work, value.node, 'string');
      if (expression === undefined) return false;
      draft[spec.name] = expression;
      return true;
    }
    case 'header': {
      const pair = pairOf(work);
      if (pair === undefined) return false;
      const name = pair.key.toLowerCase();
      if (!HEADER_NAME.test(name))
        return wrongForm(work, pair.keySpan, `${JSON.stringify(pair.key)}, which is no name of a header`);
      if (FORBIDDEN_HEADERS.has(name) || name.startsWith('x-signalbox-')) {
        session.report('E0416', pair.keySpan, `the header \`${name}\` belongs to the gateway`, {
          help: 'credentials of an endpoint are given by `key` in its definition',
        });
        return false;
      }
      const value = expressionOf(work, pair.value, 'string');
      if (value === undefined) return false;
      if (isConstant(value) && typeof value.value === 'string' && /[\r\n\0]/.test(value.value))
        return wrongForm(work, pair.value.span, 'a line break in a header');
      draft.headers = [...(draft.headers ?? []), { name, value }];
      return true;
    }
    case 'set': {
      const pair = pairOf(work);
      if (pair === undefined) return false;
      if (!checkField(work, pair.key, pair.keySpan)) return false;
      const value = expressionOf(work, pair.value, undefined);
      if (value === undefined) return false;
      draft.set = [...(draft.set ?? []), { field: pair.key, value }];
      return true;
    }
    case 'drop':
      return checkDrop(work);
    default:
      return false;
  }
};

const PLACE_NAMES: { readonly [place in ModifierPlace]: string } = {
  destination: 'a destination',
  admit: '`admit`',
  reject: '`reject`',
  queue: '`queue`',
};

/** Checks a `with` clause. Each modifier is checked apart, so that one wrong one leaves the others. */
export const checkModifiers = (
  session: Session,
  place: Place,
  clause: WithNode | undefined,
  where: ModifierPlace,
): CheckedModifiers => {
  const draft: Draft = {};
  let fine = true;
  const seen = new Map<string, Span>();
  for (const node of clause?.modifiers ?? []) {
    const spec = modifierTable.get(node.name.text);
    if (spec === undefined) {
      fine = false;
      const near = suggest(
        node.name.text,
        modifierNames.filter((name) => modifierTable.get(name)?.places.includes(where) === true),
        modifierNames,
      );
      if (
        Object.hasOwn(firstPartyNames, node.name.text) ||
        session.catalogue.scorers.has(node.name.text) ||
        session.catalogue.pickers.has(node.name.text)
      ) {
        session.report('E0206', node.name.span, `\`${node.name.text}\` is no modifier`, {
          help: 'scorers stand after `by`, pickers after `pick`, both before `with`',
        });
      } else {
        session.report(
          'E0206',
          node.name.span,
          `unknown modifier \`${node.name.text}\``,
          near === undefined
            ? {}
            : {
                help: `did you mean \`${near}\`?`,
                fix: { message: `write \`${near}\``, edits: [{ span: node.name.span, text: near }] },
              },
        );
      }
      continue;
    }
    if (!spec.places.includes(where)) {
      fine = false;
      session.report('E0407', node.name.span, `\`${spec.name}\` does not belong to ${PLACE_NAMES[where]}`, {
        help: `it belongs to ${spec.places.map((one) => PLACE_NAMES[one]).join(', ')}`,
      });
      continue;
    }
    const before = seen.get(spec.name);
    if (before !== undefined && !spec.repeats) {
      fine = false;
      session.report('E0411', node.name.span, `\`${spec.name}\` is written twice`, {
        labels: [{ span: before, message: 'first written here' }],
      });
      continue;
    }
    seen.set(spec.name, node.name.span);
    reportInertModifier(session, spec.name, node.name.span);
    fine = checkOne({ session, place, spec, node, draft }) && fine;
  }
  return { modifiers: draft, fine };
};
