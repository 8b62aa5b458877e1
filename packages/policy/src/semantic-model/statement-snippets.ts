/** A statement to begin with: its word alone, or a frame of it. */
export interface StatementSnippet {
  readonly word: string;
  readonly label: string;
  readonly doc: string;
  readonly insert: string;
  /** Whether it may stand in a group. */
  readonly group: boolean;
}

const frame = (word: string, label: string, doc: string, insert: string, group = false): StatementSnippet => ({
  word,
  label,
  doc,
  insert,
  group,
});
const bare = (word: string, doc: string, group = false): StatementSnippet => frame(word, word, doc, word, group);

/** In the order in which a policy is usually written. */
export const statementSnippets: readonly StatementSnippet[] = [
  bare('language', 'the version of the language'),
  bare('import', 'another policy file'),
  bare('use', 'a plugin package'),
  bare('define', 'a tier, a limit, an objective …'),
  bare('let', 'a name for an expression', true),
  bare('group', 'rules that share a condition', true),
  bare('route', 'where requests go', true),
  bare('default', 'what holds where no route does', true),
  bare('admit', 'let requests in', true),
  bare('reject', 'refuse requests', true),
  bare('queue', 'let requests wait', true),
  bare('test', 'an example with its outcome'),
  bare('ensure', 'what must always or never happen'),
  frame(
    'route',
    'route when … to …',
    'a route',
    'route "${1:label}" when ${2:complexity > 50}\n  to tier "${3:70B}" by ${4:least_tokens}',
    true,
  ),
  frame('default', 'default to …', 'a default', 'default to tier "${1:8B}" by ${2:least_tokens}', true),
  frame(
    'define',
    'define tier',
    'a tier',
    'define tier "${1:8B}" {\n  model: "${2:llama-3.1-8b}"\n  endpoints: ["${3:http://10.0.0.11:8000}"]\n}',
  ),
  frame('define', 'define slo', 'an objective', 'define slo "${1:interactive}" { ttft: ${2:500ms}, tpot: ${3:40ms} }'),
  frame(
    'define',
    'define limit',
    'a limit',
    'define limit "${1:free plan}" { key: ${2:tenant.id}, requests: ${3:60/min} }',
  ),
  frame(
    'define',
    'define alarm',
    'an alarm',
    'define alarm "${1:hot}" { when: ${2:cluster.saturation > 85%}, until: ${3:cluster.saturation < 70%}, for: ${4:5s} }',
  ),
  frame('let', 'let … = …', 'a name for an expression', 'let ${1:name} = ${2:prompt_tokens > 32k}', true),
  frame(
    'group',
    'group "…" { … }',
    'rules that share a condition',
    'group "${1:label}" when ${2:tenant.region == "eu"} {\n  $0\n}',
    true,
  ),
  frame(
    'reject',
    'reject when …',
    'refuse requests',
    'reject "${1:over quota}" when ${2:over_limit("free plan")} with status ${3:429}',
    true,
  ),
  frame(
    'queue',
    'queue when …',
    'let requests wait',
    'queue "${1:brown-out}" when ${2:cluster.saturation > 85%} with max_wait ${3:3s}, max_depth ${4:1k}',
    true,
  ),
  frame(
    'test',
    'test "…" { … }',
    'an example with its outcome',
    'test "${1:what happens}" {\n  given ${2:complexity = 72}\n  expect ${3:route "label"}\n}',
  ),
  frame(
    'ensure',
    'ensure "…" … never …',
    'what must never happen',
    'ensure "${1:why}" when ${2:tenant.region == "eu"} never to tier "${3:us}"',
  ),
];
