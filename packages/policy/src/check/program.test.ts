import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import type { CompileInput, CompileResult } from '../compile.ts';
import type { Destination, Expression, PolicyProgram } from '../ir.ts';

const compile = (text: string, more: Partial<CompileInput> = {}): CompileResult =>
  compilePolicy({
    path: 'main.route',
    text,
    manifests: fixtureManifests,
    resolvePlugin: () => ({ manifest: carbonManifest }),
    nowEpochMs: Date.UTC(2026, 11, 1),
    ...more,
  });

const programOf = (text: string, more: Partial<CompileInput> = {}): PolicyProgram => {
  const { program, diagnostics } = compile(text, more);
  if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  return program;
};

const codesOf = (text: string, more: Partial<CompileInput> = {}): readonly string[] =>
  compile(text, more).diagnostics.map(({ code }) => code);

const destinationOf = (program: PolicyProgram, route = 0, step = 0): Destination => {
  const found = program.routes[route]?.steps[step];
  if (found?.kind !== 'destination') throw new Error('no destination');
  return found;
};

/** An expression in one line, with signals and properties by name. */
const show = (program: PolicyProgram, expression: Expression | undefined): string => {
  const of = (inner: Expression): string => show(program, inner);
  if (expression === undefined) return '-';
  switch (expression.kind) {
    case 'constant':
      return JSON.stringify(expression.value);
    case 'signal': {
      const ref = program.signals[expression.index];
      const args = (ref?.arguments ?? []).map((argument) =>
        argument.kind === 'value'
          ? JSON.stringify(argument.value)
          : argument.kind === 'definition'
            ? argument.of
            : argument.kind === 'target'
              ? JSON.stringify(argument.target)
              : of(argument.expression),
      );
      return `${ref?.key ?? '?'}${args.length === 0 ? '' : `(${args.join(', ')})`}`;
    }
    case 'property': {
      const ref = program.properties[expression.index];
      const args = (ref?.arguments ?? []).map((argument) =>
        argument.kind === 'value'
          ? JSON.stringify(argument.value)
          : argument.kind === 'expression'
            ? of(argument.expression)
            : '?',
      );
      return `${ref?.key ?? '?'}${args.length === 0 ? '' : `(${args.join(', ')})`}`;
    }
    case 'negate':
      return `-${of(expression.operand)}`;
    case 'not':
      return `not ${of(expression.operand)}`;
    case 'exists':
      return `${of(expression.operand)} exists`;
    case 'arithmetic':
    case 'compare':
      return `(${of(expression.left)} ${expression.op} ${of(expression.right)})`;
    case 'coalesce':
      return `(${of(expression.left)} ?? ${of(expression.right)})`;
    case 'and':
    case 'or':
      return `(${expression.operands.map(of).join(` ${expression.kind} `)})`;
    case 'between':
      return `${of(expression.value)} in ${of(expression.low)}..${of(expression.high)}`;
    case 'in':
      return `${of(expression.value)} in ${of(expression.list)}`;
    case 'list':
      return `[${expression.members.map(of).join(', ')}]`;
    case 'matches':
      return `${of(expression.value)} matches ${expression.pattern}`;
    case 'contains':
      return `${of(expression.value)} contains ${of(expression.part)}`;
    case 'call':
      return `${expression.function}(${expression.arguments.map(of).join(', ')})`;
    case 'aggregate':
      return `${expression.function}[${expression.target === undefined ? '*' : expression.target.kind === 'any' ? 'any' : expression.target.name}](${of(expression.body)})`;
  }
};

const whenOf = (condition: string, more: Partial<CompileInput> = {}): string => {
  const program = programOf(`route when ${condition} to any\ndefault to any`, more);
  return show(program, program.routes[0]?.when);
};
const whereOf = (condition: string): string => {
  const program = programOf(`default to any where ${condition}`);
  return show(program, destinationOf(program).where);
};

