/** A node of a pattern's automaton. Targets are indices of nodes. */
export type NfaNode =
  /** Takes one character that the atom matches. */
  | { readonly kind: 'take'; readonly atom: number; readonly next: number }
  | { readonly kind: 'split'; readonly next: readonly number[] }
  | { readonly kind: 'assert'; readonly assertion: Assertion; readonly next: number }
  | { readonly kind: 'accept' };

/** `^`, `$`, `\b`, `\B`. */
export type Assertion = 'start' | 'end' | 'boundary' | 'inside';

export interface Nfa {
  readonly nodes: readonly NfaNode[];
  readonly start: number;
  /** Source text of each different atom, such as `a`, `\d` or `[^a-z]`. */
  readonly atoms: readonly string[];
  readonly hasQuantifier: boolean;
  /** A pattern without repetition that every text with a match matches too, where there is one that says something. */
  readonly necessary: string | undefined;
}

type Tree =
  | { readonly kind: 'atom'; readonly atom: number; readonly text: string }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Tree[] }
  | { readonly kind: 'repeat'; readonly body: Tree; readonly minimum: number; readonly maximum: number };

/** Counted repetitions are written out; no pattern may grow beyond this. */
const MAXIMAL_NODES = 20_000;

const QUANTIFIER = /(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/y;
const GROUP = /\((?:\?:|\?<[^=!][^>]*>|(?!\?))/y;
const ATOM =
  /\.|\[(?:\\[^]|[^\]\\])*\]|\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[^k1-9])|[^\\()[\]{}*+?|]/uy;

/**
 * The automaton of a pattern that `RegExp` accepts with the `u` flag. Look-around, back-references and groups with flags are not part of
 * the language: `SyntaxError`.
 */
export function parsePattern(pattern: string): Nfa {
  const atoms = new Map<string, number>();
  let position = 0;
  let hasQuantifier = false;

  const take = (expression: RegExp): RegExpExecArray | null => {
    expression.lastIndex = position;
    const match = expression.exec(pattern);
    if (match !== null) position += match[0].length;
    return match;
  };

  const choice = (): Tree => {
    const parts = [sequence()];
    while (pattern[position] === '|') {
      position++;
      parts.push(sequence());
    }
    return { kind: 'choice', parts };
  };

  const sequence = (): Tree => {
    const parts: Tree[] = [];
    while (position < pattern.length && pattern[position] !== '|' && pattern[position] !== ')')
      parts.push(quantified());
    return { kind: 'sequence', parts };
  };

  const quantified = (): Tree => {
    const body = term();
    const match = take(QUANTIFIER);
    if (match === null) return body;
    hasQuantifier = true;
    const [text, low, comma, high] = match;
    if (low === undefined) {
      return {
        kind: 'repeat',
        body,
        minimum: text.startsWith('+') ? 1 : 0,
        maximum: text.startsWith('?') ? 1 : Infinity,
      };
    }
    const minimum = Number(low);
    const open = high === undefined || high === '' ? Infinity : Number(high);
    return { kind: 'repeat', body, minimum, maximum: comma === undefined ? minimum : open };
  };

  const term = (): Tree => {
    const assertion = ASSERTIONS.find(([text]) => pattern.startsWith(text, position));
    if (assertion !== undefined) {
      position += assertion[0].length;
      return { kind: 'assert', assertion: assertion[1] };
    }
    if (take(GROUP) !== null) {
      const body = choice();
      position++;
      return body;
    }
    const match = take(ATOM);
    if (match === null)
      throw new SyntaxError(
        `The pattern holds at ${position} what patterns of a policy may not: look-around or a back-reference.`,
      );
    const [text] = match;
    const atom = atoms.get(text) ?? atoms.size;
    atoms.set(text, atom);
    return { kind: 'atom', atom, text };
  };

  const tree = choice();
  const nodes: NfaNode[] = [{ kind: 'accept' }];
  const start = build(tree, 0, nodes);
  return { nodes, start, atoms: [...atoms.keys()], hasQuantifier, necessary: necessaryPart(tree)?.text };
}

