import { describe, expect, test } from 'vitest';
import { codes, compile, errors, expectDecision, tiers } from './support/bench.fixture.ts';

const a = tiers({ a: 1, b: 1 });
const to = '\ndefault to tier "a"';
const from = (
  files: { readonly [path: string]: string },
  path: string = 'test.route',
): { readonly path: string; readonly readFile: (path: string) => string | undefined } => ({
  path,
  readFile: (name) => (Object.hasOwn(files, name) ? files[name] : undefined),
});

describe('names', () => {
  test('an unknown name is an error with a suggestion from the same scope first', () => {
    for (const [condition, suggestion] of [
      ['complexty > 5', 'complexity'],
      ['prompt_token > 5', 'prompt_tokens'],
      ['steam', 'stream'],
      ['cluster.saturaton > 5%', 'cluster.saturation'],
    ] as const) {
      const [finding, ...more] = compile(`${a}route when ${condition} to tier "a"${to}`).diagnostics;
      expect(finding?.code, condition).toBe('E0201');
      expect(more, condition).toEqual([]);
      expect(finding?.fix?.edits[0]?.text, condition).toBe(suggestion);
    }
    expect(compile(`${a}route when banana to tier "a"${to}`).diagnostics[0]?.help ?? '').not.toMatch(/did you mean/);
  });

  test.each([
    ['default to tier "a" by least_tokns', 'E0204'],
    ['default to tier "a" pick bst', 'E0205'],
    ['default to tier "a" with timout 5s', 'E0206'],
    ['default to teir "a"', 'E0226'],
    ['define tire "x" { }\ndefault to tier "a"', 'E0207'],
    ['route when cound(healthy) > 1 to tier "a"\ndefault reject', 'E0208'],
    ['define slo "x" { tfft: 5s }\ndefault to tier "a"', 'E0209'],
    ['@ownr("x") default to tier "a"', 'E0224'],
    ['route when tenant.region == "eu" and header.x == "y" to tier "a"\ndefault reject', 'E0225'],
  ])('`%s` gives %s with a suggestion', (text, code) => {
    const [finding] = compile(a + text).diagnostics;
    expect(finding?.code).toBe(code);
    expect(JSON.stringify([finding?.help, finding?.fix])).toMatch(/did you mean|write/);
  });

  test('keywords cannot be names', () => {
    expect(errors(`${a}let route = 5${to}`)).toEqual(['E0128']);
    expect(errors(`${a}let any = 5${to}`)).toEqual(['E0211']);
  });

  test('`tier`, `endpoint`, `session` are names of the catalogue, not keywords', () => {
    expect(errors(`${a}default to tier "a" where tier == "a" and name == "a/1"`)).toEqual([]);
  });

  test('several uses of one lost name and three broken rules leave the rest analysed', () => {
    const text = `${a}route "1" when complexty > 5 to tier "a"
route "2" when stream to tier "a" by nothing
route when to tier "a"
route "4" when stream to tier "c"
route "5" when turns > 5s to tier "a"
default to tier "b"`;
    expect(errors(text)).toEqual(['E0201', 'E0204', 'E0124', 'E0202', 'E0302']);
  });
});

describe('lets', () => {
  test('stand before their use, and may use earlier ones', () => {
    expectDecision(
      `${a}let long = prompt_tokens > 32k\nlet hard = long or complexity > 90\nroute when hard to tier "b"${to}`,
      'b/1',
      {
        promptTokensExact: 40_000,
      },
    );
    expect(errors(`${a}route when hard to tier "b"\nlet hard = turns > 5${to}`)).toEqual(['E0210']);
    expect(errors(`${a}let x = y + 1\nlet y = 5\nroute when turns > x to tier "b"${to}`)).toEqual(['E0210']);
    expect(errors(`${a}let x = x + 1\nroute when turns > x to tier "b"${to}`)).toHaveLength(1);
  });

  test('may not shadow a let, a signal, a property, a scorer or a function', () => {
    for (const name of ['complexity', 'load', 'least_tokens', 'best', 'min', 'tenant']) {
      expect(errors(`${a}let ${name} = 5${to}`), name).toEqual(['E0211']);
    }
    expect(errors(`${a}let x = 5\nlet x = 6\nroute when turns > x to tier "b"${to}`)).toEqual(['E0211']);
    expect(
      errors(`${a}let x = 5\ngroup "g" when turns > x { let x = 6 route when turns > x to tier "b" }${to}`),
    ).toEqual(['E0211']);
  });

  test('may hold a candidate expression, used in `where` and `by`', () => {
    expectDecision(
      `${a}let busy = queued_tokens + decode_tokens\ndefault to any where busy < 100 by lowest(busy)`,
      'b/1',
      {},
      {
        fleet: { 'a/1': { queuedTokens: 50 }, 'b/1': { decodeTokens: 10 } },
      },
    );
  });

  test('that nothing uses are a warning', () => {
    expect(codes(`${a}let x = 5${to}`)).toEqual(['W0507']);
  });
});