describe('expressions', () => {
  test.each([
    ['complexity > 50 and not stream', '((complexity > 50) and not stream)'],
    ['prompt_tokens > 32k', '(prompt_tokens > 32000)'],
    ['deadline < 500ms', '(deadline < 0.5)'],
    ['header["X-SLO"] == "a"', '(header("x-slo") == "a")'],
    ['metadata["Team"] == "a"', '(metadata("Team") == "a")'],
    ['complexity not in 10..50', 'not complexity in 10..50'],
    ['model in ["a", "b"]', 'model in ["a","b"]'],
    ['user in [session, "x"]', 'user in [session, "x"]'],
    ['(session ?? user ?? "x") == "a"', '(((session ?? user) ?? "x") == "a")'],
    ['min(kv_cache_used, tier "70B") < 90%', '(min[70B](kv_cache_used) < 0.9)'],
    [
      'count(healthy and load < 95%) > 2',
      '(count[*]((healthy and ((((0.1 * queued_tokens) + (1 * decode_tokens)) / (throughput * 1)) < 0.95))) > 2)',
    ],
    ['max(complexity, words) > 5', '(max(complexity, words) > 5)'],
    ['clamp(number(header["x"]), 0, 10) > 5', '(clamp(number(header("x")), 0, 10) > 5)'],
    ['duration(header["x"], ms) < 5s', '(duration(header("x"), 0.001) < 5)'],
    ['list(header["x"], ",") contains "a"', 'list(header("x"), ",") contains "a"'],
    ['hour > 5', '(hour("UTC") > 5)'],
    ['hour(zone: "Europe/Berlin") in 9..17', 'hour("Europe/Berlin") in 9..17'],
    [
      'within("mon-fri 22:00-06:00", zone: "Europe/Berlin")',
      'within("mon,tue,wed,thu,fri 22:00-06:00", "Europe/Berlin")',
    ],
    ['tenant.region == "eu"', '(tenant.region == "eu")'],
    ['2 * complexity > 10 + 5', '((2 * complexity) > 15)'],
    ['stream or false', 'stream'],
    ['stream and (user exists or true)', 'stream'],
    ['not not stream', 'stream'],
    ['prompt_tokens / 5s > 3/s', '((prompt_tokens / 5) > 3)'],
    ['tool_names contains "search"', 'tool_names contains "search"'],
  ])('%s', (source, expected) => {
    expect(whenOf(source)).toBe(expected);
  });

  test.each([
    ['among(session, 3)', 'among(session, 3, false)'],
    ['among([lora, conversation], 3, grow: true)', 'among(lora, conversation, 3, true)'],
    ['under_load(90%)', '((((0.1 * queued_tokens) + (1 * decode_tokens)) / (throughput * 1)) < 0.9)'],
    ['under_load', '((((0.1 * queued_tokens) + (1 * decode_tokens)) / (throughput * 1)) < 0.95)'],
    ['has_lora', 'lora in loras'],
    ['labels.rack == "r1"', '(labels.rack == "r1")'],
    ['warm', '((inflight_requests > 0) and (age < 30))'],
    ['queue_depth < min(queue_depth, tier "a") + 2', '(queue_depth < (min[a](queue_depth) + 2))'],
    ['region == tenant.region', '(region == tenant.region)'],
  ])('where %s', (source, expected) => {
    expect(whereOf(source)).toBe(expected);
  });

  test('a let is put in the place of its name, wherever it stands', () => {
    const program = programOf(
      'let long = prompt_tokens > 32k\nlet hard = complexity > 50 and long\nroute when hard to any where long\nroute when long to any\ndefault to any',
    );
    expect(show(program, program.routes[0]?.when)).toBe('((complexity > 50) and (prompt_tokens > 32000))');
    expect(show(program, destinationOf(program).where)).toBe('(prompt_tokens > 32000)');
  });

  test('a let keeps its name against one that a plugin brings', () => {
    const program = programOf('let code = model == "coder"\nroute when code to any\ndefault to any');
    expect(show(program, program.routes[0]?.when)).toBe('(model == "coder")');
    expect(codesOf('let model = 5\ndefault to any')).toContain('E0211');
  });

  test('matches on a prompt says so, and on a header does not', () => {
    const program = programOf('route when prompt matches r"a" and header["x"] matches r"b"i to any\ndefault to any');
    const when = program.routes[0]?.when;
    expect(
      when?.kind === 'and' &&
        when.operands.map((operand) => operand.kind === 'matches' && [operand.prompt, operand.flags]),
    ).toEqual([
      [true, ''],
      [false, 'i'],
    ]);
  });

  test('only what is read stands in the tables', () => {
    const program = programOf(
      'let unused = words > 5\nroute when stream or (true and (turns > 5)) to any by lowest(queue_depth)\nroute when false and user exists to any by lowest(queue_depth)\ndefault reject',
    );
    expect(program.signals.map(({ key }) => key)).toEqual(['stream', 'turns']);
    expect(program.properties.map(({ key }) => key)).toEqual(['queue_depth']);
  });
});

