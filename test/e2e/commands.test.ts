import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signalbox, signalboxWithInput, spawnSignalbox, untilFirstBytes } from './support/command.fixture.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-commands-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}
const run = (...args: string[]): ReturnType<typeof signalbox> => signalbox(args, folder);

const TIERS = `define tier "8B" { model: "llama-3.1-8b", gpu: "L4", endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "llama-3.1-70b", gpu: "H100", gpu_count: 4, endpoints: ["http://10.0.0.21:8000"] }
`;

describe('check', () => {
  test('five independent mistakes give five findings with carets at the right places, and exit code 1', async () => {
    const lines = [
      'route "one" when complexity > 50 to tier "70B" by least_token',
      'route "two" when prompt_tokens > 30s to tier "70B" by least_tokens',
      'route "three" when kv_cache_used < 90% to tier "70B" by least_tokens',
      'route "four" when stream to 60% tier "8B", 30% tier "70B" by least_tokens',
      'reject "five" when model == "gpt-4 with status 403',
      'default to tier "8B" by least_tokens',
    ];
    const { code, err, out } = await run('check', write('five.route', TIERS + lines.join('\n')));
    expect(code).toBe(1);
    expect(out).toBe('');
    const findings = err.split(/\n(?=error\[|warning\[|note\[)/).filter((block) => block.startsWith('error['));
    expect(findings.map((block) => /^error\[(E\d{4})\]/.exec(block)?.[1])).toHaveLength(5);
    const carets = findings.map((block) => {
      const rows = block.split('\n');
      const at = rows.findIndex((row) => /^\s*\|\s+\^/.test(row));
      const mark = rows[at] ?? '';
      return (rows[at - 1] ?? '').slice(mark.indexOf('^'), mark.lastIndexOf('^') + 1);
    });
    expect(carets.map((text, i) => lines[i]?.includes(text) === true && text.length > 0)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ]);
    expect(carets[0]).toBe('least_token');
    expect(carets[1]).toContain('30s');
    expect(carets[2]).toBe('kv_cache_used');
    expect(carets[3]).toContain('30%');
    expect(carets[4]).toContain('"gpt-4');
    expect(err).toContain('least_tokens');
    expect(err).toContain('5 errors');
  });

  test('the one-line policy is in order', async () => {
    const { code, err } = await run(
      'check',
      write('one.route', 'route when complexity > 50 to tier "70B" by least_tokens with affinity session\n'),
    );
    expect({ code, errors: /error\[/.test(err) }).toEqual({ code: 0, errors: false });
  });

  test('JSON, SARIF and CI annotations carry the same findings', async () => {
    const file = write('bad.route', `${TIERS}default to tier "9B" by least_tokens\n`);
    const json = JSON.parse((await run('check', '--format', 'json', file)).out) as {
      errors: number;
      diagnostics: { code: string; file: string; start: object }[];
    };
    expect(json).toMatchObject({ errors: 1, diagnostics: [{ file: 'bad.route', start: { line: 3, column: 17 } }] });
    const sarif = JSON.parse((await run('check', '--format', 'sarif', file)).out) as {
      version: string;
      runs: { results: { ruleId: string }[] }[];
    };
    expect(sarif.version).toBe('2.1.0');
    expect(sarif.runs[0]?.results[0]?.ruleId).toBe(json.diagnostics[0]?.code);
    expect((await run('check', '--format', 'github', file)).out).toMatch(/^::error file=bad\.route,line=3,/);
  });

  test('--deny-warnings turns warnings into exit code 1', async () => {
    const file = write('warn.route', `${TIERS}route when stream to tier "8B" by least_tokens\n`);
    expect((await run('check', file)).code).toBe(0);
    expect((await run('check', '--deny-warnings', file)).code).toBe(1);
    expect((await run('check', '--strict', file)).code).toBe(1);
  });

  test('a rule that no request reaches is found with an example, and what is proved is told on demand', async () => {
    const rules = [
      'route "hard" when complexity > 50 to tier "70B"',
      'route "harder" when complexity > 80 to tier "70B"',
      'route "code" when prompt matches r"\\bTypeError\\b" to tier "70B"',
      'route "streams" when stream to tier "8B"',
      'default to tier "8B"',
      'ensure "hard ones go to the large model" when complexity > 60 always to tier "70B"',
    ];
    const file = write('reach.route', TIERS + rules.join('\n'));
    const found = await run('check', file);
    expect(found.code).toBe(0);
    expect(found.err).toContain('reach.route:4:1');
    expect(found.err).toMatch(/warning\[W0502\].*\n[^]*for example `complexity = 81` meets both/);
    expect(found.err).not.toContain('W0505');
    expect((await run('check', '--overlap', file)).err).toContain('W0505');
    expect((await run('check', '--budget', '0', file)).out).toBe('the policy is in order\n');
    const { out } = await run('check', '--verdicts', file);
    expect(out).toMatch(/route "harder" +shadowed\n/);
    expect(out).toMatch(/route "code" +not proved +depends on `prompt matches/);
    expect(out).toMatch(/ensure "hard ones go to the large model" +proved\n/);
    const json = JSON.parse((await run('check', '--verdicts', '--format', 'json', file)).out) as {
      verdicts: { label: string; verdict: string; witness?: { text: string } }[];
    };
    expect(json.verdicts.find(({ label }) => label === 'hard')).toMatchObject({
      verdict: 'reachable',
      witness: { text: 'complexity = 51' },
    });
  });

  test('an `ensure` that does not hold is an error with a counter-example', async () => {
    const rules = 'default to tier "8B"\nensure "never the small one" when complexity > 60 never to tier "8B"\n';
    const { code, err } = await run('check', write('ensured.route', TIERS + rules));
    expect(code).toBe(1);
    expect(err).toMatch(/error\[E0420\]: "never the small one" does not hold[^]*for example `complexity = 61`/);
  });

  test('--fix makes the safe fixes and keeps the rest of the file', async () => {
    const file = write(
      'fix.route',
      `${TIERS}# kept\nroute when kv_cache_used exists && stream to tier "8B" by least_tokens\ndefault to tier "8B" where kv_cache_used < 90 by least_tokens\n`,
    );
    await run('check', '--fix', file);
    const text = readFileSync(join(folder, file), 'utf8');
    expect(text).toContain('# kept');
    expect(text).toContain('kv_cache_used < 90%');
    expect(text).toContain('exists and stream');
  });

  test('a file that is not there is one clear sentence and exit code 1', async () => {
    const { code, err } = await run('check', 'missing.route');
    expect(code).toBe(1);
    expect(err).toMatch(/^signalbox check: cannot read .*missing\.route: there is no such file\n$/);
  });

  test('a file that is not there hides nothing of the others', async () => {
    const good = write('beside.route', `${TIERS}default to tier "8B" by least_tokens\n`);
    const bad = write('wrong.route', `${TIERS}default to tier "9B" by least_tokens\n`);
    const text = await run('check', 'missing.route', good, bad);
    expect(text).toMatchObject({ code: 1, out: '' });
    expect(text.err).toContain('wrong.route:3:');
    expect(text.err).toContain('missing.route: there is no such file');
    const json = await run('check', '--format', 'json', bad, 'missing.route');
    expect(json.code).toBe(1);
    expect((JSON.parse(json.out) as { diagnostics: unknown[] }).diagnostics).toHaveLength(1);
    expect(await run('check', good, 'missing.route')).toMatchObject({ code: 1, out: 'the policy is in order\n' });
    const layout = await run('fmt', '--check', 'missing.route', write('laid.route', 'default  to tier "8B"\n'));
    expect(layout).toMatchObject({ code: 1, out: 'laid.route would change\n' });
    expect(layout.err).toContain('missing.route: there is no such file');
  });
});

describe('diff', () => {
  const old = 'route "hard" when complexity > 50 to tier "70B"\ndefault to tier "8B"\n';

  test('says which requests move and where to, and 0 whether there is a change or none', async () => {
    const before = write('diff-old.route', TIERS + old);
    const after = write('diff-new.route', TIERS + old.replace('50', '60'));
    const moved = await run('diff', before, after);
    expect(moved.code).toBe(0);
    expect(moved.out).toContain('complexity in (50, 60]\n    route "hard" to tier "70B" → default to tier "8B"');
    expect((await run('diff', '--exit-code', before, after)).code).toBe(1);
    const json = JSON.parse((await run('diff', '--json', before, after)).out) as { version: number; moves: object[] };
    expect(json).toMatchObject({ version: 1, isSame: false, moves: [{ region: 'complexity in (50, 60]' }] });
    const layout = write('diff-layout.route', `${TIERS}# the same\n${old.replaceAll(' when ', '\n  when ')}`);
    expect(await run('diff', '--exit-code', before, layout)).toMatchObject({ code: 0, out: 'no change\n' });
  });

  test('a policy with errors is not compared: they are printed, and the code is 1', async () => {
    const before = write('diff-old.route', TIERS + old);
    const wrong = write('diff-wrong.route', `${TIERS}default to tier "9B"\n`);
    const { code, out, err } = await run('diff', before, wrong);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('diff-wrong.route:3:');
    expect((await run('diff', before, 'missing.route')).err).toMatch(/^signalbox diff: cannot read .*missing\.route/);
  });
});

describe('usage', () => {
  test('no command, an unknown command, an unknown option and a missing argument exit with 2 and say what is expected', async () => {
    for (const args of [
      ['serve', 'x', '--listen', 'nowhere'],
      ['dev', '--admin', '127.0.0.1:99999'],
      [],
      ['chekc'],
      ['check', '--wrong', 'x'],
      ['check'],
      ['check', '--format', 'xml', 'x'],
      ['check', '--budget', 'much', 'x'],
      ['diff', 'x'],
      ['diff', '--budget', '0', 'x', 'y'],
    ]) {
      const { code, err } = await run(...args);
      expect(code, args.join(' ')).toBe(2);
      expect(err.length).toBeGreaterThan(20);
      expect(err).not.toMatch(/at .*\.ts:\d/);
    }
  });

  test('what the system refuses is one clear sentence and exit code 1', async () => {
    for (const args of [
      ['dev', 'missing.route'],
      ['serve', 'missing.route'],
      ['serve', '.'],
      ['explain', 'missing.route', '-'],
    ]) {
      const { code, err } = await run(...args);
      expect(code, args.join(' ')).toBe(1);
      expect(err).toMatch(/^signalbox \w+: cannot read \S+: (?:there is no such file|it is a directory.*)\n$/);
    }
    const policy = write('nowhere.route', `${TIERS}default to tier "8B" by least_tokens\n`);
    const { code, err } = await run('serve', policy, '--open', '--admin', '127.0.0.1:0', '--listen', '203.0.113.1:80');
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^signalbox serve: .*EADDRNOTAVAIL.*\n$/),
    });
    const folderAsInput = spawnSignalbox(['key', 'hash'], folder, [openSync(folder, 'r'), 'pipe', 'pipe']);
    expect(folderAsInput).toMatchObject({ code: 1, err: expect.stringMatching(/^signalbox key hash: EISDIR.*\n$/) });
  });

  test('a reader that goes away ends nothing with a stack trace', async () => {
    const lines = Array.from({ length: 500 }, (_, i) => `route "r${i}" when foo${i} > 3 to tier "8B" by least_tokens`);
    const file = write('many.route', TIERS + lines.join('\n'));
    const { code, err } = await untilFirstBytes(['check', '--format', 'json', file], folder);
    expect({ code, err }).toEqual({ code: 1, err: '' });
  });

  test('help teaches: every command has a page with usage and options', async () => {
    const { out } = await run('--help');
    const commands = [...out.matchAll(/^ {2}([a-z]+(?:-[a-z]+| new| hash)?) {3,}/gm)].map((match) => match[1] ?? '');
    expect(commands).toEqual([
      'dev',
      'serve',
      'check',
      'test',
      'diff',
      'fmt',
      'lsp',
      'explain',
      'explain-code',
      'replay',
      'endpoints',
      'policy',
      'key new',
      'key hash',
      'plugin new',
    ]);
    for (const command of commands)
      expect((await run('help', ...command.split(' '))).out).toContain(`Usage: signalbox ${command}`);
  });
});

