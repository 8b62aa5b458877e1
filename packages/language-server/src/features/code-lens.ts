import type { StatementNode } from '@signalbox/policy';
import type { CodeLens } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

/** Commands that the editor's extension carries out: the server runs nothing. Arguments: the document's URI and a label. */
export const RUN_TEST = 'signalbox.runTest';
export const EXPLAIN = 'signalbox.explain';

/** Over each test what runs it, over each route what explains a decision by it. */
export const codeLenses = (workspace: Workspace, path: string): CodeLens[] => {
  const lenses: CodeLens[] = [];
  const lines = workspace.lines(path);
  const uri = workspace.uri(path);
  const visit = (statements: readonly StatementNode[]): void => {
    for (const statement of statements) {
      const range = rangeOf(lines, statement.head);
      if (statement.kind === 'test')
        lenses.push({
          range,
          command: { title: 'Run test', command: RUN_TEST, arguments: [uri, statement.label.value] },
        });
      if (statement.kind === 'route' || statement.kind === 'default')
        lenses.push({
          range,
          command: {
            title: 'Explain',
            command: EXPLAIN,
            arguments: [uri, statement.kind === 'route' ? (statement.label?.value ?? null) : null],
          },
        });
      if (statement.kind === 'group') visit(statement.statements);
    }
  };
  const statements = workspace.tree(path)?.statements ?? [];
  const first = statements.find(({ kind }) => kind === 'test');
  if (first !== undefined)
    lenses.push({
      range: rangeOf(lines, first.head),
      command: { title: 'Run all tests of the file', command: RUN_TEST, arguments: [uri, null] },
    });
  visit(statements);
  return lenses;
};
