/** The generated blocks of docs/performance.md: one per suite, between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`. */
import { readFileSync, writeFileSync } from 'node:fs';

export interface Block {
  readonly name: string;
  readonly text: string;
}

/** Where blocks go that have no place of their own yet. */
const OTHERS = '<!-- bench:others -->';

/** Replaces the blocks named; the others stay as they are. */
export function replaceBlocks(page: string, blocks: readonly Block[]): string {
  let text = page;
  for (const { name, text: block } of blocks) {
    const [open, close] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
    if (!text.includes(open)) {
      if (!text.includes(OTHERS)) throw new Error(`the page has no place for "${name}": add the line ${OTHERS}`);
      text = text.replace(OTHERS, `${open}\n${close}\n\n${OTHERS}`);
    }
    const [start, end] = [text.indexOf(open), text.indexOf(close)];
    if (end < start) throw new Error(`the page has ${open} but no ${close} after it`);
    text = `${text.slice(0, start + open.length)}\n${block}\n${text.slice(end)}`;
  }
  return text;
}

export function updatePage(path: URL, blocks: readonly Block[]): void {
  writeFileSync(path, replaceBlocks(readFileSync(path, 'utf8'), blocks));
}
