import { compilePolicy } from '../../../packages/policy/src/index.ts';
import type { Diagnostic } from '../../../packages/policy/src/index.ts';
import type { Recogniser } from '../grammar/recogniser.ts';
import type { NameCheck } from '../grammar/name-check.ts';
import { readWords } from '../grammar/words.ts';
import { compileInput } from '../support/compile.fixture.ts';
import type { ValidPolicy } from '../support/policies.fixture.ts';
import type { Mutant } from './mutate.ts';

export interface Oracle {
  readonly recognises: Recogniser;
  readonly names: NameCheck;
}

/** What the oracle says of a text, and what the compiler says of it. */
export interface Verdict {
  readonly mutant: Mutant;
  readonly invalid: 'syntax' | 'name' | undefined;
  /** Findings that the valid text does not have, several of one name once. */
  readonly findings: readonly Diagnostic[];
  readonly touches: boolean;
}

/** Texts of the parser library and of schema validators, none of which a user may see. */
export const LIBRARY_TEXT: RegExp =
  /Expecting|NoViableAlt|MismatchedToken|but found|Redundant input|end of input|EOF|additionalProperties|must (?:be|have|match)|keyword|undefined|\[object|\bnull\b|NaN/;

export const invalidity = (text: string, files: ReadonlySet<string>, oracle: Oracle): Verdict['invalid'] => {
  const words = readWords(text);
  if (words === undefined || !oracle.recognises(words)) return 'syntax';
  return oracle.names.unknownNames(words, files).length > 0 ? 'name' : undefined;
};

const quoted = (text: string, { code, span }: Diagnostic): string => `${code} ${text.slice(span.start, span.end)}`;

/** Several uses of one lost name are one finding: those of one code over the same text, where that text is a name or a string. */
function distinct(text: string, findings: readonly Diagnostic[]): readonly Diagnostic[] {
  const seen = new Set<string>();
  return findings.filter((finding) => {
    const key = quoted(text, finding);
    if (!finding.code.startsWith('E02') || !seen.has(key)) {
      seen.add(key);
      return true;
    }
    return false;
  });
}

/** Codes of the findings that a policy has as it stands. */
export const codesOf = ({ text, files }: ValidPolicy): ReadonlySet<string> =>
  new Set(compilePolicy(compileInput(text, files)).diagnostics.map(({ code }) => code));

export function judge({ files }: ValidPolicy, before: ReadonlySet<string>, mutant: Mutant, oracle: Oracle): Verdict {
  const { diagnostics } = compilePolicy(compileInput(mutant.text, files));
  const own = diagnostics.filter(({ code }) => !before.has(code));
  const findings = distinct(mutant.text, own);
  const touches = findings.some(({ span }) => span.start <= mutant.end && span.end >= mutant.start);
  return { mutant, invalid: invalidity(mutant.text, new Set(Object.keys(files)), oracle), findings, touches };
}
