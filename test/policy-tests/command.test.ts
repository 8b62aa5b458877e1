import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import lcovParser from '@friedemannsommer/lcov-parser';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { validateXML } from 'xmllint-wasm';
import { createProgress } from '../../packages/gateway/src/policy-tests/progress.ts';
import { signalbox, startSignalbox } from '../e2e/support/command.fixture.ts';

const POLICY = `define tier "8B" { model: "small", endpoints: ["http://10.0.0.11:8000"] }
define tier "70B" { model: "large", endpoints: ["http://10.0.0.21:8000"] }
route "hard" when complexity > 50
  to tier "70B" where kv_cache_used < 90%
  else to tier "8B"
default to tier "8B"
`;
const HARD =
  'test "hard" {\n  given complexity = 60\n  given endpoint "70B/1" { kv_cache_used: 50% }\n  expect route "hard" to tier "70B"\n}\n';
const WRONG = 'test "wrong <&> \\"one\\"" {\n  given complexity = 40\n  expect route "hard"\n}\n';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'signalbox-test-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

const run = (...args: string[]): ReturnType<typeof signalbox> => signalbox(['test', ...args], folder);

interface Json {
  readonly passed: boolean;
  readonly files: readonly {
    readonly path: string;
    readonly tests: readonly { readonly label: string; readonly passed: boolean }[];
  }[];
}
/** Labels of the tests that ran, by file. */
async function ran(...args: string[]): Promise<{ readonly [path: string]: readonly string[] }> {
  const { files } = JSON.parse((await run('--json', ...args)).out) as Json;
  return Object.fromEntries(files.map(({ path, tests }) => [path, tests.map(({ label }) => label)]));
}

describe('what runs', () => {
  test('a policy runs its own tests and those of the files beside it that import it', async () => {
    write({
      'main.route': POLICY + HARD,
      'main.test.route': `import "./main.route"\n${WRONG}`,
      'other.test.route': `${POLICY}${WRONG}`,
    });
    expect(await ran('main.route')).toEqual({ 'main.route': ['hard'], 'main.test.route': ['wrong <&> "one"'] });
    expect(await ran('main.test.route')).toEqual({ 'main.test.route': ['wrong <&> "one"'] });
    expect(await ran('main.route', 'main.route', './main.route')).toEqual(await ran('main.route'));
  });

  test('a folder runs every policy below it once: not the parts of others, nor what lies in node_modules', async () => {
    write({
      'main.route': `import "./parts/tiers.route"\nimport "./lib.route" as lib\ndefault to tier "8B"\n`,
      'parts/tiers.route': `define tier "8B" { model: "m", endpoints: ["http://10.0.0.1:1"] }\ntest "in a part" { expect default }\n`,
      'lib.route': 'let big = prompt_tokens > 1k\ndefault to tier "x"\ntest "in a library" { expect default }\n',
      'deep/er/second.test.route': `${POLICY}${HARD}`,
      'node_modules/x/third.route': POLICY + HARD,
      '.hidden/fourth.route': POLICY + HARD,
    });
    expect(await ran()).toEqual({
      'main.route': ['in a part'],
      'lib.route': ['in a library'],
      'deep/er/second.test.route': ['hard'],
    });
    expect(await ran('deep')).toEqual({ 'deep/er/second.test.route': ['hard'] });
  });

  test('a filter takes those whose name holds the text', async () => {
    write({ 'main.route': POLICY + HARD + WRONG });
    expect(await run('--filter', 'ard')).toMatchObject({ code: 0 });
    expect(await ran('--filter', 'ard')).toEqual({ 'main.route': ['hard'] });
    expect(await run('--filter', 'nothing')).toEqual({
      code: 1,
      out: '',
      err: 'signalbox test: no test or ensure in . has "nothing" in its name. Names are what stands in quotes after `test`.\n',
    });
  });

  test('without tests it says how to write one, without policies where it looked, and a broken policy by its findings', async () => {
    expect(await run()).toEqual({
      code: 1,
      out: '',
      err: 'signalbox test: there is no .route file in .. Name a policy, or a folder that has one.\n',
    });
    write({ 'main.route': POLICY });
    const none = await run('main.route');
    expect([none.code, none.out]).toEqual([1, '']);
    expect(none.err).toContain('there are no tests in main.route');
    expect(none.err).toContain('expect route "hard" to tier "70B"');
    write({ 'broken.route': 'default to tier "a" by least_token\n', 'good.test.route': POLICY + HARD });
    const broken = await run();
    expect(broken.code).toBe(1);
    expect(broken.err).toContain('error[E0');
    expect(broken.out).toContain('1 policy has errors, 1 passed');
    const missing = await run('gone.route');
    expect(missing.code).toBe(1);
    expect(missing.err).toContain('gone.route: there is no such file');
  });

  test('wrong options are wrong usage', async () => {
    for (const args of [['--fail-under', 'most'], ['--fail-under', '101'], ['--requests', '-1'], ['--unknown']])
      expect((await run(...args)).code).toBe(2);
  });
});

