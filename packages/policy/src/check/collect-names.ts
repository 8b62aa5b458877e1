import { suggest } from '../diagnostics/suggest.ts';
import type { BrokenStatementNode, DefineNode, StatementNode } from '../syntax/ast.ts';
import { foreignPools } from '../syntax/foreign-words.ts';
import { defineKinds } from './catalogue/define-kinds.ts';
import { collectDefinition } from './collect-definitions.ts';
import type { LoadedFile } from './load-files.ts';
import type { Work } from './work.ts';

export const collect = (work: Work, file: LoadedFile, prefix: string): void => {
  const visit = (statements: readonly StatementNode[]): void => {
    for (const statement of statements) {
      switch (statement.kind) {
        case 'define':
          collectDefinition(
            work.session.defined,
            asMeant(work, statement),
            prefix,
            file.path === work.main,
            work.session.report,
          );
          break;
        case 'route':
        case 'admission':
          if (statement.label !== undefined) work.writtenLabels.add(statement.label.value);
          break;
        case 'group':
          visit(statement.statements);
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

/** A definition of a misspelled kind as the kind that is meant; where a kind or a name is lost, this is noted. */
const asMeant = (work: Work, node: DefineNode): DefineNode => {
  const kind = node.definedKind.text;
  if ((defineKinds as readonly string[]).includes(kind)) {
    if (node.name === undefined) work.session.defined.lost.add(kind);
    return node;
  }
  const meant = foreignPools.has(kind) ? 'tier' : suggest(kind, defineKinds);
  if (meant === undefined) {
    work.session.incomplete = true;
    return node;
  }
  return { ...node, definedKind: { ...node.definedKind, text: meant } };
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
  if (node.keyword === 'let' && node.name === undefined) defined.lost.add('let');
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
