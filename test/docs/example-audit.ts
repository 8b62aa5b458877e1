import { createCore } from '../../packages/core/src/index.ts';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';
import { BUILTIN_PLUGINS } from '../../packages/gateway/src/plugins/builtin-plugins.ts';
import { parseRequest } from '../../packages/openai-wire/src/index.ts';
import { auditLine } from '../../packages/telemetry/src/index.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The body of a chat request with this one message. */
export function bodyOf(content: string, more: object = {}): object {
  return { model: 'auto', messages: [{ role: 'user', content }], ...more };
}

const START_EPOCH_MS = Date.UTC(2026, 10, 30, 8);
const QUESTIONS = 'Is it prime? Is it odd? Is it large?';
const LONG = `Summarise this: ${'and so on '.repeat(17)}`.trim();

/** What the example's callers send, in order; request ids count from `r-1`. */
const TRAFFIC: readonly object[] = [
  bodyOf('Hello!'),
  bodyOf(QUESTIONS),
  bodyOf(QUESTIONS, { stream: true }),
  bodyOf(LONG),
  bodyOf(`${QUESTIONS} Is it even? Is it a square?`),
  bodyOf('What can these do?', {
    tools: Array.from({ length: 4 }, () => ({ type: 'function', function: { name: 'f' } })),
  }),
  bodyOf('Good morning.'),
  bodyOf(`${LONG} Really?`),
];

/** Audit lines of the example's traffic as a gateway with this policy writes them, by a clock of its own. */
export function exampleAudit(policy: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-example-'));
  let nowMs = 0;
  let lines = '';
  const core = createCore({
    clock: { now: () => nowMs, epochMs: () => START_EPOCH_MS + nowMs },
    scheduler: { setTimer: () => () => {} },
    onDecision: (record) => (lines += auditLine(record, 'read')),
  });
  try {
    writeFileSync(join(folder, 'policy.route'), policy);
    const { program } = createPolicyLoader({ cwd: folder, allowPlugins: [] }).load('policy.route');
    if (program === undefined) throw new Error('the policy of the guide has errors');
    core.activate(core.prepare(program, BUILTIN_PLUGINS));
    for (const [index, body] of TRAFFIC.entries()) {
      nowMs += 1000;
      const parsed = parseRequest('/v1/chat/completions', new TextEncoder().encode(JSON.stringify(body)));
      if (parsed.kind === 'error') throw new Error(parsed.message);
      const outcome = core.router.route({
        id: `r-${index + 1}`,
        parsed,
        headers: {},
        receivedAtMs: nowMs,
        deadlineMs: Number.POSITIVE_INFINITY,
      });
      if (outcome instanceof Promise) throw new Error('the example has no queue');
      if (outcome.kind === 'refuse') {
        outcome.finish();
        continue;
      }
      nowMs += 800;
      outcome.finish({
        outcome: 'ok',
        status: 200,
        upstreamStatus: 200,
        ttftMs: 90,
        durationMs: 800,
        promptTokens: 20,
        cachedTokens: 0,
        outputTokens: 60,
      });
    }
    return lines;
  } finally {
    core.close();
    rmSync(folder, { recursive: true });
  }
}
