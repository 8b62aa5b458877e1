import * as fc from 'fast-check';

/*
 * Random policies for property tests. A policy is made as a list of words and signs, then written with random white space and
 * comments between them, so that one generator serves the lexer, the parser and the formatter.
 */

type Words = readonly string[];
type Source = fc.Arbitrary<Words>;

const word = (text: string): Source => fc.constant([text]);
const seq = (...parts: readonly Source[]): Source => fc.tuple(...parts).map((found) => found.flat());
const choose = (...parts: readonly Source[]): Source => fc.oneof(...parts);
const maybe = (part: Source): Source => fc.oneof(fc.constant<Words>([]), part);
const separated = (part: Source, by: string, minLength: number, maxLength: number): Source =>
  fc
    .array(part, { minLength, maxLength })
    .map((items) => items.flatMap((item, index) => (index === 0 ? item : [by, ...item])));
const repeated = (part: Source, maxLength: number): Source =>
  fc.array(part, { maxLength }).map((items) => items.flat());
const pickWord = (...texts: readonly string[]): Source => fc.constantFrom(...texts).map((text) => [text]);

/** Characters that a string may hold in any number without a finding. */
const plainText: fc.Arbitrary<string> = fc.string({
  unit: fc.constantFrom(...'abcxyzABC 0123456789_-:/.,;()[]{}#=<>+*%$@!?äöüß漢字😀é'),
  maxLength: 12,
});
const quoted: fc.Arbitrary<string> = plainText.map((text) => JSON.stringify(text));
const stringWord: Source = fc.oneof(
  quoted.map((text) => [text]),
  pickWord('"a\\nb"', '"\\u00e9"', '"\\"q\\""', '"\\\\"'),
);
const natural = fc.integer({ min: 0, max: 5000 });
const numberWord: Source = fc.oneof(
  natural.map((value) => [String(value)]),
  fc.tuple(natural, fc.integer({ min: 0, max: 99 })).map(([whole, part]) => [`${whole}.${part}`]),
  pickWord('1_000', '0', '12_345.5'),
);
const unitWord: Source = fc
  .tuple(
    natural,
    fc.constantFrom(
      'us',
      'ms',
      's',
      'm',
      'h',
      'd',
      'k',
      'Ki',
      'M',
      'Mi',
      'B',
      'KB',
      'MB',
      'GB',
      'KiB',
      'MiB',
      'GiB',
      '%',
      '/s',
      '/min',
      'k/min',
      'M/h',
      '/d',
    ),
  )
  .map(([value, unit]) => [`${value}${unit}`]);
const moneyWord: Source = natural.chain((value) => pickWord(`$${value}`, `$${value}.5`, `$${value}/h`));
const regexWord: Source = pickWord(
  'r"a+b"',
  'r"\\bstack trace\\b|\\bTypeError\\b"i',
  'r"say \\"hi\\""ims',
  'r"[a-z]{2,4}"',
);
const literalWord: Source = choose(stringWord, numberWord, unitWord, moneyWord, pickWord('true', 'false'));

/** Names that are neither reserved nor units, so that any of them may follow a number. */
const identWord: Source = pickWord(
  'complexity',
  'prompt_tokens',
  'model',
  'session',
  'user',
  'load',
  'queue_depth',
  'least_tokens',
  'prefix_cache',
  'x1',
  '_y',
  'Tenant',
  'alpha',
  'beta',
);
const memberWord: Source = pickWord('region', 'id', 'queue', 'to', 'hot', 'when', 'x');
const nameWords: Source = seq(identWord, repeated(seq(word('.'), memberWord), 2));
const labelWord: Source = quoted.map((text) => [text]);

interface Expressions {
  readonly expr: Source;
  readonly sum: Source;
  readonly args: Source;
  readonly list: Source;
  readonly object: Source;
}

const mostly = (common: Source, ...rare: readonly Source[]): Source =>
  fc.oneof(
    { weight: 4 * Math.max(1, rare.length), arbitrary: common },
    ...rare.map((arbitrary) => ({ weight: 1, arbitrary })),
  );

