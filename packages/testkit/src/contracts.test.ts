import { API_VERSION } from '@signalbox/plugin-api';
import type {
  AdmissionDefinition,
  FilterDefinition,
  OptionSchema,
  ParsedRequest,
  PickerDefinition,
  Plugin,
  PropertyDefinition,
  Provides,
  ScorerDefinition,
  ScorerInstance,
  SignalDefinition,
} from '@signalbox/plugin-api';
import { describe, expect, test } from 'vitest';
import {
  admissionContract,
  checkPlugin,
  ContractViolation,
  filterContract,
  pickerContract,
  pluginContract,
  propertyContract,
  scorerContract,
  signalContract,
} from './index.ts';
import type { Check } from './index.ts';

/** A plugin without definePlugin's own checks, since the ones here break the contract on purpose. */
function pluginOf(provides: Provides, more: Partial<Plugin> = {}): Plugin {
  return { name: 'subject', apiVersion: API_VERSION, provides, ...more };
}

/** Messages of the checks that fail, by the check's name without its subject. */
function failuresOf(checks: readonly Check[]): { readonly [name: string]: string } {
  const failures: { [name: string]: string } = {};
  for (const { name, run } of checks) {
    try {
      run();
    } catch (error) {
      if (!(error instanceof ContractViolation)) failures[`threw: ${name}`] = String(error);
      else failures[name.slice(name.indexOf(': ') + 2)] = error.message;
    }
  }
  return failures;
}

const reads = ['candidate.load', 'request.prompt_tokens'];

/** A scorer that keeps the contract: 1 − load, unknown load unknown. */
const good: ScorerDefinition = {
  doc: 'Free share.',
  reads,
  setup: () => ({
    score(request, candidates, out) {
      const load = candidates.column('candidate.load');
      request.number('request.prompt_tokens');
      for (let i = 0; i < candidates.length; i++) out[i] = 1 - (load[candidates.slots[i] ?? 0] ?? Number.NaN);
    },
  }),
};

function scorer(score: ScorerInstance['score'], more: Partial<ScorerDefinition> = {}): Plugin {
  return pluginOf({ scorer: { s: { doc: 'Bad.', reads, setup: () => ({ score }), ...more } } });
}

const failedScorer = (score: ScorerInstance['score'], more: Partial<ScorerDefinition> = {}): readonly string[] =>
  Object.keys(failuresOf(scorerContract(scorer(score, more), 's')));

test('a scorer that keeps the contract passes every check, and its time is told', () => {
  const checks = scorerContract(pluginOf({ scorer: { s: good } }), 's');
  expect(failuresOf(checks)).toEqual({});
  expect(checks.length).toBeGreaterThanOrEqual(12);
  const notes = checks.map(({ run }) => run()?.note).filter((note) => note !== undefined);
  expect(notes).toEqual([expect.stringMatching(/^[\d.]+ µs for 1,000 candidates/)]);
});

