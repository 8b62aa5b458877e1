/** What an answer says of itself, the same in each of its parts. */
export interface AnswerHead {
  readonly kind: 'chat' | 'completion';
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** Token counts of a finished request. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

/** The usage object, with its keys in vLLM's order. */
export const usageJson = ({
  promptTokens,
  completionTokens,
  cachedTokens,
}: Usage): Readonly<Record<string, unknown>> => ({
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + completionTokens,
  completion_tokens: completionTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
});

/** The texts of one stream. Built once a request: a token event is two fixed strings round the token. */
export interface StreamFormat {
  /** The event before the first token: the role, or nothing. */
  readonly opening: string;
  /** The event of one token, whose text must need no escape in JSON. */
  token(text: string): string;
  finish(reason: 'stop' | 'length'): string;
  usage(usage: Usage): string;
}

/** The end of every stream. */
export const streamEnd = 'data: [DONE]\n\n';

/** The stream of an answer, byte for byte as vLLM writes it (0.24), without its null token ids. */
export function streamFormat(head: AnswerHead): StreamFormat {
  const isChat = head.kind === 'chat';
  const object = isChat ? 'chat.completion.chunk' : 'text_completion';
  const start = `data: {"id":${JSON.stringify(head.id)},"object":"${object}","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[`;
  const before = `${start}{"index":0,${isChat ? '"delta":{"content":"' : '"text":"'}`;
  const after = `"${isChat ? '}' : ''},"logprobs":null,"finish_reason":null}]}\n\n`;
  return {
    opening: isChat
      ? `${start}{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n`
      : '',
    token: (text) => before + text + after,
    finish: (reason) =>
      `${start}{"index":0,${isChat ? '"delta":{}' : '"text":""'},"logprobs":null,"finish_reason":"${reason}","stop_reason":null}]}\n\n`,
    usage: (usage) => `${start}],"usage":${JSON.stringify(usageJson(usage))}}\n\n`,
  };
}

/** A whole answer. */
export function wholeAnswer(head: AnswerHead, text: string, reason: 'stop' | 'length', usage: Usage): string {
  const choice =
    head.kind === 'chat'
      ? { index: 0, message: { role: 'assistant', content: text, refusal: null, tool_calls: [] } }
      : { index: 0, text };
  return JSON.stringify({
    id: head.id,
    object: head.kind === 'chat' ? 'chat.completion' : 'text_completion',
    created: head.created,
    model: head.model,
    choices: [{ ...choice, logprobs: null, finish_reason: reason, stop_reason: null }],
    usage: usageJson(usage),
  });
}
