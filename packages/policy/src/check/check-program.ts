import { API_VERSION } from '@signalbox/plugin-api';
import type { Json, PluginManifest } from '@signalbox/plugin-api';
import { hasErrors } from '../diagnostics/diagnostic.ts';
import type { AdmissionRule, Definitions, Expression, Modifiers, PluginUse, RouteRule, Step } from '../ir.ts';
import type { PolicyEnsure, PolicyTest } from '../policy-checks.ts';
import type {
  AdmissionNode,
  BrokenStatementNode,
  DefaultNode,
  ExprNode,
  GroupNode,
  ImportNode,
  RouteNode,
  StatementNode,
  UseNode,
  VerdictNode,
} from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { checkAnnotations } from './annotations.ts';
import type { Allowance } from './annotations.ts';
import { tableOfManifest } from './catalogue/catalogue.ts';
import type { NameTable } from './catalogue/catalogue.ts';
import { reservedWords } from '../syntax/token-types.ts';
import { copyExpression, measureExpression } from './copy-expression.ts';
import { checkDefinition, collectDefinition, createDefinitionList, finishDefinitions } from './definitions.ts';
import type { DefinitionList } from './definitions.ts';
import { checkDestination, checkElse, checkOrder, checkVerdict } from './destinations.ts';
import { checkCondition } from './expression.ts';
import { fold, joinScopes } from './fold.ts';
import { checkLet, takenBy } from './lets.ts';
import type { LoadedFile } from './load-files.ts';
import { copyModifiers, mergeModifiers } from './merge-modifiers.ts';
import { checkModifiers } from './modifiers.ts';
import { checkOptionObject } from './options.ts';
import { checkEnsure, checkTest } from './outcomes.ts';
import { createBlock } from './session.ts';
import type { Binding, Block, Session } from './session.ts';
import { findOpenUnknown } from './unknown.ts';

/** How the host answers a `use`: the manifest of the package, or why there is none. A bare text counts as `not_found`. */
export type ResolvedPlugin =
  | { readonly manifest: PluginManifest; readonly error?: never }
  | { readonly error: PluginProblem | string; readonly manifest?: never };

export interface PluginProblem {
  readonly reason: 'not_found' | 'not_allowed' | 'invalid' | 'api_version';
  /** One sentence without a full stop, for people. */
  readonly message: string;
}

export interface ProgramInput {
  readonly session: Session;
  readonly main: LoadedFile;
  readonly firstParty: readonly PluginManifest[];
  readonly resolvePlugin: (name: string) => ResolvedPlugin;
}

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

interface Work {
  readonly session: Session;
  readonly input: ProgramInput;
  readonly main: string;
  readonly list: DefinitionList;
  readonly admission: AdmissionRule[];
  readonly routes: RouteRule[];
  readonly uses: PluginUse[];
  readonly usedManifests: PluginManifest[];
  readonly tests: PolicyTest[];
  readonly ensures: PolicyEnsure[];
  readonly allowances: Allowance[];
  /** Labels of rules, and of routes alone. */
  readonly labels: Map<string, Span>;
  readonly routeLabels: Map<string, Span>;
  readonly aliases: Map<string, Span>;
  readonly unusedChecks: {
    readonly span: Span;
    readonly binding?: Binding;
    readonly use?: number;
    readonly kind: 'let' | 'use' | 'import';
    readonly name: string;
  }[];
  readonly counts: { route: number; default: number; admit: number; reject: number; queue: number };
  admissionClosed: Span | undefined;
  /** Places already reported as possibly unknown. */
  readonly openUnknowns: Set<string>;
  /** Where the last route stands, and whether there is any rule that did not parse and could be a default. */
  lastRoute: Span | undefined;
  brokenRule: boolean;
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
  for (let n = 2; work.labels.has(label); n += 1) label = `${base} (${n})`;
  return label;
};

// Gathering, before anything is checked

const collect = (work: Work, file: LoadedFile, prefix: string): void => {
  const visit = (statements: readonly StatementNode[]): void => {
    for (const statement of statements) {
      switch (statement.kind) {
        case 'define':
          collectDefinition(work.session.defined, statement, prefix, file.path === work.main, work.session.report);
          break;
        case 'import': {
          const target = file.imports.get(statement);
          if (target === undefined) {
            if (statement.alias === undefined) work.session.incomplete = true;
          } else collect(work, target, statement.alias === undefined ? prefix : `${prefix}${statement.alias.text}.`);
          break;
        }
        case 'broken':
          collectBroken(work, statement, prefix);
          visit(statement.statements);
          break;
        default:
      }
    }
  };
  visit(file.tree.statements);
};

