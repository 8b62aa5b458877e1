import { describe, expect, test } from 'vitest';
import { completionsAt } from './completions.ts';
import type { PolicyCompletion } from './completions.ts';
import { besideExamples, examplePolicies } from './example-policies.fixture.ts';
import { buildSemanticModel } from './semantic-model.ts';

/** Completions at the bar of a text; the bar is taken out. */
const complete = (marked: string, files: { readonly [path: string]: string } = {}): readonly PolicyCompletion[] => {
  const offset = marked.indexOf('|');
  const text = marked.slice(0, offset) + marked.slice(offset + 1);
  return completionsAt(buildSemanticModel(besideExamples('new.route', text, files)), 'new.route', offset, {
    files: ['./main.route'],
  });
};
const labels = (marked: string): readonly string[] => complete(marked).map(({ label }) => label);
const top = (marked: string, count = 3): readonly string[] => labels(marked).slice(0, count);

const tiers =
  'define tier "8B" { model: "m", endpoints: ["http://a:1"] }\ndefine tier "70B" { model: "n", endpoints: ["http://b:1"] }\n';

describe('completion by scope', () => {
  test('`when` offers signals, values of the cluster and aggregates, and no property of one endpoint', () => {
    const found = labels('route when |');
    for (const name of ['complexity', 'prompt_tokens', 'cluster.saturation', 'header', 'min', 'any'])
      expect(found).toContain(name);
    for (const name of ['kv_cache_used', 'queue_depth', 'least_tokens', 'lowest']) expect(found).not.toContain(name);
  });

  test('`where` offers properties first, and signals too', () => {
    const found = labels('route to any where |');
    expect(found).toContain('complexity');
    expect(found.indexOf('healthy')).toBeLessThan(found.indexOf('complexity'));
  });

  test('the operand of an aggregate or a ranking is about one endpoint: no signals', () => {
    for (const text of ['route when min(|', 'route to any by lowest(|', 'route when any(|']) {
      const found = labels(text);
      expect(found).toContain('queue_depth');
      expect(found).not.toContain('complexity');
      expect(found).not.toContain('cluster.saturation');
    }
  });

  test('an alarm reads the cluster alone', () => {
    const found = labels('define alarm "hot" { when: |');
    expect(found).toContain('cluster.saturation');
    expect(found).not.toContain('complexity');
    expect(found).not.toContain('load');
  });

  test('`by` offers scorers, `pick` pickers, `queue … by` orders', () => {
    expect(labels('route to any by |')).toEqual(
      expect.arrayContaining(['least_tokens', 'prefix_cache', 'lowest', 'highest']),
    );
    expect(labels('route to any by |')).not.toContain('softmax');
    expect(labels('route to any pick |')).toEqual(expect.arrayContaining(['best', 'softmax']));
    expect(labels('queue by |')).toEqual(expect.arrayContaining(['weighted_fair', 'deadline']));
  });

  test('lets above the place are offered and those below are not', () => {
    const found = labels('let hard = complexity > 50\nroute when | to any\nlet later = true');
    expect(found).toContain('hard');
    expect(found).not.toContain('later');
  });

  test('a let that reads an endpoint is offered in `where` alone', () => {
    expect(labels('let calm = load < 50%\nroute when |')).not.toContain('calm');
    expect(labels('let calm = load < 50%\nroute to any where |')).toContain('calm');
  });

  test('names of a plugin and of an import stand behind their alias', () => {
    expect(labels('use "@acme/signalbox-carbon" as carbon\nroute when |')).toContain('carbon.intensity');
    expect(labels('use "@acme/signalbox-carbon" as carbon\nroute to any by |')).toContain('carbon.least_grams');
    expect(labels('import "./shared/tenants.route" as tenants\nroute when tenant.id in |')).toContain('tenants.gold');
  });

  test('a part of a dotted name is replaced as a whole', () => {
    const [item] = complete('route when cluster.sat|').filter(({ label }) => label === 'cluster.saturation');
    expect(item?.replace).toMatchObject({ start: 11, end: 22 });
  });
});

describe('completion by type', () => {
  test('after a comparison the members of an enumeration come first', () => {
    expect(top('route when priority == |', 4)).toEqual(['"critical"', '"high"', '"low"', '"normal"']);
    expect(top('route when priority in [|', 4)).toEqual(['"critical"', '"high"', '"low"', '"normal"']);
    expect(labels('route when priority == "|"')).toEqual(['critical', 'high', 'low', 'normal']);
  });

  test('a number is followed by the units of what it is compared with', () => {
    expect(labels('route when prompt_tokens > 32|')).toEqual(['32k', '32Ki', '32M', '32Mi', '32B']);
    expect(top('route to any where predicted_ttft < 500|', 2)).toEqual(['500ms', '500s']);
    expect(labels('route to any where load < 90|')).toEqual(['90%']);
    expect(top('route to any with timeout 90|', 2)).toEqual(['90ms', '90s']);
    expect(labels('define limit "a" { requests: 60|')).toEqual(['60/s', '60/min', '60/h', '60/d']);
    expect(labels('route when complexity > 50|')).toEqual([]);
  });

  test('tiers are offered as targets, in quotes, and beside `tier ==`', () => {
    expect(top(`${tiers}route to |`, 2)).toEqual(['tier "70B"', 'tier "8B"']);
    expect(labels(`${tiers}route to tier "|"`)).toEqual(['70B', '8B']);
    expect(labels(`${tiers}route to tier |`)).toEqual(expect.arrayContaining(['"70B"', '"8B"']));
    expect(top(`${tiers}route to any where tier == |`, 2)).toEqual(['"70B"', '"8B"']);
    expect(labels(`${tiers}route to any with fallback tier "|`)).toEqual(['70B', '8B']);
    expect(top(`${tiers}route when min(queue_depth, |`, 2)).toEqual(['tier "70B"', 'tier "8B"']);
  });

  test('objectives, limits and routes are offered where their names stand', () => {
    expect(labels('define slo "chat" { ttft: 1s }\nroute when sla("|')).toEqual(['chat']);
    expect(labels('define limit "free" { key: user, requests: 1/s }\nreject when over_limit(|')).toContain('"free"');
    expect(labels('route "hard" to any\ntest "t" { expect route "|')).toEqual(['hard']);
  });
});

