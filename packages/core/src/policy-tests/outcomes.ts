import type { Expression, Modifiers, Outcome, PolicyProgram, TargetRef, Verdict } from '@signalbox/policy';
import type { Explanation } from '../explain/explain.ts';
import { wholeSeconds } from '../pipeline.ts';

/**
 * Whether a decision is what an `expect` or `ensure` names.
 * - `route "x"`: the first rule that took the request is x, whatever came of it; with a target, it was sent there as well.
 * - `to …`: it was sent to that tier or endpoint.
 * - `default`: a `default` took it.
 * - `reject`: a verdict or a tenant's limit refused it; that nothing could serve it (503) is no rejection.
 * - `queue`: it was put in a queue.
 * - `admit`: neither the admission rules nor a tenant's limit held it up.
 * Modifiers of a verdict count as far as they are written.
 */
export function isOutcome(outcome: Outcome, decision: Explanation, program: PolicyProgram): boolean {
  switch (outcome.kind) {
    case 'route':
      return (
        routeOf(decision)?.label === outcome.label && (outcome.target === undefined || wentTo(outcome.target, decision))
      );
    case 'target':
      return wentTo(outcome.target, decision);
    case 'default':
      return routeOf(decision)?.kind === 'default';
    case 'verdict':
      return isVerdict(outcome.verdict, decision, program);
  }
}

/** Refusals that no rule is the reason for, so that they speak neither for nor against an `ensure`. */
const NO_RULE: ReadonlySet<string> = new Set(['model_not_found', 'rate_limited', 'shed', 'plugin_failed']);

/**
 * Whether a decision shows an `ensure` to be wrong, as analysis understands them: a queue only delays, and that every endpoint is full or gone
 * is an outcome of no rule; what counts then is which rule took the request.
 */
export function isAgainst(
  outcome: Outcome,
  mode: 'always' | 'never',
  decision: Explanation,
  program: PolicyProgram,
): boolean {
  const code = decision.refusal?.code;
  if (code !== undefined && NO_RULE.has(code)) return false;
  const isIt = isOutcome(outcome, decision, program);
  if (mode === 'never') return isIt;
  const isUnsettled = decision.outcome === 'queue' || code === 'no_endpoint';
  if (isIt || !isUnsettled) return !isIt;
  const taken = routeOf(decision);
  switch (outcome.kind) {
    case 'target':
      return false;
    case 'route':
      return taken !== undefined && taken.label !== outcome.label;
    case 'default':
      return taken !== undefined && taken.kind !== 'default';
    case 'verdict':
      return decision.outcome === 'queue';
  }
}

/** The rule that took the request; undefined where admission ended it, or no rule did. */
export function routeOf(decision: Explanation): { readonly label: string; readonly kind: string } | undefined {
  return decision.decided?.phase === 'route' ? decision.routes.at(-1) : undefined;
}

function wentTo(target: TargetRef, decision: Explanation): boolean {
  if (decision.outcome !== 'forward') return false;
  if (target.kind === 'any') return true;
  return (target.kind === 'tier' ? decision.tier : decision.endpoint) === target.name;
}

const REJECTIONS: ReadonlySet<string> = new Set(['rejected', 'rate_limited']);

function isVerdict(verdict: Verdict, decision: Explanation, program: PolicyProgram): boolean {
  const { refusal } = decision;
  switch (verdict.verb) {
    case 'reject':
      return refusal !== null && REJECTIONS.has(refusal.code) && hasModifiers(verdict.with, decision, program);
    case 'queue':
      return decision.outcome === 'queue' && hasModifiers(verdict.with, decision, program);
    case 'admit':
      return decision.routes.length > 0 || refusal?.code === 'no_route';
  }
}

/** Whether the verdict that was obeyed says what is written here: status, message and Retry-After as answered, all else as it stands there. */
function hasModifiers(expected: Modifiers, decision: Explanation, program: PolicyProgram): boolean {
  const { status, message, retryAfter, ...others } = expected;
  const { refusal } = decision;
  if (status !== undefined && status !== refusal?.status) return false;
  if (message !== undefined && constantOf(message) !== refusal?.message) return false;
  if (retryAfter !== undefined) {
    const seconds = constantOf(retryAfter);
    if (typeof seconds !== 'number' || wholeSeconds(seconds) !== refusal?.retryAfterSeconds) return false;
  }
  const obeyed = modifiersObeyed(decision, program);
  return Object.entries(others).every(
    ([name, value]) => obeyed !== undefined && sameMeaning(obeyed[name as keyof Modifiers], value),
  );
}

function modifiersObeyed({ decided }: Explanation, program: PolicyProgram): Modifiers | undefined {
  if (decided === null) return undefined;
  if (decided.phase === 'admission') return program.admission.find(({ label }) => label === decided.label)?.with;
  const step = program.routes.find(({ label }) => label === decided.label)?.steps[decided.step];
  return step?.kind === 'verdict' ? step.with : undefined;
}

function constantOf(expression: Expression): unknown {
  return expression.kind === 'constant' ? expression.value : undefined;
}

/** Equal apart from where things stand in the text. */
function sameMeaning(left: unknown, right: unknown): boolean {
  const withoutSpans = (value: unknown): string =>
    JSON.stringify(value, (key, part: unknown) => (key === 'span' ? undefined : part)) ?? '';
  return withoutSpans(left) === withoutSpans(right);
}

/** `route "hard" to tier "70B"`, much as it is written. */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'route':
      return `route ${JSON.stringify(outcome.label)}${outcome.target === undefined ? '' : ` to ${targetText(outcome.target)}`}`;
    case 'target':
      return `to ${targetText(outcome.target)}`;
    case 'default':
      return 'default';
    case 'verdict': {
      const { status, retryAfter, message } = outcome.verdict.with;
      const written = [
        ...(status === undefined ? [] : [`status ${status}`]),
        ...(retryAfter === undefined ? [] : [`retry_after ${String(constantOf(retryAfter))}s`]),
        ...(message === undefined ? [] : [`message ${JSON.stringify(constantOf(message))}`]),
      ];
      return `${outcome.verdict.verb}${written.length === 0 ? '' : ` with ${written.join(', ')}`}`;
    }
  }
}

function targetText(target: TargetRef): string {
  return target.kind === 'any' ? 'any' : `${target.kind} ${JSON.stringify(target.name)}`;
}

/** What became of a request, in the words of an outcome. */
export function actualText(decision: Explanation): string {
  const { decided, refusal } = decision;
  const by =
    decided === null
      ? ''
      : `${decided.phase === 'route' ? (routeOf(decision)?.kind ?? 'route') : 'rule'} ${JSON.stringify(decided.label)}`;
  if (decision.outcome === 'forward')
    return `${by} to endpoint ${JSON.stringify(decision.endpoint)} of tier ${JSON.stringify(decision.tier)}`;
  if (decision.outcome === 'queue') return `queue by ${by}`;
  if (refusal === null) return 'nothing';
  const answer = `status ${refusal.status} ${refusal.code}`;
  if (refusal.code === 'rejected') return `reject with ${answer} by ${by}`;
  return by === '' ? answer : `${by}, which found no endpoint: ${answer}`;
}
