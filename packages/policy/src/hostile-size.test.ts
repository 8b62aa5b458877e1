import { expect, it } from 'vitest';
import { compilePolicy } from './compile.ts';

const TIER = 'define tier "t" { model: "m", endpoints: ["http://a:1"] }\n';

/** Statements that repeat, and what stands around them: sound policies and those with one mistake in each statement. */
const KINDS: readonly (readonly [name: string, unit: (i: number) => string, head?: string, tail?: string])[] = [
  ['rules', (i) => `route "r${i}" when prompt_tokens > ${i} to tier "t"\n`],
  ['clauses in the wrong order', (i) => `route "r${i}" to tier "t" when prompt_tokens > ${i}\n`],
  ['one label for all', () => 'route "same" when prompt_tokens > 5 to tier "t"\n'],
  ['names that nobody knows', (i) => `route "r${i}" when promt_tokens > ${i} to tier "t"\n`],
  ['tiers that nobody knows', (i) => `route "r${i}" when prompt_tokens > ${i} to tier "tt${i}"\n`],
  ['a misspelled statement word', (i) => `rout "r${i}" when prompt_tokens > ${i} to tier "t"\n`],
  ['tests that are none', (i) => `test "t${i}" { request { model: "m" } expect tier "t" }\n`],
  ['lets that nothing uses', (i) => `let v${i} = prompt_tokens + ${i}\n`],
  ['limits', (i) => `define limit "l${i}" { key: user, requests: ${i + 1}/min }\n`],
  ['patterns', (i) => `reject "x${i}" when user matches r"^a${i}.*b+$"\n`],
  ['groups', (i) => `group "g${i}" when prompt_tokens > ${i} {\n  route when user == "x" to tier "t"\n}\n`],
  ['defaults', () => 'default to any\n'],
  ['stray characters', () => 'route when ^ to any\n'],
  ['doc comments', (i) => `## doc\nroute when prompt_tokens > ${i} to any\n`],
  ['a long condition', (i) => ` or user == "u${i}"`, `${TIER}reject "x" when user == "q"`, '\ndefault to tier "t"\n'],
];

/** Kinds without any mistake. */
const SOUND: ReadonlySet<string> = new Set(['rules', 'groups', 'doc comments']);

/** Reads and checks; CPU time of this thread in milliseconds, which other processes do not add to. */
function costOf(text: string): { readonly ms: number; readonly findings: number } {
  const before = process.threadCpuUsage();
  const { diagnostics } = compilePolicy({ path: 'main.route', text });
  const { user, system } = process.threadCpuUsage(before);
  return { ms: (user + system) / 1000, findings: diagnostics.length };
}

function textOf([, unit, head = TIER, tail = 'default to tier "t"\n']: (typeof KINDS)[number], bytes: number): string {
  const parts = [head];
  for (let i = 0, length = 0; length < bytes; i++) length += parts[parts.push(unit(i)) - 1]?.length ?? 0;
  return parts.join('') + tail;
}

/** The bar for 10 KB is 100 ms; a shared machine gets ten times that. */
const CEILING_MS = 1000;

it.each(KINDS.map((kind) => [kind[0], kind] as const))(
  'B3: %s: 10 KB is read within the bar, and four times the text costs no more than some four times as much',
  (_name, kind) => {
    costOf(textOf(kind, 10_000));
    const small = costOf(textOf(kind, 10_000));
    const one = Math.min(costOf(textOf(kind, 100_000)).ms, costOf(textOf(kind, 100_000)).ms);
    const four = costOf(textOf(kind, 400_000));
    console.info(
      `${kind[0]}: 10 KB ${small.ms.toFixed(0)} ms, 100 KB ${one.toFixed(0)} ms, 400 KB ${four.ms.toFixed(0)} ms, ${four.findings} findings`,
    );
    expect(small.ms).toBeLessThan(CEILING_MS);
    expect(four.findings > 0).toBe(!SOUND.has(kind[0]));
    // In proportion it is four; what grows with the square is sixteen. What is too quick to be told from noise costs nobody anything.
    expect(four.ms).toBeLessThan(Math.max(200, 9 * one));
  },
);

it.each(['"a\n', '(', '}', '^', '@x\n', '"', '\u202E', 'route when ^ to any\n'])(
  'B3: one megabyte of %j gives findings and nothing else',
  (unit) => {
    const text = unit.repeat(Math.floor(1_000_000 / Buffer.byteLength(unit)));
    expect(compilePolicy({ path: 'main.route', text }).diagnostics.length).toBeGreaterThan(0);
  },
);
