import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import type { CompileResult } from '../compile.ts';

const folder = new URL('../../fixtures/examples/', import.meta.url);
const read = (path: string): string | undefined => {
  try {
    return readFileSync(new URL(path, folder), 'utf8');
  } catch {
    return undefined;
  }
};

const compile = (path: string): CompileResult =>
  compilePolicy({
    path,
    text: read(path) ?? '',
    readFile: read,
    manifests: fixtureManifests,
    resolvePlugin: (name) =>
      name === '@acme/signalbox-carbon' ? { manifest: carbonManifest } : { error: `${name} was not found` },
    nowEpochMs: Date.UTC(2026, 11, 1),
  });

describe('the first line of the language', () => {
  test('compiles to a route over a tier by least_tokens with affinity to the session', () => {
    const text = 'route when complexity > 50 to tier "70B" by least_tokens with affinity session';
    const { program, diagnostics } = compilePolicy({ path: 'a.route', text, manifests: fixtureManifests });
    expect(diagnostics.map(({ code }) => code)).toEqual(['W0506', 'W0514']);
    const [route] = program?.routes ?? [];
    const [step] = route?.steps ?? [];
    expect(route?.label).toBe('route 1');
    expect(route?.when).toMatchObject({
      kind: 'compare',
      op: '>',
      left: { kind: 'signal', index: 0 },
      right: { kind: 'constant', value: 50 },
    });
    expect(program?.signals[0]).toMatchObject({
      key: 'complexity',
      type: 'number',
      known: 'always',
      provider: { kind: 'plugin', plugin: 'fixture-signals' },
    });
    expect(step).toMatchObject({
      kind: 'destination',
      targets: [{ target: { kind: 'tier', name: '70B' } }],
      split: false,
      by: [{ terms: [{ weight: 1, scorer: { kind: 'expression', name: 'least_tokens', direction: 'lowest' } }] }],
      pick: { name: 'best' },
      with: { affinity: { method: 'bounded_rendezvous', bound: 1.25, unit: 'requests' } },
    });
    expect(program?.properties.map(({ key }) => key)).toEqual(['queued_tokens', 'decode_tokens', 'throughput']);
  });
});

describe('example policies check clean', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.route') && name !== 'first-line.route');
  test.each(names)('%s', (name) => {
    const { program, diagnostics } = compile(name);
    expect(diagnostics.filter(({ severity }) => severity !== 'note')).toEqual([]);
    expect(program).toBeDefined();
  });

  test('all of them are there', () => {
    expect(names.length).toBeGreaterThanOrEqual(8);
  });
});
