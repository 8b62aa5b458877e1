export type * from './ir.ts';
export type {
  CandidateFilter,
  CandidateValue,
  Column,
  EvaluationHost,
  Evaluators,
  Pool,
  RequestPredicate,
  RequestValue,
} from './eval/evaluators.ts';
export type { GeneratedArtefact, GeneratedConstant } from './eval/artefact.ts';
export { createEvaluators } from './eval/create-evaluators.ts';
export type { EvaluatorOptions } from './eval/create-evaluators.ts';
export type { PoolMember, TraceLeaf, TraceSink } from './eval/evaluate.ts';
export { generate } from './eval/generate.ts';
export { instantiateGenerated } from './eval/instantiate-generated.ts';
export { interpret } from './eval/interpret.ts';
export type { InterpretedEvaluators, InterpretOptions } from './eval/interpret.ts';
export { poolTargets, readsOf } from './eval/reads.ts';
export type { Reads } from './eval/reads.ts';
export { expressionRoles, usedCauses } from './eval/roles.ts';
export type { ExpressionRole, Role } from './eval/roles.ts';
export { compilePattern, PROMPT_SEARCH_LIMIT } from './eval/runtime.ts';
export { referenceName } from './eval/trace-expression.ts';
export type { TraceNode, TraceRead } from './eval/trace-expression.ts';
