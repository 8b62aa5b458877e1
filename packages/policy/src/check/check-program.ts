import type { PluginManifest } from '@signalbox/plugin-api';
import type { AdmissionRule, Definitions, Expression, Modifiers, PluginUse, RouteRule, Step } from '../ir.ts';
import type { PolicyEnsure, PolicyTest } from '../policy-checks.ts';
import type {
  AdmissionNode,
  DefaultNode,
  ExprNode,
  GroupNode,
  RouteNode,
  StatementNode,
  VerdictNode,
} from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { checkAnnotations } from './annotations.ts';
import type { Allowance } from './annotations.ts';
import { copyExpression, measureExpression } from './copy-expression.ts';
import { createDefinitionList } from './definition-list.ts';
import { checkDefinition, finishDefinitions } from './definitions.ts';
import { checkDestination, checkElse, checkOrder, checkVerdict } from './destinations.ts';
import { checkCondition } from './expression.ts';
import { fold, joinScopes } from './fold.ts';
import { checkLet } from './lets.ts';
import type { LoadedFile } from './load-files.ts';
import { copyModifiers, mergeModifiers } from './merge-modifiers.ts';
import { checkModifiers } from './modifiers.ts';
import { checkEnsure, checkTest } from './outcomes.ts';
import { createBlock } from './session.ts';
import type { Binding, Block, Session } from './session.ts';
import { findOpenUnknown } from './unknown.ts';
import { collect } from './collect-names.ts';
import { declareLets, checkLibrary, bindMissing, bindBroken } from './libraries.ts';
import { reportUnused } from './unused.ts';
import { bindAlias, checkUse } from './uses.ts';
import type { ProgramInput, Work } from './work.ts';

export interface CheckedProgram {
  readonly admission: readonly AdmissionRule[];
  readonly routes: readonly RouteRule[];
  readonly uses: readonly PluginUse[];
  readonly definitions: Definitions;
  readonly tests: readonly PolicyTest[];
  readonly ensures: readonly PolicyEnsure[];
  readonly allowances: readonly Allowance[];
  /** Manifests of the packages in use, for the hash. */
  readonly usedManifests: readonly PluginManifest[];
}

/** What the groups around a statement give to it. */
interface Around {
  readonly when: Expression | undefined;
  /** How many parts `when` has. */
  readonly size: number;
  readonly with: Modifiers;
  /** Label of the innermost group. */
  readonly group: string | undefined;
}

/** What ended the routes of a block: a default, or a rule that takes every request. */
interface Closed {
  readonly span: Span;
  readonly isDefault: boolean;
}

const isTrue = (when: Expression | undefined): boolean =>
  when === undefined || (when.kind === 'constant' && when.value === true);

const conjoin = (
  session: Session,
  around: Around,
  inner: Expression | undefined,
  span: Span,
): Expression | undefined => {
  const outer = around.when;
  if (outer === undefined) return inner;
  if (!session.spend(around.size, span)) return undefined;
  const copy = copyExpression(outer);
  if (inner === undefined) return copy;
  return fold({ kind: 'and', operands: [copy, inner], type: 'bool', scope: joinScopes(copy, inner), span: inner.span });
};

const declareLabel = (work: Work, label: string, span: Span, isRoute: boolean): void => {
  const before = work.labels.get(label);
  if (before !== undefined) {
    work.session.report('E0212', span, `the label ${JSON.stringify(label)} is used twice`, {
      labels: [{ span: before, message: 'first used here' }],
    });
    return;
  }
  work.labels.set(label, span);
  if (isRoute) work.routeLabels.set(label, span);
};

/** A label for a rule without one: `route 3`, the third route of the policy. */
const makeLabel = (work: Work, base: string): string => {
  let label = base;
  for (let n = work.nextNumbers.get(base) ?? 2; work.labels.has(label) || work.writtenLabels.has(label); n += 1) {
    label = `${base} (${n})`;
    work.nextNumbers.set(base, n + 1);
  }
  return label;
};

const checkWhen = (
  work: Work,
  block: Block,
  around: Around,
  node: { readonly when?: ExprNode; readonly head: Span },
): { readonly fine: boolean; readonly when: Expression | undefined } => {
  if (node.when === undefined) return { fine: true, when: conjoin(work.session, around, undefined, node.head) };
  const own = checkCondition(work.session, { scope: 'request', block, clause: 'when' }, node.when, 'after `when`');
  if (own === undefined) return { fine: false, when: undefined };
  if (own.kind === 'constant') {
    work.session.report(
      own.value === true ? 'W0504' : 'W0503',
      node.when.span,
      own.value === true ? 'this condition always holds' : 'this condition never holds',
    );
  }
  return { fine: true, when: conjoin(work.session, around, own, node.head) };
};

