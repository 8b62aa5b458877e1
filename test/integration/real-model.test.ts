import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Gateway } from '../../packages/gateway/src/gateway.ts';
import { startGateway } from '../../packages/gateway/src/gateway.ts';

const serverPath = fileURLToPath(new URL('../../examples/real-model/server.ts', import.meta.url));
const servers: ChildProcess[] = [];
let urls: string[];
let folder: string;
let gateway: Gateway;

/** A model server of its own process, and its address once it listens. */
function startServer(): Promise<string> {
  const child = spawn(process.execPath, [serverPath, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  servers.push(child);
  return new Promise((resolve, reject) => {
    let out = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
      const url = /listening on (http:\S+)/.exec(out)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.on('exit', (code) =>
      reject(new Error(`the model server ended with ${code}; has examples/real-model/install.sh run?`)),
    );
  });
}

beforeAll(async () => {
  urls = await Promise.all([startServer(), startServer()]);
  folder = mkdtempSync(join(tmpdir(), 'signalbox-real-model-'));
  const policyPath = join(folder, 'policy.route');
  writeFileSync(
    policyPath,
    `define gateway { models: ["stories"] }
     define tier "tiny" { model: "stories260k", context_window: 512, endpoints: ["${urls[0]}", "${urls[1]}"] }
     default to tier "tiny" by least_tokens with affinity session`,
  );
  gateway = await startGateway({ policyPath, listen: '127.0.0.1:0', admin: '127.0.0.1:0' });
});

afterAll(async () => {
  await gateway?.stop({ graceMs: 0 });
  for (const child of servers) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

const clientOf = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });

interface Turn {
  readonly text: string;
  readonly endpoint: string | null;
  readonly promptTokens: number;
  readonly evaluatedTokens: number;
  readonly ttftMs: number;
}

/** One streamed completion, with how many prompt tokens the server really evaluated. */
async function complete(client: OpenAI, model: string, prompt: string, session?: string): Promise<Turn> {
  const startedAtMs = performance.now();
  let ttftMs = Number.NaN;
  const { data, response } = await client.completions
    .create(
      { model, prompt, max_tokens: 60, stream: true, stream_options: { include_usage: true } },
      session === undefined ? {} : { headers: { 'x-session-id': session } },
    )
    .withResponse();
  let text = '';
  let usage: OpenAI.CompletionUsage | undefined;
  for await (const chunk of data) {
    if (Number.isNaN(ttftMs)) ttftMs = performance.now() - startedAtMs;
    text += chunk.choices[0]?.text ?? '';
    usage = chunk.usage ?? usage;
  }
  const promptTokens = usage?.prompt_tokens ?? Number.NaN;
  return {
    text,
    endpoint: response.headers.get('x-signalbox-endpoint'),
    promptTokens,
    evaluatedTokens: promptTokens - (usage?.prompt_tokens_details?.cached_tokens ?? 0),
    ttftMs,
  };
}

const PROMPTS = ['Once upon a time', 'The little dog was', 'One day, Tom and Lily went to the park.'];

test('text through the gateway is what the model server says when asked directly', async () => {
  const through = clientOf(gateway.url);
  for (const prompt of PROMPTS) {
    const direct = await clientOf(urls[0] ?? '').completions.create({ model: 'stories260k', prompt, max_tokens: 60 });
    const plain = await through.completions.create({ model: 'stories', prompt, max_tokens: 60 });
    const streamed = await complete(through, 'stories', prompt);
    expect(direct.choices[0]?.text.length).toBeGreaterThan(50);
    expect(plain.choices[0]?.text).toBe(direct.choices[0]?.text);
    expect(streamed.text).toBe(direct.choices[0]?.text);
    expect(plain.model).toBe('stories');
  }
});

test('the second turn of a session stays on its server, which evaluates far fewer tokens than the other would', async () => {
  const through = clientOf(gateway.url);
  const rows: string[] = [];
  const endpoints = new Set<string | null>();
  for (let session = 1; session <= 6; session++) {
    const opening = `Session ${session}: once upon a time there was a child named number ${session} who liked to play with a big red ball in the garden. One day`;
    const first = await complete(through, 'stories', opening, `session-${session}`);
    const dialogue = `${opening}${first.text} Then the child`;
    const second = await complete(through, 'stories', dialogue, `session-${session}`);
    expect(second.endpoint).toBe(first.endpoint);
    endpoints.add(first.endpoint);
    const other = urls[first.endpoint === 'tiny/1' ? 1 : 0] ?? '';
    const elsewhere = await complete(clientOf(other), 'stories260k', dialogue);
    expect(elsewhere.text).toBe(second.text);
    expect(second.evaluatedTokens).toBeLessThan(second.promptTokens / 2);
    expect(second.evaluatedTokens).toBeLessThan(elsewhere.evaluatedTokens / 2);
    rows.push(
      `session ${session} on ${second.endpoint}: ${second.promptTokens} prompt tokens; evaluated ${second.evaluatedTokens} there, ${elsewhere.evaluatedTokens} elsewhere; ` +
        `first token ${second.ttftMs.toFixed(1)} ms there, ${elsewhere.ttftMs.toFixed(1)} ms elsewhere`,
    );
  }
  process.stdout.write(`${rows.join('\n')}\n`);
  expect(endpoints).toEqual(new Set(['tiny/1', 'tiny/2']));
});
