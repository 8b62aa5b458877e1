import type { Value } from '@signalbox/plugin-api';
import type { ExplainedCondition, ExplainedLeaf } from './condition.ts';
import type {
  ExplainedCandidate,
  ExplainedLimit,
  ExplainedRecord,
  ExplainedRule,
  ExplainedScorer,
  ExplainedStep,
  Explanation,
} from './explain.ts';

export interface ExplanationTextOptions {
  /** Whether to write terminal colours; none unless given. */
  readonly colour?: boolean;
}

type Paint = (style: 'green' | 'red' | 'grey' | 'bold', text: string) => string;

const ANSI = { green: '32', red: '31', grey: '90', bold: '1' } as const;

/**
 * An explanation as people read it: the outcome, what the policy read of the request, each rule with the comparison that decided, each part
 * of the route, and each candidate with what removed it or how it scored. Comparisons on which nothing hung stand behind a `…`. The one
 * renderer: of the command, the admin listener, failed tests and the console.
 */
export function explanationText(explanation: Explanation, { colour = false }: ExplanationTextOptions = {}): string {
  const paint: Paint = (style, text) => (colour ? `\u001b[${ANSI[style]}m${text}\u001b[0m` : text);
  const { record, estimate } = explanation;
  const generation = explanation.generation === null ? '' : `, generation ${explanation.generation}`;
  const seed = explanation.seed === null ? '' : `, seed ${explanation.seed}`;
  const rules = [...explanation.admission, ...explanation.routes];
  const sections = [
    [
      paint('bold', headline(explanation)),
      `  policy ${explanation.policy}${generation}${seed}`,
      ...(record === undefined ? [] : recordLines(record)),
    ],
    section('signals', [
      ...Object.entries(explanation.signals).map(([name, value]) => `  ${name} = ${shown(value)}`),
      ...(estimate === null
        ? []
        : [`  estimated tokens: ${estimate.promptTokens} in, ${Math.round(estimate.outputTokens)} out`]),
    ]),
    section(
      'limits',
      explanation.limits.map((limit) => limitLine(limit, paint)),
    ),
    section(
      'rules',
      rules.flatMap((rule) => ruleLines(rule, paint)),
    ),
    section('parts of the route', explanation.steps.length < 2 ? [] : stepLines(explanation.steps, paint)),
    section(
      candidatesTitle(explanation),
      explanation.candidates.length === 0
        ? []
        : [
            ...orderLines(explanation, paint),
            ...candidateLines(explanation.candidates, explanation.scorers, paint),
            ...(record === undefined ? [] : droppedLines(record, paint)),
          ],
    ),
    notesOf(explanation),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines];
}

function headline({ outcome, endpoint, tier, route, refusal, queue, queueDepth }: Explanation): string {
  if (outcome === 'forward') return `→ ${endpoint} (tier "${tier}") by route "${route}"`;
  if (outcome === 'queue') {
    return `⧗ waits in the queue "${queue}"${queueDepth === null || queueDepth === 0 ? '' : ` behind ${queueDepth}`}`;
  }
  const message = refusal?.message ?? '';
  return `✗ ${refusal?.status ?? ''} ${refusal?.code ?? ''}${message === '' ? '' : `: ${message}`}`;
}

function recordLines({ requestId, timeMs, status, attempts, notes }: ExplainedRecord): string[] {
  const tries = attempts.map(
    ({ endpoint, outcome, status: answered }) => `${endpoint} ${outcome}${answered > 0 ? ` ${answered}` : ''}`,
  );
  return [
    `  request ${requestId} of ${new Date(timeMs).toISOString()}, answered ${status}`,
    ...(tries.length === 0 ? [] : [`  attempts: ${tries.join(', then ')}`]),
    ...notes.map((note) => `  ${note}`),
  ];
}

function limitLine({ name, used, exceeded }: ExplainedLimit, paint: Paint): string {
  const share = used === null ? 'unknown' : `${Math.round(used * 100)}%`;
  return `  ${JSON.stringify(name)} ${share} used${exceeded ? paint('red', ', and over with this request') : ''}`;
}

function ruleLines(rule: ExplainedRule, paint: Paint): string[] {
  const mark = rule.matched === null ? paint('grey', '?') : rule.matched ? paint('green', '✓') : paint('red', '✗');
  const name = `${rule.kind} "${rule.label}"`;
  if (rule.when === undefined) return [`  ${mark} ${name}`];
  return [`  ${mark} ${name} when ${oneLine(rule.when.text)}`, ...leafLines(rule.when, '      ', paint)];
}

/** The comparisons that decided first, then those on which nothing hung. */
function leafLines({ leaves }: ExplainedCondition, indent: string, paint: Paint): string[] {
  return leaves
    .toSorted((a, b) => Number(b.decided) - Number(a.decided))
    .map((leaf) => (leaf.decided ? decidingLine(leaf, indent, paint) : paint('grey', `${indent}… ${leafText(leaf)}`)));
}

