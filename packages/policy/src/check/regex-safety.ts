import { parsePattern } from '../eval/pattern-nfa.ts';
import type { RegexNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { Session } from './session.ts';
import { findAmbiguity } from './regex-ambiguity.ts';
import { parseRegex } from './regex-parser.ts';

/** What the engine has against the pattern, in its words, without quoting it again. */
const syntaxProblem = (regex: RegexNode): string | undefined => {
  try {
    return new RegExp(regex.source, `${regex.flags}u`).source === '' ? 'it is empty' : undefined;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const reason = message.slice(message.lastIndexOf(': ') + 2);
    return `${reason.charAt(0).toLowerCase()}${reason.slice(1)}`;
  }
};

/** What keeps the search of this package from taking the pattern. */
const searchProblem = (regex: RegexNode): string | undefined => {
  try {
    parsePattern(regex.source);
    return undefined;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return `${message.charAt(0).toLowerCase()}${message.slice(1).replace(/\.$/, '')}`;
  }
};

/**
 * Checks that a pattern is a regular expression of the safe subset: valid, without look-around and back-references, and without a
 * repetition that can match one text in several ways (whose running time can grow exponentially). Reports and gives false where not.
 */
export const checkRegex = (session: Session, regex: RegexNode, span: Span): boolean => {
  const invalid = syntaxProblem(regex);
  if (invalid !== undefined) {
    session.report(
      'E0331',
      span,
      `\`${regex.source}\` is no valid regular expression: ${invalid}`,
      /invalid escape/i.test(invalid)
        ? {
            help: 'a backslash stands before signs that have a meaning, and before the letters of a class such as `\\d`',
          }
        : {},
    );
    return false;
  }
  const parsed = parseRegex(regex.source, regex.flags);
  // The source begins after `r"`; a quote inside is written as `\"`, so the offset holds only where there is none.
  const at = (start: number, end: number): Span =>
    span.start === regex.span.start && !regex.source.includes('"')
      ? { ...span, start: span.start + 2 + start, end: span.start + 2 + end }
      : span;
  if ('problem' in parsed) {
    session.report('E0330', at(parsed.start, parsed.end), parsed.problem, {
      help: 'only patterns whose running time grows linearly with the text are allowed',
    });
    return false;
  }
  const ambiguity = findAmbiguity(parsed.root);
  if (ambiguity === undefined) {
    const problem = searchProblem(regex);
    if (problem === undefined) return true;
    session.report('E0330', span, `\`${session.textOf(regex.span)}\` cannot be searched for: ${problem}`);
    return false;
  }
  const text = regex.source.slice(ambiguity.start, ambiguity.end);
  session.report(
    'E0330',
    at(ambiguity.start, ambiguity.end),
    ambiguity.kind === 'ambiguous'
      ? `\`${text}\` can match the same text in several ways, so its running time can grow exponentially`
      : `\`${text}\` is too large to be checked`,
    {
      help:
        ambiguity.kind === 'ambiguous'
          ? 'let the parts of a repetition begin differently, or drop the inner repetition: `(a+)+` is `a+`'
          : 'use smaller counts in `{…}`',
    },
  );
  return false;
};
