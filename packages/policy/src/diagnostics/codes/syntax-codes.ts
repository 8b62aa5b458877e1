/** E01xx: lexical errors, syntax, limits. */
export const syntaxCodes = {
  E0101: {
    severity: 'error',
    title: 'unexpected character',
    explanation:
      'The character starts no word, literal or operator of the language. Outside strings and comments only the signs of the grammar may stand.',
    bad: 'route when complexity > 50 to tier "70B" ^ by least_tokens',
    good: 'route when complexity > 50 to tier "70B" by least_tokens',
  },
  E0102: {
    severity: 'error',
    title: 'string without an end',
    explanation:
      'A string ends with a double quote on the line on which it begins. Write a line break inside a string as `\\n`.',
    bad: 'route "hard when complexity > 50 to any',
    good: 'route "hard" when complexity > 50 to any',
  },
  E0103: {
    severity: 'error',
    title: 'unknown escape in a string',
    explanation:
      'Strings know the escapes of JSON: `\\"`, `\\\\`, `\\/`, `\\b`, `\\f`, `\\n`, `\\r`, `\\t` and `\\u` with four hexadecimal digits. A lone half of a surrogate pair is refused too.',
    bad: 'reject when model == "a\\q"',
    good: 'reject when model == "a\\\\q"',
  },
  E0104: {
    severity: 'error',
    title: 'unknown unit',
    explanation:
      'Durations end in `us ms s m h d`, counts in `k Ki M Mi B`, sizes in `KB MB GB KiB MiB GiB`. Case matters: `m` is minutes, `M` is million.',
    bad: 'route to any with timeout 90sec',
    good: 'route to any with timeout 90s',
  },
  E0105: {
    severity: 'error',
    title: 'space between a number and its unit',
    explanation: 'A number and its unit are one word: `5s`, `95%`, `$5`.',
    bad: 'route to any with timeout 5 s',
    good: 'route to any with timeout 5s',
  },
  E0106: {
    severity: 'error',
    title: 'malformed number',
    explanation:
      'A number is digits, which may be grouped by single `_`, with an optional fraction. There is no exponent, no leading and no trailing dot.',
    bad: 'route when complexity > .5 to any',
    good: 'route when complexity > 0.5 to any',
  },
  E0107: {
    severity: 'error',
    title: 'unknown unit of a rate',
    explanation:
      'A rate counts per `s`, `min`, `h` or `d`. `m` is not among them, because elsewhere it means minutes and beside counts `M` means million.',
    bad: 'define limit "free" { key: user, requests: 60/m }',
    good: 'define limit "free" { key: user, requests: 60/min }',
  },
  E0108: {
    severity: 'error',
    title: 'sign of another language',
    explanation:
      'Logic is written in words: `and`, `or`, `not`. Comments begin with `#`, strings stand in double quotes, statements need no terminator, equality is `==` and `!=`.',
    bad: 'route when stream && complexity > 50 to any',
    good: 'route when stream and complexity > 50 to any',
  },
  E0109: {
    severity: 'error',
    title: 'single `=` in a condition',
    explanation: '`=` gives a name its value in `let` and in `given`; two values are compared by `==`.',
    bad: 'route when model = "coder" to any',
    good: 'route when model == "coder" to any',
  },
  E0110: {
    severity: 'error',
    title: '`and` in place of a comma',
    explanation:
      'Modifiers after `with` and targets after `to` are lists, separated by commas. `and` joins conditions.',
    bad: 'route to any with affinity session and timeout 90s',
    good: 'route to any with affinity session, timeout 90s',
  },
  E0111: {
    severity: 'error',
    title: 'letter outside ASCII in a name',
    explanation:
      'Names consist of the letters A to Z, digits and `_`. Letters of other scripts may look the same and are not; strings and comments may hold any of them.',
    bad: 'let größe = prompt_tokens > 32k',
    good: 'let size = prompt_tokens > 32k',
  },
  E0112: {
    severity: 'error',
    title: 'bidirectional control character',
    explanation:
      'These characters change the order in which text is shown, so that a reader sees another policy than the one that runs. They are refused everywhere, comments included.',
    bad: 'reject when model == "\u202Ecoder"',
    good: 'reject when model == "coder"',
  },
  E0113: {
    severity: 'error',
    title: 'invisible character',
    explanation:
      'Outside strings and comments a character without a visible form (zero width space, no-break space, soft hyphen) separates words in a way that nobody sees.',
    bad: 'reject when\u00A0stream',
    good: 'reject when stream',
  },
  E0114: {
    severity: 'error',
    title: 'malformed regular expression literal',
    explanation:
      'A regular expression is `r"…"`, on one line, followed by any of the flags `i`, `m`, `s`. Inside, `\\"` stands for a quote and all else is taken as written.',
    bad: 'reject when prompt matches r"abc"x',
    good: 'reject when prompt matches r"abc"i',
  },
  E0120: {
    severity: 'error',
    title: 'unexpected word or sign',
    explanation: 'At this place the grammar allows something else; the message names what.',
    bad: 'define slo "fast" [ ttft: 500ms ]',
    good: 'define slo "fast" { ttft: 500ms }',
  },
  E0121: {
    severity: 'error',
    title: 'not a statement',
    explanation:
      'Every statement begins with one of `language import use define let group route default admit reject queue test ensure`.',
    bad: 'defualt to any',
    good: 'default to any',
  },
  E0122: {
    severity: 'error',
    title: 'missing `to`',
    explanation: 'A route names its candidates after `to`. The finding stands on the word that was found in its place.',
    bad: 'route when complexity > 50 tier "70B"',
    good: 'route when complexity > 50 to tier "70B"',
  },
  E0123: {
    severity: 'error',
    title: 'clause out of order or written twice',
    explanation:
      'The order of clauses is fixed: `when`, `to`, `where`, `by`, `pick`, `with`, `else`. Each stands at most once for a destination; only `else` repeats.',
    bad: 'route to any with affinity session by least_tokens',
    good: 'route to any by least_tokens with affinity session',
  },
  E0124: {
    severity: 'error',
    title: 'missing expression',
    explanation: 'A value, a name, or something in brackets is expected here.',
    bad: 'route when complexity > to any',
    good: 'route when complexity > 50 to any',
  },
  E0125: {
    severity: 'error',
    title: 'missing target',
    explanation:
      'After `to` and after each comma stands a target: a tier (`tier "70B"`), an endpoint, `any`, or a name bound by `let`; with a share in front for a split.',
    bad: 'route when complexity > 50 to by least_tokens',
    good: 'route when complexity > 50 to any by least_tokens',
  },
  E0126: {
    severity: 'error',
    title: 'bracket never closed',
    explanation:
      'Each `(`, `[` and `{` needs its partner. The finding stands where the partner was expected, and points back to the opening one.',
    bad: 'route when (complexity > 50 to any',
    good: 'route when (complexity > 50) to any',
  },
  E0127: {
    severity: 'error',
    title: 'closing bracket without an opening one',
    explanation: 'The bracket closes nothing. Remove it, or add the opening one.',
    bad: 'route when complexity > 50) to any',
    good: 'route when (complexity > 50) to any',
  },
  E0128: {
    severity: 'error',
    title: 'reserved word used as a name',
    explanation:
      'The words of the grammar cannot be names of your own. They may stand as keys of objects, as named arguments, and after a dot.',
    bad: 'let queue = prompt_tokens > 32k',
    good: 'let long = prompt_tokens > 32k',
  },
  E0129: {
    severity: 'error',
    title: 'chained comparison',
    explanation: 'A comparison has two sides. Write a range as `x in 1..5`, or join two comparisons by `and`.',
    bad: 'route when 10 < complexity < 50 to any',
    good: 'route when complexity in 10..50 to any',
  },
  E0130: {
    severity: 'error',
    title: '`language` not at the top',
    explanation: 'The version of the language stands once, as the first statement of the file.',
    bad: 'default to any\nlanguage 1',
    good: 'language 1\ndefault to any',
  },
  E0131: {
    severity: 'error',
    title: 'annotation without a statement',
    explanation: 'Annotations such as `@owner("x")` belong to the statement that follows them.',
    bad: 'default to any\n@owner("a")',
    good: '@owner("a")\ndefault to any',
  },
  E0132: {
    severity: 'error',
    title: 'neither `given` nor `expect` in a test',
    explanation: 'A test consists of `given` (what is so) and `expect` (what must come of it).',
    bad: 'test "a" { when complexity = 72 }',
    good: 'route "hard" when complexity > 50 to any\ntest "a" { given complexity = 72 expect route "hard" }',
  },
  E0133: {
    severity: 'error',
    title: 'unsupported version of the language',
    explanation:
      'The file asks for a version of the language that this program does not know. Nothing else of the file is reported, as its meaning is not known.',
    bad: 'language 2\ndefault to any',
    good: 'language 1\ndefault to any',
  },
  E0140: {
    severity: 'error',
    title: 'file too large',
    explanation: 'A policy file may have up to 1 MiB. Split it by `import`.',
    bad: '# a file of more than 1 MiB',
    good: 'import "./more.route"',
  },
  E0141: {
    severity: 'error',
    title: 'too many rules',
    explanation: 'A file may hold up to 20,000 rules (routes, defaults and admission rules).',
    bad: '# a file of more than 20,000 rules',
    good: 'default to any',
  },
  E0142: {
    severity: 'error',
    title: 'nested too deeply',
    explanation:
      'Brackets may nest up to 64 deep, and one expression up to 256 operators deep. Name parts of it by `let`.',
    bad: '# route when ((((… 65 times …)))) to any',
    good: 'let long = prompt_tokens > 32k\nroute when long to any',
  },
  E0143: {
    severity: 'error',
    title: 'list too long',
    explanation: 'A list may have up to 10,000 items.',
    bad: '# reject when user in ["a", … 10,001 items …]',
    good: 'reject when user in ["a", "b"]',
  },
  E0144: {
    severity: 'error',
    title: 'too much that cannot be read',
    explanation:
      'After 1,000 statements that cannot be read the rest of the file is not looked at: it is most likely no policy. Nothing is known of what follows, valid statements among it.',
    bad: '# 1,001 statements that cannot be read',
    good: 'default to any',
  },
} as const;
