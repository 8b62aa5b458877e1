import type { Value } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram } from '../ir.ts';
import type { GeneratedArtefact, GeneratedConstant } from './artefact.ts';
import type { CandidateFilter, CandidateValue, Evaluators, RequestPredicate, RequestValue } from './evaluators.ts';
import { compilePattern } from './linear-pattern.ts';
import { poolTargets } from './reads.ts';
import { expressionRoles } from './roles.ts';
import { RUNTIME } from './runtime.ts';

/**
 * The evaluators of a program from the artefact that `generate` made of it, in this or another thread. Runs the artefact's text with
 * `new Function`, which some browsers' content security policies forbid: it throws `EvalError` there. Throws `TypeError` if the artefact
 * is of another program.
 */
export function instantiateGenerated(program: PolicyProgram, artefact: GeneratedArtefact): Evaluators {
  const functions = run(artefact);
  const roles = expressionRoles(program);
  if (functions.length !== roles.length) {
    throw new TypeError('The generated code was made from another program than the one it is instantiated for.');
  }
  const predicates = new Map<Expression, RequestPredicate>();
  const values = new Map<Expression, RequestValue>();
  const filters = new Map<Expression, CandidateFilter>();
  const scores = new Map<Expression, CandidateValue>();
  const tables = { predicate: predicates, value: values, filter: filters, score: scores };
  roles.forEach(({ expression, role }, index) => {
    (tables[role] as Map<Expression, unknown>).set(expression, functions[index]);
  });
  return {
    targets: poolTargets(program),
    predicate: (expression) => found(predicates, expression),
    value: (expression) => found(values, expression),
    filter: (expression) => found(filters, expression),
    score: (expression) => found(scores, expression),
  };
}

function found<F>(table: ReadonlyMap<Expression, F>, expression: Expression): F {
  const entry = table.get(expression);
  if (entry === undefined) throw new TypeError('The expression is not part of the program in this role.');
  return entry;
}

function run(artefact: GeneratedArtefact): readonly unknown[] {
  // The text is made by `generate` of identifiers, numbers and operators of its own; nothing that a policy's author wrote is in it.
  // oxlint-disable-next-line typescript/no-implied-eval -- making code from that text is what this module is for
  const factory = new Function('K', artefact.text) as (constants: readonly unknown[]) => readonly unknown[];
  return factory(Object.freeze(artefact.constants.map(materialise)));
}

function materialise(constant: GeneratedConstant): unknown {
  switch (constant.kind) {
    case 'value':
      return frozen(constant.value);
    case 'set':
      return new Set(constant.members);
    case 'pattern':
      return compilePattern(constant.pattern, constant.flags);
    case 'runtime':
      return RUNTIME[constant.name];
  }
}

function frozen(value: Value): Value {
  return typeof value === 'object' ? Object.freeze(value.map(frozen)) : value;
}
