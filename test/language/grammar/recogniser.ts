import type { Ebnf, Production } from './ebnf.ts';
import { isTokenKind } from './ebnf.ts';
import type { Word } from './words.ts';
import { isReserved } from './words.ts';

/*
 * Earley's algorithm (J. Earley, An efficient context-free parsing algorithm, CACM 13, 1970) over the grammar of the reference. It shares
 * nothing with the parser: not its tokens, not its lookahead, not its cutting of a file into statements.
 */

/** A token kind, or the index of a rule with alternatives. */
type Part = string | number;

interface PlainGrammar {
  /** Alternatives of each rule, as indices of `sides`. */
  readonly rules: readonly (readonly number[])[];
  readonly sides: readonly { readonly rule: number; readonly parts: readonly Part[] }[];
  /** Rules that give the empty sentence. */
  readonly nullable: ReadonlySet<number>;
  /** The rule of an object in a list, which stands only inside the object of a statement. */
  readonly item: number | undefined;
  readonly object: number | undefined;
}

/** Whether the words are a sentence of the grammar, whose first production is the whole file. */
export type Recogniser = (words: readonly Word[]) => boolean;

function plainGrammar(productions: readonly Production[]): PlainGrammar {
  const byName = new Map(productions.map(({ name }, index) => [name, index]));
  const rules: number[][] = productions.map(() => []);
  const sides: { rule: number; parts: readonly Part[] }[] = [];
  const addSide = (rule: number, parts: readonly Part[]): void => {
    rules[rule]?.push(sides.push({ rule, parts }) - 1);
  };
  const addAll = (rule: number, body: Ebnf): void => {
    for (const one of body.kind === 'choice' ? body.parts : [body]) addSide(rule, partsOf(one));
  };
  const newRule = (): number => rules.push([]) - 1;
  const partsOf = (body: Ebnf): readonly Part[] => {
    if (body.kind === 'word') return [body.text];
    if (body.kind === 'sequence') return body.parts.flatMap(partsOf);
    if (body.kind === 'rule') {
      const rule = byName.get(body.name);
      if (rule === undefined && !isTokenKind(body.name)) throw new Error(`the grammar has no rule ${body.name}`);
      return [rule ?? body.name];
    }
    const rule = newRule();
    if (body.kind !== 'choice') addSide(rule, []);
    if (body.kind === 'repeat') addSide(rule, [rule, ...partsOf(body.part)]);
    else addAll(rule, body.kind === 'option' ? body.part : body);
    return [rule];
  };
  for (const [index, { body }] of productions.entries()) addAll(index, body);
  const nullable = new Set<number>();
  for (let before = -1; before < nullable.size;) {
    before = nullable.size;
    for (const { rule, parts } of sides)
      if (parts.every((part) => typeof part === 'number' && nullable.has(part))) nullable.add(rule);
  }
  return { rules, sides, nullable, item: byName.get('item'), object: byName.get('object') };
}

const fits = (kind: string, word: Word): boolean =>
  kind === word.kind || (kind === 'WORD' && (word.kind === 'IDENT' || isReserved(word.kind)));

/** For each word, whether it stands inside the braces of an object: those that hold a key and a colon first, or nothing. */
function insideObjects(words: readonly Word[]): readonly boolean[] {
  const open: boolean[] = [];
  return words.map((word, index) => {
    const inside = open.includes(true);
    const [first, second] = words.slice(index + 1, index + 3);
    if (word.kind === '{') open.push(first?.kind === '}' || second?.kind === ':');
    if (word.kind === '}') open.pop();
    return inside;
  });
}

interface Item {
  readonly side: number;
  readonly dot: number;
  readonly origin: number;
}

/** The items of one position, each once, and those that wait for a rule. */
interface Column {
  readonly items: Item[];
  readonly seen: Set<number>;
  readonly waiting: Map<number, Item[]>;
}

export function createRecogniser(productions: readonly Production[]): Recogniser {
  const grammar = plainGrammar(productions);
  const width = Math.max(...grammar.sides.map(({ parts }) => parts.length)) + 1;

  return (words) => {
    const inside = insideObjects(words);
    const columns: Column[] = [];
    const columnAt = (at: number): Column =>
      (columns[at] ??= { items: [], seen: new Set(), waiting: new Map<number, Item[]>() });
    const add = (at: number, item: Item): void => {
      const column = columnAt(at);
      const key = (item.origin * grammar.sides.length + item.side) * width + item.dot;
      if (column.seen.has(key)) return;
      column.seen.add(key);
      column.items.push(item);
    };
    const advanced = (item: Item): Item => ({ ...item, dot: item.dot + 1 });
    const predict = (at: number, item: Item, rule: number): void => {
      const { waiting } = columnAt(at);
      const others = waiting.get(rule);
      if (others === undefined) {
        waiting.set(rule, [item]);
        const from = grammar.sides[item.side]?.rule;
        if (rule === grammar.object && from === grammar.item && inside[at] !== true) return;
        for (const side of grammar.rules[rule] ?? []) add(at, { side, dot: 0, origin: at });
      } else others.push(item);
      if (grammar.nullable.has(rule)) add(at, advanced(item));
    };

    for (const side of grammar.rules[0] ?? []) add(0, { side, dot: 0, origin: 0 });
    for (let at = 0; at <= words.length; at += 1) {
      const { items } = columnAt(at);
      if (items.length === 0) return false;
      // The list grows while it is read.
      for (const item of items) {
        const side = grammar.sides[item.side];
        const part = side?.parts[item.dot];
        const word = words[at];
        if (typeof part === 'number') predict(at, item, part);
        else if (part !== undefined) {
          if (word !== undefined && fits(part, word)) add(at + 1, advanced(item));
        } else if (side !== undefined) {
          for (const waiting of columnAt(item.origin).waiting.get(side.rule) ?? []) add(at, advanced(waiting));
        }
      }
    }
    return columnAt(words.length).items.some(
      ({ side, dot, origin }) =>
        origin === 0 && grammar.sides[side]?.rule === 0 && dot === grammar.sides[side]?.parts.length,
    );
  };
}
