import type { RouteRequest } from '@signalbox/core';
import type { ScannedRequest } from '@signalbox/openai-wire';
import { toHeaderRecord, type RequestHead } from './request-head.ts';

/** The request as the router takes it; header values are gathered only if a policy reads one. */
export class ProxyRouteRequest implements RouteRequest {
  readonly id: string;
  readonly parsed: ScannedRequest;
  readonly traceId: string;
  readonly tenant?: string;
  readonly apiKeyName?: string;
  readonly hidesModel: boolean;
  readonly receivedAtMs: number;
  readonly deadlineMs: number;
  onAbort: (() => void) | undefined = undefined;
  private readonly forwarded: readonly string[];
  private record: { readonly [name: string]: string | undefined } | undefined;

  constructor(
    head: RequestHead,
    parsed: ScannedRequest,
    receivedMs: number,
    tenant: string | undefined,
    apiKeyName: string | undefined,
    hidesModel: boolean,
  ) {
    this.id = head.requestId;
    this.traceId = head.traceId;
    this.hidesModel = hidesModel;
    this.parsed = parsed;
    this.receivedAtMs = receivedMs;
    this.deadlineMs = Number.isNaN(head.timeoutMs)
      ? Number.POSITIVE_INFINITY
      : receivedMs + Math.max(0, head.timeoutMs);
    this.forwarded = head.forwarded;
    if (tenant !== undefined) this.tenant = tenant;
    if (apiKeyName !== undefined) this.apiKeyName = apiKeyName;
  }

  get headers(): { readonly [name: string]: string | undefined } {
    return (this.record ??= toHeaderRecord(this.forwarded));
  }
}
