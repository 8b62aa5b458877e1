import { describe, expect, test } from 'vitest';
import { defineKeys } from '../check/catalogue/define-kinds.ts';
import { functionNames } from '../check/catalogue/functions.ts';
import { functionDocs } from '../check/catalogue/function-docs.ts';
import { keyDocs } from '../check/catalogue/key-docs.ts';
import { besideExamples, examplePolicies } from './example-policies.fixture.ts';
import { buildSemanticModel } from './semantic-model.ts';
import type { SemanticModel } from './semantic-model.ts';
import { pathTo } from './walk-tree.ts';

const modelOf = (text: string, files: { readonly [path: string]: string } = {}): SemanticModel =>
  buildSemanticModel(besideExamples('new.route', text, files));

/** Places of a symbol as `path:text before⟨name⟩`, by a reference that holds the bar's place in the text. */
const placesOf = (model: SemanticModel, path: string, offset: number): readonly string[] => {
  const reference = model.referenceAt(path, offset);
  return (reference === undefined ? [] : model.referencesTo(reference.symbol.key)).map(({ span, isDeclaration }) => {
    const text = model.tree(span.file)?.text ?? '';
    return `${span.file}:${span.start} ${text.slice(span.start, span.end)}${isDeclaration ? ' declared' : ''}`;
  });
};

describe('references', () => {
  test('a let is found from any of its places, in the order of the text', () => {
    const text = 'let hard = complexity > 50\nroute when hard and not hard to any';
    expect(placesOf(modelOf(text), 'new.route', text.indexOf('hard and') + 2)).toEqual([
      'new.route:4 hard declared',
      'new.route:38 hard',
      'new.route:51 hard',
    ]);
  });

  test('a tier is found where it is defined, aimed at, aggregated over and compared', () => {
    const text =
      'define tier "a" { model: "m", endpoints: ["http://x:1"] }\nroute when min(load, tier "a") < 50% to tier "a" where tier == "a" and tier in ["a"] with fallback tier "a"\ntest "t" { given endpoint "e" { tier: "a" } expect to tier "a" }';
    expect(placesOf(modelOf(text), 'new.route', 13)).toHaveLength(8);
  });

  test('limits, objectives, alarms, parameters, tenants and route labels are found', () => {
    const text = `define limit "l" { key: user, requests: 1/s }
define limit "m" { key: user, requests: 1/s, share_of: "l" }
define slo "s" { ttft: 1s }
define alarm "hot" { when: cluster.saturation > 85% }
define param "zone" { default: "a" }
define tenant "acme" { limits: ["l"] }
route "r" when not over_limit("l") and sla("s") and alarm.hot and param.zone == "a" to any
test "t" { given tenant = "acme" expect route "r" }`;
    const model = modelOf(text);
    const count = (name: string): number => placesOf(model, 'new.route', text.indexOf(`"${name}"`) + 1).length;
    expect([count('l'), count('s'), count('hot'), count('zone'), count('acme'), count('r')]).toEqual([
      4, 2, 2, 2, 2, 2,
    ]);
  });

  test('names behind an alias are those of the imported file', () => {
    const shared = 'let gold = ["a"]\ndefine tier "big" { model: "m", endpoints: ["http://x:1"] }';
    const text = 'import "./lib.route" as lib\nroute when user in lib.gold to tier "lib.big"';
    const model = modelOf(text, { 'lib.route': shared });
    expect(placesOf(model, 'new.route', text.indexOf('gold'))).toEqual([
      'lib.route:4 gold declared',
      `new.route:${text.indexOf('gold')} gold`,
    ]);
    expect(placesOf(model, 'lib.route', shared.indexOf('big'))).toContain(
      `new.route:${text.indexOf('lib.big') + 4} big`,
    );
    // Declared, before `gold`, and within the name of the tier.
    expect(placesOf(model, 'new.route', text.indexOf('lib.gold'))).toHaveLength(3);
  });

  test('names of the catalogue, of plugins, functions and modifiers say what they are', () => {
    const text =
      'use "@acme/signalbox-carbon" as carbon\nroute when carbon.intensity > 0 and min(load) < 50% and header["x"] exists to any by lowest(load) then least_tokens pick best with affinity session';
    const model = modelOf(text);
    const at = (name: string): unknown => {
      const { symbol } = model.referenceAt('new.route', text.indexOf(name) + 1) ?? {};
      return symbol === undefined ? undefined : [symbol.kind, symbol.name];
    };
    expect(at('intensity')).toEqual(['signal', 'intensity']);
    expect(at('carbon.i')).toEqual(['plugin', 'carbon']);
    expect(at('min(')).toEqual(['function', 'min']);
    expect(at('load')).toEqual(['property', 'load']);
    expect(at('header')).toEqual(['signal', 'header']);
    expect(at('lowest')).toEqual(['function', 'lowest']);
    expect(at('least_tokens')).toEqual(['scorer', 'least_tokens']);
    expect(at('best')).toEqual(['picker', 'best']);
    expect(at('affinity')).toEqual(['modifier', 'affinity']);
    expect(at('session')).toEqual(['signal', 'session']);
  });

  test('a let has its type and its doc comment', () => {
    const model = modelOf('## How full it is.\nlet full = load > 90%');
    expect(model.referenceAt('new.route', 25)?.symbol).toMatchObject({
      kind: 'let',
      type: 'bool',
      scope: 'candidate',
      doc: 'How full it is.',
    });
  });

  test('the name of a let in a group is another than one outside', () => {
    const text =
      'group "a" { let x = 1\n route when complexity > x to any }\ngroup "b" { let x = 2\n route when complexity > x to any }';
    expect(placesOf(modelOf(text), 'new.route', text.indexOf('x = 2'))).toHaveLength(2);
  });

  test('a let whose value is wrong, and the alias of what was not found, are found all the same', () => {
    const text = 'let hard = complexty > 50\nuse "@none/here" as none\nroute when hard and none.x > 1 to any by none.y';
    expect(placesOf(modelOf(text), 'new.route', 5)).toHaveLength(2);
    expect(placesOf(modelOf(text), 'new.route', text.indexOf('none.x'))).toHaveLength(3);
  });

  test('a broken statement leaves the others their references', () => {
    const text = 'let hard = complexity > 50\nroute when ( to any\nroute when hard to any';
    expect(placesOf(modelOf(text), 'new.route', 5)).toHaveLength(2);
  });

  test.each([...examplePolicies.keys()])('every name of %s that is no key stands for something', (path) => {
    const model = buildSemanticModel(besideExamples(path, examplePolicies.get(path) ?? ''));
    const unknown = model
      .tokens(path)
      .filter(({ kind, start }) => kind === 'name' && model.referenceAt(path, start) === undefined)
      .filter(({ start }) => {
        const innermost = pathTo(
          model.tree(path) ?? { kind: 'name', parts: [], text: '', span: { file: path, start: 0, end: 0 } },
          start + 1,
        ).map(({ kind }) => kind);
        return (
          innermost.includes('name') &&
          !innermost.includes('annotation') &&
          !innermost.includes('target') &&
          !innermost.includes('modifier') &&
          !innermost.includes('ref')
        );
      });
    expect(unknown).toEqual([]);
  });
});

