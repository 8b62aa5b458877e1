import type { Ebnf, Production } from '../language/grammar/ebnf.ts';
import { isTokenKind } from '../language/grammar/ebnf.ts';

/*
 * Railroad diagrams of a grammar as SVG: one reads along a line from left to right, and every way through is a sentence. Lengths are in pixels.
 */

/** A piece of track from (x, y) to (x + width, y), with the room that it needs above and below that line. */
interface Track {
  readonly width: number;
  readonly up: number;
  readonly down: number;
  draw(x: number, y: number): string;
}

const RADIUS = 10;
const GAP = 10;
const HALF_HEIGHT = 12;
const LETTER = 7.3;
const TURN = 2 * RADIUS;

const line = (x: number, y: number, to: number): string => `<path d="M${round(x)} ${round(y)}H${round(to)}"/>`;
const round = (value: number): number => Math.round(value * 10) / 10;
const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** A box with a text: round for what is written as it stands, square for a rule, dashed for a kind of word. */
function box(text: string, kind: 'word' | 'rule' | 'kind'): Track {
  const width = round(text.length * LETTER + 20);
  const corner = kind === 'word' ? HALF_HEIGHT : kind === 'kind' ? HALF_HEIGHT / 2 : 0;
  return {
    width,
    up: HALF_HEIGHT,
    down: HALF_HEIGHT,
    draw: (x, y) =>
      `<rect class="${kind}" x="${round(x)}" y="${round(y - HALF_HEIGHT)}" width="${width}" height="${2 * HALF_HEIGHT}" rx="${corner}"/>` +
      `<text class="${kind}" x="${round(x + width / 2)}" y="${round(y + 4)}">${escape(text)}</text>`,
  };
}

function sequence(parts: readonly Track[]): Track {
  const width = parts.reduce((sum, part) => sum + part.width, GAP * Math.max(0, parts.length - 1));
  return {
    width,
    up: Math.max(0, ...parts.map((part) => part.up)),
    down: Math.max(0, ...parts.map((part) => part.down)),
    draw: (x, y) => {
      let at = x;
      return parts
        .map((part, index) => {
          const before = index === 0 ? '' : line(at, y, at + GAP);
          if (index > 0) at += GAP;
          const drawn = part.draw(at, y);
          at += part.width;
          return before + drawn;
        })
        .join('');
    },
  };
}

/** One of several: the first on the line, the others below. */
function choice(parts: readonly Track[]): Track {
  const width = Math.max(...parts.map((part) => part.width)) + 2 * TURN;
  const offsets: number[] = [];
  let depth = 0;
  for (const [index, part] of parts.entries()) {
    const before = parts[index - 1];
    if (before !== undefined) depth += Math.max(TURN, before.down + GAP + part.up);
    offsets.push(depth);
  }
  return {
    width,
    up: parts[0]?.up ?? 0,
    down: depth + (parts.at(-1)?.down ?? 0),
    draw: (x, y) =>
      parts
        .map((part, index) => {
          const at = y + (offsets[index] ?? 0);
          const [start, end] = [x + TURN, x + width - TURN];
          const inner = part.draw(start, at) + line(start + part.width, at, end);
          if (index === 0) return line(x, y, start) + inner + line(end, y, x + width);
          const down = `<path d="M${round(x)} ${round(y)}q${RADIUS} 0 ${RADIUS} ${RADIUS}V${round(at - RADIUS)}q0 ${RADIUS} ${RADIUS} ${RADIUS}"/>`;
          const back = `<path d="M${round(end)} ${round(at)}q${RADIUS} 0 ${RADIUS} -${RADIUS}V${round(y + RADIUS)}q0 -${RADIUS} ${RADIUS} -${RADIUS}"/>`;
          return down + inner + back;
        })
        .join(''),
  };
}

/** With a way round above. */
function option(part: Track): Track {
  const rise = Math.max(TURN, part.up + GAP);
  const width = part.width + 2 * TURN;
  return {
    width,
    up: rise,
    down: part.down,
    draw: (x, y) =>
      line(x, y, x + TURN) +
      part.draw(x + TURN, y) +
      line(x + TURN + part.width, y, x + width) +
      `<path d="M${round(x)} ${round(y)}q${RADIUS} 0 ${RADIUS} -${RADIUS}V${round(y - rise + RADIUS)}q0 -${RADIUS} ${RADIUS} -${RADIUS}` +
      `H${round(x + width - TURN)}q${RADIUS} 0 ${RADIUS} ${RADIUS}V${round(y - RADIUS)}q0 ${RADIUS} ${RADIUS} ${RADIUS}"/>`,
  };
}