/** A statement that did not parse still introduces its name, so that its uses are not reported on top. */
const collectBroken = (work: Work, node: BrokenStatementNode, prefix: string): void => {
  const { defined } = work.session;
  if (
    node.keyword === undefined ||
    ((node.keyword === 'import' || node.keyword === 'use') && node.name === undefined)
  ) {
    work.session.incomplete ||= node.keyword !== undefined;
    return;
  }
  if (node.keyword !== 'define') return;
  if (node.label === undefined || node.name === undefined) {
    work.session.incomplete = true;
    return;
  }
  const name = prefix + node.label.value;
  const entry = { name, span: node.label.span, own: true, used: true };
  if (node.name.text === 'tier') {
    defined.tiersKnown = true;
    if (!defined.tiers.has(name)) defined.tiers.set(name, entry);
    // Its endpoints are not known.
    defined.endpointsOpen = true;
  } else if (node.name.text === 'endpoint') defined.endpoints.set(name, entry);
  else if (node.name.text === 'slo') defined.slos.set(name, entry);
  else if (node.name.text === 'limit') defined.limits.set(name, entry);
  else if (node.name.text === 'tenant') defined.tenants.set(name, entry);
  else if (node.name.text === 'alarm') defined.alarms.set(name, entry);
  else if (node.name.text === 'param') defined.params.set(name, { ...entry, type: 'string' });
};

const declareLets = (block: Block, statements: readonly StatementNode[]): void => {
  for (const statement of statements)
    if (statement.kind === 'let' && !block.declared.has(statement.name.text))
      block.declared.set(statement.name.text, statement.name.span);
};

// Statements

const bindAlias = (work: Work, block: Block, name: string, span: Span, value: Binding): void => {
  const before = work.aliases.get(name);
  const taken = before === undefined ? takenBy(work.session, block, name) : undefined;
  if (before !== undefined)
    work.session.report('E0220', span, `the alias \`${name}\` is used twice`, {
      labels: [{ span: before, message: 'first used here' }],
    });
  else if (taken !== undefined)
    work.session.report(
      'E0211',
      span,
      `\`${name}\` is already the name of ${taken.what}`,
      taken.binding === undefined ? {} : { labels: [{ span: taken.binding.span, message: 'first declared here' }] },
    );
  else {
    work.aliases.set(name, span);
    block.bindings.set(name, value);
    return;
  }
  value.used = true;
};

const PLUGIN_CODES = { not_found: 'E0501', not_allowed: 'E0502', invalid: 'E0503', api_version: 'E0504' } as const;

const manifestProblem = (manifest: PluginManifest): string | undefined => {
  if (
    typeof manifest !== 'object' ||
    manifest === null ||
    !Array.isArray(manifest.entries) ||
    typeof manifest.name !== 'string'
  )
    return 'it has no name or no entries';
  const reserved = manifest.entries.find((entry) => typeof entry?.name !== 'string' || typeof entry.kind !== 'string');
  return reserved === undefined ? undefined : 'one of its entries has no name or no kind';
};

