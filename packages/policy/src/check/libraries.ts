import type { BrokenStatementNode, ImportNode, StatementNode } from '../syntax/ast.ts';
import { checkDefinition } from './definitions.ts';
import { checkLet } from './lets.ts';
import type { LoadedFile } from './load-files.ts';
import { createBlock } from './session.ts';
import type { Binding, Block } from './session.ts';
import { bindAlias, checkUse } from './uses.ts';
import type { Work } from './work.ts';

export const declareLets = (block: Block, statements: readonly StatementNode[]): void => {
  for (const statement of statements)
    if (statement.kind === 'let' && !block.declared.has(statement.name.text))
      block.declared.set(statement.name.text, statement.name.span);
};

/** A file that is imported under an alias: only its `let` and `define` names count. */
export const checkLibrary = (work: Work, file: LoadedFile, prefix: string): ReadonlyMap<string, Binding> => {
  const block = createBlock();
  const visit = (at: LoadedFile): void => {
    declareLets(block, at.tree.statements);
    work.session.observer?.block(block, at.tree.span);
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

export const bindMissing = (work: Work, block: Block, node: ImportNode): void => {
  if (node.alias !== undefined)
    bindAlias(work, block, node.alias.text, node.alias.span, {
      kind: 'poison',
      name: node.alias.text,
      span: node.alias.span,
      used: true,
    });
};

export const bindBroken = (block: Block, node: BrokenStatementNode): void => {
  if (
    (node.keyword === 'let' || node.keyword === 'use' || node.keyword === 'import') &&
    node.name !== undefined &&
    !block.bindings.has(node.name.text)
  ) {
    block.bindings.set(node.name.text, { kind: 'poison', name: node.name.text, span: node.name.span, used: true });
  }
};