describe('destinations', () => {
  test('without by and pick, least_tokens and best', () => {
    const { by, pick } = destinationOf(programOf('default to any'));
    expect(by.map(({ terms }) => terms.map(({ scorer }) => scorer.name))).toEqual([['least_tokens']]);
    expect(pick.name).toBe('best');
  });

  test('weights are normalised, a let of scorers is scaled, then breaks ties', () => {
    const program = programOf(
      'let mine = 3 * least_tokens + prefix_cache\ndefault to any by 2 * mine + 2 * (highest(throughput) / 2) then declared_order',
    );
    const [first, second] = destinationOf(program).by;
    expect(
      first?.terms.map(({ weight, scorer }) => [
        scorer.name,
        scorer.kind === 'expression' ? scorer.direction : scorer.kind,
        weight,
      ]),
    ).toEqual([
      ['least_tokens', 'lowest', 6 / 9],
      ['prefix_cache', 'score', 2 / 9],
      ['highest', 'highest', 1 / 9],
    ]);
    expect(second?.terms).toMatchObject([
      { weight: 1, scorer: { kind: 'function', name: 'declared_order', cost: true } },
    ]);
  });

  test('options of a scorer are constants in its expression, defaults filled in', () => {
    const program = programOf('default to any by least_tokens(decode_weight: 2, output_estimate: 1k)');
    const [sum] = destinationOf(program).by;
    const scorer = sum?.terms[0]?.scorer;
    expect(scorer?.kind === 'expression' && show(program, scorer.expression)).toBe(
      '(((0.1 * (queued_tokens + prompt_tokens)) + (2 * (decode_tokens + (output_tokens ?? 1000)))) / throughput)',
    );
    const latency = programOf('default to any by least_latency(window: 500ms, percentile: p90) pick softmax(0.5)');
    expect(destinationOf(latency).by[0]?.terms[0]?.scorer).toMatchObject({
      kind: 'function',
      options: { window: 0.5, percentile: 'p90' },
      reads: ['candidate.predicted_latency'],
    });
    expect(destinationOf(latency).pick).toMatchObject({ name: 'softmax', options: { temperature: 0.5 } });
  });

  test('targets: a union in the order written, a split of shares, a let, an endpoint', () => {
    const program = programOf(
      'let pool = tier "a"\nroute "u" when stream to tier "b", pool, any\nroute "s" when stream to 99.995% tier "a", 0.005% tier "b"\ndefault to endpoint "a/1"',
    );
    expect(destinationOf(program, 0)).toMatchObject({
      split: false,
      targets: [{ target: { name: 'b' } }, { target: { kind: 'tier', name: 'a' } }, { target: { kind: 'any' } }],
    });
    expect(destinationOf(program, 1).split).toBe(true);
    expect(destinationOf(program, 1).targets.reduce((sum, { share }) => sum + (share ?? 0), 0)).toBeCloseTo(1, 12);
    expect(destinationOf(program, 2).targets).toEqual([{ target: { kind: 'endpoint', name: 'a/1' } }]);
  });

  test('else parts become steps', () => {
    const program = programOf(
      'route "a" when stream to any else to tier "b" where healthy else queue with max_wait 2s, max_depth 500 else next\ndefault reject with status 503, retry_after(min(predicted_wait, tier "a") ?? 5s), message "later"',
    );
    expect(program.routes[0]?.steps.map((step) => step.kind)).toEqual([
      'destination',
      'destination',
      'verdict',
      'next',
    ]);
    expect(program.routes[0]?.steps[2]).toMatchObject({
      verb: 'queue',
      with: { maxWait: { value: 2 }, maxDepth: 500 },
    });
    const [step] = program.routes[1]?.steps ?? [];
    expect(
      step?.kind === 'verdict' && [
        step.with.status,
        show(program, step.with.retryAfter),
        show(program, step.with.message),
      ],
    ).toEqual([503, '(min[a](predicted_wait) ?? 5)', '"later"']);
  });
});

