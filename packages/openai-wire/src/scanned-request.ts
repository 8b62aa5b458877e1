import type { ParsedMessage, ParsedRequest, RequestKind } from '@signalbox/plugin-api';
import { decodeString, decodeValue } from './json-scanner.ts';

/** Where a value stands in the body: [start, end). `start` is -1 when the field is absent. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export const NO_SPAN: Span = Object.freeze({ start: -1, end: -1 });

/** Roles that the scan tells apart. */
export const ROLE: { readonly other: 0; readonly system: 1; readonly user: 2 } = Object.freeze({
  other: 0,
  system: 1,
  user: 2,
});

/** What the scan of one body found. Offsets are into the original bytes. */
export interface ScanResult {
  kind: RequestKind;
  model: string;
  /** Every top-level `model` value; more than one only where a client wrote the key twice. */
  modelSpans: Span[];
  /** The body is multipart: `modelSpans` hold plain text instead of JSON strings. */
  multipart: boolean;
  stream: boolean;
  stores: boolean;
  streamOptions: Span;
  /** Value of `stream_options.include_usage`. */
  includeUsageSpan: Span;
  includeUsage: boolean;
  /**
   * `include_usage` can be set: `stream_options` is absent, null or an object, and what it says of usage is absent, null or false. Values of
   * other types are the server's to judge, and go on as sent.
   */
  mayAskUsage: boolean;
  maxTokens: number;
  /** `max_tokens`, which counts only where `max_completion_tokens` is absent. */
  legacyMaxTokens: number;
  user: Span;
  promptCacheKey: Span;
  metadata: Span;
  tools: Span;
  toolCount: number;
  responseFormat: Span;
  guided: boolean;
  reasoning: boolean;
  /** The chat's messages, or the prompt or input. */
  text: Span;
  messageCount: number;
  /** First message of the system or developer, first and last of the user: offsets, start -1 where there is none. */
  systemStart: number;
  systemEnd: number;
  firstUserStart: number;
  firstUserEnd: number;
  lastUserStart: number;
  lastUserEnd: number;
  images: number;
  promptChars: number;
  promptTokens: number;
  /** Offset of the closing brace of the body's object. */
  objectEnd: number;
}

/** A scan before the first byte. */
export function emptyScan(kind: RequestKind): ScanResult {
  return {
    kind,
    model: '',
    modelSpans: [],
    multipart: false,
    stream: false,
    stores: false,
    streamOptions: NO_SPAN,
    includeUsageSpan: NO_SPAN,
    includeUsage: false,
    mayAskUsage: true,
    maxTokens: Number.NaN,
    legacyMaxTokens: Number.NaN,
    user: NO_SPAN,
    promptCacheKey: NO_SPAN,
    metadata: NO_SPAN,
    tools: NO_SPAN,
    toolCount: 0,
    responseFormat: NO_SPAN,
    guided: false,
    reasoning: false,
    text: NO_SPAN,
    messageCount: 0,
    systemStart: -1,
    systemEnd: -1,
    firstUserStart: -1,
    firstUserEnd: -1,
    lastUserStart: -1,
    lastUserEnd: -1,
    images: 0,
    promptChars: 0,
    promptTokens: Number.NaN,
    objectEnd: -1,
  };
}

interface RawMessage {
  readonly role?: unknown;
  readonly content?: unknown;
}

/**
 * A request body after one scan: the fields that routing reads, and the offsets by which the body is spliced for each attempt. Texts are
 * decoded on first use and remembered. `release` lets the body go; what was read before stays, the rest reads as absent.
 */
export class ScannedRequest implements ParsedRequest {
  readonly path: string;
  readonly scan: ScanResult;
  readonly bodyBytes: number;
  private body: Uint8Array | undefined;
  private userText: string | undefined;
  private cacheKeyText: string | undefined;
  private metadataObject: { readonly [key: string]: unknown } | null | undefined;
  private toolNameList: readonly string[] | undefined;
  private messageList: readonly ParsedMessage[] | undefined;
  private promptText: string | undefined;

  constructor(path: string, body: Uint8Array, scan: ScanResult) {
    this.path = path;
    this.body = body;
    this.scan = scan;
    this.bodyBytes = body.length;
  }

  get kind(): RequestKind {
    return this.scan.kind;
  }
  get model(): string {
    return this.scan.model;
  }
  get stream(): boolean {
    return this.scan.stream;
  }
  /** `store: true`: the server keeps the answer, so that a request that may have reached it must not be sent again. */
  get stores(): boolean {
    return this.scan.stores;
  }
  get includeUsage(): boolean {
    return this.scan.includeUsage;
  }
  /** The client asks for no usage, and its `stream_options` are such that we can. */
  get mayAskUsage(): boolean {
    return this.scan.mayAskUsage;
  }
  get maxTokens(): number {
    return this.scan.maxTokens;
  }
  get tools(): number {
    return this.scan.toolCount;
  }
  get images(): number {
    return this.scan.images;
  }
  get reasoning(): boolean {
    return this.scan.reasoning;
  }
  get promptChars(): number {
    return this.scan.promptChars;
  }
  get promptTokensExact(): number {
    return this.scan.promptTokens;
  }

