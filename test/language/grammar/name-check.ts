import type { Word } from './words.ts';

/*
 * A second check of names, on tokens alone: which names a text uses and nothing declares. It knows the names of the catalogue only from
 * valid policies, and asks nothing about types or places.
 */

export interface NameCheck {
  /** Places of the names that nothing declares. */
  unknownNames(words: readonly Word[], files: ReadonlySet<string>): readonly Word[];
}

/** Names after these are free: fields and labels that a definition may give. */
const OPEN_PREFIXES: ReadonlySet<string> = new Set(['tenant', 'labels']);
/** What a string names when it stands behind one of these, by the kind of its definition. */
const REFERENCES: ReadonlyMap<string, string> = new Map([
  ['tier', 'tier'],
  ['over_limit', 'limit'],
  ['usage', 'limit'],
  ['sla', 'slo'],
]);
const DEFINED_BY_DOT: ReadonlySet<string> = new Set(['alarm', 'param']);

const declaresName = (words: readonly Word[], index: number): boolean =>
  ['let', 'as'].includes(words[index - 1]?.kind ?? '') && words[index]?.kind === 'IDENT';

const valueOf = (word: Word | undefined): string | undefined =>
  word?.kind === 'STRING' ? (JSON.parse(word.text) as string) : undefined;

const declaredIn = (words: readonly Word[]): ReadonlyMap<string, number> =>
  new Map(words.flatMap((word, index) => (declaresName(words, index) ? [[word.text, index] as const] : [])));

/** Names by `define KIND "name"`, as `kind name`. */
const definedIn = (words: readonly Word[]): ReadonlySet<string> =>
  new Set(
    words.flatMap((word, index) => {
      const name = valueOf(words[index + 2]);
      return word.kind === 'define' && name !== undefined ? [`${words[index + 1]?.text ?? ''} ${name}`] : [];
    }),
  );

/** Learns what the catalogue holds from policies that are right. */
export function createNameCheck(valid: readonly (readonly Word[])[]): NameCheck {
  const catalogue = new Set<string>();
  for (const words of valid) {
    const own = declaredIn(words);
    for (const word of words) if (word.kind === 'IDENT' && !own.has(word.text)) catalogue.add(word.text);
  }
  const isKnown = (words: readonly Word[], index: number, own: ReadonlyMap<string, number>): boolean => {
    const word = words[index];
    if (word?.kind !== 'IDENT' || declaresName(words, index)) return true;
    const before = words[index - 1]?.kind === '.' ? words[index - 2]?.text : undefined;
    if (before !== undefined && (OPEN_PREFIXES.has(before) || DEFINED_BY_DOT.has(before))) return true;
    return catalogue.has(word.text) || (own.get(word.text) ?? Number.POSITIVE_INFINITY) < index;
  };
  return {
    unknownNames: (words, files) => {
      const own = declaredIn(words);
      const defined = definedIn(words);
      const known = (kind: string, name: string): boolean =>
        defined.has(`${kind} ${name}`) || ![...defined].some((one) => one.startsWith(`${kind} `));
      const importsOthers = words.some((word, index) => word.kind === 'import' && words[index + 2]?.kind !== 'as');
      return words.filter((word, index) => {
        if (!isKnown(words, index, own)) return true;
        const [previous, opener] = [words[index - 1], words[index - 2]];
        if (word.kind === 'IDENT' && previous?.kind === '.' && DEFINED_BY_DOT.has(opener?.text ?? ''))
          return !known(opener?.text ?? '', word.text);
        const name = valueOf(word);
        if (name === undefined || previous === undefined) return false;
        if (previous.kind === 'import') return !files.has(name.replace(/^\.\//, ''));
        const isArgument = previous.kind === '(';
        const kind = REFERENCES.get((isArgument ? opener : previous)?.text ?? '');
        if (kind === undefined || importsOthers || (!isArgument && opener?.kind === 'define')) return false;
        return !known(kind, name);
      });
    },
  };
}