const reportUnreachable = (work: Work, head: Span, closed: Closed): void => {
  work.session.report('W0501', head, 'no request reaches this', {
    labels: [
      {
        span: closed.span,
        message: closed.isDefault ? 'the default stands here' : 'this takes every request that comes so far',
      },
    ],
    help: 'move it up, or remove it',
  });
};

const addRoute = (
  work: Work,
  node: RouteNode | DefaultNode,
  kind: 'route' | 'default',
  label: string,
  checked: { readonly fine: boolean; readonly when: Expression | undefined },
  steps: readonly (Step | undefined)[],
): void => {
  const known = steps.filter((step) => step !== undefined);
  if (!checked.fine || known.length < steps.length) return;
  work.routes.push({
    kind,
    label,
    span: node.span,
    headSpan: node.head,
    ...(checked.when === undefined || isTrue(checked.when) ? {} : { when: checked.when }),
    steps: known,
  });
};

const checkRoute = (work: Work, block: Block, around: Around, node: RouteNode): { readonly always: boolean } => {
  work.counts.route += 1;
  const label = node.label?.value ?? makeLabel(work, `route ${work.counts.route}`);
  declareLabel(work, label, node.label?.span ?? node.head, true);
  const checked = checkWhen(work, block, around, node);
  const destination = checkDestination(work.session, block, node.destination, around.with);
  const steps = [destination, ...checkElse(work.session, block, node.otherwise, around.with)];
  addRoute(work, node, 'route', label, checked, steps);
  return { always: node.when === undefined && node.otherwise.every((part) => part.action.kind !== 'next') };
};

const checkDefault = (work: Work, block: Block, around: Around, node: DefaultNode): void => {
  work.counts.default += 1;
  const label = makeLabel(work, around.group === undefined ? 'default' : `default of ${around.group}`);
  declareLabel(work, label, node.head, false);
  const first: Step | undefined =
    node.action.kind === 'destination'
      ? checkDestination(work.session, block, node.action, around.with)
      : verdictStep(work, block, node.action);
  const steps = [first, ...checkElse(work.session, block, node.otherwise, around.with)];
  addRoute(
    work,
    node,
    'default',
    label,
    { fine: true, when: conjoin(work.session, around, undefined, node.head) },
    steps,
  );
};

const verdictStep = (work: Work, block: Block, node: VerdictNode): Step | undefined => {
  const verdict = checkVerdict(work.session, block, node, 'default');
  return verdict === undefined ? undefined : { kind: 'verdict', ...verdict };
};

const checkAdmission = (work: Work, block: Block, around: Around, node: AdmissionNode): void => {
  const { session } = work;
  work.counts[node.verb] += 1;
  const label = node.label?.value ?? makeLabel(work, `${node.verb} ${work.counts[node.verb]}`);
  declareLabel(work, label, node.label?.span ?? node.head, false);
  if (work.admissionClosed !== undefined)
    reportUnreachable(work, node.head, { span: work.admissionClosed, isDefault: false });
  const checked = checkWhen(work, block, around, node);
  let by = undefined;
  if (node.by !== undefined) {
    if (node.verb !== 'queue')
      session.report('E0406', node.by.span, `\`by\` orders a queue, and \`${node.verb}\` has none`);
    else by = checkOrder(session, block, node.by);
  }
  const modifiers = checkModifiers(session, { scope: 'request', block, clause: 'with' }, node.with, node.verb);
  if (checked.fine && node.verb !== 'admit' && checked.when !== undefined) {
    const open = findOpenUnknown(session, checked.when);
    // A condition of a group, or a `let`, that several rules share is reported once.
    const place = open === undefined ? '' : `${open.span.file}:${open.span.start}`;
    if (open !== undefined && !work.openUnknowns.has(place)) {
      work.openUnknowns.add(place);
      const text = session.textOf(open.span);
      session.report('W0511', open.span, `\`${text}\` can be unknown, and then the request passes this rule`, {
        help: `say what holds then: \`(${text} ?? …)\`, or ask \`${text} exists\``,
      });
    }
  }
  // What a queue lets go on passes through admission again without that rule.
  if (node.when === undefined && isTrue(around.when) && node.verb !== 'queue') work.admissionClosed ??= node.head;
  if (!checked.fine || !modifiers.fine || (node.by !== undefined && by === undefined)) return;
  work.admission.push({
    label,
    span: node.span,
    headSpan: node.head,
    verb: node.verb,
    ...(checked.when === undefined || isTrue(checked.when) ? {} : { when: checked.when }),
    ...(by === undefined ? {} : { by }),
    with: modifiers.modifiers,
  });
};

