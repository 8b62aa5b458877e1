import { createDiagnostic, type Diagnostic } from '../diagnostics/diagnostic.ts';
import * as t from './token-types.ts';
import { endOf, type LexToken } from './token-types.ts';

/** Bytes of UTF-8. */
export const maxFileBytes: number = 1024 * 1024;
export const maxRules = 20_000;
/** Brackets of any kind and groups, counted together. */
export const maxNesting = 64;
export const maxListItems = 10_000;
/** Statements of a file that cannot be read; what follows the last of them is not looked at. */
export const maxBroken = 1000;

export const isTooLarge = (text: string): boolean => {
  if (text.length > maxFileBytes) return true;
  if (text.length * 3 <= maxFileBytes) return false;
  return new TextEncoder().encode(text).length > maxFileBytes;
};

/** The first place among the tokens `from..to` that is nested too deeply or makes a list too long; `depth` is that of `from`. */
export const findLimit = (
  tokens: readonly LexToken[],
  from: number,
  to: number,
  depth: number,
  file: string,
): Diagnostic | undefined => {
  const commas: number[] = [];
  for (let index = from; index < to; index += 1) {
    const token = tokens[index];
    if (token === undefined) return undefined;
    const type = token.tokenType;
    const span = { file, start: token.startOffset, end: endOf(token) };
    if (type === t.LParen || type === t.LSquare || type === t.LCurly) {
      commas.push(type === t.LSquare ? 0 : Number.NEGATIVE_INFINITY);
      if (depth + commas.length > maxNesting) {
        return createDiagnostic('E0142', span, `brackets nest more than ${maxNesting} deep here`, {
          help: 'name parts of the expression by `let`',
        });
      }
    } else if (type === t.RParen || type === t.RSquare || type === t.RCurly) commas.pop();
    else if (type === t.Comma && commas.length > 0) {
      const count = (commas.at(-1) ?? 0) + 1;
      commas[commas.length - 1] = count;
      if (count === maxListItems) {
        return createDiagnostic('E0143', span, 'this list has more than 10,000 items');
      }
    }
  }
  return undefined;
};