describe('completion of clauses, modifiers and keys', () => {
  test('modifiers of the place, but those already written', () => {
    const found = labels('route to any with timeout 1s, |');
    expect(found).toContain('affinity');
    expect(found).toContain('fallback');
    expect(found).not.toContain('timeout');
    expect(found).not.toContain('status');
    expect(labels('reject with |')).toEqual(expect.arrayContaining(['status', 'message', 'retry_after']));
    expect(labels('reject with |')).not.toContain('affinity');
  });

  test('named arguments of modifiers and options, and their words', () => {
    expect(labels('route to any with affinity session (|')).toEqual(
      expect.arrayContaining(['bound:', 'unit:', 'method:']),
    );
    expect(labels('route to any with fallback any (on: [|')).toEqual(expect.arrayContaining(['saturated', 'timeout']));
    expect(labels('route to any pick softmax(|')).toContain('temperature:');
    expect(labels('route to any by least_latency(percentile: |')).toEqual(
      expect.arrayContaining(['p50', 'p90', 'p99']),
    );
  });

  test('keys of a `use` come from the JSON Schema of the plugin', () => {
    const found = complete('use "@acme/signalbox-carbon" as carbon { |');
    expect(found.map(({ label }) => label)).toContain('refresh');
    expect(labels('use "@acme/signalbox-carbon" as carbon { refresh: 5|')).toEqual(
      expect.arrayContaining(['5ms', '5s', '5m']),
    );
  });

  test('keys of definitions, also of endpoints in a list and of objects inside', () => {
    expect(labels('define tier "a" { model: "m", |')).toEqual(
      expect.arrayContaining(['endpoints', 'gpu', 'max_requests']),
    );
    expect(labels('define tier "a" { model: "m", |')).not.toContain('model');
    expect(labels('define tier "a" { endpoints: [{ |')).toEqual(expect.arrayContaining(['url', 'weight', 'name']));
    expect(labels('define gateway { drain: { |')).toEqual(['accept', 'grace']);
    expect(labels('define tier "a" { precision: |')).toContain('fp8');
    expect(labels('test "t" { given endpoint "e" { |')).toContain('queued_tokens');
  });

  test('kinds, types, annotations, files', () => {
    expect(labels('define |')).toEqual(expect.arrayContaining(['tier', 'limit', 'alarm']));
    expect(labels('let x: |')).toEqual(expect.arrayContaining(['duration', 'percent']));
    expect(labels('@|')).toEqual(['allow', 'expires', 'owner']);
    expect(labels('import "|')).toEqual(['./main.route']);
  });

  test('statements, with frames, and fewer of them in a group', () => {
    expect(labels('|')).toEqual(expect.arrayContaining(['route', 'define tier', 'test "…" { … }']));
    const inGroup = labels('group "a" {\n  |\n}');
    expect(inGroup).toContain('route');
    expect(inGroup).not.toContain('define');
    expect(complete('|').find(({ label }) => label === 'define tier')).toMatchObject({ isSnippet: true });
  });

  test('nothing is offered in comments and patterns', () => {
    expect(labels('# route |')).toEqual([]);
    expect(labels('route when prompt matches r"a|')).toEqual([]);
    expect(labels('route when user == "# |"')).toEqual([]);
  });
});

describe('completion anywhere', () => {
  test.each([...examplePolicies.keys()])('every prefix of %s gives completions without error', (path) => {
    const text = examplePolicies.get(path) ?? '';
    for (let end = 0; end <= text.length; end += 1) {
      const prefix = text.slice(0, end);
      const found = completionsAt(buildSemanticModel(besideExamples(path, prefix)), path, end);
      for (const { replace } of found) {
        expect(replace.start).toBeLessThanOrEqual(end);
        expect(replace.end).toBeGreaterThanOrEqual(end);
      }
    }
  });

  test('what is offered and inserted at a name is accepted by the checker', () => {
    const place = 'let probe = |';
    const refused = complete(place)
      .filter(({ kind, isSnippet }) => (kind === 'signal' || kind === 'property') && !isSnippet)
      .filter(({ insert }) => {
        const { result } = buildSemanticModel(besideExamples('new.route', place.replace('|', insert)));
        return result.diagnostics.some(({ severity }) => severity === 'error');
      });
    expect(refused.map(({ label }) => label)).toEqual([]);
  });
});