const holdsRoute = (statements: readonly StatementNode[]): boolean =>
  statements.some(
    (statement) =>
      statement.kind === 'route' ||
      statement.kind === 'default' ||
      (statement.kind === 'group' && holdsRoute(statement.statements)),
  );

const checkGroup = (
  work: Work,
  block: Block,
  around: Around,
  node: GroupNode,
  closed: Closed | undefined,
): Closed | undefined => {
  const { session } = work;
  const checked = checkWhen(work, block, around, node);
  const modifiers = checkModifiers(session, { scope: 'request', block, clause: 'with' }, node.with, 'destination');
  const inner: Around = {
    // A wrong condition is reported once; the rules inside are checked as if there were none.
    when: checked.when,
    size: checked.when === undefined ? 0 : measureExpression(checked.when).size,
    with: mergeModifiers(copyModifiers(around.with), modifiers.modifiers),
    group: node.label.value,
  };
  if (closed !== undefined && holdsRoute(node.statements)) reportUnreachable(work, node.head, closed);
  const own = createBlock(block);
  session.observer?.block(own, node.span);
  declareLets(own, node.statements);
  const innerClosed = checkStatements(work, own, inner, node.statements, undefined, true, closed !== undefined);
  return innerClosed !== undefined && node.when === undefined ? innerClosed : undefined;
};

/** What is known of a block so far, with the files that are spliced into it. */
interface BlockState {
  closed: Closed | undefined;
  defaultSpan: Span | undefined;
}

/** Checks the statements of a block in order. Gives what closes it, if anything does. `muted`: it is reported as unreachable already. */
const checkStatements = (
  work: Work,
  block: Block,
  around: Around,
  statements: readonly StatementNode[],
  file: LoadedFile | undefined,
  isGroup: boolean,
  muted: boolean,
  before?: BlockState,
): Closed | undefined => {
  const { session } = work;
  const state = before ?? { closed: undefined, defaultSpan: undefined };
  const close = (closed: Closed): void => {
    state.closed ??= closed;
  };
  for (const statement of statements) {
    checkAnnotations(session, statement, work.allowances);
    if (isGroup && !['let', 'group', 'route', 'default', 'admission', 'broken'].includes(statement.kind)) {
      session.report('E0335', statement.head, `\`${statement.kind}\` does not stand in a group`, {
        help: 'move it out of the group',
      });
      continue;
    }
    switch (statement.kind) {
      case 'import': {
        const target = file?.imports.get(statement);
        if (target === undefined) bindMissing(work, block, statement);
        else if (statement.alias === undefined) {
          session.observer?.block(block, target.tree.span);
          declareLets(block, target.tree.statements);
          checkStatements(work, block, around, target.tree.statements, target, false, muted, state);
        } else {
          const alias = statement.alias.text;
          const binding: Binding = {
            kind: 'import',
            exports: checkLibrary(work, target, `${alias}.`),
            name: alias,
            span: statement.alias.span,
            used: false,
          };
          bindAlias(work, block, alias, statement.alias.span, binding);
          work.unusedChecks.push({ kind: 'import', binding, span: statement.head, name: alias });
        }
        break;
      }
      case 'use':
        checkUse(work, block, statement);
        break;
      case 'define':
        checkDefinition(session, block, work.list, statement, '');
        break;
      case 'let': {
        const binding = checkLet(session, block, statement);
        if (statement.span.file === work.main && binding.span === statement.name.span)
          work.unusedChecks.push({ kind: 'let', binding, span: statement.name.span, name: binding.name });
        break;
      }
      case 'group': {
        const closed = checkGroup(work, block, around, statement, muted ? undefined : state.closed);
        if (closed !== undefined) close(closed);
        break;
      }
      case 'route': {
        work.lastRoute = statement.head;
        if (state.closed !== undefined && !muted && !work.brokenRule)
          reportUnreachable(work, statement.head, state.closed);
        const { always } = checkRoute(work, block, around, statement);
        if (always) close({ span: statement.head, isDefault: false });
        break;
      }
      case 'default':
        work.lastRoute = statement.head;
        if (state.defaultSpan !== undefined)
          session.report('E0214', statement.head, 'a second default in one block', {
            labels: [{ span: state.defaultSpan, message: 'the first stands here' }],
          });
        else if (state.closed !== undefined && !muted && !work.brokenRule)
          reportUnreachable(work, statement.head, state.closed);
        checkDefault(work, block, around, statement);
        state.defaultSpan ??= statement.head;
        close({ span: statement.head, isDefault: true });
        break;
      case 'admission':
        checkAdmission(work, block, around, statement);
        break;
      case 'broken':
        bindBroken(block, statement);
        if (
          statement.label !== undefined &&
          (statement.keyword === 'route' ||
            statement.keyword === 'admit' ||
            statement.keyword === 'reject' ||
            statement.keyword === 'queue')
        ) {
          declareLabel(work, statement.label.value, statement.label.span, statement.keyword === 'route');
        }
        if (statement.keyword === 'default' || statement.keyword === undefined || statement.keyword === 'import')
          work.brokenRule = true;
        if (statement.statements.length > 0) {
          const own = createBlock(block);
          session.observer?.block(own, statement.span);
          declareLets(own, statement.statements);
          checkStatements(work, own, around, statement.statements, file, true, true);
        }
        break;
      case 'test':
      case 'ensure':
    }
  }
  return state.closed;
};

