import type { AdmissionRule, Destination, PolicyProgram, RouteRule, Step, Verdict } from '../ir.ts';
import { meaningKey } from './meaning-key.ts';
import { targetText } from './places.ts';

/** What a rule does with a request. Absent: no rule takes it. */
export type DecidingRule = AdmissionRule | RouteRule | undefined;

/** Equal for rules that may send a request to the same places in the same shares, or answer it alike. */
export function placesKey(rule: DecidingRule): string {
  if (rule === undefined) return 'none';
  if ('verb' in rule) return rule.verb === 'admit' ? 'none' : verdictText(rule);
  return rule.steps.map(stepText).join(' else ');
}

/** Equal for rules that do exactly the same. */
export function actionKey(program: PolicyProgram, rule: DecidingRule): string {
  if (rule === undefined) return 'none';
  if (!('verb' in rule)) return meaningKey(program, rule.steps);
  return rule.verb === 'admit' && Object.keys(rule.with).length === 0
    ? 'none'
    : meaningKey(program, { verb: rule.verb, by: rule.by, with: rule.with });
}

/** `to tier "70B" else reject with status 503`: where a request may go, without how one is chosen. */
export function placesText(rule: DecidingRule): string {
  if (rule === undefined) return '';
  return 'verb' in rule ? verdictText(rule) : rule.steps.map(stepText).join(' else ');
}

const verdictText = ({ verb, with: { status } }: Pick<Verdict, 'verb' | 'with'>): string =>
  status === undefined ? verb : `${verb} with status ${status}`;

function stepText(step: Step): string {
  if (step.kind === 'next') return 'next';
  return step.kind === 'verdict' ? verdictText(step) : destinationText(step);
}

function destinationText({ targets, with: { fallbacks = [], mirror = [], prefill } }: Destination): string {
  const to = targets.map(({ target, share }) => (share === undefined ? '' : `${percent(share)} `) + targetText(target));
  return [
    `to ${to.join(', ')}`,
    ...fallbacks.map(({ target, on }) => `fallback ${targetText(target)} (on: [${on.join(', ')}])`),
    ...mirror.map(({ target, share }) => `mirror ${percent(share)} ${targetText(target)}`),
    ...(prefill === undefined ? [] : [`prefill ${targetText(prefill)}`]),
  ].join(', ');
}

const percent = (share: number): string => `${String(Number((share * 100).toPrecision(6)))}%`;
