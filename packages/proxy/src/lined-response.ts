import { ServerResponse } from 'node:http';
import type { IncomingMessage } from 'node:http';

/** What node:http makes the head of: the status line, and the headers that it has still to check. */
type StoreHeader = (this: ServerResponse, firstLine: string, headers: readonly string[]) => void;

const storeHeader = (ServerResponse.prototype as { readonly _storeHeader?: StoreHeader })._storeHeader;

/**
 * A response some of whose header lines are text already. perf: node:http checks and joins each header of a list with four pieces and two regular
 * expressions, and ours are eight on every answer, whose form is known: they go behind the status line as they are.
 */
export class LinedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  private lines = '';

  /** `writeHead` with `lines` in front of the headers: each `name: value` and a line break, of characters that a header may hold. */
  writeLined(status: number, lines: string, headers: readonly string[]): void {
    if (storeHeader === undefined) {
      this.writeHead(status, [...namesAndValues(lines), ...headers]);
      return;
    }
    this.lines = lines;
    this.writeHead(status, headers as string[]);
  }

  /** The step of node:http in which a head becomes text. */
  protected _storeHeader(firstLine: string, headers: readonly string[]): void {
    storeHeader?.call(this, firstLine + this.lines, headers);
    // A stream may stay open for long.
    this.lines = '';
  }
}

/** The lines as a flat list, for a version of Node that makes its heads in another way. */
export function namesAndValues(lines: string): string[] {
  return lines
    .split('\r\n')
    .filter((line) => line !== '')
    .flatMap((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]);
}