const checkOutcomes = (work: Work, block: Block, file: LoadedFile): void => {
  for (const statement of file.tree.statements) {
    if (statement.kind === 'test') work.tests.push(checkTest(work.session, block, work.routeLabels, statement));
    else if (statement.kind === 'ensure') {
      const ensure = checkEnsure(work.session, block, work.routeLabels, statement);
      if (ensure !== undefined) work.ensures.push(ensure);
    } else if (statement.kind === 'import' && statement.alias === undefined) {
      const target = file.imports.get(statement);
      if (target !== undefined) checkOutcomes(work, block, target);
    }
  }
};

/** Checks a policy with all its files. The parts of the result are whole only if no error was reported. */
export const checkProgram = (input: ProgramInput): CheckedProgram => {
  const { session, main } = input;
  const work: Work = {
    session,
    input,
    main: main.path,
    list: createDefinitionList(),
    admission: [],
    routes: [],
    uses: [],
    usedManifests: [],
    tests: [],
    ensures: [],
    allowances: [],
    labels: new Map(),
    nextNumbers: new Map(),
    routeLabels: new Map(),
    writtenLabels: new Set(),
    aliases: new Map(),
    unusedChecks: [],
    counts: { route: 0, default: 0, admit: 0, reject: 0, queue: 0 },
    admissionClosed: undefined,
    openUnknowns: new Set(),
    lastRoute: undefined,
    brokenRule: false,
  };
  session.observer?.started(session, main);
  collect(work, main, '');
  const block = createBlock();
  session.observer?.block(block, main.tree.span);
  declareLets(block, main.tree.statements);
  const closed = checkStatements(
    work,
    block,
    { when: undefined, size: 0, with: {}, group: undefined },
    main.tree.statements,
    main,
    false,
    false,
  );
  checkOutcomes(work, block, main);
  if (closed === undefined && work.lastRoute !== undefined && !work.brokenRule && !session.incomplete) {
    session.report('W0506', work.lastRoute, 'no default: a request that meets no rule is answered by 503 `no_route`', {
      help: 'add `default to …` or `default reject` at the end',
      ...(session.strict ? { severity: 'error' } : {}),
    });
  }
  reportUnused(work);
  if (session.defined.uncheckedTier !== undefined && !session.defined.tiersKnown && !session.incomplete) {
    session.report('W0514', session.defined.uncheckedTier, 'names of tiers are not checked, because no tier is known', {
      help: 'define the tiers, or give a catalogue by `--catalogue`',
    });
  }
  return {
    admission: work.admission,
    routes: work.routes,
    uses: work.uses,
    definitions: finishDefinitions(work.list),
    tests: work.tests,
    ensures: work.ensures,
    allowances: work.allowances,
    usedManifests: work.usedManifests,
  };
};