const ASSERTIONS: readonly (readonly [text: string, assertion: Assertion])[] = [
  ['^', 'start'],
  ['$', 'end'],
  ['\\b', 'boundary'],
  ['\\B', 'inside'],
];

interface Part {
  readonly text: string;
  /** How much it rules out. */
  readonly weight: number;
}

/** The stretch without repetition that rules out most, of those that no match can be without. */
function necessaryPart(tree: Tree): Part | undefined {
  switch (tree.kind) {
    case 'atom':
    case 'assert':
      return plainPart(tree);
    case 'repeat':
      return tree.minimum === 0 ? undefined : necessaryPart(tree.body);
    case 'choice': {
      const parts = tree.parts.map(necessaryPart);
      if (!parts.every((part) => part !== undefined)) return undefined;
      return { text: parts.map((part) => part.text).join('|'), weight: Math.min(...parts.map((part) => part.weight)) };
    }
    case 'sequence': {
      const candidates: Part[] = [];
      let run: Part = { text: '', weight: 0 };
      for (const member of tree.parts) {
        const plain = plainPart(member);
        if (plain !== undefined) {
          run = { text: run.text + plain.text, weight: run.weight + plain.weight };
          continue;
        }
        candidates.push(run);
        run = { text: '', weight: 0 };
        const inner = necessaryPart(member);
        if (inner !== undefined) candidates.push(inner);
      }
      const best = [...candidates, run].reduce((most, part) => (part.weight >= most.weight ? part : most));
      return best.weight > 0 ? best : undefined;
    }
  }
}

/** The source of a tree without repetition, its assertions left out. */
function plainPart(tree: Tree): Part | undefined {
  switch (tree.kind) {
    case 'assert':
      return { text: '', weight: 0 };
    case 'atom':
      return { text: tree.text, weight: tree.text === '.' ? 0 : /^(?:\\[dDwWsSpP]|\[)/.test(tree.text) ? 1 : 3 };
    case 'repeat':
      return undefined;
    case 'sequence':
    case 'choice': {
      const parts = tree.parts.map(plainPart);
      if (!parts.every((part) => part !== undefined)) return undefined;
      const weights = parts.map((part) => part.weight);
      return tree.kind === 'sequence'
        ? { text: parts.map((part) => part.text).join(''), weight: weights.reduce((sum, weight) => sum + weight, 0) }
        : { text: `(?:${parts.map((part) => part.text).join('|')})`, weight: Math.min(...weights) };
    }
  }
}

/** Adds the nodes of a tree that goes on at `next`, and returns where it begins. */
function build(tree: Tree, next: number, nodes: NfaNode[]): number {
  const add = (node: NfaNode): number => {
    if (nodes.length >= MAXIMAL_NODES) throw new SyntaxError('The pattern is too large: use smaller counts in `{…}`.');
    return nodes.push(node) - 1;
  };
  switch (tree.kind) {
    case 'atom':
      return add({ kind: 'take', atom: tree.atom, next });
    case 'assert':
      return add({ kind: 'assert', assertion: tree.assertion, next });
    case 'sequence':
      return tree.parts.reduceRight((after, part) => build(part, after, nodes), next);
    case 'choice': {
      const starts = tree.parts.map((part) => build(part, next, nodes));
      const [only] = starts;
      return only !== undefined && starts.length === 1 ? only : add({ kind: 'split', next: starts });
    }
    case 'repeat': {
      let after = next;
      if (tree.maximum === Infinity) {
        const loop = add({ kind: 'split', next: [next] });
        nodes[loop] = { kind: 'split', next: [build(tree.body, loop, nodes), next] };
        after = loop;
      } else {
        for (let count = tree.minimum; count < tree.maximum; count++) {
          after = add({ kind: 'split', next: [build(tree.body, after, nodes), next] });
        }
      }
      for (let count = 0; count < tree.minimum; count++) after = build(tree.body, after, nodes);
      return after;
    }
  }
}