describe('a bad scorer fails the check it breaks', () => {
  const each =
    (write: (i: number, slot: number) => number): ScorerInstance['score'] =>
    (_request, candidates, out) => {
      for (let i = 0; i < candidates.length; i++) out[i] = write(i, candidates.slots[i] ?? 0);
    };

  test('a value above 1', () => {
    expect(failedScorer(each(() => 1.5))).toContain('values are in range');
    expect(
      failedScorer(
        each(() => 1.5),
        { cost: true },
      ),
    ).toEqual([]);
  });

  test('an infinite value, even as a cost', () => {
    expect(
      failedScorer(
        each(() => Infinity),
        { cost: true },
      ),
    ).toContain('values are in range');
  });

  test('a position left out', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        for (let i = 0; i < candidates.length - 1; i++) out[i] = 0.5;
      }),
    ).toContain('writes a value for each candidate and nothing behind them');
  });

  test('a position too many', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        for (let i = 0; i <= candidates.length; i++) out[i] = 0.5;
      }),
    ).toContain('writes a value for each candidate and nothing behind them');
  });

  test('random numbers of its own', () => {
    expect(failedScorer(each(() => Math.random()))).toContain('is deterministic');
  });

  test('instances that differ', () => {
    let instances = 0;
    const plugin = pluginOf({
      scorer: {
        s: {
          doc: 'Bad.',
          reads,
          setup() {
            const own = 1 / (1 + ++instances);
            return { score: each(() => own) };
          },
        },
      },
    });
    expect(Object.keys(failuresOf(scorerContract(plugin, 's')))).toContain('is deterministic');
  });

  test('a value that depends on the position', () => {
    expect(failedScorer(each((i) => 1 / (1 + i)))).toContain('does not depend on the order of the candidates');
  });

  test('a changed column', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        const load = candidates.column('candidate.load') as unknown as number[];
        for (let i = 0; i < candidates.length; i++) {
          load[candidates.slots[i] ?? 0] = 0;
          out[i] = 0.5;
        }
      }),
    ).toContain('changes neither columns, slots nor options');
  });

  test('sorted slots', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        candidates.slots.sort();
        out.fill(0.5, 0, candidates.length);
      }),
    ).toContain('changes neither columns, slots nor options');
  });

  test('something for an empty list', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        out[0] = 0.5;
        out.fill(0.5, 0, candidates.length);
      }),
    ).toContain('takes an empty list and a single candidate');
  });

  test('a division by the number of the others', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        out.fill(1 / (candidates.length - 1), 0, candidates.length);
      }),
    ).toContain('takes an empty list and a single candidate');
  });

  test('an unknown property taken for a number', () => {
    const failed = failedScorer((_request, candidates, out) => {
      const load = candidates.column('candidate.load');
      for (let i = 0; i < candidates.length; i++) {
        const value = load[candidates.slots[i] ?? 0] ?? Number.NaN;
        out[i] = value >= 0 ? 1 - value : Infinity;
      }
    });
    expect(failed).toEqual(['takes unknown signals and properties']);
  });

  test('a key that was not declared', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        candidates.column('candidate.power');
        out.fill(0.5, 0, candidates.length);
      }),
    ).toContain('reads only what it declares');
  });

  test('state kept from call to call', () => {
    const plugin = pluginOf({
      scorer: {
        s: {
          doc: 'Bad.',
          reads,
          setup() {
            let calls = 0;
            return {
              score(_request, candidates, out) {
                calls++;
                out.fill(calls > 30 ? 1 : 0.5, 0, candidates.length);
              },
            };
          },
        },
      },
    });
    expect(Object.keys(failuresOf(scorerContract(plugin, 's')))).toContain('evaluating changes no state');
  });

  test('a close that throws the second time', () => {
    const plugin = pluginOf({
      scorer: {
        s: {
          doc: 'Bad.',
          reads,
          setup() {
            let closed = false;
            return {
              score: each(() => 0.5),
              close() {
                if (closed) throw new Error('closed twice');
                closed = true;
              },
            };
          },
        },
      },
    });
    expect(failuresOf(scorerContract(plugin, 's'))).toEqual({
      'threw: scorer s: instances are independent and close is idempotent': 'Error: closed twice',
    });
  });

  test('instances that share what close ends', () => {
    let open = true;
    const plugin = pluginOf({
      scorer: {
        s: {
          doc: 'Bad.',
          reads,
          setup() {
            open = true;
            return {
              score: each(() => (open ? 0.5 : 0)),
              close() {
                open = false;
              },
            };
          },
        },
      },
    });
    expect(Object.keys(failuresOf(scorerContract(plugin, 's')))).toContain(
      'instances are independent and close is idempotent',
    );
  });

  test('a time beyond the ceiling', () => {
    expect(
      failedScorer((_request, candidates, out) => {
        const until = performance.now() + (candidates.length === 1000 ? 60 : 0);
        while (performance.now() < until);
        out.fill(0.5, 0, candidates.length);
      }),
    ).toEqual(['time per 1,000 candidates']);
  });

  test('an ending that poisons later scores', () => {
    const plugin = pluginOf({
      scorer: {
        s: {
          doc: 'Bad.',
          reads,
          cost: true,
          setup() {
            let total = 0;
            return {
              score: each(() => (Number.isNaN(total) ? Infinity : total)),
              ended(_slot, outcome) {
                total += outcome.ttftMs;
              },
            };
          },
        },
      },
    });
    expect(Object.keys(failuresOf(scorerContract(plugin, 's')))).toEqual([
      'takes picks and endings of any slot, and still gives values in range',
    ]);
  });
});

