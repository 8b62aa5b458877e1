import { element } from './dom.ts';

/** Short messages over the page, read out by screen readers. */
export interface Notices {
  /** Says something until it is closed or the next thing is said. */
  say(text: string, kind: 'good' | 'bad', action?: { readonly name: string; readonly run: () => void }): void;
  /** Says something that stays until it is settled. */
  keep(id: string, text: string): void;
  settle(id: string): void;
}

export function createNotices(host: HTMLElement): Notices {
  let passing: HTMLElement | undefined;
  const kept = new Map<string, HTMLElement>();
  const notice = (text: string, kind: 'good' | 'bad', ...buttons: readonly HTMLElement[]): HTMLElement => {
    const made = element('div', { className: `notice ${kind}` }, element('span', { textContent: text }), ...buttons);
    host.append(made);
    return made;
  };
  const close = (of: () => HTMLElement | undefined): HTMLElement => {
    const button = element('button', { type: 'button', textContent: 'Close' });
    button.addEventListener('click', () => of()?.remove());
    return button;
  };
  return {
    say(text, kind, action) {
      passing?.remove();
      const buttons: HTMLElement[] = [];
      if (action !== undefined) {
        const act = element('button', { type: 'button', textContent: action.name });
        act.addEventListener('click', () => {
          made.remove();
          action.run();
        });
        buttons.push(act);
      }
      const made = notice(
        text,
        kind,
        ...buttons,
        close(() => made),
      );
      passing = made;
    },
    keep(id, text) {
      kept.get(id)?.remove();
      const made = notice(
        text,
        'bad',
        close(() => made),
      );
      kept.set(id, made);
    },
    settle(id) {
      kept.get(id)?.remove();
      kept.delete(id);
    },
  };
}