describe('imports', () => {
  const files = {
    'shared/tiers.route': tiers({ a: 1, b: 1 }),
    'shared/tenants.route':
      'define tenant "acme" { }\ndefine limit "l" { key: user, requests: 1/min }\nlet gold = ["acme"]\nlet hard = complexity > 50',
    'rules.route': 'reject "no streams" when stream\nroute "tools" when tools > 0 to tier "b"',
  };

  test('without `as` splices the statements where it stands', () => {
    const text = `import "./shared/tiers.route"\nroute when tools > 1 to tier "a"\nimport "./rules.route"\ndefault to tier "a"`;
    const options = { files };
    expectDecision(text, '429 rejected', { stream: true }, options);
    expectDecision(text, 'b/1', { toolNames: ['f'] }, options);
    expectDecision(text, 'a/1', { toolNames: ['f', 'g'] }, options);
  });

  test('with `as` brings lets and definitions under the prefix, and nothing else', () => {
    const text = `${a}import "./shared/tenants.route" as t\nimport "./rules.route" as r
reject when over_limit("t.l")\nadmit when tenant.id in t.gold\nroute when t.hard to tier "b"${to}`;
    expect(errors(text, from(files))).toEqual([]);
    expectDecision(text, 'a/1', { stream: true }, { files });
    expect(errors(`${a}import "./shared/tenants.route" as t\nroute when hard to tier "b"${to}`, from(files))).toEqual([
      'E0201',
    ]);
    expect(
      errors(`${a}import "./shared/tenants.route" as t\nroute when t.soft to tier "b"${to}`, from(files)),
    ).toHaveLength(1);
  });

  test('paths are relative to the importing file and stay under the root', () => {
    const nested = {
      'p/main.route': '',
      'p/sub/one.route': 'import "../two.route"',
      'p/two.route': tiers({ a: 1 }),
      'two.route': tiers({ a: 1 }),
    };
    expect(errors('import "./sub/one.route"\ndefault to tier "a"', from(nested, 'p/main.route'))).toEqual([]);
    expect(errors('import "../two.route"\ndefault to tier "a"', from(nested, 'p/main.route'))).toContain('E0217');
    expect(errors('import "/etc/passwd"\ndefault to any', from(nested))).toContain('E0217');
    expect(errors('import "https://x/y.route"\ndefault to any', from(nested))).toContain('E0217');
  });

  test('cycles, a missing file and the same file spliced twice are errors', () => {
    const circle = { 'x.route': 'import "./y.route"', 'y.route': 'import "./x.route"' };
    expect(errors('import "./x.route"\ndefault to any', from(circle))).toContain('E0218');
    expect(errors('import "./test.route"\ndefault to any', from({ 'test.route': '' }))).toContain('E0218');
    expect(errors('import "./none.route"\ndefault to any', from({}))).toEqual(['E0216']);
    expect(
      errors('import "./rules.route"\nimport "./rules.route"\ndefault to any', from({ 'rules.route': '' })),
    ).toEqual(['E0219']);
    expect(
      errors(
        'import "./t.route" as x\nimport "./t.route" as y\nroute when x.l and y.l to any\ndefault to any',
        from({ 't.route': 'let l = stream' }),
      ),
    ).toEqual([]);
  });

  test('there is no re-export', () => {
    const chain = { 'one.route': 'import "./two.route" as two\nlet x = two.y', 'two.route': 'let y = turns > 5' };
    expect(errors('import "./one.route" as one\nroute when one.x to any\ndefault to any', from(chain))).toEqual([]);
    expect(
      errors('import "./one.route" as one\nroute when one.two.y or one.x to any\ndefault to any', from(chain)),
    ).toHaveLength(1);
  });

  test('a default of a spliced file and one of the file are two of one block', () => {
    expect(errors(`${a}import "./d.route"${to}`, from({ 'd.route': 'default to tier "b"' }))).toEqual(['E0214']);
    expect(
      codes(`${a}import "./d.route"\nroute when stream to tier "a"`, from({ 'd.route': 'default to tier "b"' })),
    ).toEqual(['W0501']);
  });

  test('labels are unique over files', () => {
    expect(
      errors(
        `${a}import "./d.route"\nroute "x" when stream to tier "a"${to}`,
        from({ 'd.route': 'route "x" when tools > 5 to tier "b"' }),
      ),
    ).toEqual(['E0212']);
  });

  test('an import of which nothing is used is a warning; errors in it are reported at their place and at the import', () => {
    expect(codes(`${a}import "./t.route" as t${to}`, from({ 't.route': 'let l = stream' }))).toEqual(['W0509']);
    const { diagnostics } = compile(`${a}import "./t.route"${to}`, from({ 't.route': 'route when to tier "a"' }));
    expect(diagnostics.map(({ code, span }) => `${code} ${span.file}`)).toEqual(['E0231 test.route', 'E0124 t.route']);
  });
});