describe('tables for people', () => {
  test('every key of a definition has its text, and no other', () => {
    expect(Object.keys(keyDocs).toSorted()).toEqual(Object.keys(defineKeys).toSorted());
    for (const [kind, keys] of Object.entries(defineKeys))
      expect(Object.keys(keyDocs[kind] ?? {}).toSorted(), kind).toEqual([...keys].toSorted());
  });

  test('the example of each key, as it is inserted, is accepted', () => {
    const plain = (snippet: string): string =>
      snippet
        .replaceAll(/\$\{\d+\|([^,|]*)[^}]*\}/g, '$1')
        .replaceAll(/\$\{\d+:([^}]*)\}/g, '$1')
        .replaceAll(/(?<!\\)\$\d/g, '')
        .replaceAll(/\\(.)/g, '$1');
    const required: { readonly [kind: string]: string } = {
      tier: 'model: "m"',
      endpoint: 'url: "http://z:1", tier: "8B"',
      limit: 'key: user, requests: 1/s',
      alarm: 'when: cluster.saturation > 1%',
      slo: 'ttft: 1s',
      param: 'env: "A"',
    };
    const wrong: string[] = [];
    for (const [kind, keys] of Object.entries(keyDocs)) {
      for (const [key, { example }] of Object.entries(keys)) {
        const value = plain(example).replace('"llama-3.1-8b"', '"m"');
        if (value === '' || value === '""' || value.includes('[""]') || value.includes('url: }')) continue;
        const others = (required[kind] ?? '')
          .split(', ')
          .filter((entry) => entry !== '' && !entry.startsWith(`${key}:`));
        const name = kind === 'gateway' ? '' : '"n" ';
        const text = `define tier "8B" { model: "m", endpoints: ["http://y:1"] }\ndefine ${kind} ${name}{ ${[...others, `${key}: ${value}`].join(', ')} }`;
        const errors = modelOf(text).result.diagnostics.filter(({ severity }) => severity === 'error');
        if (errors.length > 0) wrong.push(`${kind}.${key}: ${value}: ${errors[0]?.message ?? ''}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('every function has its text', () => {
    expect(Object.keys(functionDocs).toSorted()).toEqual([...functionNames, 'lowest', 'highest'].toSorted());
  });
});
