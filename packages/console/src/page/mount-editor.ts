import { EditorState } from '@codemirror/state';
import type { Extension, Transaction } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { editorTheme } from './editor-theme.ts';
import { marksExtension } from './marks-extension.ts';

export interface EditorOptions {
  readonly host: HTMLElement;
  /** What it is, for those who cannot see it. */
  readonly label: string;
  readonly text: string;
  readonly extensions: readonly Extension[];
  readonly onText: (text: string) => void;
}

/**
 * An editor in a shadow tree of its host. There, CodeMirror's styles are constructed style sheets, so that the page's content security
 * policy needs neither a nonce nor inline styles. Tab leaves the editor, as in any field.
 */
export function mountEditor({ host, label, text, extensions, onText }: EditorOptions): EditorView {
  const root = host.attachShadow({ mode: 'open' });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        ...extensions,
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
        editorTheme,
        marksExtension,
        typingOverSelections,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onText(update.state.doc.toString());
        }),
      ],
    }),
  });
  return view;
}

/**
 * Text typed over a selection goes to CodeMirror and not to the browser: Chromium would keep the look of what was selected by an inline
 * style, which the page's content security policy forbids, and CodeMirror would throw away.
 */
const typingOverSelections: Extension = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main } = view.state.selection;
    const { data } = event;
    if (event.inputType !== 'insertText' || data === null || main.empty || view.composing) return false;
    const insert = (): Transaction =>
      view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, main.from, main.to, data, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/** Gives an editor another text, as one step that can be undone; nothing happens where it is the same. */
export function setText(view: EditorView, text: string): void {
  const before = view.state.doc.toString();
  // CodeMirror counts every line break as one character.
  const wanted = text.replaceAll(/\r\n?/g, '\n');
  if (before !== wanted) view.dispatch({ changes: { from: 0, to: before.length, insert: wanted } });
}
