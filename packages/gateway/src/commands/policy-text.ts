import type { Comparison } from '../lifecycle/canary-judge.ts';
import type {
  CanaryStatus,
  ChangeReport,
  PolicyState,
  ShadowStatus,
  VersionDetail,
  VersionRow,
} from '../lifecycle/policy-lifecycle.ts';
import type { Agreement } from '../lifecycle/shadow-report.ts';

/** How `signalbox policy` shows the answers of the admin listener to people. Each text ends with a line break. */

const STATES: { readonly [state in VersionRow['state']]: string } = {
  in_force: 'in force',
  canary: 'canary',
  shadow: 'shadow',
  held: 'held back',
  retiring: 'retiring',
  kept: '',
};

export function versionTable({ pinned, held }: PolicyState, rows: readonly VersionRow[]): string {
  const table = columns([
    ['VERSION', 'GEN', 'STATE', 'CAME BY', 'SINCE', 'REQUESTS', 'DECIDED', 'FILES'],
    ...rows.map((row) => [
      row.id,
      row.generation === 0 ? '-' : String(row.generation),
      STATES[row.state] + (row.pinned ? ', pinned' : ''),
      row.origin ?? '-',
      row.inForceSince ?? row.since ?? '-',
      String(row.requests),
      String(row.decided),
      row.files.map(({ path }) => path).join(', '),
    ]),
  ]);
  const note = !pinned
    ? ''
    : held === null
      ? '\nPinned: versions of the policy file are held back until `signalbox policy unpin`.\n'
      : `\nPinned: the policy file holds ${held}, which is put in force by \`signalbox policy unpin\`.\n`;
  return table + note;
}

export function detailText({
  id,
  state,
  origin,
  since,
  inForceSince,
  requests,
  decided,
  files,
  sources,
}: VersionDetail): string {
  const facts = columns([
    ['version', id],
    ['state', STATES[state] || 'kept'],
    ['came by', origin ?? '-'],
    ['first seen', since ?? '-'],
    ['in force since', inForceSince ?? 'never'],
    ['requests', `${requests} under way, ${decided} decided`],
    ...files.map(({ path, bytes, sha256 }) => ['file', `${path}, ${bytes} bytes, sha256 ${sha256}`]),
  ]);
  return `${facts}${Object.entries(sources)
    .map(([path, text]) => `\n# --- ${path}\n${text.replace(/^\ufeff/, '')}${text.endsWith('\n') ? '' : '\n'}`)
    .join('')}`;
}

export function changeText(what: string, report: ChangeReport): string {
  const { changed, policy, generation, pinned, held, canary, shadow } = report;
  const inForce = `${policy} (generation ${generation})`;
  if (what === 'canary')
    return `${changed ? 'the canary has started' : 'this canary is running already'}: ${canary} beside ${inForce}\n`;
  if (what === 'shadow') return `${shadow} decides along with ${inForce}, without effect\n`;
  if (what === 'shadow/off') return changed ? 'the shadow is off\n' : 'there was no shadow\n';
  if (what === 'abort') return changed ? `the canary is over; ${inForce} decides all\n` : 'no canary is running\n';
  const hint = what === 'promote' && changed ? 'write it to the policy file too: the next start reads that\n' : '';
  const pin = !pinned
    ? ''
    : held === null
      ? ', pinned: versions of the policy file are held back'
      : `, pinned; the policy file's ${held} is held back`;
  return `${inForce} ${changed ? 'is' : 'was already'} in force${pin}\n${hint}`;
}

const CANARY_STATES: { readonly [state in CanaryStatus['state']]: string } = {
  running: 'running',
  passed: 'passed: nothing amiss for the whole time; promote it',
  rolled_back: 'rolled back',
  promoted: 'promoted',
  aborted: 'aborted',
  overtaken: 'over: another version was put in force',
};

