import { expressionRoles, operandsOf } from '@signalbox/policy';
import type { Expression, PolicyProgram } from '@signalbox/policy';

/** Which model names a policy knows by itself; resident adapters come on top. */
export interface KnownModels {
  /** Models of tiers, literals that the policy compares `model` with, and those listed in `define gateway`. */
  readonly names: ReadonlySet<string>;
  /** Any name will do: the policy says so or names no model at all, or a tier states none and so serves whatever its servers do. */
  readonly any: boolean;
}

/** Reads the known models off a program. */
export function knownModels(program: PolicyProgram): KnownModels {
  const names = new Set<string>(program.definitions.gateway.models);
  let any = program.definitions.gateway.unknownModel === 'route';
  for (const tier of program.definitions.tiers) {
    for (const endpoint of tier.endpoints) {
      if (endpoint.model === undefined) any = true;
      else names.add(endpoint.model);
    }
    if (tier.model !== undefined) names.add(tier.model);
  }
  const isModel = (expression: Expression): boolean =>
    expression.kind === 'signal' && program.signals[expression.index]?.key === 'model';
  const visit = (expression: Expression): void => {
    if (expression.kind === 'compare') {
      if (isModel(expression.left)) literals(expression.right, names);
      if (isModel(expression.right)) literals(expression.left, names);
    }
    if (expression.kind === 'in' && isModel(expression.value)) literals(expression.list, names);
    // Of a list it is asked whether the model is a member; of a text, whether it is a part.
    if (expression.kind === 'contains' && isModel(expression.part) && typeof expression.value.type === 'object')
      literals(expression.value, names);
    operandsOf(expression).forEach(visit);
  };
  for (const { expression } of expressionRoles(program)) visit(expression);
  return { names, any: any || names.size === 0 };
}

function literals(expression: Expression, into: Set<string>): void {
  if (expression.kind === 'list') expression.members.forEach((member) => literals(member, into));
  if (expression.kind !== 'constant') return;
  const { value } = expression;
  if (typeof value === 'string') into.add(value);
  else if (typeof value === 'object') for (const member of value) if (typeof member === 'string') into.add(member);
}
