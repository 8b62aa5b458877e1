import type { ExplainedCandidate, ExplainedCondition, ExplainedRule, Explanation } from '@signalbox/core';
import type { Evaluation, PolicyOutline } from '../playground/policy-service.ts';
import { element, inlineMarks } from './dom.ts';

/** Draws what became of the request, or why nothing can be said. The same structure as the text of `signalbox explain`. */
export function drawDecision(evaluation: Evaluation, onReveal: (rule: PolicyOutline['rules'][number]) => void): Node[] {
  const { decision, requestProblem, findings, outline } = evaluation;
  if (decision === undefined) {
    const errors = findings.filter(({ severity }) => severity === 'error').length;
    const reason =
      requestProblem === undefined
        ? `The policy has ${errors === 1 ? 'an error' : `${errors} errors`}: it decides nothing until ${errors === 1 ? 'it is' : 'they are'} put right.`
        : requestProblem.message;
    return [headline('waiting', 'No decision', reason)];
  }
  if (decision.kind === 'failed') return [headline('refused', 'No decision', decision.message)];
  const { explanation } = decision;
  return [
    drawHeadline(explanation),
    section('Rules', drawRules(explanation, outline?.rules ?? [], onReveal)),
    ...(explanation.candidates.length === 0
      ? []
      : [section(candidatesTitle(explanation), drawCandidates(explanation.candidates))]),
    section('What the policy read', drawSignals(explanation)),
  ];
}

function headline(kind: 'forward' | 'queue' | 'refused' | 'waiting', title: string, detail: string): HTMLElement {
  const signs = { forward: '→', queue: '⧗', refused: '✗', waiting: '…' };
  return element(
    'div',
    { className: `headline ${kind}` },
    element('span', { className: 'sign', textContent: signs[kind], attributes: { 'aria-hidden': 'true' } }),
    element(
      'div',
      {},
      element('p', { className: 'title', textContent: title }),
      element('p', { className: 'detail' }, ...inlineMarks(detail)),
    ),
  );
}

function drawHeadline({ outcome, endpoint, tier, route, step, refusal, queue, ...notes }: Explanation): HTMLElement {
  if (outcome === 'queue')
    return headline('queue', `waits in the queue “${queue ?? ''}”`, 'until an endpoint has room');
  if (outcome === 'refuse')
    return headline('refused', `${refusal?.status ?? ''} ${refusal?.code ?? ''}`, refusal?.message ?? '');
  const parts = [
    `tier “${tier ?? ''}”, by ${route === 'default' ? 'the default' : `route “${route ?? ''}”`}`,
    step !== null && step > 0 ? `its else part ${step}` : '',
    notes.fallback ? 'a fallback' : '',
    notes.affinity === 'hit' ? 'affinity: the key’s own endpoint' : '',
    notes.affinity === 'repin' ? 'affinity: the key’s own endpoint is over its bound, so the next one' : '',
    notes.panic ? 'panic: health is ignored' : '',
  ];
  return headline('forward', endpoint ?? '', parts.filter((part) => part !== '').join(' · '));
}

function section(title: string, ...content: readonly Node[]): HTMLElement {
  return element('section', { className: 'part' }, element('h3', { textContent: title }), ...content);
}

function drawRules(
  { admission, routes }: Explanation,
  rules: PolicyOutline['rules'],
  onReveal: (rule: PolicyOutline['rules'][number]) => void,
): HTMLElement {
  const looked = [...admission, ...routes];
  const isSame = (rule: PolicyOutline['rules'][number], one: ExplainedRule): boolean =>
    rule.label === one.label && rule.kind === one.kind;
  const all = rules.length === 0 ? looked.map((rule) => ({ ...rule, from: 0, to: 0 })) : rules;
  return element(
    'ol',
    { className: 'rules' },
    ...all.map((rule) => {
      const explained = looked.find((one) => isSame(rule, one));
      const go = element('button', { type: 'button', className: 'name', title: 'Show in the policy' });
      go.append(
        element('span', { className: 'kind', textContent: rule.kind }),
        ` ${rule.label === rule.kind ? '' : rule.label}`,
      );
      go.addEventListener('click', () => onReveal(rule));
      const state = explained === undefined ? 'skipped' : explained.matched ? 'matched' : 'failed';
      const said = { skipped: 'not reached', matched: 'matched', failed: 'did not match' }[state];
      return element(
        'li',
        { className: state },
        element('span', { className: 'mark', attributes: { role: 'img', 'aria-label': said }, title: said }),
        go,
        explained?.when === undefined ? undefined : drawCondition(explained.when),
        state === 'skipped' && element('span', { className: 'note', textContent: 'not reached' }),
      );
    }),
  );
}

