/** How each function of the language is written and what it gives, for hover and completion. */
export const functionDocs: { readonly [name: string]: { readonly form: string; readonly doc: string } } = Object.freeze(
  {
    min: {
      form: 'min(queue_depth, tier "70B")',
      doc: 'The least value over the endpoints of a target, or of two or more values.',
    },
    max: {
      form: 'max(queue_depth, tier "70B")',
      doc: 'The greatest value over the endpoints of a target, or of two or more values.',
    },
    avg: { form: 'avg(load, tier "70B")', doc: 'The mean over the endpoints of a target.' },
    sum: { form: 'sum(queue_depth, tier "70B")', doc: 'The sum over the endpoints of a target; 0 over none.' },
    count: {
      form: 'count(healthy, tier "70B")',
      doc: 'How many endpoints of a target are known to meet a condition.',
    },
    any: {
      form: 'any(kv_cache_used > 90%, tier "70B")',
      doc: 'Whether some endpoint of a target meets a condition.',
    },
    all: { form: 'all(healthy, tier "70B")', doc: 'Whether every endpoint of a target meets a condition.' },
    clamp: { form: 'clamp(x, low, high)', doc: 'The value, kept between two limits.' },
    number: { form: 'number(header["x"])', doc: 'A text as a number; rubbish is unknown.' },
    duration: { form: 'duration(header["x"], ms)', doc: 'A text as a duration in the unit given; rubbish is unknown.' },
    bool: { form: 'bool(header["x"])', doc: 'A text as true or false; rubbish is unknown.' },
    list: { form: 'list(header["x"], ",")', doc: 'A text cut into a list of texts.' },
    lower: { form: 'lower(header["x"])', doc: 'A text in lower case.' },
    lowest: {
      form: 'lowest(queue_depth)',
      doc: 'A scorer that prefers the lowest value of an expression over an endpoint.',
    },
    highest: {
      form: 'highest(throughput)',
      doc: 'A scorer that prefers the highest value of an expression over an endpoint.',
    },
  },
);