export function canaryText(status: CanaryStatus | null): string {
  if (status === null) return 'there was no canary since the start\n';
  const { policy, share, since, state, fault, figures, rules } = status;
  const { inForce, canary, errorIncrease, ttftRatio } = figures;
  const figuresOf = ({ requests, errors, errorRate, streams, ttftMs }: typeof canary): string[] => [
    String(requests),
    String(errors),
    percent(errorRate, 1),
    String(streams),
    known(ttftMs) ? `${ttftMs.toFixed(0)} ms` : '-',
  ];
  const table = columns([
    ['', 'REQUESTS', 'ERRORS', 'RATE', 'STREAMS', 'FIRST TOKEN'],
    ['canary', ...figuresOf(canary)],
    ['in force', ...figuresOf(inForce)],
  ]);
  return [
    `canary ${policy} for ${percent(share, 1)} of the requests since ${since}: ${CANARY_STATES[state]}`,
    ...(fault === null ? [] : [fault.text]),
    '',
    `the last ${rules.forMs / 1000} s:`,
    table.trimEnd(),
    `errors: ${compared(errorIncrease, (value) => `${(value * 100).toFixed(1)} points`)}`,
    `first token: ${compared(ttftRatio, (value) => `${value.toFixed(2)} times`)}`,
    '',
  ].join('\n');
}

function compared({ estimate, atLeast, allowed }: Comparison, show: (value: number) => string): string {
  if (!known(estimate)) return `nothing to compare yet; ${show(allowed)} more is allowed`;
  const margin = known(atLeast) ? `at least ${show(atLeast)} with the margin` : 'too few requests to be held to it';
  return `${show(estimate)} of the version in force; ${margin}; ${show(allowed)} allowed`;
}

export function shadowText(status: ShadowStatus | null): string {
  if (status === null) return 'there was no shadow since the start\n';
  const {
    policy,
    since,
    running,
    sample,
    byRule,
    byTier,
    byEndpoint,
    rules,
    moves,
    otherMoves,
    failed,
    lastError,
    tookMs,
  } = status;
  const share = ({ compared: count, agreed, share: part }: Agreement): string[] => [
    String(count),
    String(agreed),
    part === null ? '-' : percent(part, 2),
  ];
  const lines = [
    `shadow ${policy} on ${percent(sample, 1)} of the requests since ${since}${running ? '' : ', off now'}`,
    '',
    columns([
      ['AGREES BY', 'COMPARED', 'AGREED', 'SHARE'],
      ['rule', ...share(byRule)],
      ['tier', ...share(byTier)],
      ['endpoint', ...share(byEndpoint)],
    ]),
  ];
  const moving = rules.filter(({ compared: count, agreed }) => agreed < count);
  if (moving.length > 0) {
    lines.push(
      columns([
        ['RULE IN FORCE', 'COMPARED', 'SAME TIER', 'SHARE'],
        ...moving.map((row) => [row.rule === '' ? '(none)' : row.rule, ...share(row)]),
      ]),
    );
  }
  if (moves.length > 0) {
    lines.push(
      columns([
        ['REQUESTS', 'FROM', 'TO', 'FOR EXAMPLE'],
        ...moves.map(({ requests, from, to, examples }) => [String(requests), from, to, examples.join(' ')]),
      ]),
    );
  }
  if (otherMoves > 0) lines.push(`${otherMoves} more requests moved, in ways that are not listed\n`);
  if (failed > 0) lines.push(`${failed} decisions of the shadow failed, the last with: ${lastError ?? 'no reason'}\n`);
  const count = byRule.compared + failed;
  if (count > 0) lines.push(`deciding twice took ${((tookMs * 1000) / count).toFixed(0)} µs a request\n`);
  return lines.join('\n');
}

/** JSON writes null for NaN. */
function known(value: number | null): value is number {
  return value !== null && !Number.isNaN(value);
}

function percent(share: number | null, digits: number): string {
  return known(share) ? `${(share * 100).toFixed(digits)} %` : '-';
}

/** Rows in columns, a line each. */
function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, [...cell].length)));
  return rows
    .map((row) => {
      const cells = row.map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - [...cell].length));
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}