describe('modifiers', () => {
  const modifiers = (text: string): { readonly program: PolicyProgram; readonly with: Destination['with'] } => {
    const program = programOf(`default to any with ${text}`);
    return { program, with: destinationOf(program).with };
  };
  const affinity = (text: string): unknown => {
    const { program, with: found } = modifiers(text);
    const { key = [], method, bound, unit } = found.affinity ?? {};
    return [key.map((part) => show(program, part)), method, bound, unit];
  };

  test.each([
    ['affinity session', [['session'], 'bounded_rendezvous', 1.25, 'requests']],
    ['affinity prefix', [['prefix(2000)'], 'bounded_rendezvous', 1.25, 'requests']],
    ['affinity prefix(2k)', [['prefix(2000)'], 'bounded_rendezvous', 1.25, 'requests']],
    ['affinity prefix(tokens: 512, bound: 2)', [['prefix(2048)'], 'bounded_rendezvous', 2, 'requests']],
    [
      'affinity(session ?? conversation, bound: 1.25)',
      [['(session ?? conversation)'], 'bounded_rendezvous', 1.25, 'requests'],
    ],
    ['affinity [lora, conversation]', [['lora', 'conversation'], 'bounded_rendezvous', 1.25, 'requests']],
    ['affinity [lora, user] (unit: tokens)', [['lora', 'user'], 'bounded_rendezvous', 1.25, 'tokens']],
    ['affinity session (method: modulo_md5)', [['session'], 'modulo_md5', 1.25, 'requests']],
    ['affinity(session, method: modulo_md5, bound: 150%)', [['session'], 'modulo_md5', 1.5, 'requests']],
    ['affinity(header["X-A"])', [['header("x-a")'], 'bounded_rendezvous', 1.25, 'requests']],
    ['affinity user', [['user'], 'bounded_rendezvous', 1.25, 'requests']],
  ])('%s', (source, expected) => {
    expect(affinity(source)).toEqual(expected);
  });

  test('each takes its forms', () => {
    const { program, with: found } = modifiers(
      'timeout(90s), attempt_timeout 30s, first_token (duration(header["x"], s) ?? 5s), idle 60s, retry 2 (on: [connect, timeout]), fallback tier "a" (on: [saturated, error]), fallback any, hedge 800ms (share: 1%), mirror 1% tier "m", mirror tier "n", sticky user, priority low, prefill tier "p", header "X-Team" "search", header "x-b" (user ?? "none"), model "m2", set "temperature" 0.2, set "stop" ["a"], drop "logprobs", drop ["n", "seed"]',
    );
    expect(show(program, found.timeout)).toBe('90');
    expect(show(program, found.firstToken)).toBe('(duration(header("x"), 1) ?? 5)');
    expect(found.retry).toEqual({ attempts: 2, on: ['connect', 'timeout'] });
    expect(found.fallbacks).toMatchObject([
      { target: { name: 'a' }, on: ['saturated', 'error'] },
      { target: { kind: 'any' }, on: ['saturated', 'connect', 'error', 'timeout', 'first_token'] },
    ]);
    expect([show(program, found.hedge?.after), found.hedge?.share]).toEqual(['0.8', 0.01]);
    expect(found.mirror).toMatchObject([
      { target: { name: 'm' }, share: 0.01 },
      { target: { name: 'n' }, share: 1 },
    ]);
    expect(show(program, found.sticky)).toBe('user');
    expect(show(program, found.priority)).toBe('"low"');
    expect(found.prefill).toEqual({ kind: 'tier', name: 'p' });
    expect(found.headers?.map(({ name, value }) => [name, show(program, value)])).toEqual([
      ['x-team', '"search"'],
      ['x-b', '(user ?? "none")'],
    ]);
    expect(show(program, found.model)).toBe('"m2"');
    expect(found.set?.map(({ field, value }) => [field, show(program, value)])).toEqual([
      ['temperature', '0.2'],
      ['stop', '["a"]'],
    ]);
    expect(found.drop).toEqual(['logprobs', 'n', 'seed']);
  });

  test('of a group count inside it, the inner one wins, and admission rules are left alone', () => {
    const program = programOf(
      'group "g" when tenant.region == "eu" with timeout 30s, header "a" "1", header "b" "1", fallback any { reject when stream with status 429 route "r" when stream to any with timeout 5s, header "b" "2" else to any default to any }\ndefault to any',
    );
    const shown = (step: Destination): unknown => [
      show(program, step.with.timeout),
      step.with.headers?.map(({ name, value }) => `${name}=${show(program, value)}`),
      step.with.fallbacks?.length,
    ];
    expect(shown(destinationOf(program, 0))).toEqual(['5', ['a="1"', 'b="2"'], 1]);
    expect(shown(destinationOf(program, 0, 1))).toEqual(['30', ['a="1"', 'b="1"'], 1]);
    expect(shown(destinationOf(program, 2))).toEqual(['-', undefined, undefined]);
    expect(program.admission[0]?.with).toEqual({ status: 429 });
    expect(show(program, program.admission[0]?.when)).toBe('((tenant.region == "eu") and stream)');
    expect(program.routes.map(({ label, when }) => [label, show(program, when)])).toEqual([
      ['r', '((tenant.region == "eu") and stream)'],
      ['default of g', '(tenant.region == "eu")'],
      ['default', '-'],
    ]);
  });
});

