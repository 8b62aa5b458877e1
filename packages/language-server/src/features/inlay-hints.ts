import { typeText, walkTree } from '@signalbox/policy';
import type { Node, SemanticModel } from '@signalbox/policy';
import { InlayHintKind } from 'vscode-languageserver';
import type { InlayHint } from 'vscode-languageserver';
import { positionAt } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

interface Hint {
  readonly offset: number;
  readonly label: string;
  readonly kind?: InlayHintKind;
  readonly tooltip: string;
  readonly before: boolean;
}

/** Where a destination that has no `by` would have it. */
const scorerPlace = (node: Extract<Node, { kind: 'destination' }>): number =>
  node.where?.span.end ?? node.targets.at(-1)?.span.end ?? node.span.start;

const hintsOf = (
  model: SemanticModel,
  path: string,
  labels: ReadonlyMap<number, string>,
  node: Node,
): readonly Hint[] => {
  switch (node.kind) {
    case 'let': {
      if (node.type !== undefined) return [];
      const symbol = model.referenceAt(path, node.name.span.start)?.symbol;
      const type = symbol?.type === undefined ? symbol?.letKind : typeText(symbol.type);
      if (symbol?.kind !== 'let' || type === undefined || type === 'value') return [];
      return [
        {
          offset: node.name.span.end,
          label: `: ${type}`,
          kind: InlayHintKind.Type,
          tooltip: 'the type that the value has',
          before: false,
        },
      ];
    }
    case 'destination':
      if (node.by !== undefined) return [];
      return [
        {
          offset: scorerPlace(node),
          label: 'by least_tokens',
          tooltip: 'what a destination without `by` is chosen by',
          before: true,
        },
      ];
    case 'route': {
      const label = node.label === undefined ? labels.get(node.head.start) : undefined;
      if (label === undefined) return [];
      return [
        {
          offset: node.head.end,
          label: JSON.stringify(label),
          tooltip: 'the label that records and explanations give this route',
          before: true,
        },
      ];
    }
    case 'count':
      return /[KM]i$/.test(node.raw)
        ? [{ offset: node.span.end, label: `= ${String(node.value)}`, tooltip: 'in plain numbers', before: true }]
        : [];
    case 'rate': {
      if (node.raw.endsWith('/s')) return [];
      const perSecond = `${node.of === 'money' ? '$' : ''}${String(Number(node.value.toPrecision(4)))}`;
      return [{ offset: node.span.end, label: `= ${perSecond}/s`, tooltip: 'the same per second', before: true }];
    }
    default:
      return [];
  }
};

/** What is meant without being written: types of lets, the default scorer, labels of routes, values of units. */
export const inlayHints = (
  workspace: Workspace,
  model: SemanticModel,
  path: string,
  range: { readonly start: number; readonly end: number },
): InlayHint[] => {
  const tree = model.tree(path);
  if (tree === undefined) return [];
  const lines = workspace.lines(path);
  const labels = new Map<number, string>();
  for (const { headSpan, label } of model.result.program?.routes ?? [])
    if (headSpan.file === path) labels.set(headSpan.start, label);
  const hints: InlayHint[] = [];
  walkTree(tree, (node) => {
    if (node.span.end < range.start || range.end < node.span.start) return;
    for (const { offset, label, kind, tooltip, before } of hintsOf(model, path, labels, node)) {
      if (offset < range.start || range.end < offset) continue;
      hints.push({
        position: positionAt(lines, offset),
        label,
        tooltip,
        paddingLeft: before,
        ...(kind === undefined ? {} : { kind }),
      });
    }
  });
  return hints.toSorted(({ position: a }, { position: b }) => a.line - b.line || a.character - b.character);
};
