import type { Logger, LogFields } from '@signalbox/plugin-api';
import { pino } from 'pino';
import type { DestinationStream, Logger as PinoLogger } from 'pino';
import { createDecisionLineRenderer, createDecisionLines } from './decision-line.ts';
import type { DecisionRecord, DecisionSink } from './decision-record.ts';
import type { LogStream } from './log-stream.ts';
import type { Utf8Text } from './utf8-text.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export const LOG_LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];

/** Field names whose value never reaches a log, whoever passes them. */
const SECRET_FIELDS = [
  'authorization',
  'api_key',
  'apiKey',
  'key',
  'cookie',
  'password',
  'secret',
  'token',
  'prompt',
  'body',
  'messages',
];

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Where lines go; standard output by default. */
  readonly destination?: DestinationStream;
}

/**
 * The NDJSON log of the process behind plugin-api's small `Logger` type. Secret and content fields are redacted at every level. Lines
 * have `level` as a word, `time` as an ISO date, and `msg`.
 */
export function createLogger({ level, destination }: LoggerOptions): Logger {
  const options = {
    ...LINE,
    level,
    redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
  };
  return wrap(destination === undefined ? pino(options) : pino(options, destination));
}

/** The form that all lines share: the level as a word, the time as an ISO date. */
const LINE = {
  base: null,
  formatters: { level: (label: string): object => ({ level: label }) },
  timestamp: (): string => `,"time":"${new Date().toISOString()}"`,
};

/**
 * Writes one line for each finished request, in the form of the log's other lines. Its fields come from an allow-list
 * (`createDecisionLines`), so there is nothing to redact. Nothing is built where the level is above `info`.
 */
export function createDecisionLog({ level, destination }: DecisionLogOptions): DecisionSink {
  if (level !== 'info' && level !== 'debug' && level !== 'trace') return () => {};
  if ('append' in destination) {
    const render = createDecisionLineRenderer();
    const renderNow = (text: Utf8Text, record: DecisionRecord): void => render(text, record, Date.now());
    return (record) => destination.append(renderNow, record);
  }
  const lineOf = createDecisionLines();
  return (record) => {
    destination.write(lineOf(record, Date.now()));
  };
}

export interface DecisionLogOptions {
  readonly level: LogLevel;
  readonly destination: DestinationStream | LogStream;
}

function wrap(inner: PinoLogger): Logger {
  const write =
    (level: 'trace' | 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields?: LogFields): void => {
      if (fields === undefined) inner[level](message);
      else inner[level](fields, message);
    };
  return {
    trace: write('trace'),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(inner.child(fields)),
  };
}