describe('what it shows', () => {
  test('a failure has its place, what was expected and what came of it, and why', async () => {
    write({ 'main.route': POLICY + WRONG });
    const { code, out, err } = await run();
    expect([code, err]).toEqual([1, '']);
    expect(out).toContain('✗ wrong <&> "one"');
    expect(out).toContain('--> main.route:9:3');
    expect(out).toContain('9 |   expect route "hard"\n    |   ^^^^^^^^^^^^^^^^^^^');
    expect(out).toContain(
      '    expected  route "hard"\n    actual    default "default" to endpoint "8B/1" of tier "8B"\n',
    );
    expect(out).toContain('false   complexity > 50   (complexity = 40)');
    expect(out).toContain('1 failed, 0 passed\n');
  });

  test('a name cannot drive the terminal', async () => {
    write({
      'main.route': `${POLICY}test "a\\u001b[2Jb" { expect not default }\nensure "c\\u0007" never to tier "8B"\n`,
    });
    const { out } = await run();
    expect(out).toContain('✗ a\uFFFD[2Jb');
    // oxlint-disable-next-line no-control-regex
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
  });

  test('ensures are proved, refuted or not proved, with what was tried', async () => {
    write({
      'main.route': `${POLICY}ensure "small" when complexity < 50 never to tier "70B"
ensure "large" when complexity > 50 always to tier "70B"
ensure "pattern" when prompt matches r"x+" and complexity < 50 never to tier "70B"
ensure "roomy" when complexity > 50 never to endpoint "8B/1"
`,
    });
    const { code, out } = await run('--requests', '50');
    expect(code).toBe(1);
    expect(out).toContain('✓ small (proved)');
    expect(out).toMatch(/✗ large\n/);
    expect(out).toContain('claimed   always to tier "70B"');
    expect(out).toContain('given complexity = 51');
    expect(out).toMatch(/proved, 2 refuted/);
    expect((await run('--filter', 'small')).code).toBe(0);
  });

  test('coverage shows what is missing at its place, and too little of it fails', async () => {
    write({ 'main.route': POLICY + HARD });
    const shown = await run('--coverage');
    expect(shown.code).toBe(0);
    expect(shown.out).toContain('complexity > 50\n  |                   ^^^^^^^^^^^^^^^ never false');
    expect(shown.out).toContain('^^^^^^^^^^^^^^^^^^^ never false, never unknown');
    expect(shown.out).toContain('6 | default to tier "8B"\n  | ^^^^^^^ never reached');
    expect(shown.out).toContain('coverage 37.5 %: rules 1/2, else parts 0/1, outcomes of conditions 2/5');
    expect((await run('--fail-under', '37.5')).code).toBe(0);
    const failed = await run('--fail-under', '37.6%');
    expect(failed).toMatchObject({
      code: 1,
      err: 'signalbox test: 37.5 % is covered, and --fail-under asks for 37.6 %\n',
    });
    expect(failed.out).toContain('not covered');
  });

  test('JSON holds results with places, and coverage', async () => {
    write({ 'main.route': POLICY + HARD + WRONG });
    const report = JSON.parse((await run('--json')).out) as object;
    expect(report).toMatchObject({
      version: 1,
      passed: false,
      counts: { tests: 2, failed: 1 },
      files: [
        {
          path: 'main.route',
          tests: [
            { label: 'hard', passed: true, at: { file: 'main.route', line: 7, column: 1 }, unmet: [] },
            {
              label: 'wrong <&> "one"',
              passed: false,
              unmet: [{ expected: 'route "hard"', at: { line: 14, column: 3 } }],
            },
          ],
        },
      ],
      coverage: {
        rules: { covered: 2, total: 2 },
        byRule: [{ label: 'hard', reached: 2, matched: 1, elses: [{ reached: 0 }] }, { label: 'default' }],
        byLeaf: [
          { text: 'complexity > 50', true: 1, false: 1, unknown: 0, missing: [], at: { line: 3, column: 19 } },
          { text: 'kv_cache_used < 90%', true: 1, missing: ['false', 'unknown'] },
        ],
      },
    });
  });

  test('a long run says how far it is, every two seconds', () => {
    let nowMs = 0;
    const said: string[] = [];
    const progress = createProgress(
      (text) => said.push(text),
      () => nowMs,
    );
    for (let done = 1; done <= 10; done++) {
      nowMs += 900;
      progress(done, 10);
    }
    expect(said).toEqual(['3 of 10 done\n', '6 of 10 done\n', '9 of 10 done\n']);
  });
});

