import type { Ebnf, Production } from '../language/grammar/ebnf.ts';
import { ebnfOf, isTokenKind, readEbnf } from '../language/grammar/ebnf.ts';
import { railroadSvg } from './railroad.ts';

const rulesIn = (part: Ebnf): readonly string[] => {
  switch (part.kind) {
    case 'word':
      return [];
    case 'rule':
      return [part.name];
    case 'sequence':
    case 'choice':
      return part.parts.flatMap(rulesIn);
    case 'option':
    case 'repeat':
      return rulesIn(part.part);
  }
};

/** The lines of a production as the page of the language shows them, without the columns. */
function writtenAs(grammar: string, { name }: Production): string {
  const found = new RegExp(`^${name}\\s+= [\\s\\S]*?;(?=\\s|$)`, 'm').exec(grammar)?.[0] ?? '';
  return found.replaceAll(/\s+/g, ' ').replace(/ ;$/, ' ;');
}

const KINDS = `| in the diagrams | is |
| --- | --- |
| \`IDENT\` | a name: a letter or \`_\`, then letters, digits and \`_\`; no reserved word |
| \`WORD\` | a name or a reserved word |
| \`STRING\` | \`"…"\`, with the escapes of JSON |
| \`REGEX\` | \`r"…"\` with the flags \`i\`, \`m\`, \`s\` |
| \`NUMBER\` | \`42\`, \`1_000\`, \`0.5\` |
| \`PERCENT\` | \`95%\` |
| \`QUANTITY\` | a number with a unit: a duration, a count, a size, a rate, or money |`;

/** The page of the grammar and its diagrams, by path under docs/, made from the block on the page of the language. */
export function grammarPages(language: string, generated: string): ReadonlyMap<string, string> {
  const grammar = ebnfOf(language);
  const productions = readEbnf(grammar);
  const pages = new Map<string, string>();
  const sections = productions.map((production) => {
    const { name, body } = production;
    pages.set(`reference/grammar/${name.toLowerCase()}.svg`, railroadSvg(production));
    const users = productions.filter((other) => other.name !== name && rulesIn(other.body).includes(name));
    const uses = [...new Set(rulesIn(body))].filter((rule) => rule !== name && !(isTokenKind(rule) && rule !== 'CMP'));
    const links = (names: readonly string[]): string =>
      names.map((one) => `[${one}](#${one.toLowerCase()})`).join(', ');
    const seeAlso = [
      ...(users.length === 0 ? [] : [`In: ${links(users.map((user) => user.name))}.`]),
      ...(uses.length === 0 ? [] : [`Of: ${links(uses)}.`]),
    ].join(' ');
    return `## ${name}\n\n![${name}](grammar/${name.toLowerCase()}.svg)\n\n\`\`\`text\n${writtenAs(grammar, production)}\n\`\`\`\n${seeAlso === '' ? '' : `\n${seeAlso}\n`}`;
  });
  pages.set(
    'reference/grammar.md',
    `${generated}# Grammar\n\nFollow a line from left to right: every way through is a sentence. Round boxes are written as they stand, square ones are rules of their own,
dashed ones are kinds of words. What each means is in [language.md](language.md), whose block of EBNF this page is made from; tests hold it equal
to what the parser takes.\n\n${KINDS}\n\n${sections.join('\n')}`,
  );
  return pages;
}
