import type { Value } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram, Span, TraceRead } from '@signalbox/policy';
import { signalName } from '../recorded-facts.ts';
import { ANYTHING, bothOf, eitherOf, FALSE, notOf, TRUE } from './possible.ts';
import type { Possible } from './possible.ts';

/** A comparison or predicate of a condition with what it came to. Unknown is null. */
export interface ExplainedLeaf {
  readonly text: string;
  readonly result: boolean | null;
  readonly reads: { readonly [name: string]: Value | null };
  /** Whether the result of the whole condition hangs on it. */
  readonly decided: boolean;
  /** What it reads that was not recorded, so that its result cannot be told. */
  readonly missing?: readonly string[];
}

/** A condition with what each of its parts came to. Unknown is null. */
export interface ExplainedCondition {
  /** As it is written. */
  readonly text: string;
  readonly result: boolean | null;
  /** The comparisons and predicates that it is made of, in order; a `not` before one is part of it. */
  readonly leaves: readonly ExplainedLeaf[];
}

/** What is found of a leaf, or what it is that was not recorded. */
export interface LeafFacts {
  readonly possible: Possible;
  readonly reads: ExplainedLeaf['reads'];
  readonly missing: readonly string[];
}

/** A condition as far as it is known. */
export interface WeighedCondition {
  readonly possible: Possible;
  /** What a decision would need, where it is not decided. */
  readonly missing: readonly string[];
  readonly explained: ExplainedCondition;
}

interface Weighed {
  readonly possible: Possible;
  readonly leaves: readonly { readonly text: string; readonly facts: LeafFacts; readonly decided: boolean }[];
}

/** Puts a condition together from what is known of its leaves. */
export function weighCondition(
  program: PolicyProgram,
  condition: Expression,
  factsOf: (leaf: Expression) => LeafFacts,
): WeighedCondition {
  const { possible, leaves } = weigh(program, condition, factsOf, true);
  return {
    possible,
    missing: [...new Set(leaves.flatMap(({ facts, decided }) => (decided ? facts.missing : [])))],
    explained: {
      text: textAt(program, condition.span),
      result: resultOf(possible),
      leaves: leaves.map(({ text, facts, decided }) => ({
        text,
        result: resultOf(facts.possible),
        reads: facts.reads,
        decided,
        ...(facts.missing.length === 0 ? {} : { missing: facts.missing }),
      })),
    },
  };
}

/** `onlyTruth`: all that is asked of the node is whether it is known true, and not what else it is. */
function weigh(
  program: PolicyProgram,
  node: Expression,
  factsOf: (leaf: Expression) => LeafFacts,
  onlyTruth: boolean,
): Weighed {
  if (node.kind === 'not' && !isCompound(node.operand)) {
    // `not stream` is read as one.
    const facts = factsOf(node.operand);
    const possible = notOf(facts.possible);
    return { possible, leaves: [{ text: textAt(program, node.span), facts: { ...facts, possible }, decided: true }] };
  }
  if (node.kind === 'not') {
    const inner = weigh(program, node.operand, factsOf, false);
    return { possible: notOf(inner.possible), leaves: inner.leaves };
  }
  if (node.kind !== 'and' && node.kind !== 'or') {
    const facts = factsOf(node);
    return { possible: facts.possible, leaves: [{ text: textAt(program, node.span), facts, decided: true }] };
  }
  const operands = node.operands.map((operand) => weigh(program, operand, factsOf, onlyTruth));
  const join = node.kind === 'and' ? bothOf : eitherOf;
  const possible = operands.map((operand) => operand.possible).reduce(join);
  const decides = decidingOperands(operands, node.kind === 'and' ? TRUE : FALSE, possible, onlyTruth);
  const leaves = operands.flatMap((operand, index) =>
    decides(index) ? operand.leaves : operand.leaves.map((leaf) => ({ ...leaf, decided: false })),
  );
  return { possible, leaves };
}

function isCompound({ kind }: Expression): boolean {
  return kind === 'and' || kind === 'or' || kind === 'not';
}

/**
 * Which operands the result hangs on. `neutral` is what changes nothing (true for `and`): where all are that, it hangs on all; else on the
 * first that settles it; and while it is not settled, on all that may.
 */
function decidingOperands(
  operands: readonly Weighed[],
  neutral: Possible,
  possible: Possible,
  onlyTruth: boolean,
): (index: number) => boolean {
  if (possible === neutral) return () => true;
  const settling = neutral === TRUE ? FALSE : TRUE;
  const settled = operands.findIndex((operand) => operand.possible === settling);
  if (settled >= 0) return (index) => index === settled;
  const excluded = operands.findIndex((operand) => (operand.possible & neutral) === 0);
  if (onlyTruth && neutral === TRUE && excluded >= 0) return (index) => index === excluded;
  return (index) => operands[index]?.possible !== neutral;
}

function resultOf(possible: Possible): boolean | null {
  return possible === TRUE ? true : possible === FALSE ? false : null;
}

/** What is known of a leaf of which something was not recorded. */
export function unrecorded(missing: readonly string[], reads: ExplainedLeaf['reads'] = {}): LeafFacts {
  return { possible: ANYTHING, reads, missing };
}

/** What was read, as records and policies name it. */
export function readName({ signals }: PolicyProgram, read: TraceRead): string {
  const signal = read.kind === 'signal' ? signals[read.index] : undefined;
  return signal === undefined ? read.name : signalName(signal);
}

/** The text of a span; empty where the program does not hold its file. */
export function textAt(program: PolicyProgram, span: Span): string {
  return program.files.find((file) => file.path === span.file)?.text.slice(span.start, span.end) ?? '';
}