test('an expression passes by its manifest form, and the suite says that it looked no further', () => {
  const checks = scorerContract(
    pluginOf({ scorer: { s: { doc: 'Load.', reads: ['candidate.load'], expression: '1 - load' } } }),
    's',
  );
  expect(failuresOf(checks)).toEqual({});
  expect(checks.map(({ name }) => name).join('\n')).toMatch(/its expression runs in a compiled policy only/);
  expect(checks.map(({ run }) => run()?.note).join()).toMatch(/policy test/);
});

describe('filters', () => {
  const filter = (value: number): Plugin => {
    const definition: FilterDefinition = {
      doc: 'Filter.',
      reads,
      setup: () => ({ filter: (_request, candidates, out) => void out.fill(value, 0, candidates.length) }),
    };
    return pluginOf({ filter: { f: definition } });
  };

  test('0, 1 and 2 are answers', () => {
    for (const value of [0, 1, 2]) expect(failuresOf(filterContract(filter(value), 'f'))).toEqual({});
  });

  test('3 is none', () => {
    expect(Object.keys(failuresOf(filterContract(filter(3), 'f')))).toContain('values are in range');
  });
});

describe('properties', () => {
  const property = (value: number, type: PropertyDefinition['type'] = 'number'): Plugin =>
    pluginOf({
      property: {
        p: {
          doc: 'Property.',
          type,
          reads,
          setup: () => ({ fill: (_request, candidates, out) => void out.fill(value, 0, candidates.length) }),
        },
      },
    });

  test('a finite number and NaN pass', () => {
    for (const value of [-5, 1e9, Number.NaN]) expect(failuresOf(propertyContract(property(value), 'p'))).toEqual({});
  });

  test('an infinite value and a type that is no number fail', () => {
    expect(Object.keys(failuresOf(propertyContract(property(Infinity), 'p')))).toContain('values are in range');
    expect(Object.keys(failuresOf(propertyContract(property(1, 'string'), 'p')))).toContain('its type is numeric');
  });

  test('learning that gives infinite values fails', () => {
    const plugin = pluginOf({
      property: {
        p: {
          doc: 'Property.',
          type: 'number',
          reads,
          setup() {
            let factor = 1;
            return {
              fill: (_request, candidates, out) => void out.fill(factor, 0, candidates.length),
              ended(_slot, outcome) {
                if (Number.isNaN(outcome.durationMs)) factor = Infinity;
              },
            };
          },
        },
      },
    });
    expect(Object.keys(failuresOf(propertyContract(plugin, 'p')))).toEqual([
      'takes endings of any slot, and still gives values in range',
    ]);
  });
});

