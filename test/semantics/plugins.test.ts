import { describe, expect, test } from 'vitest';
import { createCore } from '../../packages/core/src/index.ts';
import { definePlugin, toManifest } from '../../packages/plugin-api/src/index.ts';
import type { ParsedRequest, Plugin } from '../../packages/plugin-api/src/index.ts';
import type { CompileInput } from '../../packages/policy/src/index.ts';
import { parsedRequest } from '../../packages/testkit/src/index.ts';
import { compile, endpoints, errors, codes, inBothModes, MODES, plugins } from './support/bench.fixture.ts';
import { fakeTime } from './support/fake-time.fixture.ts';

const extras: Plugin = definePlugin({
  name: 'extras',
  apiVersion: 1,
  options: {
    type: 'object',
    properties: { refresh: { type: 'number', default: 300, exclusiveMinimum: 0, 'x-unit': 'duration' } },
    additionalProperties: false,
  },
  provides: {
    signal: {
      length_class: {
        doc: 'How long the prompt is.',
        type: { enum: ['short', 'long'] },
        setup: () => ({ evaluate: (request: ParsedRequest) => (request.promptChars > 20 ? 'long' : 'short') }),
      },
      late: {
        doc: 'Comes late or not at all.',
        type: 'number',
        budgetMs: 5,
        setup: () => ({ evaluate: () => new Promise<number>(() => {}) }),
      },
    },
    property: {
      headroom: { doc: 'Requests that still fit.', type: 'count', expression: 'max_requests - inflight_requests' },
    },
    filter: {
      roomy: {
        doc: 'Has room for so many.',
        options: {
          type: 'object',
          properties: { least: { type: 'number', default: 2, minimum: 0 } },
          additionalProperties: false,
        },
        positional: ['least'],
        expression: 'max_requests - inflight_requests >= least',
      },
    },
    scorer: {
      thrower: {
        doc: 'Throws.',
        setup: () => ({
          score() {
            throw new Error('broken');
          },
        }),
      },
      strict_thrower: {
        doc: 'Throws, and the request with it.',
        onError: 'fail',
        setup: () => ({
          score() {
            throw new Error('broken');
          },
        }),
      },
      nonsense: {
        doc: 'Gives no numbers.',
        setup: () => ({
          score(_request, candidates, out) {
            out.fill(Number.NaN, 0, candidates.length);
          },
        }),
      },
      beyond: {
        doc: 'Gives numbers beyond [0, 1].',
        reads: ['candidate.declared_order'],
        setup: () => ({
          score(_request, candidates, out) {
            const order = candidates.column('candidate.declared_order');
            for (let i = 0; i < candidates.length; i++) out[i] = order[candidates.slots[i] ?? 0] === 0 ? -5 : 5;
          },
        }),
      },
    },
  },
});
const from = (plugin: Plugin | { readonly error: string }): Partial<CompileInput> => ({
  resolvePlugin: () => ('error' in plugin ? plugin : { manifest: toManifest(plugin) }),
});
const fleet = endpoints({ x: 'max_requests: 3', y: 'max_requests: 10', z: 'max_requests: 5' });
const use = 'use "extras" as more { refresh: 5m }\n';

