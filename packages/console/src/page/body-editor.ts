import { setDiagnostics } from '@codemirror/lint';
import { closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete';
import { keymap } from '@codemirror/view';
import type { RequestProblem } from '../playground/read-request.ts';
import { setMarks } from './marks-extension.ts';
import { mountEditor, setText } from './mount-editor.ts';

/** The editor of a request's JSON body. */
export interface BodyEditor {
  setText(text: string): void;
  /** Shows what is wrong with the body, or that nothing is. */
  show(problem: RequestProblem | undefined): void;
}

export function createBodyEditor(host: HTMLElement, text: string, onText: (text: string) => void): BodyEditor {
  const colour = (shown: string): void => view.dispatch({ effects: setMarks.of(jsonMarks(shown)) });
  const view = mountEditor({
    host,
    label: 'Request body, JSON',
    text,
    extensions: [closeBrackets(), keymap.of(closeBracketsKeymap)],
    onText: (changed) => {
      // Not within the update that reports the change.
      queueMicrotask(() => colour(view.state.doc.toString()));
      onText(changed);
    },
  });
  colour(text);
  return {
    setText: (changed) => setText(view, changed),
    show(problem) {
      const { length } = view.state.doc;
      const at = Math.min(problem?.offset ?? 0, Math.max(0, length - 1));
      const isHere = problem?.field === 'body' && problem.offset !== undefined;
      view.dispatch(
        setDiagnostics(
          view.state,
          isHere ? [{ from: at, to: Math.min(at + 1, length), severity: 'error', message: problem.message }] : [],
        ),
      );
    },
  };
}

const JSON_WORD = /("(?:[^"\\]|\\.)*"?)(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

function jsonMarks(text: string): readonly { readonly from: number; readonly to: number; readonly kind: string }[] {
  return [...text.matchAll(JSON_WORD)].map((match) => {
    const [word, quoted, colon] = match;
    const kind =
      quoted === undefined ? (/^[-\d]/.test(word) ? 'number' : 'keyword') : colon === undefined ? 'string' : 'key';
    return { from: match.index, to: match.index + (quoted ?? word).length, kind };
  });
}
