import { JsonScanner } from './json-scanner.ts';
import type { ScannedRequest } from './scanned-request.ts';

/** What one attempt changes in the body. Everything that is not named stays as it came, byte for byte. */
export interface BodyEdits {
  /** The model's name to send; undefined keeps the client's. */
  readonly model?: string | undefined;
  /** Ask for a usage frame at the end of the stream, where `mayAskUsage` of the request lets us. */
  readonly includeUsage?: boolean;
  /** Top-level fields to set, as JSON text. */
  readonly set?: readonly { readonly field: string; readonly json: string }[];
  /** Top-level fields to leave out. */
  readonly drop?: readonly string[];
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const encoder = new TextEncoder();

/**
 * The body for one attempt, always made from the original bytes, so an earlier attempt leaves no trace. Without a change the same array
 * comes back. A client that wrote `model` twice gets both replaced by the one that counts, so that no reader behind us can differ.
 * `set` and `drop` apply to JSON bodies; a set field wins over the same field of `model` and `includeUsage`.
 */
export function spliceBody(request: ScannedRequest, edits: BodyEdits): Uint8Array {
  const bytes = request.bytes();
  if (bytes === undefined) throw new Error('the body was released');
  const cuts = request.scan.multipart ? multipartCuts(request, edits) : jsonCuts(request, bytes, edits);
  return cuts.length === 0 ? bytes : applyCuts(bytes, cuts);
}

function multipartCuts(request: ScannedRequest, edits: BodyEdits): Cut[] {
  const { modelSpans, model } = request.scan;
  const name = edits.model ?? model;
  return name === model && modelSpans.length === 1 ? [] : modelSpans.map((span) => ({ ...span, text: name }));
}

function jsonCuts(request: ScannedRequest, bytes: Uint8Array, edits: BodyEdits): Cut[] {
  const scan = request.scan;
  const cuts: Cut[] = [];
  const set = edits.set ?? [];
  const drop = edits.drop ?? [];
  const touched = (field: string): boolean => set.some((item) => item.field === field) || drop.includes(field);
  const model = edits.model ?? scan.model;
  if ((model !== scan.model || scan.modelSpans.length > 1) && !touched('model')) {
    for (const span of scan.modelSpans) cuts.push({ ...span, text: JSON.stringify(model) });
  }
  let appended = '';
  if (edits.includeUsage === true && scan.mayAskUsage && !touched('stream_options')) {
    const { start, end } = scan.streamOptions;
    if (start < 0) appended = ',"stream_options":{"include_usage":true}';
    else if (scan.includeUsageSpan.start >= 0) cuts.push({ ...scan.includeUsageSpan, text: 'true' });
    else if (bytes[start] !== 0x7b) cuts.push({ start, end, text: '{"include_usage":true}' });
    else {
      const empty = new JsonScanner(bytes, start + 1, end, 1).peek() === 0x7d;
      cuts.push({ start: start + 1, end: start + 1, text: empty ? '"include_usage":true' : '"include_usage":true,' });
    }
  }
  if (set.length > 0 || drop.length > 0) {
    return [...cuts, ...fieldCuts(bytes, scan.objectEnd, set, drop, appended)];
  }
  if (appended !== '') cuts.push({ start: scan.objectEnd, end: scan.objectEnd, text: appended });
  return cuts;
}

/** Cuts for `set` and `drop`: members are removed with one comma beside them, so that what is left is still an object. */
function fieldCuts(
  bytes: Uint8Array,
  objectEnd: number,
  set: readonly { readonly field: string; readonly json: string }[],
  drop: readonly string[],
  appended: string,
): Cut[] {
  const cuts: Cut[] = [];
  const unset = new Map(set.map((item) => [item.field, item.json]));
  const replaced = new Set<string>();
  const scanner = new JsonScanner(bytes, 0, bytes.length, Number.POSITIVE_INFINITY);
  scanner.peek();
  let kept = 0;
  // A dropped member takes its leading comma along; leading dropped members take the comma behind them.
  if (scanner.openObject(0)) {
    let from = scanner.pos;
    for (;;) {
      scanner.peek();
      const keyStart = scanner.key();
      const name = scanner.keyText(keyStart);
      scanner.peek();
      const valueStart = scanner.pos;
      scanner.value(1);
      const valueEnd = scanner.pos;
      const json = unset.get(name);
      const gone = json === undefined ? drop.includes(name) : replaced.has(name);
      if (!gone) {
        if (json !== undefined) {
          replaced.add(name);
          cuts.push({ start: valueStart, end: valueEnd, text: json });
        }
        kept++;
      }
      const comma = scanner.more(0x7d);
      if (gone)
        cuts.push(
          kept === 0
            ? { start: keyStart, end: comma ? scanner.pos : valueEnd, text: '' }
            : { start: from, end: valueEnd, text: '' },
        );
      if (!comma) break;
      from = scanner.pos - 1;
    }
  }
  let tail = '';
  for (const [field, json] of unset) {
    if (!replaced.has(field)) tail += `,${JSON.stringify(field)}:${json}`;
  }
  tail += appended;
  if (tail !== '') cuts.push({ start: objectEnd, end: objectEnd, text: kept === 0 ? tail.slice(1) : tail });
  return cuts;
}

function applyCuts(bytes: Uint8Array, unordered: readonly Cut[]): Uint8Array {
  const cuts = unordered.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const texts = cuts.map((cut) => encoder.encode(cut.text));
  let length = bytes.length;
  for (const [i, cut] of cuts.entries()) length += (texts[i]?.length ?? 0) - (cut.end - cut.start);
  const out = new Uint8Array(length);
  let from = 0;
  let to = 0;
  for (const [i, cut] of cuts.entries()) {
    out.set(bytes.subarray(from, cut.start), to);
    to += cut.start - from;
    const text = texts[i];
    if (text !== undefined) {
      out.set(text, to);
      to += text.length;
    }
    from = cut.end;
  }
  out.set(bytes.subarray(from), to);
  return out;
}