/** Where a policy that uses `extras` sends a request, in each mode. */
function decide(rest: string, messages: string = 'hello'): string {
  const result = compile(`${use}${fleet}${rest}`, from(extras));
  if (result.program === undefined)
    throw new Error(result.diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  const { program } = result;
  const [generated, interpreted] = MODES.map((evaluators) => {
    const time = fakeTime();
    const core = createCore({ clock: time, scheduler: time, evaluators, seed: 7 });
    core.activate(core.prepare(program, [...plugins, extras]));
    const outcome = core.router.route({
      id: 'x',
      parsed: parsedRequest({ model: 'm', messages }),
      headers: {},
      receivedAtMs: 0,
      deadlineMs: Infinity,
    });
    core.close();
    if (outcome instanceof Promise) return 'later';
    return outcome.kind === 'forward' ? outcome.attempt.endpoint : `${outcome.status} ${outcome.code}`;
  });
  expect(interpreted).toBe(generated);
  return generated ?? '';
}

describe('what a plugin provides', () => {
  test('signals, properties, filters and scorers stand where the built-in ones do, under the alias', () => {
    expect(
      decide(
        'route when more.length_class == "long" to endpoint "y"\ndefault to endpoint "x"',
        'a prompt of some length',
      ),
    ).toBe('y');
    expect(decide('route when more.length_class == "long" to endpoint "y"\ndefault to endpoint "x"')).toBe('x');
    expect(decide('default to tier "t" by highest(more.headroom)')).toBe('y');
    expect(decide('default to tier "t" where more.headroom < 5')).toBe('x');
    expect(decide('default to tier "t" where more.roomy(6)')).toBe('y');
    expect(decide('default to tier "t" where not more.roomy(least: 4)')).toBe('x');
  });

  test('without an alias under their own names', () => {
    const text = `use "extras"\n${fleet}default to tier "t" where headroom < 5 and length_class == "short"`;
    expect(errors(text, from(extras))).toEqual([]);
  });

  test('an enumeration of a plugin is checked as any other', () => {
    const text = `${use}${fleet}route when more.length_class == "lng" to tier "t"\ndefault reject`;
    expect(errors(text, from(extras))).toEqual(['E0304']);
  });

  test('an unknown name of a plugin is an error with a suggestion', () => {
    const text = `${use}${fleet}default to tier "t" where more.headrom < 5`;
    const [finding] = compile(text, from(extras)).diagnostics;
    expect(finding?.fix?.edits[0]?.text).toContain('headroom');
  });
});

describe('options', () => {
  const options = (object: string): readonly string[] =>
    errors(`use "extras" as more ${object}\n${fleet}default to tier "t" where more.headroom < 5`, from(extras));
  test('take unit literals and are checked by the schema, at the key', () => {
    expect(options('{ refresh: 5m }')).toEqual([]);
    expect(options('{ }')).toEqual([]);
    expect(options('{ refresh: 0s }')).toEqual(['E0508']);
    expect(options('{ refresh: 5MB }')).toEqual(['E0506']);
    expect(options('{ refrsh: 5m }')).toEqual(['E0505']);
    const text = `use "extras" as more { refrsh: 5m }\n${fleet}default to tier "t" where more.headroom < 5`;
    const [finding] = compile(text, from(extras)).diagnostics;
    expect(text.slice(finding?.span.start, finding?.span.end)).toBe('refrsh');
  });
});

describe('packages', () => {
  test('one that is not found, not allowed, invalid or of another API is an error of its own', () => {
    const text = `${use}${fleet}default to tier "t" where more.headroom < 5`;
    expect(errors(text, from({ error: 'not here' }))).toEqual(['E0501']);
    for (const [reason, code] of [
      ['not_found', 'E0501'],
      ['not_allowed', 'E0502'],
      ['invalid', 'E0503'],
      ['api_version', 'E0504'],
    ] as const) {
      expect(errors(text, { resolvePlugin: () => ({ error: { reason, message: 'm' } }) })).toEqual([code]);
    }
    expect(errors(text, { resolvePlugin: () => ({ manifest: { ...toManifest(extras), apiVersion: 2 } }) })).toEqual([
      'E0504',
    ]);
  });

  test('one of which nothing is used is a warning; an alias twice an error', () => {
    expect(codes(`${use}${fleet}default to tier "t"`, from(extras))).toEqual(['W0508']);
    expect(errors(`${use}${use}${fleet}default to tier "t" where more.headroom < 5`, from(extras))).toEqual(['E0220']);
  });

  test('a first-party name that this build lacks is an error of its own', () => {
    expect(errors(`${fleet}default to tier "t" by session_affinity`)).toEqual(['E0232']);
  });
});

describe('failures', () => {
  test('a scorer that throws is neutral for the request', () => {
    expect(decide('default to tier "t" by more.thrower then declared_order')).toBe('x');
    expect(decide('default to tier "t" by 0.9 * more.thrower + 0.1 * highest(max_requests)')).toBe('y');
  });

  test('with `on_error: fail` the request is refused', () => {
    expect(decide('default to tier "t" by more.strict_thrower')).toBe('500 plugin_failed');
  });

  test('what is no number counts as 0, and values are clamped to [0, 1]', () => {
    expect(decide('default to tier "t" by more.nonsense then declared_order')).toBe('x');
    expect(decide('default to tier "t" by 0.9 * more.nonsense + 0.1 * highest(max_requests)')).toBe('y');
    // −5 counts as 0 and 5 as 1: x has 0.8, z 0.2 and 0.8 · 5 ÷ 7.
    expect(decide('default to tier "t" by 0.2 * more.beyond + 0.8 * lowest(max_requests)')).toBe('x');
    expect(decide('default to tier "t" by 0.6 * more.beyond + 0.4 * lowest(max_requests)')).toBe('z');
  });

  test('a signal that is late is unknown', async () => {
    const result = compile(
      `${use}${fleet}route when more.late > 5 to endpoint "x"\nroute when not (more.late > 5) to endpoint "y"\ndefault to endpoint "z"`,
      from(extras),
    );
    if (result.program === undefined) throw new Error('no program');
    for (const evaluators of MODES) {
      const time = fakeTime();
      const core = createCore({ clock: time, scheduler: time, evaluators });
      core.activate(core.prepare(result.program, [...plugins, extras]));
      const outcome = core.router.route({
        id: 'x',
        parsed: parsedRequest({ model: 'm' }),
        headers: {},
        receivedAtMs: 0,
        deadlineMs: Infinity,
      });
      time.advance(5);
      expect(await outcome).toMatchObject({ attempt: { endpoint: 'z' } });
      core.close();
    }
  });
});

describe('explain', () => {
  test('goes where the next request goes, and advances nothing', async () => {
    await inBothModes(`${endpoints({ x: '', y: '', z: '' })}default to tier "t" by round_robin`, (made) => {
      for (let i = 0; i < 6; i++) {
        const next = made.explain().endpoint;
        expect(made.explain().endpoint).toBe(next);
        expect(made.send()).toBe(next);
      }
      expect(made.core.status()).toMatchObject({ leasesOpen: 0, leasesStarted: 6 });
    });
  });

  test('says which part of a condition held, and what removed each endpoint', async () => {
    await inBothModes(
      `${endpoints({ x: 'zone: "a"', y: 'zone: "b"', z: '', full: 'max_requests: 1, zone: "a"' })}route "r" when stream and max_tokens > 5 to tier "t"\ndefault to tier "t" where zone == "a" by least_tokens`,
      (made) => {
        const explained = made.explain({ stream: true });
        expect(explained.routes[0]).toMatchObject({
          label: 'r',
          matched: false,
          when: {
            text: 'stream and max_tokens > 5',
            result: null,
            leaves: [
              { text: 'stream', result: true },
              { text: 'max_tokens > 5', result: null },
            ],
          },
        });
        expect(Object.fromEntries(explained.candidates.map(({ endpoint, verdict }) => [endpoint, verdict]))).toEqual({
          x: 'picked',
          y: 'where',
          z: 'where',
          full: 'capacity',
        });
      },
      { fleet: { full: { inflightRequests: 1 } } },
    );
  });
});
