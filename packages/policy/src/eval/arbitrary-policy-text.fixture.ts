import * as fc from 'fast-check';

/*
 * Random policies whose conditions, filters and scores reach every kind of expression that the language has, written over names of
 * the built-in catalogue so that nearly all check without an error. (What is left: a division by what folds to zero, an aggregate whose
 * body folds to a constant.)
 */

type Sort = 'count' | 'percent' | 'duration' | 'text' | 'bool' | 'texts';
/** `pool` is the body of an aggregate: candidate scope without aggregates, which do not nest. */
type Place = 'request' | 'candidate' | 'pool';

const REQUEST: { readonly [sort in Sort]: readonly string[] } = {
  count: [
    'complexity',
    'words',
    'prompt_tokens',
    'max_tokens',
    'session_tokens',
    'number(header["x-n"])',
    '50',
    '4k',
    '0.5',
  ],
  percent: ['cluster.saturation', '90%', '5%'],
  duration: ['deadline', 'duration(metadata["wait"], ms)', '500ms', '3s'],
  text: ['header["x-slo"]', 'metadata["team"]', 'user', 'prompt', 'lower(header["x-slo"])', '"eu"', '"interactive"'],
  bool: ['stream', 'reasoning', 'json_schema', 'bool(header["x-fast"])'],
  texts: [
    'tool_names',
    'list(header["x-tags"], ",")',
    '["eu", "us"]',
    '["a", "b", "c", "d", "e", "f", "g", "h", "i", "eu"]',
  ],
};
const CANDIDATE: { readonly [sort in Sort]: readonly string[] } = {
  count: ['queue_depth', 'queued_tokens', 'running'],
  percent: ['kv_cache_used', 'error_rate', 'load'],
  duration: ['predicted_ttft', 'age'],
  text: ['region', 'zone', 'gpu'],
  bool: ['healthy', 'draining', 'has_model'],
  texts: ['loras', 'supports'],
};

/** Ways to make an expression read a property, which the body of an aggregate must. */
const READING = {
  bool: ['(_ and healthy)', '(draining or _)', '(_ == has_model)'],
  count: ['(_ + queue_depth)', '(running ?? _)'],
  percent: ['(_ - kv_cache_used)', '(_ ?? load)'],
  duration: ['(age + _)'],
} as const;

const memo = new Map<string, fc.Arbitrary<string>>();

function expression(sort: Sort, place: Place, depth: number): fc.Arbitrary<string> {
  const key = `${sort} ${place} ${depth}`;
  let arbitrary = memo.get(key);
  if (arbitrary === undefined) {
    const names = [...REQUEST[sort], ...(place === 'request' ? [] : CANDIDATE[sort])];
    arbitrary =
      depth === 0
        ? fc.constantFrom(...names)
        : fc.oneof(fc.constantFrom(...names), ...compound(sort, place, depth - 1));
    memo.set(key, arbitrary);
  }
  return arbitrary;
}

