/**
 * Makes the tabs of a host work: `role="tab"` buttons that control `role="tabpanel"` elements. Arrow keys, Home and End move between them,
 * as the ARIA Authoring Practices have it.
 */
export function setUpTabs(host: HTMLElement): void {
  const tabs = [...host.querySelectorAll<HTMLElement>('[role="tab"]')];
  const select = (chosen: HTMLElement, focus: boolean): void => {
    for (const tab of tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute('aria-controls') ?? '');
      if (panel !== null) panel.hidden = !isChosen;
    }
    if (focus) chosen.focus();
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener('click', () => select(tab, false));
    tab.addEventListener('keydown', (event) => {
      const steps: { readonly [key: string]: number } = {
        ArrowRight: index + 1,
        ArrowLeft: index - 1,
        Home: 0,
        End: tabs.length - 1,
      };
      const step = steps[event.key];
      const next = step === undefined ? undefined : tabs[(step + tabs.length) % tabs.length];
      if (next === undefined) return;
      event.preventDefault();
      select(next, true);
    });
  }
}
