/** Bounds of the data plane. Durations in milliseconds, sizes in bytes. */
export interface ProxyLimits {
  /** A request body; more is answered 413. */
  readonly bodyBytes: number;
  readonly headerBytes: number;
  /** Client connections at once; one more is closed at once, unread. */
  readonly connections: number;
  /** Header lines of a request; more, or more bytes than `headerBytes`, is answered 431. */
  readonly headerCount: number;
  readonly jsonDepth: number;
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly requestTimeoutMs: number;
  /** An idle client connection; longer than that of common balancers. */
  readonly keepAliveTimeoutMs: number;
  /** An idle connection to an endpoint; shorter than that of common servers (uvicorn: 5 s). */
  readonly upstreamKeepAliveMs: number;
  /** Bytes of a stream's beginning held before its first event with output; an event that has not ended counts. */
  readonly heldStreamBytes: number;
  /** A plain answer up to this size is held until it is whole, so that a lost one can be replaced. */
  readonly heldAnswerBytes: number;
  /** The same where the model's name has to be put back. */
  readonly rewrittenAnswerBytes: number;
  readonly eventBytes: number;
  /** Silence on an open stream after which a comment is sent. */
  readonly heartbeatMs: number;
  /** A reader that takes nothing for so long, while bytes wait for it, is dropped. */
  readonly stalledReaderMs: number;
  /** How long what a refused client still sends is read and thrown away, so that it can read the answer. */
  readonly lingerMs: number;
}

export const DEFAULT_LIMITS: ProxyLimits = Object.freeze({
  bodyBytes: 20 * 1024 * 1024,
  headerBytes: 16 * 1024,
  connections: Number.POSITIVE_INFINITY,
  headerCount: 128,
  jsonDepth: 64,
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 75_000,
  upstreamKeepAliveMs: 4_000,
  heldStreamBytes: 1024 * 1024,
  heldAnswerBytes: 1024 * 1024,
  rewrittenAnswerBytes: 16 * 1024 * 1024,
  eventBytes: 8 * 1024 * 1024,
  heartbeatMs: 15_000,
  stalledReaderMs: 30_000,
  lingerMs: 5_000,
});
