import type { Socket } from 'node:net';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  Bench,
  chat,
  chunk,
  closes,
  completion,
  delta,
  deltaOf,
  DONE,
  finishing,
  LAST_CHUNK,
  must,
  NotApplicable,
  pause,
  plainAnswer,
  STREAM_HEAD,
  streaming,
  until,
  usageFrame,
} from './bench.ts';
import { answerOk } from '../edge/support/recording-upstream.ts';
import { contentOf, eventsOf, parsed, type Answer } from './conversation.ts';

/** One public report of a fault, as a scenario over HTTP that any OpenAI-compatible gateway can be held against. */
export interface Case {
  /** Number of the bug case; a letter where one case has several scenarios. */
  readonly id: string;
  readonly area: 'stream' | 'disconnect' | 'headers' | 'payload' | 'routing' | 'security';
  /** What a gateway does that has not the fault. */
  readonly behaviour: string;
  /** Public reports of the fault in products of the field, as repository and issue. */
  readonly reports: string;
  /** Throws Shortfall or NotApplicable. */
  run(bench: Bench): Promise<void>;
}

/** How long a case waits for what must come. */
const SOON_MS = 5_000;

const streamOf =
  (...pieces: readonly (string | Uint8Array)[]) =>
  (_request: unknown, socket: Socket): void => {
    socket.write(STREAM_HEAD);
    for (const piece of pieces) socket.write(chunk(piece));
    socket.write(LAST_CHUNK);
  };

/** Writes pieces one after another, so that each can be read by itself. */
const dripOf =
  (pieces: readonly (string | Uint8Array)[], gapMs: number) =>
  (_request: unknown, socket: Socket): void => {
    const drip = async (): Promise<void> => {
      socket.write(STREAM_HEAD);
      for (const piece of pieces) {
        socket.write(chunk(piece));
        await pause(gapMs);
      }
      socket.write(LAST_CHUNK);
    };
    void drip();
  };

function streamRest(socket: Socket): void {
  for (const piece of [delta('b'), finishing, DONE]) socket.write(chunk(piece));
  socket.write(LAST_CHUNK);
}

const saysDone = (answer: Answer): boolean => eventsOf(answer.body).includes('[DONE]');
const saysError = (answer: Answer): boolean =>
  eventsOf(answer.body).some((data) => parsed(data)['error'] !== undefined);

function mustStream(answer: Answer, text: string): void {
  must(answer.status === 200, `status ${answer.status}`);
  const content = contentOf(answer.body);
  must(
    content === text,
    `text is ${JSON.stringify(content.slice(0, 60))} in place of ${JSON.stringify(text.slice(0, 60))}`,
  );
  must(saysDone(answer) && answer.complete, 'the stream has no proper end');
}

/** Ends a stream after two events in the way given, and wants the failure to be seen. */
async function cutStream(bench: Bench, cut: (socket: Socket) => void): Promise<Answer> {
  bench.upstream = (_request, socket) => {
    socket.write(STREAM_HEAD);
    socket.write(chunk(delta('one ')));
    socket.write(chunk(delta('two')));
    setTimeout(() => cut(socket), 150);
  };
  const answer = await bench.post(streaming()).whole();
  must(contentOf(answer.body).startsWith('one '), 'the events before the cut are lost');
  return answer;
}