describe('definitions', () => {
  test('facts of a tier go to its endpoints, addresses are normalised, names count up', () => {
    const { definitions } = programOf(`
      define tier "a" { model: "m", gpu: "H100", gpu_count: 4, price: $5, model_size: 70B, throughput: 300/s, labels: { rack: "r1", slot: 3 }, key: { env: "KEY" },
        endpoints: ["http://10.0.0.1:8000/v1/", { url: "http://10.0.0.2:8000", name: "big", weight: 2, gpu: "H200", labels: { rack: "r2" } }] }
      define endpoint "single" { url: "http://10.0.0.3:8000/", tier: "a", max_requests: 8 }
      default to endpoint "big"`);
    const [tier] = definitions.tiers;
    expect(tier).toMatchObject({
      name: 'a',
      model: 'm',
      gpuCount: 4,
      price: 5,
      modelSize: 70e9,
      throughput: 300,
      key: { env: 'KEY' },
    });
    expect(tier?.endpoints).toMatchObject([
      { name: 'a/1', url: 'http://10.0.0.1:8000', tier: 'a', weight: 1, gpu: 'H100', labels: { rack: 'r1', slot: 3 } },
      { name: 'big', url: 'http://10.0.0.2:8000', weight: 2, gpu: 'H200', labels: { rack: 'r2', slot: 3 }, model: 'm' },
      { name: 'single', url: 'http://10.0.0.3:8000', maxRequests: 8, gpu: 'H100', labels: { rack: 'r1', slot: 3 } },
    ]);
  });

  test('names of endpoints are unique, implied ones too', () => {
    expect(
      codesOf(
        'define tier "a" { model: "m", endpoints: ["http://h:1", { url: "http://h:2", name: "a/1" }] }\ndefault to any',
      ),
    ).toEqual(['E0213']);
    expect(
      codesOf(
        'define tier "a" { model: "m", endpoints: ["http://h:1"] }\ndefine endpoint "a/1" { url: "http://h:2", tier: "a" }\ndefault to any',
      ),
    ).toEqual(['E0213']);
  });

  test('a share that can never be is suspicious', () => {
    expect(codesOf('default to any where kv_cache_used < 900%')).toEqual(['W0512']);
    expect(codesOf('default to any where load < 900%')).toEqual([]);
  });

  test('labels and fields of tenants have the type they are given', () => {
    const base =
      'define tier "a" { model: "m", labels: { slot: 3, fast: true }, endpoints: ["http://h:1"] }\ndefine tenant "t" { region: "eu", budget: $5, quota: 100k, class: "high" }\n';
    expect(codesOf(`${base}default to any where labels.slot > 2 and labels.fast and labels.other == "x"`)).toEqual([]);
    expect(codesOf(`${base}default to any where labels.slot == "x"`)).toEqual(['E0301']);
    expect(
      codesOf(
        `${base}route when tenant.budget > $3 and tenant.quota > 5k and tenant.class == "high" to any\ndefault to any`,
      ),
    ).toEqual([]);
    expect(codesOf(`${base}route when tenant.budget > 3 or tenant.class == "gold" to any\ndefault to any`)).toEqual([
      'E0302',
      'E0304',
    ]);
  });

  test('limits keep amount and window as written', () => {
    const program = programOf(
      'define limit "free" { key: [tenant.id, user], tokens: 200k/min, cost: $5/h, concurrency: 8, when: stream, charge: after, share_of: "all" }\ndefine limit "all" { key: tenant.id, requests: 10/s }\nreject when over_limit("free") or usage("all") > 90%\ndefault to any',
    );
    const [limit] = program.definitions.limits;
    expect(limit).toMatchObject({
      tokens: { amount: 200_000, windowSeconds: 60 },
      cost: { amount: 5, windowSeconds: 3600 },
      concurrency: 8,
      charge: 'after',
      shareOf: 'all',
    });
    expect(limit?.key.map((part) => show(program, part))).toEqual(['tenant.id', 'user']);
    expect(show(program, limit?.when)).toBe('stream');
    expect(show(program, program.admission[0]?.when)).toBe('(over_limit(free) or (usage(all) > 0.9))');
  });

  test('alarms, parameters and objectives', () => {
    const program = programOf(
      'define alarm "hot" { when: cluster.saturation > 85%, until: max(load) < 70%, for: 5s }\ndefine param "most" { env: "MOST", default: 32k }\ndefine slo "chat" { ttft: 500ms, tpot: 40ms }\nroute when alarm.hot and prompt_tokens > param.most and sla("chat", tier "a") to any\ndefault to any',
    );
    expect(program.definitions.alarms).toMatchObject([{ name: 'hot', for: 5 }]);
    expect(program.definitions.params).toMatchObject([{ name: 'most', env: 'MOST', default: 32_000, type: 'count' }]);
    expect(program.definitions.slos).toMatchObject([{ name: 'chat', ttft: 0.5, tpot: 0.04 }]);
    expect(show(program, program.routes[0]?.when)).toBe(
      '(alarm.hot and (prompt_tokens > param.most) and sla(chat, {"kind":"tier","name":"a"}))',
    );
  });

  test('the zone of a bare hour is that of the gateway', () => {
    expect(
      programOf('define gateway { timezone: "Europe/Berlin" }\nroute when hour > 5 to any\ndefault to any').signals[0]
        ?.arguments,
    ).toEqual([{ kind: 'value', name: 'zone', value: 'Europe/Berlin' }]);
  });

  test('the gateway has its defaults', () => {
    expect(programOf('default to any').definitions.gateway).toEqual({
      listen: '127.0.0.1:8080',
      admin: '127.0.0.1:9901',
      workers: 1,
      models: [],
      unknownModel: 'reject',
      reportModel: 'alias',
      timezone: 'UTC',
      bodyLimit: 20_971_520,
      trustedProxies: [],
      drain: { accept: 10, grace: 300 },
    });
  });
});

