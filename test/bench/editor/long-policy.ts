/** Lines of a policy as a large team would have it: tiers, lets, groups, routes with every clause, admission, limits, tests. */
export const longPolicy = (lines: number): string => {
  const parts: string[] = [];
  const count = (): number => parts.reduce((sum, part) => sum + part.split('\n').length, 0);
  for (let tier = 0; tier < 12; tier += 1)
    parts.push(
      `define tier "t${tier}" { model: "model-${tier}", gpu: "H100", endpoints: ["http://10.0.${tier}.1:8000", "http://10.0.${tier}.2:8000"] }`,
    );
  parts.push(
    'define limit "plan" { key: tenant.id ?? "none", tokens: 200k/min, requests: 60/min }',
    'define slo "chat" { ttft: 500ms, tpot: 40ms }',
  );
  parts.push('let code = model == "coder" or prompt matches r"\\bstack trace\\b|\\bTypeError\\b"i');
  for (let rule = 0; count() < lines - 12; rule += 1) {
    const [tier, other] = [rule % 12, (rule + 5) % 12];
    parts.push(
      `## Prompts of kind ${rule}.`,
      `let kind_${rule} = prompt_tokens > ${rule + 1}k and complexity > ${rule % 100} and header["x-kind"] == "k${rule}"`,
    );
    if (rule % 7 === 0)
      parts.push(`reject "over ${rule}" when over_limit("plan") and kind_${rule} with status 429, message "used up"`);
    if (rule % 5 === 0)
      parts.push(
        `group "region ${rule}" when tenant.region == "r${rule}" {`,
        `  route "in region ${rule}" when kind_${rule}`,
        `    to tier "t${tier}" where load < 90% by 0.7 * lowest(queue_depth) + 0.3 * least_tokens with affinity session`,
        '}',
      );
    parts.push(
      `route "rule ${rule}" when kind_${rule} and not code and user in ["a${rule}", "b${rule}"]`,
      `  to tier "t${tier}", tier "t${other}" where predicted_ttft < ${500 + rule}ms and min(load, tier "t${other}") < 95%`,
      '  by least_tokens then lowest(queue_depth)',
      `  with retry 2 (on: [connect, timeout]), timeout 90s, fallback tier "t${other}" (on: [saturated, error])`,
      `  else queue with max_wait 2s, max_depth 500`,
    );
  }
  parts.push(
    'default to tier "t0" by least_tokens',
    'test "one" {',
    '  given complexity = 10',
    '  expect default',
    '}',
    '',
  );
  return parts.join('\n');
};
