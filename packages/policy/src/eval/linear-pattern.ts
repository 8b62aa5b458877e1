// perf: one table look-up per character; `!` on typed-array reads within their length.
import type { Nfa } from './pattern-nfa.ts';
import { parsePattern } from './pattern-nfa.ts';

/** Searches texts. */
export interface Pattern {
  /** Whether the text has a match. */
  test(text: string): boolean;
}

/** More states or characters than this are forgotten and found again: it bounds memory, not results. */
const MAXIMAL_STATES = 2000;
const MAXIMAL_CHARACTERS = 70_000;

/** What stands before a position, so far as the pattern's assertions ask. */
const BEFORE = Object.freeze({ start: 0, word: 1, lineEnd: 2, other: 3 });

/** Below this length of text nothing is won by looking for the necessary part first. */
const SHORT_TEXT = 256;

interface State {
  /** Nodes to go on from, ascending, not yet followed through splits and assertions. */
  readonly nodes: readonly number[];
  readonly before: number;
  /** Whether no match can come any more. */
  readonly dead: boolean;
  /** By symbol; `null` is a match. */
  readonly next: (State | null | undefined)[];
  /** Whether a text that ends here matches; undefined until asked. */
  atEnd: boolean | undefined;
}

/** What the pattern can tell of a character. Characters of which it can tell the same share one. */
interface CharacterClass {
  readonly atoms: readonly boolean[];
  readonly isWord: boolean;
  readonly isLineEnd: boolean;
}

/**
 * A pattern whose search takes time in proportion to the text, whatever the pattern: its automaton made deterministic state by state
 * as texts call for it. Takes the syntax of `RegExp` with the `u` flag, without look-around and back-references, and gives the same
 * results; which characters an atom such as `[^a-z]` matches is asked of `RegExp` itself, once per character.
 */
export class LinearPattern implements Pattern {
  readonly #nfa: Nfa;
  readonly #multiline: boolean;
  readonly #asksWords: boolean;
  readonly #asksLineEnds: boolean;
  /** Whether nothing can begin to match after the start of the text. */
  readonly #anchored: boolean;
  readonly #atoms: readonly RegExp[];
  readonly #word: RegExp;
  readonly #necessary: RegExp | undefined;
  readonly #classes: CharacterClass[] = [];
  readonly #classIndices = new Map<string, number>();
  readonly #ascii: Int32Array = new Int32Array(128).fill(-1);
  readonly #others = new Map<number, number>();
  readonly #states = new Map<string, State>();
  readonly #visited: Int32Array;
  #visit = 0;
  #start: State;

  constructor(nfa: Nfa, flags: string) {
    this.#nfa = nfa;
    this.#multiline = flags.includes('m');
    const asks = (...assertions: readonly string[]): boolean =>
      nfa.nodes.some((node) => node.kind === 'assert' && assertions.includes(node.assertion));
    this.#asksWords = asks('boundary', 'inside');
    this.#asksLineEnds = this.#multiline && asks('start', 'end');
    const single = `${flags.replace('m', '')}u`;
    this.#atoms = nfa.atoms.map((atom) => new RegExp(`^(?:${atom})$`, single));
    this.#word = new RegExp('^\\w$', single);
    this.#necessary = nfa.necessary === undefined ? undefined : new RegExp(nfa.necessary, `${flags}u`);
    this.#visited = new Int32Array(nfa.nodes.length);
    this.#anchored = !this.#multiline && isAnchored(nfa);
    this.#start = this.#stateOf([nfa.start], BEFORE.start);
  }

  test(text: string): boolean {
    const ascii = this.#ascii;
    const { length } = text;
    if (length >= SHORT_TEXT && this.#necessary?.test(text) === false) return false;
    let state = this.#start;
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      let symbol: number;
      if (unit < 128) {
        symbol = ascii[unit]!;
        if (symbol < 0) symbol = this.#classify(unit);
      } else {
        const point = text.codePointAt(index) ?? unit;
        if (point > 0xffff) index++;
        symbol = this.#others.get(point) ?? this.#classify(point);
      }
      const next = state.next[symbol];
      const reached = next === undefined ? this.#step(state, symbol) : next;
      if (reached === null) return true;
      if (reached.dead) return false;
      state = reached;
    }
    state.atEnd ??= this.#follow(state, undefined) === null;
    return state.atEnd;
  }