function compound(sort: Sort, place: Place, depth: number): readonly fc.Arbitrary<string>[] {
  const sub = (of: Sort): fc.Arbitrary<string> => expression(of, place, depth);
  const pool = fc.constantFrom('', ', tier "small"', ', tier "large"', ', any');
  const body = (of: 'bool' | 'count' | 'percent' | 'duration'): fc.Arbitrary<string> =>
    fc
      .tuple(expression(of, 'pool', depth), fc.constantFrom(...READING[of]))
      .map(([inner, reading]) => reading.replace('_', () => inner));
  const coalesce = fc.tuple(sub(sort), sub(sort)).map(([left, right]) => `(${left} ?? ${right})`);
  const aggregates = (make: () => fc.Arbitrary<string>): readonly fc.Arbitrary<string>[] =>
    place === 'pool' ? [] : [make()];
  const numeric = (sort: 'count' | 'percent' | 'duration'): readonly fc.Arbitrary<string>[] => [
    coalesce,
    fc.tuple(sub(sort), fc.constantFrom('+', '-'), sub(sort)).map(([left, op, right]) => `(${left} ${op} ${right})`),
    // A percent times a value would be a share of that value.
    fc
      .tuple(sub(sort), sort === 'percent' ? fc.constantFrom('2', '0.5') : sub('count'))
      .map(([left, right]) => `(${left} * ${right})`),
    fc.tuple(sub(sort), sub('count')).map(([left, right]) => `(${left} / ${right})`),
    sub(sort).map((operand) => `(-${operand})`),
    fc
      .tuple(fc.constantFrom('min', 'max'), sub(sort), sub(sort))
      .map(([name, left, right]) => `${name}(${left}, ${right})`),
    ...aggregates(() =>
      fc
        .tuple(fc.constantFrom('min', 'max', 'avg', 'sum'), body(sort), pool)
        .map(([name, of, target]) => `${name}(${of}${target})`),
    ),
  ];
  switch (sort) {
    case 'count':
      return [
        ...numeric(sort),
        ...aggregates(() => fc.tuple(body('bool'), pool).map(([of, target]) => `count(${of}${target})`)),
      ];
    case 'percent':
    case 'duration':
      return numeric(sort);
    case 'text':
    case 'texts':
      return [coalesce];
    case 'bool':
      return [
        coalesce,
        fc
          .tuple(sub('bool'), fc.constantFrom('and', 'or'), sub('bool'))
          .map(([left, op, right]) => `(${left} ${op} ${right})`),
        sub('bool').map((operand) => `(not ${operand})`),
        ...(['count', 'percent', 'duration'] as const).map((of) =>
          fc
            .tuple(sub(of), fc.constantFrom('<', '<=', '>', '>=', '==', '!='), sub(of))
            .map(([left, op, right]) => `(${left} ${op} ${right})`),
        ),
        fc
          .tuple(sub('text'), fc.constantFrom('==', '!='), sub('text'))
          .map(([left, op, right]) => `(${left} ${op} ${right})`),
        sub('count').map((value) => `(${value} in 10..60)`),
        fc
          .tuple(sub('text'), fc.constantFrom('in', 'not in'), sub('texts'))
          .map(([value, op, list]) => `(${value} ${op} ${list})`),
        fc
          .tuple(sub('text'), sub('text'), sub('text'))
          .map(([value, one, other]) => `(${value} in [${one}, ${other}])`),
        fc.tuple(sub('texts'), sub('text')).map(([list, part]) => `(${list} contains ${part})`),
        fc.tuple(sub('text'), sub('text')).map(([value, part]) => `(${value} contains ${part})`),
        fc
          .tuple(sub('text'), fc.constantFrom('r"^inter.*e$"i', 'r"e+u"', 'r"eu|us"'))
          .map(([value, pattern]) => `(${value} matches ${pattern})`),
        fc.oneof(sub('count'), sub('text'), sub('bool'), sub('texts')).map((operand) => `(${operand} exists)`),
        ...aggregates(() =>
          fc
            .tuple(fc.constantFrom('any', 'all'), body('bool'), pool)
            .map(([name, of, target]) => `${name}(${of}${target})`),
        ),
      ];
  }
}

/** The text of a policy with random conditions, filters, scores and header values over two tiers. */
export const arbitraryTypedPolicyText: fc.Arbitrary<string> = fc
  .array(
    fc.record({
      when: expression('bool', 'request', 3),
      where: expression('bool', 'candidate', 3),
      by: expression('count', 'candidate', 3),
      header: expression('text', 'request', 2),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((rules) =>
    [
      'define tier "small" { model: "a", endpoints: ["http://10.0.0.1:8000", "http://10.0.0.2:8000"] }',
      'define tier "large" { model: "b", endpoints: ["http://10.0.1.1:8000"] }',
      ...rules.map(
        ({ when, where, by, header }, index) =>
          `route "rule ${index}" when ${when}\n  to any where ${where}\n  by lowest(0 * queue_depth + ${by})\n  with header "x-route" (${header})`,
      ),
      'default to any',
    ].join('\n'),
  );
