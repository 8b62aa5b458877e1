import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINE_FED_KEYS, INERT_KEYS, UNFED_KEYS } from '../../packages/core/src/index.ts';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';
import { candidateTruth, codes, compile, tiers, value } from './support/bench.fixture.ts';

const unprovided = [...UNFED_KEYS, ...ENGINE_FED_KEYS];
const where = (condition: string): string => `${tiers({ a: 1 })}default to tier "a" where ${condition}`;
const by = (score: string): string => `${tiers({ a: 1 })}default to tier "a" by ${score}`;

describe('a property that nothing feeds', () => {
  test.each([
    'kv_cache_used < 90%',
    'age < 5s',
    'prefix_hit > 50%',
    'lora_slots_free > 0',
    '"x" in loras',
    'max(kv_cache_used, tier "a") < 90%',
    'has_lora',
    'lora exists',
  ])('is a warning where it is used: %s', (condition) => {
    expect(codes(where(condition), { unprovided })).toEqual(['W0516']);
    expect(codes(where(condition))).toEqual([]);
  });

  test.each(['prefix_cache', 'least_kv_cache', 'lora_affinity'])(
    'so is a scorer that reads nothing else: %s',
    (score) => {
      expect(codes(by(score), { unprovided })).toEqual(['W0516']);
      expect(codes(by(`0.5 * ${score} + 0.5 * least_tokens`), { unprovided })).toEqual(['W0516']);
      expect(codes(by(score))).toEqual([]);
    },
  );

  test.each([
    'longest_match',
    'lmetric',
    'kv_overlap',
    'least_latency',
    'peak_ewma',
    'least_queue',
    'least_running',
    'smallest_batch',
  ])('a scorer that reads more than that is none: %s', (score) => {
    expect(codes(by(score), { unprovided })).toEqual([]);
  });

  test('stays one where a plugin provides another', () => {
    const manifest = {
      manifestVersion: 1 as const,
      name: 'hits',
      apiVersion: 1 as const,
      entries: [{ kind: 'property' as const, name: 'prefix_hit', type: 'percent' as const, doc: 'Its own.' }],
    };
    expect(codes(by('prefix_cache'), { unprovided, manifests: [manifest] })).not.toContain('W0516');
  });

  test('is unknown without reports of engines, and only those are', () => {
    for (const key of unprovided.filter((one) => one.startsWith('candidate.'))) {
      const name = key.slice('candidate.'.length);
      expect(candidateTruth(`${name} exists`, ''), name).toBe('false');
    }
    for (const name of [
      'queue_depth',
      'running',
      'batch_size',
      'inflight_requests',
      'queued_tokens',
      'decode_tokens',
      'weight',
    ]) {
      expect(candidateTruth(`${name} exists`, ''), name).toBe('true');
    }
    expect(value('lora')).toBeUndefined();
  });

  test('is known once an engine reports', () => {
    const fleet = { x: { kvCacheUsed: 0.5, loras: ['l'], loraSlotsFree: 1 } };
    for (const key of ENGINE_FED_KEYS.filter((one) => one.startsWith('candidate.'))) {
      expect(candidateTruth(`${key.slice('candidate.'.length)} exists`, '', { fleet }), key).toBe('true');
    }
  });
});

describe('the gateway', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-semantics-'));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  const findings = (text: string): readonly string[] => {
    writeFileSync(join(folder, 'policy.route'), text);
    return createPolicyLoader({ cwd: folder, allowPlugins: [] })
      .load('policy.route')
      .diagnostics.map(({ code }) => code);
  };

  test('warns of what it does not feed', () => {
    expect(findings(where('kv_cache_used < 90%'))).toEqual(['W0516']);
    expect(findings(where('queue_depth < 5 and load < 95%'))).toEqual([]);
  });

  test('finds nothing in the example policies', () => {
    const examples = fileURLToPath(new URL('../../examples/policies/', import.meta.url));
    const loader = createPolicyLoader({ cwd: examples, allowPlugins: [] });
    for (const file of readdirSync(examples).filter((name) => name.endsWith('.route'))) {
      expect(loader.load(file).diagnostics, file).toEqual([]);
    }
  });
});

describe('what may be written and this build does not act on', () => {
  const two = tiers({ a: 1, b: 1 });
  const plain = 'default to tier "a"';

  test.each([
    ['hedge', `${two}${plain} with hedge 800ms`],
    ['mirror', `${two}${plain} with mirror 1% tier "b"`],
    ['prefill', `${two}${plain} with prefill tier "b"`],
    ['discovery', `${two}define discovery "k8s" { service: "x" }\n${plain}`],
    ['profile', `${two}define profile "p" { decode_rate: 5 }\n${plain}`],
    ['cors', `define gateway { cors: "*" }\n${two}${plain}`],
    ['shared', `define gateway { shared: { url: "redis://h:6379" } }\n${two}${plain}`],
    ['workers', `define gateway { workers: 2 }\n${two}${plain}`],
    ['role', `${tiers({ a: 1 }, 'role: "prefill"')}${plain}`],
  ])('is a warning at its place: %s', (name, text) => {
    const found = compile(text, { unprovided: INERT_KEYS }).diagnostics;
    const [finding] = found.filter(({ code }) => code === 'W0521');
    expect(finding).toMatchObject({ severity: 'warning', message: `\`${name}\` is not acted on in this build` });
    expect(finding?.help).toBeTruthy();
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(codes(text)).not.toContain('W0521');
  });

  test('is none where what is written is what happens anyway', () => {
    const text = `define gateway { workers: 1 }\n${tiers({ a: 1 }, 'role: "both"')}${plain}`;
    expect(codes(text, { unprovided: INERT_KEYS })).toEqual([]);
  });
});
