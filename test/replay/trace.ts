import { readFileSync } from 'node:fs';

/** One request of the trace. */
export interface TraceRequest {
  /** Position in the trace, from 0. */
  readonly index: number;
  /** Arrival after the first request, ms of the trace's own clock. */
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

const traceFile = new URL('data/azure-conv-2023-500.csv', import.meta.url);

/** The first `most` requests of the Azure conversation trace of 2023; there are 500. */
export function readAzureConversation(most: number = Infinity): readonly TraceRequest[] {
  return parseTrace(readFileSync(traceFile, 'utf8')).slice(0, most);
}

/** `most` requests of another file of the same form, the first `from` left out; arrivals count from the first that is taken. */
export function readTrace(file: string, from: number, most: number): readonly TraceRequest[] {
  const [header = '', ...rows] = readFileSync(file, 'utf8').replaceAll('\r', '').trimEnd().split('\n');
  const trace = parseTrace([header, ...rows.slice(from, from + most)].join('\n'));
  if (trace.length === 0) throw new Error(`${file} has ${rows.length} requests, and ${from} were to be left out`);
  return trace;
}

/** Requests of a CSV with the columns `TIMESTAMP,ContextTokens,GeneratedTokens`. Throws on a row that is not that, or out of order. */
export function parseTrace(text: string): readonly TraceRequest[] {
  const [header, ...rows] = text.trimEnd().split('\n');
  if (header !== 'TIMESTAMP,ContextTokens,GeneratedTokens') throw new Error(`not an Azure trace: header ${header}`);
  let firstMs = Number.NaN;
  let lastMs = -Infinity;
  return rows.map((row, index) => {
    const [stamp = '', prompt = '', output = ''] = row.split(',');
    const ms = parseStampMs(stamp);
    const promptTokens = Number(prompt);
    const outputTokens = Number(output);
    if (!(ms >= lastMs) || !isCount(promptTokens) || !isCount(outputTokens))
      throw new Error(`trace row ${index + 1} is out of order or not a request: ${row}`);
    if (index === 0) firstMs = ms;
    lastMs = ms;
    return { index, atMs: ms - firstMs, promptTokens, outputTokens };
  });
}

const isCount = (value: number): boolean => Number.isInteger(value) && value > 0;

/** `2023-11-16 18:15:46.6805900` as milliseconds; NaN for anything else. */
function parseStampMs(stamp: string): number {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?$/.exec(stamp);
  return match === null ? Number.NaN : Date.parse(`${match[1]}T${match[2]}Z`) + 1000 * Number(match[3] ?? 0);
}
