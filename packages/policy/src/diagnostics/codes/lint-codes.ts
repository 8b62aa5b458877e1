/** W05xx: lints. */
export const lintCodes = {
  W0501: {
    severity: 'warning',
    title: 'unreachable rule',
    explanation:
      'Every request that would come here has been decided above: by a `default`, a rule without `when`, `reject` rules, or rules that together take all of it. Those rules are shown beside it. A `queue` and a rule with `else next` keep nothing from the rules below.',
    bad: 'default to any\nroute "late" when stream to any',
    good: 'route "early" when stream to any\ndefault to any',
  },
  W0502: {
    severity: 'warning',
    title: 'shadowed rule',
    explanation:
      'The condition implies that of one earlier rule, which therefore always wins. The example is a request that meets both.',
    bad: 'route "a" when complexity > 50 to any\nroute "b" when complexity > 80 to any\ndefault to any',
    good: 'route "b" when complexity > 80 to any\nroute "a" when complexity > 50 to any\ndefault to any',
  },
  W0503: {
    severity: 'warning',
    title: 'condition that can never hold',
    explanation:
      'For no request is the condition, or the part of it that is shown, known to be true: its parts exclude each other, a value lies outside of what the signal can be, or the condition is unknown whatever comes. Decided exactly over numbers (whole ones where the signal is a count of things), enumerations, strings and booleans.',
    bad: 'route when complexity > 80 and complexity < 50 to any\ndefault to any',
    good: 'route when complexity > 50 and complexity < 80 to any\ndefault to any',
  },
  W0504: {
    severity: 'warning',
    title: 'condition that always holds',
    explanation: 'Every request meets the condition, or the part of it that is shown, which therefore can be left out.',
    bad: 'route when complexity >= 0 to any',
    good: 'route to any',
  },
  W0505: {
    severity: 'warning',
    title: 'overlapping rules',
    explanation:
      'Some request, given as an example, meets both conditions, so the order of the rules matters. Reported by `signalbox check --overlap` only; a `default` overlaps with everything and is not reported.',
    bad: 'route "a" when complexity > 50 to any\nroute "b" when stream to any\ndefault to any',
    good: 'route "a" when complexity > 50 and not stream to any\nroute "b" when stream to any\ndefault to any',
  },
  W0506: {
    severity: 'warning',
    title: 'no default',
    explanation:
      'A request that meets no rule is answered by 503 `no_route`; an example is given. Where it is proved that every request meets some rule, nothing is reported. With `--strict` a missing `default` is an error in any case.',
    bad: 'route when stream to any',
    good: 'route when stream to any\ndefault to any',
  },
  W0507: {
    severity: 'warning',
    title: 'unused `let`',
    explanation: 'Nothing uses the name.',
    bad: 'let long = prompt_tokens > 32k\ndefault to any',
    good: 'let long = prompt_tokens > 32k\nroute when long to any\ndefault to any',
  },
  W0508: {
    severity: 'warning',
    title: 'unused plugin',
    explanation: 'Nothing uses what the plugin provides.',
    bad: 'use "@acme/signalbox-carbon" as carbon\ndefault to any',
    good: 'use "@acme/signalbox-carbon" as carbon\ndefault to any by carbon.least_grams',
  },
  W0509: {
    severity: 'warning',
    title: 'unused import',
    explanation: 'Nothing uses a name of the imported file.',
    bad: 'import "./tenants.route" as tenants\ndefault to any',
    good: 'import "./tenants.route" as tenants\nroute when tenant.id in tenants.gold to any\ndefault to any',
  },
  W0510: {
    severity: 'warning',
    title: 'mixed scripts in one word',
    explanation: 'A word in a string or name mixes letters of scripts that look alike, such as Latin and Cyrillic.',
    bad: 'reject when model == "c\u043Eder"',
    good: 'reject when model == "coder"',
  },
  W0511: {
    severity: 'warning',
    title: 'admission rule that fails open',
    explanation:
      'The condition can be unknown, and a clause fires only when it is known true: the request would pass. Give a fallback by `??`.',
    bad: 'reject when tenant.region == "us"',
    good: 'reject when (tenant.region ?? "us") == "us"',
  },
  W0512: {
    severity: 'warning',
    title: 'suspicious unit',
    explanation: 'The value is legal and unusual for its unit: a time-out of days, a share above 100 %.',
    bad: 'default to any with timeout 90h',
    good: 'default to any with timeout 90s',
  },
  W0513: {
    severity: 'warning',
    title: 'expired',
    explanation: 'The date of `@expires` has passed.',
    bad: '@expires("2020-01-01") default to any',
    good: '@expires("2999-01-01") default to any',
  },
  W0514: {
    severity: 'note',
    title: 'tier names not checked',
    explanation:
      'No tier is known to the compiler, so that names of tiers were taken as they stand. Give a catalogue by `--catalogue`.',
    bad: 'default to tier "8B"',
    good: 'define tier "8B" { model: "m", endpoints: ["http://127.0.0.1:1"] }\ndefault to tier "8B"',
  },
  W0515: {
    severity: 'warning',
    title: 'share of 0 %',
    explanation: 'The target receives nothing except what other arms cannot take.',
    bad: 'default to 100% tier "a", 0% tier "b"',
    good: 'default to tier "a"',
  },
  W0516: {
    severity: 'warning',
    title: 'value that nothing provides',
    explanation: 'In this build or fleet nothing feeds the signal or property, so it is always unknown.',
    bad: 'route to any where kv_cache_used < 90%',
    good: 'route to any where load < 90%',
  },
  W0517: {
    severity: 'warning',
    title: 'unused definition',
    explanation: 'Nothing refers to the definition.',
    bad: 'define slo "fast" { ttft: 1s }\ndefault to any',
    good: 'define slo "fast" { ttft: 1s }\nroute when sla("fast", any) to any\ndefault to any',
  },
  W0518: {
    severity: 'warning',
    title: 'invisible character in a string',
    explanation: 'A string holds a character that cannot be seen, so that it equals nothing that looks like it.',
    bad: 'reject when model == "co\u200Bder"',
    good: 'reject when model == "coder"',
  },
  W0519: {
    severity: 'warning',
    title: '`ensure` that could not be proved',
    explanation:
      'A part of the policy lies outside what can be decided exactly (a regular expression, a plugin predicate), or the budget ran out.',
    bad: 'route when prompt matches r"\\bsecret\\b" to tier "us"\ndefault to tier "eu"\nensure "a" never to tier "us"',
    good: 'route when tenant.region == "us" to tier "us"\ndefault to tier "eu"\nensure "a" when tenant.region == "eu" never to tier "us"',
  },
  W0520: {
    severity: 'warning',
    title: 'unused `@allow`',
    explanation: 'The statement gives no such warning.',
    bad: '@allow(W0501, "meant so") default to any',
    good: 'default to any',
  },
  W0521: {
    severity: 'warning',
    title: 'written, and without effect in this build',
    explanation:
      'The language has it, and this build of Signalbox does not act on it: requests are handled as though it were not written. Hedging, mirroring, prefill/decode pairs, discoveries, profiles, CORS, shared state and several workers are such.',
    bad: 'default to any with hedge 800ms',
    good: 'default to any with retry 1',
  },
} as const;