/** Expressions with brackets up to a depth, most of them plain, so that their size stays bounded. */
const expressionsOf = (depth: number): Expressions => {
  const leaf = choose(literalWord, nameWords, seq(identWord, stringWord));
  const inner = depth === 0 ? undefined : expressionsOf(depth - 1);
  const primary =
    inner === undefined
      ? leaf
      : mostly(
          leaf,
          seq(nameWords, inner.args),
          seq(identWord, word('['), inner.expr, word(']')),
          inner.list,
          seq(word('('), inner.expr, word(')')),
        );
  const unary = mostly(primary, seq(word('-'), primary), seq(word('-'), word('-'), primary));
  const product = mostly(unary, seq(unary, pickWord('*', '/'), unary));
  const sum = mostly(
    product,
    seq(product, pickWord('+', '-'), product),
    seq(product, word('+'), product, word('-'), product),
  );
  const coalesce = mostly(sum, seq(sum, word('??'), sum), seq(sum, word('??'), sum, word('??'), sum));
  const comparison = choose(
    coalesce,
    seq(coalesce, pickWord('==', '!=', '<', '<=', '>', '>='), coalesce),
    seq(coalesce, maybe(word('not')), word('in'), coalesce),
    seq(coalesce, word('in'), coalesce, word('..'), coalesce),
    seq(coalesce, word('matches'), regexWord),
    seq(coalesce, word('contains'), coalesce),
    seq(coalesce, word('exists')),
  );
  const negation = mostly(comparison, seq(word('not'), comparison), seq(word('not'), word('not'), comparison));
  const conjunction = mostly(
    negation,
    seq(negation, word('and'), negation),
    seq(negation, word('and'), negation, word('and'), negation),
  );
  const expr = mostly(conjunction, seq(conjunction, word('or'), conjunction));
  const item = inner?.expr ?? leaf;
  const argument = seq(maybe(seq(pickWord('on', 'key', 'bound', 'to', 'when'), word(':'))), item);
  const value =
    inner === undefined
      ? leaf
      : mostly(inner.expr, inner.object, seq(word('['), separated(inner.object, ',', 1, 2), word(']')));
  const entry = seq(
    choose(pickWord('ttft', 'model', 'queue', 'when', 'gpu_count'), stringWord),
    word(':'),
    value,
    maybe(word(',')),
  );
  return {
    expr,
    sum,
    args: seq(word('('), separated(argument, ',', 0, 2), word(')')),
    list: seq(word('['), separated(item, ',', 0, 3), word(']')),
    object: seq(word('{'), repeated(entry, 3), word('}')),
  };
};

const { expr, sum, args, list, object } = expressionsOf(2);
const whenClause = seq(word('when'), expr);
const byClause = seq(word('by'), separated(sum, 'then', 1, 3));
const part = seq(choose(literalWord, nameWords, list), maybe(args));
const withClause = seq(word('with'), separated(seq(nameWords, maybe(args), repeated(part, 2)), ',', 1, 3));
const target = seq(maybe(pickWord('5%', '95%')), nameWords, maybe(stringWord));
const destination = seq(
  word('to'),
  separated(target, ',', 1, 3),
  maybe(seq(word('where'), expr)),
  maybe(byClause),
  maybe(seq(word('pick'), nameWords, maybe(args))),
  maybe(withClause),
);
const verdict = seq(pickWord('admit', 'reject', 'queue'), maybe(byClause), maybe(withClause));
const elses = repeated(seq(word('else'), choose(destination, verdict, word('next'))), 2);
const outcome = choose(
  seq(word('route'), stringWord, maybe(seq(word('to'), target))),
  seq(word('to'), target),
  verdict,
  word('default'),
);
const annotation = seq(word('@'), pickWord('owner', 'expires', 'allow'), maybe(args));
const annotations = repeated(annotation, 2);
const route = seq(word('route'), maybe(labelWord), maybe(whenClause), destination, elses);
const defaultRule = seq(word('default'), choose(seq(destination, elses), verdict));
const admission = seq(
  pickWord('admit', 'reject', 'queue'),
  maybe(labelWord),
  maybe(whenClause),
  maybe(byClause),
  maybe(withClause),
);
const typeWords: Source = choose(
  pickWord('bool', 'number', 'duration'),
  seq(word('list'), word('['), pickWord('string', 'number'), word(']')),
);
const letRule = seq(word('let'), identWord, maybe(seq(word(':'), typeWords)), word('='), expr);
const given = seq(
  word('given'),
  choose(
    seq(identWord, stringWord, object),
    separated(seq(nameWords, maybe(seq(word('['), stringWord, word(']'))), word('='), expr), ',', 1, 2),
  ),
);
const expectStep = seq(word('expect'), maybe(word('not')), outcome);
const testRule = seq(word('test'), stringWord, word('{'), repeated(choose(given, expectStep), 3), word('}'));
const other = choose(
  seq(word('import'), stringWord, maybe(seq(word('as'), identWord))),
  seq(word('use'), stringWord, maybe(seq(word('as'), identWord)), maybe(object)),
  seq(word('define'), pickWord('tier', 'slo', 'gateway'), maybe(stringWord), object),
  seq(word('ensure'), stringWord, maybe(whenClause), pickWord('always', 'never'), outcome),
  testRule,
);

const blockOf = (depth: number): Source => {
  const plain = choose(route, route, defaultRule, admission, letRule, other);
  const statement =
    depth === 0
      ? plain
      : mostly(
          plain,
          seq(
            word('group'),
            stringWord,
            maybe(whenClause),
            maybe(withClause),
            word('{'),
            blockOf(depth - 1),
            word('}'),
          ),
        );
  return repeated(seq(annotations, statement), 4);
};

