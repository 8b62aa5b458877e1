import { createDiagnostic } from '../diagnostics/diagnostic.ts';
import type { Diagnostic, DiagnosticLabel } from '../diagnostics/diagnostic.ts';
import type { AdmissionRule, Expression, RouteRule } from '../ir.ts';
import type { Span } from '../syntax/span.ts';
import type { ListedRule } from './decision-list.ts';
import type { Witness } from './witness.ts';

/** A rule as messages call it. */
export function ruleName({ rule }: Pick<ListedRule, 'rule'>): string {
  const keyword = 'verb' in rule ? rule.verb : rule.kind;
  const written = rule.label.startsWith(keyword) ? rule.label : `${keyword} ${JSON.stringify(rule.label)}`;
  return `\`${written}\``;
}

const quoted = ({ text }: Witness): string => (text === 'any request' ? text : `\`${text}\``);

const refuses = ({ rule }: ListedRule): boolean => 'verb' in rule && rule.verb === 'reject';

/** W0502: an earlier rule alone takes all that would come here. */
export function shadowed(at: ListedRule, by: ListedRule, witness: Witness | undefined): Diagnostic {
  const says = refuses(by) ? 'refused here' : 'first matched here';
  const example = witness === undefined ? '' : `for example ${quoted(witness)} meets both; `;
  return createDiagnostic(
    'W0502',
    at.rule.headSpan,
    `no request reaches this: ${ruleName(by)} takes all that it would match`,
    {
      labels: [{ span: by.rule.headSpan, message: says }],
      help: `${example}${at.phase === by.phase ? 'move this rule above it, or remove it' : 'a refused request comes to no route'}`,
    },
  );
}

/** W0501: earlier rules together take all that would come here. */
export function unreachable(at: ListedRule, by: readonly ListedRule[]): Diagnostic {
  const labels = by.slice(0, 4).map((earlier): DiagnosticLabel => ({
    span: earlier.rule.headSpan,
    message: refuses(earlier) ? 'refuses a part' : 'takes a part',
  }));
  return createDiagnostic(
    'W0501',
    at.rule.headSpan,
    `no request reaches this: ${by.length > 1 ? `${by.length} rules above it together take` : 'the rules above it take'} all that it would match`,
    { labels, help: 'move it up, or remove it' },
  );
}

const isWithin = (inner: Span, outer: Span): boolean =>
  inner.file === outer.file && outer.start <= inner.start && inner.end <= outer.end;

/** Where the part stands outside of its rule, as a `let` or the condition of a group does: the rule beside it. */
const usedBy = (span: Span, rule: AdmissionRule | RouteRule): readonly DiagnosticLabel[] =>
  isWithin(span, rule.span) ? [] : [{ span: rule.headSpan, message: 'used here' }];

/** W0503 for a condition or a part of one that is never known true. */
export const neverHolds = (
  part: Expression,
  rule: AdmissionRule | RouteRule,
  subject: string,
  why?: string,
): Diagnostic =>
  createDiagnostic('W0503', part.span, `${subject} never holds`, {
    labels: usedBy(part.span, rule),
    ...(why === undefined ? {} : { help: why }),
  });

/** W0503 for parts that exclude each other: the last one written, with the others beside it. */
export function contradiction(parts: readonly Expression[], rule: AdmissionRule | RouteRule): Diagnostic {
  const own = parts.filter(({ span }) => isWithin(span, rule.span));
  const main = own.at(-1) ?? parts.at(-1);
  const others = parts.filter((part) => part !== main);
  return createDiagnostic('W0503', main?.span ?? rule.headSpan, 'this condition never holds', {
    labels: [
      ...others.slice(0, 3).map(({ span }) => ({ span, message: 'never true together with this' })),
      ...(own.length === 0 ? usedBy(main?.span ?? rule.headSpan, rule) : []),
    ],
    help: 'write `or` where one of them is enough',
  });
}

/** W0504 for a condition or a part of one that is known true for every request. */
export const alwaysHolds = (
  part: Expression,
  rule: AdmissionRule | RouteRule,
  subject: string,
  why?: string,
): Diagnostic =>
  createDiagnostic('W0504', part.span, `${subject} always holds`, {
    labels: usedBy(part.span, rule),
    ...(why === undefined ? {} : { help: why }),
  });

/** W0505. */
export function overlapping(at: ListedRule, with_: readonly ListedRule[], witness: Witness): Diagnostic {
  const [first] = with_;
  const more = with_.length > 1 ? ` and ${with_.length - 1} more` : '';
  return createDiagnostic(
    'W0505',
    at.rule.headSpan,
    `some requests meet this rule and also ${first === undefined ? 'another' : ruleName(first)}${more} above it`,
    {
      labels: with_.slice(0, 4).map(({ rule }) => ({ span: rule.headSpan, message: 'comes first' })),
      help: `for example ${quoted(witness)}; the order of the rules decides`,
    },
  );
}

/** W0506. */
export const noDefault = (last: RouteRule, proof: Witness | string): Diagnostic =>
  createDiagnostic('W0506', last.headSpan, 'no default: a request that meets no rule is answered by 503 `no_route`', {
    help:
      typeof proof === 'string'
        ? `that every request meets a rule is not proved (${proof}); add \`default to …\` or \`default reject\` at the end`
        : `for example ${quoted(proof)} meets none; add \`default to …\` or \`default reject\` at the end`,
  });
