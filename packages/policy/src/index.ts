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
