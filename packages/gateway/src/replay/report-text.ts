import type { Move, ReplayReport, Tally } from './replay-report.ts';

/** A replay report as people read it. */
export function replayReportText(report: ReplayReport, { colour }: { readonly colour: boolean }): string {
  const bold = (text: string): string => (colour ? `\u001b[1m${text}\u001b[0m` : text);
  const { lines, own } = report;
  const sections: (readonly string[])[] = [
    [
      bold(`${number(report.decided)} recorded decisions decided again under policy ${report.policy}`),
      `  moved to another tier, refused or queued otherwise: ${number(report.moved)} (${percent(report.movedShare)})`,
      `  the same: ${number(report.same)}${report.otherRule === 0 ? '' : `; the same tier by another rule: ${number(report.otherRule)}`}`,
      ...(report.notDecidable.count === 0 ? [] : [`  not decidable: ${number(report.notDecidable.count)}`]),
      ...(report.notByPolicy.count === 0
        ? []
        : [
            `  no rule had a say: ${number(report.notByPolicy.count)} (${report.notByPolicy.codes.map(({ code, count }) => `${code} ${number(count)}`).join(', ')})`,
          ]),
      ...(lines.outside === 0 ? [] : [`  outside the time asked for: ${number(lines.outside)}`]),
      ...(lines.malformed === 0 ? [] : [`  lines that cannot be read: ${number(lines.malformed)}`]),
    ],
    movesTable('by tier', report.byTier),
    movesTable('by rule and tier', report.moves),
    assumedLines(report.byTier),
    list(
      'not decidable',
      report.notDecidable.reasons.map(
        ({ missing, ...tally }) => `  ${number(tally.count)}  ${missing}: not recorded${examples(tally)}`,
      ),
    ),
    list('lines that cannot be read', [
      ...report.malformed.map(({ place, problem }) => `  ${place}: ${problem}`),
      ...more(lines.malformed - report.malformed.length),
    ]),
    own.same + own.differing.length === 0
      ? []
      : [
          `decided by this very version: ${number(own.same)} came out as they were${own.differing.length === 0 ? '' : ', and these did not'}`,
          ...own.differing.map(({ place, text }) => `  ${place}: ${text}`),
        ],
  ];
  return `${sections
    .filter((section) => section.length > 0)
    .map((section) => section.join('\n'))
    .join('\n\n')}\n`;
}

function movesTable(title: string, moves: readonly Move[]): readonly string[] {
  const rows = moves.map((move) => [
    move.from,
    '→',
    move.to,
    number(move.count),
    percent(move.share),
    `e.g. ${move.examples.join(', ')}`,
  ]);
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return list(
    title,
    rows.map((row) =>
      `  ${row
        .map((cell, column) =>
          column === 3 || column === 4 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')}`.trimEnd(),
    ),
  );
}

function assumedLines(moves: readonly Move[]): readonly string[] {
  const assumed = moves.reduce((sum, move) => sum + move.assumed, 0);
  return assumed === 0
    ? []
    : [
        `of the moves, ${number(assumed)} take for granted that the new tier had an endpoint with room: no record tells`,
      ];
}

function list(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines];
}

const more = (count: number): readonly string[] => (count > 0 ? [`  and ${number(count)} more`] : []);

const examples = ({ examples: ids }: Tally): string => (ids.length === 0 ? '' : `   e.g. ${ids.join(', ')}`);

const number = (count: number): string => count.toLocaleString('en-US');

/** To a tenth of a percent; what is not nothing is not shown as nothing. */
function percent(share: number): string {
  const rounded = Math.round(share * 1000) / 10;
  return share > 0 && rounded === 0 ? '<0.1%' : `${rounded}%`;
}