test('fmt lays out, --check only tells, and a second run changes nothing', async () => {
  const file = write('messy.route', 'default   to tier "8B"\n   by least_tokens   # why\n');
  expect(await run('fmt', '--check', file)).toMatchObject({ code: 1, out: 'messy.route would change\n' });
  expect((await run('fmt', file)).code).toBe(0);
  expect(readFileSync(join(folder, file), 'utf8')).toBe('default to tier "8B" by least_tokens # why\n');
  expect((await run('fmt', '--check', file)).code).toBe(0);
  expect(signalboxWithInput(['fmt', '-'], folder, 'default  to tier "8B"\n').out).toBe('default to tier "8B"\n');
});

test('explain-code tells what a code means', async () => {
  expect((await run('explain-code', 'e0330')).out).toMatch(/^error\[E0330\]: /);
  expect((await run('explain-code')).out.split('\n').length).toBeGreaterThan(40);
  expect((await run('explain-code', 'E9999')).code).toBe(2);
});

describe('explain', () => {
  const policy = `${TIERS}route "hard" when complexity > 50 to tier "70B" by least_tokens\ndefault to tier "8B" by least_tokens\n`;
  const request = (content: string): string =>
    JSON.stringify({ model: 'llama-3.1-8b', messages: [{ role: 'user', content }] });

  test('text tells the rule, the comparison that failed with its value, and the candidates', async () => {
    write('explain.route', policy);
    const { code, out } = signalboxWithInput(['explain', 'explain.route', '-'], folder, request('Is Paris in France?'));
    expect(code).toBe(0);
    expect(out).toMatch(/^→ 8B\/[12] \(tier "8B"\) by route "default"/);
    expect(out).toMatch(/✗ route "hard" when complexity > 50\n\s+false +complexity > 50 +\(complexity = [\d.]+\)/);
    expect(out).toMatch(/1\. 8B\/[12] +least_tokens/);
  });

  test('JSON is the explanation as data', async () => {
    write('explain.route', policy);
    write('request.json', request('Analyze the economic impact of climate change on small island states.'));
    const explained = JSON.parse((await run('explain', '--json', 'explain.route', 'request.json')).out) as object;
    expect(explained).toMatchObject({ outcome: 'forward', tier: '70B', route: 'hard', endpoint: '70B/1' });
  });

  test('a request that cannot be read is one clear sentence', async () => {
    write('explain.route', policy);
    expect(signalboxWithInput(['explain', 'explain.route', '-'], folder, '{')).toMatchObject({ code: 1 });
    expect(signalboxWithInput(['explain', 'explain.route', '-'], folder, '{"model":"x"}').err).toMatch(
      /cannot be explained/,
    );
  });
});
