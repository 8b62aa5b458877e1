import { RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import type { Extension, StateEffectType } from '@codemirror/state';
import { Decoration, EditorView } from '@codemirror/view';
import type { DecorationSet } from '@codemirror/view';

/** A stretch of text with the class `mark-KIND`. */
interface ShownMark {
  readonly from: number;
  readonly to: number;
  readonly kind: string;
}

/** Gives an editor other marks: of its text as it stands, in order. */
export const setMarks: StateEffectType<readonly ShownMark[]> = StateEffect.define<readonly ShownMark[]>();

function toDecorations(marks: readonly ShownMark[], length: number): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, kind } of marks)
    if (from < to && to <= length) builder.add(from, to, Decoration.mark({ class: `mark-${kind}` }));
  return builder.finish();
}

/** Holds the marks last set, moved along with edits until there are newer ones. */
export const marksExtension: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let result = marks.map(transaction.changes);
    for (const effect of transaction.effects)
      if (effect.is(setMarks)) result = toDecorations(effect.value, transaction.newDoc.length);
    return result;
  },
  provide: (field) => EditorView.decorations.from(field),
});
