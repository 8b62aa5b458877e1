import type { PolicyToken, SemanticModel, SymbolKind } from '@signalbox/policy';
import type { Range } from './findings.ts';

/** What a stretch of the policy is shown as: the kind of its token, for names what the checker resolved them to. */
export interface Mark extends Range {
  readonly kind: Exclude<PolicyToken['kind'], 'name'> | SymbolKind;
}

/** The words of one file with how they are shown, in order, none over another. Names that stand for nothing have none. */
export function marksOf(model: SemanticModel, path: string): readonly Mark[] {
  const kinds = new Map(model.references(path).map(({ span, symbol }) => [span.start, { symbol, end: span.end }]));
  return model.tokens(path).flatMap(({ kind, start, end }): Mark[] => {
    if (kind !== 'name') return [{ from: start, to: end, kind }];
    const reference = kinds.get(start);
    return reference === undefined ? [] : [{ from: start, to: end, kind: reference.symbol.kind }];
  });
}