export const CASES: readonly Case[] = [
  {
    id: '1',
    area: 'stream',
    behaviour: 'a character that is split over two chunks arrives whole',
    reports: 'api7/aisix#111, katanemo/plano#980',
    async run(bench) {
      const bytes = Buffer.from(delta('a\u{1f600}é'));
      const cut = bytes.indexOf(0xf0) + 2;
      bench.upstream = dripOf([bytes.subarray(0, cut), bytes.subarray(cut), finishing, DONE], 60);
      const answer = await bench.post(streaming()).whole();
      must(!answer.body.includes('\xef\xbf\xbd'), 'the character became U+FFFD');
      mustStream(answer, 'a\u{1f600}é');
    },
  },
  {
    id: '2a',
    area: 'stream',
    behaviour: 'an event that comes byte by byte is one event',
    reports: 'envoyproxy/ai-gateway#2163',
    async run(bench) {
      const bytes = [...Buffer.from(delta('slow'))].map((byte) => Uint8Array.of(byte));
      bench.upstream = dripOf([...bytes, finishing, DONE], 1);
      mustStream(await bench.post(streaming()).whole(), 'slow');
    },
  },
  {
    id: '2b',
    area: 'stream',
    behaviour: 'many events in one chunk are all delivered',
    reports: 'envoyproxy/ai-gateway#2163, alibaba/higress#2865',
    async run(bench) {
      const words = Array.from({ length: 200 }, (_, i) => `w${i} `);
      bench.upstream = streamOf(words.map(delta).join('') + finishing + DONE);
      mustStream(await bench.post(streaming()).whole(), words.join(''));
    },
  },
  ...(['\r\n', '\r'] as const).map((lineEnd): Case => ({
    id: lineEnd === '\r\n' ? '3a' : '3b',
    area: 'stream',
    behaviour: `events whose lines end with ${lineEnd === '\r\n' ? 'CRLF' : 'CR alone'} are events`,
    reports: 'api7/aisix#1003, alibaba/higress#2344',
    async run(bench) {
      const pieces = [delta('a'), delta('b'), finishing, DONE].map((event) => event.replaceAll('\n', lineEnd));
      bench.upstream = dripOf(pieces, 20);
      mustStream(await bench.post(streaming()).whole(), 'ab');
    },
  })),
  {
    id: '4',
    area: 'stream',
    behaviour: 'the first event leaves before the second has come',
    reports: 'Kong/kong#14079, mostlygeek/llama-swap#295',
    async run(bench) {
      let rest: () => void = () => undefined;
      bench.upstream = (_request, socket) => {
        socket.write(STREAM_HEAD);
        socket.write(chunk(delta('first')));
        rest = () => {
          socket.write(chunk(finishing));
          socket.write(chunk(DONE));
          socket.write(LAST_CHUNK);
        };
      };
      const client = bench.post(streaming());
      must(await client.until(({ body }) => body.includes('first'), 3_000), 'nothing within 3 s of the first event');
      rest();
      mustStream(await client.whole(), 'first');
    },
  },
  {
    id: '6a',
    area: 'stream',
    behaviour: 'a stream on which the server is silent for 20 s is kept open by comments, so that no balancer cuts it',
    reports: 'envoyproxy/ai-gateway#2549, BerriAI/litellm#34374',
    async run(bench) {
      let rest: () => void = () => undefined;
      bench.upstream = (_request, socket) => {
        socket.write(STREAM_HEAD);
        socket.write(chunk(delta('a')));
        rest = () => streamRest(socket);
      };
      const client = bench.post(streaming());
      must(await client.until(({ body }) => contentOf(body) === 'a', SOON_MS), 'the first event is not there');
      const { length } = client.text;
      const kept = await client.until(() => client.text.length > length, 20_000);
      rest();
      must(kept, 'not a byte in 20 s');
      mustStream(await client.whole(), 'ab');
    },
  },
  {
    id: '6b',
    area: 'stream',
    behaviour: 'where it is asked to, a stream whose server is silent for 20 s before its first token is kept open too',
    reports: 'envoyproxy/ai-gateway#2549, BerriAI/litellm#34374',
    async run(bench) {
      if (!bench.product.offers.has('early-head')) throw new NotApplicable('no such option is known to us');
      let rest: () => void = () => undefined;
      bench.upstream = (_request, socket) => {
        rest = () => {
          socket.write(STREAM_HEAD);
          socket.write(chunk(delta('a')));
          streamRest(socket);
        };
      };
      const client = bench.post(streaming());
      const kept = await client.until(() => client.text.length > 0, 20_000);
      rest();
      must(kept, 'not a byte in 20 s');
      mustStream(await client.whole(), 'ab');
    },
  },
  {
    id: '7a',
    area: 'stream',
    behaviour: 'a server that is reset in the middle of a stream does not look like a clean end',
    reports: 'Portkey-AI/gateway#1797, nodejs/undici#5273',
    async run(bench) {
      const answer = await cutStream(bench, (socket) => socket.resetAndDestroy());
      must(!saysDone(answer), 'the broken stream ends with [DONE]');
      must(saysError(answer) || !answer.complete, 'no error event, and the body ends as a whole one does');
    },
  },
  {
    id: '7b',
    area: 'stream',
    behaviour: 'a server that closes without the last chunk does not look like a clean end',
    reports: 'Portkey-AI/gateway#1797',
    async run(bench) {
      const answer = await cutStream(bench, (socket) => socket.end());
      must(!saysDone(answer), 'the broken stream ends with [DONE]');
      must(saysError(answer) || !answer.complete, 'no error event, and the body ends as a whole one does');
    },
  },
  {
    id: '7c',
    area: 'stream',
    behaviour: 'a stream that ends well framed but without its final event is not taken for whole',
    reports: 'Portkey-AI/gateway#1797',
    async run(bench) {
      const answer = await cutStream(bench, (socket) => socket.write(LAST_CHUNK));
      must(!saysDone(answer), 'the gateway made up a [DONE]');
      must(saysError(answer) || !answer.complete, 'no error event, and the body ends as a whole one does');
    },
  },
  {
    id: '7d',
    area: 'stream',
    behaviour: 'a plain answer that is cut short is an error',
    reports: 'nodejs/undici#5273',
    async run(bench) {
      bench.upstream = (_request, socket) => {
        socket.write(plainAnswer(completion()).slice(0, -40));
        setTimeout(() => socket.destroy(), 50);
      };
      const answer = await bench.post(chat()).whole(30_000);
      must(answer.status >= 500 || !answer.complete, `status ${answer.status} with a whole body`);
    },
  },
  {
    id: '8',
    area: 'stream',
    behaviour: 'an error event in the middle of a stream reaches the client, and no [DONE] follows it',
    reports: 'api7/aisix#198, Oaklight/llm-rosetta#481',
    async run(bench) {
      const error = `data: ${JSON.stringify({ error: { message: 'out of memory', type: 'server_error', param: null, code: 500 } })}\n\n`;
      bench.upstream = dripOf([delta('a'), error, DONE], 50);
      const answer = await bench.post(streaming()).whole();
      must(saysError(answer), 'the error event is lost');
      must(!saysDone(answer), '[DONE] after the error');
    },
  },
  {
    id: '10',
    area: 'stream',
    behaviour: 'a stream whose first event is an error is answered with an error status',
    reports: 'Portkey-AI/gateway#1047, vercel/ai#16805',
    async run(bench) {
      const error = `data: ${JSON.stringify({ error: { message: 'no', type: 'server_error', param: null, code: 503 } })}\n\n`;
      bench.upstream = streamOf(error, DONE);
      const answer = await bench.post(streaming()).whole(30_000);
      must(answer.status >= 400, `status ${answer.status}`);
    },
  },
  {
    id: '11',
    area: 'stream',
    behaviour: 'comments between events disturb nobody',
    reports: 'Portkey-AI/gateway#1035, anomalyco/opencode#16366',
    async run(bench) {
      bench.upstream = dripOf([': ping\n\n', delta('a'), ': ping\n\n: x\n', delta('b'), ':\n\n', finishing, DONE], 10);
      mustStream(await bench.post(streaming()).whole(), 'ab');
    },
  },
  {
    id: '12',
    area: 'stream',
    behaviour: 'a JSON error in answer to a stream request arrives as that error',
    reports: 'agentgateway/agentgateway#1348, vllm-project/production-stack#880',
    async run(bench) {
      const error = {
        error: {
          message: 'temperature must be at most 2',
          type: 'invalid_request_error',
          param: 'temperature',
          code: null,
        },
      };
      bench.upstream = (_request, socket) => socket.write(plainAnswer(error, 400));
      const answer = await bench.post(streaming()).whole();
      must(answer.status === 400, `status ${answer.status}`);
      must(
        (answer.headers['content-type'] ?? '').startsWith('application/json'),
        `content type ${answer.headers['content-type']}`,
      );
      must(answer.body.includes('temperature must be at most 2'), 'the message is lost');
    },
  },
  {
    id: '13a',
    area: 'disconnect',
    behaviour: 'a client that leaves in the middle of a stream frees the server within 3 s',
    reports: 'BerriAI/litellm#30244, maximhq/bifrost#3164',
    async run(bench) {
      let serving: Socket | undefined;
      let timer: NodeJS.Timeout | undefined;
      bench.upstream = (_request, socket) => {
        serving = socket;
        socket.write(STREAM_HEAD);
        timer = setInterval(() => socket.write(chunk(delta('x'))), 50);
        socket.once('close', () => clearInterval(timer));
      };
      const client = bench.post(streaming());
      await client.until(({ body }) => body.includes('x'), SOON_MS);
      must(serving !== undefined, 'the request never came to the server');
      client.reset();
      const freed = await closes(serving, 3_000);
      clearInterval(timer);
      must(freed, 'the server still generates after 3 s');
    },
  },
  {
    id: '13b',
    area: 'disconnect',
    behaviour: 'a client that leaves a plain request frees the server within 3 s',
    reports: 'BerriAI/litellm#37140, fastify/fastify-reply-from#424',
    async run(bench) {
      let serving: Socket | undefined;
      bench.upstream = (_request, socket) => {
        serving = socket;
      };
      const client = bench.post(chat());
      must(await until(() => serving !== undefined, SOON_MS), 'the request never came to the server');
      client.reset();
      must(serving !== undefined && (await closes(serving, 3_000)), 'the server still works after 3 s');
    },
  },
  {
    id: '14',
    area: 'disconnect',
    behaviour: 'a client that leaves in a long prefill, before any header, frees the server within 3 s',
    reports: 'fastify/fastify-reply-from#419, sgl-project/smg#2136',
    async run(bench) {
      let serving: Socket | undefined;
      bench.upstream = (_request, socket) => {
        serving = socket;
      };
      const client = bench.post(streaming());
      must(await until(() => serving !== undefined, SOON_MS), 'the request never came to the server');
      client.close();
      must(serving !== undefined && (await closes(serving, 3_000)), 'the server still works after 3 s');
    },
  },
  {
    id: '15',
    area: 'disconnect',
    behaviour: '60 clients that are reset at any moment leave a gateway that serves',
    reports: 'fastify/fastify-reply-from#428, nodejs/undici#5357',
    async run(bench) {
      bench.upstream = (request, socket) => {
        if (!request.body.includes('"stream"')) return void socket.write(plainAnswer(completion()));
        socket.write(STREAM_HEAD);
        let left = 20;
        const timer = setInterval(() => {
          if (left-- > 0 && !socket.destroyed) socket.write(chunk(delta('x')));
          else {
            clearInterval(timer);
            socket.end();
          }
        }, 5);
      };
      for (let i = 0; i < 60; i++) {
        const client = bench.post(i % 3 === 0 ? chat() : streaming());
        setTimeout(() => client.reset(), (i * 7) % 120);
      }
      await pause(500);
      must(bench.product.alive(), 'the process has ended');
      const answer = await bench.post(chat()).whole();
      must(answer.status === 200, `status ${answer.status} afterwards`);
    },
  },
  {
    id: '18',
    area: 'disconnect',
    behaviour: 'a server that closes an idle connection just as it is reused costs no request',
    reports: 'nodejs/node#52649, fastify/fastify#4119',
    async run(bench) {
      const used = new WeakSet<Socket>();
      bench.upstream = (_request, socket) => {
        if (used.has(socket)) socket.resetAndDestroy();
        else {
          used.add(socket);
          socket.write(plainAnswer(completion()));
        }
      };
      for (let i = 0; i < 6; i++) {
        const answer = await bench.post(chat()).whole(20_000);
        must(answer.status === 200, `request ${i + 1} got ${answer.status}`);
      }
    },
  },
  {
    id: '19',
    area: 'disconnect',
    behaviour: 'bytes that come unasked on an idle connection never answer the next request',
    reports: 'nodejs/undici GHSA-35p6-xmwp-9g52',
    async run(bench) {
      bench.upstream = (_request, socket) => {
        socket.write(plainAnswer(completion()));
        setTimeout(() => socket.write(plainAnswer(completion({}, { role: 'assistant', content: 'of another' }))), 30);
      };
      for (let i = 0; i < 4; i++) {
        const answer = await bench.post(chat()).whole(20_000);
        must(answer.status === 200, `request ${i + 1} got ${answer.status}`);
        must(!answer.body.includes('of another'), `request ${i + 1} got the answer of another`);
        await pause(100);
      }
    },
  },
  {
    id: '21',
    area: 'disconnect',
    behaviour: 'a reader that does not read stops the server, so that memory is bounded',
    reports: 'openclaw/openclaw#105840',
    async run(bench) {
      const piece = chunk(delta('x'.repeat(64 * 1024)));
      let sent = 0;
      let over = false;
      bench.upstream = (_request, socket) => {
        socket.write(STREAM_HEAD);
        const more = (): void => {
          while (!over && !socket.destroyed && sent < 96 * 1024 * 1024) {
            sent += piece.length;
            if (!socket.write(piece)) return;
          }
        };
        socket.on('drain', more);
        more();
      };
      const client = bench.post(streaming());
      client.socket.pause();
      let before = -1;
      // Until nothing has moved for half a second.
      for (let i = 0; i < 12 && sent !== before; i++) {
        before = sent;
        await pause(500);
      }
      over = true;
      must(sent > 0, 'the request never came to the server');
      must(sent < 32 * 1024 * 1024, `${Math.round(sent / 1024 / 1024)} MB were taken in for a reader that takes none`);
    },
  },
  {
    id: '22',
    area: 'disconnect',
    behaviour: 'a body of 64 MB is refused or served, with an answer that its sender can read',
    reports: 'api7/aisix#205, agentgateway/agentgateway#2359',
    async run(bench) {
      const body = JSON.stringify(chat({ messages: [{ role: 'user', content: 'x'.repeat(64_000_000) }] }));
      const answer = await bench.post(body).whole(25_000);
      must(answer.complete, answer.status === 0 ? 'no answer' : 'the answer is cut');
      must(answer.status === 413 || answer.status === 200, `status ${answer.status}`);
    },
  },
  {
    id: '23',
    area: 'headers',
    behaviour: 'a compressed answer arrives with bytes and content-encoding that agree',
    reports: 'Kong/kong#12493, envoyproxy/ai-gateway#2554',
    async run(bench) {
      const text = JSON.stringify(completion());
      const zipped = gzipSync(text);
      bench.upstream = (request, socket) => {
        const takesGzip = request.headers.some(([name, value]) => name === 'accept-encoding' && value.includes('gzip'));
        const body = takesGzip ? zipped : Buffer.from(text);
        const coding = takesGzip ? 'content-encoding: gzip\r\n' : '';
        socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${coding}content-length: ${body.length}\r\n\r\n`,
        );
        socket.write(body);
      };
      const answer = await bench.post(chat(), { lines: 'accept-encoding: gzip\r\n' }).whole();
      must(answer.status === 200, `status ${answer.status}`);
      const bytes = Buffer.from(answer.body, 'latin1');
      const isZipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
      must(isZipped === (answer.headers['content-encoding'] === 'gzip'), 'bytes and content-encoding disagree');
      const read = parsed((isZipped ? gunzipSync(bytes) : bytes).toString());
      must(Array.isArray(read['choices']), 'the body is no completion');
    },
  },
  {
    id: '24',
    area: 'headers',
    behaviour: 'a gzip request body is refused with 4xx, or inflated; it is never sent on as what it is not',
    reports: 'agentgateway/agentgateway#2404',
    async run(bench) {
      const body = gzipSync(JSON.stringify(chat()));
      const head = bench.head(body.length, { lines: 'content-encoding: gzip\r\n' });
      const answer = await bench
        .open()
        .send(Buffer.concat([Buffer.from(head), body]))
        .whole();
      for (const request of bench.received()) {
        const coded = request.headers.some(([name]) => name === 'content-encoding');
        must(coded || parsed(request.body)['model'] === 'm', 'the server got bytes that are not the request');
      }
      must(answer.status === 200 || (answer.status >= 400 && answer.status < 500), `status ${answer.status}`);
    },
  },
  {
    id: '25',
    area: 'headers',
    behaviour: 'a request whose model is renamed has the content-length of its new body',
    reports: 'envoyproxy/ai-gateway#2392, mostlygeek/llama-swap#131',
    async run(bench) {
      if (!bench.product.offers.has('rename')) throw new NotApplicable('does not rename models');
      const answer = await bench.post(chat({ model: 'alias' }), { rename: true }).whole();
      must(answer.status === 200, `status ${answer.status}`);
      const [request] = bench.received();
      must(request !== undefined, 'the request never came to the server');
      must(
        parsed(request.body)['model'] === 'm',
        `the model sent on is ${JSON.stringify(parsed(request.body)['model'])}`,
      );
      must(request.framing !== 'both', 'both a length and chunked');
    },
  },
  {
    id: '26a',
    area: 'headers',
    behaviour: 'a header of the gateway’s own that a client sends does not reach the server',
    reports: 'envoyproxy/ai-gateway#2410',
    async run(bench) {
      const name = `${bench.product.ownHeaderPrefix}conformance`;
      await bench.post(chat(), { lines: `${name}: 1\r\n` }).whole();
      const [request] = bench.received();
      must(request !== undefined, 'the request never came to the server');
      must(!request.headers.some(([given]) => given === name), `${name} was sent on`);
    },
  },
  {
    id: '26b',
    area: 'headers',
    behaviour: 'the key by which a client is known to the gateway does not reach the server',
    reports: 'alibaba/higress#2220',
    async run(bench) {
      if (!bench.product.offers.has('own-keys')) throw new NotApplicable('the client’s key is the server’s, by design');
      const own = bench.product.headers(false);
      const given = /bearer (\S+)/i.exec(own)?.[1] ?? 'sk-of-the-client';
      const answer = await bench
        .post(chat(), { lines: own.includes(given) ? '' : `authorization: Bearer ${given}\r\n` })
        .whole();
      must(answer.status === 200, `status ${answer.status}`);
      const [request] = bench.received();
      must(request !== undefined, 'the request never came to the server');
      must(!request.head.includes(given), 'the key was sent on');
    },
  },
  {
    id: '27',
    area: 'headers',
    behaviour: 'a server’s 429 arrives as 429 with its Retry-After',
    reports: 'BerriAI/litellm#21553, api7/aisix#144',
    async run(bench) {
      const error = { error: { message: 'slow down', type: 'rate_limit_error', param: null, code: 'rate_limited' } };
      bench.upstream = (_request, socket) => socket.write(plainAnswer(error, 429, 'retry-after: 7\r\n'));
      const answer = await bench.post(chat()).whole(45_000);
      must(answer.status === 429, answer.status === 0 ? 'no answer within 45 s' : `status ${answer.status}`);
      const seconds = Number(answer.headers['retry-after']);
      must(seconds >= 1 && seconds <= 7, `retry-after is ${answer.headers['retry-after']}`);
    },
  },
  {
    id: '29',
    area: 'headers',
    behaviour: 'a header that Connection names does not reach the server',
    reports: 'fastify/fastify-reply-from#450',
    async run(bench) {
      const answer = await bench.post(chat(), { lines: 'connection: close, x-private\r\nx-private: 1\r\n' }).whole();
      must(answer.status === 200, `status ${answer.status}`);
      const [request] = bench.received();
      must(request !== undefined, 'the request never came to the server');
      must(!request.headers.some(([name]) => name === 'x-private'), 'x-private was sent on');
    },
  },
  {
    id: '30',
    area: 'headers',
    behaviour: 'errors bear a request id: bad JSON, unknown path',
    reports: 'api7/aisix#737, #355',
    async run(bench) {
      const hasId = ({ headers }: Answer): boolean =>
        Object.keys(headers).some((name) => /(?:request|trace|call|correlation)-id$/.test(name));
      const bad = await bench.post('{"model":').whole();
      must(bad.status >= 400 && bad.status < 500, `bad JSON got ${bad.status}`);
      must(hasId(bad), 'none on the answer to bad JSON');
      must(hasId(await bench.get('/v1/no/such/path').whole()), 'none on the answer to an unknown path');
    },
  },
  {
    id: '31a',
    area: 'payload',
    behaviour: 'a client that asked for usage gets the frame that has it',
    reports: 'BerriAI/litellm#8450',
    async run(bench) {
      bench.upstream = streamOf(delta('a'), finishing, usageFrame, DONE);
      const answer = await bench.post(streaming({ stream_options: { include_usage: true } })).whole();
      mustStream(answer, 'a');
      must(
        eventsOf(answer.body).some(
          (data) => (parsed(data)['usage'] as { readonly total_tokens?: number } | null)?.total_tokens === 10,
        ),
        'the usage is lost',
      );
    },
  },
  {
    id: '31b',
    area: 'payload',
    behaviour: 'a client that did not ask for usage gets no frame without choices',
    reports: 'BerriAI/litellm#36168',
    async run(bench) {
      bench.upstream = (request, socket) => {
        const asked =
          (parsed(request.body)['stream_options'] as { readonly include_usage?: boolean } | undefined)
            ?.include_usage === true;
        streamOf(delta('a'), finishing, ...(asked ? [usageFrame] : []), DONE)(request, socket);
      };
      const answer = await bench.post(streaming()).whole();
      mustStream(answer, 'a');
      const bare = eventsOf(answer.body).some((data) => {
        const choices = parsed(data)['choices'];
        return Array.isArray(choices) && choices.length === 0;
      });
      must(!bare, 'a frame with `choices: []` was shown');
    },
  },
  {
    id: '32a',
    area: 'payload',
    behaviour: 'fields of a request that the gateway does not know reach the server',
    reports: 'Nayjest/lm-proxy#69',
    async run(bench) {
      const fields = { chat_template_kwargs: { enable_thinking: false }, x_vendor: [1, { a: null }] };
      const answer = await bench.post(chat(fields)).whole();
      must(answer.status === 200, `status ${answer.status}`);
      const body = parsed(bench.received()[0]?.body ?? '');
      for (const [name, value] of Object.entries(fields))
        must(JSON.stringify(body[name]) === JSON.stringify(value), `${name} is lost or changed`);
    },
  },
  {
    id: '32b',
    area: 'payload',
    behaviour: 'fields of an answer that the gateway does not know reach the client, and none is made up as null',
    reports: 'envoyproxy/ai-gateway#1975',
    async run(bench) {
      const sent = completion(
        { kv_transfer_params: { a: 1 }, prompt_logprobs: [1.5] },
        { role: 'assistant', content: 'yo', reasoning_content: 'hm' },
      );
      bench.upstream = (_request, socket) => socket.write(plainAnswer(sent));
      const body = parsed((await bench.post(chat()).whole()).body);
      must(JSON.stringify(body['kv_transfer_params']) === '{"a":1}', 'kv_transfer_params is lost');
      must(JSON.stringify(body['prompt_logprobs']) === '[1.5]', 'prompt_logprobs is lost');
      const [choice] = body['choices'] as readonly { readonly message?: { readonly reasoning_content?: string } }[];
      must(choice?.message?.reasoning_content === 'hm', 'reasoning_content is lost');
      const made = Object.entries(body).filter(([name, value]) => value === null && !(name in sent));
      must(made.length === 0, `null was made up for ${made.map(([name]) => name).join(', ')}`);
    },
  },
  {
    id: '33a',
    area: 'payload',
    behaviour: 'the indexes of parallel tool calls in a stream stay as they are',
    reports: 'BerriAI/litellm#37792, envoyproxy/ai-gateway#1468',
    async run(bench) {
      const call = (index: number, id: string): object => ({
        tool_calls: [{ index, id, type: 'function', function: { name: `f${index}`, arguments: '{}' } }],
      });
      bench.upstream = streamOf(deltaOf(call(0, 'a')), deltaOf(call(1, 'b')), deltaOf(call(2, 'c')), finishing, DONE);
      const answer = await bench.post(streaming()).whole();
      const got = eventsOf(answer.body).flatMap((data) => {
        const [choice] = (parsed(data)['choices'] ?? []) as readonly {
          readonly delta?: { readonly tool_calls?: readonly { readonly index: number; readonly id: string }[] };
        }[];
        return choice?.delta?.tool_calls?.map(({ index, id }) => `${index}${id}`) ?? [];
      });
      must(got.join() === '0a,1b,2c', `calls are ${got.join() || 'lost'}`);
    },
  },
  {
    id: '33b',
    area: 'payload',
    behaviour: 'content that is null stays null or is left out, in requests and answers; it does not become text',
    reports: 'api7/aisix#514',
    async run(bench) {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
      const message = { role: 'assistant', content: null, tool_calls: [call] };
      bench.upstream = (_request, socket) => socket.write(plainAnswer(completion({}, message)));
      const messages = [{ role: 'user', content: 'hi' }, message, { role: 'tool', tool_call_id: 'a', content: '1' }];
      const answer = await bench.post(chat({ messages })).whole();
      const sent = (parsed(bench.received()[0]?.body ?? '')['messages'] ?? []) as readonly {
        readonly content?: unknown;
      }[];
      must(
        sent.length === 3 && (sent[1]?.content ?? null) === null,
        `the server got ${JSON.stringify(sent[1]?.content)}`,
      );
      const [choice] = (parsed(answer.body)['choices'] ?? []) as readonly {
        readonly message?: { readonly content?: unknown };
      }[];
      must(
        choice !== undefined && (choice.message?.content ?? null) === null,
        `the client got ${JSON.stringify(choice?.message?.content)}`,
      );
    },
  },
  {
    id: '34',
    area: 'payload',
    behaviour: 'messages with image parts reach the server as they are',
    reports: 'api7/aisix#184, katanemo/plano#539',
    async run(bench) {
      const content = [
        { type: 'text', text: 'what is it' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
      ];
      const answer = await bench.post(chat({ messages: [{ role: 'user', content }] })).whole();
      must(answer.status === 200, `status ${answer.status}`);
      const [message] = (parsed(bench.received()[0]?.body ?? '')['messages'] ?? []) as readonly {
        readonly content?: unknown;
      }[];
      must(JSON.stringify(message?.content) === JSON.stringify(content), 'the parts are changed');
    },
  },
  {
    id: '35',
    area: 'payload',
    behaviour: 'an answer names the model as the client asked for it, plain and streamed',
    reports: 'api7/aisix#360, BerriAI/litellm#25503',
    async run(bench) {
      if (!bench.product.offers.has('catalogue')) throw new NotApplicable('has no model names of its own');
      const plain = await bench.post(chat({ model: 'alias' }), { rename: true }).whole();
      must(parsed(plain.body)['model'] === 'alias', `plain: ${JSON.stringify(parsed(plain.body)['model'])}`);
      bench.upstream = streamOf(delta('a'), finishing, DONE);
      const streamed = await bench.post(streaming({ model: 'alias' }), { rename: true }).whole();
      const models = new Set(
        eventsOf(streamed.body)
          .filter((data) => data !== '[DONE]')
          .map((data) => parsed(data)['model']),
      );
      must([...models].join() === 'alias', `streamed: ${[...models].join()}`);
    },
  },
  {
    id: '36',
    area: 'payload',
    behaviour: 'an unknown model is 404 in the envelope that clients know',
    reports: 'BerriAI/litellm#27030, #25466',
    async run(bench) {
      if (!bench.product.offers.has('catalogue')) throw new NotApplicable('has no model names of its own');
      const answer = await bench.post(chat({ model: 'no-such-model' })).whole();
      must(answer.status === 404, `status ${answer.status}`);
      must(
        typeof (parsed(answer.body)['error'] as { readonly message?: unknown } | undefined)?.message === 'string',
        'no error envelope',
      );
    },
  },
  {
    id: '37',
    area: 'payload',
    behaviour: 'a WebSocket upgrade that is not offered is refused in plain HTTP at once',
    reports: 'BerriAI/litellm#8828, agentgateway/agentgateway#1945',
    async run(bench) {
      const lines =
        'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
      const client = bench.get('/v1/no-realtime-here', lines);
      await client.until(({ complete }) => complete, 3_000);
      must(
        client.answer.status >= 400,
        client.answer.status === 0 ? 'no answer within 3 s' : `status ${client.answer.status}`,
      );
    },
  },
  {
    id: '38',
    area: 'payload',
    behaviour: 'GET /v1/models lists the models that are routed',
    reports: 'llm-d/llm-d-router#1878, vllm-project/production-stack#892',
    async run(bench) {
      if (!bench.product.offers.has('catalogue')) throw new NotApplicable('has no model names of its own');
      const answer = await bench.get('/v1/models').whole();
      const list = (parsed(answer.body)['data'] ?? []) as readonly { readonly id?: string }[];
      must(
        answer.status === 200 && list.some(({ id }) => id === 'm'),
        `status ${answer.status}, models ${list.map(({ id }) => id).join()}`,
      );
    },
  },
  {
    id: '39',
    area: 'payload',
    behaviour: 'no malformed request is answered 5xx or ends the process',
    reports: 'katanemo/plano#1018, opendatahub-io/models-as-a-service#1095',
    async run(bench) {
      const bodies = [
        '',
        'null',
        '[]',
        '0',
        '"x"',
        '{"model":',
        '{"model":1,"messages":[]}',
        '{"model":"m","messages":{}}',
        '{"model":"m","messages":[null]}',
        '\x80',
        `{"model":"m","messages":${'['.repeat(20_000)}`,
      ];
      const bad: string[] = [];
      for (const body of bodies) {
        const { status } = await bench.post(body).whole();
        if (status === 0 || status >= 500) bad.push(`${body.slice(0, 30)} → ${status}`);
      }
      const { status } = await bench.get('/v1/chat/completions', 'authorization: Bearer\r\n').whole();
      if (status === 0 || status >= 500) bad.push(`GET → ${status}`);
      must(bench.product.alive(), 'the process has ended');
      must(bad.length === 0, bad.slice(0, 4).join('; '));
    },
  },
  {
    id: '40',
    area: 'routing',
    behaviour: 'a server that fails for a while is used again within 20 s of its recovery, without a restart',
    reports: 'BerriAI/litellm#30192',
    async run(bench) {
      bench.upstream = (_request, socket) =>
        socket.write(plainAnswer({ error: { message: 'no', type: 'server_error', code: null } }, 500));
      await Promise.all(Array.from({ length: 8 }, () => bench.post(chat()).whole(30_000)));
      bench.upstream = (_request, socket) => socket.write(plainAnswer(completion()));
      const giveUpMs = performance.now() + 20_000;
      let last = 0;
      while (performance.now() < giveUpMs) {
        last = (await bench.post(chat()).whole(10_000)).status;
        if (last === 200) return;
        await pause(500);
      }
      must(false, `still ${last} after 20 s`);
    },
  },
  {
    id: '42',
    area: 'routing',
    behaviour: 'a server that hangs up on every request is 502, 503 or 504 with a JSON error',
    reports: 'BerriAI/litellm#20867, llm-d/llm-d-router#2046',
    async run(bench) {
      bench.upstream = (_request, socket) => socket.destroy();
      const answer = await bench.post(chat()).whole(45_000);
      must(
        [502, 503, 504].includes(answer.status),
        answer.status === 0 ? 'no answer within 45 s' : `status ${answer.status}`,
      );
      must(parsed(answer.body)['error'] !== undefined, 'no error envelope');
    },
  },
  {
    id: '45',
    area: 'routing',
    behaviour: 'requests that the server calls bad do not take it out of service',
    reports: 'sgl-project/sglang#25811',
    async run(bench) {
      bench.upstream = (_request, socket) =>
        socket.write(plainAnswer({ error: { message: 'bad', type: 'invalid_request_error', code: null } }, 400));
      for (let i = 0; i < 12; i++) await bench.post(chat()).whole();
      bench.upstream = (_request, socket) => socket.write(plainAnswer(completion()));
      const { status } = await bench.post(chat()).whole();
      must(status === 200, `status ${status} for a good request afterwards`);
    },
  },
  {
    id: '66',
    area: 'routing',
    behaviour: 'of two servers without a metrics page each gets half of 24 requests that are under way at once',
    reports: 'vllm-project/router#174',
    async run(bench) {
      const { offers, pair } = bench.product;
      if (!offers.has('several-servers')) throw new NotApplicable('chooses by weight alone');
      const release: (() => void)[] = [];
      for (const upstream of pair) {
        upstream.respond = (request, socket) => release.push(() => answerOk(request, socket));
      }
      const clients = Array.from({ length: 24 }, () => bench.post(chat({ model: 'pair' })));
      must(await until(() => release.length === clients.length, 10_000), `${release.length} of 24 arrived`);
      const shares = pair.map((upstream) => upstream.take().length);
      for (const answer of release) answer();
      for (const client of clients) must((await client.whole()).status === 200, 'a request was not answered');
      must(Math.max(...shares) <= 14, `the shares are ${shares.join(' and ')}`);
    },
  },
  {
    id: '77a',
    area: 'security',
    behaviour: 'an address in the body is not connected to',
    reports: 'BerriAI/litellm CVE-2024-6587',
    async run(bench) {
      await withCanary(async (address, touched) => {
        const fields = {
          api_base: `http://${address}/v1`,
          base_url: `http://${address}/v1`,
          custom_host: `http://${address}/v1`,
        };
        await bench.post(chat(fields)).whole();
        await pause(200);
        must(touched() === 0, 'the gateway connected to the client’s address');
      });
    },
  },
  {
    id: '77b',
    area: 'security',
    behaviour: 'a redirect of a server is not followed',
    reports: 'Portkey-AI/gateway#1718',
    async run(bench) {
      await withCanary(async (address, touched) => {
        bench.upstream = (_request, socket) =>
          socket.write(
            `HTTP/1.1 307 X\r\nlocation: http://${address}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n`,
          );
        await bench.post(chat()).whole(30_000);
        must(touched() === 0, 'the gateway followed the redirect');
      });
    },
  },
  {
    id: '80',
    area: 'security',
    behaviour: 'neither prompts nor keys appear in the log of requests that succeed or fail, as it is set at first',
    reports: 'envoyproxy/ai-gateway#2508, maximhq/bifrost#518',
    async run(bench) {
      const prompt = 'the-prompt-of-a-person';
      const key = 'sk-the-key-of-a-person';
      const body = chat({ messages: [{ role: 'user', content: prompt }] });
      const lines = `x-api-key: ${key}\r\napi-key: ${key}\r\n`;
      await bench.post(body, { lines }).whole();
      const error = { error: { message: 'no', type: 'server_error', param: null, code: null } };
      bench.upstream = (_request, socket) => socket.write(plainAnswer(error, 400));
      await bench.post(body, { lines }).whole();
      bench.upstream = (_request, socket) => socket.destroy();
      await bench.post(body, { lines }).whole(30_000);
      await pause(300);
      const output = bench.product.output();
      must(!output.includes(prompt), 'the prompt is in the log');
      must(!output.includes(key), 'the key is in the log');
    },
  },
];

/** Gives a case an address that must not be connected to, and the count of connections to it. */
async function withCanary(body: (address: string, touched: () => number) => Promise<void>): Promise<void> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await body(`127.0.0.1:${(server.address() as AddressInfo).port}`, () => connections);
  } finally {
    server.close();
  }
}