/** The words and signs of a policy that parses; names, types and units are arbitrary. */
export const arbitraryPolicyWords: fc.Arbitrary<readonly string[]> = seq(
  maybe(seq(word('language'), word('1'))),
  blockOf(2),
);

/** Words with single spaces between them. */
export const joinWords = (words: readonly string[]): string => words.join(' ');

const commentText = fc.string({ unit: fc.constantFrom(...'abc xyz"(){}#@漢😀,;'), maxLength: 10 });
const gap: fc.Arbitrary<string> = fc.oneof(
  { weight: 12, arbitrary: fc.constant(' ') },
  { weight: 3, arbitrary: fc.constantFrom('\n', '  ', '\t', '\n  ', '\r\n', '\n\n\n') },
  { weight: 1, arbitrary: commentText.map((text) => ` #${text}\n`) },
  { weight: 1, arbitrary: commentText.map((text) => `\n  ##${text}\n`) },
);

/** The words of a policy written with random white space and comments between them. */
export const arbitraryLayoutOf = (words: readonly string[]): fc.Arbitrary<string> =>
  fc
    .array(gap, { minLength: words.length + 1, maxLength: words.length + 1 })
    .map((gaps) => gaps.map((space, index) => `${space}${words[index] ?? ''}`).join(''));

/**
 * The text of a random policy that parses without findings, of up to a few dozen statements of every form, with comments and
 * odd white space. Names, types and units are arbitrary, so the checker may have much to say of it.
 */
export const arbitraryPolicyText: fc.Arbitrary<string> = arbitraryPolicyWords.chain(arbitraryLayoutOf);

const condition: fc.Arbitrary<string> = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    fc
      .tuple(
        fc.constantFrom('complexity', 'questions', 'turns'),
        fc.constantFrom('<', '<=', '>', '>=', '==', '!='),
        fc.integer({ min: 0, max: 100 }),
      )
      .map(([name, operator, value]) => `${name} ${operator} ${value}`),
    fc.integer({ min: 1, max: 64 }).map((value) => `prompt_tokens > ${value}k`),
    fc
      .tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 50, max: 100 }))
      .map(([low, high]) => `complexity in ${low}..${high}`),
    fc.constantFrom(
      'stream',
      'priority == "low"',
      'priority in ["high", "critical"]',
      'not stream',
      'session exists',
      '(tenant.region ?? "us") == "eu"',
      'model contains "coder"',
      'prompt matches r"\\bTypeError\\b"i',
      'cluster.saturation > 85%',
    ),
    fc
      .tuple(tie('condition'), fc.constantFrom('and', 'or'), tie('condition'))
      .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    tie('condition').map((inner) => `not (${inner})`),
  ),
})).condition;

const tierNames = ['small', 'medium', 'large'] as const;
const where = fc.constantFrom(
  '',
  ' where kv_cache_used < 90%',
  ' where healthy and not draining',
  ' where queue_depth < 10',
  ' where region == "eu"',
);
const scorers = fc.constantFrom(
  '',
  ' by least_tokens',
  ' by 0.7 * prefix_cache + 0.3 * least_tokens',
  ' by lowest(queue_depth) then least_tokens',
);
const modifiers = fc.constantFrom(
  '',
  ' with affinity session',
  ' with timeout 90s',
  ' with retry 2 (on: [connect, timeout])',
  ' with fallback tier "medium" (on: [saturated, error])',
);
const targets = fc.oneof(
  fc.constantFrom(...tierNames).map((name) => `tier "${name}"`),
  fc.constantFrom('any', 'tier "small", tier "large"'),
  fc.integer({ min: 0, max: 100 }).map((share) => `${share}% tier "small", ${100 - share}% tier "large"`),
);
const sensibleDestination: fc.Arbitrary<string> = fc
  .tuple(targets, where, scorers, modifiers)
  .map(([to, ...rest]) => `to ${to}${rest.join('')}`);

/**
 * The text of a random policy that also makes sense: three tiers are defined (`small`, `medium`, `large`), signals and properties
 * are those of the built-in catalogue with fitting types, labels are unique, and a default ends it. One to eight routes.
 */
export const arbitrarySensiblePolicyText: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(
      fc.tuple(
        condition,
        sensibleDestination,
        fc.constantFrom('', '\n  else to any', '\n  else reject with status 503', '\n  else next'),
      ),
      { minLength: 1, maxLength: 8 },
    ),
    fc.array(condition, { maxLength: 2 }),
    sensibleDestination,
  )
  .map(([routes, rejections, last]) =>
    [
      ...tierNames.map(
        (name, index) =>
          `define tier "${name}" { model: "model-${name}", region: "eu", endpoints: ["http://10.0.${index}.1:8000", "http://10.0.${index}.2:8000"] }`,
      ),
      ...rejections.map((when, index) => `reject "rejected ${index}" when ${when}`),
      ...routes.map(([when, to, otherwise], index) => `route "rule ${index}" when ${when}\n  ${to}${otherwise}`),
      `default ${last}`,
      '',
    ].join('\n'),
  );