/** Once or more, with a way back below on which `between` stands. */
function loop(part: Track, between: Track | undefined): Track {
  const drop = Math.max(TURN, part.down + GAP + (between?.up ?? 0));
  const inner = Math.max(part.width, between?.width ?? 0);
  const width = inner + 2 * TURN;
  return {
    width,
    up: part.up,
    down: drop + (between?.down ?? 0),
    draw: (x, y) => {
      const [start, end] = [x + TURN, x + width - TURN];
      const [from, backFrom] = [start + (inner - part.width) / 2, start + (inner - (between?.width ?? 0)) / 2];
      return (
        line(x, y, from) +
        part.draw(from, y) +
        line(from + part.width, y, x + width) +
        `<path d="M${round(end)} ${round(y)}q${RADIUS} 0 ${RADIUS} ${RADIUS}V${round(y + drop - RADIUS)}q0 ${RADIUS} -${RADIUS} ${RADIUS}"/>` +
        line(backFrom + (between?.width ?? 0), y + drop, end) +
        (between?.draw(backFrom, y + drop) ?? '') +
        line(start, y + drop, backFrom) +
        `<path d="M${round(start)} ${round(y + drop)}q-${RADIUS} 0 -${RADIUS} -${RADIUS}V${round(y + RADIUS)}q0 -${RADIUS} ${RADIUS} -${RADIUS}"/>`
      );
    },
  };
}

const same = (a: Ebnf | undefined, b: Ebnf | undefined): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The tracks of a sequence; `x { "," x }` becomes a loop over `x` with the comma on the way back. */
function tracksOf(parts: readonly Ebnf[]): readonly Track[] {
  const tracks: Track[] = [];
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index];
    const next = parts[index + 1];
    if (part === undefined) continue;
    const inner = next?.kind === 'repeat' ? next.part : undefined;
    const repeated = inner?.kind === 'sequence' ? inner.parts : [];
    const whole = repeated.length - 1;
    const body = parts.slice(index, index + whole);
    if (repeated.length === 2 && same(repeated.at(-1), part) && body.length === 1) {
      tracks.push(loop(trackOf(part), trackOf(repeated[0] ?? part)));
      index += 1;
    } else tracks.push(trackOf(part));
  }
  return tracks;
}

function trackOf(part: Ebnf): Track {
  switch (part.kind) {
    case 'word':
      return box(part.text, 'word');
    case 'rule':
      return box(part.name, isTokenKind(part.name) ? 'kind' : 'rule');
    case 'sequence':
      return sequence(tracksOf(part.parts));
    case 'choice':
      return choice(part.parts.map(trackOf));
    case 'option':
      return option(trackOf(part.part));
    case 'repeat':
      return option(loop(trackOf(part.part), undefined));
  }
}

const STYLE =
  'path,rect{fill:none;stroke:#57606a;stroke-width:1.5}rect.word{fill:#ddf4ff;stroke:#0969da}rect.rule{fill:#fff8c5;stroke:#9a6700}rect.kind{fill:#f6f8fa;stroke:#57606a;stroke-dasharray:4 2}' +
  'text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;text-anchor:middle;fill:#1f2328}' +
  '@media(prefers-color-scheme:dark){path,rect{stroke:#8b949e}rect.word{fill:#0c2d6b;stroke:#58a6ff}rect.rule{fill:#3d2c00;stroke:#d29922}rect.kind{fill:#21262d;stroke:#8b949e}text{fill:#e6edf3}}';

/** The diagram of a production, readable on a light and on a dark page. */
export function railroadSvg({ name, body }: Production): string {
  const track = trackOf(body);
  const margin = 12;
  const [x, y] = [margin + GAP, margin + track.up];
  const width = Math.ceil(track.width + 2 * (margin + GAP));
  const height = Math.ceil(track.up + track.down + 2 * margin);
  const ends = [margin, width - margin].map((at) => `<path d="M${at} ${y - 6}v12"/>`).join('');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${name}">` +
    `<style>${STYLE}</style>${ends}${line(margin, y, x)}${track.draw(x, y)}${line(x + track.width, y, width - margin)}</svg>\n`
  );
}
