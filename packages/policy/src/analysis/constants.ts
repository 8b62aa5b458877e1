import { formatNumber } from '../check/value-types.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { AdmissionRule, Expression, PolicyProgram, RouteRule } from '../ir.ts';
import { operandsOf } from '../operands-of.ts';
import { alwaysHolds, contradiction, neverHolds } from './findings.ts';
import { FALSE, negate, TRUE } from './formula.ts';
import type { Formula } from './formula.ts';
import { isImpossible } from './question.ts';
import type { Questions } from './question.ts';
import type { Translator } from './translate.ts';
import { signalShape } from './variable.ts';

/** How a condition is the same for every request. */
export type Constancy = 'never' | 'always' | undefined;

/** What is looked at: a rule's condition, or the filter of one of its destinations. */
export interface ConditionPlace {
  readonly rule: AdmissionRule | RouteRule;
  readonly subject: 'condition' | 'endpoint';
}

/**
 * Finds conditions, and parts of them, that are the same for every request: the outermost ones only, and no written constants, which
 * the checker reports itself.
 */
export function constantParts(
  condition: Expression,
  place: ConditionPlace,
  parts: { readonly questions: Questions; readonly translator: Translator; readonly program: PolicyProgram },
): { readonly constancy: Constancy; readonly diagnostics: readonly Diagnostic[] } {
  const { questions, translator } = parts;
  const { rule } = place;
  const diagnostics: Diagnostic[] = [];
  const never = (statement: Formula): boolean =>
    statement === FALSE || (statement.kind !== 'in' && statement !== TRUE && isImpossible(questions, [statement]));

  const visit = (part: Expression, isWhole: boolean): Constancy => {
    if (part.kind === 'constant') return part.value === true ? 'always' : 'never';
    const whole = place.subject === 'condition' ? 'this condition' : 'this filter';
    const subject = isWhole ? whole : 'this part of the condition';
    const truth = translator.truth(part);
    if (never(truth)) {
      const core = part.kind === 'and' ? contradictoryParts(part.operands, translator, never) : [];
      diagnostics.push(
        core.length > 1
          ? contradiction(core, rule)
          : neverHolds(core[0] ?? part, rule, subject, whyNever(core[0] ?? part)),
      );
      return 'never';
    }
    if (never(negate(truth))) {
      diagnostics.push(alwaysHolds(part, rule, subject, rangeHelp(parts.program, part)));
      return 'always';
    }
    // What a plugin's expression holds was written by somebody else: all of it has the span of its name.
    if (part.kind === 'and' || part.kind === 'or')
      for (const operand of part.operands)
        if (operand.span.start !== part.span.start || operand.span.end !== part.span.end) visit(operand, false);
    return undefined;
  };

  const whyNever = (part: Expression): string | undefined =>
    never(translator.falsity(part)) ? 'it is unknown for every request' : rangeHelp(parts.program, part);

  return { constancy: visit(condition, true), diagnostics };
}

/** A smallest set of parts that exclude each other. */
function contradictoryParts(
  operands: readonly Expression[],
  translator: Translator,
  never: (statement: Formula) => boolean,
): readonly Expression[] {
  let core = operands;
  for (const operand of operands) {
    const rest = core.filter((part) => part !== operand);
    if (rest.length > 0 && never({ kind: 'and', parts: rest.map((part) => translator.truth(part)) })) core = rest;
  }
  return core;
}

/** For a part about one number of the request: which values it can have. */
function rangeHelp(program: PolicyProgram, part: Expression): string | undefined {
  const read = new Set(signalsOf(part));
  const [index] = read;
  const signal = index === undefined || read.size > 1 ? undefined : program.signals[index];
  if (signal === undefined) return undefined;
  const { domain, grid, text, type } = signalShape(signal, '');
  const [low = -Infinity, high = Infinity] = domain.kind === 'number' ? domain.ends : [];
  if (low === -Infinity) return undefined;
  const whole = grid === 'whole' ? ', whole numbers only' : '';
  return high >= LARGEST_WHOLE
    ? `\`${text}\` is at least ${formatNumber(low, type)}${whole}`
    : `\`${text}\` is from ${formatNumber(low, type)} to ${formatNumber(high, type)}${whole}`;
}

const LARGEST_WHOLE = 2 ** 53;

const signalsOf = (part: Expression): readonly number[] =>
  part.kind === 'signal' ? [part.index] : operandsOf(part).flatMap(signalsOf);
