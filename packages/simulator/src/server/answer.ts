import type { ServerResponse } from 'node:http';
import { errorEvent } from '@signalbox/openai-wire';
import type { FinishReason } from '../engine/engine-metrics.ts';
import { streamEnd, streamFormat, wholeAnswer } from './answer-format.ts';
import type { AnswerHead, Usage } from './answer-format.ts';
import type { Fault } from './fault.ts';
import type { GeneratedText } from './generated-text.ts';

/** One answer under way: fed by the engine, written out by `flush` once a round, whatever number of tokens came. */
export interface Answer {
  addToken(): void;
  end(reason: FinishReason): void;
  flush(): void;
}

/** What an answer is made of. */
export interface AnswerOptions {
  readonly response: ServerResponse;
  readonly head: AnswerHead;
  readonly text: GeneratedText;
  readonly outputTokens: number;
  readonly finishReason: 'stop' | 'length';
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Text that stands before the answer (`echo`). */
  readonly echo: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fault: Fault | undefined;
  /** Token counts so far. */
  readonly usage: () => Usage;
  /** Called when the answer is over before the engine is: the sequence is not wanted any more. */
  readonly abandon: () => void;
}

/** An answer that is written token by token, or whole at its end. */
export function createAnswer(options: AnswerOptions): Answer {
  return options.stream ? createStreamAnswer(options) : createWholeAnswer(options);
}

function createStreamAnswer(options: AnswerOptions): Answer {
  const { response, text, outputTokens, finishReason, fault } = options;
  const format = streamFormat(options.head);
  const hangAfter = fault?.hangAt === 'stream' ? (fault.hangAfterEvents ?? 1) : Infinity;
  const errorAfter = fault?.errorEventAfter ?? Infinity;
  let ready = 0;
  let sent = 0;
  let opened = false;
  let ended: FinishReason | undefined;
  let over = false;
  let blocked = false;

  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...options.headers });
  response.flushHeaders();

  function flush(): void {
    if (over || blocked || response.destroyed) return;
    let out = '';
    if (!opened && (ready > 0 || ended !== undefined)) {
      opened = true;
      out += format.opening;
      if (options.echo !== '') out += format.token(JSON.stringify(options.echo).slice(1, -1));
    }
    const until = Math.min(ready, hangAfter, errorAfter);
    for (; sent < until; sent++)
      out += format.token(text.tokenText(sent, finishReason === 'stop' && sent === outputTokens - 1));
    if (sent >= errorAfter) {
      over = true;
      response.end(out + injectedErrorEvent(fault) + streamEnd);
      options.abandon();
      return;
    }
    if (sent >= hangAfter) {
      over = true;
      if (out !== '') response.write(out);
      return;
    }
    if (ended !== undefined && sent === ready) {
      over = true;
      // An aborted sequence has no reader left.
      if (ended === 'abort') return;
      response.end(
        out + format.finish(ended) + (options.includeUsage ? format.usage(options.usage()) : '') + streamEnd,
      );
      return;
    }
    if (out !== '' && !response.write(out)) {
      blocked = true;
      response.once('drain', () => {
        blocked = false;
        flush();
      });
    }
  }

  return {
    addToken: () => void ready++,
    end: (reason) => void (ended = reason),
    flush,
  };
}

function createWholeAnswer(options: AnswerOptions): Answer {
  const { response, text, outputTokens, finishReason, fault } = options;
  let ended: FinishReason | undefined;
  return {
    addToken: () => undefined,
    end: (reason) => void (ended = reason),
    flush() {
      if (ended === undefined || ended === 'abort' || response.destroyed || response.headersSent) return;
      let content = options.echo;
      for (let i = 0; i < outputTokens; i++)
        content += text.tokenText(i, finishReason === 'stop' && i === outputTokens - 1);
      const body = Buffer.from(wholeAnswer(options.head, content, ended, options.usage()));
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': body.length,
        ...options.headers,
      });
      if (fault?.hangAt === 'stream') response.flushHeaders();
      else response.end(body);
    },
  };
}

const injectedErrorEvent = (fault: Fault | undefined): string =>
  errorEvent('chat', fault?.errorCode ?? 'engine_error', fault?.errorMessage ?? 'EngineCore encountered an issue.');