function drawCondition({ leaves }: ExplainedCondition): HTMLElement {
  return element(
    'ul',
    { className: 'leaves' },
    ...leaves.map(({ text, result, reads, decided }) => {
      const word = result === null ? 'unknown' : String(result);
      const values = Object.entries(reads).map(([name, value]) => `${name} = ${shown(value)}`);
      return element(
        'li',
        { className: decided === false ? `${word} aside` : word },
        element('span', { className: 'truth', textContent: word }),
        element('code', { textContent: text }),
        values.length > 0 && element('span', { className: 'reads', textContent: values.join(', ') }),
      );
    }),
  );
}

function candidatesTitle({ route, step }: Explanation): string {
  return `Candidates of ${route === 'default' ? 'the default' : `“${route ?? ''}”`}${step === null || step === 0 ? '' : `, else ${step}`}`;
}

const REMOVED: { readonly [verdict: string]: string } = {
  picked: 'picked',
  eligible: '',
  draining: 'is draining',
  loading: 'is loading',
  asleep: 'is asleep',
  ejected: 'is ejected: it failed too often',
  capacity: 'is full',
  busy: 'asked to be left alone',
  where: 'removed by where',
  slow_start: 'starts slowly',
};

function drawCandidates(candidates: readonly ExplainedCandidate[]): HTMLElement {
  const ordered = candidates.toSorted((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  const scorers = [...new Set(ordered.flatMap(({ parts }) => Object.keys(parts ?? {})))];
  const most = new Map(
    scorers.map((name) => [name, Math.max(...ordered.map(({ parts }) => Math.abs(parts?.[name] ?? 0)))]),
  );
  const better = direction(ordered);
  const columns =
    scorers.length === 1 || ordered.every(({ score }) => score === undefined) ? scorers : ['score', ...scorers];
  return element(
    'div',
    { className: 'scroll-x' },
    element(
      'table',
      { className: 'candidates' },
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('th', { scope: 'col', textContent: '#' }),
          element('th', { scope: 'col', textContent: 'endpoint' }),
          ...columns.map((name, index) =>
            element(
              'th',
              { scope: 'col' },
              name,
              index === 0 && better !== '' && element('small', { textContent: ` ${better}` }),
            ),
          ),
          element('th', { scope: 'col', textContent: 'verdict' }),
        ),
      ),
      element(
        'tbody',
        {},
        ...ordered.map(({ endpoint, rank, score, parts, verdict, where }) =>
          element(
            'tr',
            { className: verdict },
            element('td', { className: 'rank', textContent: rank === undefined ? '' : String(rank) }),
            element('th', { scope: 'row', textContent: endpoint }),
            ...columns.map((name) => {
              const value = name === 'score' ? score : parts?.[name];
              const whole =
                name === 'score' ? Math.max(...ordered.map((one) => Math.abs(one.score ?? 0))) : (most.get(name) ?? 0);
              return element('td', { className: 'bar' }, ...(value === undefined ? [] : drawBar(value, whole)));
            }),
            element(
              'td',
              { className: 'verdict' },
              REMOVED[verdict] ?? verdict,
              where === undefined ? undefined : drawCondition(where),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Which way a score counts, as the ranking shows it; nothing where it does not. */
function direction(ordered: readonly ExplainedCandidate[]): string {
  const scores = ordered.flatMap(({ score }) => (score === undefined ? [] : [score]));
  const isSorted = (holds: (before: number, after: number) => boolean): boolean =>
    scores.every((score, index) => index === 0 || holds(scores[index - 1] ?? score, score));
  if (new Set(scores).size < 2) return '';
  if (isSorted((before, after) => before <= after)) return 'lower is better';
  return isSorted((before, after) => before >= after) ? 'higher is better' : '';
}

const SVG = 'http://www.w3.org/2000/svg';

/** A bar as an image, since its width is data and the page allows no inline style. */
function drawBar(value: number, whole: number): readonly Node[] {
  const share = whole > 0 ? Math.min(1, Math.abs(value) / whole) : 0;
  const svg = document.createElementNS(SVG, 'svg');
  for (const [name, given] of Object.entries({
    viewBox: '0 0 100 8',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  }))
    svg.setAttribute(name, given);
  for (const [kind, width] of [
    ['track', 100],
    ['fill', 100 * share],
  ] as const) {
    const part = document.createElementNS(SVG, 'rect');
    part.setAttribute('class', kind);
    part.setAttribute('width', String(width));
    part.setAttribute('height', '8');
    part.setAttribute('rx', '1');
    svg.append(part);
  }
  return [svg, element('span', { className: 'value', textContent: shown(value) })];
}

function drawSignals({ signals, estimate, policy, seed }: Explanation): HTMLElement {
  const rows = [
    ...Object.entries(signals).map(([name, value]) => [name, shown(value)] as const),
    ...(estimate === null
      ? []
      : [['estimated tokens', `${estimate.promptTokens} in, ${Math.round(estimate.outputTokens)} out`] as const]),
    ['policy version', policy] as const,
    ['seed', String(seed)] as const,
  ];
  return element(
    'dl',
    { className: 'signals' },
    ...rows.flatMap(([name, value]) => [element('dt', { textContent: name }), element('dd', { textContent: value })]),
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'unknown';
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  return JSON.stringify(value);
}
