import type { MoveEnd, PolicyDiff } from './diff-policies.ts';

/** A difference for people to read. */
export function renderDiff({ isSame, moves, rules, definitions }: PolicyDiff): string {
  if (isSame) return 'no change\n';
  const lines: string[] = [];
  const section = (title: string, count: number): void => {
    if (count > 0) lines.push(...(lines.length === 0 ? [] : ['']), title);
  };
  section(movesTitle(moves.length), moves.length);
  for (const { region, from, to, verdict, reason, witness, kind } of moves) {
    lines.push(
      `  ${region}`,
      `    ${endText(from)} → ${endText(to)}${kind === 'handling' ? ', handled otherwise' : ''}`,
    );
    if (verdict === 'not_proved') lines.push(`    not proved: ${reason ?? ''}`);
    if (witness !== undefined && witness.text !== 'any request') lines.push(`    for example ${witness.text}`);
  }
  if (moves.length === 0) lines.push('no request moves');
  section('rules', rules.length);
  for (const { verb, label, change, details } of rules) {
    const told =
      change === 'changed' ? details.join('; ') : [change, details.join(' ')].filter((part) => part !== '').join(': ');
    lines.push(`  ${ruleText(verb, label)}: ${told}`);
  }
  section('definitions', definitions.length);
  for (const { kind, name, change, details } of definitions) {
    const told = change === 'changed' ? details.join('; ') : change;
    lines.push(`  ${kind}${name === '' ? '' : ` ${JSON.stringify(name)}`}: ${told}`);
  }
  return `${lines.join('\n')}\n`;
}

const movesTitle = (count: number): string => (count === 1 ? 'requests move' : `requests move, ${count} kinds of them`);

function endText({ label, verb, outcome }: MoveEnd): string {
  if (label === undefined || verb === undefined) return outcome;
  return verb === outcome || outcome.startsWith(`${verb} `)
    ? `${ruleText(verb, label)}${outcome.slice(verb.length)}`
    : `${ruleText(verb, label)} ${outcome}`;
}

const ruleText = (verb: string, label: string): string =>
  label === verb || label.startsWith(`${verb} `) ? label : `${verb} ${JSON.stringify(label)}`;