describe('pickers', () => {
  const picker = (definition: Partial<PickerDefinition> & Pick<PickerDefinition, 'setup'>): readonly string[] =>
    Object.keys(failuresOf(pickerContract(pluginOf({ picker: { p: { doc: 'Picker.', ...definition } } }), 'p')));

  test('one without sample and pick leaves all to the host', () => {
    expect(picker({ setup: () => ({}) })).toEqual([]);
  });

  test('the first k positions are a fair answer', () => {
    const setup: PickerDefinition['setup'] = () => ({
      pick(_scores, candidates, _random, k, out) {
        const count = Math.min(k, candidates.length);
        for (let i = 0; i < count; i++) out[i] = i;
        return count;
      },
    });
    expect(picker({ setup })).toEqual([]);
  });

  test('a position twice, one out of range, or more than asked for', () => {
    const twice: PickerDefinition['setup'] = () => ({
      pick: (_scores, candidates, _random, k, out) => (out.fill(0, 0, k), Math.min(k, candidates.length)),
    });
    const outside: PickerDefinition['setup'] = () => ({
      sample: (candidates, _random, out) => ((out[0] = candidates.length), Math.min(1, candidates.length)),
    });
    const tooMany: PickerDefinition['setup'] = () => ({
      pick(_scores, candidates, _random, _k, out) {
        for (let i = 0; i < candidates.length; i++) out[i] = i;
        return candidates.length;
      },
    });
    for (const setup of [twice, outside, tooMany])
      expect(picker({ setup })).toContain('gives distinct positions, and no more than asked for');
  });

  test('nothing where there are candidates', () => {
    expect(picker({ setup: () => ({ sample: () => 0 }) })).toContain(
      'gives at least one position where there is a candidate',
    );
  });

  test('its own random numbers', () => {
    const setup: PickerDefinition['setup'] = () => ({
      sample: (candidates, _random, out) => (
        (out[0] = Math.floor(Math.random() * candidates.length)),
        Math.min(1, candidates.length)
      ),
    });
    expect(picker({ setup })).toContain('the same seed gives the same choice');
  });

  test('changed scores', () => {
    const setup: PickerDefinition['setup'] = () => ({
      pick: (scores, candidates, _random, _k, out) => (scores.fill(0), (out[0] = 0), Math.min(1, candidates.length)),
    });
    expect(picker({ setup })).toContain('changes neither scores, columns, slots nor options');
  });

  test('a position of an empty list', () => {
    const setup: PickerDefinition['setup'] = () => ({ sample: (_candidates, _random, out) => ((out[0] = 0), 1) });
    expect(picker({ setup })).toContain('takes an empty list');
  });

  test('fewer places than asked for when all scores are zero', () => {
    const setup: PickerDefinition['setup'] = () => ({
      pick(scores, candidates, _random, k, out) {
        let count = 0;
        for (let i = 0; i < candidates.length && count < k; i++) if ((scores[i] ?? 0) > 0) out[count++] = i;
        return count;
      },
    });
    expect(picker({ setup })).toEqual(['takes equal scores and scores of zero']);
  });

  test('a close that throws the second time, and a time beyond the ceiling', () => {
    let closed = 0;
    const throwing: PickerDefinition['setup'] = () => ({
      close() {
        if (++closed > 1) throw new Error('closed twice');
      },
    });
    expect(picker({ setup: throwing })).toEqual(['threw: picker p: close is idempotent']);
    const slow: PickerDefinition['setup'] = () => ({
      sample(candidates, _random, out) {
        const until = performance.now() + (candidates.length === 1000 ? 60 : 0);
        while (performance.now() < until);
        if (candidates.length > 0) out[0] = 0;
        return Math.min(1, candidates.length);
      },
    });
    expect(picker({ setup: slow })).toEqual(['time per 1,000 candidates']);
  });
});

describe('signals', () => {
  const signal = (definition: Partial<SignalDefinition>): readonly string[] =>
    Object.keys(
      failuresOf(
        signalContract(
          pluginOf({
            signal: { s: { doc: 'Signal.', type: 'number', setup: () => ({ evaluate: () => 1 }), ...definition } },
          }),
          's',
        ),
      ),
    );

  test('values of the declared type pass, and so does unknown', () => {
    expect(signal({})).toEqual([]);
    expect(signal({ setup: () => ({ evaluate: () => Number.NaN }) })).toEqual([]);
    expect(signal({ type: 'string', setup: () => ({ evaluate: () => undefined }) })).toEqual([]);
    expect(signal({ type: { enum: ['a', 'b'] }, setup: () => ({ evaluate: () => 'b' }) })).toEqual([]);
    expect(signal({ type: { list: 'string' }, setup: () => ({ evaluate: () => ['x'] }) })).toEqual([]);
  });

  const name = 'gives values of its type, or unknown';
  test.each<readonly [string, Partial<SignalDefinition>]>([
    ['a text for a number', { setup: () => ({ evaluate: () => 'x' }) }],
    ['undefined for a number', { setup: () => ({ evaluate: () => undefined }) }],
    ['an infinite number', { setup: () => ({ evaluate: () => Infinity }) }],
    ['a number for a bool', { type: 'bool' }],
    ['a word outside the enum', { type: { enum: ['a'] }, setup: () => ({ evaluate: () => 'z' }) }],
    ['a text for a list', { type: { list: 'string' }, setup: () => ({ evaluate: () => 'z' }) }],
    ['unknown though declared always known', { known: 'always', setup: () => ({ evaluate: () => Number.NaN }) }],
    ['a promise without a budget', { setup: () => ({ evaluate: () => Promise.resolve(1) }) }],
  ])('%s fails', (_what, definition) => {
    expect(signal(definition)).toContain(name);
  });

  test('a request without text that is not expected', () => {
    const failed = signal({
      setup: () => ({ evaluate: (request: ParsedRequest) => (request.lastUserMessage() as string).length }),
    });
    expect(failed).toContain(`threw: signal s: ${name}`);
  });

  test('state from one request to the next', () => {
    const setup: SignalDefinition['setup'] = () => {
      let count = 0;
      return { evaluate: () => ++count };
    };
    expect(signal({ setup })).toEqual(['is deterministic and keeps no state between requests']);
  });

  test('a close that throws the second time, and a time beyond the ceiling', () => {
    const throwing: SignalDefinition['setup'] = () => {
      let closed = false;
      return {
        evaluate: () => 1,
        close() {
          if (closed) throw new Error('closed twice');
          closed = true;
        },
      };
    };
    expect(signal({ setup: throwing })).toEqual([
      'threw: signal s: close is idempotent, and leaves other instances alone',
    ]);
    const slow: SignalDefinition['setup'] = () => ({
      evaluate(request: ParsedRequest) {
        const until = performance.now() + (request.promptChars > 1000 && request.promptChars < 1100 ? 60 : 0);
        while (performance.now() < until);
        return 1;
      },
    });
    expect(signal({ setup: slow })).toEqual(['time for 1 KB of text']);
  });

  test('an asynchronous signal needs a budget and cannot be always known', () => {
    const late: Partial<SignalDefinition> = { setup: () => ({ evaluate: () => Promise.resolve(1) }) };
    expect(signal({ ...late, budgetMs: 20 })).toEqual([]);
    expect(signal({ ...late, budgetMs: 0 })).toEqual(['has a budget above 0 and is not declared always known']);
    expect(signal({ ...late, budgetMs: 20, known: 'always' })).toEqual([
      'has a budget above 0 and is not declared always known',
    ]);
  });
});

