import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { answerError, answerUsage, isContextExceeded, restoreModel } from './answer.ts';
import { errorBody, errorEvent } from './error-envelope.ts';
import { isJson } from './json-scanner.ts';
import { estimateTokens, TokenRatio } from './token-estimate.ts';

const fixtures = new URL('../fixtures/', import.meta.url);
const encoder = new TextEncoder();

describe('recorded plain answers', () => {
  const answers = readdirSync(fixtures).filter(
    (name) => name.endsWith('.json') && !name.includes('chunks') && !name.includes('error'),
  );

  it.each(answers)('%s: usage is read and the model restored, nothing else touched', (name) => {
    const bytes = new Uint8Array(readFileSync(new URL(name, fixtures)));
    const value = JSON.parse(new TextDecoder().decode(bytes)) as {
      readonly model: string;
      readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
    };
    expect(answerUsage(bytes)).toMatchObject({
      promptTokens: value.usage.prompt_tokens,
      outputTokens: value.usage.completion_tokens,
    });
    const out = new TextDecoder().decode(restoreModel(bytes, 'alias'));
    expect(out).toBe(new TextDecoder().decode(bytes).replace(JSON.stringify(value.model), '"alias"'));
  });

  it.each(answers)('%s: is JSON, and no part of it is', (name) => {
    const bytes = new Uint8Array(readFileSync(new URL(name, fixtures)));
    const end = new TextDecoder().decode(bytes).trimEnd().length;
    const whole: number[] = [];
    for (let cut = 0; cut < bytes.length; cut++) if (isJson(bytes.subarray(0, cut))) whole.push(cut);
    expect(whole.every((cut) => cut >= end)).toBe(true);
    expect(isJson(bytes)).toBe(true);
    expect(isJson(encoder.encode(`${new TextDecoder().decode(bytes)}{}`))).toBe(false);
  });

  it('an answer that is no JSON stays as it is', () => {
    const bytes = encoder.encode('{"model');
    expect(restoreModel(bytes, 'x')).toBe(bytes);
    expect(answerUsage(bytes).promptTokens).toBeNaN();
  });
});

describe('upstream errors', () => {
  it.each([
    `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
    `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","param":null,"code":400}`,
    `{"error":{"message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError"}}`,
    `{"error":"Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= 4096","message":"Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= 4096"}`,
    `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`,
  ])('a prompt that does not fit is recognised: %s', (body) => {
    expect(isContextExceeded(encoder.encode(body))).toBe(true);
  });

  it('other 400s are not', () => {
    for (const name of readdirSync(fixtures).filter((file) => file.startsWith('openai-error'))) {
      expect(isContextExceeded(new Uint8Array(readFileSync(new URL(name, fixtures))))).toBe(false);
    }
    expect(answerError(encoder.encode('<html>'))).toEqual({ code: '', message: '' });
  });
});

describe('our own errors', () => {
  it('have the shape of the API they answer', () => {
    expect(JSON.parse(errorBody('/v1/chat/completions', 404, 'model_not_found', 'm'))).toEqual({
      error: { message: 'm', type: 'invalid_request_error', param: null, code: 'model_not_found' },
    });
    expect(JSON.parse(errorBody('/v1/messages', 503, 'no_endpoint', 'm'))).toEqual({
      type: 'error',
      error: { type: 'overloaded_error', message: 'm' },
    });
    expect(errorEvent('chat', 'upstream_disconnected', 'm')).toBe(
      'data: {"error":{"message":"m","type":"server_error","param":null,"code":"upstream_disconnected"}}\n\n',
    );
    expect(errorEvent('messages', 'c', 'm')).toMatch(/^event: error\ndata: /);
    expect(errorEvent('responses', 'c', 'm')).toMatch(/^event: response\.failed\ndata: /);
  });
});

describe('token estimate', () => {
  it('is four code points a token until answers teach better, within 1 to 8', () => {
    expect(estimateTokens(9)).toBe(3);
    const ratio = new TokenRatio();
    expect(ratio.charsPerToken).toBe(4);
    for (let i = 0; i < 2000; i++) ratio.learn(3000, 1000);
    expect(ratio.charsPerToken).toBeCloseTo(3, 2);
    for (let i = 0; i < 2000; i++) ratio.learn(50_000, 1000);
    expect(ratio.charsPerToken).toBe(8);
    ratio.learn(Number.NaN, 5);
    ratio.learn(5, 0);
    expect(ratio.charsPerToken).toBe(8);
  });
});
