import type { EvaluationHost, Evaluators } from '../eval/evaluators.ts';
import type { PolicyProgram } from '../ir.ts';

/** What a request comes to, by the semantics of the language and nothing of the analysis: labels of rules. */
export interface Way {
  /** Admission rules that it meets, from the first to the one that ends the phase; a queue is passed after a wait. */
  readonly admission: readonly string[];
  /** Routes that it can be taken by: the first that holds, and after `else next` the ones below. Undefined for one that is refused. */
  readonly routes: readonly string[] | undefined;
}

export function wayOf(program: PolicyProgram, evaluators: Evaluators, host: EvaluationHost): Way {
  const holds = (rule: PolicyProgram['routes'][number] | PolicyProgram['admission'][number]): boolean => {
    if (rule.when === undefined) return true;
    if (rule.when.kind === 'constant') return rule.when.value === true;
    return evaluators.predicate(rule.when)(host);
  };
  const admission: string[] = [];
  for (const rule of program.admission) {
    if (!holds(rule)) continue;
    admission.push(rule.label);
    if (rule.verb === 'reject') return { admission, routes: undefined };
    if (rule.verb === 'admit') break;
  }
  const routes: string[] = [];
  for (const route of program.routes) {
    if (!holds(route)) continue;
    routes.push(route.label);
    if (route.steps.at(-1)?.kind !== 'next') break;
  }
  return { admission, routes };
}