describe('imports and plugins', () => {
  const files: { readonly [path: string]: string } = {
    'lib/names.route':
      'import "./deep.route" as deep\nlet gold = ["a"]\nlet score = 2 * least_tokens\nlet pool = tier "x"\ndefine limit "l" { key: deep.key, requests: 5/s }\nroute "ignored" to any',
    'lib/deep.route': 'let key = user',
    'parts.route':
      'define tier "x" { model: "m", endpoints: ["http://h:1"] }\nlet hard = complexity > 50\nroute "part" when hard to tier "x"',
  };
  const readFile = (path: string): string | undefined => files[path];

  test('with an alias lets and definitions come under it, and rules do not', () => {
    const program = programOf(
      'import "./lib/names.route" as names\nreject when over_limit("names.l")\nroute when user in names.gold to names.pool by names.score\ndefault to any',
      { readFile },
    );
    expect(program.routes.map(({ label }) => label)).toEqual(['route 1', 'default']);
    expect(show(program, program.routes[0]?.when)).toBe('user in ["a"]');
    expect(destinationOf(program).targets).toEqual([{ target: { kind: 'tier', name: 'x' } }]);
    expect(destinationOf(program).by[0]?.terms[0]?.scorer.name).toBe('least_tokens');
    expect(program.definitions.limits.map(({ name }) => name)).toEqual(['names.l']);
    expect(program.files.map(({ path }) => path)).toEqual(['main.route', 'lib/names.route', 'lib/deep.route']);
  });

  test('an import does not pass on what it imports', () => {
    expect(
      codesOf('import "./lib/names.route" as names\nroute when names.deep.key == "a" to any\ndefault to any', {
        readFile,
      }),
    ).toContain('E0225');
  });

  test('without an alias the statements stand where the import stands', () => {
    const program = programOf('import "./parts.route"\nroute "own" when not hard to tier "x"\ndefault to any', {
      readFile,
    });
    expect(program.routes.map(({ label }) => label)).toEqual(['part', 'own', 'default']);
    expect(codesOf('import "./parts.route"\nroute "part" to tier "y"', { readFile })).toEqual(['E0212', 'E0202']);
  });

  test('circles, missing files and files outside are errors at the import, and nothing else is reported', () => {
    const circle = (path: string): string | undefined =>
      ({ 'a.route': 'import "./b.route"', 'b.route': 'import "./a.route"' })[path];
    expect(codesOf('import "./a.route"\ndefault to any', { readFile: circle })).toContain('E0218');
    expect(codesOf('import "./nothing.route"\nroute when unknown_name to tier "x"')).toEqual(['E0216']);
    expect(
      codesOf('import "../secret.route" as s\nroute when s.x to any\ndefault to any', {
        path: 'sub/main.route',
        readFile: () => 'let x = stream',
      }),
    ).toEqual(['E0217']);
  });

  test('a plugin brings its names under its alias, with checked options', () => {
    const program = programOf(
      'use "@acme/signalbox-carbon" as carbon { refresh: 5m }\nroute when carbon.intensity < 100 to any by carbon.least_grams(horizon: 10m)\ndefault to any',
    );
    expect(program.uses).toMatchObject([
      { package: '@acme/signalbox-carbon', alias: 'carbon', plugin: 'carbon', options: { refresh: 300, zone: 'DE' } },
    ]);
    expect(program.signals[0]).toMatchObject({
      key: 'intensity',
      provider: { kind: 'plugin', plugin: 'carbon', use: 0 },
    });
    const scorer = destinationOf(program).by[0]?.terms[0]?.scorer;
    expect(scorer?.kind === 'expression' && show(program, scorer.expression)).toBe('(power * 600)');
  });

  test('without an alias the names stand by themselves', () => {
    expect(
      codesOf('use "@acme/signalbox-carbon"\nroute when intensity < 100 to any by least_grams\ndefault to any'),
    ).toEqual([]);
  });

  test('the order of a queue keeps its arguments', () => {
    const program = programOf(
      'queue when cluster.saturation > 85% by weighted_fair(key: tenant.id) with max_wait 3s, overflow lowest\ndefault to any',
    );
    const [key] = program.admission[0]?.by ?? [];
    const [argument] = key?.arguments ?? [];
    expect([key?.key, argument?.kind === 'expression' && show(program, argument.expression)]).toEqual([
      'weighted_fair',
      'tenant.id',
    ]);
  });
});

