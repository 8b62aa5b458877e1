/** E04xx: targets, splits, modifiers, outcomes. */
export const destinationCodes = {
  E0401: {
    severity: 'error',
    title: 'shares that do not total 100 %',
    explanation: 'The shares of a split must total 100 %, within 0.01 %.',
    bad: 'default to 90% tier "a", 5% tier "b"',
    good: 'default to 95% tier "a", 5% tier "b"',
  },
  E0402: {
    severity: 'error',
    title: 'split with and without shares',
    explanation: 'Either every target of a destination has a share, or none has.',
    bad: 'default to 95% tier "a", tier "b"',
    good: 'default to 95% tier "a", 5% tier "b"',
  },
  E0403: {
    severity: 'error',
    title: 'target written twice',
    explanation: 'A target stands once in a destination.',
    bad: 'default to tier "a", tier "a"',
    good: 'default to tier "a", tier "b"',
  },
  E0404: {
    severity: 'error',
    title: 'not a target',
    explanation: 'A destination names tiers, endpoints, `any`, or a `let` that is one of these.',
    bad: 'default to complexity',
    good: 'default to any',
  },
  E0405: {
    severity: 'error',
    title: 'unknown cause of a fallback or retry',
    explanation:
      'Causes are `saturated`, `connect`, `error`, `timeout`, `first_token`, `rate_limited` and `context_exceeded`; they are distinct.',
    bad: 'default to any with retry 2 (on: [conect])',
    good: 'default to any with retry 2 (on: [connect])',
  },
  E0406: {
    severity: 'error',
    title: '`by` on a verdict that does not queue',
    explanation: '`by` orders a queue; `admit` and `reject` have none.',
    bad: 'reject when stream by least_tokens',
    good: 'reject when stream',
  },
  E0407: {
    severity: 'error',
    title: 'modifier that does not belong here',
    explanation:
      'Some modifiers are for destinations (`affinity`, `retry`, `fallback` …), some for verdicts (`status`, `message`, `max_wait` …).',
    bad: 'reject when stream with affinity session',
    good: 'reject when stream with status 429',
  },
  E0408: {
    severity: 'error',
    title: 'modifier without its value',
    explanation: 'The modifier needs a value after its name.',
    bad: 'default to any with timeout',
    good: 'default to any with timeout 90s',
  },
  E0409: {
    severity: 'error',
    title: 'value that the modifier does not take',
    explanation: 'The modifier takes a value of another type, or another form.',
    bad: 'default to any with timeout "long"',
    good: 'default to any with timeout 90s',
  },
  E0410: {
    severity: 'error',
    title: 'bound below 1',
    explanation: 'A load bound is a factor of the mean load; below 1 no endpoint could take its share.',
    bad: 'default to any with affinity(session, bound: 0.9)',
    good: 'default to any with affinity(session, bound: 1.25)',
  },
  E0411: {
    severity: 'error',
    title: 'modifier written twice',
    explanation: 'A modifier stands once for a destination; only `fallback`, `header`, `set` and `drop` repeat.',
    bad: 'default to any with timeout 90s, timeout 60s',
    good: 'default to any with timeout 90s',
  },
  E0412: {
    severity: 'error',
    title: '`else` that can never be reached',
    explanation: 'A verdict other than `queue`, and `next`, end the chain of `else`.',
    bad: 'route when stream to any else reject else to any',
    good: 'route when stream to any else to tier "b" else reject',
  },
  E0413: {
    severity: 'error',
    title: 'missing comma between modifiers',
    explanation: 'A modifier that is followed by the name of another needs a comma in between.',
    bad: 'default to any with affinity session timeout 90s',
    good: 'default to any with affinity session, timeout 90s',
  },
  E0414: {
    severity: 'error',
    title: 'share out of range',
    explanation: 'A share lies between 0 % and 100 %.',
    bad: 'default to 120% tier "a"',
    good: 'default to 100% tier "a"',
  },
  E0415: {
    severity: 'error',
    title: 'status that is no refusal',
    explanation: '`status` of a `reject` is an HTTP status from 400 to 599.',
    bad: 'reject when stream with status 200',
    good: 'reject when stream with status 429',
  },
  E0416: {
    severity: 'error',
    title: 'header or field that may not be changed',
    explanation:
      'Headers that frame or authorise the request (`host`, `authorization`, `content-length`, hop-by-hop headers) belong to the gateway.',
    bad: 'default to any with header "host" "example.org"',
    good: 'default to any with header "x-team" "search"',
  },
  E0417: {
    severity: 'error',
    title: '`admit` where a destination is needed',
    explanation:
      '`admit` ends the admission phase; after `else` and `default` stands `to`, `reject`, `queue` or `next`.',
    bad: 'default admit',
    good: 'default to any',
  },
  E0420: {
    severity: 'error',
    title: '`ensure` that does not hold',
    explanation:
      'The witness is a request for which the policy does what `ensure` excludes, or fails to do what it demands.',
    bad: 'route to tier "us"\nensure "a" when tenant.region == "eu" never to tier "us"',
    good: 'route when tenant.region != "eu" to tier "us"\nensure "a" when tenant.region == "eu" never to tier "us"',
  },
} as const;