  /** The symbol of a character: the index of its class. */
  #classify(point: number): number {
    const character = String.fromCodePoint(point);
    const found: CharacterClass = {
      atoms: this.#atoms.map((atom) => atom.test(character)),
      isWord: this.#asksWords && this.#word.test(character),
      isLineEnd: this.#asksLineEnds && /[\n\r\u2028\u2029]/.test(character),
    };
    const key = [...found.atoms, found.isWord, found.isLineEnd].map(Number).join('');
    let symbol = this.#classIndices.get(key);
    if (symbol === undefined) {
      symbol = this.#classes.push(found) - 1;
      this.#classIndices.set(key, symbol);
    }
    if (point < 128) {
      this.#ascii[point] = symbol;
    } else {
      if (this.#others.size >= MAXIMAL_CHARACTERS) this.#others.clear();
      this.#others.set(point, symbol);
    }
    return symbol;
  }

  #step(state: State, symbol: number): State | null {
    const character = this.#classes[symbol];
    const nodes = this.#follow(state, character);
    let reached: State | null = null;
    if (nodes !== null) {
      const after =
        character?.isWord === true ? BEFORE.word : character?.isLineEnd === true ? BEFORE.lineEnd : BEFORE.other;
      reached = this.#stateOf(this.#anchored ? nodes : [...nodes, this.#nfa.start], after);
    }
    state.next[symbol] = reached;
    return reached;
  }

  /** The nodes reached by taking the character (undefined: by the end of the text), or null on a match. */
  #follow(state: State, character: CharacterClass | undefined): readonly number[] | null {
    const visit = ++this.#visit;
    const visited = this.#visited;
    const open = [...state.nodes];
    const taken: number[] = [];
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (visited[index] === visit) continue;
      visited[index] = visit;
      const node = this.#nfa.nodes[index];
      if (node === undefined) continue;
      switch (node.kind) {
        case 'accept':
          return null;
        case 'split':
          open.push(...node.next);
          break;
        case 'assert':
          if (this.#holds(node.assertion, state.before, character)) open.push(node.next);
          break;
        case 'take':
          if (character?.atoms[node.atom] === true) taken.push(node.next);
          break;
      }
    }
    return taken;
  }

  #holds(assertion: string, before: number, character: CharacterClass | undefined): boolean {
    switch (assertion) {
      case 'start':
        return before === BEFORE.start || before === BEFORE.lineEnd;
      case 'end':
        return character === undefined || character.isLineEnd;
      default:
        return ((before === BEFORE.word) !== (character?.isWord === true)) === (assertion === 'boundary');
    }
  }

  #stateOf(nodes: readonly number[], before: number): State {
    const ascending = [...new Set(nodes)].sort((a, b) => a - b);
    const key = `${before} ${ascending.join(' ')}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = { nodes: ascending, before, dead: ascending.length === 0, next: [], atEnd: undefined };
      if (this.#states.size >= MAXIMAL_STATES) {
        this.#states.clear();
        this.#start = { nodes: [this.#nfa.start], before: BEFORE.start, dead: false, next: [], atEnd: undefined };
        this.#states.set(`${BEFORE.start} ${this.#nfa.start}`, this.#start);
      }
      this.#states.set(key, state);
    }
    return state;
  }
}

/** Whether every way from the start leads through `^` before it takes a character or accepts. */
function isAnchored(nfa: Nfa): boolean {
  const open = [nfa.start];
  const visited = new Set<number>();
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    const node = nfa.nodes[index];
    if (node === undefined || visited.has(index)) continue;
    visited.add(index);
    if (node.kind === 'take' || node.kind === 'accept') return false;
    if (node.kind === 'split') open.push(...node.next);
    else if (node.assertion !== 'start') open.push(node.next);
  }
  return true;
}

/**
 * The pattern of a `matches`: flags `i`, `m`, `s` as written and always `u`, so that a character outside the basic plane is one
 * character and a senseless escape is an error. Throws `SyntaxError`, also for look-around and back-references.
 */
export function compilePattern(pattern: string, flags: string): Pattern {
  const native = new RegExp(pattern, `${flags}u`);
  const nfa = parsePattern(pattern);
  // Without repetition no position is tried for longer than the pattern is, and the engine's own search is faster.
  return nfa.hasQuantifier ? new LinearPattern(nfa, flags) : native;
}