describe('definitions', () => {
  test.each([
    ['two tiers of one name', 'define tier "a" { model: "m", endpoints: ["http://x:1"] }', 'E0213'],
    ['an address twice', 'define tier "c" { model: "m", endpoints: ["http://10.0.0.1:8000"] }', 'E0213'],
    [
      'a name of an endpoint twice',
      'define tier "c" { model: "m", endpoints: [{ name: "a/1", url: "http://x:1" }] }',
      'E0213',
    ],
    ['no address', 'define tier "c" { model: "m", endpoints: ["nowhere"] }', 'E0514'],
    ['a secret in the text', 'define tier "c" { model: "m", endpoints: ["http://x:1"], key: "sk-123" }', 'E0513'],
    ['a key twice', 'define tier "c" { model: "m", model: "n", endpoints: ["http://x:1"] }', 'E0228'],
    ['a definition without a name', 'define tier { model: "m", endpoints: ["http://x:1"] }', 'E0229'],
    ['an unknown kind', 'define cluster "c" { }', 'E0207'],
    ['an objective of nothing', 'define slo "s" { }', 'E0512'],
  ])('%s is an error', (_what, definition, code) => {
    expect(errors(`${a}${definition}${to}`)).toContain(code);
  });

  test('the commas of an object may be left out', () => {
    expect(
      errors('define tier "a" { model: "m" endpoints: ["http://10.0.0.1:8000"] gpu: "H100" }\ndefault to tier "a"'),
    ).toEqual([]);
  });
});

describe('annotations', () => {
  const rule = (annotation: string): string => `${a}${annotation} route when stream to tier "b"${to}`;
  test('@owner and @expires say who and until when', () => {
    expect(codes(rule('@owner("team") @expires("2027-03-31")'), { nowEpochMs: Date.UTC(2027, 2, 31, 23) })).toEqual([]);
    expect(codes(rule('@expires("2027-03-31")'), { nowEpochMs: Date.UTC(2027, 3, 1) })).toEqual(['W0513']);
    expect(errors(rule('@expires("31.3.2027")'))).toEqual(['E0311']);
  });

  test('@allow drops a warning of its statement, with a reason', () => {
    const policy = (annotation: string): string => `${a}${annotation} reject when session == "x"${to}`;
    expect(codes(policy(''))).toEqual(['W0511']);
    expect(codes(policy('@allow(W0511, "sessions are always sent")'))).toEqual([]);
    expect(codes(policy('@allow(W0511)'))).toContain('E0227');
    expect(codes(policy('@allow(E0201, "no")'))).toContain('E0227');
    expect(codes(`${a}@allow(W0511, "nothing") reject when stream${to}`)).toEqual(['W0520']);
  });
});

describe('tests and ensures', () => {
  const rules = `${a}route "hard" when complexity > 50 to tier "b"${to}\n`;
  test('are checked for names and types', () => {
    expect(
      errors(
        `${rules}test "t" { given complexity = 72, session = "s", header["x"] = "y" given endpoint "g" { tier: "b", queued_tokens: 9k } expect route "hard" to endpoint "g" }`,
      ),
    ).toEqual([]);
    expect(errors(`${rules}test "t" { given complexty = 72 expect route "hard" }`)).toEqual(['E0201']);
    expect(errors(`${rules}test "t" { given complexity = "x" expect route "hard" }`)).toEqual(['E0301']);
    expect(errors(`${rules}test "t" { given complexity = 5 expect route "hrd" }`)).toEqual(['E0223']);
    expect(errors(`${rules}test "t" { given endpoint "g" { teir: "b" } expect default }`)).toEqual(['E0209']);
    expect(errors(`${rules}ensure "e" when stream never to tier "c"`)).toEqual(['E0202']);
    expect(errors(`${rules}ensure "e" when stream never to tier "b"\nensure "f" always route "hard"`)).toEqual([]);
  });
});
