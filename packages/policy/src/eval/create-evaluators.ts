import type { PolicyProgram } from '../ir.ts';
import type { GeneratedArtefact } from './artefact.ts';
import type { TraceSink } from './evaluate.ts';
import type { Evaluators } from './evaluators.ts';
import { generate } from './generate.ts';
import { instantiateGenerated } from './instantiate-generated.ts';
import { interpret } from './interpret.ts';

export type EvaluatorOptions =
  /** Generated JavaScript; `artefact` saves generating it again. */
  | { readonly mode: 'generated'; readonly artefact?: GeneratedArtefact }
  /** Walks the program; for places that forbid code made from strings, and for traces. */
  | { readonly mode: 'interpreted'; readonly trace?: TraceSink };

/** The evaluators of a program, in the way asked for. Both ways give equal results. */
export function createEvaluators(program: PolicyProgram, options: EvaluatorOptions): Evaluators {
  if (options.mode === 'interpreted')
    return interpret(program, options.trace === undefined ? {} : { trace: options.trace });
  return instantiateGenerated(program, options.artefact ?? generate(program));
}