/** Puts the names of a plugin that has no alias beside those of the catalogue. */
const mergeTable = (work: Work, node: UseNode, manifest: PluginManifest, table: NameTable): void => {
  const { catalogue } = work.session;
  const isFirstParty = work.input.firstParty.some((known) => known.name === manifest.name);
  const merge = <T extends { readonly provider: { readonly kind: string; readonly plugin?: string } }>(
    into: ReadonlyMap<string, T>,
    from: ReadonlyMap<string, T>,
  ): void => {
    for (const [name, entry] of from) {
      const before = into.get(name);
      if (before !== undefined && !(isFirstParty && before.provider.plugin === manifest.name)) {
        if (isFirstParty) continue;
        work.session.report(
          'E0509',
          node.package.span,
          `\`${manifest.name}\` provides \`${name}\`, which is already ${before.provider.plugin === undefined ? 'a name of the catalogue' : `provided by \`${before.provider.plugin}\``}`,
          { help: 'give the plugin an alias by `as`' },
        );
        continue;
      }
      (into as Map<string, T>).set(name, entry);
    }
  };
  merge(catalogue.values, table.values);
  merge(catalogue.scorers, table.scorers);
  merge(catalogue.pickers, table.pickers);
  merge(catalogue.admissions, table.admissions);
};

const checkUse = (work: Work, block: Block, node: UseNode): void => {
  const { session } = work;
  const name = node.package.value;
  const poison = (): void => {
    if (node.alias === undefined) session.incomplete = true;
    else
      bindAlias(work, block, node.alias.text, node.alias.span, {
        kind: 'poison',
        name: node.alias.text,
        span: node.alias.span,
        used: true,
      });
  };
  const resolved = work.input.resolvePlugin(name);
  if (resolved.error !== undefined) {
    const { error } = resolved;
    if (typeof error === 'string') session.report('E0501', node.package.span, error);
    else {
      const help = {
        not_found: `install it: \`npm install ${name}\``,
        not_allowed: `allow it by \`--allow-plugin ${name}\`, or make it a dependency`,
        invalid: undefined,
        api_version: undefined,
      }[error.reason];
      session.report(PLUGIN_CODES[error.reason], node.package.span, error.message, help === undefined ? {} : { help });
    }
    return poison();
  }
  const { manifest } = resolved;
  const problem = manifestProblem(manifest);
  if (problem !== undefined) {
    session.report('E0503', node.package.span, `the manifest of \`${name}\` is invalid: ${problem}`);
    return poison();
  }
  if (manifest.apiVersion !== API_VERSION) {
    session.report(
      'E0504',
      node.package.span,
      `\`${name}\` was written for plugin API ${String(manifest.apiVersion)}, and this build speaks ${API_VERSION}`,
      { help: `install a version of it for API ${API_VERSION}` },
    );
    return poison();
  }
  for (const entry of manifest.entries) {
    if (reservedWords.includes(entry.name))
      session.report(
        'E0215',
        node.package.span,
        `\`${name}\` provides \`${entry.name}\`, which is a word of the grammar`,
      );
  }
  const index = work.uses.length;
  const table = tableOfManifest(manifest, index);
  const binding: Binding | undefined =
    node.alias === undefined
      ? undefined
      : { kind: 'plugin', table, name: node.alias.text, span: node.alias.span, used: false };
  if (binding === undefined) mergeTable(work, node, manifest, table);
  else bindAlias(work, block, binding.name, binding.span, binding);
  let options: { readonly [key: string]: Json } | undefined = {};
  if (manifest.options !== undefined)
    options = checkOptionObject(
      session,
      { scope: 'constant', block, clause: 'use' },
      manifest.options,
      name,
      node.package.span,
      node.options,
    );
  else if (node.options !== undefined && node.options.entries.length > 0) {
    const [first] = node.options.entries;
    session.report('E0505', first?.key.span ?? node.options.span, `\`${name}\` takes no options`);
  }
  work.uses.push({
    package: name,
    ...(node.alias === undefined ? {} : { alias: node.alias.text }),
    plugin: manifest.name,
    options: options ?? {},
    span: node.span,
  });
  work.usedManifests.push(manifest);
  work.unusedChecks.push({ kind: 'use', use: index, span: node.head, name });
};

/** A file that is imported under an alias: only its `let` and `define` names count. */
const checkLibrary = (work: Work, file: LoadedFile, prefix: string): ReadonlyMap<string, Binding> => {
  const block = createBlock();
  const visit = (at: LoadedFile): void => {
    declareLets(block, at.tree.statements);
    for (const statement of at.tree.statements) {
      if (statement.kind === 'let') checkLet(work.session, block, statement);
      else if (statement.kind === 'define') checkDefinition(work.session, block, work.list, statement, prefix);
      else if (statement.kind === 'use') checkUse(work, block, statement);
      else if (statement.kind === 'broken') bindBroken(block, statement);
      else if (statement.kind === 'import') {
        const target = at.imports.get(statement);
        if (target === undefined) bindMissing(work, block, statement);
        else if (statement.alias === undefined) visit(target);
        else {
          const alias = statement.alias.text;
          block.bindings.set(alias, {
            kind: 'import',
            exports: checkLibrary(work, target, `${prefix}${alias}.`),
            name: alias,
            span: statement.alias.span,
            used: true,
          });
        }
      }
    }
  };
  visit(file);
  const exports = new Map<string, Binding>();
  for (const [name, binding] of block.bindings)
    if (binding.kind !== 'import' && binding.kind !== 'plugin') exports.set(name, binding);
  return exports;
};

