/*
 * Words that people bring along from other languages, with what is written here. Told where such a word does not parse, or stands for no
 * name; each may be a name of the user's own.
 */

/** What a word in front of a statement means. */
interface ForeignStatement {
  /** The statement word to write in its place. */
  readonly write?: string;
  readonly help: string;
}

const writes = (write: string): ForeignStatement => ({ write, help: `did you mean \`${write}\`?` });
const condition: ForeignStatement = { help: 'conditions belong to a rule: `route when … to …`, `reject when …`' };

export const foreignStatements: ReadonlyMap<string, ForeignStatement> = new Map([
  ['if', condition],
  ['elif', condition],
  ['unless', condition],
  ['switch', condition],
  ['match', condition],
  ['else', { help: '`else` belongs to a route or a default, after its destination' }],
  ['var', writes('let')],
  ['const', writes('let')],
  ['val', writes('let')],
  ['allow', writes('admit')],
  ['permit', writes('admit')],
  ['deny', writes('reject')],
  ['block', writes('reject')],
  ['drop', writes('reject')],
  ['include', writes('import')],
  ['require', writes('use')],
  ['plugin', writes('use')],
  ['rule', writes('route')],
  ['fallback', { help: 'the last rule is `default to …`; `fallback` stands after `with`' }],
  ['return', { help: 'rules end by themselves; a refusal is `reject when … with status 503`' }],
]);

/** What words of other languages between two values, or in front of one, are written as. */
export const foreignOperatorWords: ReadonlyMap<string, string> = new Map([
  ['between', 'a range is written `x in 10..50`'],
  ['like', 'a part of a text is found by `contains "…"`, a pattern by `matches r"…"`'],
  ['ilike', 'a pattern is found by `matches r"…"i`'],
  ['is', 'values are compared by `==`; whether there is one is asked by `exists`'],
  ['equals', 'values are compared by `==`'],
  ['eq', 'values are compared by `==`'],
  ['ne', 'values are compared by `!=`'],
  ['gt', 'values are compared by `>`'],
  ['lt', 'values are compared by `<`'],
  ['startswith', 'a pattern is found by `matches r"^…"`'],
  ['starts_with', 'a pattern is found by `matches r"^…"`'],
  ['includes', 'a part of a text or list is found by `contains`'],
  ['has', 'a part of a text or list is found by `contains`'],
  ['defined', 'whether a value is there is asked by `x exists`'],
  ['order', 'endpoints are ordered by `by`'],
  ['via', 'destinations stand after `to`'],
  ['using', 'endpoints are compared after `by`'],
]);

const absent = 'there is no such value: `x exists` asks whether one is there, `x ?? …` gives another';

/** What a word for a value means. */
interface ForeignValue {
  readonly write?: string;
  readonly help: string;
}

const valueWords = (meant: ForeignValue, ...words: readonly string[]): readonly (readonly [string, ForeignValue])[] =>
  words.map((word) => [word, meant] as const);

/** Names of values that other languages have. */
export const foreignValues: ReadonlyMap<string, ForeignValue> = new Map([
  ...valueWords({ help: absent }, 'null', 'nil', 'none', 'None', 'undefined', 'NULL'),
  ...valueWords({ write: 'true', help: 'did you mean `true`?' }, 'yes', 'on', 'True', 'TRUE'),
  ...valueWords({ write: 'false', help: 'did you mean `false`?' }, 'no', 'off', 'False', 'FALSE'),
]);

/** What other products call a group of endpoints. */
export const foreignPools: ReadonlySet<string> = new Set([
  'upstream',
  'backend',
  'pool',
  'cluster',
  'service',
  'target',
  'group',
]);
