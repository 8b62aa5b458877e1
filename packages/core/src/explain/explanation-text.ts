import type { ExplainedCandidate, ExplainedCondition, ExplainedRule, Explanation } from './explain.ts';
import type { Value } from '@signalbox/plugin-api';

export interface ExplanationTextOptions {
  readonly colour: boolean;
}

type Paint = (style: 'green' | 'red' | 'grey' | 'bold', text: string) => string;

const ANSI = { green: '32', red: '31', grey: '90', bold: '1' } as const;

/**
 * An explanation as people read it: the outcome, what the policy read of the request, each rule with the comparison that decided, and
 * each candidate with what removed it or how it scored.
 */
export function explanationText(explanation: Explanation, { colour }: ExplanationTextOptions): string {
  const paint: Paint = (style, text) => (colour ? `\u001b[${ANSI[style]}m${text}\u001b[0m` : text);
  const lines = [
    paint('bold', headline(explanation)),
    `  policy ${explanation.policy}, generation ${explanation.generation}, seed ${explanation.seed}`,
  ];
  const signals = Object.entries(explanation.signals);
  if (signals.length > 0) lines.push('', 'signals', ...signals.map(([name, value]) => `  ${name} = ${shown(value)}`));
  lines.push(
    `  estimated tokens: ${explanation.estimate.promptTokens} in, ${Math.round(explanation.estimate.outputTokens)} out`,
  );
  const rules = [...explanation.admission, ...explanation.routes];
  if (rules.length > 0) lines.push('', 'rules', ...rules.flatMap((rule) => ruleLines(rule, paint)));
  if (explanation.candidates.length > 0) {
    const where = explanation.step === null || explanation.step === 0 ? '' : ` (else ${explanation.step})`;
    lines.push(
      '',
      `candidates of "${explanation.route ?? ''}"${where}`,
      ...candidateLines(explanation.candidates, paint),
    );
  }
  const notes = [
    explanation.affinity === 'hit' ? 'affinity: the key’s own endpoint was within its bound' : '',
    explanation.affinity === 'repin'
      ? 'affinity: the key’s own endpoint was over its bound, so the next in its order was taken'
      : '',
    explanation.panic ? 'panic: too few endpoints are healthy, so health was ignored' : '',
    explanation.fallback ? 'a fallback was taken' : '',
  ].filter((note) => note !== '');
  if (notes.length > 0) lines.push('', ...notes);
  return `${lines.join('\n')}\n`;
}

function headline({ outcome, endpoint, tier, route, refusal, queue }: Explanation): string {
  if (outcome === 'forward') return `→ ${endpoint} (tier "${tier}") by route "${route}"`;
  if (outcome === 'queue') return `⧗ waits in the queue "${queue}"`;
  return `✗ ${refusal?.status ?? ''} ${refusal?.code ?? ''}: ${refusal?.message ?? ''}`;
}

function ruleLines(rule: ExplainedRule, paint: Paint): string[] {
  const mark = rule.matched ? paint('green', '✓') : paint('red', '✗');
  const name = `${rule.kind} "${rule.label}"`;
  if (rule.when === undefined) return [`  ${mark} ${name}`];
  return [`  ${mark} ${name} when ${rule.when.text}`, ...leafLines(rule.when, '      ', paint)];
}

function leafLines({ leaves }: ExplainedCondition, indent: string, paint: Paint): string[] {
  return leaves.map(({ text, result, reads }) => {
    const values = Object.entries(reads).map(([name, value]) => `${name} = ${shown(value)}`);
    const word = result === null ? 'unknown' : String(result);
    return `${indent}${paint(result === true ? 'green' : 'red', word.padEnd(7))} ${text}${values.length === 0 ? '' : paint('grey', `   (${values.join(', ')})`)}`;
  });
}

function candidateLines(candidates: readonly ExplainedCandidate[], paint: Paint): string[] {
  const width = Math.max(...candidates.map(({ endpoint }) => endpoint.length));
  const ordered = candidates.toSorted((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  return ordered.flatMap((candidate) => {
    const { endpoint, verdict, rank, parts, where } = candidate;
    const scores = Object.entries(parts ?? {}).map(([name, value]) => `${name} ${shown(value)}`);
    const place = rank === undefined ? '  ' : `${rank}.`.padStart(2);
    const word = verdict === 'picked' ? paint('green', 'picked') : verdict === 'eligible' ? '' : paint('red', verdict);
    const line =
      `  ${place} ${endpoint.padEnd(width)}  ${[...scores, word].filter((text) => text !== '').join('  ')}`.trimEnd();
    return where === undefined ? [line] : [line, ...leafLines(where, '       ', paint)];
  });
}

function shown(value: Value | null): string {
  if (value === null) return 'unknown';
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  return JSON.stringify(value);
}
