import { writeFileSync } from 'node:fs';
import { textMateGrammar } from './text-mate-grammar.ts';

/** Writes the grammar that the extension ships. A test holds the file equal to what this makes. */
writeFileSync(
  new URL('../syntaxes/route.tmLanguage.json', import.meta.url),
  `${JSON.stringify(textMateGrammar(), null, 2)}\n`,
);