function decidingLine(leaf: ExplainedLeaf, indent: string, paint: Paint): string {
  const style = leaf.missing !== undefined ? 'grey' : leaf.result === true ? 'green' : 'red';
  return `${indent}${paint(style, resultWord(leaf).padEnd(7))} ${oneLine(leaf.text)}${paint('grey', readsText(leaf))}`;
}

const leafText = (leaf: ExplainedLeaf): string =>
  `${resultWord(leaf).padEnd(5)} ${oneLine(leaf.text)}${readsText(leaf)}`;

function resultWord({ result, missing }: ExplainedLeaf): string {
  if (missing !== undefined) return '?';
  return result === null ? 'unknown' : String(result);
}

function readsText({ reads, missing }: ExplainedLeaf): string {
  const values = Object.entries(reads).map(([name, value]) => `${name} = ${shown(value)}`);
  const parts = missing === undefined ? values : [...values, `not recorded: ${missing.join(', ')}`];
  return parts.length === 0 ? '' : `   (${parts.join(', ')})`;
}

function stepLines(steps: readonly ExplainedStep[], paint: Paint): string[] {
  const several = new Set(steps.map(({ route }) => route)).size > 1;
  return steps.flatMap(({ route, step, text, result, candidates }, index) => {
    const mark = result === 'taken' ? paint('green', '✓') : paint('red', '✗');
    const of = several ? `"${route}" ` : '';
    const word = text.startsWith('fallback ') || step === 0 ? '' : 'else ';
    const why = result === 'taken' ? '' : result === 'passed' ? ': passed over' : ': no candidate';
    const line = `  ${mark} ${of}${word}${text}${why}`;
    // The candidates of the last part have a section of their own.
    if (candidates === undefined || index === steps.length - 1) return [line];
    return [line, ...candidateLines(candidates, [], paint).map((candidate) => `  ${candidate}`)];
  });
}

function candidatesTitle({ route, step, fallback }: Explanation): string {
  const where = step === null || step === 0 ? '' : ` (else ${step})`;
  return `candidates of "${route ?? ''}"${where}${fallback ? ' (fallback)' : ''}`;
}

/** Said where it is not just one scorer, best first. */
function orderLines({ scorers, ties, pick }: Explanation, paint: Paint): string[] {
  if (scorers.length < 2 && ties.length === 0 && (pick === null || pick === 'best')) return [];
  const sum = scorers.map(({ name, weight }) => (scorers.length === 1 ? name : `${shown(weight)} × ${name}`));
  const by = [sum.join(' + '), ...ties].join(', then ');
  return [paint('grey', `  by ${by}${pick === null || pick === 'best' ? '' : `, pick ${pick}`}`)];
}

function candidateLines(
  candidates: readonly ExplainedCandidate[],
  scorers: readonly ExplainedScorer[],
  paint: Paint,
): string[] {
  const width = Math.max(0, ...candidates.map(({ endpoint }) => endpoint.length));
  const ordered = candidates.toSorted((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  return ordered.flatMap((candidate) => {
    const { endpoint, verdict, rank, where } = candidate;
    const place = rank === undefined ? '  ' : `${rank}.`.padStart(2);
    const word = verdict === 'picked' ? paint('green', 'picked') : verdict === 'eligible' ? '' : paint('red', verdict);
    const cells = [scoreText(candidate, scorers), word].filter((text) => text !== '');
    const line = `  ${place} ${endpoint.padEnd(width)}  ${cells.join('  ')}`.trimEnd();
    return where === undefined ? [line] : [line, ...leafLines(where, '       ', paint)];
  });
}

/** `least_tokens 0.21` of one scorer; of a sum `0.85 = 0.7 × prefix_cache 1 + 0.3 × least_tokens 0.5`. */
function scoreText({ score, parts = {} }: ExplainedCandidate, scorers: readonly ExplainedScorer[]): string {
  const weightOf = new Map(scorers.map(({ name, weight }) => [name, weight]));
  const names = Object.keys(parts);
  if (names.length < 2) return names.map((name) => `${name} ${shown(parts[name] ?? null)}`).join('');
  const terms = names.map((name) => {
    const weight = weightOf.get(name);
    return `${weight === undefined ? '' : `${shown(weight)} × `}${name} ${shown(parts[name] ?? null)}`;
  });
  return score === undefined ? terms.join('  ') : `${shown(score)} = ${terms.join(' + ')}`;
}

function droppedLines({ dropped }: ExplainedRecord, paint: Paint): string[] {
  const reasons = Object.entries(dropped).map(([reason, count]) => `${count} ${reason}`);
  return reasons.length === 0 ? [] : [paint('grey', `     left out: ${reasons.join(', ')}`)];
}

function notesOf(explanation: Explanation): string[] {
  return [
    explanation.affinity === 'hit' ? 'affinity: the key’s own endpoint was within its bound' : '',
    explanation.affinity === 'repin'
      ? 'affinity: the key’s own endpoint was over its bound, so the next in its order was taken'
      : '',
    explanation.panic ? 'panic: too few endpoints are healthy, so health was ignored' : '',
    explanation.fallback ? 'a fallback was taken' : '',
  ].filter((note) => note !== '');
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

function shown(value: Value | null): string {
  if (value === null) return 'unknown';
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  return JSON.stringify(value);
}