test('a policy that uses a plugin from outside is tested with it', async () => {
  const manifest = {
    manifestVersion: 1,
    name: 'by-name',
    apiVersion: 1,
    entries: [{ kind: 'scorer', name: 'last_name', doc: 'x', reads: ['candidate.name'] }],
  };
  write({
    'package.json': JSON.stringify({ dependencies: { 'by-name': '*' } }),
    'node_modules/by-name/package.json': JSON.stringify({
      name: 'by-name',
      version: '1.0.0',
      type: 'module',
      exports: { '.': './index.js' },
      signalbox: './manifest.json',
    }),
    'node_modules/by-name/manifest.json': JSON.stringify(manifest),
    'node_modules/by-name/index.js': `export default { name: 'by-name', apiVersion: 1, provides: { scorer: { last_name: {
      doc: 'x', reads: ['candidate.name'],
      setup: () => ({ score(request, candidates, out) {
        const names = Array.from(candidates.slots.subarray(0, candidates.length), (slot) => candidates.values('candidate.name')[slot]);
        const last = [...names].sort().at(-1);
        names.forEach((name, i) => { out[i] = name === last ? 1 : 0; });
      } }),
    } } } };`,
    'main.route': `use "by-name" as names
define tier "a" { model: "m", endpoints: ["http://10.0.0.1:1", "http://10.0.0.2:1", "http://10.0.0.3:1"] }
default to tier "a" by names.last_name
test "the last" { given endpoint "a/3" { draining: true } expect to endpoint "a/2" }
`,
  });
  const { code, out, err } = await run('main.route');
  expect(err).toBe('');
  expect(out).toContain('✓ the last');
  expect(code).toBe(0);
});

describe('reports for others', () => {
  /** The elements of JUnit reports that Jenkins, GitLab and GitHub Actions read. */
  const schema = readFileSync(new URL('junit.xsd', import.meta.url), 'utf8');

  test('JUnit XML is valid by its schema, whatever stands in a name', async () => {
    write({
      'main.route': `${POLICY}${HARD}${WRONG}test "bell \\u0007 and ]]> é 🚂" { expect default }\nensure "e" never to tier "70B"\nensure "p" when prompt matches r"x" and complexity < 50 never to tier "70B"\n`,
      'broken.route': 'default to tier\n',
    });
    await run('--junit', 'report.xml', '--requests', '10');
    const xml = readFileSync(join(folder, 'report.xml'), 'utf8');
    const judged = await validateXML({ xml: [{ fileName: 'report.xml', contents: xml }], schema: [schema] });
    expect(judged.errors).toEqual([]);
    expect(judged.valid).toBe(true);
    expect(xml).toContain('<testsuite name="main.route" tests="5" failures="2" errors="0" skipped="0"');
    expect(xml).toContain('<testcase name="wrong &lt;&amp;&gt; &quot;one&quot;" classname="main.route"');
    expect(xml).toContain('bell \uFFFD and');
    expect(xml).toMatch(/<testsuite name="broken\.route" tests="1" failures="0" errors="1"/);
    const wrong = await validateXML({
      xml: [{ fileName: 'report.xml', contents: xml.replace('failures="2"', 'fails="2"') }],
      schema: [schema],
    });
    expect(wrong.valid).toBe(false);
  });

  test('lcov is read by a parser with the same counts', async () => {
    write({
      'main.route': POLICY + HARD,
      'main.test.route': `import "./main.route"\ntest "easy, and\\nso on" { expect default }\n`,
    });
    await run('--lcov', 'lcov.info');
    const [section, ...others] = await lcovParser({ from: readFileSync(join(folder, 'lcov.info')) });
    expect(others).toEqual([]);
    expect(section?.path).toBe('main.route');
    expect(section?.lines.details.map(({ line, hit }) => [line, hit])).toEqual([
      [3, 1],
      [4, 1],
      [5, 0],
      [6, 1],
    ]);
    expect(section?.lines).toMatchObject({ instrumented: 4, hit: 3 });
    expect(section?.functions.details.map(({ name, line, hit }) => [name, line, hit])).toEqual([
      ['route hard', 3, 1],
      ['default default', 6, 1],
    ]);
    expect(section?.branches).toMatchObject({ instrumented: 5, hit: 3 });
  });
});

test('a watch runs again when a file changes or comes, and ends with the last result', async () => {
  write({ 'main.route': POLICY + HARD, 'main.test.route': `import "./main.route"\n${HARD}` });
  const running = startSignalbox(['test', '--watch'], folder);
  await running.saw(/2 passed[\s\S]*watching 2 files/);
  write({ 'main.route': POLICY.replace('> 50', '> 70') + HARD });
  await running.saw(/2 failed, 0 passed[\s\S]*watching 2 files[\s\S]*watching 2 files/);
  write({ 'new.test.route': 'import "./main.route"\ntest "new" { expect default }\n' });
  await running.saw(/2 failed, 1 passed[\s\S]*watching 3 files/);
  running.child.kill('SIGINT');
  expect(await running.ended).toBe(1);
});
