import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';
import { readAuditLine } from '@signalbox/telemetry';
import type { DecisionRecord } from '@signalbox/telemetry';

/** A line of an audit file: its record, or what is wrong with it. */
export interface AuditLine {
  /** As it was given, `-` for standard input. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly record: DecisionRecord | undefined;
  /** Present where there is no record. */
  readonly problem?: string;
}

/** No line of an audit file is longer; what is, is no line of one and is not held in memory. */
const MOST_LINE_CHARS = 4 * 1024 * 1024;

/**
 * The lines of audit files, one file after another, read as a stream: never more than one line is held. Files that end in `.gz` are
 * unpacked. A line that cannot be read comes with its problem; empty lines are passed over. Throws what the file system says where a
 * file cannot be read.
 */
export async function* auditLines(
  files: readonly string[],
  { cwd, stdin }: { readonly cwd: string; readonly stdin: Readable },
): AsyncGenerator<AuditLine> {
  for (const file of files) {
    const raw = file === '-' ? stdin : createReadStream(resolve(cwd, file));
    let line = 0;
    for await (const text of textLines(file.endsWith('.gz') ? unpacked(raw) : raw)) {
      line++;
      if (text === '') continue;
      if (text === undefined) {
        yield { file, line, record: undefined, problem: `it is longer than ${MOST_LINE_CHARS} characters` };
        continue;
      }
      const read = readAuditLine(text);
      yield read.kind === 'record'
        ? { file, line, record: read.record }
        : { file, line, record: undefined, problem: read.problem };
    }
  }
}

function unpacked(packed: Readable): Readable {
  const gunzip = createGunzip();
  packed.on('error', (error) => gunzip.destroy(error));
  return packed.pipe(gunzip);
}

/** Lines without their breaks (LF or CRLF); undefined for one that is too long. */
async function* textLines(stream: Readable): AsyncGenerator<string | undefined> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let tooLong = false;
  const take = (text: string): string | undefined => {
    const whole = tooLong ? undefined : rest + text;
    rest = '';
    tooLong = false;
    return whole?.endsWith('\r') === true ? whole.slice(0, -1) : whole;
  };
  for await (const chunk of stream) {
    const text = decoder.write(chunk as Buffer);
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      yield take(text.slice(start, end));
      start = end + 1;
    }
    rest += text.slice(start);
    if (rest.length > MOST_LINE_CHARS) {
      tooLong = true;
      rest = '';
    }
  }
  if (rest !== '' || tooLong) yield take('');
}
