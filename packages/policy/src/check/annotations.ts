import { isDiagnosticCode, severityOf } from '../diagnostics/codes.ts';
import { suggest } from '../diagnostics/suggest.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { createDiagnostic } from '../diagnostics/diagnostic.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { AnnotationNode, StatementNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { Session } from './session.ts';

const NAMES = ['owner', 'expires', 'allow'];

/** `@allow(W0505, "why")` on a statement: such findings within its span are dropped. */
export interface Allowance {
  readonly code: string;
  readonly within: Span;
  readonly span: Span;
}

/** Findings that only the analysis of conditions makes; whether it makes them is not known to the checker alone. */
export const ANALYSIS_CODES: ReadonlySet<string> = new Set(['W0501', 'W0502', 'W0503', 'W0504', 'W0505', 'W0519']);

const textArgument = (node: AnnotationNode): string | undefined => {
  const [item, ...more] = node.args?.items ?? [];
  const inner = item === undefined ? undefined : withoutParens(item.value);
  return inner?.kind === 'string' && item?.name === undefined && more.length === 0 ? inner.value : undefined;
};

const parseDate = (text: string): number | undefined => {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (match === null) return undefined;
  const time = Date.parse(`${text}T00:00:00Z`);
  return Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text ? undefined : time;
};

const checkAllow = (session: Session, node: AnnotationNode, within: Span, allowances: Allowance[]): void => {
  const [codeItem, reason, ...more] = node.args?.items ?? [];
  const inner = codeItem === undefined ? undefined : withoutParens(codeItem.value);
  const code = inner?.kind === 'name' ? inner.text : inner?.kind === 'string' ? inner.value : undefined;
  const form = 'write `@allow(W0505, "why")`';
  if (code === undefined || codeItem === undefined) {
    session.report('E0227', node.span, '`@allow` names a warning and gives a reason', { help: form });
    return;
  }
  if (!isDiagnosticCode(code) || severityOf(code) === 'error') {
    session.report(
      'E0227',
      codeItem.span,
      isDiagnosticCode(code)
        ? `\`${code}\` is an error, and errors are not allowed away`
        : `no warning has the code \`${code}\``,
      { help: form },
    );
    return;
  }
  const why = reason === undefined ? undefined : withoutParens(reason.value);
  if (why?.kind !== 'string' || why.value.trim() === '' || more.length > 0) {
    session.report('E0227', reason?.span ?? node.span, '`@allow` gives a reason', { help: form });
    return;
  }
  allowances.push({ code, within, span: node.span });
};

/** Checks the annotations of a statement and gathers what they allow. */
export const checkAnnotations = (session: Session, statement: StatementNode, allowances: Allowance[]): void => {
  const seen = new Map<string, Span>();
  for (const node of statement.annotations) {
    const name = node.name.text;
    if (!NAMES.includes(name)) {
      const near = suggest(name, NAMES);
      session.report(
        'E0224',
        node.name.span,
        `unknown annotation \`@${name}\``,
        near === undefined
          ? { help: 'known are `@owner`, `@expires` and `@allow`' }
          : {
              help: `did you mean \`@${near}\`?`,
              fix: { message: `write \`@${near}\``, edits: [{ span: node.name.span, text: near }] },
            },
      );
      continue;
    }
    if (name === 'allow') {
      checkAllow(session, node, statement.span, allowances);
      continue;
    }
    const before = seen.get(name);
    if (before !== undefined) {
      session.report('E0336', node.span, `\`@${name}\` is written twice`, {
        labels: [{ span: before, message: 'first written here' }],
      });
      continue;
    }
    seen.set(name, node.span);
    const text = textArgument(node);
    if (text === undefined) {
      session.report('E0337', node.args?.span ?? node.span, `\`@${name}\` takes one text`, {
        help: name === 'owner' ? 'write `@owner("team")`' : 'write `@expires("2027-03-31")`',
      });
      continue;
    }
    if (name !== 'expires') continue;
    const date = parseDate(text);
    if (date === undefined)
      session.report('E0311', node.args?.span ?? node.span, `${JSON.stringify(text)} is no date`, {
        help: 'write it as in `@expires("2027-03-31")`',
      });
    // The day named is the last one on which the statement holds.
    else if (session.nowEpochMs >= date + 86_400_000)
      session.report('W0513', node.span, `this expired on ${text}`, {
        help: 'remove the statement, or set a later date',
      });
  }
};

export interface AllowedFindings {
  /** Those that no `@allow` drops. */
  readonly kept: readonly Diagnostic[];
  readonly dropped: readonly Diagnostic[];
  /** The allowances that dropped nothing. */
  readonly unused: readonly Allowance[];
}

export const applyAllowances = (
  diagnostics: readonly Diagnostic[],
  allowances: readonly Allowance[],
): AllowedFindings => {
  if (allowances.length === 0) return { kept: diagnostics, dropped: [], unused: [] };
  const used = new Set<Allowance>();
  const dropped: Diagnostic[] = [];
  const kept = diagnostics.filter((diagnostic) => {
    if (diagnostic.severity === 'error') return true;
    const allowance = allowances.find(
      ({ code, within }) =>
        code === diagnostic.code &&
        within.file === diagnostic.span.file &&
        within.start <= diagnostic.span.start &&
        diagnostic.span.end <= within.end,
    );
    if (allowance === undefined) return true;
    used.add(allowance);
    dropped.push(diagnostic);
    return false;
  });
  return { kept, dropped, unused: allowances.filter((allowance) => !used.has(allowance)) };
};

/** W0520 for an allowance that drops nothing. */
export const unusedAllowance = ({ code, span }: Allowance): Diagnostic =>
  createDiagnostic('W0520', span, `nothing here gives \`${code}\``, {
    fix: { message: 'remove it', edits: [{ span, text: '' }] },
  });
