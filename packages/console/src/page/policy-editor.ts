import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  snippet,
} from '@codemirror/autocomplete';
import type { Completion as ShownCompletion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import type { Diagnostic as ShownDiagnostic } from '@codemirror/lint';
import {
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import type { Finding, Range } from '../playground/findings.ts';
import type { Mark } from '../playground/marks.ts';
import type { Completion, Hover, PolicyPlace } from '../playground/policy-service.ts';
import { element, inlineMarks } from './dom.ts';
import { mountEditor, setText } from './mount-editor.ts';
import { setMarks } from './marks-extension.ts';

export interface PolicyEditorOptions {
  readonly host: HTMLElement;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly onFormat: () => void;
  readonly complete: (place: PolicyPlace) => Promise<readonly Completion[]>;
  readonly hover: (place: PolicyPlace) => Promise<Hover | null>;
}

/** The editor of the policy: what the compiler says of the text stands in it. */
export interface PolicyEditor {
  setText(text: string): void;
  /** Shows findings and marks of exactly this text; of any other text they are out of date and left out. */
  show(text: string, findings: readonly Finding[], marks?: readonly Mark[]): void;
  /** Makes the change that a finding proposes, if the text is still the one that it was found in. */
  fix(finding: Finding): void;
  reveal(range: Range): void;
  focus(): void;
}

const SHOWN_SEVERITY = { error: 'error', warning: 'warning', note: 'info' } as const;
/** Words after which completion opens by itself. */
const WORD = /[\w."$%]$/;

export function createPolicyEditor(options: PolicyEditorOptions): PolicyEditor {
  let shown: { readonly text: string; readonly findings: readonly Finding[] } = { text: '', findings: [] };
  const isCurrent = (): boolean => view.state.doc.toString() === shown.text;
  const fix = ({ fix: proposed }: Finding): void => {
    if (proposed === undefined || !isCurrent()) return;
    view.dispatch({
      changes: proposed.changes.map(({ from, to, text }) => ({ from, to, insert: text })),
      userEvent: 'input.fix',
      scrollIntoView: true,
    });
    view.focus();
  };
  /** Applies the fix at the cursor, else the first one on its line. */
  const fixHere = (): boolean => {
    const { head } = view.state.selection.main;
    const line = view.state.doc.lineAt(head);
    const fixable = shown.findings.filter((finding) => finding.fix !== undefined);
    const found =
      fixable.find(({ from, to }) => from <= head && head <= to) ??
      fixable.find(({ from }) => from >= line.from && from <= line.to);
    if (found !== undefined) fix(found);
    return found !== undefined;
  };
  const view = mountEditor({
    host: options.host,
    label: 'Policy',
    text: options.text,
    onText: options.onText,
    extensions: [
      lineNumbers(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      closeBrackets(),
      lintGutter(),
      autocompletion({ override: [(context) => completionsFor(context, options.complete)], icons: false }),
      hoverTooltip(async (editor, offset) => {
        const found = await options.hover({ policy: editor.state.doc.toString(), offset }).catch(() => null);
        return found === null
          ? null
          : { pos: found.from, end: found.to, above: true, create: () => ({ dom: hoverCard(found) }) };
      }),
      keymap.of([
        { key: 'Mod-.', run: fixHere },
        { key: 'Shift-Alt-f', run: () => (options.onFormat(), true) },
        { key: 'Tab', run: acceptCompletion },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...lintKeymap,
      ]),
    ],
  });
  return {
    setText: (text) => setText(view, text),
    show(text, findings, marks) {
      if (view.state.doc.toString() !== text) return;
      shown = { text, findings };
      view.dispatch(
        setDiagnostics(
          view.state,
          findings.map((finding) => toDiagnostic(finding, text.length, fix)),
        ),
      );
      if (marks !== undefined) view.dispatch({ effects: setMarks.of(marks) });
    },
    fix,
    reveal({ from, to }) {
      const { length } = view.state.doc;
      view.dispatch({
        selection: { anchor: Math.min(from, length), head: Math.min(to, length) },
        effects: EditorView.scrollIntoView(Math.min(from, length), { y: 'center' }),
      });
      view.focus();
    },
    focus: () => view.focus(),
  };
}

function toDiagnostic(finding: Finding, length: number, fix: (finding: Finding) => void): ShownDiagnostic {
  const { code, severity, message, help, from, to } = finding;
  return {
    from: Math.min(from, length),
    to: Math.min(to, length),
    severity: SHOWN_SEVERITY[severity],
    message: `${code} ${message}`,
    renderMessage: () =>
      element(
        'span',
        {},
        element('span', { className: 'code', textContent: code }),
        ...inlineMarks(message),
        help === undefined ? undefined : element('span', { className: 'help' }, ...inlineMarks(help)),
      ),
    actions:
      finding.fix === undefined
        ? []
        : [{ name: `Fix: ${finding.fix.message.replaceAll('`', '')}`, apply: () => fix(finding) }],
  };
}

async function completionsFor(
  context: CompletionContext,
  complete: PolicyEditorOptions['complete'],
): Promise<CompletionResult | null> {
  const { state, pos } = context;
  if (!context.explicit && !WORD.test(state.doc.sliceString(Math.max(0, pos - 1), pos))) return null;
  const found = await complete({ policy: state.doc.toString(), offset: pos }).catch(() => []);
  const [first] = found;
  if (first === undefined || context.aborted) return null;
  return {
    from: first.replace.from,
    to: Math.max(first.replace.to, pos),
    options: found.map(toCompletion),
    validFor: /^[\w.]*$/,
  };
}

function toCompletion({ label, detail, doc, insert, isSnippet, rank, kind }: Completion): ShownCompletion {
  return {
    label,
    type: kind,
    boost: Math.max(-99, Math.min(99, 50 - rank)),
    ...(detail === undefined ? {} : { detail }),
    ...(doc === undefined ? {} : { info: () => hoverCard({ title: label, doc }) }),
    apply: isSnippet ? snippet(toTemplate(insert)) : insert,
  };
}

/** A snippet of the language server protocol in the syntax of CodeMirror. */
function toTemplate(insert: string): string {
  return insert
    .replaceAll(/\$\{(\d+)\|([^,|}]*)[^}]*\}/g, '${$1:$2}')
    .replaceAll(/\$0|\$\{0\}/g, '${}')
    .replaceAll(/\$(\d+)/g, '${$1}')
    .replaceAll(/\\([$}\\])/g, '$1');
}

function hoverCard({ title, doc }: Pick<Hover, 'title' | 'doc'>): HTMLElement {
  const paragraphs = doc.split(/\n{2,}/).filter((text) => text !== '');
  return element(
    'div',
    { className: 'hover-card' },
    element('div', { className: 'title', textContent: title }),
    ...paragraphs.map((text) => element('p', {}, ...inlineMarks(text))),
  );
}
