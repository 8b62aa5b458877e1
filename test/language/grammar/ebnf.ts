/*
 * The grammar of the reference, read from the page that shows it. The recogniser beside this file and the railroad diagrams of the docs are
 * made from it, so that what readers see is what is tested.
 */

/** One side of a production. */
export type Ebnf =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Ebnf[] }
  | { readonly kind: 'option' | 'repeat'; readonly part: Ebnf };

export interface Production {
  readonly name: string;
  readonly body: Ebnf;
}

/** Names in capitals are kinds of tokens; all others are productions. */
export const isTokenKind = (name: string): boolean => /^[A-Z]+$/.test(name);

const TOKENS = /\(\*[\s\S]*?\*\)|"[^"]*"|[A-Za-z]+|[=;|{}[\]()]|\S/g;

/** Productions in the order of the page. Throws on what is no EBNF: the page is wrong. */
export function readEbnf(text: string): readonly Production[] {
  const tokens = (text.match(TOKENS) ?? []).filter((token) => !token.startsWith('(*'));
  let next = 0;
  const take = (wanted?: string): string => {
    const token = tokens[next++];
    if (token === undefined || (wanted !== undefined && token !== wanted))
      throw new Error(`the grammar has ${token ?? 'an end'} in place of ${wanted ?? 'more'}`);
    return token;
  };
  const choice = (): Ebnf => {
    const parts = [sequence()];
    while (tokens[next] === '|') {
      next += 1;
      parts.push(sequence());
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'choice', parts };
  };
  const sequence = (): Ebnf => {
    const parts: Ebnf[] = [];
    while (!['|', ';', '}', ']', ')'].includes(tokens[next] ?? ';')) parts.push(term());
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'sequence', parts };
  };
  const enclosed = (close: string): Ebnf => {
    const part = choice();
    take(close);
    return part;
  };
  const term = (): Ebnf => {
    const token = take();
    if (token === '[') return { kind: 'option', part: enclosed(']') };
    if (token === '{') return { kind: 'repeat', part: enclosed('}') };
    if (token === '(') return enclosed(')');
    if (token.startsWith('"')) return { kind: 'word', text: token.slice(1, -1) };
    return { kind: 'rule', name: token };
  };
  const productions: Production[] = [];
  while (next < tokens.length) {
    const name = take();
    take('=');
    productions.push({ name, body: choice() });
    take(';');
  }
  return productions;
}

/** The block of EBNF on a page. */
export function ebnfOf(page: string): string {
  const found = /```ebnf\n([\s\S]*?)```/.exec(page)?.[1];
  if (found === undefined) throw new Error('the page has no block of EBNF');
  return found;
}