describe('admission', () => {
  const admission = (holds: ReturnType<AdmissionDefinition['setup']>['holds'], close?: () => void): readonly string[] =>
    Object.keys(
      failuresOf(
        admissionContract(
          pluginOf({
            admission: {
              a: {
                doc: 'Predicate.',
                reads,
                arguments: [{ name: 'slo', kind: 'slo' }],
                setup: () => (close === undefined ? { holds } : { holds, close }),
              },
            },
          }),
          'a',
        ),
      ),
    );

  test('true, false and undefined are answers', () => {
    for (const answer of [true, false, undefined]) expect(admission(() => answer)).toEqual([]);
  });

  test('anything else is none', () => {
    expect(admission(() => 1 as never)).toContain('answers true, false or unknown, the same each time');
  });

  test('an answer by chance', () => {
    expect(admission(() => Math.random() < 0.5)).toContain('answers true, false or unknown, the same each time');
  });

  test('an answer by the first candidate alone', () => {
    expect(
      admission((_request, candidates) => (candidates.column('candidate.load')[candidates.slots[0] ?? 0] ?? 0) > 0.5),
    ).toEqual(['does not depend on the order of the candidates']);
  });

  test('sorted slots', () => {
    expect(admission((_request, candidates) => candidates.slots.sort().length > 0)).toContain(
      'changes neither columns nor slots',
    );
  });

  test('an unknown value that it cannot take', () => {
    const failed = admission((_request, candidates) => {
      const load = candidates.column('candidate.load');
      for (const slot of candidates.slots) if (Number.isNaN(load[slot])) throw new Error('no load');
      return true;
    });
    expect(failed).toEqual(['threw: admission a: takes an empty pool and unknown values']);
  });

  test('a key that was not declared', () => {
    expect(admission((_request, candidates) => (candidates.column('candidate.power'), true))).toEqual([
      'reads only what it declares',
    ]);
  });

  test('a close that throws the second time, and a time beyond the ceiling', () => {
    let closed = 0;
    const throwing = admission(
      () => true,
      () => {
        if (++closed > 1) throw new Error('closed twice');
      },
    );
    expect(throwing).toEqual(['threw: admission a: close is idempotent']);
    const slow = admission((_request, candidates) => {
      const until = performance.now() + (candidates.length === 1000 ? 55 : 0);
      while (performance.now() < until);
      return true;
    });
    expect(slow).toEqual(['time per 1,000 candidates']);
  });
});