const bindMissing = (work: Work, block: Block, node: ImportNode): void => {
  if (node.alias !== undefined)
    bindAlias(work, block, node.alias.text, node.alias.span, {
      kind: 'poison',
      name: node.alias.text,
      span: node.alias.span,
      used: true,
    });
};

const bindBroken = (block: Block, node: BrokenStatementNode): void => {
  if (
    (node.keyword === 'let' || node.keyword === 'use' || node.keyword === 'import') &&
    node.name !== undefined &&
    !block.bindings.has(node.name.text)
  ) {
    block.bindings.set(node.name.text, { kind: 'poison', name: node.name.text, span: node.name.span, used: true });
  }
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
  if (node.when === undefined && isTrue(around.when)) work.admissionClosed ??= node.head;
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
  declareLets(own, node.statements);
  const innerClosed = checkStatements(work, own, inner, node.statements, undefined, true, closed !== undefined);
  return innerClosed !== undefined && node.when === undefined ? innerClosed : undefined;
};

/** Checks the statements of a block in order. Gives what closes it, if anything does. `muted`: it is reported as unreachable already. */
const checkStatements = (
  work: Work,
  block: Block,
  around: Around,
  statements: readonly StatementNode[],
  file: LoadedFile | undefined,
  isGroup: boolean,
  muted: boolean,
  before?: { closed: Closed | undefined },
): Closed | undefined => {
  const { session } = work;
  const state = before ?? { closed: undefined };
  const close = (closed: Closed): void => {
    state.closed ??= closed;
  };
  let defaultSpan: Span | undefined;
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
        if (state.closed !== undefined && !muted) reportUnreachable(work, statement.head, state.closed);
        const { always } = checkRoute(work, block, around, statement);
        if (always) close({ span: statement.head, isDefault: false });
        break;
      }
      case 'default':
        work.lastRoute = statement.head;
        if (defaultSpan !== undefined)
          session.report('E0214', statement.head, 'a second default in one block', {
            labels: [{ span: defaultSpan, message: 'the first stands here' }],
          });
        else if (state.closed !== undefined && !muted) reportUnreachable(work, statement.head, state.closed);
        checkDefault(work, block, around, statement);
        defaultSpan ??= statement.head;
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

const reportUnused = (work: Work): void => {
  const { session } = work;
  // A use that has an error counts as none, and its error says enough.
  if (hasErrors(session.diagnostics)) return;
  for (const { kind, span, binding, use, name } of work.unusedChecks) {
    if (kind === 'let' && binding?.used === false && binding.kind !== 'poison')
      session.report('W0507', span, `nothing uses \`${name}\``);
    if (kind === 'import' && binding?.used === false && !libraryIsUsed(work, name))
      session.report('W0509', span, `nothing uses a name of \`${name}\``);
    if (kind === 'use' && use !== undefined && !session.usedPlugins.has(use))
      session.report('W0508', span, `nothing uses what ${JSON.stringify(name)} provides`);
  }
  const { defined } = session;
  for (const [kind, names] of [
    ['limit', defined.limits],
    ['alarm', defined.alarms],
    ['param', defined.params],
    ['slo', defined.slos],
  ] as const) {
    for (const definition of names.values()) {
      if (definition.used || !definition.own) continue;
      session.report('W0517', definition.span, `nothing refers to the ${kind} ${JSON.stringify(definition.name)}`, {
        // An objective is shown beside what is measured even where no rule reads it.
        ...(kind === 'slo' ? { severity: 'note' } : {}),
        ...(kind === 'limit' ? { help: 'a limit refuses nothing by itself: write `reject when over_limit("…")`' } : {}),
      });
    }
  }
};

/** Whether something refers to a definition that the import brought. */
const libraryIsUsed = (work: Work, alias: string): boolean => {
  const { tiers, slos, limits, alarms, params, tenants } = work.session.defined;
  for (const names of [tiers, slos, limits, alarms, params]) {
    for (const [name, definition] of names) if (name.startsWith(`${alias}.`) && definition?.used === true) return true;
  }
  return [...tenants.keys()].some((name) => name.startsWith(`${alias}.`));
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
    routeLabels: new Map(),
    aliases: new Map(),
    unusedChecks: [],
    counts: { route: 0, default: 0, admit: 0, reject: 0, queue: 0 },
    admissionClosed: undefined,
    openUnknowns: new Set(),
    lastRoute: undefined,
    brokenRule: false,
  };
  collect(work, main, '');
  const block = createBlock();
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
