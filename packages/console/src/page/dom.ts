type Child = Node | string | undefined | false;
type Properties<T extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[T], 'style' | 'dataset' | 'attributes'>
> & {
  /** Attributes that are no properties: `aria-…`, `role`, `for`. */
  readonly attributes?: { readonly [name: string]: string };
};

/** An element with its properties and children; text stays text, whatever it holds. */
export function element<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  { attributes, ...properties }: Properties<T> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  made.append(...children.filter((child): child is Node | string => child !== undefined && child !== false));
  return made;
}

/** The element of the page with this id. Throws where the page has none. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no #${id}`);
  return found;
}

/** Text with `code` in backquotes and *emphasis* as elements: the marks that catalogue texts and messages use. */
export function inlineMarks(text: string): readonly (Node | string)[] {
  return text
    .split(/(`[^`]+`|\*[^*\s][^*]*\*)/)
    .filter((part) => part !== '')
    .map((part) => {
      if (part.startsWith('`') && part.endsWith('`') && part.length > 2)
        return element('code', { textContent: part.slice(1, -1) });
      if (part.startsWith('*') && part.endsWith('*') && part.length > 2)
        return element('em', {}, ...inlineMarks(part.slice(1, -1)));
      return part;
    });
}