describe('checkPlugin', () => {
  const withOptions = (options: OptionSchema, more: Partial<ScorerDefinition> = {}): readonly string[] =>
    checkPlugin(pluginOf({ scorer: { s: { ...good, options, ...more } } })).map(
      ({ where, message }) => `${where}: ${message}`,
    );
  const closed = { type: 'object', additionalProperties: false } as const;

  test('a good plugin has no problems', () => {
    expect(
      withOptions({ ...closed, properties: { a: { type: 'number', default: 1 } } }, { positional: ['a'] }),
    ).toEqual([]);
  });

  test.each<readonly [RegExp, OptionSchema, Partial<ScorerDefinition>]>([
    [/lack "additionalProperties": false/, { type: 'object', properties: {} }, {}],
    [/lack "additionalProperties": false/, { ...closed, properties: { inner: { type: 'object' } } }, {}],
    [/not of type "object"/, { type: 'number' }, {}],
    [
      /default of option a does not fit/,
      { ...closed, properties: { a: { type: 'number', minimum: 0, default: -1 } } },
      {},
    ],
    [
      /default of option a does not fit/,
      { ...closed, properties: { a: { type: 'string', enum: ['x'], default: 'y' } } },
      {},
    ],
    [
      /default of option inner.b does not fit/,
      { ...closed, properties: { inner: { ...closed, properties: { b: { type: 'integer', default: 1.5 } } } } },
      {},
    ],
    [/require "z", which is no property/, { ...closed, required: ['z'] }, {}],
    [
      /required and has a default/,
      { ...closed, required: ['a'], properties: { a: { type: 'number', default: 1 } } },
      {},
    ],
    [/positional "b" is no option/, { ...closed, properties: { a: { type: 'number' } } }, { positional: ['b'] }],
    [/reads "load", which is no key/, closed, { reads: ['load'] }],
  ])('%s', (message, options, more) => {
    expect(withOptions(options, more)).toEqual([expect.stringMatching(message)]);
  });

  test('a manifest that JSON changes', () => {
    expect(
      checkPlugin(
        pluginOf({
          scorer: { s: { ...good, options: { ...closed, properties: { a: { type: 'number', maximum: Infinity } } } } },
        }),
      ),
    ).toEqual([{ where: 'plugin', message: expect.stringMatching(/changes on its way through JSON/) }]);
  });

  test('fields that a kind needs', () => {
    const provides = {
      signal: { s: { doc: 'S.', setup: () => ({ evaluate: () => 1 }) } },
      picker: { p: { doc: 'P.', expression: '1' } },
      admission: { a: { doc: 'A.', setup: () => ({ holds: () => true }) } },
    } as unknown as Provides;
    expect(checkPlugin(pluginOf(provides)).map(({ where, message }) => `${where} ${message}`)).toEqual([
      'signal s has no type',
      'picker p a picker cannot be given as an expression; write a setup function',
      'admission a has no list of arguments',
    ]);
  });

  test('the suite of an entry fails with what checkPlugin says of it', () => {
    const plugin = pluginOf({ scorer: { s: { ...good, reads: [...reads, 'load'] } } });
    expect(failuresOf(scorerContract(plugin, 's'))).toEqual({
      'manifest, options and reads are well formed': expect.stringMatching(/reads "load"/),
    });
  });
});

test('asking for a name that is not there says what is', () => {
  expect(() => scorerContract(pluginOf({ scorer: { s: good } }), 'z')).toThrow(
    'plugin "subject" provides no scorer "z"; it provides s',
  );
  expect(() => filterContract(pluginOf({ scorer: { s: good } }), 'z')).toThrow('it provides no filter at all');
});

test('pluginContract has the checks of every name of every kind', () => {
  const plugin = pluginOf({
    scorer: { s: good, t: good },
    picker: { p: { doc: 'P.', setup: () => ({}) } },
    signal: { g: { doc: 'G.', type: 'number', setup: () => ({ evaluate: () => 1 }) } },
  });
  const subjects = new Set(pluginContract(plugin).map(({ name }) => name.slice(0, name.indexOf(':'))));
  expect([...subjects].sort()).toEqual(['picker p', 'scorer s', 'scorer t', 'signal g']);
});
