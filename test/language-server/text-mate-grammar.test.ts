import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createOnigScanner, createOnigString, loadWASM } from 'vscode-oniguruma';
import textmate from 'vscode-textmate';
import type { IGrammar } from 'vscode-textmate';
import { parsePolicy } from '../../packages/policy/src/index.ts';
import type { PolicyTokenKind } from '../../packages/policy/src/index.ts';
import { textMateGrammar } from '../../editors/vscode/scripts/text-mate-grammar.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const shipped = join(root, 'editors/vscode/syntaxes/route.tmLanguage.json');
const folders = ['packages/policy/fixtures/examples', 'packages/policy/fixtures/examples/shared', 'examples/policies'];
const samples = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.route'))
    .map((name) => [name, readFileSync(join(root, folder, name), 'utf8')] as const),
);

/** Every kind of literal and every sign and word, on one page. */
const EVERYTHING = `# a comment with "quotes" and 5m
## a doc comment
@owner("team") @expires("2027-03-31")
let a = 1 + 2.5 * 3_000 - 4 / 5 ?? 6
let b = x in 0..250 and not (y == 1 or y != 2) and z <= 3 and z >= 4 and w < 5 and w > 6
let c = [90ms, 5s, 5m, 2h, 1d, 3us, 32k, 2Ki, 5M, 3Mi, 70B, 1KB, 20MiB, 95%, 60/min, 2k/s, 10/h, $5, $4.50, $5/h]
let d = prompt matches r"\\bstack \\"trace\\"\\b|#[a-z]{2}"im and user contains "é\\"\\u0041 路🙂 # no comment" and t exists
let e: list[string] = list(header["x-a"], ",")
define tier "x" { model: "m", "quoted key": true, default: false, labels: { rack: 7 } }
use "@acme/p" as p { refresh: 5m }
import "./a.route" as other
language 1
`;

/** The kind of token that a scope stands for. White space has none. */
const kindOf = (scopes: readonly string[], text: string): PolicyTokenKind | undefined => {
  const scope = scopes.find((one) => one !== 'source.route') ?? '';
  if (text.trim() === '' && !/^(?:comment|string)/.test(scope)) return undefined;
  const kinds: readonly (readonly [string, PolicyTokenKind])[] = [
    ['comment.', 'comment'],
    ['string.regexp', 'regex'],
    ['string.', 'string'],
    ['constant.numeric', 'number'],
    ['keyword.operator.route', 'operator'],
    ['keyword.', 'keyword'],
    ['constant.language', 'keyword'],
    ['punctuation.', 'punctuation'],
    ['variable.', 'name'],
    ['entity.', 'name'],
  ];
  return kinds.find(([prefix]) => scope.startsWith(prefix))?.[1] ?? 'unknown';
};

/** Token of the grammar at every UTF-16 unit of a text. */
const kindsByGrammar = (grammar: IGrammar, text: string): readonly (PolicyTokenKind | undefined)[] => {
  const kinds: (PolicyTokenKind | undefined)[] = Array.from({ length: text.length });
  let state = textmate.INITIAL;
  let start = 0;
  for (const line of text.split('\n')) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    for (const { startIndex, endIndex, scopes } of tokens) {
      for (let at = startIndex; at < Math.min(endIndex, line.length); at += 1)
        kinds[start + at] = kindOf(scopes, line.slice(startIndex, endIndex));
    }
    state = ruleStack;
    start += line.length + 1;
  }
  return kinds;
};

let grammar: IGrammar;
beforeAll(async () => {
  const wasm = readFileSync(createRequire(import.meta.url).resolve('vscode-oniguruma/release/onig.wasm'));
  await loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({ createOnigScanner, createOnigString }),
    loadGrammar: () => Promise.resolve(textmate.parseRawGrammar(readFileSync(shipped, 'utf8'), shipped)),
  });
  const loaded = await registry.loadGrammar('source.route');
  if (loaded === null) throw new Error('the grammar did not load');
  grammar = loaded;
});

describe('the TextMate grammar of the extension', () => {
  test('is what the token list of the compiler makes: node --conditions=@signalbox/source editors/vscode/scripts/generate-grammar.ts', () => {
    expect(JSON.parse(readFileSync(shipped, 'utf8'))).toEqual(textMateGrammar());
  });

  test.each([...samples, ['every token', EVERYTHING] as const])(
    'sees the tokens of %s as the lexer does',
    (_, text) => {
      const byGrammar = kindsByGrammar(grammar, text);
      const different: string[] = [];
      const covered = new Set<number>();
      for (const { kind, start, end } of parsePolicy(text, { file: 'a' }).tokens) {
        for (let at = start; at < end; at += 1) {
          covered.add(at);
          if (byGrammar[at] !== kind) {
            different.push(
              `${text.slice(Math.max(0, start - 20), start)}⟨${text.slice(start, end)}⟩ is ${kind}, coloured as ${String(byGrammar[at])}`,
            );
            break;
          }
        }
      }
      expect(different).toEqual([]);
      const surplus = byGrammar.flatMap((kind, at) =>
        kind !== undefined && !covered.has(at) ? [text.slice(at - 10, at + 10)] : [],
      );
      expect(surplus).toEqual([]);
    },
  );
});