  get user(): string | undefined {
    return (this.userText ??= this.stringAt(this.scan.user));
  }

  get promptCacheKey(): string | undefined {
    return (this.cacheKeyText ??= this.stringAt(this.scan.promptCacheKey));
  }

  get jsonSchema(): boolean {
    if (this.scan.guided) return true;
    const format = this.valueAt(this.scan.responseFormat);
    return (
      typeof format === 'object' && format !== null && (format as { readonly type?: unknown }).type === 'json_schema'
    );
  }

  metadata(key: string): string | undefined {
    const metadata = this.readMetadata();
    if (metadata === null || !Object.hasOwn(metadata, key)) return undefined;
    const value = metadata[key];
    return typeof value === 'string' ? value : undefined;
  }

  metadataKeys(): readonly string[] {
    return Object.keys(this.readMetadata() ?? {}).filter((key) => this.metadata(key) !== undefined);
  }

  private readMetadata(): { readonly [key: string]: unknown } | null {
    if (this.metadataObject === undefined) {
      const value = this.valueAt(this.scan.metadata);
      this.metadataObject = isRecord(value) ? value : null;
    }
    return this.metadataObject;
  }

  toolNames(): readonly string[] {
    if (this.toolNameList === undefined) {
      const tools = this.valueAt(this.scan.tools);
      this.toolNameList = Array.isArray(tools) ? tools.map(toolName).filter((name) => name !== undefined) : [];
    }
    return this.toolNameList;
  }

  messages(): readonly ParsedMessage[] {
    if (this.messageList === undefined) {
      const value = this.scan.messageCount > 0 ? this.valueAt(this.scan.text) : undefined;
      this.messageList = Array.isArray(value) ? value.map((message) => toMessage(message as RawMessage)) : [];
    }
    return this.messageList;
  }

  prompt(): string {
    if (this.promptText === undefined) {
      if (this.scan.messageCount > 0) {
        this.promptText = this.messages()
          .map((message) => message.text)
          .join('\n');
      } else {
        const value = this.valueAt(this.scan.text);
        const texts =
          typeof value === 'string'
            ? [value]
            : Array.isArray(value)
              ? value.filter((item) => typeof item === 'string')
              : [];
        this.promptText = texts.join('\n');
      }
    }
    return this.promptText;
  }

  systemPrompt(): string | undefined {
    return this.messageAt(this.scan.systemStart, this.scan.systemEnd);
  }

  firstUserMessage(): string | undefined {
    return this.scan.kind === 'chat'
      ? this.messageAt(this.scan.firstUserStart, this.scan.firstUserEnd)
      : this.textPrompt();
  }

  lastUserMessage(): string | undefined {
    return this.scan.kind === 'chat'
      ? this.messageAt(this.scan.lastUserStart, this.scan.lastUserEnd)
      : this.textPrompt();
  }

  /** The body as the client sent it; undefined after `release`. */
  bytes(): Uint8Array | undefined {
    return this.body;
  }

  release(): void {
    this.body = undefined;
    this.messageList = undefined;
    this.promptText = undefined;
  }

  private textPrompt(): string | undefined {
    return this.scan.text.start < 0 ? undefined : this.prompt();
  }

  /** Text of the message in [start, end), decoded alone, so that a long conversation costs nothing. */
  private messageAt(start: number, end: number): string | undefined {
    if (start < 0 || this.body === undefined) return undefined;
    return toMessage(decodeValue(this.body, start, end) as RawMessage).text;
  }

  private stringAt(span: Span): string | undefined {
    return span.start < 0 || this.body === undefined ? undefined : decodeString(this.body, span.start, span.end);
  }

  private valueAt(span: Span): unknown {
    return span.start < 0 || this.body === undefined ? undefined : decodeValue(this.body, span.start, span.end);
  }
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function toolName(tool: unknown): string | undefined {
  if (!isRecord(tool)) return undefined;
  const inner = isRecord(tool['function']) ? tool['function'] : tool;
  return typeof inner['name'] === 'string' ? inner['name'] : undefined;
}

function toMessage(raw: RawMessage): ParsedMessage {
  const role = typeof raw.role === 'string' ? raw.role : '';
  const content = raw.content;
  if (typeof content === 'string') return { role, text: content, images: 0 };
  if (!Array.isArray(content)) return { role, text: '', images: 0 };
  const texts: string[] = [];
  let images = 0;
  for (const part of content) {
    if (typeof part === 'string') texts.push(part);
    else if (isRecord(part)) {
      if (typeof part['text'] === 'string') texts.push(part['text']);
      if (isImagePart(part)) images++;
    }
  }
  return { role, text: texts.join('\n'), images };
}

function isImagePart(part: { readonly [key: string]: unknown }): boolean {
  const type = part['type'];
  return (
    type === 'image_url' ||
    type === 'input_image' ||
    type === 'image' ||
    (type === undefined && Object.hasOwn(part, 'image_url'))
  );
}
