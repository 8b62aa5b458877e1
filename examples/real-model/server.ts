/*
 * A small OpenAI-compatible model server over llama.cpp: real tokens, real prefix cache, one thread. It is a test backend, not a product:
 * chat messages are joined as plain text, since stories260K knows no chat template.
 *
 *   node server.ts [--port 8101] [--model model/stories260K.gguf] [--sequences 4]
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import type { LlamaContextSequence, Token } from 'node-llama-cpp';

const MODEL_NAME = 'stories260k';
const CONTEXT_TOKENS = 512;

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '8101' },
    model: { type: 'string', default: fileURLToPath(new URL('model/stories260K.gguf', import.meta.url)) },
    sequences: { type: 'string', default: '4' },
  },
});

const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: values.model });
const sequenceCount = Number(values.sequences);
const context = await model.createContext({ contextSize: CONTEXT_TOKENS, threads: 1, sequences: sequenceCount });
const idle: LlamaContextSequence[] = Array.from({ length: sequenceCount }, () => context.getSequence());
const waiting: ((sequence: LlamaContextSequence) => void)[] = [];

interface Generation {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** An idle sequence, the one that holds the longest start of `tokens`; waits for one if all are busy. */
async function takeSequence(tokens: readonly Token[]): Promise<LlamaContextSequence> {
  if (idle.length === 0) return new Promise((resolve) => waiting.push(resolve));
  const shared = idle.map((sequence) => sharedPrefix(sequence.contextTokens, tokens));
  const [sequence] = idle.splice(shared.indexOf(Math.max(...shared)), 1);
  return sequence;
}

function giveSequence(sequence: LlamaContextSequence): void {
  const next = waiting.shift();
  if (next === undefined) idle.push(sequence);
  else next(sequence);
}

function sharedPrefix(held: readonly Token[], wanted: readonly Token[]): number {
  let i = 0;
  while (i < held.length && i < wanted.length && held[i] === wanted[i]) i++;
  return i;
}

/** Greedy decoding, which makes answers repeatable. Calls `onText` with each piece of text; stops when `abort` fires. */
async function generate(
  prompt: string,
  maxTokens: number,
  abort: AbortSignal,
  onStart: (start: Generation) => void,
  onText: (text: string) => void,
): Promise<{ outputTokens: number; finish: 'stop' | 'length' }> {
  const tokens = [model.tokens.bos!, ...model.tokenize(prompt)];
  const sequence = await takeSequence(tokens);
  try {
    // the last token is always evaluated: its logits give the first token of the answer
    await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
    const cachedTokens = sequence.nextTokenIndex;
    onStart({ promptTokens: tokens.length, cachedTokens });
    const output: Token[] = [];
    let shown = '';
    const limit = Math.min(maxTokens, CONTEXT_TOKENS - tokens.length);
    for await (const token of sequence.evaluate(tokens.slice(cachedTokens), { temperature: 0 })) {
      if (abort.aborted) break;
      if (model.isEogToken(token)) return { outputTokens: output.length, finish: 'stop' };
      output.push(token);
      const text = model.detokenize(output, false, tokens);
      if (!text.endsWith('\uFFFD')) {
        onText(text.slice(shown.length));
        shown = text;
      }
      if (output.length >= limit) break;
    }
    return { outputTokens: output.length, finish: 'length' };
  } finally {
    giveSequence(sequence);
  }
}

interface Body {
  readonly model?: string;
  readonly messages?: readonly { readonly content?: string | null }[];
  readonly prompt?: string;
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Body;
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

let requests = 0;

async function complete(request: IncomingMessage, response: ServerResponse, chat: boolean): Promise<void> {
  const body = await readBody(request);
  if (body.model !== MODEL_NAME) {
    sendJson(response, 404, {
      error: {
        message: `The model \`${body.model}\` does not exist.`,
        type: 'NotFoundError',
        param: 'model',
        code: 404,
      },
    });
    return;
  }
  const prompt = chat ? (body.messages ?? []).map(({ content }) => content ?? '').join('') : (body.prompt ?? '');
  const abort = new AbortController();
  response.on('close', () => abort.abort());
  const id = `${chat ? 'chatcmpl' : 'cmpl'}-${++requests}`;
  const base = { id, created: Math.floor(Date.now() / 1000), model: MODEL_NAME };
  const choice = (text: string, finish: string | null): object =>
    chat
      ? { index: 0, delta: text === '' ? {} : { content: text }, finish_reason: finish }
      : { index: 0, text, finish_reason: finish };
  const object = chat ? 'chat.completion.chunk' : 'text_completion';
  const event = (data: object): void => void response.write(`data: ${JSON.stringify(data)}\n\n`);
  let start: Generation = { promptTokens: 0, cachedTokens: 0 };
  let text = '';
  const { outputTokens, finish } = await generate(
    prompt,
    body.max_completion_tokens ?? body.max_tokens ?? 64,
    abort.signal,
    (given) => {
      start = given;
      if (body.stream === true) response.writeHead(200, { 'content-type': 'text/event-stream' });
    },
    (piece) => {
      text += piece;
      if (body.stream === true) event({ ...base, object, choices: [choice(piece, null)] });
    },
  );
  const usage = {
    prompt_tokens: start.promptTokens,
    completion_tokens: outputTokens,
    total_tokens: start.promptTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: start.cachedTokens },
  };
  if (body.stream === true) {
    event({ ...base, object, choices: [choice('', finish)] });
    if (body.stream_options?.include_usage === true) event({ ...base, object, choices: [], usage });
    response.end('data: [DONE]\n\n');
    return;
  }
  const whole = chat
    ? { index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }
    : { index: 0, text, finish_reason: finish };
  sendJson(response, 200, { ...base, object: chat ? 'chat.completion' : 'text_completion', choices: [whole], usage });
}

const server = createServer((request, response) => {
  const path = request.url?.split('?')[0];
  if (request.method === 'POST' && (path === '/v1/chat/completions' || path === '/v1/completions')) {
    complete(request, response, path === '/v1/chat/completions').catch((error: unknown) => {
      if (!response.headersSent)
        sendJson(response, 500, { error: { message: String(error), type: 'server_error', param: null, code: null } });
      else response.destroy();
    });
  } else if (path === '/v1/models') {
    sendJson(response, 200, {
      object: 'list',
      data: [{ id: MODEL_NAME, object: 'model', created: 0, owned_by: 'karpathy', max_model_len: CONTEXT_TOKENS }],
    });
  } else if (path === '/health') {
    sendJson(response, 200, { status: 'ok' });
  } else {
    sendJson(response, 404, { error: { message: `no ${path}`, type: 'NotFoundError', param: null, code: 404 } });
  }
});
server.listen(Number(values.port), '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(
    `listening on http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : values.port}\n`,
  );
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    server.close(() => process.exit(0));
    server.closeAllConnections();
  });
}