describe('tests and ensures', () => {
  test('come as checked data beside the program, and what only they read is not in its tables', () => {
    const { program, checks } = compile(`
      define tier "70B" { model: "m", labels: { slot: 3 }, endpoints: ["http://h:1"] }
      define tenant "acme" { region: "eu" }
      route "hard" when complexity > 50 to tier "70B" by lowest(queued_tokens)
      default reject
      test "a" {
        given tenant = "acme", complexity = 72, header["X-A"] = "b", cluster.saturation = 90%, priority = "low"
        given endpoint "gpu-a" { tier: "70B", queued_tokens: 9k, kv_cache_used: 90%, loras: [], labels: { slot: 4 } }
        expect route "hard" to endpoint "gpu-a"
        expect not reject with status 503
      }
      ensure "b" when words > 5 and tenant.region == "eu" never to tier "70B"
      ensure "c" always route "hard"`);
    expect(checks?.tests).toMatchObject([
      {
        label: 'a',
        tenant: 'acme',
        facts: [
          { key: 'complexity', arguments: [], value: 72 },
          { key: 'header', arguments: [{ kind: 'value', value: 'x-a' }], value: 'b' },
          { key: 'cluster.saturation', value: 0.9 },
          { key: 'priority', value: 'low' },
        ],
        endpoints: [
          {
            name: 'gpu-a',
            tier: '70B',
            properties: { queued_tokens: 9000, kv_cache_used: 0.9, loras: [], 'labels.slot': 4 },
          },
        ],
        expectations: [
          { negated: false, outcome: { kind: 'route', label: 'hard', target: { kind: 'endpoint', name: 'gpu-a' } } },
          { negated: true, outcome: { kind: 'verdict', verdict: { verb: 'reject', with: { status: 503 } } } },
        ],
      },
    ]);
    expect(checks?.ensures).toMatchObject([
      { label: 'b', mode: 'never', outcome: { kind: 'target' } },
      { label: 'c', mode: 'always' },
    ]);
    expect(checks === undefined ? '' : show(checks.conditions, checks.ensures[0]?.when)).toBe(
      '((words > 5) and (tenant.region == "eu"))',
    );
    expect(checks?.conditions.admission[0]?.when).toBe(checks?.ensures[0]?.when);
    expect(program?.signals.map(({ key }) => key)).toEqual(['complexity']);
  });
});

