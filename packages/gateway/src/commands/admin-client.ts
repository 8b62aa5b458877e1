import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { SignalboxError } from '@signalbox/plugin-api';
import type { CommandInput, OptionHelp, Terminal } from '../cli/command.ts';
import { UsageError } from '../cli/command.ts';

/** The options by which a command finds the admin listener of a running gateway. */
export const ADMIN_OPTIONS: { readonly [name: string]: OptionHelp } = Object.freeze({
  admin: {
    type: 'string',
    value: 'URL',
    help: 'the admin listener of the gateway; http://127.0.0.1:9901 by default',
  },
  token: {
    type: 'string',
    value: 'TOKEN',
    help: 'its token; SIGNALBOX_ADMIN_TOKEN by default, which no list of processes shows',
  },
});

/** Calls the admin listener of a running gateway. */
export interface AdminClient {
  /** The JSON of an answer below 300. Throws a SignalboxError, with what the listener said, for any other, and where none comes. */
  call(method: 'GET' | 'POST', path: string, sent?: Sent): Promise<unknown>;
}

/** What goes with a call. */
export interface Sent {
  /** As JSON. */
  readonly body?: unknown;
  readonly headers?: { readonly [name: string]: string };
  /** How long the answer may take; ten seconds by default. */
  readonly withinMs?: number;
}

const DEFAULT_ADMIN = 'http://127.0.0.1:9901';
const ANSWER_WITHIN_MS = 10_000;

/** A client by the options of ADMIN_OPTIONS. Throws a UsageError for an address or a token that is none. */
export function adminClient(input: CommandInput, terminal: Terminal): AdminClient {
  const base = readBase(input.text('admin') ?? DEFAULT_ADMIN);
  const token = input.text('token') ?? terminal.env['SIGNALBOX_ADMIN_TOKEN'];
  if (token !== undefined && !/^[\x21-\x7e]*$/.test(token))
    throw new UsageError('the token must be of visible ASCII characters, without spaces');
  const headers: Record<string, string> = { accept: 'application/json' };
  if (token !== undefined && token !== '') headers['authorization'] = `Bearer ${token}`;
  return {
    async call(method, path, sent = {}) {
      const { status, text } = await exchange(base + path, method, headers, sent).catch((cause: unknown) => {
        throw new SignalboxError(
          `the admin listener at ${base} does not answer: ${reasonOf(cause)}. Is the gateway running? Its address is given with --admin`,
          { code: 'admin_unreachable', source: 'gateway', cause },
        );
      });
      const value = parsed(text);
      if (status >= 200 && status < 300 && value !== undefined) return value;
      throw new SignalboxError(refusalText(base, status, value), { code: 'admin_refused', source: 'gateway' });
    },
  };
}

/** One exchange without redirects. `fetch` would not do: it calls no port that browsers block, 10080 among them. */
function exchange(
  url: string,
  method: string,
  common: { readonly [name: string]: string },
  { body, headers: own, withinMs = ANSWER_WITHIN_MS }: Sent,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:') ? httpsRequest : httpRequest;
    const signal = AbortSignal.timeout(withinMs);
    const json = body === undefined ? undefined : JSON.stringify(body);
    const headers = { ...common, ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...own };
    const outgoing = request(url, { method, headers, signal, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on('error', reject);
    });
    outgoing.on('error', (error) =>
      reject(signal.aborted ? new Error(`no answer within ${withinMs / 1000} s`) : error),
    );
    outgoing.end(json);
  });
}

function readBase(text: string): string {
  const url = URL.parse(/^https?:\/\//.test(text) ? text : `http://${text}`);
  if (url === null || url.host === '' || url.username !== '' || url.search !== '' || url.hash !== '')
    throw new UsageError(`--admin must be an address such as http://127.0.0.1:9901, got "${text}"`);
  return url.href.replace(/\/+$/, '');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where a name has several addresses, why each failed. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

function refusalText(base: string, status: number, value: unknown): string {
  const message = (value as { readonly error?: { readonly message?: unknown } } | null | undefined)?.error?.message;
  if (typeof message !== 'string') return `${base} answers with ${status}, and not as an admin listener does`;
  return status === 401 ? `${message}. Give it with --token, or set SIGNALBOX_ADMIN_TOKEN` : message;
}
