import { isNumericType } from '@signalbox/plugin-api';
import type { Expression, Modifiers, OrderKey, PolicyProgram, RefArgument } from '../ir.ts';

/** Which function of `Evaluators` an expression of a program is for. */
export type Role = 'predicate' | 'value' | 'filter' | 'score';

/** One place of a program that holds an expression. */
export interface ExpressionRole {
  readonly expression: Expression;
  readonly role: Role;
}

/**
 * Every place of a program that holds a whole expression, with the role it is used in, in a fixed order: alarms, limits, arguments of
 * signals and of properties, admission rules, routes. The parts of a rule's condition that all have to hold come after the whole. An expression that stands in several places comes once for each, so that two
 * copies of a program list alike.
 */
export function expressionRoles(program: PolicyProgram): readonly ExpressionRole[] {
  const roles: ExpressionRole[] = [];
  const add = (role: Role, expression: Expression | undefined): void => {
    if (expression !== undefined) roles.push({ expression, role });
  };
  const addArguments = (refArguments: readonly RefArgument[]): void => {
    for (const argument of refArguments) {
      if (argument.kind === 'expression') add(roleOfArgument(argument.expression), argument.expression);
    }
  };
  const addOrder = (order: readonly OrderKey[] | undefined): void => {
    for (const key of order ?? []) addArguments(key.arguments);
  };
  const addModifiers = (modifiers: Modifiers): void => {
    for (const expression of modifierExpressions(modifiers)) add('value', expression);
  };

  for (const alarm of program.definitions.alarms) {
    add('predicate', alarm.when);
    add('predicate', alarm.until);
  }
  for (const limit of program.definitions.limits) {
    for (const part of limit.key) add('value', part);
    add('predicate', limit.when);
  }
  for (const signal of program.signals) addArguments(signal.arguments);
  for (const property of program.properties) addArguments(property.arguments);
  for (const rule of program.admission) {
    for (const part of conjuncts(rule.when)) add('predicate', part);
    addOrder(rule.by);
    addModifiers(rule.with);
  }
  for (const route of program.routes) {
    for (const part of conjuncts(route.when)) add('predicate', part);
    for (const step of route.steps) {
      if (step.kind === 'next') continue;
      if (step.kind === 'verdict') {
        addOrder(step.by);
        addModifiers(step.with);
        continue;
      }
      add('filter', step.where);
      for (const sum of step.by) {
        for (const { scorer } of sum.terms) if (scorer.kind === 'expression') add('score', scorer.expression);
      }
      addModifiers(step.with);
    }
  }
  return roles;
}

/** The condition of a rule, and the parts of it that all have to hold where it is a conjunction. */
export function conjuncts(when: Expression | undefined): readonly Expression[] {
  if (when === undefined) return [];
  return when.kind === 'and' ? [when, ...when.operands] : [when];
}

/** The expressions of a modifier list, in a fixed order. */
export function modifierExpressions(modifiers: Modifiers): readonly Expression[] {
  const single: readonly (Expression | undefined)[] = [
    ...(modifiers.affinity?.key ?? []),
    modifiers.timeout,
    modifiers.attemptTimeout,
    modifiers.firstToken,
    modifiers.idle,
    modifiers.hedge?.after,
    modifiers.sticky,
    modifiers.priority,
    ...(modifiers.headers ?? []).map((header) => header.value),
    modifiers.model,
    ...(modifiers.set ?? []).map((field) => field.value),
    modifiers.retryAfter,
    modifiers.message,
    modifiers.maxWait,
  ];
  return single.filter((expression) => expression !== undefined);
}

function roleOfArgument(expression: Expression): Role {
  if (expression.scope !== 'candidate') return 'value';
  if (expression.type === 'bool') return 'filter';
  if (isNumericType(expression.type)) return 'score';
  throw new TypeError('An argument that is a property of one endpoint must be a bool or a number.');
}