test('a condition that several admission rules share is reported once as possibly unknown', () => {
  expect(
    codesOf(
      'let eu = tenant.region == "eu"\nreject "a" when eu and stream\nreject "b" when eu and turns > 3\ngroup "g" when user == "x" { reject "c" when stream reject "d" when turns > 5 }\ndefault to any',
    ),
  ).toEqual(['W0511', 'W0511']);
});

describe('the hash', () => {
  test('changes with any source and any manifest, and with nothing else', () => {
    const base = programOf('default to any').hash;
    expect(programOf('default to any', { path: 'elsewhere/other.route' }).hash).toBe(base);
    expect(programOf('default to any ').hash).not.toBe(base);
    expect(programOf('default to any', { manifests: fixtureManifests.slice(0, 2) }).hash).not.toBe(base);
    expect(base).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('settings of the compiler', () => {
  test('a missing default is an error when strict', () => {
    const find = (strict: boolean): string | undefined =>
      compile('route when stream to any', { strict }).diagnostics.find(({ code }) => code === 'W0506')?.severity;
    expect([find(false), find(true)]).toEqual(['warning', 'error']);
    expect(compile('route when stream to any', { strict: true }).program).toBeUndefined();
  });

  test('tiers of a catalogue are known', () => {
    expect(codesOf('default to tier "a"', { catalogue: { tiers: ['a'] } })).toEqual([]);
    expect(codesOf('default to tier "b"', { catalogue: { tiers: ['a'] } })).toEqual(['E0202']);
    expect(codesOf('default to tier "b"')).toEqual(['W0514']);
  });

  test('a discovery makes its tiers known, or leaves all open', () => {
    expect(codesOf('define discovery "k8s" { tiers: ["a"], port: 8000 }\ndefault to tier "a"')).toEqual([]);
    expect(codesOf('define discovery "k8s" { tiers: ["a"] }\ndefault to tier "b"')).toEqual(['E0202']);
    expect(
      codesOf('define tier "a" { model: "m" }\ndefine discovery "k8s" { service: "x" }\ndefault to tier "b"'),
    ).toEqual([]);
  });

  test('a scorer that a build lacks has an error of its own', () => {
    expect(codesOf('default to any by longest_match')).toEqual(['E0232']);
  });

  test('an adaptive limit is a fact of endpoints, and a rule that names it is told so', () => {
    expect(
      codesOf('define tier "a" { model: "m", endpoints: ["http://h:1"], adaptive_limit: true }\ndefault to tier "a"'),
    ).toEqual([]);
    expect(codesOf('define tier "a" { model: "m", adaptive_limit: 20 }\ndefault to tier "a"')).toEqual(['E0511']);
    for (const rule of ['queue when stream by adaptive_limit', 'reject when not adaptive_limit']) {
      const { diagnostics } = compile(`${rule}\ndefault to any`);
      expect(diagnostics.map(({ code, message, help }) => [code, message, help])).toEqual([
        [
          'E0201',
          '`adaptive_limit` stands in a `define`, not in a rule',
          'it is a fact of endpoints: write `define tier "…" { …, adaptive_limit: true }`',
        ],
      ]);
    }
  });

  test('no manifest at all still gives the language its core', () => {
    expect(
      codesOf(
        'define tier "a" { model: "m", endpoints: ["http://h:1"] }\nroute when complexity > 50 to tier "a" by least_tokens with affinity session\ndefault to any',
        { manifests: [] },
      ),
    ).toEqual([]);
  });

  test('a language of the future gives one error and no other', () => {
    expect(codesOf('language 2\nroute when nonsense to nowhere')).toEqual(['E0133']);
  });
});
